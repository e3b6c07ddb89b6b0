from __future__ import annotations

import pytest
import torch
from hypothesis import given

import gnnlab as dgl
from tests.graph.samples import edges_of, same_structure, toy, typed, typed_graphs


def test_to_homogeneous_numbers_type_after_type() -> None:
    """game 0 … 3 become 0 … 3, user 0 … 2 become 4 … 6."""
    g, nodes, edges = dgl.to_homogeneous(typed(), ndata=["x"], return_count=True)
    assert (nodes, edges) == ([4, 3], [1, 2, 3])
    assert edges_of(g) == [(0, 5), (4, 5), (5, 5), (4, 0), (4, 0), (5, 2)]
    assert g.ndata[dgl.NTYPE].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert g.ndata[dgl.NID].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert g.edata[dgl.ETYPE].tolist() == [0, 1, 1, 2, 2, 2]
    assert g.edata[dgl.EID].tolist() == [0, 0, 1, 0, 1, 2]
    assert g.ndata["x"].tolist() == [0, 10, 20, 30, 0, 1, 2]
    assert list(g.edata) == [dgl.EID, dgl.ETYPE]


def test_types_without_nodes_need_no_features() -> None:
    g = dgl.heterograph(
        {("a", "r", "b"): ([0], [1]), ("c", "s", "c"): ([], [])}, {"a": 1, "b": 2, "c": 0}
    )
    g.nodes["a"].data["x"], g.nodes["b"].data["x"] = torch.tensor([5.0]), torch.tensor([6.0, 7.0])
    g.edges["r"].data["w"] = torch.tensor([1])
    flat = dgl.to_homogeneous(g, ["x"], ["w"])
    assert (flat.ndata["x"].tolist(), flat.edata["w"].tolist()) == ([5, 6, 7], [1])
    del g.nodes["b"].data["x"]
    with pytest.raises(dgl.NotFound, match="'b'"):
        dgl.to_homogeneous(g, ["x"])


def test_to_homogeneous_dtypes_and_no_types() -> None:
    g = dgl.to_homogeneous(typed(torch.int32), store_type=False)
    assert g.ndata[dgl.NID].dtype == torch.int32
    assert dgl.NTYPE not in g.ndata
    assert dgl.to_homogeneous(typed(torch.int32)).ndata[dgl.NTYPE].dtype == torch.int64
    g = dgl.to_homogeneous(toy())
    assert edges_of(g) == edges_of(toy())
    assert g.ndata[dgl.NTYPE].tolist() == [0] * 4


@given(typed_graphs())
def test_there_and_back(g: dgl.Graph) -> None:
    flat = dgl.to_homogeneous(g, ndata=["x"], edata=["w"])
    back = dgl.to_heterogeneous(flat, g.ntypes, g.etypes, metagraph=g.metagraph())
    assert same_structure(g, back)
    for ntype in g.ntypes:
        assert torch.equal(back.nodes[ntype].data["x"], g.nodes[ntype].data["x"])
        expected = flat.ndata[dgl.NTYPE] == g.get_ntype_id(ntype)
        assert back.nodes[ntype].data[dgl.NID].tolist() == expected.nonzero().flatten().tolist()
    for etype in g.canonical_etypes:
        assert torch.equal(back.edges[etype].data["w"], g.edges[etype].data["w"])
    found = dgl.to_heterogeneous(flat, g.ntypes, g.etypes)
    assert found.canonical_etypes == [e for e in g.canonical_etypes if g.num_edges(e)]


def hand_typed(nodes: list[int], edges: list[int]) -> dgl.Graph:
    g = dgl.graph(([0, 1], [1, 2]))
    g.ndata[dgl.NTYPE] = torch.tensor(nodes)
    g.edata[dgl.ETYPE] = torch.tensor(edges)
    return g


def test_to_heterogeneous_makes_one_type_per_triple() -> None:
    g = dgl.to_heterogeneous(hand_typed([0, 1, 0], [0, 0]), ["b", "a"], ["r"])
    assert g.ntypes == ["a", "b"]
    assert g.canonical_etypes == [("a", "r", "b"), ("b", "r", "a")]
    assert g.nodes["b"].data[dgl.NID].tolist() == [0, 2]
    assert edges_of(g, ("a", "r", "b")) == [(0, 1)]
    assert dgl.NTYPE not in g.nodes["a"].data


def test_a_relation_may_be_named_twice() -> None:
    g = dgl.to_heterogeneous(hand_typed([0, 0, 0], [0, 1]), ["a"], ["r", "r"])
    assert g.canonical_etypes == [("a", "r", "a")]
    assert edges_of(g) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("nodes", "edges", "ntypes", "etypes", "message"),
    [
        ([0, 5, 0], [0, 0], ["a", "b"], ["r"], "from 0 to 5, but ntypes names 2 types"),
        ([0, -1, 0], [0, 0], ["a", "b"], ["r"], "from -1 to 0"),
        ([0, 0, 0], [0, 1], ["a"], ["r"], "etypes names 1 types"),
        ([0, 1, 0], [0, 0], ["a", "a"], ["r"], "must have different names"),
    ],
)
def test_type_ids_are_checked(
    nodes: list[int], edges: list[int], ntypes: list[str], etypes: list[str], message: str
) -> None:
    with pytest.raises(dgl.DGLError, match=message):
        dgl.to_heterogeneous(hand_typed(nodes, edges), ntypes, etypes)
