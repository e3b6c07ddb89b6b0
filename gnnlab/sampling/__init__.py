"""Neighbor sampling, pairs of nodes without an edge, and random walks."""

from gnnlab.errors import takes_graph
from gnnlab.graph.neighbor import sample_neighbors
from gnnlab.sampling.labor import sample_labors
from gnnlab.sampling.negative import global_uniform_negative_sampling
from gnnlab.sampling.walk import PinSAGESampler, RandomWalkNeighborSampler, random_walk

__all__ = [
    "PinSAGESampler",
    "RandomWalkNeighborSampler",
    "global_uniform_negative_sampling",
    "random_walk",
    "sample_labors",
    "sample_neighbors",
]

globals().update({name: takes_graph(globals()[name], __name__) for name in __all__})
