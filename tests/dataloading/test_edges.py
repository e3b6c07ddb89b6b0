"""Mini-batches of edges: two graphs on one set of nodes, and blocks that do not give them away."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import EdgeDataLoader, NeighborSampler, as_edge_prediction_sampler
from gnnlab.dataloading.negative_sampler import DegreePower, GlobalUniform, Uniform
from gnnlab.errors import InvalidInput, OutOfRange
from tests.accelerator import GPU
from tests.dataloading.samples import FOLLOWS, PLAYS, REVERSE, Frontier, friends, players


@pytest.fixture
def ring() -> dgl.Graph:
    """
    0 ⇄ 1    edges 0 to 3 lead 0 → 1 → 2 → 3 → 0,
    ⇅   ⇅    edges 4 to 7 lead back: edge e + 4 is the reverse of edge e
    3 ⇄ 2
    """
    return dgl.graph(([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]))


@pytest.fixture
def graph() -> dgl.Graph:
    return friends()


@pytest.fixture
def typed() -> dgl.Graph:
    return players()


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


def test_both_graphs_and_the_blocks_are_on_the_same_nodes(graph):
    loader = EdgeDataLoader(
        graph, range(3000), NeighborSampler([4, 4]), negative_sampler=Uniform(5), batch_size=300
    )
    for input_nodes, pairs, negatives, blocks in loader:
        nodes = pairs.ndata[dgl.NID]
        assert torch.equal(nodes, negatives.ndata[dgl.NID])
        assert torch.equal(nodes, blocks[-1].dstdata[dgl.NID])
        assert torch.equal(input_nodes, blocks[0].srcdata[dgl.NID])
        assert len(torch.unique(nodes)) == len(nodes)
        eids = pairs.edata[dgl.EID]
        src, dst = (nodes[end] for end in pairs.edges())
        assert all(
            torch.equal(*ends) for ends in zip((src, dst), graph.find_edges(eids), strict=True)
        )
        assert torch.equal(nodes[negatives.edges()[0]], src.repeat_interleave(5))


def test_typed_pairs(typed):
    negative_sampler = Uniform(2)
    loader = EdgeDataLoader(
        typed,
        {"plays": range(400), FOLLOWS: torch.arange(200)},
        NeighborSampler([3, 3]),
        negative_sampler=negative_sampler,
        batch_size=64,
        shuffle=True,
    )
    seen = {PLAYS: [], FOLLOWS: []}
    for _inputs, pairs, negatives, blocks in loader:
        assert sum(pairs.num_edges(e) for e in (PLAYS, FOLLOWS)) in (64, 600 % 64)
        for ntype in typed.ntypes:
            nodes = pairs.nodes[ntype].data[dgl.NID]
            assert torch.equal(nodes, negatives.nodes[ntype].data[dgl.NID])
            assert torch.equal(nodes, blocks[-1].dstnodes[ntype].data[dgl.NID])
        for etype in (PLAYS, FOLLOWS):
            eids = pairs.edges[etype].data[dgl.EID]
            src, dst = pairs.edges(etype=etype)
            expected = typed.find_edges(eids, etype=etype)
            assert torch.equal(pairs.nodes[etype[0]].data[dgl.NID][src], expected[0])
            assert torch.equal(pairs.nodes[etype[2]].data[dgl.NID][dst], expected[1])
            assert negatives.num_edges(etype) == 2 * len(eids)
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


def content(epoch):
    """Everything that an epoch holds, as plain lists."""
    return [
        (
            inputs.tolist(),
            [[*(end.tolist() for end in g.edges()), g.ndata["x"].tolist()] for g in graphs],
            [graphs[0].edata[name].tolist() for name in (dgl.EID, "w", "y")],
            [[end.tolist() for end in block.edges()] for block in blocks],
            [block.edata[dgl.EID].tolist() for block in blocks],
            blocks[0].srcdata["x"].tolist(),
        )
        for inputs, *graphs, blocks in epoch
    ]


@pytest.mark.parametrize("negative_sampler", [Uniform(2), DegreePower(2), GlobalUniform(2), None])
@pytest.mark.parametrize(
    "options",
    [{"prefetch": 2}, {"num_workers": 1}, {"num_workers": 2}],
    ids=["thread", "one worker", "two workers"],
)
def test_batches_do_not_depend_on_who_makes_them(graph, negative_sampler, options, torch_threads):
    def epochs(**options):
        loader = EdgeDataLoader(
            graph,
            range(500),
            NeighborSampler([3, 4]),
            exclude="reverse_id",
            reverse_eids=REVERSE,
            negative_sampler=negative_sampler,
            batch_size=128,
            shuffle=True,
            seed=1,
            **options,
        )
        return [content(loader), content(loader)]

    torch_threads(1)
    expected = epochs(prefetch=0)
    assert expected[0] != expected[1]
    torch_threads(2)
    assert epochs(**options) == expected


def test_only_the_library_s_own_parts_run_in_a_thread(graph):
    def prefetch(sampler=None, **options):
        return EdgeDataLoader(graph, [0], sampler or NeighborSampler([2]), **options).prefetch

    assert prefetch() == prefetch(negative_sampler=Uniform(2), exclude="self") == 2
    assert prefetch(Frontier()) == 0
    assert prefetch(exclude=lambda eids: eids) == 0
    assert prefetch(negative_sampler=lambda g, eids: ([0], [1])) == 0


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


def test_the_older_order_of_arguments(graph):
    negative_sampler = Uniform(1)
    by_place = EdgeDataLoader(
        graph, np.arange(10), NeighborSampler([2]), "cpu", None, "reverse_id", REVERSE, None,
        negative_sampler, batch_size=4,
    )  # fmt: skip
    assert [pairs.num_edges() for _, pairs, _, _ in by_place] == [4, 4, 2]
    by_name = EdgeDataLoader(
        g=graph, eids=[1, 2], graph_sampler=NeighborSampler([2]), device="cpu", exclude="self"
    )
    assert len(by_name) == 2 and len(next(iter(by_name))) == 3
    mask = torch.zeros(3000, dtype=torch.bool)
    mask[[4, 7]] = True
    (_, pairs, _) = next(iter(EdgeDataLoader(graph, mask, NeighborSampler([2]), batch_size=2)))
    assert pairs.edata[dgl.EID].tolist() == [4, 7]


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
    with pytest.raises(InvalidInput, match="blocks are sampled on g_sampling"):
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
    sampler = as_edge_prediction_sampler(
        NeighborSampler([2]), "reverse_id", REVERSE, negative_sampler=Uniform(2)
    )
    inputs, pairs, negatives, (block,) = sampler.sample(graph.int(), [1, 2])
    ids = (inputs, *pairs.edges(), *negatives.edges(), pairs.edata[dgl.EID], pairs.ndata[dgl.NID])
    assert {x.dtype for x in (*ids, block.edata[dgl.EID])} == {torch.int32}


def test_no_edges(graph):
    sampler = as_edge_prediction_sampler(NeighborSampler([2]), negative_sampler=GlobalUniform(2))
    inputs, pairs, negatives, (block,) = sampler.sample(graph, [])
    assert [len(inputs), pairs.num_edges(), negatives.num_edges(), block.num_edges()] == [0] * 4


def test_ambiguous_names_are_refused():
    edges = ([0, 1], [1, 0])
    g = dgl.heterograph({("user", "likes", "game"): edges, ("user", "likes", "film"): edges})
    sampler = as_edge_prediction_sampler(NeighborSampler([2]))
    with pytest.raises(InvalidInput, match=r"'likes' is ambiguous.*'film'\), .*'game'\)"):
        sampler.sample(g, {"likes": [0]})
    with pytest.raises(InvalidInput, match="say which edge type is meant"):
        sampler.sample(g, [0])
    assert sampler.sample(g, {("user", "likes", "film"): [0]})[1].num_edges() == 1


def test_bad_input_says_what_is_wrong(graph, typed):
    nodes = NeighborSampler([2])

    def sample(g=graph, seeds=(0,), **options):
        return as_edge_prediction_sampler(nodes, **options).sample(g, seeds)

    with pytest.raises(OutOfRange, match="edge 3000 does not exist"):
        sample(seeds=[3000])
    with pytest.raises(InvalidInput, match=r"needs a method sample\(g, nodes, exclude_eids=None\)"):
        as_edge_prediction_sampler([10, 25])
    with pytest.raises(InvalidInput, match=r"callable as negative_sampler\(g, eids\).*found 5"):
        sample(negative_sampler=5)
    with pytest.raises(InvalidInput, match=r"must return \(src, dst\) .*; found int"):
        sample(negative_sampler=lambda g, eids: 3)
    with pytest.raises(InvalidInput, match="2 sources and 1 destinations"):
        sample(negative_sampler=lambda g, eids: ([0, 1], [1]))
    with pytest.raises(OutOfRange, match="node 100 does not exist"):
        sample(negative_sampler=lambda g, eids: ([0], [100]))
    with pytest.raises(InvalidInput, match=r"must return a dict edge type → \(src, dst\)"):
        seeds = {"plays": [0], "follows": [0]}
        sample(typed, seeds, negative_sampler=lambda g, eids: ([0], [0]))


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
