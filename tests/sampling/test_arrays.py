"""Blocks from plain arrays are those of ``NeighborSampler``, and layers take them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.relation import Relation
from gnnlab.random import fold, stream
from gnnlab.sampling.arrays import sample_blocks


def ring(num_nodes: int = 12) -> dgl.Graph:
    """Each node has in-edges from the four before it."""
    src = torch.arange(num_nodes).repeat_interleave(4)
    return dgl.graph((src, (src + torch.arange(4).repeat(num_nodes) + 1) % num_nodes))


@given(st.integers(0, 99), st.lists(st.sampled_from([-1, 0, 1, 2, 3]), min_size=1, max_size=3))
def test_equal_to_the_sampler_of_graphs(batch: int, fanouts: list[int]) -> None:
    g, seeds = ring(), torch.tensor([7, 2, 3])
    with stream(1, batch):
        input_nodes, _, expected = dgl.dataloading.NeighborSampler(fanouts).sample(g, seeds)
    found = sample_blocks(g.relation(), seeds, fanouts, fold(1, batch))
    assert found[0].src_ids.tolist() == input_nodes.tolist()
    for block, other in zip(found, expected, strict=True):
        assert block.src_ids.tolist() == other.srcdata[dgl.NID].tolist()
        assert block.num_dst_nodes() == other.num_dst_nodes()
        assert block.num_src_nodes() == other.num_src_nodes()
        for mine, theirs in zip(block.relation().coo(), other.edges(), strict=True):
            assert mine.tolist() == theirs.tolist()
        eids = g.relation().csc().eids[block.slots.long()]
        assert eids.tolist() == other.edata[dgl.EID].tolist()
        assert block.num_edges() == len(eids)


def test_layers_take_them() -> None:
    g, x = ring(), torch.rand(12, 5)
    layer = dgl.nn.SAGEConv(5, 3, "mean")
    (block,) = sample_blocks(g.relation(), torch.tensor([4, 9]), [-1], key=0)
    torch.testing.assert_close(layer(block, x[block.src_ids]), layer(g, x)[[4, 9]])


def test_refuses() -> None:
    relation = ring().relation()
    with pytest.raises(InvalidInput, match="stands twice"):
        sample_blocks(relation, torch.tensor([1, 1]), [2], key=0)
    with pytest.raises(OutOfRange, match="node 12 does not exist"):
        sample_blocks(relation, torch.tensor([12]), [2], key=0)
    two_kinds = Relation.from_edges(torch.tensor([0]), torch.tensor([1]), 2, 3)
    with pytest.raises(InvalidInput, match="2 sources and 3 destinations"):
        sample_blocks(two_kinds, torch.tensor([0]), [2], key=0)
