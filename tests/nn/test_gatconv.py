"""GATConv: values of DGL 2.1, dense matrices, attention, residuals, nodes without in-edges."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab.nn import GATConv
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

ON_GRAPH, WEIGHTED, ON_BLOCK = OF_DGL["GATConv"]["two heads"]


def test_values_of_dgl():
    layer, feat = fill(GATConv(3, 2, 2)), ramp(4, 3)
    assert_close(layer(toy_graph(), feat), ON_GRAPH)
    assert_close(layer(toy_graph(), feat, edge_weight=EDGE_WEIGHT), WEIGHTED)
    assert_close(layer(toy_block(), feat), ON_BLOCK)
    pair = [[[0.42, 0.02], [0.28, -0.12]], [[0.25914, -0.12247], [0.24006, -0.1433]]]
    assert_close(layer(toy_block(), (feat, feat[2:])), pair)


def test_residual_through_a_linear_layer():
    """DGL 2.1, with an activation."""
    layer = fill(GATConv(3, 2, 2, residual=True, activation=torch.tanh))
    expected = [
        [[0.50798, 0.20697], [-0.59798, 0.05993]],
        [[0.09448, -0.28686], [-0.1345, 0.56544]],
        [[0.13533, -0.24185], [-0.1872, 0.54343]],
        [[0.19738, -0.19738], [-0.26362, 0.49299]],
    ]
    assert_close(layer(toy_graph(), ramp(4, 3)), expected)


def test_residual_of_equal_size():
    """DGL 2.1: the row itself is added."""
    layer = fill(GATConv(4, 2, 2, residual=True))
    expected = [[[-0.67, -0.13], [-0.14, 0.4]], [[0.13566, -0.52456], [0.76466, 0.09769]]]
    assert_close(layer(toy_block(), ramp(4, 4)), expected)


def test_rows_may_be_matrices():
    """DGL 2.1, the first destination."""
    layer = fill(GATConv(3, 2, 2))
    out, attention = layer(toy_graph(), ramp(4, 2, 3), get_attention=True)
    assert out.shape == (4, 2, 2, 2) and attention.shape == (7, 2, 2, 1)
    assert_close(out[0], [[[-0.02, -0.47], [0.73, 0.28]], [[-0.02, -0.44], [0.68, 0.26]]])


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
@pytest.mark.parametrize("in_feats", [6, (6, 5)], ids=["shared", "pair"])
def test_dense_reference(graph, in_feats):
    """Softmax over a matrix of logits; parallel edges share their weight."""
    torch.manual_seed(0)
    heads, size = 3, 4
    layer = GATConv(in_feats, size, heads, allow_zero_in_degree=True)
    src = torch.randn(graph.num_src_nodes(), 6)
    dst = torch.randn(graph.num_dst_nodes(), 6 if in_feats == 6 else 5)
    out, attention = layer(graph, (src, dst), get_attention=True)
    fc_src, fc_dst = (layer.fc, layer.fc) if in_feats == 6 else (layer.fc_src, layer.fc_dst)
    rows_src = fc_src(src).view(-1, heads, size).double()
    rows_dst = fc_dst(dst).view(-1, heads, size).double()
    scores_src, scores_dst = (rows_src * layer.attn_l).sum(-1), (rows_dst * layer.attn_r).sum(-1)
    logits = F.leaky_relu(scores_dst[:, None] + scores_src[None], 0.2)  # (dst, src, heads)
    parallel = adjacency(graph)[..., None]
    weights = (logits + parallel.log()).softmax(1).nan_to_num()
    expected = torch.einsum("vuh,uhd->vhd", weights, rows_src) + layer.bias.view(heads, size)
    assert_close(out, expected)
    sources, destinations = (ends.long() for ends in graph.edges())
    assert_close(attention[..., 0], (weights / parallel)[destinations, sources])


def test_dropout_of_attention():
    layer = GATConv(3, 2, 1, attn_drop=0.5)
    torch.manual_seed(0)
    _, attention = layer(toy_graph(), ramp(4, 3), get_attention=True)
    assert (attention == 0).any()
    _, attention = layer.eval()(toy_graph(), ramp(4, 3), get_attention=True)
    assert (attention > 0).all()


def test_nodes_without_in_edges_are_refused():
    graph = dgl.graph(([0, 0], [1, 1]), num_nodes=3)
    layer = fill(GATConv(3, 2, 2))
    with pytest.raises(dgl.DGLError, match="GATConv: 2 of 3"):
        layer(graph, ramp(3, 3))
    layer.set_allow_zero_in_degree(True)
    # DGL 2.1: they get the bias.
    bias = [[0.1, -0.3], [0.4, 0.0]]
    assert_close(layer(graph, ramp(3, 3)), [bias, [[-0.02, -0.37], [0.16, -0.19]], bias])
