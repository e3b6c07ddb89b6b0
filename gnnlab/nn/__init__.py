"""Graph neural network layers: ``torch.nn`` modules that aggregate over the edges of a graph.

Every layer is called as ``layer(graph, feat, …)``, with a whole graph or a sampled block.
Parameter names, shapes and initial distributions are DGL's, so a ``state_dict`` saved by DGL
loads here. Each layer has a file of its own; they share the functions of :mod:`gnnlab.nn.utils`.
"""

import importlib
from typing import Any

from gnnlab.nn.activation import ReLUDropout
from gnnlab.nn.gatconv import GATConv
from gnnlab.nn.ginconv import GINConv, GINEConv
from gnnlab.nn.graphconv import GraphConv
from gnnlab.nn.hetero import HeteroGraphConv
from gnnlab.nn.linear import TypedLinear, WeightBasis
from gnnlab.nn.pooling import AvgPooling, SumPooling, WeightAndSum
from gnnlab.nn.predictor import EdgePredictor
from gnnlab.nn.relgraphconv import RelGraphConv
from gnnlab.nn.sageconv import SAGEConv
from gnnlab.ops import edge_softmax

# Layers that fewer programs use are imported when they are first asked for.
_LATER = {
    "gnnlab.nn.agnnconv": "AGNNConv",
    "gnnlab.nn.cfconv": "CFConv",
    "gnnlab.nn.denseconv": "DenseChebConv DenseGraphConv DenseSAGEConv",
    "gnnlab.nn.egatconv": "EGATConv",
    "gnnlab.nn.egnnconv": "EGNNConv",
    "gnnlab.nn.gatedgcnconv": "GatedGCNConv",
    "gnnlab.nn.gt": "BiasedMHA DegreeEncoder GraphormerLayer PathEncoder SpatialEncoder",
    "gnnlab.nn.hgtconv": "HGTConv",
    "gnnlab.nn.link": "TransE TransR",
    "gnnlab.nn.pnaconv": "PNAConv",
}
_MODULES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = [
    "AGNNConv",
    "AvgPooling",
    "BiasedMHA",
    "CFConv",
    "DegreeEncoder",
    "DenseChebConv",
    "DenseGraphConv",
    "DenseSAGEConv",
    "EGATConv",
    "EGNNConv",
    "EdgePredictor",
    "GATConv",
    "GINConv",
    "GINEConv",
    "GatedGCNConv",
    "GraphConv",
    "GraphormerLayer",
    "HGTConv",
    "HeteroGraphConv",
    "PNAConv",
    "PathEncoder",
    "ReLUDropout",
    "RelGraphConv",
    "SAGEConv",
    "SpatialEncoder",
    "SumPooling",
    "TransE",
    "TransR",
    "TypedLinear",
    "WeightAndSum",
    "WeightBasis",
    "edge_softmax",
]


def __getattr__(name: str) -> Any:
    """Import the other layers, and the modules of DGL's alternative names, on first use."""
    if name in _MODULES:
        value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return value
    if name in ("functional", "pytorch"):
        return importlib.import_module(f"gnnlab.nn.{name}")
    raise AttributeError(f"module 'gnnlab.nn' has no attribute {name!r}")
