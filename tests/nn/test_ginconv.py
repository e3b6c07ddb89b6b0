"""GINConv and GINEConv: values of DGL 2.1, dense matrices, errors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gnnlab.nn import GINConv, GINEConv
from tests.nn.toy import (
    EDGE_WEIGHT,
    OF_DGL,
    adjacency,
    assert_close,
    fill,
    mean_adjacency,
    ramp,
    random_graphs,
    toy_block,
    toy_graph,
)

DGL_VALUES = OF_DGL["GINConv"]


@pytest.mark.parametrize("aggregator", DGL_VALUES)
def test_values_of_dgl(aggregator):
    layer = fill(GINConv(nn.Linear(3, 2), aggregator, init_eps=0.5, activation=torch.tanh))
    on_graph, weighted, on_block = DGL_VALUES[aggregator]
    assert_close(layer(toy_graph(), ramp(4, 3)), on_graph)
    assert_close(layer(toy_graph(), ramp(4, 3), EDGE_WEIGHT), weighted)
    assert_close(layer(toy_block(), ramp(4, 3)), on_block)


def test_edge_features_of_dgl():
    layer = fill(GINEConv(nn.Linear(3, 2), init_eps=0.5))
    expected = [[-0.36, 0.315], [-0.39, 0.135], [-0.15, 0.43], [-0.87, -0.225]]
    assert_close(layer(toy_graph(), ramp(4, 3), ramp(7, 3, start=1)), expected)
    expected = [[-0.02, 0.685], [-0.07, 0.475]]
    assert_close(layer(toy_block(), ramp(4, 3), ramp(4, 3, start=1)), expected)


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
@pytest.mark.parametrize("aggregator", ["sum", "mean"])
def test_dense_reference(graph, aggregator):
    torch.manual_seed(0)
    layer = GINConv(nn.Linear(6, 3), aggregator, init_eps=0.3)
    feat, edge_weight = torch.randn(graph.num_src_nodes(), 6), torch.rand(graph.num_edges())
    matrix = (adjacency if aggregator == "sum" else mean_adjacency)(graph, edge_weight)
    total = 1.3 * feat[: graph.num_dst_nodes()] + (matrix @ feat.double()).float()
    assert_close(layer(graph, feat, edge_weight), layer.apply_func(total))


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
def test_edge_features_dense(graph):
    torch.manual_seed(0)
    feat, edge_feat = torch.randn(graph.num_src_nodes(), 6), torch.randn(graph.num_edges(), 6)
    expected = feat[: graph.num_dst_nodes()].clone()
    for (src, dst), edge in zip(zip(*graph.edges(), strict=True), edge_feat, strict=True):
        expected[dst] += (feat[src] + edge).relu()
    assert_close(GINEConv()(graph, feat, edge_feat), expected)


def test_learned_epsilon_gets_a_gradient():
    layer = GINConv(learn_eps=True)
    layer(toy_graph(), ramp(4, 3)).sum().backward()
    assert_close(layer.eps.grad, ramp(4, 3).sum().view(1))


def test_nan_in_edge_features_warns():
    with pytest.warns(UserWarning, match="edge features"):
        GINEConv()(toy_graph(), ramp(4, 3), torch.full((7, 3), torch.nan))
    with pytest.raises(ValueError, match="edge features"):
        GINEConv()(toy_graph(), ramp(4, 3), ramp(6, 3))
