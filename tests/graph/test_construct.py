from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import ENDS, edge_lists, edges_of, same_structure, typed_graphs

PAIRS = list(zip(*ENDS, strict=True))


@pytest.mark.parametrize(
    "form", [tuple, np.array, pd.Series, lambda x: np.repeat(np.array(x), 2)[::2]]
)
def test_edges_in_every_form(form: Any) -> None:
    g = dgl.graph((form(ENDS[0]), form(ENDS[1])))
    assert edges_of(g) == PAIRS
    assert g.num_nodes() == 3
    assert g.number_of_edges() == 5


def test_a_list_of_two() -> None:
    """Two pairs of integers are two edges; two arrays are sources and destinations."""
    for pairs in ([(0, 1), (2, 3)], [[0, 1], [2, 3]]):
        assert edges_of(dgl.graph(pairs)) == [(0, 1), (2, 3)]
    assert edges_of(dgl.graph([[0, 1, 2], [1, 2, 0]])) == [(0, 1), (1, 2), (2, 0)]
    ends = [torch.tensor([0, 1]), torch.tensor([2, 3])]
    for arrays in (ends, tuple(ends), ([0, 1], [2, 3]), ("coo", [[0, 1], [2, 3]])):
        assert edges_of(dgl.graph(arrays)) == [(0, 2), (1, 3)]
    assert dgl.graph([], num_nodes=2).num_edges() == 0


@pytest.mark.parametrize(
    ("data", "idtype", "expected"),
    [
        (ENDS, None, torch.int64),
        (ENDS, torch.int32, torch.int32),
        (tuple(torch.tensor(x, dtype=torch.int32) for x in ENDS), None, torch.int32),
        (tuple(torch.tensor(x, dtype=torch.int32) for x in ENDS), torch.int64, torch.int64),
        (([], []), None, torch.int64),
        ((torch.empty(0, dtype=torch.int32),) * 2, None, torch.int32),
        (("csr", ([0, 1, 2], torch.tensor([1, 0], dtype=torch.int32), [])), None, torch.int32),
    ],
)
def test_idtype(data: Any, idtype: Any, expected: torch.dtype) -> None:
    g = dgl.graph(data, idtype=idtype)
    assert g.idtype == expected
    assert all(end.dtype == expected for end in g.edges())
    assert g.nodes().dtype == g.in_degrees().dtype == expected
    assert (g.int().idtype, g.long().idtype) == (torch.int32, torch.int64)
    assert edges_of(g.int().long()) == edges_of(g)
    for wanted in (torch.int32, torch.int64):
        assert g.astype(wanted).idtype == wanted and edges_of(g.astype(wanted)) == edges_of(g)


# ------------------------------------------------------------------------- csr and csc


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_edges_of_a_row_in_another_order_than_their_ids(kind: str) -> None:
    """Sampling finds edges in a row by their IDs."""
    g = dgl.graph((kind, ([0, 3, 3, 3], [0, 1, 2], [2, 0, 1])))
    assert edges_of(g) == [(1, 0), (2, 0), (0, 0)] if kind == "csc" else [(0, 1), (0, 2), (0, 0)]
    direction = "in" if kind == "csc" else "out"
    for edge in range(3):
        rest = dgl.sampling.sample_neighbors(g, [0], -1, direction, exclude_edges=[edge])
        assert rest.edata[dgl.EID].tolist() == [e for e in range(3) if e != edge]


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("indptr", "indices", "eids", "message"),
    [
        ([0, 2, 1, 3], [0, 1, 2], [], "never fall"),
        ([1, 2, 3], [0, 1, 2], [], "must start at 0"),
        ([0, 1, 2], [0, 1, 2], [], "end at the number of indices, 3"),
        ([], [], [], "indptr of shape"),
        ([0, 1, 2], [0, 1], [0, 0], "permutation of 0 … 1"),
        ([0, 1, 2], [0, 1], [0], "permutation of 0 … 1"),
        ([0, 1, 2], [0, 1], [1, 2], "permutation of 0 … 1"),
        ([0, 1, 2], [0, -1], [], "node -1 does not exist"),
    ],
)
def test_bad_compressed_edges(
    kind: str, indptr: list[int], indices: list[int], eids: list[int], message: str
) -> None:
    with pytest.raises(dgl.DGLError, match=message):
        dgl.graph((kind, (indptr, indices, eids)))
    with pytest.raises(dgl.DGLError, match=message):
        dgl.heterograph({("a", "r", "a"): (kind, (indptr, indices, eids))}, {"a": 3})


@given(edge_lists(), st.sampled_from(["csr", "csc"]), st.data())
def test_compressed_edges_against_lists(
    edges: tuple[int, list[int], list[int]], kind: str, data: st.DataObject
) -> None:
    num_nodes, src, dst = edges
    rows, columns = (src, dst) if kind == "csr" else (dst, src)
    order = sorted(range(len(src)), key=lambda e: (rows[e], data.draw(st.integers(0, 3))))
    indptr = [sum(r < v for r in rows) for v in range(num_nodes + 1)]
    arrays = (indptr, [columns[e] for e in order], order)
    g = dgl.graph((kind, arrays), num_nodes=num_nodes)
    assert edges_of(g) == list(zip(src, dst, strict=True))
    typed = dgl.heterograph({("n", "r", "n"): (kind, arrays)}, {"n": num_nodes})
    assert edges_of(typed) == edges_of(g)


# ------------------------------------------------------------------------- typed graphs
def test_types_are_ordered_by_name() -> None:
    a = {("u", "b", "u"): ([0], [0]), ("u", "a", "g"): ([0], [1]), ("g", "c", "u"): ([2], [0])}
    g = dgl.heterograph(a)
    assert g.ntypes == ["g", "u"]
    assert g.canonical_etypes == [("g", "c", "u"), ("u", "a", "g"), ("u", "b", "u")]
    assert g.etypes == ["c", "a", "b"]
    assert same_structure(g, dgl.heterograph(dict(reversed(a.items()))))
    assert g.num_nodes("g") == 3
    assert [g.get_ntype_id(n) for n in g.ntypes] == [0, 1]
    assert [g.get_etype_id(e) for e in g.etypes] == [0, 1, 2]


@given(typed_graphs(features=False))
def test_rebuilding_a_typed_graph(g: dgl.Graph) -> None:
    data = {etype: g.edges(etype=etype) for etype in g.canonical_etypes}
    sizes = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    assert same_structure(dgl.heterograph(data, sizes, idtype=g.idtype), g)


def test_rand_graph() -> None:
    torch.manual_seed(0)
    g = dgl.rand_graph(10, 30)
    assert (g.num_nodes(), g.num_edges()) == (10, 30)
    torch.manual_seed(0)
    assert same_structure(dgl.rand_graph(10, 30), g)
    assert dgl.rand_graph(0, 0, idtype=torch.int32).idtype == torch.int32
    with pytest.raises(dgl.DGLError, match="num_nodes=0"):
        dgl.rand_graph(0, 1)


# -------------------------------------------------------------- numbers that int32 cannot hold
LARGE = 2**31 + 5  # of nodes that have no features: no test needs memory for them
ALMOST = 2**31 - 10
INT = torch.int32


def almost_full() -> dgl.Graph:
    return dgl.graph(([0], [1]), num_nodes=ALMOST, idtype=INT)


def typed_almost_full() -> dgl.Graph:
    return dgl.heterograph({("a", "r", "b"): ([0], [0])}, {"a": ALMOST, "b": 20}, idtype=INT)


def matrix(shape: tuple[int, int]) -> Any:
    return scipy.sparse.coo_array(([1.0], ([shape[0] - 1], [0])), shape=shape)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dgl.graph(([LARGE], [0]), idtype=INT),
        lambda: dgl.graph((np.array([0]), np.array([2**40])), idtype=INT),
        lambda: dgl.graph([(0, 2**31)], idtype=INT),
        lambda: dgl.graph(([0], [1]), num_nodes=2**31, idtype=INT),
        lambda: dgl.graph((torch.tensor([0], dtype=INT),) * 2, num_nodes=LARGE),
        lambda: dgl.graph(("csr", ([0, 1], [LARGE], [])), idtype=INT),
        lambda: dgl.heterograph({("a", "r", "b"): ([0], [LARGE])}, idtype=INT),
        lambda: dgl.heterograph({("a", "r", "b"): ([], [])}, {"a": 1, "b": LARGE}, idtype=INT),
        lambda: dgl.heterograph({}, {"a": LARGE}, idtype=INT),
        lambda: dgl.rand_graph(LARGE, 3, idtype=INT),
        lambda: dgl.from_scipy(matrix((LARGE, LARGE)), idtype=INT),
        lambda: dgl.bipartite_from_scipy(matrix((LARGE, 2)), "u", "r", "v", idtype=INT),
        lambda: dgl.graph(([LARGE], [0])).int(),
        lambda: dgl.add_nodes(almost_full(), 20),
        lambda: typed_almost_full().add_nodes(20, ntype="a"),
        lambda: dgl.add_edges(almost_full(), [LARGE], [0]),
        lambda: typed_almost_full().add_edges([2**31], [0]),
        lambda: dgl.batch([almost_full()] * 2),
        lambda: dgl.to_homogeneous(typed_almost_full()),
        lambda: dgl.graph(([0], [1]), num_nodes=2**63),
    ],
)
def test_counts_are_compared_with_the_dtype_of_ids(make: Any) -> None:
    with pytest.raises(dgl.InvalidInput, match="do not fit"):
        make()


def test_counts_that_just_fit() -> None:
    g = dgl.graph(([2**31 - 2], [0]), idtype=INT)
    assert (g.num_nodes(), edges_of(g)) == (2**31 - 1, [(2**31 - 2, 0)])
    assert edges_of(dgl.add_nodes(almost_full(), 9)) == [(0, 1)]
    g = dgl.graph(([LARGE], [0]))
    assert edges_of(g) == edges_of(dgl.batch([g, g]))[:1] == [(LARGE, 0)]
    assert edges_of(dgl.batch([g, g]))[1] == (2 * LARGE + 1, LARGE + 1)
    assert g.find_edges([0])[0].item() == LARGE
    assert edges_of(almost_full().long()) == [(0, 1)]
