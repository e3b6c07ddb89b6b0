"""``dgl.nn.pytorch.factory``: modules that make graphs of points, by functions of transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from gnnlab.compat.transforms.points import knn_graph, radius_graph, segmented_knn_graph
from gnnlab.graph.graph import Graph


class KNNGraph(nn.Module):
    """:func:`~gnnlab.compat.transforms.knn_graph` as a module, for ``k`` neighbors."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph; further arguments are those of the function."""
        return knn_graph(x, self.k, *args, **kwargs)


class SegmentedKNNGraph(KNNGraph):
    """:func:`~gnnlab.compat.transforms.segmented_knn_graph` as a module, for ``k`` neighbors."""

    def forward(self, x: Tensor, segs: Sequence[int], *args: Any, **kwargs: Any) -> Graph:
        """Return the graph; further arguments are those of the function."""
        return segmented_knn_graph(x, self.k, segs, *args, **kwargs)


class RadiusGraph(nn.Module):
    """:func:`~gnnlab.compat.transforms.radius_graph` as a module."""

    def __init__(self, r: float, p: float = 2, self_loop: bool = False, **kwargs: Any) -> None:
        super().__init__()
        self.arguments = {"r": r, "p": p, "self_loop": self_loop, **kwargs}

    def forward(self, x: Tensor, get_distances: bool = False) -> Any:
        """Return the graph; with ``get_distances`` also the distances, (E, 1)."""
        return radius_graph(x, get_distances=get_distances, **self.arguments)
