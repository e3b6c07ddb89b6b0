"""Mini-batches of edges: two graphs on one set of nodes, and blocks that do not give them away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import EdgeDataLoader, NeighborSampler, as_edge_prediction_sampler
from gnnlab.dataloading.negative_sampler import DegreePower, GlobalUniform, Uniform
from gnnlab.errors import InvalidInput
from tests.accelerator import GPU
from tests.dataloading.samples import FOLLOWS, PLAYS, REVERSE


@pytest.fixture
def ring() -> dgl.Graph:
    """
    0 ⇄ 1    edges 0 to 3 lead 0 → 1 → 2 → 3 → 0,
    ⇅   ⇅    edges 4 to 7 lead back: edge e + 4 is the reverse of edge e
    3 ⇄ 2
    """
    return dgl.graph(([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]))


def test_a_mini_batch_that_can_be_drawn(ring):
    """Edge 0 → 1: node 0 has in-edges from 3 and 1, node 1 from 0 and 2; 0 ⇄ 1 are left out."""
    sampler = as_edge_prediction_sampler(
        NeighborSampler([-1]),
        exclude="reverse_id",
        reverse_eids=[4, 5, 6, 7, 0, 1, 2, 3],
        negative_sampler=lambda g, eids: ([0, 0], [2, 0]),
    )
    input_nodes, pairs, negatives, (block,) = sampler.sample(ring, [0])
    assert pairs.ndata[dgl.NID].tolist() == negatives.ndata[dgl.NID].tolist() == [0, 1, 2]
    assert [end.tolist() for end in pairs.edges()] == [[0], [1]]
    assert pairs.edata[dgl.EID].tolist() == [0]
    assert [end.tolist() for end in negatives.edges()] == [[0, 0], [2, 0]]
    assert input_nodes.tolist() == [0, 1, 2, 3]
    assert block.dstdata[dgl.NID].tolist() == [0, 1, 2]
    edges = zip(*(end.tolist() for end in block.edges()), strict=True)
    # to 0 from 3, to 1 from 2, to 2 from 1 and 3
    assert sorted(edges) == [(1, 2), (2, 1), (3, 0), (3, 2)]
    assert sorted(block.edata[dgl.EID].tolist()) == [1, 3, 5, 6]


def test_without_negatives_there_are_three_parts(ring):
    parts = as_edge_prediction_sampler(NeighborSampler([-1])).sample(ring, torch.tensor([6, 1, 6]))
    input_nodes, pairs, (block,) = parts
    assert pairs.edata[dgl.EID].tolist() == [6, 1, 6]
    ends = [pairs.ndata[dgl.NID][end].tolist() for end in pairs.edges()]
    assert ends == [[3, 1, 3], [2, 2, 2]]
    assert block.num_dst_nodes() == 3 and sorted(input_nodes.tolist()) == [0, 1, 2, 3]


def test_both_graphs_and_the_blocks_are_on_the_same_nodes(typed):
    loader = EdgeDataLoader(
        typed,
        {"plays": range(400), FOLLOWS: torch.arange(200)},
        NeighborSampler([3, 3]),
        negative_sampler=Uniform(2),
        batch_size=64,
        shuffle=True,
    )
    seen = {PLAYS: [], FOLLOWS: []}
    for inputs, pairs, negatives, blocks in loader:
        assert sum(pairs.num_edges(e) for e in (PLAYS, FOLLOWS)) in (64, 600 % 64)
        for ntype in typed.ntypes:
            nodes = pairs.nodes[ntype].data[dgl.NID]
            assert torch.equal(nodes, negatives.nodes[ntype].data[dgl.NID])
            assert torch.equal(nodes, blocks[-1].dstnodes[ntype].data[dgl.NID])
            assert torch.equal(inputs[ntype], blocks[0].srcnodes[ntype].data[dgl.NID])
            assert len(torch.unique(nodes)) == len(nodes)
        for etype in (PLAYS, FOLLOWS):
            eids = pairs.edges[etype].data[dgl.EID]
            src, dst = pairs.edges(etype=etype)
            expected = typed.find_edges(eids, etype=etype)
            assert torch.equal(pairs.nodes[etype[0]].data[dgl.NID][src], expected[0])
            assert torch.equal(pairs.nodes[etype[2]].data[dgl.NID][dst], expected[1])
            assert torch.equal(negatives.edges(etype=etype)[0], src.repeat_interleave(2))
            seen[etype] += eids.tolist()
        assert torch.equal(
            pairs.nodes["user"].data["x"],
            typed.nodes["user"].data["x"][pairs.nodes["user"].data[dgl.NID]],
        )
        hours = typed.edges["plays"].data["hours"][pairs.edges["plays"].data[dgl.EID]]
        assert torch.equal(pairs.edges["plays"].data["hours"], hours)
    assert {etype: sorted(eids) for etype, eids in seen.items()} == {
        PLAYS: list(range(400)),
        FOLLOWS: list(range(200)),
    }


def test_features_follow_and_named_ones_are_fetched_ahead(graph):
    sampler = as_edge_prediction_sampler(
        NeighborSampler([2], prefetch_node_feats=["x"], prefetch_edge_feats=["w"]),
        prefetch_labels=["y"],
    )
    loader = dgl.dataloading.DataLoader(graph, [5, 9], sampler, batch_size=2)
    _, pairs, (block,) = next(iter(loader))
    stored = pairs.edge_frames[graph.canonical_etypes[0]]
    assert isinstance(stored.column("y"), torch.Tensor)
    assert not isinstance(stored.column("w"), torch.Tensor)
    assert isinstance(block.src_frames["_N"].column("x"), torch.Tensor)
    assert isinstance(block.edge_frames["_N", "_E", "_N"].column("w"), torch.Tensor)
    assert pairs.edata["y"].tolist() == [5, 9]
    assert torch.equal(pairs.ndata["x"], graph.ndata["x"][pairs.ndata[dgl.NID]])


def test_blocks_from_another_graph(graph):
    """Validation edges are scored with the training edges alone."""
    training = graph.edge_subgraph(torch.arange(2000), relabel_nodes=False, store_ids=False)
    training.edata["w"] = torch.arange(2000.0)
    loader = EdgeDataLoader(
        graph,
        range(2000, 3000),
        NeighborSampler([-1]),
        g_sampling=training,
        negative_sampler=Uniform(1),
        batch_size=250,
    )
    for _, pairs, _, (block,) in loader:
        assert torch.equal(pairs.edata["w"], graph.edata["w"][pairs.edata[dgl.EID]])
        assert block.edata[dgl.EID].max() < 2000
        assert block.num_edges() == training.in_degrees(block.dstdata[dgl.NID]).sum()
        assert torch.equal(block.edata["w"], block.edata[dgl.EID].float())
    with pytest.raises(InvalidInput, match=r"'self'.*g_sampling"):
        EdgeDataLoader(graph, [1], NeighborSampler([2]), g_sampling=training, exclude="self")
    same = EdgeDataLoader(graph, [1], NeighborSampler([2]), g_sampling=graph, exclude="self")
    assert len(list(same)) == 1


def test_negative_samplers_of_your_own(graph, typed):
    """The forms of the guide: pairs, or a dict of pairs by edge type."""

    class ByDegree:
        def __init__(self, g, k):
            self.weights, self.k = g.in_degrees().float() ** 0.75, k

        def __call__(self, g, eids):
            src, _ = g.find_edges(eids)
            src = src.repeat_interleave(self.k)
            return src, self.weights.multinomial(len(src), replacement=True)

    sampler = as_edge_prediction_sampler(NeighborSampler([2]), negative_sampler=ByDegree(graph, 5))
    assert sampler.sample(graph, [1, 2])[2].num_edges() == 10

    def by_type(g, eids):
        assert list(eids) == [PLAYS]
        return {"plays": (g.find_edges(eids[PLAYS], etype="plays")[0], np.array([3, 3]))}

    def bare(g, eids):
        return by_type(g, eids)["plays"]

    for negative_sampler in (by_type, bare):
        sampler = as_edge_prediction_sampler(
            NeighborSampler([2]), negative_sampler=negative_sampler
        )
        _, pairs, negatives, _ = sampler.sample(typed, {"plays": [8, 9]})
        assert negatives.num_edges("plays") == 2 and negatives.num_edges("follows") == 0
        games = pairs.nodes["game"].data[dgl.NID]
        assert games[negatives.edges(etype="plays")[1]].tolist() == [3, 3]


def test_int32_graphs(graph):
    for negatives in (Uniform(2), DegreePower(2), GlobalUniform(2)):
        sampler = as_edge_prediction_sampler(
            NeighborSampler([2]), "reverse_id", REVERSE, negative_sampler=negatives
        )
        inputs, *graphs, (block,) = sampler.sample(graph.int(), [1, 2])
        ids = [inputs, block.edata[dgl.EID], *graphs[0].edges(), *graphs[1].edges()]
        ids += [graphs[0].edata[dgl.EID], graphs[0].ndata[dgl.NID]]
        assert {x.dtype for x in ids} == {torch.int32}


@pytest.mark.gpu
def test_a_gpu_makes_the_same_pairs_and_leaves_the_same_edges_out(graph):
    """Without exclusions, tests/test_on_device.py compares the blocks as well."""

    def epoch(g):
        options = {"batch_size": 128, "shuffle": True, "seed": 1}
        loader = EdgeDataLoader(
            *(g, range(500), NeighborSampler([3, 4])), exclude="reverse_id",
            reverse_eids=REVERSE, negative_sampler=Uniform(2), **options,
        )  # fmt: skip
        for _, pairs, negatives, blocks in loader:
            eids = pairs.edata[dgl.EID].cpu()
            for block in blocks:
                assert not torch.isin(
                    block.edata[dgl.EID].cpu(), torch.cat([eids, REVERSE[eids]])
                ).any()
            yield eids.tolist(), negatives.ndata[dgl.NID].tolist()

    assert list(epoch(graph.to(GPU))) == list(epoch(graph))
