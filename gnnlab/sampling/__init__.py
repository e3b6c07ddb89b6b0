"""Neighbor sampling, pairs of nodes without an edge, and random walks."""

import importlib
from typing import Any

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

ELSEWHERE: dict[str, str] = {}
"""Name -> module of a package above that has it; ``gnnlab`` enters those that are expected here."""


def __getattr__(name: str) -> Any:
    if name in ELSEWHERE:
        return getattr(importlib.import_module(ELSEWHERE[name]), name)
    listed = ", ".join(__all__)
    more = "gnnlab.compat.sampling has more of DGL's names"
    raise AttributeError(f"gnnlab.sampling has no {name!r}; it has {listed}; {more}")


globals().update({name: takes_graph(globals()[name], __name__) for name in __all__})
