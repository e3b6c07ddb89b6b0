"""Samplers: blocks that fit together and hold only edges of the graph."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading.sampler import to_device
from gnnlab.errors import InvalidInput
from tests.accelerator import GPU


@pytest.fixture
def graph() -> dgl.Graph:
    g = dgl.rand_graph(300, 6000)
    g.ndata["x"] = torch.randn(300, 3)
    return g


@pytest.fixture
def typed() -> dgl.Graph:
    rng = np.random.default_rng(0)
    return dgl.heterograph(
        {
            ("user", "follows", "user"): (rng.integers(0, 60, 500), rng.integers(0, 60, 500)),
            ("user", "plays", "game"): (rng.integers(0, 60, 400), rng.integers(0, 20, 400)),
            ("game", "played", "user"): (rng.integers(0, 20, 400), rng.integers(0, 60, 400)),
        },
        num_nodes_dict={"user": 60, "game": 20},
    )


def check_blocks(g, blocks, input_nodes, output_nodes):
    """Every edge exists, sources of a block are destinations of the one before, seeds come last."""

    def nodes(frames):
        return {t: f[dgl.NID].tolist() for t, f in frames.items()}

    typed = len(g.ntypes) > 1
    expected_in = (
        {t: x.tolist() for t, x in input_nodes.items()} if typed else {"_N": input_nodes.tolist()}
    )
    assert nodes(blocks[0].src_frames) == expected_in
    last = nodes(blocks[-1].dst_frames)
    for ntype, ids in (
        output_nodes if isinstance(output_nodes, dict) else {"_N": output_nodes}
    ).items():
        assert last[ntype] == ids.tolist()
    for before, after in pairwise(blocks):
        assert nodes(before.dst_frames) == nodes(after.src_frames)
    for block in blocks:
        for etype in block.canonical_etypes:
            src, dst = block.edges(etype=etype)
            src = block.srcnodes[etype[0]].data[dgl.NID][src]
            dst = block.dstnodes[etype[2]].data[dgl.NID][dst]
            found = g.find_edges(block.edges[etype].data[dgl.EID], etype=etype)
            assert torch.equal(found[0], src) and torch.equal(found[1], dst)
        for ntype in block.dsttypes:
            count = block.num_dst_nodes(ntype)
            first = block.srcnodes[ntype].data[dgl.NID][:count]
            assert torch.equal(first, block.dstnodes[ntype].data[dgl.NID])


@pytest.mark.parametrize(
    "seeds", [[5, 7, 1], np.array([5, 7, 1]), torch.tensor([5, 7, 1]), range(3)]
)
def test_blocks_fit_together(graph, seeds):
    sampler = dgl.dataloading.NeighborSampler([3, 40, 5])
    input_nodes, output_nodes, blocks = sampler.sample(graph, seeds)
    assert output_nodes.tolist() == list(seeds) and len(blocks) == 3
    check_blocks(graph, blocks, input_nodes, output_nodes)
    for block, fanout in zip(blocks, [3, 40, 5], strict=True):
        real = graph.in_degrees(block.dstdata[dgl.NID])
        assert torch.equal(block.in_degrees(), real.clamp(max=fanout))


def test_typed_blocks_fit_together(typed):
    sampler = dgl.dataloading.NeighborSampler([{"follows": 2, "plays": 3, "played": 0}, 4])
    input_nodes, output_nodes, blocks = sampler.sample(typed, {"user": [3, 1], "game": [0]})
    assert {t: x.tolist() for t, x in output_nodes.items()} == {"user": [3, 1], "game": [0]}
    check_blocks(typed, blocks, input_nodes, output_nodes)
    assert blocks[0].num_edges("played") == 0 < blocks[1].num_edges("played")


def test_the_fused_path_equals_frontiers_made_into_blocks(graph, typed):
    """A user's sampler built of sample_neighbors and to_block gets the same blocks."""

    class ByFrontier(dgl.dataloading.BlockSampler):
        def __init__(self, fanouts):
            super().__init__(len(fanouts), return_eids=False)
            self.fanouts = fanouts

        def sample_frontier(self, layer_id, g, seed_nodes, *args, **kwargs):
            return dgl.sampling.sample_neighbors(g, seed_nodes, self.fanouts[layer_id])

    for g, seeds in ((graph, torch.tensor([4, 2])), (typed, {"user": torch.tensor([4, 2])})):
        dgl.seed(5)
        expected = dgl.dataloading.NeighborSampler([3, 4]).sample(g, seeds)
        dgl.seed(5)
        got = ByFrontier([3, 4]).sample(g, seeds)
        check_blocks(g, got[2], got[0], got[1])
        for a, b in zip(expected[2], got[2], strict=True):
            for etype in a.canonical_etypes:
                assert torch.equal(
                    torch.stack(a.edges(etype=etype)), torch.stack(b.edges(etype=etype))
                )
                assert torch.equal(a.edges[etype].data[dgl.EID], b.edges[etype].data[dgl.EID])


def test_full_neighbors_and_old_names(graph):
    full = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    none = dgl.dataloading.MultiLayerNeighborSampler([None, None])
    for sampler in (full, none):
        input_nodes, output_nodes, blocks = sampler.sample(graph, [9])
        check_blocks(graph, blocks, input_nodes, output_nodes)
        assert torch.equal(blocks[1].in_degrees(), graph.in_degrees([9]))
    assert dgl.dataloading.MultiLayerNeighborSampler is dgl.dataloading.NeighborSampler
    assert dgl.dataloading.MultiLayerNeighborSampler([4], True).replace


def test_a_sampler_of_frontiers_is_asked_from_the_last_layer_on(graph):
    asked = []

    class Watching(dgl.dataloading.BlockSampler):
        def sample_frontier(self, layer_id, g, seed_nodes):
            asked.append((layer_id, len(seed_nodes)))
            return dgl.in_subgraph(g, seed_nodes)

    _, _, blocks = Watching(3).sample(graph, [0])
    assert [layer for layer, _ in asked] == [2, 1, 0]
    assert [count for _, count in asked] == [b.num_dst_nodes() for b in reversed(blocks)]


def test_a_sampler_may_return_only_blocks(graph):
    class JustBlocks(dgl.dataloading.BlockSampler):
        def sample_blocks(self, g, seed_nodes, exclude_eids=None):
            return [dgl.to_block(dgl.in_subgraph(g, seed_nodes), seed_nodes)]

    input_nodes, output_nodes, blocks = JustBlocks().sample(graph, torch.tensor([3, 8]))
    assert output_nodes.tolist() == [3, 8]
    assert torch.equal(input_nodes, blocks[0].srcdata[dgl.NID])


@pytest.mark.parametrize("weights", [None, "p"])
def test_excluded_edges_are_not_sampled(graph, weights):
    graph.edata["p"] = torch.rand(6000)
    sampler = dgl.dataloading.NeighborSampler([-1, -1], prob=weights)
    own = dgl.dataloading.BlockSampler(2)
    own.sample_frontier = lambda layer, g, seeds: dgl.in_subgraph(g, seeds)
    excluded = torch.arange(0, 6000, 2)
    for kind in (sampler, own):
        _, _, blocks = kind.sample(graph, [1, 2], exclude_eids=excluded)
        eids = torch.cat([block.edata[dgl.EID] for block in blocks])
        assert len(eids) and bool((eids % 2 == 1).all())


def test_edges_of_a_frontier_without_ids(graph):
    """The whole graph may be a frontier: its edges are their own IDs. Others must name them."""

    nodes, edges = torch.arange(graph.num_nodes()), torch.arange(0, 6000, 2)
    one = dgl.dataloading.BlockSampler(1)
    one.sample_frontier = lambda layer, g, seeds: g
    _, _, (block,) = one.sample(graph, nodes, exclude_eids=edges)
    assert block.edata[dgl.EID].tolist() == list(range(1, 6000, 2))
    one.sample_frontier = lambda layer, g, seeds: dgl.graph(([0, 1], [2, 3]), num_nodes=len(nodes))
    with pytest.raises(InvalidInput, match=r"2 edges .* edata\[dgl.EID\]"):
        one.sample(graph, nodes, exclude_eids=edges)


def test_weights_and_masks(graph):
    graph.edata["m"] = torch.arange(6000) % 3 == 0
    _, _, blocks = dgl.dataloading.NeighborSampler([5, 5], mask="m").sample(graph, range(20))
    assert bool((torch.cat([b.edata[dgl.EID] for b in blocks]) % 3 == 0).all())


def test_named_tuples_move_to_a_device(graph):
    class Batch(NamedTuple):
        nodes: torch.Tensor
        graph: dgl.Graph

    moved = to_device(Batch(torch.ones(2), graph), torch.device("meta"))
    assert moved.nodes.is_meta and moved.graph.device.type == "meta"


def test_features_to_prefetch_exist_on_some_type():
    g = dgl.heterograph({("a", "to", "b"): ([0, 1], [1, 0]), ("b", "by", "a"): ([0, 1], [1, 0])})
    g.nodes["a"].data["x"] = torch.tensor([5.0, 6.0])

    def first(names):
        sampler = dgl.dataloading.NeighborSampler([2], prefetch_node_feats=names)
        return next(iter(dgl.dataloading.DataLoader(g, {"b": [1]}, sampler)))[2][0].srcdata["x"]

    for names in ("x", ["x"], {"a": "x"}, {"a": ["x"]}):
        assert first(names)["a"].tolist() == [5]
    for wrong in (7, "y", ["x", "y"], [["x"]], {"a": "y"}, {"b": "x"}, {"c": "x"}):
        with pytest.raises(dgl.NotFound, match="prefetch"):
            first(wrong)


@pytest.mark.gpu
def test_a_gpu_samples_the_same_blocks(graph, typed):
    for g, seeds, replace in (
        (graph, torch.arange(30), False),
        (graph.int(), torch.arange(30), True),
        (typed, {"user": torch.arange(5)}, False),
    ):
        sampler = dgl.dataloading.NeighborSampler([3, 4], replace=replace)
        dgl.seed(3)
        expected = sampler.sample(g, seeds)[2]
        dgl.seed(3)
        got = sampler.sample(g.to(GPU), seeds)[2]
        for a, b in zip(expected, got, strict=True):
            for etype in a.canonical_etypes:
                assert b.device.type == GPU
                assert torch.equal(
                    torch.stack(a.edges(etype=etype)), torch.stack(b.edges(etype=etype)).cpu()
                )
