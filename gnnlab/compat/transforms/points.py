"""Graphs of points: an edge from each near point.

Distances of all pairs of a set are computed, in blocks of rows, so a set of N points costs N²
operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.construct import graph
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph

_ROWS = 1 << 22  # distances that are held at a time


def _points(x: torch.Tensor) -> torch.Tensor:
    """Return points as floating-point numbers, of which torch computes distances."""
    x = as_tensor(x, "points")
    if x.is_complex():
        raise InvalidInput(f"points x must be real numbers; found {x.dtype}")
    return x if x.is_floating_point() else x.float()


def knn_graph(
    x: torch.Tensor,
    k: int,
    algorithm: str = "bruteforce-blas",
    dist: str = "euclidean",
    exclude_self: bool = False,
) -> Graph:
    """Return a graph with an edge from each of the k nearest points to each point.

    Points ``x`` have shape (N, D); graphs of sets of points, (B, N, D), are joined to one of B·N
    nodes. A point is its own nearest, unless ``exclude_self``; with fewer points than k, all are
    neighbors. ``dist`` is "euclidean" or "cosine"; ``algorithm`` has no effect. Edges are ordered
    by destination, and then by distance.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.knn_graph(torch.tensor([[0.0], [1.0], [5.0]]), 2)
    >>> g.edges()
    (tensor([0, 1, 1, 0, 2, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """
    x = _points(x)
    if x.ndim not in (2, 3):
        raise InvalidInput(
            f"points have shape (N, D), sets of points (B, N, D); found {tuple(x.shape)}"
        )
    sets = [1, *x.shape[:1]] if x.ndim == 2 else x.shape[:2]
    flat = x.reshape(-1, x.shape[-1])
    return segmented_knn_graph(flat, k, [sets[1]] * sets[0], algorithm, dist, exclude_self)


def segmented_knn_graph(
    x: torch.Tensor,
    k: int,
    segs: Sequence[int] | torch.Tensor,
    algorithm: str = "bruteforce-blas",
    dist: str = "euclidean",
    exclude_self: bool = False,
) -> Graph:
    """Join the :func:`knn_graph` of several sets of points.

    ``x`` (N, D) has the points of all sets, ``segs`` the size of each set.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.segmented_knn_graph(torch.tensor([[0.0], [1.0], [0.1], [0.3]]), 1, [2, 2])
    >>> g.edges()
    (tensor([0, 1, 2, 3]), tensor([0, 1, 2, 3]))
    """
    k = whole_number(k, "k, the number of neighbors,", 1)
    if dist not in ("euclidean", "cosine"):
        raise InvalidInput(f"dist must be 'euclidean' or 'cosine'; found {dist!r}")
    sizes = [int(size) for size in segs]
    points = _points(x).detach()
    if points.ndim != 2 or sum(sizes) != len(points):
        raise InvalidInput(
            f"segs must add up to the number of points x, (N, D); found {sizes} and "
            f"{tuple(points.shape)}"
        )
    if dist == "cosine":  # of vectors of length 1, both have the same order
        points = torch.nn.functional.normalize(points, dim=-1)
    sources, destinations, first = [], [], 0
    for size in sizes:
        part = points[first : first + size]
        kept = min(k, max(size - exclude_self, 0))
        for start in range(0, size, max(_ROWS // max(size, 1), 1)):
            rows = torch.arange(
                start, min(start + max(_ROWS // size, 1), size), device=points.device
            )
            away = torch.cdist(part[rows], part, compute_mode="donot_use_mm_for_euclid_dist")
            # A point comes before those at the same place, or is left out.
            away[torch.arange(len(rows)), rows] = torch.inf if exclude_self else -1.0
            near = away.topk(kept, largest=False).indices
            sources.append(near.flatten() + first)
            destinations.append((rows + first).repeat_interleave(kept))
        first += size
    none = torch.empty(0, dtype=torch.int64, device=points.device)
    ends = torch.cat([none, *sources]), torch.cat([none, *destinations])
    return graph(ends, num_nodes=len(x))


def radius_graph(
    x: torch.Tensor,
    r: float,
    p: float = 2,
    self_loop: bool = False,
    compute_mode: str = "donot_use_mm_for_euclid_dist",
    get_distances: bool = False,
) -> Any:
    """Return a graph with an edge between any two points at most ``r`` apart, in both directions.

    Points ``x`` have shape (N, D); ``p`` is the norm of the distance, ``compute_mode`` that of
    :func:`torch.cdist`. ``get_distances`` returns the distances, too, shape (E, 1).

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.radius_graph(torch.tensor([[0.0], [1.0], [5.0]]), 1.0).edges()
    (tensor([0, 1]), tensor([1, 0]))
    """
    x = _points(x)
    if x.ndim != 2:
        raise InvalidInput(f"points x have shape (N, D); found {tuple(x.shape)}")
    away = torch.cdist(x, x, p, compute_mode)
    near = away <= r
    if not self_loop:
        near.fill_diagonal_(False)
    src, dst = near.nonzero(as_tuple=True)
    made = graph((src, dst), num_nodes=len(x))
    return (made, away[src, dst][:, None]) if get_distances else made
