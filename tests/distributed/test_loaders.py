"""Loaders on a graph in parts give the mini-batches that they give on the whole graph.

The same seeds in the same order, the same edges and features; only IDs are others.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import DataLoader, NeighborSampler, NodeDataLoader
from gnnlab.distributed import DistEdgeDataLoader, DistNodeDataLoader, DistTensor
from gnnlab.errors import InvalidInput
from tests.dataloading.samples import FOLLOWS, PLAYED, PLAYS, REVERSE, friends, players
from tests.distributed import cut as cuts
from tests.distributed.cut import PARTS, Cut, Original

ONE = ("_N", "_E", "_N")


@pytest.fixture(scope="module", params=PARTS)
def plain(request, tmp_path_factory) -> Cut:
    return cuts.cut(friends(), request.param, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module", params=PARTS)
def typed(request, tmp_path_factory) -> Cut:
    return cuts.cut(players(), request.param, tmp_path_factory.mktemp("typed"))


def assert_same_epochs(c: Cut, whole: Any, parts: Any, num_epochs: int = 2) -> None:
    for _ in range(num_epochs):
        expected = [Original(None).batch(batch) for batch in whole]
        found = [Original(c).batch(batch) for batch in parts]
        assert len(found) == len(expected) > 1
        assert found == expected


# --------------------------------------------------------------------------------- nodes
def test_all_loaders_of_nodes(plain: Cut) -> None:
    seeds = torch.randperm(100)[:70]
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 4}
    for make in (DataLoader, NodeDataLoader, DistNodeDataLoader):
        sampler = NeighborSampler([3, 2], prefetch_node_feats=["x"])
        whole = make(plain.whole, seeds, sampler, **options)
        parts = make(plain.parts, plain.new(seeds), sampler, **options)
        assert len(parts) == len(whole) == 5
        assert_same_epochs(plain, whole, parts)


def test_seeds_of_several_types(typed: Cut) -> None:
    seeds = {"user": torch.arange(30), "game": torch.tensor([7, 3, 11])}
    new = {ntype: typed.new(ids, ntype) for ntype, ids in seeds.items()}
    sampler = NeighborSampler([{PLAYS: 2, "follows": 1, "played-by": -1}, 3])
    options: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 2}
    whole = DataLoader(typed.whole, seeds, sampler, **options)
    assert_same_epochs(typed, whole, DistNodeDataLoader(typed.parts, new, sampler, **options))


@pytest.mark.parametrize("options", [{"prefetch": 3}, {"num_workers": 2}], ids=str)
def test_whoever_makes_a_batch(plain: Cut, options: dict[str, Any]) -> None:
    common: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3}
    sampler = NeighborSampler([3, 3])
    asked = DataLoader(plain.parts, range(100), sampler, prefetch=0, **common)
    ahead = DataLoader(plain.parts, range(100), sampler, **options, **common)
    assert [Original(plain).batch(b) for b in asked] == [Original(plain).batch(b) for b in ahead]


class Pulls:
    """Names of the tensors that are read."""

    def __init__(self, client: Any, monkeypatch: Any) -> None:
        self.names: list[str] = []
        pull = client.pull

        def counted(policy: Any, name: str, ids: Any) -> torch.Tensor:
            self.names.append(name)
            return pull(policy, name, ids)

        monkeypatch.setattr(client, "pull", counted)


def test_features_are_read_when_they_are_looked_at(plain: Cut, monkeypatch: Any) -> None:
    pulls = Pulls(plain.parts.client, monkeypatch)
    loader = DistNodeDataLoader(plain.parts, range(100), NeighborSampler([3, 3]), batch_size=100)
    ((inputs, _, blocks),) = loader
    assert set(blocks[0].srcdata) == {dgl.NID, "x"}
    assert set(blocks[0].edata) == {dgl.EID, "w", "y"}
    assert pulls.names == []
    assert torch.equal(blocks[0].srcdata["x"], plain.parts.ndata["x"][inputs])
    assert torch.equal(blocks[1].edata["w"], plain.parts.edata["w"][blocks[1].edata[dgl.EID]])
    _ = blocks[0].srcdata["x"]
    assert pulls.names[:1] == ["node~_N~x"] and len(pulls.names) == 4


def test_named_features_are_read_ahead(plain: Cut, monkeypatch: Any) -> None:
    pulls = Pulls(plain.parts.client, monkeypatch)
    sampler = NeighborSampler([3, 3], prefetch_node_feats=["x"], prefetch_edge_feats=["w"])
    for _ in DistNodeDataLoader(plain.parts, range(100), sampler, batch_size=100):
        assert pulls.names == ["node~_N~x", "edge~_N:_E:_N~w", "edge~_N:_E:_N~w"]


# --------------------------------------------------------------------------------- edges
def by_original(c: Cut | None, k: int = 3) -> Any:
    """A negative sampler that goes by original IDs: edge e gets e + 1, e + 2, … as destinations."""

    def sample(g: Any, eids: Any) -> Any:
        found = {}
        for etype, ids in (eids if isinstance(eids, dict) else {ONE: eids}).items():
            original = torch.tensor(Original(c).edges(ids, etype), dtype=torch.int64)
            bound = g.num_nodes(etype[2])
            dst = ((original.unsqueeze(1) + torch.arange(1, k + 1)) % bound).flatten()
            src = g.find_edges(ids, etype)[0].repeat_interleave(k)
            found[etype] = src, dst if c is None else c.new(dst, etype[2])
        return found if isinstance(eids, dict) else found[ONE]

    return sample


def in_parts(values: torch.Tensor) -> DistTensor:
    tensor = DistTensor(values.shape, values.dtype)
    tensor[:] = values
    return tensor


EXCLUDE: dict[str, Any] = {
    "none": lambda c: {},
    "self": lambda c: {"exclude": "self"},
    "reverse_id": lambda c: {
        "exclude": "reverse_id",
        "reverse_eids": REVERSE if c is None else in_parts(c.new_edges(REVERSE[c.edges[ONE]])),
    },
    "callable": lambda c: {"exclude": lambda eids: torch.cat([eids, eids])},
}


@pytest.mark.parametrize("how", EXCLUDE)
def test_loaders_of_edges(plain: Cut, how: str) -> None:
    seeds = torch.randperm(3000)[:500]
    common: dict[str, Any] = {"batch_size": 200, "shuffle": True, "seed": 1}
    sampler = NeighborSampler([5, 5])
    whole, parts = (
        DistEdgeDataLoader(
            *(g, ids, sampler), negative_sampler=by_original(c), **EXCLUDE[how](c), **common
        )
        for g, ids, c in ((plain.whole, seeds, None), (plain.parts, plain.new_edges(seeds), plain))
    )
    assert_same_epochs(plain, whole, parts)
    _, pairs, _, blocks = next(iter(parts))
    assert torch.equal(pairs.edata["y"], plain.edges[ONE][pairs.edata[dgl.EID]])
    if how != "none":
        taken = torch.cat([block.edata["y"] for block in blocks])
        seen = pairs.edata["y"]
        left_out = torch.cat([seen, REVERSE[seen]]) if how == "reverse_id" else seen
        assert not torch.isin(taken, left_out).any()


@pytest.mark.parametrize("exclude", ["self", "reverse_types"])
def test_loaders_of_edges_of_several_types(typed: Cut, exclude: str) -> None:
    seeds = {PLAYS: torch.arange(0, 400, 3), FOLLOWS: torch.arange(50)}
    new = {etype: typed.new_edges(ids, etype) for etype, ids in seeds.items()}
    options: dict[str, Any] = {
        **{"batch_size": 60, "shuffle": True, "seed": 1, "exclude": exclude},
        "reverse_etypes": {"plays": "played-by", "played-by": "plays"},
    }
    sampler = NeighborSampler([-1, 3])
    whole, parts = (
        DistEdgeDataLoader(g, ids, sampler, negative_sampler=by_original(c), **options)
        for g, ids, c in ((typed.whole, seeds, None), (typed.parts, new, typed))
    )
    assert_same_epochs(typed, whole, parts)
    _, pairs, _, blocks = next(iter(parts))
    games = typed.edges[PLAYS][pairs.edges["plays"].data[dgl.EID]]
    back = torch.cat([typed.edges[PLAYED][b.edges["played-by"].data[dgl.EID]] for b in blocks])
    assert torch.isin(games, back).any() == (exclude == "self")


def test_reverse_edges_of_another_type(typed: Cut) -> None:
    g, ids = typed.parts, torch.randperm(400)[:100]
    for etype, back in ((PLAYS, PLAYED), (PLAYED, PLAYS)):
        found = g.reverse_edges(ids, etype, back[1])
        assert sorted(typed.edges[back][found]) == sorted(typed.edges[etype][ids])
    assert g.reverse_edges([], PLAYS, PLAYED).tolist() == []
    with pytest.raises(InvalidInput, match=str(FOLLOWS[1])):
        g.reverse_edges([0], PLAYS, FOLLOWS)


def test_types_whose_edges_do_not_pair_up_are_noticed(tmp_path) -> None:
    """Two users and games; edge 0 of type "back" leads back from another game than edge 0."""
    g = dgl.heterograph({("u", "to", "g"): ([0, 1], [0, 1]), ("g", "back", "u"): ([1, 0], [1, 0])})
    c = cuts.cut(g, 2, tmp_path)
    with pytest.raises(InvalidInput, match="back"):
        c.parts.reverse_edges([0, 1], "to", "back")


def test_reverse_ids_from_before_partitioning_are_noticed(plain: Cut) -> None:
    options = {"exclude": "reverse_id", "batch_size": 500}
    loader = DistEdgeDataLoader(
        plain.parts, range(3000), NeighborSampler([2]), reverse_eids=REVERSE, **options
    )
    with pytest.raises(InvalidInput, match=r"it is not its reverse\. Edges of a partitioned graph"):
        list(loader)
    none = torch.arange(3000)  # each edge in place of a reverse edge, on any graph
    for g in plain.parts, plain.whole:
        loader = DistEdgeDataLoader(g, range(9), NeighborSampler([2]), reverse_eids=none, **options)
        assert len(list(loader)) == 1
