from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given

import gnnlab as dgl
from tests.graph.samples import graphs, same, same_structure, toy, typed, typed_graphs
from tests.helpers import run_script


# -------------------------------------------------------------------------------- classes
def test_graphs_made_of_a_graph_are_of_its_class() -> None:
    class Roads(dgl.Graph):
        def longest(self) -> int:
            return int(self.edata["miles"].argmax())

    relation = dgl.graph(([0, 1, 2], [1, 2, 0])).relation()
    g = Roads({"town": 3}, {("town", "road", "town"): relation})
    g.edata["miles"] = torch.tensor([3.0, 8.0, 5.0])
    assert g.edge_subgraph([2, 1]).longest() == 1
    for made in (
        g.reverse(),
        g.add_self_loop(),
        dgl.batch([g, g]),
        g.local_var(),
        g.cpu(),
        g[None],
    ):
        assert type(made) is Roads
    assert type(dgl.to_block(g)) is dgl.Block


# ---------------------------------------------------------------------------------- looks


def test_repr_of_many_features_has_a_line_for_each() -> None:
    g = dgl.graph(([0, 1], [1, 2]))
    for name in ("feat", "label", "train_mask", "val_mask"):
        g.ndata[name] = torch.zeros(3, dtype=torch.bool)
    assert repr(g) == (
        "Graph(num_nodes=3, num_edges=2,\n"
        "      ndata_schemes={'feat': Scheme(shape=(), dtype=torch.bool),\n"
        "                     'label': Scheme(shape=(), dtype=torch.bool),\n"
        "                     'train_mask': Scheme(shape=(), dtype=torch.bool),\n"
        "                     'val_mask': Scheme(shape=(), dtype=torch.bool)}\n"
        "      edata_schemes={})"
    )
    for number in range(20):
        g.edata[f"w{number}"] = torch.zeros(2)
    assert len(repr(g).splitlines()) == 14 and repr(g).endswith("… and 12 more})")


def test_repr_of_several_types() -> None:
    assert repr(typed()) == (
        "Graph(num_nodes={'game': 4, 'user': 3},\n"
        "      num_edges={('game', 'made by', 'user'): 1, ('user', 'follows', 'user'): 2, "
        "('user', 'plays', 'game'): 3},\n"
        "      metagraph=[('game', 'user', 'made by'), ('user', 'user', 'follows'), "
        "('user', 'game', 'plays')])"
    )
    several = {("u", r, v): ([0], [0]) for r, v in (("a", "g"), ("b", "u"), ("c", "g"))}
    assert repr(dgl.heterograph(several)).endswith(
        "metagraph=[('u', 'g', 'a'), ('u', 'g', 'c'), ('u', 'u', 'b')])"
    )


# ---------------------------------------------------------------------------------- types
def test_edge_types_by_their_names() -> None:
    g = typed()
    assert g.to_canonical_etype("plays") == ("user", "plays", "game")
    assert g.to_canonical_etype(("user", "plays", "game")) == ("user", "plays", "game")
    assert toy().to_canonical_etype(None) == ("_N", "_E", "_N")
    with pytest.raises(KeyError, match="plays"):
        g.to_canonical_etype(("game", "plays", "user"))
    doubled = dgl.heterograph({("a", "r", "a"): ([0], [0]), ("a", "r", "b"): ([0], [0])})
    with pytest.raises(ValueError, match=r"'r'.*\('a', 'r', 'b'\)"):
        doubled.num_edges("r")
    with pytest.raises(KeyError, match="'c'"):
        doubled.get_ntype_id("c")


def test_slice_of_one_edge_type() -> None:
    g = typed()
    part = g["plays"]
    assert part.canonical_etypes == [("user", "plays", "game")]
    assert (part.ntypes, part.srctypes, part.dsttypes) == (["user", "game"], ["user"], ["game"])
    assert (part.num_src_nodes(), part.num_dst_nodes(), part.num_edges()) == (3, 4, 3)
    assert part.in_degrees().tolist() == [2, 0, 1, 0]
    part.edata["new"] = torch.ones(3)
    part.dstdata["new"] = torch.ones(4)
    assert "new" in g.edges["plays"].data
    assert "new" in g.nodes["game"].data
    part = g["follows"]
    assert part.is_homogeneous
    assert part.ndata["x"].tolist() == [0, 1, 2]
    assert same_structure(toy()["_E"], toy())
    with pytest.raises(KeyError, match="plays"):
        g["likes"]


# ------------------------------------------------------------------------------- features
def test_local_scope_restores_features_and_structure() -> None:
    g = toy()
    with g.local_scope():
        g.ndata["h"] = torch.ones(4)
        g.ndata["x"] = torch.zeros(4)
        g.edata.pop("w")
        g.srcdata["s"] = torch.ones(4)
        g.add_edges([0], [3])
        g.remove_nodes([0])
    assert same(g, toy())
    g = typed()
    with g.local_scope():
        g.nodes["user"].data["h"] = torch.ones(3)
        del g.edges["plays"].data["w"]
    assert same(g, typed())


def test_local_scope_ends_with_an_error_and_can_be_nested() -> None:
    g = toy()
    with pytest.raises(RuntimeError, match="stop"), g.local_scope():
        g.ndata["h"] = torch.ones(4)
        with g.local_scope():
            g.ndata["inner"] = torch.ones(4)
        assert sorted(g.ndata) == ["h", "x"]
        raise RuntimeError("stop")
    assert same(g, toy())


@pytest.mark.parametrize("twin_of", [lambda g: g.local_var(), lambda g: g.clone(), copy.copy])
def test_shallow_copies_share_tensors_not_dictionaries(twin_of: Callable[..., Any]) -> None:
    for g in (toy(), typed()):
        twin = twin_of(g)
        assert same(twin, g)
        ntype = g.ntypes[0]
        assert twin.nodes[ntype].data["x"] is g.nodes[ntype].data["x"]
        twin.nodes[ntype].data["new"] = torch.ones(4)
        assert "new" not in g.nodes[ntype].data


# -------------------------------------------------------------------------------- formats
def test_formats_are_made_when_needed() -> None:
    g = toy()
    assert g.formats() == {"created": ["coo"], "not created": ["csr", "csc"]}
    g.in_edges(0)
    assert g.formats()["created"] == ["coo", "csc"]
    g.create_formats_()
    assert g.formats() == {"created": ["coo", "csr", "csc"], "not created": []}
    part = g.formats(["csc", "coo"])
    assert part.formats()["not created"] == []
    assert same(part, g)
    for wrong in ("csd", [], ["coo", "x"]):
        with pytest.raises(dgl.DGLError, match="coo, csr, csc"):
            g.formats(wrong)


# ------------------------------------------------------------------------ copies and files
def through_pickle(g: Any) -> Any:
    return pickle.loads(pickle.dumps(g))


def through_torch(g: Any) -> Any:
    file = io.BytesIO()
    torch.save(g, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("through", [through_pickle, through_torch, copy.deepcopy])
def test_copies_are_equal_and_independent(through: Callable[..., Any]) -> None:
    for g in (toy(), toy(torch.int32), typed(), toy().formats("csc"), typed()["plays"]):
        twin = through(g)
        assert same(twin, g)
        assert twin.formats() == g.formats()
        name = g.ntypes[0]
        twin.nodes[name].data["x"] += 1
        assert not torch.equal(twin.nodes[name].data["x"], g.nodes[name].data["x"])
        twin.nodes[name].data["new"] = torch.ones(twin.num_nodes(name))
        assert "new" not in g.nodes[name].data


@pytest.mark.parametrize("through", [through_pickle, through_torch, copy.deepcopy])
def test_copies_of_blocks_and_frontiers(through: Callable[..., Any]) -> None:
    for g in (toy(), typed()):
        frontier = g.in_subgraph({g.ntypes[-1]: [1]})
        block = dgl.to_block(frontier)
        twin = through(block)
        assert twin.is_block
        assert repr(twin) == repr(block)
        for t in block.srctypes:
            assert torch.equal(twin.srcnodes[t].data[dgl.NID], block.srcnodes[t].data[dgl.NID])
            assert torch.equal(twin.srcnodes[t].data["x"], block.srcnodes[t].data["x"])
        assert same(through(frontier), frontier)


@given(graphs() | typed_graphs())
def test_any_graph_survives_pickle(g: dgl.Graph) -> None:
    assert same(through_pickle(g), g)
    g.create_formats_()
    twin = through_pickle(g)
    assert same(twin, g)
    for etype in g.canonical_etypes:
        assert twin.out_degrees(etype=etype).tolist() == g.out_degrees(etype=etype).tolist()
        assert twin.in_edges(twin.dstnodes(etype[2]), "eid", etype).tolist() == (
            g.in_edges(g.dstnodes(etype[2]), "eid", etype).tolist()
        )


# -------------------------------------------------------------------------- other processes
def test_a_fresh_child_maps_the_same_memory() -> None:
    run_script(
        """
        import torch
        import gnnlab as dgl

        def work(rank, g):
            assert g.ndata["x"].is_shared()
            found = []
            g.relation().map(lambda tensor: found.append(tensor) or tensor)
            assert found and all(tensor.is_shared() for tensor in found)
            assert g.in_degrees().tolist() == [1, 3, 1, 0]
            g.ndata["x"] += 10

        if __name__ == "__main__":
            g = dgl.graph(([0, 0, 1, 2, 2], [1, 1, 1, 2, 0]), num_nodes=4)
            g.ndata["x"] = torch.arange(4.0)
            g.create_formats_()
            g.share_memory()
            torch.multiprocessing.spawn(work, (g,))
            assert g.ndata["x"].tolist() == [10, 11, 12, 13]
        """
    )


def test_shared_memory_of_typed_graphs_slices_and_deferred_features() -> None:
    g = typed().share_memory()
    assert same(g, typed())
    assert g.nodes["game"].data["price"].is_shared()
    part = typed().in_subgraph({"game": [0]}).share_memory()
    assert part.edges["plays"].data["w"].is_shared()
    assert typed()["plays"].share_memory().num_edges() == 3


def test_formats_are_made_within_what_is_allowed():
    g = dgl.rand_graph(20, 60).formats("csc")
    assert g.formats() == {"created": ["csc"], "not created": []}
    g.create_formats_()
    assert g.formats() == {"created": ["csc"], "not created": []}
    assert g.relation().created() == ["csc"]
