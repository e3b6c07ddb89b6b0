"""``dgl.nn`` and ``dgl.nn.pytorch``: the layers of gnnlab and those that only DGL has.

A layer is called as ``layer(graph, feat, …)``; parameters that most layers have are not described
again in each:

- ``graph`` is a graph or a block with one edge type. Layers that propagate several steps, or mix
  the rows of all nodes, need a whole graph.
- ``feat`` has shape (num_src, in_feats), or is a pair (source rows, destination rows), for which
  ``in_feats`` is a pair of sizes. On a block, the destinations are the first of the sources.
- Edge rows have shape (E, …), edge weights (E,), in edge-ID order. A weight multiplies a message.
- ``bias`` adds a learned vector to the output, ``residual`` the node's own row, through a linear
  layer where the sizes differ; ``activation`` is applied last.
- A node without in-edges receives no message: an error unless ``allow_zero_in_degree``.

Errors are ``InvalidInput``, a ``ValueError``, and say what was expected.
"""

import sys

from gnnlab.compat import lazy

# Module → layers. Those of gnnlab.nn need no entry.
_MODULES: dict[str, str] = {
    "gnnlab.compat.nn.conv.attention": "AGNNConv DotGatConv EGATConv EdgeGATConv GATv2Conv",
    "gnnlab.compat.nn.conv.edges": "EdgeConv GMMConv GatedGCNConv GatedGraphConv NNConv",
    "gnnlab.compat.nn.conv.molecules": "AtomicConv CFConv EGNNConv",
    "gnnlab.compat.nn.conv.propagation": "APPNPConv ChebConv EdgeWeightNorm GCN2Conv SGConv "
    "TAGConv",
    "gnnlab.compat.nn.denseconv": "DenseChebConv DenseGraphConv DenseSAGEConv",
    "gnnlab.compat.nn.glob": "GlobalAttentionPooling MaxPooling Set2Set SortPooling WeightAndSum",
    "gnnlab.compat.nn.graph_transformer": "BiasedMHA DegreeEncoder GraphormerLayer "
    "PathEncoder SpatialEncoder",
    "gnnlab.compat.nn.hetero": "HeteroEmbedding HeteroLinear get_aggregate_fn",
    "gnnlab.compat.nn.hgtconv": "HGTConv",
    "gnnlab.compat.nn.knowledge_graph": "TransE TransR",
    "gnnlab.compat.nn.metapath2vec": "MetaPath2Vec",
    "gnnlab.compat.nn.pnaconv": "PNAConv",
    "gnnlab.compat.nn.sparse_emb": "NodeEmbedding",
    "gnnlab.compat.nn.utils": "JumpingKnowledge LabelPropagation Sequential",
    "gnnlab.compat.nn.factory": "KNNGraph RadiusGraph SegmentedKNNGraph",
}

pytorch = sys.modules[__name__]
__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.nn", _MODULES)
