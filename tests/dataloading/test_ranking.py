"""Ranks, MRR and Hits@k equal those of all scores in one matrix."""

import json

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading.ranking import RankMetrics, expected_ranks, rank_among_all
from tests.distributed.cut import PLAYS, typed
from tests.helpers import run_ranks


def table_of(num_src: int, num_dst: int) -> torch.Tensor:
    """Scores of all pairs, of which many tie."""
    generator = torch.Generator().manual_seed(4)
    return torch.randint(9, (num_src, num_dst), generator=generator).float()


def by_hand(table, g, src, dst, etype, filtered):
    """Mean of best and worst place, pair by pair."""
    edges = set(zip(*(ends.tolist() for ends in g.edges(etype=etype)), strict=True))
    ranks = []
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        others = [w for w in range(table.shape[1]) if w != v and not (filtered and (u, w) in edges)]
        better = sum(bool(table[u, w] > table[u, v]) for w in others)
        ranks.append(1 + better + sum(bool(table[u, w] == table[u, v]) for w in others) / 2)
    return torch.tensor(ranks, dtype=torch.float64)


@pytest.mark.parametrize("chunk_size", [1, 7, 25, 8192])
@pytest.mark.parametrize("filtered", [True, False])
def test_ranks_among_all_equal_brute_force(chunk_size, filtered):
    """Of pairs that are edges, repeated ones too, and of pairs that are none; from both ends."""
    plain = dgl.rand_graph(25, 120)
    for g, etype in ((plain, plain.canonical_etypes[0]), (typed(), PLAYS), (plain.int(), None)):
        src, dst = g.edges(etype=etype)
        src, dst = torch.cat([src[:40], src[:5]]), torch.cat([dst[:40], dst[3:8]])
        table = table_of(*(g.relation(etype).num_src, g.relation(etype).num_dst))
        asked = []

        def score(heads, tails, table=table, asked=asked):
            asked.append(min(len(heads), len(tails)))
            return table[heads][:, tails]

        how = {"etype": etype, "filtered": filtered, "chunk_size": chunk_size}
        ranks = rank_among_all(g, src, dst, score, **how)
        assert torch.equal(ranks, by_hand(table, g, src, dst, etype, filtered))
        assert max(asked[1:]) <= chunk_size
        ranks = rank_among_all(g, src, dst, score, corrupt="head", **how)
        back = dgl.reverse(g[etype] if etype else g)
        assert torch.equal(ranks, by_hand(table.T, back, dst, src, None, filtered))


def test_fixed_negatives_and_metrics_equal_a_dense_computation():
    pos, neg = table_of(1, 200)[0], table_of(200, 30)
    best, worst = (neg > pos[:, None]).sum(1) + 1, (neg >= pos[:, None]).sum(1) + 1
    ranks = (best + worst).double() / 2
    assert torch.equal(expected_ranks(pos, neg), ranks)
    metrics = RankMetrics(ks=(1, 5))
    for some in torch.arange(200).split(33):
        metrics.update(pos[some], neg[some])
    found = metrics.compute()
    assert list(found) == ["mrr", "hits@1", "hits@5"]
    assert found["mrr"] == pytest.approx(float((1 / ranks).mean()), rel=1e-15)
    for k in (1, 5):
        assert found[f"hits@{k}"] == float((ranks <= k).double().mean())
    with pytest.warns(UserWarning, match=r"30 negatives.*5"):
        RankMetrics(num_negatives=dgl.dataloading.negative_sampler.Uniform(5).k).update(pos, neg)


RANKS = """
import json, sys
import torch
import gnnlab as dgl
from gnnlab.dataloading.ranking import RankMetrics, rank_among_all

torch.distributed.init_process_group("gloo")
rank, num_ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
dgl.seed(0)
g = dgl.rand_graph(60, 900)
h = torch.randn(60, 7)
src, dst = g.edges()
share, whole = RankMetrics(), RankMetrics()
for i, batch in enumerate(torch.arange(900).split(64)):
    score = lambda u, v: h[u] @ h[v].T
    ranks = rank_among_all(g, src[batch], dst[batch], score, chunk_size=16)
    whole.update_ranks(ranks)
    if i % num_ranks == rank:
        share.update_ranks(ranks)
print(json.dumps([share.compute(), whole.compute(sync=False), share.compute(sync=False)]))
"""


def test_two_ranks_agree_with_one_process_bit_for_bit():
    for together, whole, alone in map(json.loads, run_ranks(RANKS, 2)):
        assert together == whole != alone
