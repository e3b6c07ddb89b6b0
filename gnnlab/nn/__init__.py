"""Graph neural network layers: ``torch.nn`` modules that aggregate over the edges of a graph.

Every layer is called as ``layer(graph, feat, …)``, with a whole graph or a sampled block.
Parameter names, shapes and initial distributions are DGL's, so a ``state_dict`` saved by DGL
loads here. Each layer has a file of its own; they share the functions of :mod:`gnnlab.nn.utils`.
"""

from typing import Any

from gnnlab.nn.activation import ReLUDropout
from gnnlab.nn.gatconv import GATConv
from gnnlab.nn.ginconv import GINConv, GINEConv
from gnnlab.nn.graphconv import GraphConv
from gnnlab.nn.hetero import HeteroGraphConv
from gnnlab.nn.linear import TypedLinear, WeightBasis
from gnnlab.nn.pooling import AvgPooling, SumPooling
from gnnlab.nn.predictor import EdgePredictor
from gnnlab.nn.relgraphconv import RelGraphConv
from gnnlab.nn.sageconv import SAGEConv
from gnnlab.ops import edge_softmax
from gnnlab.system.names import no_attribute

__all__ = [
    "AvgPooling",
    "EdgePredictor",
    "GATConv",
    "GINConv",
    "GINEConv",
    "GraphConv",
    "HeteroGraphConv",
    "ReLUDropout",
    "RelGraphConv",
    "SAGEConv",
    "SumPooling",
    "TypedLinear",
    "WeightBasis",
    "edge_softmax",
]


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
