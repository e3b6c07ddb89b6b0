"""Mini-batches by torch's own DataLoader."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import gnnlab as dgl
from gnnlab.dataloading import EdgeCollator, GraphDataLoader, NeighborSampler, NodeCollator
from gnnlab.dataloading.negative_sampler import Uniform
from gnnlab.errors import InvalidInput
from tests.dataloading.samples import FOLLOWS, PLAYS, REVERSE, friends, players


@pytest.fixture
def dataset():
    """Ten rings of 3 to 12 nodes; the label is the size."""
    rings = []
    for n in range(3, 13):
        g = dgl.graph((torch.arange(n), torch.arange(1, n + 1) % n))
        g.ndata["x"] = torch.full((n, 2), float(n))
        rings.append((g, n))
    return rings


def sizes(loader):
    return [labels.tolist() for _, labels in loader]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_graphs_are_batched_and_labels_stacked(dataset, num_workers):
    seen = []
    for graphs, labels in GraphDataLoader(dataset, batch_size=4, num_workers=num_workers):
        assert graphs.batch_num_nodes().tolist() == labels.tolist()
        assert torch.equal(graphs.ndata["x"][:, 0], labels.repeat_interleave(labels).float())
        seen += labels.tolist()
    assert seen == list(range(3, 13))


def test_items_of_other_forms(dataset):
    (graphs,) = GraphDataLoader([g for g, _ in dataset], batch_size=10)
    assert graphs.batch_size == 10
    items = [{"graph": g, "pair": (n, torch.tensor([n]))} for g, n in dataset]
    (batch,) = GraphDataLoader(items, batch_size=10)
    assert batch["graph"].batch_size == 10
    assert [part.shape for part in batch["pair"]] == [(10,), (10, 1)]
    (count,) = GraphDataLoader(dataset, batch_size=10, collate_fn=len)
    assert count == 10


def test_the_seed_decides_the_order(dataset):
    def epochs():
        loader = GraphDataLoader(dataset, batch_size=5, shuffle=True)
        return loader, [sizes(loader), sizes(loader)]

    dgl.seed(3)
    loader, first = epochs()
    dgl.seed(3)
    assert epochs()[1] == first and first[0] != first[1]
    loader.set_epoch(1)
    again = sizes(loader)
    loader.set_epoch(1)
    assert sizes(loader) == again


def test_each_rank_gets_its_share(dataset, monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    shares = []
    for rank in (0, 1):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        loader = GraphDataLoader(dataset, use_ddp=True, ddp_seed=5, shuffle=True, batch_size=2)
        loader.set_epoch(1)
        assert len(loader) == 3
        shares += sizes(loader)
    assert sorted(chain(*shares)) == list(range(3, 13))


def test_an_empty_data_set_has_no_batch():
    with pytest.warns(UserWarning, match="no mini-batch"):
        loader = GraphDataLoader([], shuffle=True, batch_size=2)
    assert list(loader) == []


def test_two_iterations_with_the_same_workers(dataset):
    loader = GraphDataLoader(dataset, batch_size=4, num_workers=1, persistent_workers=True)
    expected = [[3, 4, 5, 6], [7, 8, 9, 10], [11, 12]]
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        (each, each) for each in expected
    ]
    for _ in loader:
        break
    assert sizes(loader) == expected


def test_nodes_in_the_older_form():
    g = friends()
    nodes = NodeCollator(g, torch.arange(50), NeighborSampler([3, 3]))
    seen = []
    for inputs, outputs, blocks in DataLoader(nodes.dataset, 16, collate_fn=nodes.collate):
        assert torch.equal(blocks[0].srcdata["x"], g.ndata["x"][inputs])
        seen += outputs.tolist()
    assert seen == list(range(50))


def test_a_mask_marks_nodes():
    mask = torch.arange(100) % 40 == 3
    for form in (mask, mask.numpy(), mask.tolist()):
        nodes = NodeCollator(friends(), form, NeighborSampler([2]))
        (batch,) = DataLoader(nodes.dataset, 50, collate_fn=nodes.collate)
        assert batch[1].tolist() == [3, 43, 83]
    for wrong in (mask.to(torch.uint8), mask[:50], mask.float(), mask.unsqueeze(1)):
        with pytest.raises(InvalidInput):
            NodeCollator(friends(), wrong, NeighborSampler([2]))
    with pytest.raises(InvalidInput):
        EdgeCollator(friends(), torch.zeros(3000, dtype=torch.int8), NeighborSampler([2]))
    count = players().num_nodes("game")
    typed = NodeCollator(players(), {"game": np.arange(count) % 9 == 1}, NeighborSampler([2]))
    assert typed.dataset == [("game", i) for i in range(1, count, 9)]
    with pytest.raises(InvalidInput):
        NodeCollator(players(), {"game": np.ones(count + 1, bool)}, NeighborSampler([2]))


def test_blocks_may_be_sampled_on_the_graph_itself():
    g = friends()
    edges = EdgeCollator(g, [3], NeighborSampler([-1]), g_sampling=g, exclude="self")
    assert 3 not in edges.collate([3])[-1][0].edata[dgl.EID]


def test_edges_in_the_older_form():
    g = friends()
    edges = EdgeCollator(
        g,
        range(100),
        NeighborSampler([3, 3]),
        exclude="reverse_id",
        reverse_eids=REVERSE,
        negative_sampler=Uniform(2),
    )
    loader = DataLoader(edges.dataset, 32, collate_fn=edges.collate, shuffle=True, num_workers=1)
    seen = []
    for _, pairs, negatives, blocks in loader:
        eids = pairs.edata[dgl.EID]
        assert torch.equal(pairs.edata["y"], eids) and negatives.num_edges() == 2 * len(eids)
        for block in blocks:
            assert not torch.isin(block.edata[dgl.EID], torch.cat([eids, REVERSE[eids]])).any()
        seen += eids.tolist()
    assert sorted(seen) == list(range(100))


def test_types_in_the_older_form():
    g = players()
    edges = EdgeCollator(g, {"plays": [3, 4], FOLLOWS: [9]}, NeighborSampler([2]))
    (batch,) = DataLoader(edges.dataset, 3, collate_fn=edges.collate)
    assert batch[1].edges[PLAYS].data[dgl.EID].tolist() == [3, 4]
    assert batch[1].edges["follows"].data[dgl.EID].tolist() == [9]
    nodes = NodeCollator(g, {"user": [1], "game": [0, 2]}, NeighborSampler([2]))
    (batch,) = DataLoader(nodes.dataset, 3, collate_fn=nodes.collate)
    assert {ntype: ids.tolist() for ntype, ids in batch[1].items()} == {"user": [1], "game": [0, 2]}


def test_worker_processes_of_torch_draw_anew():
    """They inherit one count of calls; two workers or two epochs must not draw the same."""
    g = friends()
    nodes = NodeCollator(g, [7] * 4, NeighborSampler([2]))
    loader = DataLoader(nodes.dataset, 1, collate_fn=nodes.collate, num_workers=2)
    drawn = [blocks[0].edata[dgl.EID].tolist() for _ in range(3) for _, _, blocks in loader]
    assert len({tuple(eids) for eids in drawn}) > 6


def test_a_last_batch_that_is_left_out_warns():
    with pytest.warns(UserWarning, match="drop_last"):
        assert not list(GraphDataLoader([dgl.rand_graph(2, 3)] * 3, batch_size=4, drop_last=True))
