"""DistGraph: what can be asked of a graph in parts, and opening it again and again."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistTensor, find_edges, initialize
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, PartitionError
from tests.distributed import cut as cuts
from tests.distributed.cut import PLAYS
from tests.helpers import run_script


# --------------------------------------------------------------------------------------- queries
def test_sizes_and_types(plain, typed):
    g, h = plain.parts, typed.parts
    assert (g.num_nodes(), g.num_edges(), g.number_of_nodes("_N")) == (200, 2300, 200)
    assert (g.ntypes, g.etypes, g.canonical_etypes) == (["_N"], ["_E"], [("_N", "_E", "_N")])
    assert (g.is_homogeneous, h.is_homogeneous, g.rank()) == (True, False, 0)
    assert h.ntypes == typed.whole.ntypes and h.canonical_etypes == typed.whole.canonical_etypes
    assert (h.num_nodes(), h.num_nodes("game"), h.num_edges("plays")) == (92, 25, 300)
    assert h.num_edges() == 740 == h.number_of_edges()
    assert h.to_canonical_etype("plays") == PLAYS and h.get_etype_id("plays") == 2
    assert g.nodes().tolist() == list(range(200)) and h.nodes("dev").tolist() == list(range(7))
    assert g.get_edge_partition_policy(None).policy_str == "edge~_N:_E:_N"
    assert h.get_edge_partition_policy("plays").policy_str == "edge~user:plays:game"
    g.barrier()


def asked(g: Any, etype: Any) -> list[Any]:
    """The answers to all queries about a relation."""
    chance = torch.Generator().manual_seed(3)
    u, v = (torch.randint(g.num_nodes(t), (30,), generator=chance) for t in etype[::2])
    eids = torch.randperm(g.num_edges(etype), generator=chance)[:30]
    src, dst = g.find_edges(eids, etype=etype)
    found = [src, dst]
    for degrees, ids in ((g.in_degrees, v), (g.out_degrees, u)):
        found += [degrees(x, etype=etype) for x in (ids, ids.int(), int(ids[0]), [])]
        found.append(degrees(etype=etype))
    for ends in ((u, v), (int(u[0]), int(v[0]))):
        found.append(g.has_edges_between(*ends, etype=etype))
    found.append(g.edge_ids(src, dst, etype=etype))
    found.append(int(g.edge_ids(int(src[0]), int(dst[0]), etype=etype)))
    found += g.edge_ids(src[:9], dst[:9], return_uv=True, etype=etype)
    for relabel in (True, False):
        small = g.edge_subgraph({etype: eids}, relabel_nodes=relabel)
        found += [small.num_nodes(), *small.edges(etype=etype), small.edges[etype].data[dgl.EID]]
        found += [small.nodes[t].data[dgl.NID] for t in etype[::2] if relabel]
    return found


def test_queries_are_those_of_the_whole_graph(plain, typed):
    for c in (plain, typed):
        whole = cuts.renumbered(c)
        for etype in whole.canonical_etypes:
            for ours, theirs in zip(asked(c.parts, etype), asked(whole, etype), strict=True):
                assert type(ours) is type(theirs)
                assert torch.equal(torch.as_tensor(ours), torch.as_tensor(theirs))
    g = plain.parts
    mask = torch.zeros(2300, dtype=torch.bool)
    mask[:5] = True
    sub = g.edge_subgraph(mask, store_ids=False, preserve_nodes=True)
    assert (sub.num_edges(), sub.num_nodes()) == (5, 200)
    assert torch.equal(*(call([7])[0] for call in (g.find_edges, partial(find_edges, g))))
    u = int((g.in_degrees() == 0).nonzero()[0])
    with pytest.raises(NotFound, match=rf"\(3, {u}\)"):
        g.edge_ids(3, u)
    with pytest.raises(InvalidInput, match="edge type"):
        typed.parts.edge_ids([1], [1])


def test_queries_with_homogeneous_ids(typed):
    g, book = typed.parts, typed.parts.get_partition_book()
    for end, of in ((2, g.in_degrees), (0, g.out_degrees)):  # edges of all types count
        expected = torch.zeros(92, dtype=torch.int64)
        for etype in g.canonical_etypes:
            ids = book.map_to_homo_nid(torch.arange(g.num_nodes(etype[end])), etype[end])
            expected[ids] += of(etype=etype)
        assert torch.equal(of(), expected) and of(40) == expected[40]
    ends = g.find_edges(torch.arange(740))
    kinds, eids = book.map_to_per_etype(torch.arange(740))
    for number, etype in enumerate(g.canonical_etypes):
        own = g.find_edges(eids[kinds == number], etype)
        for end, ours, ntype in zip(own, ends, etype[::2], strict=True):
            assert torch.equal(book.map_to_homo_nid(end, ntype), ours[kinds == number])


# --------------------------------------------------------------------------------------- opening


def test_what_cannot_be_opened(tmp_path):
    config = tmp_path / "g.json"
    cuts.cut(cuts.plain(), 2, tmp_path)
    with pytest.raises(PartitionError, match="expected graph 'h', found 'g'"):
        DistGraph("h", part_config=config)
    with pytest.raises(PartitionError, match=r"none.json"):
        DistGraph("g", part_config=tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="part_config="):
        DistGraph("g")
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
