"""``dgl.graphbolt``: pipelines from items to mini-batches, over the library's samplers.

    import gnnlab.compat.graphbolt as gb

    pipe = gb.ItemSampler(dataset.tasks[0].train_set, batch_size=1024, shuffle=True)
    pipe = pipe.sample_neighbor(dataset.graph, [10, 10])
    pipe = pipe.fetch_feature(dataset.feature, node_feature_keys=["feat"])
    for minibatch in gb.DataLoader(pipe.copy_to("cpu")):
        minibatch.blocks, minibatch.node_features["feat"], minibatch.labels

See DGL's user guide (2.x), chapter 6, "Stochastic Training on Large Graphs".
"""

from gnnlab.compat import lazy
from gnnlab.compat.graphbolt import features, samplers  # noqa: F401 (they make methods of stages)

_MODULES = {
    "gnnlab.random": "seed",
    "numpy": "numpy_save_aligned=save",
    "gnnlab.compat.graphbolt.dataset": "BuiltinDataset Dataset LegacyDataset OnDiskDataset "
    "OnDiskFeatureData Task preprocess_ondisk_dataset",
    "gnnlab.compat.graphbolt.features": "BasicFeatureStore CachedFeature CPUCachedFeature="
    "CachedFeature DiskBasedFeature Feature FeatureFetcher FeatureKey FeatureStore GPUCachedFeature"
    "=CachedFeature TorchBasedFeature TorchBasedFeatureStore bytes_to_number_of_items "
    "cpu_cached_feature gpu_cached_feature wrap_with_cached_feature",
    "gnnlab.compat.graphbolt.graph": "FusedCSCSamplingGraph ORIGINAL_EDGE_ID SamplingGraph "
    "from_dglgraph fused_csc_sampling_graph",
    "gnnlab.compat.graphbolt.itemset": "HeteroItemSet ItemSet ItemSetDict",
    "gnnlab.compat.graphbolt.minibatch": "CSCFormatBase MiniBatch SampledSubgraph "
    "SampledSubgraphImpl=SampledSubgraph add_reverse_edges compact_csc_format etype_str_to_tuple "
    "etype_tuple_to_str expand_indptr index_select isin seed_type_str_to_ntypes "
    "unique_and_compact unique_and_compact_csc_formats",
    "gnnlab.compat.graphbolt.pipes": "CopyTo DataLoader DistributedItemSampler ItemSampler "
    "MiniBatchTransformer minibatcher_default",
    "gnnlab.compat.graphbolt.samplers": "InSubgraphSampler LayerNeighborSampler NegativeSampler "
    "NeighborSampler SeedEdgesExcluder SubgraphSampler TemporalLayerNeighborSampler="
    "TemporalNeighborSampler TemporalNeighborSampler UniformNegativeSampler exclude_seed_edges",
}
__getattr__, __dir__ = lazy.attributes(__name__, "", _MODULES)
