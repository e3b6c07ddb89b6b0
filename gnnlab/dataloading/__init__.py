"""Floor 4: samplers and loaders, which turn a large graph into mini-batches."""

from gnnlab.dataloading.inference import full_neighbor_blocks
from gnnlab.dataloading.loader import DataLoader, NodeDataLoader
from gnnlab.dataloading.sampler import (
    BlockSampler,
    MultiLayerFullNeighborSampler,
    MultiLayerNeighborSampler,
    NeighborSampler,
    Sampler,
)

__all__ = [
    "BlockSampler",
    "DataLoader",
    "MultiLayerFullNeighborSampler",
    "MultiLayerNeighborSampler",
    "NeighborSampler",
    "NodeDataLoader",
    "Sampler",
    "full_neighbor_blocks",
]
