"""Samplers and loaders: mini-batches of nodes, of edges and of whole graphs."""

import importlib
from typing import Any

from gnnlab.dataloading import negative_sampler, ranking
from gnnlab.dataloading.capture import CapturedTraining
from gnnlab.dataloading.edges import (
    EdgeDataLoader,
    EdgePredictionSampler,
    as_edge_prediction_sampler,
)
from gnnlab.dataloading.features import (
    set_dst_lazy_features,
    set_edge_lazy_features,
    set_node_lazy_features,
    set_src_lazy_features,
)
from gnnlab.dataloading.graph_loader import GraphDataLoader
from gnnlab.dataloading.inference import full_neighbor_blocks
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.loader import DataLoader, NodeDataLoader
from gnnlab.dataloading.sampler import (
    BlockSampler,
    MultiLayerFullNeighborSampler,
    MultiLayerNeighborSampler,
    NeighborSampler,
    Sampler,
)
from gnnlab.dataloading.scoring import score
from gnnlab.dataloading.seeds import Timed
from gnnlab.errors import takes_graph
from gnnlab.system.names import no_attribute

__all__ = [
    "BlockSampler",
    "CapturedTraining",
    "DataLoader",
    "EdgeDataLoader",
    "EdgePredictionSampler",
    "GraphDataLoader",
    "LaborSampler",
    "MultiLayerFullNeighborSampler",
    "MultiLayerNeighborSampler",
    "NeighborSampler",
    "NodeDataLoader",
    "Sampler",
    "Timed",
    "as_edge_prediction_sampler",
    "full_neighbor_blocks",
    "negative_sampler",
    "ranking",
    "score",
    "set_dst_lazy_features",
    "set_edge_lazy_features",
    "set_node_lazy_features",
    "set_src_lazy_features",
]

globals().update({name: takes_graph(globals()[name], __name__) for name in __all__})

_DISTRIBUTED = ("DistDataLoader", "DistEdgeDataLoader", "DistNodeDataLoader")


def __getattr__(name: str) -> Any:
    # DGL's scripts import these from here too; gnnlab.distributed is on a higher level.
    if name in _DISTRIBUTED:
        return getattr(importlib.import_module("gnnlab.distributed"), name)
    raise no_attribute(__name__, name)
