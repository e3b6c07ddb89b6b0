"""Negative samplers: their laws, what they never return, and what they depend on."""

from __future__ import annotations

import pytest
import scipy
import torch

import gnnlab as dgl
from gnnlab.dataloading.negative_sampler import (
    DegreePower,
    GlobalUniform,
    PerSourceUniform,
    Uniform,
)
from gnnlab.errors import InvalidInput
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
    "sampler", [Uniform(5), DegreePower(5), GlobalUniform(5, replace=True)], ids=name_of
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


def test_bad_input_says_what_is_wrong():
    for k in (0, -1, 1.5, True, "many"):
        with pytest.raises(InvalidInput, match=f"{k}"):
            Uniform(k)
    with pytest.raises(InvalidInput, match="power"):
        DegreePower(5, -1)
