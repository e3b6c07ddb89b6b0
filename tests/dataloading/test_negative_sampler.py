"""Negative samplers: their laws, what they never return, and what they depend on."""

from __future__ import annotations

import pytest
import scipy
import torch

import gnnlab as dgl
from gnnlab.dataloading.negative_sampler import (
    DegreePower,
    Fixed,
    GlobalUniform,
    Hard,
    InBatch,
    PerSourceUniform,
    Uniform,
)
from gnnlab.random import stream


@pytest.fixture(autouse=True)
def _seed():
    dgl.seed(0)


@pytest.fixture
def graph() -> dgl.Graph:
    return dgl.rand_graph(50, 500)


@pytest.fixture
def typed() -> dgl.Graph:
    """Three users, two games."""
    return dgl.heterograph(
        {
            ("user", "follows", "user"): ([0, 1], [1, 2]),
            ("user", "plays", "game"): ([0, 1, 2, 2], [0, 1, 0, 1]),
        }
    )


def name_of(sampler):
    return type(sampler).__name__


def pairs_of(sampler, g, eids):
    src, dst = sampler(g, eids)
    return list(zip(src.tolist(), dst.tolist(), strict=True))


@pytest.mark.parametrize("kind", [Uniform, DegreePower])
def test_the_source_stays_and_k_destinations_come(graph, kind):
    eids = torch.tensor([7, 3, 499])
    src, dst = kind(4)(graph, eids)
    assert torch.equal(src, graph.find_edges(eids)[0].repeat_interleave(4))
    assert dst.shape == (12,) and dst.dtype is torch.int64
    assert dst.min() >= 0 and dst.max() < 50
    assert [len(part) for part in kind(4)(graph, [])] == [0, 0]


def test_uniform_is_uniform(graph):
    dst = Uniform(200)(graph, range(500))[1]
    assert scipy.stats.chisquare(torch.bincount(dst, minlength=50)).pvalue > 1e-4
    assert PerSourceUniform is Uniform


@pytest.mark.parametrize("power", [0, 0.75, 1, 2])
def test_degree_power_follows_its_law(power):
    """In-degrees 1, 2, …, 12 and a node that nobody points at."""
    degrees = torch.arange(1, 13)
    g = dgl.graph((torch.zeros(78, dtype=torch.long), torch.repeat_interleave(degrees) + 1))
    drawn = torch.bincount(DegreePower(500, power)(g, range(78))[1], minlength=13)
    weights = g.in_degrees().double() ** power  # 0 ** 0 is 1
    expected = weights / weights.sum() * drawn.sum()
    assert drawn[weights == 0].sum() == 0
    assert scipy.stats.chisquare(drawn[weights > 0], expected[weights > 0]).pvalue > 1e-4


def test_degree_power_looks_at_the_graph_it_is_given():
    sampler = DegreePower(5)
    to_one, to_two = dgl.graph(([0, 0], [1, 1])), dgl.graph(([0, 0], [2, 2]))
    for _ in range(2):
        assert set(sampler(to_one, [0, 1])[1].tolist()) == {1}
        assert set(sampler(to_two, [0, 1])[1].tolist()) == {2}


@pytest.mark.parametrize(
    "sampler",
    [Uniform(9, True), DegreePower(9, exclude_positives=True), InBatch(9, True)],
    ids=name_of,
)
def test_positives_can_be_excluded(graph, sampler):
    src, dst = sampler(graph, range(500))
    assert len(dst) == 4500
    assert not graph.has_edges_between(src, dst).any()


def test_excluded_positives_leave_a_uniform_rest():
    """Of ten nodes, node 0 points at 0 to 5, and edge 6 makes node 9 a source with all."""
    g = dgl.graph(([0] * 6 + [9] * 10, [*range(6), *range(10)]))
    src, dst = Uniform(4000, True)(g, [0, 6])
    assert scipy.stats.chisquare(torch.bincount(dst[:4000])[6:]).pvalue > 1e-4
    assert dst[:4000].min() == 6
    assert g.has_edges_between(src[4000:], dst[4000:]).all(), "what remains where nothing else is"


def test_in_batch_draws_other_edges_of_the_batch():
    """Edge e leads from node e to node 10 + e."""
    g, eids = dgl.graph((torch.arange(10), torch.arange(10, 20))), torch.tensor([3, 7, 0, 9])
    src, dst = InBatch(400)(g, eids)
    assert torch.equal(src, eids.repeat_interleave(400))
    for own, row in zip(eids, dst.view(4, 400) - 10, strict=True):
        counts = torch.bincount(row, minlength=10)[eids]
        assert counts.sum() == 400 and counts[eids == own] == 0
        assert scipy.stats.chisquare(counts[eids != own]).pvalue > 1e-4
    assert [len(ids) for ids in InBatch(4)(g, [7])] == [0, 0]


def test_fixed_negatives_come_from_a_table(graph, typed):
    table = torch.randint(50, (500, 6))
    graph.edata["negatives"] = table
    for negatives in (table, table.numpy(), "negatives", {"_E": table}):
        src, dst = Fixed(4, negatives)(graph, [7, 3])
        assert torch.equal(dst, table[[7, 3], :4].flatten())
        assert torch.equal(src, graph.find_edges([7, 3])[0].repeat_interleave(4))
    by_type = {"plays": [[0], [1], [1], [0]], "follows": [[2], [0]]}
    found = Fixed(1, by_type)(typed, {"plays": [3, 1], "follows": [0]})
    assert [dst.tolist() for _, dst in found.values()] == [[0, 1], [2]]


def test_hard_negatives_replace_those_of_a_sampler(graph):
    """Edge e has hard negatives e, e + 1 and e + 2 (modulo 50), edge 1 one of them, edge 2 none."""
    table = (torch.arange(500)[:, None] + torch.arange(3)) % 50
    table[1, 1:], table[2] = -1, -1
    own, plain = Uniform(4)(graph, range(500))
    dgl.seed(0)
    src, dst = Hard(Uniform(4), table)(graph, range(500))
    plain, dst = plain.view(-1, 4), dst.view(-1, 4)
    assert torch.equal(src, own) and torch.equal(dst[:, 2:], plain[:, 2:])
    assert dst[1].tolist() == [1, *plain[1, 1:].tolist()] and torch.equal(dst[2], plain[2])
    chosen = (dst[3:, :2] - torch.arange(3, 500)[:, None]) % 50
    assert chosen.max() == 2 and (chosen[:, 0] != chosen[:, 1]).all()
    assert scipy.stats.chisquare(torch.bincount(chosen.flatten())).pvalue > 1e-4


@pytest.mark.parametrize("replace", [False, True])
def test_global_uniform_never_returns_an_edge(graph, replace):
    edges = set(zip(*(end.tolist() for end in graph.edges()), strict=True))
    pairs = pairs_of(GlobalUniform(3, replace=replace), graph, range(500))
    assert len(pairs) == 1500
    assert not edges & set(pairs)
    assert all(u != v for u, v in pairs)
    assert replace or len(set(pairs)) == 1500
    with_loops = pairs_of(GlobalUniform(3, exclude_self_loops=False), graph, range(500))
    assert any(u == v for u, v in with_loops)


@pytest.mark.parametrize("replace", [False, True])
def test_global_uniform_is_uniform_over_what_is_left(replace):
    """
    0 → 1    of the 12 ordered pairs without loops, 8 are no edges
    ↑   ↓
    3 ← 2
    """
    ring = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    counts: dict[tuple[int, int], int] = {}
    for _ in range(400):
        for pair in pairs_of(GlobalUniform(1, replace=replace), ring, range(4)):
            counts[pair] = counts.get(pair, 0) + 1
    assert sorted(counts) == [(0, 2), (0, 3), (1, 0), (1, 3), (2, 0), (2, 1), (3, 1), (3, 2)]
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_a_dense_graph_gives_what_it_has():
    every = [(u, v) for u in range(5) for v in range(5) if u != v]
    src, dst = zip(*[pair for pair in every if pair not in {(0, 3), (4, 1)}], strict=True)
    g = dgl.graph((src, dst))
    assert sorted(pairs_of(GlobalUniform(2), g, range(18))) == [(0, 3), (4, 1)]
    complete = dgl.graph(tuple(zip(*every, strict=True)))
    assert pairs_of(GlobalUniform(2), complete, range(20)) == []


@pytest.mark.parametrize(
    "sampler",
    [
        Uniform(5),
        DegreePower(5, 1, True),
        GlobalUniform(5, replace=True),
        Hard(Uniform(5, True), torch.arange(1500).view(500, 3) % 50),
    ],
    ids=name_of,
)
def test_the_negatives_of_an_edge_depend_on_its_name_alone(graph, sampler, torch_threads):
    """Not on its place, its company or the threads: hence neither on workers or ranks."""

    def drawn(eids, *name):
        with stream(*name):
            pairs = pairs_of(sampler, graph, eids)
        return {eid: pairs[5 * i : 5 * i + 5] for i, eid in enumerate(eids)}

    torch_threads(1)
    whole = drawn(list(range(100)), 1, 2, 3)
    torch_threads(2)
    assert drawn([60, 3, 41], 1, 2, 3) == {eid: whole[eid] for eid in (60, 3, 41)}
    assert whole != drawn(list(range(100)), 1, 2, 4)
    by_edge = {tuple(v for _, v in pairs) for pairs in whole.values()}
    assert len(by_edge) == 100


@pytest.mark.parametrize("sampler", [Uniform(2), DegreePower(2), GlobalUniform(1)], ids=name_of)
def test_types(typed, sampler):
    found = sampler(typed, {"plays": [0, 3], ("user", "follows", "user"): torch.tensor([1])})
    assert set(found) == {("user", "plays", "game"), ("user", "follows", "user")}
    for etype, (src, dst) in found.items():
        assert len(src) == len(dst) == sampler.k * (2 if etype[1] == "plays" else 1)
        assert src.max() < typed.num_nodes(etype[0]) and dst.max() < typed.num_nodes(etype[2])


def test_a_node_and_a_game_of_the_same_number_are_no_loop():
    g = dgl.heterograph({("user", "plays", "game"): ([0], [1])}, {"user": 2, "game": 2})
    pairs = {pair for _ in range(20) for pair in pairs_of(GlobalUniform(3), g, [0])}
    assert pairs == {(0, 0), (1, 0), (1, 1)}
