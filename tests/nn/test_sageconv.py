"""SAGEConv: values of DGL 2.1, dense matrices, pairs, weights, errors."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from gnnlab.nn import SAGEConv
from tests.accelerator import GPU
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

AGGREGATORS = ("mean", "gcn", "pool", "lstm")
DGL_VALUES = OF_DGL["SAGEConv"]


@pytest.mark.parametrize("case", DGL_VALUES)
def test_values_of_dgl(case):
    aggregator, in_feats, out_feats = case.split()
    layer = fill(SAGEConv(int(in_feats), int(out_feats), aggregator))
    feat, (on_graph, weighted, on_block) = ramp(4, int(in_feats)), DGL_VALUES[case]
    assert_close(layer(toy_graph(), feat), on_graph)
    assert_close(layer(toy_graph(), feat, EDGE_WEIGHT), weighted)
    assert_close(layer(toy_graph(), feat, EDGE_WEIGHT.view(-1, 1)), weighted)
    assert_close(layer(toy_block(), feat), on_block)


def dense(layer: SAGEConv, graph, src, dst, edge_weight):
    """The layer with matrices and loops over nodes, in float64."""
    layer = layer.double()
    src, dst = src.double(), dst.double()
    if layer.aggregator_type == "gcn":
        degrees = adjacency(graph).sum(1, keepdim=True)
        total = adjacency(graph, edge_weight) @ src + dst
        return layer.fc_neigh(total / (degrees + 1)) + layer.bias
    if layer.aggregator_type == "mean":
        summary = mean_adjacency(graph, edge_weight) @ src
    else:
        rows = layer.fc_pool(src).relu() if layer.aggregator_type == "pool" else src
        sources, destinations = graph.edges()
        messages = rows[sources.long()] * edge_weight.double().view(-1, 1)
        summary = torch.zeros(len(dst), src.shape[1], dtype=torch.float64)
        for node in destinations.unique().tolist():
            inbox = messages[destinations == node]
            if layer.aggregator_type == "pool":
                summary[node] = inbox.max(0).values
            else:
                summary[node] = layer.lstm(inbox)[0][-1]
    return layer.fc_self(dst) + layer.fc_neigh(summary)


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
@pytest.mark.parametrize("out_feats", [3, 8], ids=["shrinks", "grows"])
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_dense_reference(graph, aggregator, out_feats):
    torch.manual_seed(0)
    layer = SAGEConv(6, out_feats, aggregator)
    src, dst = torch.randn(graph.num_src_nodes(), 6), torch.randn(graph.num_dst_nodes(), 6)
    edge_weight = torch.rand(graph.num_edges())
    found = layer(graph, (src, dst), edge_weight).detach()
    assert_close(found, dense(layer, graph, src, dst, edge_weight).detach())


def test_activation_comes_before_norm():
    """DGL 2.1 gives relu first: the norm may make the output negative."""
    layer = fill(SAGEConv(3, 2, "mean", activation=torch.relu, norm=lambda out: out - 10))
    assert_close(layer(toy_block(), ramp(4, 3)), [[-10, -9.32], [-10, -9.473333]])


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_without_edges_only_the_own_row_counts(aggregator):
    graph = dgl.graph(([], []), num_nodes=3)
    layer, feat = SAGEConv(4, 2, aggregator), torch.randn(3, 4)
    own = layer.fc_neigh if aggregator == "gcn" else layer.fc_self
    assert_close(layer(graph, feat), own(feat))


@pytest.mark.parametrize("aggregator", ["mean", "gcn", "pool"])
def test_rows_may_be_matrices(aggregator):
    layer, feat = SAGEConv(3, 2, aggregator), torch.randn(4, 5, 3)
    out = layer(toy_graph(), feat)
    assert out.shape == (4, 5, 2)
    assert_close(out[:, 1], layer(toy_graph(), feat[:, 1]))


def test_one_dropout_mask_serves_sources_and_destinations():
    graph = dgl.graph(([0], [0]))
    layer = SAGEConv(50, 50, "mean", feat_drop=0.5, bias=False)
    with torch.no_grad():
        layer.fc_self.weight.copy_(torch.eye(50))
        layer.fc_neigh.weight.copy_(-torch.eye(50))
    assert_close(layer(graph, torch.ones(1, 50)), torch.zeros(1, 50))


def test_wrong_number_of_edge_weights():
    for wrong in (torch.ones(2), torch.tensor(1.0), torch.ones(7).double(), torch.ones(7) + 0j):
        for aggregator in ("mean", "lstm"):
            with pytest.raises(dgl.DGLError, match="edge_weight"):
                SAGEConv(3, 2, aggregator)(toy_graph(), ramp(4, 3), wrong)


@pytest.mark.gpu
def test_an_lstm_has_gradients_in_eval_mode() -> None:
    """cuDNN refuses them unless the LSTM itself is in training mode."""
    grads, modes = [], []
    for device in ("cpu", GPU):
        layer = fill(SAGEConv(3, 2, "lstm")).double().to(device).eval()
        layer.lstm.register_forward_hook(lambda lstm, *_: modes.append(lstm.training))
        layer(toy_graph().to(device), ramp(4, 3).double().to(device)).sum().backward()
        grads.append([p.grad.cpu() for p in layer.parameters()])
        with torch.no_grad():
            layer(toy_graph().to(device), ramp(4, 3).double().to(device))
        assert modes[0] and not modes[-1] and not layer.lstm.training
    for mine, theirs in zip(*grads, strict=True):
        assert_close(mine, theirs)
