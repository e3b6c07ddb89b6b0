"""``dgl.geometry``: points that are far from each other, and pairs of neighbors."""

from __future__ import annotations

import torch

from gnnlab import random
from gnnlab.errors import InvalidInput, check_graph
from gnnlab.graph.graph import Graph


def farthest_point_sampler(
    pos: torch.Tensor, npoints: int, start_idx: int | None = None
) -> torch.Tensor:
    """Choose points one by one, each the farthest from those that were chosen before.

    Of points (B, N, D) return the numbers of ``npoints`` in each set, (B, npoints), int64. The
    first is ``start_idx``, or drawn at random; of points equally far away, the first is taken.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.geometry import farthest_point_sampler
    >>> farthest_point_sampler(torch.tensor([[[0.0], [1.0], [5.0], [2.0]]]), 3, start_idx=0)
    tensor([[0, 2, 3]])
    """
    if pos.ndim != 3 or not 0 < npoints <= pos.shape[1]:
        raise InvalidInput(
            "expected points of shape (B, N, D) and npoints from 1 to N; found shape "
            f"{tuple(pos.shape)} and {npoints}"
        )
    sets, size, _ = pos.shape
    if start_idx is not None and not 0 <= start_idx < size:
        raise InvalidInput(f"start_idx is a point's number, 0 to {size - 1}; found {start_idx}")
    here = torch.randint(size, (sets,), generator=random.generator()).to(pos.device)
    here = here if start_idx is None else torch.full_like(here, start_idx)
    every, chosen = torch.arange(sets, device=pos.device), [here]
    nearest = torch.full((sets, size), torch.inf, dtype=pos.dtype, device=pos.device)
    for _ in range(npoints - 1):
        away = (pos - pos[every, here][:, None]).square().sum(-1)
        nearest = torch.minimum(nearest, away)
        here = nearest.argmax(1)
        chosen.append(here)
    return torch.stack(chosen, 1)


def neighbor_matching(
    graph: Graph, e_weights: torch.Tensor | None = None, relabel_idx: bool = True
) -> torch.Tensor:
    """Join neighbors to pairs, until no two neighbors are left: a step of graph coarsening.

    In random order, each node that is free joins a free neighbor: the one with the largest of
    ``e_weights``, (E,), or any. Return the cluster of each node, (N,): the smaller ID of its two
    nodes, or numbers from 0 in that order with ``relabel_idx``. Edges count in both directions, as
    in an undirected graph.

    References: Dhillon, Guan and Kulis, "Weighted Graph Cuts without Eigenvectors", 2007.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> from gnnlab.compat.geometry import neighbor_matching
    >>> path = dgl.to_bidirected(dgl.graph(([0, 1, 2], [1, 2, 3])))
    >>> neighbor_matching(path, torch.tensor([9.0, 9.0, 0.0, 0.0, 9.0, 9.0]))
    tensor([0, 0, 1, 1])
    """
    check_graph(graph, "neighbor_matching")
    if not graph.is_homogeneous or graph.is_block:
        raise InvalidInput("neighbor_matching needs one node type and one edge type")
    if e_weights is not None and e_weights.numel() != graph.num_edges():
        raise InvalidInput(
            f"e_weights has one number per edge, {graph.num_edges()}; found {e_weights.numel()}"
        )
    generator, count = random.generator(), graph.num_nodes()
    rank = torch.rand(graph.num_edges(), generator=generator)
    weights = rank if e_weights is None else e_weights.detach().cpu().reshape(-1)
    near: list[list[tuple[float, float, int]]] = [[] for _ in range(count)]
    ends = (end.tolist() for end in graph.edges())
    for u, v, weight, draw in zip(*ends, weights.tolist(), rank.tolist(), strict=True):
        near[u].append((weight, draw, v))
        near[v].append((weight, draw, u))
    cluster = [-1] * count
    for node in torch.randperm(count, generator=generator).tolist():
        free = [each for each in near[node] if cluster[each[2]] < 0 and each[2] != node]
        if cluster[node] < 0:
            other = max(free)[2] if free else node
            cluster[node] = cluster[other] = min(node, other)
    found = torch.tensor(cluster, dtype=torch.int64)
    if relabel_idx:
        found = torch.unique(found, return_inverse=True)[1]
    return graph.as_ids(found.to(graph.device))
