from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, same, toy, typed


def test_add_nodes_extends_features_with_zeros_or_data() -> None:
    g = dgl.add_nodes(toy(), 2)
    assert g.num_nodes() == 6
    assert g.ndata["x"].tolist() == [0, 1, 2, 3, 0, 0]
    g = dgl.add_nodes(toy(), 2, {"x": [7.0, 8.0], "y": torch.ones(2, 3)})
    assert g.ndata["x"].tolist() == [0, 1, 2, 3, 7, 8]
    assert g.ndata["y"].tolist() == [[0, 0, 0]] * 4 + [[1, 1, 1]] * 2
    assert edges_of(g) == edges_of(toy())


def test_add_edges_appends_and_makes_missing_nodes() -> None:
    g = dgl.add_edges(toy(), [0, 6], [3, 3], {"w": torch.tensor([7.0, 8.0])})
    assert edges_of(g)[5:] == [(0, 3), (6, 3)]
    assert g.num_nodes() == 7
    assert g.edata["w"].tolist() == [0, 1, 2, 3, 4, 7, 8]
    assert g.edata["kind"][5:].tolist() == [[0, 0]] * 2
    assert g.ndata["x"].tolist() == [0, 1, 2, 3, 0, 0, 0]


def test_add_edges_of_a_type_can_add_nodes_of_both_ends() -> None:
    g = dgl.add_edges(typed(), [4], [5], etype="plays")
    assert edges_of(g, "plays")[-1] == (4, 5)
    assert (g.num_nodes("user"), g.num_nodes("game")) == (5, 6)
    assert edges_of(g, "made by") == edges_of(typed(), "made by")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: dgl.add_edges(g, [0, 1], [1, 2, 3]), "found 2 sources and 3 destinations"),
        (lambda g: dgl.add_edges(g, [0], [1], {"w": torch.ones(2)}), "expected 1 rows"),
        (lambda g: dgl.add_edges(g, [0], [1], {"w": torch.ones(1, 2)}), r"shape \(2,\)"),
        (lambda g: dgl.add_edges(g, [0], [1], {"kind": torch.ones(1, 2)}), "lose digits"),
        (lambda g: dgl.add_nodes(g, -1), "at least 0"),
        (lambda g: dgl.remove_edges(g, [9]), "edge 9 does not exist: IDs must be from 0 to 4"),
    ],
)
def test_bad_arguments_are_explained(call: Any, message: str) -> None:
    g = toy()
    with pytest.raises(dgl.DGLError, match=message):
        call(g)
    assert same(g, toy())


def test_remove_edges_of_a_type_stores_ids_of_all() -> None:
    g = dgl.remove_edges(typed(), [0], "plays", store_ids=True)
    assert edges_of(g, "plays") == [(0, 0), (1, 2)]
    assert g.edges["plays"].data[dgl.EID].tolist() == [1, 2]
    assert g.edges["follows"].data[dgl.EID].tolist() == [0, 1]


def test_methods_change_the_graph_itself() -> None:
    g = toy()
    assert g.add_nodes(1) is None
    assert g.add_edges([4], [4], {"w": torch.tensor([9.0])}) is None
    assert g.remove_edges([0]) is None
    assert g.remove_nodes([3]) is None
    assert edges_of(g) == [(0, 1), (1, 1), (2, 2), (2, 0), (3, 3)]
    assert g.edata["w"].tolist() == [1, 2, 3, 4, 9]
    assert g.in_degrees().tolist() == [1, 2, 1, 1]


def test_methods_leave_earlier_copies_alone() -> None:
    g = toy()
    twin, view = copy.copy(g), g.local_var()
    g.remove_nodes([0])
    assert same(twin, toy())
    assert same(view, toy())


@given(graphs(), st.data())
def test_removing_against_lists(g: dgl.Graph, data: st.DataObject) -> None:
    edges = edges_of(g)
    gone = data.draw(st.sets(st.integers(0, len(edges) - 1)) if edges else st.just(set()))
    kept = [i for i in range(len(edges)) if i not in gone]
    left = dgl.remove_edges(g, sorted(gone), store_ids=True)
    assert edges_of(left) == [edges[i] for i in kept] and left.num_nodes() == g.num_nodes()
    assert left.edata[dgl.EID].tolist() == kept
    assert all(torch.equal(left.edata[name], g.edata[name][kept]) for name in g.edata)
    mask = torch.isin(torch.arange(len(edges)), torch.tensor(sorted(gone), dtype=torch.int64))
    for again in (mask, [*gone, *gone]):
        assert edges_of(dgl.remove_edges(g, again)) == edges_of(left)
    nodes = range(g.num_nodes())
    lost = data.draw(st.sets(st.sampled_from(nodes)) if nodes else st.just(set()))
    new = {v: i for i, v in enumerate(v for v in nodes if v not in lost)}
    expected = [(new[u], new[v]) for u, v in edges if u in new and v in new]
    result = dgl.remove_nodes(g, sorted(lost), store_ids=True)
    assert edges_of(result) == expected and result.ndata[dgl.NID].tolist() == list(new)
    stay = [i for i, (u, v) in enumerate(edges) if u in new and v in new]
    assert result.edata[dgl.EID].tolist() == stay
    for name, rows in g.ndata.items():
        assert torch.equal(result.ndata[name], rows[list(new)])


@given(graphs(), st.integers(0, 3), st.sampled_from(["", "csc", "csr", "csc csr"]), st.data())
def test_appended_is_made_anew(g: dgl.Graph, more: int, formats: str, data: st.DataObject) -> None:
    """With formats and edge IDs that exist before, and those made after."""
    for name in formats.split():
        made = getattr(g.relation(), name)()
        if data.draw(st.booleans()):
            assert len(made.eids) == g.num_edges()
    count = g.num_nodes() + more
    node = st.integers(0, max(count - 1, 0))
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=9 if count else 0))
    ends = [u for u, _ in pairs], [v for _, v in pairs]
    rows = {name: values.new_ones(more, *values.shape[1:]) for name, values in g.ndata.items()}
    new = {name: values.new_ones(len(pairs), *values.shape[1:]) for name, values in g.edata.items()}
    grown = dgl.append(g, {"_N": rows or more}, (*ends, new))
    anew = dgl.graph([*edges_of(g), *pairs], num_nodes=count)
    assert edges_of(grown) == edges_of(anew)
    for name in ("csc", "csr"):
        found, wanted = (getattr(each.relation(), name)() for each in (grown, anew))
        assert torch.equal(found.indptr, wanted.indptr)
        assert torch.equal(found.indices, wanted.indices)
        assert torch.equal(found.eids, wanted.eids)


@given(graphs(), st.integers(0, 3))
def test_adding_and_removing_is_nothing(g: dgl.Graph, count: int) -> None:
    grown = dgl.add_nodes(g, count)
    assert same(dgl.remove_nodes(grown, range(g.num_nodes(), grown.num_nodes())), g)
    more = dgl.add_edges(g, *(torch.zeros(count if g.num_nodes() else 0, dtype=int),) * 2)
    assert same(dgl.remove_edges(more, range(g.num_edges(), more.num_edges())), g)


def test_initial_rows_of_new_nodes_and_edges() -> None:
    """Functions for two node types and for one edge type, kept by copies and subgraphs."""
    g = typed()
    g.nodes["user"].data["x"], g.edges["plays"].data["w"] = torch.zeros(3), torch.zeros(3)
    for ntype in ("user", "game"):
        g.set_n_initializer(lambda shape, dtype, device, ids: torch.ones(shape), ntype=ntype)
    counted = lambda shape, dtype, device, ids: torch.arange(ids.start, ids.stop)  # noqa: E731
    g.set_n_initializer(counted, "x", "user")
    g.set_e_initializer(counted, etype="plays")
    part = dgl.node_subgraph(g, {"user": [0, 1, 2], "game": [0, 1, 2, 3]})
    for each in (copy.copy(g), part, g):
        each.add_nodes(2, {"y": torch.tensor([7.0, 8.0])}, ntype="user")
        assert each.nodes["user"].data["x"].tolist() == [0, 0, 0, 3, 4]
        assert each.nodes["user"].data["y"].tolist() == [1, 1, 1, 7, 8]
        each.add_edges([5], [0], etype="plays")  # user 5 is new
        assert each.nodes["user"].data["x"].tolist() == [0, 0, 0, 3, 4, 5]
        assert each.edges["plays"].data["w"].tolist() == [0, 0, 0, 3]


def test_an_initializer_is_a_function():
    g = dgl.graph(([0], [1]))
    for choose in (g.set_n_initializer, g.set_e_initializer):
        with pytest.raises(dgl.errors.InvalidInput, match="initializer"):
            choose(0)
