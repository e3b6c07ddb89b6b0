from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edge_lists, edges_of, graphs, typed

MATRIX = sp.coo_array(([5.0, 7.0, 9.0], ([0, 2, 0], [1, 0, 1])), shape=(3, 3))


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok"])
@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
def test_from_scipy_numbers_edges_as_they_are_stored(form: str, kind: Any) -> None:
    g = dgl.from_scipy(kind(MATRIX).asformat(form), eweight_name="w")
    edges = dict(zip(edges_of(g), g.edata["w"].tolist(), strict=True))
    if form == "coo":
        assert edges_of(g) == [(0, 1), (2, 0), (0, 1)]
        assert g.edata["w"].tolist() == [5, 7, 9]
    else:
        assert edges == {(0, 1): 14, (2, 0): 7}
    if form == "csc":
        assert edges_of(g) == [(2, 0), (0, 1)]
    assert g.num_nodes() == 3
    assert g.edata["w"].dtype == torch.float64


def test_from_scipy_keeps_the_format_and_stored_zeros() -> None:
    matrix = sp.csr_array(np.eye(3))
    matrix.data[1] = 0
    g = dgl.from_scipy(matrix, "w", idtype=torch.int32)
    assert g.edata["w"].tolist() == [1, 0, 1]
    assert g.idtype == torch.int32
    assert g.formats()["created"] == ["csr"]
    matrix.data[:] = 9
    assert g.edata["w"].tolist() == [1, 0, 1]
    assert dgl.from_scipy(matrix).idtype == torch.int64
    assert list(dgl.from_scipy(matrix).edata) == []


def test_bipartite_from_scipy() -> None:
    matrix = sp.coo_array(([1, 2], ([0, 1], [1, 2])), shape=(2, 3))
    g = dgl.bipartite_from_scipy(matrix, "user", "plays", "game", "w")
    assert (g.num_nodes("user"), g.num_nodes("game")) == (2, 3)
    assert edges_of(g) == [(0, 1), (1, 2)]
    assert g.edata["w"].tolist() == [1, 2]


@given(edge_lists(), st.sampled_from(["coo", "csr", "csc"]))
def test_scipy_there_and_back(edges: tuple[int, list[int], list[int]], form: str) -> None:
    num_nodes, src, dst = edges
    weights = np.arange(1.0, len(src) + 1)
    matrix = sp.coo_array((weights, (src, dst)), shape=(num_nodes, num_nodes))
    g = dgl.from_scipy(matrix.asformat(form), "w")
    ends = [end.numpy() for end in g.edges()]
    back = sp.coo_array((g.edata["w"].numpy(), ends), shape=matrix.shape)
    assert (back.toarray() == matrix.toarray()).all()
    counts = dgl.graph((src, dst), num_nodes=num_nodes).adj_external(scipy_fmt="coo")
    assert counts.shape == matrix.shape
    expected = np.zeros(matrix.shape)
    np.add.at(expected, (src, dst), 1)
    assert (counts.toarray() == expected).all()


def test_from_networkx_sorts_labels_and_keeps_attributes() -> None:
    graph = nx.DiGraph()
    graph.add_node("b", x=1.0, v=[1, 2])
    graph.add_node("a", x=2.0, v=np.array([3, 4]))
    graph.add_edge("b", "a", w=1, id=1)
    graph.add_edge("a", "b", w=2, id=0)
    g = dgl.from_networkx(graph, ["x", "v"], ["w"])
    assert edges_of(g) == [(1, 0), (0, 1)]
    assert g.ndata["x"].tolist() == [2, 1]
    assert g.ndata["v"].tolist() == [[3, 4], [1, 2]]
    assert g.edata["w"].tolist() == [1, 2]
    by_id = dgl.from_networkx(graph, edge_attrs=["w"], edge_id_attr_name="id")
    assert edges_of(by_id) == [(0, 1), (1, 0)]
    assert by_id.edata["w"].tolist() == [2, 1]


def test_from_networkx_doubles_undirected_edges() -> None:
    graph = nx.path_graph(3)
    graph.add_edge(1, 1)
    nx.set_edge_attributes(graph, 3.0, "w")
    g = dgl.from_networkx(graph, edge_attrs=["w"])
    assert edges_of(g) == [(0, 1), (1, 0), (1, 2), (1, 1), (2, 1)]
    assert g.edata["w"].tolist() == [3] * 5
    multi = nx.MultiGraph([(0, 1), (0, 1)])
    assert edges_of(dgl.from_networkx(multi)) == [(0, 1), (0, 1), (1, 0), (1, 0)]


def test_from_networkx_of_labels_that_do_not_compare() -> None:
    graph = nx.DiGraph([("x", 1), (1, (2, 3))])
    assert edges_of(dgl.from_networkx(graph, idtype=torch.int32)) == [(0, 1), (1, 2)]
    assert dgl.from_networkx(nx.DiGraph()).num_nodes() == 0


def test_bipartite_from_networkx() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from([1, 3], bipartite=0, f=1.0)
    graph.add_nodes_from([0, 2], bipartite=1, f=2.0)
    graph.add_edge(1, 2, w=1.0)
    graph.add_edge(3, 0, w=2.0)
    g = dgl.bipartite_from_networkx(graph, "u", "r", "v", ["f"], ["w"], ["f"])
    assert edges_of(g) == [(0, 1), (1, 0)]
    assert g.nodes["u"].data["f"].tolist() == [1, 1]
    assert g.nodes["v"].data["f"].tolist() == [2, 2]
    assert g.edata["w"].tolist() == [1, 2]
    graph.add_edge(0, 1)
    with pytest.raises(dgl.DGLError, match=r"\(0, 1\)"):
        dgl.bipartite_from_networkx(graph, "u", "r", "v")
    with pytest.raises(dgl.DGLError, match="'bipartite', 0 or 1"):
        dgl.bipartite_from_networkx(nx.DiGraph([(0, 1)]), "u", "r", "v")
    with pytest.raises(dgl.DGLError, match="directed"):
        dgl.bipartite_from_networkx(nx.path_graph(2), "u", "r", "v")


def test_to_networkx_of_types() -> None:
    graph = typed().to_networkx(node_attrs=["price"], eid_attr="number")
    assert graph.nodes[3] == {"ntype": "game", "price": torch.tensor(3)}
    assert graph.nodes[4] == {"ntype": "user"}
    assert graph.edges[5, 2, 0] == {"number": 5, "etype": ("user", "plays", "game")}
    with pytest.raises(dgl.DGLError, match="'nope'"):
        dgl.to_networkx(typed(), node_attrs=["nope"])
    part = dgl.to_networkx(typed()["plays"])
    assert sorted(part.edges()) == [(0, 3), (0, 3), (1, 5)]


@given(graphs())
def test_networkx_there_and_back(g: dgl.Graph) -> None:
    names = list(g.ndata), list(g.edata)
    graph = dgl.to_networkx(g, *names)
    back = dgl.from_networkx(graph, *names, edge_id_attr_name="id", idtype=g.idtype)
    assert edges_of(back) == edges_of(g)
    assert back.num_nodes() == g.num_nodes()
    if g.num_nodes() and g.num_edges():
        assert all(torch.equal(back.ndata[n].to(g.ndata[n]), g.ndata[n]) for n in names[0])
        assert all(torch.equal(back.edata[n], g.edata[n]) for n in names[1])
