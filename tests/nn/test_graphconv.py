"""GraphConv: values of DGL 2.1, dense matrices, outside weights, nodes without in-edges."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from gnnlab.nn import GraphConv
from tests.nn.toy import (
    EDGE_WEIGHT,
    OF_DGL,
    adjacency,
    assert_close,
    fill,
    ramp,
    random_graphs,
    toy_block,
    toy_graph,
)

NORMS = ("both", "right", "left", "none")
DGL_VALUES = OF_DGL["GraphConv"]


@pytest.mark.parametrize("case", DGL_VALUES)
def test_values_of_dgl(case):
    norm, in_feats, out_feats = case.split()
    layer = fill(GraphConv(int(in_feats), int(out_feats), norm=norm))
    feat, (on_graph, weighted, on_block) = ramp(4, int(in_feats)), DGL_VALUES[case]
    assert_close(layer(toy_graph(), feat), on_graph)
    assert_close(layer(toy_graph(), feat, edge_weight=EDGE_WEIGHT), weighted)
    assert_close(layer(toy_block(), feat), on_block)
    assert_close(layer(toy_block(), (feat, feat[:2])), on_block)


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
@pytest.mark.parametrize("out_feats", [3, 8], ids=["shrinks", "grows"])
@pytest.mark.parametrize("norm", NORMS)
def test_dense_reference(graph, norm, out_feats):
    torch.manual_seed(0)
    layer = GraphConv(6, out_feats, norm=norm, allow_zero_in_degree=True)
    feat, edge_weight = torch.randn(graph.num_src_nodes(), 6), torch.rand(graph.num_edges())
    out_degrees, in_degrees = (adjacency(graph).sum(axis).clamp(min=1) for axis in (0, 1))
    left = {"left": 1 / out_degrees, "both": out_degrees**-0.5}.get(norm, 1 + 0 * out_degrees)
    right = {"right": 1 / in_degrees, "both": in_degrees**-0.5}.get(norm, 1 + 0 * in_degrees)
    matrix = right[:, None] * adjacency(graph, edge_weight) * left
    expected = matrix @ feat.double() @ layer.weight.double() + layer.bias.double()
    assert_close(layer(graph, feat, edge_weight=edge_weight), expected)


def test_rows_may_be_matrices():
    layer, feat = GraphConv(3, 2), torch.randn(4, 5, 3)
    assert_close(layer(toy_graph(), feat)[:, 1], layer(toy_graph(), feat[:, 1]))


def test_without_a_weight():
    """DGL 2.1: the rows keep their size."""
    layer = GraphConv(3, 2, weight=False, bias=False)
    expected = [
        [0.4, 0.0, -0.4],
        [-0.1, 0.05, -0.35],
        [0.12247, 0.08165, -0.40825],
        [0.35355, 0.07071, -0.21213],
    ]
    assert_close(layer(toy_graph(), ramp(4, 3)), expected)


def test_weight_from_outside():
    """DGL 2.1, weight given to forward."""
    layer = GraphConv(3, 2, weight=False, bias=False)
    expected = [[-0.24, 0.2], [0.005, 0.11], [-0.11839, 0.18779], [-0.21213, 0.16971]]
    assert_close(layer(toy_graph(), ramp(4, 3), weight=ramp(3, 2)), expected)


def test_nodes_without_in_edges_are_refused():
    graph = dgl.graph(([0, 0], [1, 1]), num_nodes=3)
    layer = fill(GraphConv(3, 2))
    with pytest.raises(dgl.DGLError, match=r"2 of 3.*add_self_loop"):
        layer(graph, ramp(3, 3))
    layer.set_allow_zero_in_degree(True)
    # DGL 2.1: they get the bias.
    assert_close(layer(graph, ramp(3, 3)), [[-0.5, 0.2], [-0.46, -0.11], [-0.5, 0.2]])


def test_no_nodes_at_all():
    graph = dgl.graph(([], []), num_nodes=0)
    assert GraphConv(3, 2)(graph, torch.empty(0, 3)).shape == (0, 2)
