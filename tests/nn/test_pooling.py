"""SumPooling and AvgPooling: one row per graph of a batch."""

from __future__ import annotations

import dataclasses

import torch

from gnnlab.nn import AvgPooling, SumPooling
from tests.nn.toy import assert_close, ramp, toy_graph


@dataclasses.dataclass
class Batch:
    """What pooling asks of a batch of graphs."""

    sizes: list[int]

    def batch_num_nodes(self) -> torch.Tensor:
        return torch.tensor(self.sizes)


def test_values_of_dgl():
    """DGL 2.1, graphs of four and three nodes."""
    batch, feat = Batch([4, 3]), ramp(7, 3)
    assert_close(SumPooling()(batch, feat), [[0.7, 0.2, -1.4], [0.3, -0.9, 1.2]])
    assert_close(AvgPooling()(batch, feat), [[0.175, 0.05, -0.35], [0.1, -0.3, 0.4]])


def test_a_graph_is_a_batch_of_one():
    feat = ramp(4, 3)
    assert_close(SumPooling()(toy_graph(), feat), feat.sum(0, keepdim=True))
    assert_close(AvgPooling()(toy_graph(), feat), feat.mean(0, keepdim=True))


def test_a_graph_without_nodes_gives_zero():
    assert_close(SumPooling()(Batch([0, 4]), ramp(4, 3))[0], torch.zeros(3))
    assert_close(AvgPooling()(Batch([0, 4]), ramp(4, 3))[0], torch.zeros(3))
