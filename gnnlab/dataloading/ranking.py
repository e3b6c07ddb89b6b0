"""Evaluation of link prediction: the rank of a true pair among candidates, MRR and Hits@k.

Candidates are negatives that a benchmark fixes for each positive pair, or the pairs with all other
destinations (or sources). The rank is 1 plus the number of candidates that score better; one of
equal score counts half, which gives the mean of the best and the worst rank.

References
----------
Names and ties as in OGB's ``Evaluator`` for link prediction (1.3.6); ``update`` and ``compute`` as
in TorchMetrics. Filtered ranks: Bordes et al., "Translating Embeddings for Modeling
Multi-relational Data", NeurIPS 2013.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from gnnlab.dataloading.negative_sampler import known_pairs
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import EdgeType
from gnnlab.graph.queries import incident_slots
from gnnlab.graph.relation import Adjacency
from gnnlab.ops.checks import check_choice

__all__ = ["RankMetrics", "expected_ranks", "rank_among_all"]


def expected_ranks(pos_scores: torch.Tensor, neg_scores: torch.Tensor) -> torch.Tensor:
    """Rank each positive pair among its own negatives.

    The scores have shapes (B,) and (B, K); a higher one means a more likely edge. The ranks have
    shape (B,), float64: whole or half numbers from 1.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> neg = torch.tensor([[0.9, 0.5, 0.2], [0.0, 0.0, 0.0]])
    >>> dgl.dataloading.ranking.expected_ranks(torch.tensor([0.5, 0.1]), neg)
    tensor([2.5000, 1.0000], dtype=torch.float64)
    """
    if neg_scores.ndim != 2 or pos_scores.shape != neg_scores.shape[:1]:
        shapes = tuple(pos_scores.shape), tuple(neg_scores.shape)
        raise InvalidInput(f"pos_scores and neg_scores have shapes (B,) and (B, K); found {shapes}")
    return 1 + _compare(pos_scores[:, None], neg_scores).double() / 2


def rank_among_all(
    g: Graph,
    src: Any,
    dst: Any,
    score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    etype: str | EdgeType | None = None,
    corrupt: str = "tail",
    filtered: bool = True,
    chunk_size: int = 8192,
) -> torch.Tensor:
    """Rank B positive pairs among the pairs with all nodes; as :func:`expected_ranks` otherwise.

    Memory is needed for B · ``chunk_size`` scores and the edges of B nodes.

    Parameters
    ----------
    g : Graph or DistGraph
        All known positives, usually those for training, validation and test.
    src, dst : IDs
        The pairs, shape (B,).
    score : callable
        ``score(src, dst)`` returns the scores of all pairs of S sources and D destinations, shape
        (S, D), for instance ``h[src] @ h[dst].T``. Products of floats may differ in the last bit:
        round scores where equal pairs should tie.
    corrupt : {"tail", "head"}
        The end that is replaced: the destination, or the source.
    filtered : bool
        Leave out candidates that are edges of ``g``.
    chunk_size : int
        Candidates to score at once.

    Examples
    --------
    Node 2 scores best, but it is another neighbor of node 0; node 3 ties.

    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 0], [1, 2]), num_nodes=4)
    >>> score = lambda src, dst: torch.tensor([0.0, 2.0, 3.0, 2.0])[dst].expand(len(src), -1)
    >>> dgl.dataloading.ranking.rank_among_all(g, [0], [1], score)
    tensor([1.5000], dtype=torch.float64)
    """
    check_choice(corrupt, ("tail", "head"), "value of corrupt")
    chunk_size, name = whole_number(chunk_size, "chunk_size", 1), g.to_canonical_etype(etype)
    heads = read_ids(src, g.num_nodes(name[0]), "node", g.device).long()
    tails = read_ids(dst, g.num_nodes(name[2]), "node", g.device).long()
    inward = corrupt == "head"
    fixed, own = (tails, heads) if inward else (heads, tails)
    size = g.num_nodes(name[0 if inward else 2])

    def scores_of(candidates: torch.Tensor) -> torch.Tensor:
        found = score(candidates, fixed).T if inward else score(fixed, candidates)
        if found.shape != (len(own), len(candidates)):
            given = f"{len(heads)} src, {len(tails)} dst, {len(candidates)} candidates"
            raise InvalidInput(f"score(src, dst) has shape {tuple(found.shape)} for {given}")
        return found

    pos = scores_of(own).diagonal()[:, None]
    left_out = torch.arange(len(own), device=own.device) * size + own
    if filtered:
        known = known_pairs(g, fixed, name, inward)
        nodes, place = torch.unique(fixed, return_inverse=True)
        starts = torch.searchsorted(known, torch.cat([nodes, nodes[-1:] + 1]) * size)
        row, slots = incident_slots(Adjacency(starts, known), place)
        left_out = torch.unique(torch.cat([left_out, row * size + known[slots] % size]))
    column, order = torch.sort(left_out % size)
    starts = torch.arange(0, size + chunk_size, chunk_size, device=own.device)
    bounds = torch.searchsorted(column, starts).tolist()
    row, column = (left_out // size)[order].to(pos.device), column.to(pos.device)
    points = torch.zeros(len(own), dtype=torch.int64, device=pos.device)
    for lo, first, last in zip(range(0, size, chunk_size), bounds, bounds[1:], strict=False):
        found = scores_of(torch.arange(lo, min(lo + chunk_size, size), device=own.device))
        points += _compare(pos, found)
        rows = row[first:last]
        values = found[rows, column[first:last] - lo]
        points.index_add_(0, rows, -_compare(pos[rows], values[:, None]))
    return 1 + points.double() / 2


def _compare(pos: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Add 2 for each better and 1 for each equal score in a row, shape (B,), int64."""
    if pos.isnan().any() or others.isnan().any():
        raise InvalidInput("scores are NaN, from which no rank follows", code="score_is_nan")
    better, reached = others > pos, others >= pos
    if pos.device.type != "cpu":
        return better.sum(1) + reached.sum(1)
    counts = (np.count_nonzero(mask.numpy(), axis=1) for mask in (better, reached))
    return torch.from_numpy(sum(counts))  # 7 times as fast as torch


class RankMetrics:
    """MRR, the mean of 1 / rank, and Hits@k, the share of ranks up to k.

    Ranks are counted, so that batches and processes may divide them in any way with results equal
    bit for bit. (Scores are if each process takes whole batches, ``ids.split(256)[rank::world]``.)

    Parameters
    ----------
    ks : sequence of int
        The k of Hits@k.
    num_negatives : int, optional
        Negatives per positive, for instance the ``k`` of the sampler in training; by default those
        of the first update. An update with another number warns, as both metrics depend on it.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> metrics = dgl.dataloading.ranking.RankMetrics(ks=(1, 2))
    >>> metrics.update(torch.tensor([0.9, 0.3]), torch.tensor([[0.1, 0.2], [0.5, 0.3]]))
    >>> metrics.compute()
    {'mrr': 0.7, 'hits@1': 0.5, 'hits@2': 0.5}
    """

    def __init__(self, ks: Sequence[int] = (1, 3, 10), num_negatives: int | None = None) -> None:
        self.ks, self.num_negatives = [whole_number(k, "k", 1) for k in ks], num_negatives
        self._counts: Counter[int] = Counter()  # of doubled ranks, which are whole numbers

    def update(self, pos_scores: torch.Tensor, neg_scores: torch.Tensor) -> None:
        """Count the ranks of positives among their negatives, shapes (B,) and (B, K)."""
        self.update_ranks(expected_ranks(pos_scores, neg_scores))
        found, expected = neg_scores.shape[1], self.num_negatives
        self.num_negatives = found
        if expected not in (None, found):
            warnings.warn(f"{found} negatives per positive, not {expected}", stacklevel=2)

    def update_ranks(self, ranks: torch.Tensor) -> None:
        """Count ranks, shape (B,), as of :func:`rank_among_all`."""
        self._counts.update((ranks.double() * 2).round().long().tolist())

    def compute(self, sync: bool = True) -> dict[str, float]:
        """Return "mrr" and "hits@k" of all ranks counted.

        ``sync`` adds those of all processes of torch.distributed, which all must call this.
        """
        counts = self._counts
        if sync and dist.is_available() and dist.is_initialized():
            gathered: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(gathered, dict(counts))
            counts = sum(map(Counter, gathered), Counter[int]())
        if not (total := counts.total()):
            raise InvalidInput("there are no ranks yet; call update() first", code="no_ranks")
        hits = {f"hits@{k}": sum(n for r, n in counts.items() if r <= 2 * k) for k in self.ks}
        # fsum rounds once, so the order of the ranks does not matter
        mrr = math.fsum(2 * n / doubled for doubled, n in counts.items()) / total
        return {"mrr": mrr, **{name: n / total for name, n in hits.items()}}
