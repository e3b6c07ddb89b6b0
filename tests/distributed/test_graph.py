"""DistGraph: what can be asked of a graph in parts, and opening it again and again."""

from __future__ import annotations

import json
import pickle

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistTensor, find_edges, initialize, load_partition_book
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, OutOfRange, PartitionError
from tests.distributed import cut as cuts
from tests.distributed.cut import FOLLOWS, MAKES, PLAYS
from tests.helpers import run_script


# --------------------------------------------------------------------------------------- queries
def test_sizes_and_types(plain, typed):
    g, h = plain.parts, typed.parts
    assert (g.num_nodes(), g.num_edges(), g.number_of_nodes("_N")) == (200, 2300, 200)
    assert (g.ntypes, g.etypes, g.canonical_etypes) == (["_N"], ["_E"], [("_N", "_E", "_N")])
    assert (g.idtype, g.device, g.graph_name) == (torch.int64, torch.device("cpu"), "g")
    assert (g.is_homogeneous, h.is_homogeneous, g.rank()) == (True, False, 0)
    assert h.ntypes == typed.whole.ntypes and h.canonical_etypes == typed.whole.canonical_etypes
    assert (h.num_nodes(), h.num_nodes("game"), h.num_edges("plays")) == (92, 25, 300)
    assert h.num_edges() == 740 == h.number_of_edges()
    assert [h.get_ntype_id(t) for t in h.ntypes] == [0, 1, 2]
    assert [h.get_etype_id(t) for t in h.etypes] == [0, 1, 2]
    assert h.to_canonical_etype("plays") == PLAYS
    assert g.nodes().tolist() == list(range(200)) and h.nodes("dev").tolist() == list(range(7))
    assert g.get_edge_partition_policy(None).policy_str == "edge~_N:_E:_N"
    assert h.get_edge_partition_policy("plays").policy_str == "edge~user:plays:game"
    g.barrier()
    g.client.barrier()


def test_degrees(plain):
    order = plain.nodes["_N"]
    whole, g = plain.whole, plain.parts
    assert torch.equal(g.in_degrees(), whole.in_degrees()[order])
    assert torch.equal(g.out_degrees(), whole.out_degrees()[order])
    ids = torch.randperm(200)[:50]
    assert torch.equal(g.in_degrees(plain.new(ids)), whole.in_degrees(ids))
    assert torch.equal(g.out_degrees(plain.new(ids).int()), whole.out_degrees(ids))
    assert g.in_degrees(int(plain.new(0))) == whole.in_degrees(0)
    assert g.in_degrees([]).tolist() == []


def test_typed_degrees(typed):
    whole, g, book = typed.whole, typed.parts, typed.parts.get_partition_book()
    for etype in g.canonical_etypes:
        src, dst = typed.nodes[etype[0]], typed.nodes[etype[2]]
        assert torch.equal(g.in_degrees(etype=etype), whole.in_degrees(etype=etype)[dst])
        assert torch.equal(g.out_degrees(etype=etype[1]), whole.out_degrees(etype=etype)[src])
    for inward, of in ((True, g.in_degrees), (False, g.out_degrees)):  # homogeneous: all types
        expected = torch.zeros(92, dtype=torch.int64)
        for etype in g.canonical_etypes:
            ntype = etype[2 if inward else 0]
            ids = book.map_to_homo_nid(torch.arange(g.num_nodes(ntype)), ntype)
            expected[ids] += of(etype=etype)
        assert torch.equal(of(), expected) and of(40) == expected[40]


def test_find_edges(plain, typed):
    ids = torch.randperm(2300)
    order = plain.nodes["_N"]
    for call in (plain.parts.find_edges, lambda e: find_edges(plain.parts, e)):
        src, dst = call(plain.new_edges(ids))
        for ours, theirs in zip((src, dst), plain.whole.find_edges(ids), strict=True):
            assert torch.equal(order[ours], theirs)
    assert [end.tolist() for end in plain.parts.find_edges([])] == [[], []]
    assert len(plain.parts.find_edges(0)[0]) == 1
    g, book = typed.parts, typed.parts.get_partition_book()
    src, dst = g.find_edges(torch.arange(740))
    for number, etype in enumerate(g.canonical_etypes):
        kinds, eids = book.map_to_per_etype(torch.arange(740))
        for end, ours, ntype in zip(
            g.find_edges(eids[kinds == number], etype), (src, dst), etype[::2], strict=True
        ):
            assert torch.equal(book.map_to_homo_nid(end, ntype), ours[kinds == number])
        new = typed.new_edges(torch.arange(g.num_edges(etype)), etype)
        for end, theirs, ntype in zip(
            g.find_edges(new, etype), typed.whole.edges(etype=etype), etype[::2], strict=True
        ):
            assert torch.equal(typed.nodes[ntype][end], theirs)


def test_edge_subgraph(plain, typed):
    ids = torch.randperm(2300)[:20]
    g, new = plain.parts, plain.new_edges(ids)
    sub = g.edge_subgraph(new)
    assert torch.equal(sub.edata[dgl.EID], new) and sub.num_nodes() < 200
    for ours, theirs in zip(sub.edges(), plain.whole.find_edges(ids), strict=True):
        assert torch.equal(plain.nodes["_N"][sub.ndata[dgl.NID][ours]], theirs)
    assert torch.equal(sub.edata["w"], plain.whole.edata["w"][ids])
    in_order = plain.whole.edge_subgraph(ids).ndata[dgl.NID]
    assert torch.equal(plain.nodes["_N"][sub.ndata[dgl.NID]], in_order)
    same = g.edge_subgraph(new, relabel_nodes=False)
    assert same.num_nodes() == 200 and torch.equal(same.edges()[0], g.find_edges(new)[0])
    assert g.edge_subgraph(new, preserve_nodes=True).num_nodes() == 200
    mask = torch.zeros(2300, dtype=torch.bool)
    mask[:5] = True
    assert g.edge_subgraph(mask, store_ids=False).num_edges() == 5
    h = typed.parts.edge_subgraph({"plays": [4, 2], MAKES: [0]})
    assert [h.num_edges(e) for e in (FOLLOWS, PLAYS, MAKES)] == [0, 2, 1]
    assert h.edges["plays"].data[dgl.EID].tolist() == [4, 2]


def test_local_partition(plain):
    g = plain.parts
    part = g.local_partition
    lo, hi = g.get_partition_book().node_ranges["_N"][:2]
    assert int(part.ndata["inner_node"].sum()) == hi - lo


def test_repr(plain, typed):
    parts = plain.parts.get_partition_book().num_partitions()
    assert repr(plain.parts) == (
        f"DistGraph(name='g', num_nodes=200, num_edges=2300, num_parts={parts},\n"
        "      ndata_schemes={'x': Scheme(shape=(3,), dtype=torch.float32)}\n"
        "      edata_schemes={'m': Scheme(shape=(), dtype=torch.bool), "
        "'w': Scheme(shape=(), dtype=torch.float32)})"
    )
    text = repr(typed.parts)
    assert "num_nodes={'dev': 7, 'game': 25, 'user': 60}" in text or "'user': 60" in text


def test_questions_that_make_no_sense(plain, typed):
    g, h = plain.parts, typed.parts
    with pytest.raises(OutOfRange, match="node 200 does not exist"):
        g.in_degrees([3, 200])
    with pytest.raises(OutOfRange, match="edge 2300 does not exist"):
        g.find_edges([2300])
    with pytest.raises(OutOfRange, match="edge -1 does not exist"):
        g.edge_subgraph([-1])
    with pytest.raises(NotFound, match="no node type 'bot'; the graph has"):
        h.num_nodes("bot")
    with pytest.raises(NotFound, match="no edge type 'bot'"):
        h.in_degrees(0, etype="bot")
    with pytest.raises(InvalidInput, match="say which node type is meant"):
        dgl.sampling.sample_neighbors(h, [0], 2)
    with pytest.raises(InvalidInput, match="say which edge type is meant"):
        h.get_etype_id(None)
    with pytest.raises(InvalidInput, match=r"never in one place; ask g.find_edges\(ids\)"):
        g.edges()


# --------------------------------------------------------------------------------------- opening
def test_forms_of_opening(tmp_path):
    config = cuts.cut(cuts.plain(), 2, tmp_path).parts.client.source[1]
    book, *_ = load_partition_book(config, 0)
    for args, options in (
        (("g", config), {}),
        (("g",), {"part_config": config}),
        (("g", book), {"part_config": config}),
        (("g", tmp_path / "g.json"), {}),
    ):
        assert DistGraph(*args, **options).num_nodes() == 200


def test_what_cannot_be_opened(tmp_path):
    config = tmp_path / "g.json"
    cuts.cut(cuts.plain(), 2, tmp_path)
    with pytest.raises(PartitionError, match="expected graph 'h', found 'g'"):
        DistGraph("h", part_config=config)
    with pytest.raises(PartitionError, match=r"none.json cannot be read \(No such file"):
        DistGraph("g", part_config=tmp_path / "none.json")
    for args in (("g",), ("g", load_partition_book(config, 0)[0])):
        with pytest.raises(InvalidInput, match="standalone mode reads the parts itself: give part"):
            DistGraph(*args)
    initialize()
    (tmp_path / "part1/graph/nodes/_N/halo.npy").unlink()
    with pytest.raises(PartitionError, match=r"halo.npy"):
        DistGraph("g", part_config=config)
    dgl.distributed.exit_client()
    with pytest.raises(GNNLabError, match=r"call gnnlab.distributed.initialize\(\) first"):
        DistGraph("g", part_config=config)


def test_a_cell_that_runs_again(tmp_path):
    """A graph opened again has the same tensors; after initialize() it is as in the files."""
    cuts.cut(cuts.plain(), 2, tmp_path)
    tensors = []
    for _ in range(2):
        g = DistGraph("g", part_config=tmp_path / "g.json")
        h = DistTensor((g.num_nodes(), 4), torch.float32, name="h")
        h[0] = h[0] + 1
        tensors.append(h)
    assert tensors[0][0].tolist() == tensors[1][0].tolist() == [[2.0] * 4]
    old = g
    for _ in range(2):
        initialize()
        g = DistGraph("g", part_config=tmp_path / "g.json")
        h = DistTensor((g.num_nodes(), 7), torch.float32, name="h")
        assert h[0].sum() == 0
    assert old.ndata["h"].shape == (200, 4) and g.ndata["h"].shape == (200, 7)
    policy = old.get_node_partition_policy("_N")
    late = DistTensor((200, 2), torch.float32, name="late", part_policy=policy)
    assert late.part_policy == policy and "late" in old.ndata and "late" not in g.ndata


def test_files_that_changed_are_opened_anew(tmp_path):
    one = cuts.cut(cuts.plain(), 2, tmp_path)
    other = cuts.plain()
    other.ndata["x"] = -other.ndata["x"]
    (tmp_path / "g.json").unlink()
    two = cuts.cut(other, 2, tmp_path)
    assert two.parts.ndata["x"][:].sum() == -one.parts.ndata["x"][:].sum()


def test_pickle_opens_the_same_graph(tmp_path):
    c = cuts.cut(cuts.plain(), 2, tmp_path)
    again = pickle.loads(pickle.dumps(c.parts))
    kept = DistTensor((200,), torch.float32, "t")
    assert "t" in again.ndata and again.num_edges() == 2300 and kept[0] == 0
    (tmp_path / "g.pkl").write_bytes(pickle.dumps((c.parts, c.parts.ndata["x"])))
    printed = run_script(
        f"""
        import pickle
        g, x = pickle.load(open({str(tmp_path / "g.pkl")!r}, "rb"))
        print(g.num_nodes(), int(g.sample_neighbors(range(200), -1).num_edges()), len(x[:]))
        """
    )
    assert printed.split() == ["200", "2300", "200"]


def test_paths_are_relative_to_the_json(tmp_path):
    cuts.cut(cuts.plain(), 2, tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    assert DistGraph("g", tmp_path / "b" / "g.json").num_edges() == 2300
    assert json.loads((tmp_path / "b" / "g.json").read_text())["num_parts"] == 2
