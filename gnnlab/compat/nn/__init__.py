"""``dgl.nn`` and ``dgl.nn.pytorch``: the layers of gnnlab and those that only DGL has."""

import sys

from gnnlab.compat import lazy

# Module → layers. Those of gnnlab.nn need no entry.
_MODULES: dict[str, str] = {
    "gnnlab.compat.nn.conv.attention": "AGNNConv DotGatConv EGATConv EdgeGATConv GATv2Conv",
    "gnnlab.compat.nn.conv.dense": "DenseChebConv DenseGraphConv DenseSAGEConv",
    "gnnlab.compat.nn.conv.edges": "AtomicConv CFConv EGNNConv EdgeConv GMMConv NNConv",
    "gnnlab.compat.nn.conv.gated": "GatedGCNConv GatedGraphConv",
    "gnnlab.compat.nn.conv.hgt": "HGTConv",
    "gnnlab.compat.nn.conv.pna": "PNAConv",
    "gnnlab.compat.nn.conv.propagation": (
        "APPNPConv ChebConv EdgeWeightNorm GCN2Conv SGConv TAGConv"
    ),
    "gnnlab.compat.nn.glob": (
        "GlobalAttentionPooling MaxPooling Set2Set SetTransformerDecoder SetTransformerEncoder "
        "SortPooling WeightAndSum"
    ),
    "gnnlab.compat.nn.hetero": "HeteroEmbedding HeteroLinear",
    "gnnlab.compat.nn.link": "TransE TransR",
    "gnnlab.compat.nn.utils": "JumpingKnowledge LabelPropagation Sequential",
}

pytorch = sys.modules[__name__]
__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.nn", _MODULES)
