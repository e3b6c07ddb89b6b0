"""Sampling a graph in parts gives, ID for ID, what sampling the whole graph gives."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import initialize
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from tests.distributed import cut as cuts
from tests.distributed.cut import Cut, Original
from tests.helpers import examples

KINDS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "replace": {"replace": True},
    "weights": {"prob": "w"},
    "weights, replace": {"prob": "w", "replace": True},
    "mask": {"prob": "m"},
}
BY_KIND = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())


def both(c: Cut, work: Any) -> tuple[Any, Any]:
    """Do the same on the whole graph and on its parts, with the same randomness."""
    found = []
    for g, own_nodes, own_edges in (
        (c.whole, lambda ids, *_: torch.as_tensor(ids), lambda ids, *_: torch.as_tensor(ids)),
        (c.parts, c.new, c.new_edges),
    ):
        dgl.seed(3)
        found.append(work(g, own_nodes, own_edges))
    return tuple(found)


def assert_same_frontier(c: Cut, whole: dgl.Graph, parts: dgl.Graph) -> None:
    assert whole.canonical_etypes == parts.canonical_etypes
    for etype in whole.canonical_etypes:
        assert parts.num_nodes(etype[0]) == whole.num_nodes(etype[0])
        for end, ours, ntype in zip(
            whole.edges(etype=etype), parts.edges(etype=etype), etype[::2], strict=True
        ):
            assert torch.equal(c.nodes[ntype][ours], end)
        ours = parts.edges[etype].data[dgl.EID]
        assert torch.equal(c.edges[etype][ours], whole.edges[etype].data[dgl.EID])


# ----------------------------------------------------------------------------------- frontiers
@BY_KIND
@pytest.mark.parametrize("fanout", [-1, 3, 100])
def test_frontier(plain, options, fanout):
    seeds = torch.randperm(200)[:80]
    whole, parts = both(
        plain, lambda g, new, _: dgl.sampling.sample_neighbors(g, new(seeds), fanout, **options)
    )
    assert_same_frontier(plain, whole, parts)
    assert torch.equal(parts.edata["w"], whole.edata["w"])


def test_homogeneous_seeds_on_a_typed_graph(typed):
    """The same edges under homogeneous IDs, with the ID of each edge's type."""
    book = typed.parts.get_partition_book()
    seeds = {"game": typed.new([3, 8, 24], "game"), "user": typed.new([1, 0], "user")}
    flat = torch.cat([book.map_to_homo_nid(ids, ntype) for ntype, ids in seeds.items()])
    dgl.seed(0)
    by_type = dgl.distributed.sample_neighbors(typed.parts, seeds, 3)
    dgl.seed(0)
    frontier = dgl.distributed.sample_etype_neighbors(typed.parts, flat, 3)
    assert frontier.ntypes == ["_N"] and frontier.num_nodes() == 92
    kinds, eids = book.map_to_per_etype(frontier.edata[dgl.EID])
    assert torch.equal(kinds, frontier.edata[dgl.ETYPE])
    for number, etype in enumerate(typed.parts.canonical_etypes):
        chosen = kinds == number
        assert torch.equal(eids[chosen], by_type.edges[etype].data[dgl.EID])
        for end, ours, ntype in zip(
            by_type.edges(etype=etype), frontier.edges(), etype[::2], strict=True
        ):
            type_ids, within = book.map_to_per_ntype(ours[chosen])
            assert set(type_ids.tolist()) <= {typed.parts.ntypes.index(ntype)}
            assert torch.equal(within, end)
    block = dgl.to_block(frontier, flat)
    assert torch.equal(block.dstdata[dgl.NID], flat) and dgl.ETYPE in block.edata


def test_homogeneous_exclusion_on_a_typed_graph(typed):
    book = typed.parts.get_partition_book()
    flat = book.map_to_homo_nid(torch.arange(25), "game")
    everything = dgl.distributed.sample_neighbors(typed.parts, flat, -1).edata[dgl.EID]
    rest = dgl.distributed.sample_neighbors(typed.parts, flat, -1, exclude_edges=everything[:100])
    assert torch.equal(rest.edata[dgl.EID].sort().values, everything[100:].sort().values)


# ------------------------------------------------------------------------------------ subgraphs
def test_in_subgraph(plain, typed):
    seeds = [5, 0, 199, 3]
    for call in (dgl.in_subgraph, dgl.distributed.in_subgraph):
        whole = dgl.in_subgraph(plain.whole, seeds)
        assert_same_frontier(plain, whole, call(plain.parts, plain.new(seeds)))
    by_type = {"user": [4, 1], "game": [0]}
    new = {t: typed.new(ids, t) for t, ids in by_type.items()}
    whole = dgl.in_subgraph(typed.whole, by_type)
    assert_same_frontier(typed, whole, dgl.in_subgraph(typed.parts, new))
    flat = torch.cat([typed.parts._book.map_to_homo_nid(ids, t) for t, ids in new.items()])
    assert dgl.in_subgraph(typed.parts, flat).num_edges() == whole.num_edges()
    small = dgl.in_subgraph(plain.parts, plain.new([5]), relabel_nodes=True)
    assert small.num_nodes() == len(small.ndata[dgl.NID]) < 200


# --------------------------------------------------------------------------------------- blocks


@examples(40)
@given(st.data())
def test_any_graph_in_any_parts(tmp_path_factory, data):
    """Parts may be empty, types without edges, nodes without neighbors."""
    sizes = {ntype: data.draw(st.integers(1, 6), label=ntype) for ntype in ("a", "b")}
    ends = {
        etype: [
            data.draw(st.lists(st.integers(0, sizes[ntype] - 1), min_size=n, max_size=n))
            for ntype in etype[::2]
        ]
        for etype, n in ((("a", "r", "a"), 9), (("a", "s", "b"), data.draw(st.integers(0, 7))))
    }
    ends = {e: tuple(torch.tensor(x, dtype=torch.int64) for x in pair) for e, pair in ends.items()}
    g = dgl.heterograph(ends, sizes)
    g.edges["r"].data["w"] = torch.rand(9)
    g.edges["r"].data["m"] = torch.rand(9) < 0.5
    k = data.draw(st.integers(1, 4), label="parts")
    owner = data.draw(st.lists(st.integers(0, k - 1), min_size=g.num_nodes()), label="owner")
    c = cuts.cut(
        g, k, tmp_path_factory.mktemp("any"), how=lambda g, k: torch.tensor(owner[: g.num_nodes()])
    )
    seeds = {ntype: torch.randperm(n)[: data.draw(st.integers(0, n))] for ntype, n in sizes.items()}
    left_out = {e: torch.randperm(g.num_edges(e))[: data.draw(st.integers(0, 9))] for e in ends}
    for options, excluded in itertools.product(KINDS.values(), ({}, left_out)):
        sampler = NeighborSampler([2, {"r": 0, "s": 3}, -1], **options)

        def work(g, new, new_edges, sampler=sampler, excluded=excluded):
            own = {e: new_edges(ids, e) for e, ids in excluded.items()}
            return sampler.sample(g, {t: new(ids, t) for t, ids in seeds.items()}, own or None)

        whole, parts = both(c, work)
        assert Original(c).batch(parts) == Original(None).batch(whole)


# --------------------------------------------------------------------------------------- faults
@pytest.fixture
def small(tmp_path) -> Cut:
    g = cuts.plain()
    return cuts.cut(g, 2, tmp_path)


def test_out_of_range(plain):
    with pytest.raises(OutOfRange, match=r"node 200.* 0 to 199"):
        dgl.distributed.sample_neighbors(plain.parts, [200], 2)
    with pytest.raises(OutOfRange, match="node -1"):
        dgl.distributed.sample_neighbors(plain.parts, [-1], 2)
    with pytest.raises(OutOfRange, match="node 200"):
        NeighborSampler([2]).sample(plain.parts, [200])
    with pytest.raises(OutOfRange, match="edge 2300"):
        dgl.distributed.sample_neighbors(plain.parts, [0], 2, exclude_edges=[2300])
    with pytest.raises(OutOfRange, match="node 201"):
        dgl.in_subgraph(plain.parts, [201])


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf")])
def test_bad_weights_name_the_edge(small, bad):
    g = small.parts
    edge = int(small.new_edges((small.whole.edges()[1] == 0).nonzero()[17]))
    g.edata["w"][edge] = bad
    node = g.find_edges([edge])[1]
    with pytest.raises(InvalidInput, match=f"edge {edge} is {bad}"):
        g.sample_neighbors(node, 2, prob="w")


def test_weights_that_cannot_be_used(small, typed):
    g = small.parts
    assert (g.edata["w"][g.sample_neighbors([0], 2, prob=g.edata["w"]).edata[dgl.EID]] > 0).all()
    with pytest.raises(NotFound, match=r"'u' .*'m', 'w'"):
        g.sample_neighbors([0], 2, prob="u")
    with pytest.raises(InvalidInput, match=r"prob.*found tensor"):
        g.sample_neighbors([0], 2, prob=torch.ones(2300))
    with pytest.raises(InvalidInput, match=r"prob.*node~_N~x"):
        g.sample_neighbors([0], 2, prob=g.ndata["x"])
    g.edata["wide"] = torch.ones(2300, 2)
    with pytest.raises(InvalidInput, match=r"found \(\d+, 2\)"):
        g.sample_neighbors([0], 2, prob="wide")
    with pytest.raises(NotFound, match="'u'"):
        typed.parts.sample_neighbors({"user": [0]}, 2, prob="u")


def test_out_edges_are_refused(plain):
    with pytest.raises(InvalidInput, match="edge_dir"):
        dgl.distributed.sample_neighbors(plain.parts, [0], 2, edge_dir="out")


def test_repeated_seeds(plain):
    initialize()
    with pytest.raises(InvalidInput, match="node 3"):
        NeighborSampler([2]).sample(plain.parts, [3, 3])
    assert dgl.distributed.sample_neighbors(plain.parts, plain.new([3, 3]), 1).num_edges() == 2
