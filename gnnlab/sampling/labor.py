"""LABOR: layer-neighbor sampling, which needs fewer nodes than neighbor sampling.

Neighbor sampling decides for every seed apart, so two seeds with the same hundred neighbors sample
different ones. Here each *source* node t draws one number r_t, and every seed s takes its in-edge
from t if r_t is at most p_ts: sources with a small number are taken by all their seeds. A seed gets
min(fanout, degree) in-edges on average, not exactly.

An edge is taken with the probability p_ts, so sums of messages divided by it are unbiased
(Horvitz and Thompson). For means, weights proportional to 1 / p_ts with the mean 1 at each seed do
the same up to the random number of edges (Hájek).

References
----------
Balin and Çatalyürek, "Layer-Neighbor Sampling – Defusing Neighborhood Explosion in GNNs",
NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import LazyTensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_nodes
from gnnlab.graph.names import EdgeType
from gnnlab.graph.neighbor import (
    Picked,
    frontier_of,
    read_excluded,
    read_fanouts,
    read_weights,
    sample_layer,
)
from gnnlab.random import fold, next_key

WEIGHTS, PROBABILITIES = "edge_weights", "edge_probs"

_MOST_ROUNDS = 50  # of importance_sampling=-1; few are needed
_SETTLED = 1e-4  # relative change of the expected number of sources


class Taken(NamedTuple):
    """The edges of one type that were sampled for a layer."""

    picked: Picked
    probs: torch.Tensor  # (K,), float32: the probability with which each edge was taken
    weights: torch.Tensor  # (K,), float32: in proportion to 1 / probs, with the mean 1 at each seed


def sample_labors(
    g: Graph,
    nodes: Any,
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    importance_sampling: int = 0,
    random_seed: Any = None,
    seed2_contribution: float = 0,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    exclude_edges: Any = None,
    output_device: Any = None,
) -> tuple[Graph, list[torch.Tensor]]:
    """Sample about ``fanout`` in-edges of each node, from few distinct sources in all.

    Parameters
    ----------
    g : Graph or DistGraph
        A DistGraph sends all in-edges of the nodes to this process, which chooses among them.
    nodes, fanout, edge_dir, prob, exclude_edges, copy_ndata, copy_edata, output_device
        As for :func:`sample_neighbors`; a node gets ``min(fanout, degree)`` edges on average.
    importance_sampling : int
        Rounds in which sources of many seeds are made more likely: fewer distinct sources, with the
        variance of neighbor sampling, and more edges; −1 for as many as help. Without ``prob``.
    random_seed : int, optional
        Calls with the same number prefer the same sources. By default the next key of
        :func:`gnnlab.seed`.
    seed2_contribution : 0
        DGL's mixture of two seeds; other values raise InvalidInput.

    Returns
    -------
    frontier : Graph
        As that of :func:`sample_neighbors`; ``edata["edge_probs"]`` has the probability with which
        each edge was taken: sums of ``message / edge_probs`` are unbiased.
    weights : list of torch.Tensor
        For each edge type, shape (K,), float32: weights of the edges for a mean over them. With
        ``prob`` the mean that they estimate is weighted by it.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> ends = [(u, v) for v in range(4) for u in range(4, 12)]  # four seeds, the same neighbors
    >>> g = dgl.graph(ends)
    >>> frontier, (weights,) = dgl.sampling.sample_labors(g, [0, 1, 2, 3], 3)
    >>> sources = {tuple(frontier.in_edges(v)[0].tolist()) for v in range(4)}
    >>> len(sources), frontier.edata["edge_probs"].unique()  # all take the same
    (1, tensor([0.3750]))
    """
    if edge_dir not in ("in", "out"):
        raise InvalidInput(f"edge_dir must be 'in' or 'out'; found {edge_dir!r}")
    if seed2_contribution:
        raise InvalidInput(
            "seed2_contribution mixes the random numbers of two seeds, which gnnlab does not do; "
            "leave it 0"
        )
    inward, importance = edge_dir == "in", check_importance(importance_sampling)
    seeds, fanouts = read_nodes(g, nodes), read_fanouts(g, fanout)
    excluded = read_excluded(g, exclude_edges, inward)
    key = next_key() if random_seed is None else fold(int(random_seed))
    taken = take_layer(g, seeds, fanouts, key, prob, importance, excluded, inward)
    picked = {etype: found.picked for etype, found in taken.items()}
    frontier = frontier_of(g, seeds, picked, inward, copy_ndata, copy_edata)
    for etype, found in taken.items():
        frontier.edge_frames[etype][PROBABILITIES] = found.probs
    weights = [found.weights for found in taken.values()]
    if output_device is None:
        return frontier, weights
    return frontier.to(output_device), [each.to(output_device) for each in weights]


def check_importance(value: Any) -> int:
    """Return the number of rounds of importance sampling; raise InvalidInput unless it is one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise InvalidInput(
            "importance_sampling is a number of rounds, 0 or more, or −1 for as many as help; "
            f"found {value!r}"
        )
    return value


def take_layer(
    g: Any,
    seeds: Mapping[str, torch.Tensor],
    fanouts: Mapping[EdgeType, int],
    key: int,
    prob: Any = None,
    importance: int = 0,
    excluded: Any = None,
    inward: bool = True,
) -> dict[EdgeType, Taken]:
    """Sample edges of every type for one layer, as :func:`sample_layer` does in another way.

    ``key`` is the 64-bit name of the numbers r_t. The number of a node depends on the key, its type
    and its ID: it is the same for all edge types. ``importance`` is the number of rounds of
    importance sampling.
    """
    every = {etype: -1 if fanout else 0 for etype, fanout in fanouts.items()}
    around = sample_layer(g, seeds, every, prob, False, excluded, inward)
    weights = _weights_of(g, prob, around)
    if importance and any(weight.dtype is not torch.bool for weight in weights.values()):
        raise InvalidInput(
            "importance_sampling chooses probabilities by itself; with prob, leave it 0, or give a "
            "mask (dtype bool)"
        )
    taken = {}
    for etype, (ptr, edges, sources, _) in around.items():
        other = etype[0] if inward else etype[2]
        degree = torch.diff(ptr)
        row = torch.repeat_interleave(
            torch.arange(len(degree), device=ptr.device), degree, output_size=len(sources)
        )
        value = None
        if etype in weights and weights[etype].dtype is not torch.bool:
            value = weights[etype].double()
        fanout = fanouts[etype]
        quota = degree if fanout < 0 else degree.clamp(max=fanout)
        if importance:
            p = _by_importance(row, sources, degree, quota, importance)
        elif value is None:
            p = (quota.double() / degree)[row]
        else:
            p = _in_proportion(row, value, degree, quota)
        rng = kernels.rng_torch
        number = rng.uniform(rng.draw(rng.streams(fold(key, g.get_ntype_id(other)), sources), 0))
        kept = (number <= p).nonzero().flatten()
        row, p = row[kept], p[kept]
        share = (1.0 if value is None else value[kept]) / p
        total = share.new_zeros(len(degree)).index_add_(0, row, share)
        count = torch.bincount(row, minlength=len(degree))
        picked = Picked(
            torch.nn.functional.pad(count.cumsum(0), (1, 0)),
            LazyTensor(lambda edges=edges, kept=kept: edges()[kept]),  # type: ignore[misc]
            sources[kept],
            count,
        )
        taken[etype] = Taken(picked, p.float(), (share * (count / total)[row]).float())
    return taken


def _weights_of(
    g: Any, prob: Any, around: Mapping[EdgeType, Picked]
) -> dict[EdgeType, torch.Tensor]:
    """Return the weight of each edge in question, by edge type."""
    if prob is None:
        return {}
    if isinstance(g, Graph):
        given = read_weights(g, prob)
        return {etype: weight[around[etype].edges().long()] for etype, weight in given.items()}
    by_type = dict.fromkeys(around, prob)
    if isinstance(prob, Mapping):
        by_type = {g.to_canonical_etype(etype): value for etype, value in prob.items()}
    found = {}
    for etype, value in by_type.items():
        table = g.edge_frames[etype].get(value) if isinstance(value, str) else value
        if table is not None:  # a DistTensor
            rows = table[around[etype].edges()]
            found[etype] = rows.squeeze(-1) if rows.ndim == 2 else rows
    return found


def _capped(
    row: torch.Tensor,
    values: torch.Tensor,
    summed: torch.Tensor,
    all_taken: torch.Tensor,
    factor: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return p = min(1, c · values), where each row has a factor c.

    The factor is computed from the number of edges of a row with p = 1, and the sum of ``summed``
    over the others. Rows of which all edges are taken have p = 1.
    """
    sure = all_taken[row]
    while True:
        count = torch.bincount(row[sure], minlength=len(all_taken))
        rest = summed.new_zeros(len(count)).index_add_(0, row, torch.where(sure, 0.0, summed))
        p = torch.where(sure, 1.0, values * factor(count, rest)[row])
        more = p >= 1
        if bool((more == sure).all()):
            return p
        sure = sure | more


def _in_proportion(
    row: torch.Tensor, value: torch.Tensor, degree: torch.Tensor, quota: torch.Tensor
) -> torch.Tensor:
    """Return p = min(1, c · value), where c makes the sum of each row its quota."""
    return _capped(row, value, value, quota == degree, lambda count, rest: (quota - count) / rest)


def _by_importance(
    row: torch.Tensor, sources: torch.Tensor, degree: torch.Tensor, quota: torch.Tensor, rounds: int
) -> torch.Tensor:
    """Return p = min(1, c_s · pi_t) with the variance of neighbor sampling at each seed.

    In each round pi_t grows with the largest p that a seed of t wants, so that seeds agree.
    """
    nodes, source = torch.unique(sources, return_inverse=True)
    preference = torch.ones(len(nodes), dtype=torch.float64, device=row.device)
    p = _of_variance(row, preference[source], degree, quota)
    expected = torch.inf
    for _ in range(_MOST_ROUNDS if rounds < 0 else rounds):
        preference = torch.zeros_like(preference).scatter_reduce_(0, source, p, "amax")
        p = _of_variance(row, preference[source], degree, quota)
        if rounds < 0:
            wanted = torch.zeros_like(preference).scatter_reduce_(0, source, p, "amax")
            before, expected = expected, float(wanted.sum())
            if expected >= before * (1 - _SETTLED):
                break
    return p


def _of_variance(
    row: torch.Tensor, preference: torch.Tensor, degree: torch.Tensor, quota: torch.Tensor
) -> torch.Tensor:
    """Return p = min(1, c · preference), where c makes the sum of 1 / p of a row degree² / quota.

    That is the variance of ``quota`` draws without replacement (equation 11 of the paper).
    """
    target = degree.double().square() / quota

    def factor(count: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        return rest / (target - count)

    return _capped(row, preference, 1 / preference, quota == degree, factor)
