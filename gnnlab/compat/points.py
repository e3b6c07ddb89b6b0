"""Graphs of points: an edge from each near point. A set of N points costs N² distances."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph

__all__ = ["KNNGraph", "knn_graph"]

_ROWS = 1 << 22  # distances that are held at a time


def knn_graph(
    x: torch.Tensor,
    k: int,
    algorithm: str = "bruteforce-blas",
    dist: str = "euclidean",
    exclude_self: bool = False,
) -> Graph:
    """Return a graph with an edge from each of the k nearest points to each point.

    Parameters
    ----------
    x : torch.Tensor
        Points, shape (N, D); or sets of points, shape (B, N, D), whose graphs are joined to one of
        B·N nodes.
    k : int
        Neighbors of a point, which is its own nearest unless ``exclude_self``; at most all.
    algorithm : str
        Has no effect.
    dist : {"euclidean", "cosine"}
    exclude_self : bool

    Returns
    -------
    Graph
        Edges are ordered by their destination, and then by distance.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.knn_graph(torch.tensor([[0.0], [1.0], [5.0]]), 2)
    >>> g.edges()
    (tensor([0, 1, 1, 0, 2, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """
    if x.ndim not in (2, 3):
        raise InvalidInput(
            f"points have shape (N, D), sets of points (B, N, D); found {tuple(x.shape)}"
        )
    if k < 1:
        raise InvalidInput(f"k is a number of neighbors, 1 or more; found {k}")
    if dist not in ("euclidean", "cosine"):
        raise InvalidInput(f"dist must be 'euclidean' or 'cosine'; found {dist!r}")
    sets = x.detach() if x.ndim == 3 else x.detach()[None]
    if dist == "cosine":  # of vectors of length 1, both have the same order
        sets = torch.nn.functional.normalize(sets, dim=-1)
    size = sets.shape[1]
    kept = min(k, max(size - exclude_self, 0))
    none = torch.empty(0, dtype=torch.int64, device=x.device)
    src, dst = [none], [none]
    for number, points in enumerate(sets):
        for rows in torch.arange(size, device=x.device).split(max(_ROWS // max(size, 1), 1)):
            away = torch.cdist(points[rows], points, compute_mode="donot_use_mm_for_euclid_dist")
            # A point comes before those at the same place, or is left out.
            away[torch.arange(len(rows)), rows] = torch.inf if exclude_self else -1.0
            src.append(away.topk(kept, largest=False).indices.flatten() + number * size)
            dst.append((rows + number * size).repeat_interleave(kept))
    return graph((torch.cat(src), torch.cat(dst)), num_nodes=len(sets) * size)


class KNNGraph(nn.Module):
    """:func:`knn_graph` as a module, for ``k`` neighbors."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph; further arguments are those of :func:`knn_graph`."""
        return knn_graph(x, self.k, *args, **kwargs)
