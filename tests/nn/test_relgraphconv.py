"""RelGraphConv: values of DGL 2.1, dense matrices, edges sorted by relation, errors."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from gnnlab.nn import RelGraphConv
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

ETYPES = torch.tensor([0, 1, 0, 2, 1, 2, 0])
BLOCK_ETYPES = torch.tensor([1, 0, 2, 0])
DGL_VALUES = OF_DGL["RelGraphConv"]


@pytest.mark.parametrize(("regularizer", "in_feat"), [(None, 3), ("basis", 3), ("bdd", 4)])
def test_values_of_dgl(regularizer, in_feat):
    layer = fill(RelGraphConv(in_feat, 2, 3, regularizer, num_bases=2))
    feat = ramp(4, in_feat)
    on_graph, weighted, on_block = DGL_VALUES[f"{regularizer} {in_feat}"]
    assert_close(layer(toy_graph(), feat, ETYPES), on_graph)
    assert_close(layer(toy_graph(), feat, ETYPES.int()), on_graph)
    assert_close(layer(toy_graph(), feat, ETYPES, EDGE_WEIGHT.view(-1, 1)), weighted)
    assert_close(layer(toy_block(), feat, BLOCK_ETYPES), on_block)
    assert_close(layer(toy_block(), (feat, feat[:2]), BLOCK_ETYPES), on_block)


def test_layer_norm_and_activation():
    """DGL 2.1: the sum of the messages is normalized, then bias and own row are added."""
    layer = fill(RelGraphConv(3, 2, 3, layer_norm=True, activation=torch.relu))
    out = layer(toy_graph(), ramp(4, 3), ETYPES)
    assert_close(out, [[0, 0.78997], [0, 0.56003], [0, 1.19997], [0, 1.23997]])


def test_without_self_loop_and_bias():
    """DGL 2.1."""
    layer = fill(RelGraphConv(3, 2, 3, self_loop=False, bias=False))
    assert_close(layer(toy_block(), ramp(4, 3), BLOCK_ETYPES), [[0.2, 0.2], [0.05, 0.03]])


@pytest.mark.parametrize("graph", random_graphs(), ids=["graph", "block"])
@pytest.mark.parametrize("regularizer", [None, "basis", "bdd"])
def test_dense_reference(graph, regularizer):
    """One adjacency matrix per relation."""
    torch.manual_seed(0)
    layer = RelGraphConv(6, 4, 3, regularizer, num_bases=2)
    feat, norm = torch.randn(graph.num_src_nodes(), 6), torch.rand(graph.num_edges())
    etypes = torch.randint(3, (graph.num_edges(),))
    weight = layer.linear_r.get_weight()
    if regularizer == "bdd":
        weight = torch.stack([torch.block_diag(*blocks) for blocks in weight.view(3, 2, 3, 2)])
    expected = feat[: graph.num_dst_nodes()].double() @ layer.loop_weight.double()
    for relation in range(3):
        matrix = adjacency(graph, norm * (etypes == relation))
        expected = expected + matrix @ feat.double() @ weight[relation].double()
    assert_close(layer(graph, feat, etypes, norm), expected + layer.h_bias)


def test_edges_sorted_by_relation():
    layer, feat = fill(RelGraphConv(3, 2, 3)), ramp(4, 3)
    src, dst = toy_graph().edges()
    etypes, order = ETYPES.sort(stable=True)
    graph = dgl.graph((src[order], dst[order]))
    expected = DGL_VALUES["None 3"][0]
    assert_close(layer(graph, feat, etypes), expected)
    assert_close(layer(graph, feat, etypes, presorted=True), expected)
    assert_close(layer(graph, feat, [3, 2, 2]), expected)


@pytest.mark.parametrize("counts", [[3, 2], [3, 2, 1], [0, 1, 0, 2, 1, 2, 0]])
def test_counts_must_fit(counts):
    with pytest.raises(dgl.DGLError, match=r"\(3\).* 7 edges"):
        RelGraphConv(3, 2, 3)(toy_graph(), ramp(4, 3), counts)
