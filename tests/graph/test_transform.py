from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, same, toy, typed

LOOP = ("user", "follows", "user")
PLAYS = ("user", "plays", "game")


def test_reverse_turns_types() -> None:
    g = dgl.reverse(typed(), copy_edata=True)
    assert set(g.canonical_etypes) == {("user", "made by", "game"), LOOP, ("game", "plays", "user")}
    assert edges_of(g, "plays") == [(0, 0), (0, 0), (2, 1)]
    assert g.edges["plays"].data["w"].tolist() == [0, 1, 2]


@given(graphs())
def test_reverse_twice_is_the_graph(g: dgl.Graph) -> None:
    assert same(g.reverse(copy_edata=True).reverse(copy_edata=True), g)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (7, [7, 7, 7, 7]),
        ("sum", [4, 3, 3, 0]),
        ("mean", [4, 1, 3, 0]),
        ("max", [4, 2, 3, 0]),
        ("min", [4, 0, 3, 0]),
    ],
)
def test_add_self_loop_fills_named_features(fill: Any, expected: list[float]) -> None:
    g = dgl.add_self_loop(toy(), ["w"], fill)
    assert g.edata["w"][5:].tolist() == expected
    assert g.edata["kind"][5:].tolist() == [[0, 0]] * 4


def test_add_self_loop_on_one_type_of_several() -> None:
    g = dgl.add_self_loop(typed(), etype="follows")
    assert edges_of(g, "follows") == [(0, 1), (1, 1), (0, 0), (1, 1), (2, 2)]
    assert edges_of(g, "plays") == [(0, 0), (0, 0), (1, 2)]
    assert g.edges["plays"].data["w"].tolist() == [0, 1, 2]


@given(graphs())
def test_self_loops_come_and_go(g: dgl.Graph) -> None:
    plain = dgl.remove_self_loop(g)
    assert edges_of(plain) == [(u, v) for u, v in edges_of(g) if u != v]
    once = dgl.add_self_loop(plain)
    assert edges_of(once)[plain.num_edges() :] == [(v, v) for v in range(g.num_nodes())]
    assert same(dgl.remove_self_loop(once), plain)


def test_add_reverse_edges_copies_features_and_remembers_the_original() -> None:
    g = dgl.add_reverse_edges(toy(), copy_ndata=False, copy_edata=True)
    assert g.edata["w"].tolist() == [0, 1, 2, 3, 4, 0, 1, 4]
    assert g.edata[dgl.EID].tolist() == [0, 1, 2, 3, 4, 0, 1, 4]
    assert list(g.ndata) == []


@given(graphs())
def test_edge_i_plus_e_reverses_edge_i(g: dgl.Graph) -> None:
    both = dgl.add_reverse_edges(g, exclude_self=False)
    assert edges_of(both) == edges_of(g) + [(v, u) for u, v in edges_of(g)]


def test_add_reverse_edges_leaves_other_types_alone_when_told() -> None:
    with pytest.raises(dgl.DGLError, match="ignore_bipartite=True"):
        dgl.add_reverse_edges(typed())
    g = dgl.add_reverse_edges(typed(), ignore_bipartite=True, copy_edata=True)
    assert edges_of(g, "follows") == [(0, 1), (1, 1), (1, 0)]
    assert edges_of(g, "plays") == edges_of(typed(), "plays")
    assert g.edges["plays"].data["w"].tolist() == [0, 1, 2]


@given(graphs())
def test_to_bidirected_against_sets(g: dgl.Graph) -> None:
    both = {pair for u, v in edges_of(g) for pair in ((u, v), (v, u))}
    result = dgl.to_bidirected(g)
    assert edges_of(result) == sorted(both)
    assert result.idtype == g.idtype and list(result.ndata) == list(result.edata) == []


def test_to_simple_takes_features_of_the_first_edge() -> None:
    g = dgl.to_simple(toy(), return_counts=None, copy_edata=True)
    assert g.edata["w"].tolist() == [0, 2, 4, 3]
    assert g.edata[dgl.EID].tolist() == [0, 2, 4, 3]
    assert "count" not in g.edata


@pytest.mark.parametrize(
    ("aggregator", "expected"),
    [("sum", [1, 2, 4, 3]), ("mean", [0.5, 2, 4, 3]), ("max", [1, 2, 4, 3]), ("min", [0, 2, 4, 3])],
)
def test_to_simple_aggregates_features(aggregator: str, expected: list[float]) -> None:
    g = toy()
    del g.edata["kind"]
    simple = dgl.to_simple(g, copy_edata=True, aggregator=aggregator)
    assert simple.edata["w"].tolist() == expected


def test_to_simple_of_several_types() -> None:
    g, mapping = dgl.to_simple(typed(), return_counts="n", writeback_mapping=True)
    assert edges_of(g, "plays") == [(0, 0), (1, 2)]
    assert mapping[PLAYS].tolist() == [0, 0, 1]
    assert g.edges["plays"].data["n"].tolist() == [2, 1]
    assert g.edges["follows"].data["n"].tolist() == [1, 1]


@given(graphs())
def test_to_simple_against_a_counter(g: dgl.Graph) -> None:
    counts = Counter(edges_of(g))
    simple, mapping = dgl.to_simple(g, writeback_mapping=True)
    assert edges_of(simple) == sorted(counts)
    assert simple.edata["count"].tolist() == [counts[pair] for pair in sorted(counts)]
    assert list(simple.edata) == ["count"]
    assert [edges_of(simple)[i] for i in mapping.tolist()] == edges_of(g)
    assert simple.edata["count"].dtype == mapping.dtype == g.idtype


@pytest.mark.parametrize("change", [dgl.to_simple, dgl.to_bidirected])
def test_large_graphs_sort_alike(change: Any) -> None:
    """Above 2^17 edges grouping takes another path; both must order alike."""
    ends = torch.randint(0, 700, (2, 140_000), generator=torch.Generator().manual_seed(0))
    keys = torch.unique(ends[0] * 700 + ends[1])
    if change is dgl.to_bidirected:
        keys = torch.unique(torch.cat([keys, keys % 700 * 700 + keys // 700]))
    src, dst = change(dgl.graph((ends[0], ends[1]), num_nodes=700)).edges()
    assert torch.equal(src * 700 + dst, keys)


def test_features_stay_what_they_were_when_the_result_was_made() -> None:
    g = toy()
    results = [dgl.remove_self_loop(g), dgl.add_reverse_edges(g, copy_edata=True)]
    g.edata["w"] = torch.full((5,), -1.0)
    del g.ndata["x"]
    assert results[0].edata["w"].tolist() == [0, 1, 4]
    assert results[1].edata["w"].tolist() == [0, 1, 2, 3, 4, 0, 1, 4]
    assert results[0].ndata["x"].tolist() == [0, 1, 2, 3]


CHANGES = [
    *(dgl.reverse, dgl.add_self_loop, dgl.remove_self_loop, dgl.add_reverse_edges),
    *(dgl.to_bidirected, dgl.to_simple),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_leaves_its_argument_and_dtype_alone_and_takes_no_block(change: Any) -> None:
    for idtype in (torch.int32, torch.int64):
        g = toy(idtype)
        result = change(g)
        assert result.idtype == result.edges()[0].dtype == idtype
        assert same(g, toy(idtype))
    with pytest.raises(dgl.DGLError, match="block"):
        change(dgl.to_block(toy()))


def test_gradients_flow_through_filled_features() -> None:
    g = dgl.graph(([0, 1], [1, 1]))
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    g.edata["w"] = weight
    dgl.add_self_loop(g, ["w"], "sum").edata["w"].sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2, 2]


def test_casts_change_features_only() -> None:
    g = toy()
    half = dgl.to_half(g)
    assert half.ndata["x"].dtype == torch.float16
    assert half.edata["kind"].dtype == torch.int64
    assert g.ndata["x"].dtype == torch.float32
    assert dgl.to_bfloat16(g).edata["w"].dtype == torch.bfloat16
    assert dgl.to_double(g).edata["w"].dtype == torch.float64
    assert dgl.to_float(half).ndata["x"].dtype == torch.float32
    block = dgl.to_bfloat16(dgl.to_block(g))
    assert block.is_block
    assert block.srcdata["x"].dtype == block.dstdata["x"].dtype == torch.bfloat16
    assert block.srcdata[dgl.NID].dtype == torch.int64
