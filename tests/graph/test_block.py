from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, toy, typed, typed_graphs
from tests.helpers import examples

MANY = examples(300)


def ids(frame: Any) -> list[int]:
    return frame[dgl.NID].tolist()


def test_given_sources_are_all_sources() -> None:
    g = dgl.graph(([1, 2, 7], [2, 3, 3]))
    assert ids(dgl.to_block(g, [3, 2], src_nodes=[3, 2, 7, 1]).srcdata) == [3, 2, 7, 1]
    assert ids(dgl.to_block(g, src_nodes=[2, 3, 7, 1]).srcdata) == [2, 3, 7, 1]
    for sources, with_dst in (
        ([3], False),  # of no edge
        ([1, 2], False),  # not of all edges
        ([1, 2, 7, 7], False),  # twice
        ([], False),
        ([1, 7], True),  # no destinations
        ([2, 3, 7, 1], True),  # in another order
        ([7, 1, 3, 2], True),  # not first
        ([3, 2, 7], True),
    ):
        with pytest.raises(dgl.InvalidInput, match="src_nodes"):
            dgl.to_block(g, [3, 2], include_dst_in_src=with_dst, src_nodes=sources)
    with pytest.raises(dgl.OutOfRange):
        dgl.to_block(g, [3, 2], include_dst_in_src=False, src_nodes=[1, 2, 7, 8])


def test_given_sources_by_type() -> None:
    dst = {"user": [1], "game": [2, 0]}
    block = dgl.to_block(typed(), dst, False, {"user": [2, 1, 0], "game": [0]})
    assert ids(block.srcnodes["user"].data) == [2, 1, 0]
    assert ids(block.srcnodes["game"].data) == [0]
    assert edges_of(block, "plays") == [(2, 1), (2, 1), (1, 0)]
    block = dgl.to_block(typed(), dst, src_nodes={"user": [1, 2, 0], "game": [2, 0]})
    assert ids(block.srcnodes["user"].data) == [1, 2, 0]
    for wrong in ({"user": [1, 0]}, {"user": [1], "game": [0]}):
        with pytest.raises(dgl.InvalidInput, match="src_nodes"):
            dgl.to_block(typed(), dst, False, wrong)
    with pytest.raises(dgl.InvalidInput, match="src_nodes"):
        dgl.to_block(typed(), dst, src_nodes={"user": [1, 0]})


@pytest.mark.parametrize(
    ("dst", "kind", "message"),
    [
        ([3], ValueError, "an edge ends at node 2 of type '_N', which is not among dst_nodes"),
        ([3, 2, 3], ValueError, "node 3 stands twice.*torch.unique"),
        ([3, 2, 99], IndexError, "node 99 does not exist"),
        ([3, 2, -1], IndexError, "node -1 does not exist"),
    ],
)
def test_bad_destinations_are_explained(dst: Any, kind: Any, message: str) -> None:
    g = dgl.graph(([1, 2, 7], [2, 3, 3]))
    for _ in range(2):  # the second call finds nothing left over from the first
        with pytest.raises(kind, match=message) as error:
            dgl.to_block(g, dst)
        assert isinstance(error.value, dgl.DGLError)
    assert ids(dgl.to_block(g, [2, 3]).srcdata) == [2, 3, 1, 7]


def test_typed_block() -> None:
    block = dgl.to_block(typed(), {"user": [1], "game": [2, 0]})
    assert ids(block.dstnodes["game"].data) == [2, 0]
    assert ids(block.srcnodes["game"].data) == [2, 0]
    assert ids(block.srcnodes["user"].data) == [1, 0]
    assert edges_of(block, "plays") == [(1, 1), (1, 1), (0, 0)]
    assert block.num_dst_nodes("user") == 1
    assert (block.srctypes, block.dsttypes) == (["game", "user"], ["game", "user"])
    part = block["plays"]
    assert part.is_block
    assert (part.num_src_nodes(), part.num_dst_nodes()) == (2, 2)
    with pytest.raises(dgl.DGLError, match="ntype="):
        dgl.to_block(typed(), [0])
    with pytest.raises(dgl.DGLError, match=r"'user'.*dst_nodes"):
        dgl.to_block(typed(), {"game": [0, 2]})


def test_looks_of_a_block() -> None:
    block = dgl.to_block(toy(), [0, 1, 2])
    assert repr(block) == "Block(num_src_nodes=3, num_dst_nodes=3, num_edges=5)"
    assert repr(dgl.to_block(typed(), {"user": [1], "game": [2, 0]})) == (
        "Block(num_src_nodes={'game': 2, 'user': 2},\n"
        "      num_dst_nodes={'game': 2, 'user': 1},\n"
        "      num_edges={('game', 'made by', 'user'): 1, ('user', 'follows', 'user'): 2, "
        "('user', 'plays', 'game'): 3},\n"
        "      metagraph=[('game', 'user', 'made by'), ('user', 'user', 'follows'), "
        "('user', 'game', 'plays')])"
    )


def test_methods_of_a_block() -> None:
    block = dgl.to_block(dgl.graph(([1, 2, 7], [2, 3, 3])), [3, 2])
    assert block.is_block
    assert isinstance(block, dgl.DGLBlock)
    assert isinstance(block, dgl.DGLGraph)
    assert (block.number_of_src_nodes(), block.number_of_dst_nodes()) == (4, 2)
    assert block.num_nodes() == block.number_of_nodes() == 6
    assert block.srcnodes().tolist() == [0, 1, 2, 3]
    assert block.dstnodes().tolist() == [0, 1]
    assert block.in_degrees().tolist() == [2, 1]
    assert block.out_degrees().tolist() == [0, 1, 1, 1]
    with block.local_scope():
        block.srcdata["h"] = torch.ones(4)
        block.dstdata["h"] = torch.ones(2)
        block.edata["h"] = torch.ones(3)
    assert "h" not in block.srcdata
    assert same_ids(block.to("cpu"), block)
    assert block.int().idtype == torch.int32
    for wrong in (torch.ones(2), torch.ones(6)):
        with pytest.raises(dgl.DGLError, match="expected 4 rows"):
            block.srcdata["h"] = wrong
    with pytest.raises(dgl.DGLError, match=r"to_block.*block"):
        dgl.to_block(block)
    with pytest.raises(dgl.DGLError, match=r"srcdata.*dstdata"):
        block.ndata  # noqa: B018


def test_types_of_a_block_by_side() -> None:
    g = dgl.graph([(0, 2), (1, 2)])
    g.ndata["h"] = torch.arange(3)
    block = dgl.to_block(g, [2])
    assert (block.num_nodes("SRC/_N"), block.num_nodes("DST/_N"), block.num_nodes()) == (3, 1, 4)
    assert block.nodes["SRC/_N"].data["h"].tolist() == [2, 0, 1]
    assert block.nodes["DST/_N"].data["h"].tolist() == [2]
    assert block.nodes().tolist() == [0]
    for ntype in ("SRC/x", "x"):
        with pytest.raises(dgl.NotFound, match=ntype):
            block.num_nodes(ntype)
        with pytest.raises(dgl.NotFound, match=ntype):
            block.nodes[ntype]
    with pytest.raises(dgl.NotFound):
        g.num_nodes("SRC/_N")  # it has no sides


def test_types_of_a_bipartite_graph_by_side() -> None:
    g = dgl.heterograph({("a", "r", "b"): ([0, 1, 2], [0, 1, 1])})
    g.nodes["SRC/a"].data["h"] = torch.ones(3)
    assert list(g.nodes["a"].data) == ["h"]
    assert (g.num_nodes("SRC/a"), g.num_nodes("DST/b")) == (3, 2)
    assert g.nodes("DST/b").tolist() == [0, 1]
    assert g.subgraph({"SRC/a": [1, 2], "DST/b": [1]}).num_edges() == 2
    with pytest.raises(dgl.NotFound):
        g.num_nodes("DST/a")
    block = dgl.to_block(g.in_subgraph({"b": [1]}), {"b": [1]})
    sides = ("SRC/a", "SRC/b", "DST/a", "DST/b")
    assert [block.num_nodes(side) for side in sides] == [2, 1, 0, 1]
    assert block.num_nodes("b") == 2


def same_ids(a: dgl.Block, b: dgl.Block) -> bool:
    return ids(a.srcdata) == ids(b.srcdata) and ids(a.dstdata) == ids(b.dstdata)


# ------------------------------------------------------------------------------- reference
def slow_block(
    edges: list[tuple[int, int]], dst: list[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Number sources by first sight with a dictionary."""
    local = {v: i for i, v in enumerate(dst)}
    for u, _ in edges:
        local.setdefault(u, len(local))
    return list(local), [(local[u], local[v]) for u, v in edges]


@MANY
@given(graphs(max_nodes=12), st.data())
def test_against_a_dictionary(g: dgl.Graph, data: st.DataObject) -> None:
    edges = edges_of(g)
    extra = data.draw(st.lists(st.integers(0, max(g.num_nodes() - 1, 0)), max_size=3))
    ends = {v for _, v in edges} | set(extra if g.num_nodes() else [])
    dst = data.draw(st.permutations(sorted(ends)))
    block = dgl.to_block(g, torch.tensor(dst, dtype=g.idtype))
    src, local = slow_block(edges, dst)
    assert ids(block.srcdata) == src
    assert ids(block.dstdata) == dst
    assert edges_of(block) == local
    assert block.edata[dgl.EID].tolist() == list(range(len(edges)))
    apart = dgl.to_block(g, torch.tensor(dst, dtype=g.idtype), include_dst_in_src=False)
    src_alone = list(dict.fromkeys(u for u, _ in edges))
    assert ids(apart.srcdata) == src_alone and ids(apart.dstdata) == dst
    assert edges_of(apart) == [(src_alone.index(u), dst.index(v)) for u, v in edges]
    assert block.idtype == block.srcdata[dgl.NID].dtype == g.idtype
    for name in g.ndata:
        assert torch.equal(block.srcdata[name], g.ndata[name][src])
        assert torch.equal(block.dstdata[name], g.ndata[name][dst])
    for name in g.edata:
        assert torch.equal(block.edata[name], g.edata[name])


@MANY
@given(typed_graphs())
def test_typed_against_dictionaries(g: dgl.Graph) -> None:
    block = dgl.to_block(g)
    for ntype in g.ntypes:
        into = [e for e in g.canonical_etypes if e[2] == ntype]
        dst = sorted({v for e in into for _, v in edges_of(g, e)})
        assert ids(block.dstnodes[ntype].data) == dst
        out = [e for e in g.canonical_etypes if e[0] == ntype]
        src = list(dict.fromkeys([*dst, *(u for e in out for u, _ in edges_of(g, e))]))
        assert ids(block.srcnodes[ntype].data) == src
        assert block.srcnodes[ntype].data["x"].tolist() == [v + 0.5 for v in src]
    for u, r, v in g.canonical_etypes:
        src, dst = ids(block.srcnodes[u].data), ids(block.dstnodes[v].data)
        restored = [(src[a], dst[b]) for a, b in edges_of(block, (u, r, v))]
        assert restored == edges_of(g, (u, r, v))
