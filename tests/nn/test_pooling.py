"""SumPooling and AvgPooling: one row per graph of a batch."""

from __future__ import annotations

import torch

import gnnlab as dgl
from gnnlab.nn import AvgPooling, SumPooling
from tests.nn.toy import assert_close, ramp, toy_graph


def batch(*sizes: int) -> dgl.Graph:
    return dgl.batch([dgl.graph(([], []), num_nodes=size) for size in sizes])


def test_values_of_dgl():
    """DGL 2.1, graphs of four and three nodes."""
    feat = ramp(7, 3)
    assert_close(SumPooling()(batch(4, 3), feat), [[0.7, 0.2, -1.4], [0.3, -0.9, 1.2]])
    assert_close(AvgPooling()(batch(4, 3), feat), [[0.175, 0.05, -0.35], [0.1, -0.3, 0.4]])


def test_one_graph_and_one_without_nodes():
    feat = ramp(4, 3)
    assert_close(SumPooling()(toy_graph(), feat), feat.sum(0, keepdim=True))
    assert_close(SumPooling()(batch(0, 4), feat)[0], torch.zeros(3))
    assert_close(AvgPooling()(batch(0, 4), feat)[0], torch.zeros(3))
