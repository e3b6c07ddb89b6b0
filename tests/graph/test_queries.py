from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, toy, typed


@pytest.mark.parametrize("idtype", [torch.int32, torch.int64])
def test_degrees(idtype: torch.dtype) -> None:
    g = toy(idtype)
    assert g.in_degrees().tolist() == [1, 3, 1, 0]
    assert g.out_degrees().tolist() == [2, 1, 2, 0]
    assert g.in_degrees().dtype == g.in_degrees([0]).dtype == idtype
    for one in (1, np.int64(1), torch.tensor(1), np.array(1)):
        assert g.in_degrees(one) == 3
        assert isinstance(g.in_degrees(one), int)
    assert g.in_degrees([]).tolist() == []
    assert g.in_degrees(range(2)).tolist() == [1, 3]
    assert g.in_degrees(torch.tensor([True, False, False, True])).tolist() == [1, 0]
    assert typed().in_degrees(etype="plays").tolist() == [2, 0, 1, 0]
    assert typed().out_degrees([0, 2], etype="plays").tolist() == [2, 0]


def test_all_edges_in_every_form_and_order() -> None:
    g = toy()
    src, dst, eids = g.edges(form="all")
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == edges_of(g)
    assert eids.tolist() == g.edges(form="eid").tolist() == [0, 1, 2, 3, 4]
    src, dst, eids = g.all_edges("all", "srcdst")
    assert src.tolist() == [0, 0, 1, 2, 2]
    assert dst.tolist() == [1, 1, 1, 0, 2]
    assert eids.tolist() == [0, 1, 2, 4, 3]


def test_edge_ids() -> None:
    g = toy()
    assert g.edge_ids(2, 0) == 4
    assert isinstance(g.edge_ids(0, 1), int)
    assert g.edge_ids([0, 2], [1, 2]).tolist() == [0, 3]
    assert g.edge_ids([2, 2], [2, 0]).tolist() == [3, 4]
    assert g.edge_ids(2, [2, 0]).tolist() == [3, 4]
    assert [x.tolist() for x in g.edge_ids([0, 1, 1], [1, 0, 1], return_uv=True)] == [
        [0, 0, 1],
        [1, 1, 1],
        [0, 1, 2],
    ]
    assert typed().edge_ids(1, 2, etype="plays") == 2
    with pytest.raises(KeyError, match=r"\(1, 0\)"):
        g.edge_ids([0, 1], [1, 0])
    with pytest.raises(dgl.DGLError, match="2 sources and 3 destinations"):
        g.edge_ids([0, 1], [1, 0, 1])


def test_has_edges_and_nodes() -> None:
    g = toy()
    assert g.has_edges_between(0, 1) is True
    assert g.has_edges_between(1, 0) is False
    assert g.has_edges_between([0, 1, 3], [1, 0, 3]).tolist() == [True, False, False]
    assert g.has_edges_between(2, [0, 1, 2]).tolist() == [True, False, True]
    assert g.has_nodes(3) is True
    assert g.has_nodes([3, 4, 99]).tolist() == [True, False, False]
    assert typed().has_nodes(3, "user") is False
    assert typed().successors(0, "plays").tolist() == [0]


def test_adjacency() -> None:
    g = toy()
    dense = [[0, 2, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    assert g.adj_external().to_dense().tolist() == dense
    assert g.adj_external(transpose=True).to_dense().T.tolist() == dense
    for form in ("coo", "csr"):
        matrix = g.adj_external(scipy_fmt=form)
        assert matrix.toarray().tolist() == dense
        assert matrix.data.tolist() == [1] * 5
        assert g.adj_external(True, scipy_fmt=form).toarray().T.tolist() == dense
    assert typed().adj_external(etype="plays").shape == (3, 4)
    with pytest.raises(dgl.InvalidInput):
        typed().adj("plays")  # as in DGL 2


@given(graphs(), st.data())
def test_queries_against_networkx_and_lists(g: dgl.Graph, data: st.DataObject) -> None:
    edges = edges_of(g)
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(g.num_nodes()))
    reference.add_edges_from(edges)
    assert g.in_degrees().tolist() == [d for _, d in reference.in_degree]
    assert g.out_degrees().tolist() == [d for _, d in reference.out_degree]
    if g.num_nodes() == 0:
        return
    nodes = data.draw(st.lists(st.integers(0, g.num_nodes() - 1), max_size=5))
    by_dst = [(e, *edges[e]) for v in nodes for e in range(len(edges)) if edges[e][1] == v]
    by_src = [(e, *edges[e]) for u in nodes for e in range(len(edges)) if edges[e][0] == u]
    for found, expected in (
        (g.in_edges(nodes, "all"), by_dst),
        (g.out_edges(nodes, "all"), by_src),
    ):
        u, v, e = (x.tolist() for x in found)
        assert list(zip(e, u, v, strict=True)) == expected
    for v in set(nodes):
        assert g.successors(v).tolist() == sorted(reference.successors(v))
        assert g.predecessors(v).tolist() == sorted(reference.predecessors(v))
    others = data.draw(st.permutations(nodes))
    pairs = list(zip(nodes, others, strict=True))
    exists = [reference.has_edge(u, v) for u, v in pairs]
    assert g.has_edges_between(nodes, others).tolist() == exists
    u, v, e = (x.tolist() for x in g.edge_ids(nodes, others, return_uv=True))
    assert [edges[i] for i in e] == list(zip(u, v, strict=True))
    assert list(zip(e, u, v, strict=True)) == [
        (i, *pair) for pair in pairs for i in range(len(edges)) if edges[i] == pair
    ]
    if all(exists):
        assert g.edge_ids(nodes, others).tolist() == [edges.index(pair) for pair in pairs]


@given(graphs())
def test_formats_tell_the_same_story(g: dgl.Graph) -> None:
    edges = edges_of(g)
    for form in ("coo", "csr", "csc"):
        part = g.formats(form)
        assert part.formats() == {"created": [form], "not created": []}
        assert edges_of(part) == edges
        assert Counter(zip(*(x.tolist() for x in part.edges(order="srcdst")), strict=True)) == (
            Counter(edges)
        )
    rows = {"csr": 0, "csc": 1}
    for form, side in rows.items():
        indptr, indices, eids = (x.tolist() for x in g.adj_tensors(form))
        for v in range(g.num_nodes()):
            run = slice(indptr[v], indptr[v + 1])
            assert eids[run] == [e for e in range(len(edges)) if edges[e][side] == v]
            assert indices[run] == [edges[e][1 - side] for e in eids[run]]
