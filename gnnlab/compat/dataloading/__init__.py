"""``dgl.dataloading``: the samplers and loaders of gnnlab, and those that only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.dataloading need no entry.
_MODULES = {
    "gnnlab.compat.dataloading.subgraphs": "ClusterGCNSampler SAINTSampler ShaDowKHopSampler",
    "gnnlab.compat.distributed.dist_dataloader": "DistDataLoader DistEdgeDataLoader "
    "DistNodeDataLoader EdgeCollator NodeCollator",
    "gnnlab.sampling": "sample_neighbors",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.dataloading", _MODULES)
