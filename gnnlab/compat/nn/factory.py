"""``dgl.nn.pytorch.factory``: modules that make graphs of points, thin wrappers of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from gnnlab.compat import points
from gnnlab.graph.graph import Graph

__all__ = ["KNNGraph", "RadiusGraph", "SegmentedKNNGraph"]


class KNNGraph(nn.Module):
    """``dgl.knn_graph`` as a module: an edge from each of the ``k`` nearest points to each point.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.KNNGraph(2)(torch.tensor([[0.0], [1.0], [5.0]])).edges()
    (tensor([0, 1, 1, 0, 2, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph of points (N, D) or sets of points (B, N, D)."""
        return points.knn_graph(x, self.k, *args, **kwargs)


class SegmentedKNNGraph(KNNGraph):
    """``dgl.segmented_knn_graph`` as a module: sets of different numbers of points.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.SegmentedKNNGraph(1)(torch.tensor([[0.0], [1.0], [5.0]]), [2, 1]).num_edges()
    3
    """

    def forward(  # type: ignore[override]
        self, x: Tensor, segs: Sequence[int] | Tensor, *args: Any, **kwargs: Any
    ) -> Graph:
        """Return the graph of points (N, D), of which ``segs`` has the sizes of the sets."""
        return points.segmented_knn_graph(x, self.k, segs, *args, **kwargs)


class RadiusGraph(nn.Module):
    """``dgl.radius_graph`` as a module; its parameters are those of the function.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.RadiusGraph(2.0)(torch.tensor([[0.0], [1.0], [5.0]])).num_edges()
    2
    """

    def __init__(
        self,
        r: float,
        p: float = 2,
        self_loop: bool = False,
        compute_mode: str = "donot_use_mm_for_euclid_dist",
    ) -> None:
        super().__init__()
        self.arguments = (r, p, self_loop, compute_mode)

    def forward(self, x: Tensor, get_distances: bool = False) -> Any:
        """Return the graph of points (N, D), with ``get_distances`` also the edges' lengths."""
        return points.radius_graph(x, *self.arguments, get_distances)
