"""Sampling a graph in parts gives, ID for ID, what sampling the whole graph gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.dataloading import BlockSampler, NeighborSampler
from gnnlab.distributed import initialize
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from tests.distributed import cut as cuts
from tests.distributed.cut import FOLLOWS, MAKES, PLAYS, Cut
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


def assert_same_batch(c: Cut, whole: Any, parts: Any) -> None:
    for ours, theirs in zip(parts[:2], whole[:2], strict=True):
        ours, theirs = (x if isinstance(x, dict) else {"_N": x} for x in (ours, theirs))
        assert ours.keys() == theirs.keys()
        for ntype in ours:
            assert torch.equal(c.nodes[ntype][ours[ntype]], theirs[ntype])
    for ours, theirs in zip(parts[2], whole[2], strict=True):
        for etype in theirs.canonical_etypes:
            for one, other in zip(ours.edges(etype=etype), theirs.edges(etype=etype), strict=True):
                assert torch.equal(one, other)
            eids = ours.edges[etype].data[dgl.EID]
            assert torch.equal(c.edges[etype][eids], theirs.edges[etype].data[dgl.EID])
        for ntype in theirs.srctypes:
            nids = ours.srcnodes[ntype].data[dgl.NID]
            assert torch.equal(c.nodes[ntype][nids], theirs.srcnodes[ntype].data[dgl.NID])


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


def test_all_forms_of_the_call_agree(plain):
    seeds = [5, 0, 199, 3]
    frontiers = []
    for call in (
        dgl.sampling.sample_neighbors,
        dgl.distributed.sample_neighbors,
        dgl.distributed.sample_etype_neighbors,
        lambda g, *args: g.sample_neighbors(*args),
        dgl.sample_neighbors,
    ):
        dgl.seed(0)
        frontiers.append(call(plain.parts, plain.new(seeds), 2))
    assert len({str(f.edata[dgl.EID].tolist()) for f in frontiers}) == 1


@BY_KIND
def test_excluded_edges(plain, options):
    left_out = torch.randperm(2300)[:1500]
    whole, parts = both(
        plain,
        lambda g, new, new_edges: dgl.sampling.sample_neighbors(
            g, new(range(190)), 4, exclude_edges=new_edges(left_out), **options
        ),
    )
    assert_same_frontier(plain, whole, parts)
    assert not torch.isin(plain.edges[("_N", "_E", "_N")][parts.edata[dgl.EID]], left_out).any()


def test_seeds_of_one_part_or_none(plain):
    book = plain.parts.get_partition_book()
    for ids in (book.partid2nids(book.num_partitions() - 1)[:3].tolist(), []):
        original = plain.nodes["_N"][torch.tensor(ids, dtype=torch.int64)]
        whole, parts = both(
            plain, lambda g, new, _, seeds=original: g.sample_neighbors(new(seeds), 2)
        )
        assert_same_frontier(plain, whole, parts)


def test_typed_frontier(typed):
    seeds = {"user": torch.randperm(60)[:20], "game": torch.randperm(25)[:9]}
    fanout = {FOLLOWS: 2, "plays": -1, MAKES: 0}
    for options in ({}, {"prob": "w"}, {"prob": {"plays": "w"}}, {"replace": True}):
        whole, parts = both(
            typed,
            lambda g, new, _, options=options: g.sample_neighbors(
                {t: new(ids, t) for t, ids in seeds.items()}, fanout, **options
            ),
        )
        assert_same_frontier(typed, whole, parts)


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


def test_in_subgraph_uses_no_randomness(plain):
    dgl.seed(0)
    before = dgl.random.get_state()
    dgl.in_subgraph(plain.parts, [0, 1])
    assert dgl.random.get_state() == before


# --------------------------------------------------------------------------------------- blocks
@BY_KIND
@pytest.mark.parametrize("exclude", [False, True])
def test_blocks(plain, options, exclude):
    seeds, left_out = torch.randperm(200)[:50], torch.randperm(2300)[:1000]
    sampler = NeighborSampler([4, -1, 2], **options)

    def work(g, new, new_edges):
        return sampler.sample(g, new(seeds), new_edges(left_out) if exclude else None)

    assert_same_batch(plain, *both(plain, work))


def test_typed_blocks(typed):
    seeds = {"user": torch.randperm(60)[:20], "game": torch.randperm(25)[:9]}
    for sampler in (
        NeighborSampler([3, {FOLLOWS: 2, PLAYS: 0, MAKES: -1}]),
        NeighborSampler([3, 3], prob="w"),
        NeighborSampler([2, 2], replace=True),
    ):
        whole, parts = both(
            typed,
            lambda g, new, _, sampler=sampler: sampler.sample(
                g, {t: new(ids, t) for t, ids in seeds.items()}
            ),
        )
        assert_same_batch(typed, whole, parts)


class ByHand(BlockSampler):
    """A sampler as a reader writes it: a frontier per layer."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(2)
        self.options = options

    def sample_frontier(self, layer_id, g, seed_nodes):
        if layer_id == 0:
            return dgl.in_subgraph(g, seed_nodes)
        frontier = dgl.sampling.sample_neighbors(g, seed_nodes, 6, **self.options)
        keep = frontier.edata["w"] < 0.9
        return dgl.edge_subgraph(frontier, keep, relabel_nodes=False, store_ids=False)


@BY_KIND
def test_a_sampler_of_your_own(plain, options):
    seeds, left_out = torch.randperm(200)[:50], torch.randperm(2300)[:1000]
    whole, parts = both(
        plain,
        lambda g, new, new_edges: ByHand(options).sample(g, new(seeds), new_edges(left_out)),
    )
    assert_same_batch(plain, whole, parts)


def test_the_cut_does_not_matter(tmp_path):
    """Two different cuts, one by METIS, agree with each other."""
    seeds, batches = torch.randperm(200)[:50], []
    for name, how in (("a", "metis"), ("b", None)):
        c = cuts.cut(cuts.plain(), 3, tmp_path / name, how=how)
        dgl.seed(3)
        input_nodes, _, blocks = NeighborSampler([4, 4]).sample(c.parts, c.new(seeds))
        batches.append((c.nodes["_N"][input_nodes], *blocks[0].edges()))
    assert all(torch.equal(one, other) for one, other in zip(*batches, strict=True))


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
    k = data.draw(st.integers(1, 4), label="parts")
    owner = data.draw(st.lists(st.integers(0, k - 1), min_size=g.num_nodes()), label="owner")
    c = cuts.cut(
        g, k, tmp_path_factory.mktemp("any"), how=lambda g, k: torch.tensor(owner[: g.num_nodes()])
    )
    seeds = {ntype: torch.randperm(n)[: data.draw(st.integers(0, n))] for ntype, n in sizes.items()}
    for options in ({}, {"prob": "w"}):
        sampler = NeighborSampler([2, 2, -1], **options)
        whole, parts = both(
            c,
            lambda g, new, _, sampler=sampler: sampler.sample(
                g, {t: new(ids, t) for t, ids in seeds.items()}
            ),
        )
        assert_same_batch(c, whole, parts)


# --------------------------------------------------------------------------------------- faults
@pytest.fixture
def small(tmp_path) -> Cut:
    g = cuts.plain()
    return cuts.cut(g, 2, tmp_path)


def test_out_of_range(plain):
    with pytest.raises(OutOfRange, match="node 200 does not exist: IDs must be from 0 to 199"):
        dgl.distributed.sample_neighbors(plain.parts, [200], 2)
    with pytest.raises(OutOfRange, match="node -1 does not exist"):
        dgl.distributed.sample_neighbors(plain.parts, [-1], 2)
    with pytest.raises(OutOfRange, match="node 200 does not exist"):
        NeighborSampler([2]).sample(plain.parts, [200])
    with pytest.raises(OutOfRange, match="edge 2300 does not exist"):
        dgl.distributed.sample_neighbors(plain.parts, [0], 2, exclude_edges=[2300])
    with pytest.raises(OutOfRange, match="node 201 does not exist"):
        dgl.in_subgraph(plain.parts, [201])


@pytest.mark.parametrize("bad", [float("nan"), -1.0, float("inf")])
def test_bad_weights_name_the_edge(small, bad):
    g = small.parts
    edge = int(small.new_edges((small.whole.edges()[1] == 0).nonzero()[17]))
    g.edata["w"][edge] = bad
    node = g.find_edges([edge])[1]
    with pytest.raises(InvalidInput, match=f"weight of edge {edge} is {bad}; weights must be"):
        g.sample_neighbors(node, 2, prob="w")


def test_weights_that_cannot_be_used(small, typed):
    g = small.parts
    with pytest.raises(NotFound, match=r"no edge feature 'u' .* the features are: 'm', 'w'"):
        g.sample_neighbors([0], 2, prob="u")
    with pytest.raises(InvalidInput, match="prob is the name of an edge feature"):
        g.sample_neighbors([0], 2, prob=torch.ones(2300))
    with pytest.raises(InvalidInput, match="prob is the name of an edge feature, or a DistTensor"):
        g.sample_neighbors([0], 2, prob=g.ndata["x"])
    g.edata["wide"] = torch.ones(2300, 2)
    with pytest.raises(InvalidInput, match=r"weights are one number per edge; .* found \(\d+, 2\)"):
        g.sample_neighbors([0], 2, prob="wide")
    with pytest.raises(NotFound, match="no edge type has a feature 'u'"):
        typed.parts.sample_neighbors({"user": [0]}, 2, prob="u")


def test_weights_of_other_forms(small):
    g = small.parts
    for weights in (g.edata["w"][:].half()[:, None], (g.edata["w"][:] > 0).to(torch.uint8)):
        g.edata["v"] = weights
        frontier = g.sample_neighbors([0, 1], -1, prob=g.edata["v"])
        assert (g.edata["w"][frontier.edata[dgl.EID]] > 0).all()


def test_out_edges_are_refused(plain):
    with pytest.raises(InvalidInput, match="stored by destination: edge_dir must be 'in'"):
        dgl.distributed.sample_neighbors(plain.parts, [0], 2, edge_dir="out")


def test_repeated_seeds(plain):
    initialize()
    with pytest.raises(InvalidInput, match="stands twice among the seed"):
        NeighborSampler([2]).sample(plain.parts, [3, 3])
    assert dgl.distributed.sample_neighbors(plain.parts, plain.new([3, 3]), 1).num_edges() == 2
