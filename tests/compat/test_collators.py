"""Mini-batches by torch's own DataLoader, with DGL's older collators."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import gnnlab as dgl
from gnnlab.compat.distributed.dist_dataloader import EdgeCollator, NodeCollator
from gnnlab.dataloading import NeighborSampler
from gnnlab.dataloading.negative_sampler import Uniform
from gnnlab.errors import InvalidInput
from tests.dataloading.samples import FOLLOWS, PLAYS, REVERSE, friends, players


def test_masks_of_nodes():
    mask = torch.arange(100) % 40 == 3
    nodes = NodeCollator(friends(), mask, NeighborSampler([2]))
    (batch,) = DataLoader(nodes.dataset, 50, collate_fn=nodes.collate)
    assert batch[1].tolist() == [3, 43, 83]
    for wrong in (mask.to(torch.uint8), mask[:50], mask.float(), mask.unsqueeze(1)):
        with pytest.raises(InvalidInput):
            NodeCollator(friends(), wrong, NeighborSampler([2]))
    count = players().num_nodes("game")
    typed = NodeCollator(players(), {"game": np.arange(count) % 9 == 1}, NeighborSampler([2]))
    assert typed.dataset == [("game", i) for i in range(1, count, 9)]


def test_edges():
    g = friends()
    edges = EdgeCollator(
        *(g, range(100), NeighborSampler([3, 3]), g, "reverse_id", REVERSE),
        negative_sampler=Uniform(2),
    )
    loader = DataLoader(edges.dataset, 32, collate_fn=edges.collate, shuffle=True, num_workers=1)
    seen = []
    for inputs, pairs, negatives, blocks in loader:
        eids = pairs.edata[dgl.EID]
        assert torch.equal(pairs.edata["y"], eids) and negatives.num_edges() == 2 * len(eids)
        assert torch.equal(blocks[0].srcdata["x"], g.ndata["x"][inputs])
        for block in blocks:
            assert not torch.isin(block.edata[dgl.EID], torch.cat([eids, REVERSE[eids]])).any()
        seen += eids.tolist()
    assert sorted(seen) == list(range(100))


def test_types():
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
    nodes = NodeCollator(friends(), [7] * 4, NeighborSampler([2]))
    loader = DataLoader(nodes.dataset, 1, collate_fn=nodes.collate, num_workers=2)
    drawn = [blocks[0].edata[dgl.EID].tolist() for _ in range(3) for _, _, blocks in loader]
    assert len({tuple(eids) for eids in drawn}) > 6
