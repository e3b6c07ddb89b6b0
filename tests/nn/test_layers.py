"""What every layer keeps: DGL's state_dict and initial values, gradients, pickling, repr."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.func import functional_call

from gnnlab import nn as layers
from gnnlab.nn import (
    EdgePredictor,
    GATConv,
    GINConv,
    GINEConv,
    GraphConv,
    HeteroGraphConv,
    RelGraphConv,
    SAGEConv,
)
from tests.helpers import computes_lstm_in_bfloat16
from tests.nn.toy import random_block, random_graph, toy_graph

# What DGL 2.1 has: layer → name of a parameter → its shape, and its sum after torch.manual_seed(0).
STATES = json.loads(Path(__file__).with_name("layers.json").read_text("utf8"))


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    return eval(name, {**vars(layers), "nn": nn})


@pytest.mark.parametrize("name", STATES)
def test_state_dict_of_dgl(name):
    layer = build(name)
    found = {key: list(value.shape) for key, value in layer.state_dict().items()}
    assert found == {key: shape for key, (shape, _) in STATES[name].items()}
    for key, (_, total) in STATES[name].items():
        if total is not None:
            assert float(layer.state_dict()[key].double().sum()) == pytest.approx(total, abs=1e-4)
    layer.load_state_dict({key: torch.zeros(shape) for key, shape in found.items()})


# How to build a layer, and what its forward takes besides rows.
GRADIENTS = {
    "SAGEConv-mean": (lambda: SAGEConv(3, 2, "mean"), ()),
    "SAGEConv-grows": (lambda: SAGEConv(3, 4, "mean"), ()),
    "SAGEConv-gcn": (lambda: SAGEConv(3, 2, "gcn"), ()),
    "SAGEConv-pool": (lambda: SAGEConv(3, 2, "pool"), ()),
    "SAGEConv-lstm": (lambda: SAGEConv(3, 2, "lstm"), ()),
    "GraphConv-both": (lambda: GraphConv(3, 2, allow_zero_in_degree=True), ()),
    "GraphConv-right": (lambda: GraphConv(3, 4, "right", allow_zero_in_degree=True), ()),
    "GraphConv-left": (lambda: GraphConv(3, 2, "left", allow_zero_in_degree=True), ()),
    "GraphConv-none": (lambda: GraphConv(3, 4, "none", allow_zero_in_degree=True), ()),
    "GATConv": (lambda: GATConv(3, 2, 2, residual=True, allow_zero_in_degree=True), ()),
    "RelGraphConv": (lambda: RelGraphConv(4, 2, 3, layer_norm=True), ("etypes",)),
    "RelGraphConv-basis": (lambda: RelGraphConv(4, 2, 3, "basis", 2), ("etypes",)),
    "RelGraphConv-bdd": (lambda: RelGraphConv(4, 2, 3, "bdd", 2), ("etypes",)),
    "GINConv": (lambda: GINConv(nn.Linear(3, 2), learn_eps=True), ()),
    "GINConv-max": (lambda: GINConv(nn.Linear(3, 2), "max"), ()),
    "GINEConv": (lambda: GINEConv(nn.Linear(3, 2), learn_eps=True), ("edge_feat",)),
}


@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("make", [random_graph, random_block])
def test_gradients(kind, make):
    """Numerical gradients of rows, edge features and every parameter, in float64."""
    torch.manual_seed(0)
    make_layer, extras = GRADIENTS[kind]
    layer, graph = make_layer().double(), make(6, 10)
    size = 4 if "etypes" in extras else 3
    feat = torch.randn(graph.num_src_nodes(), size, dtype=torch.float64, requires_grad=True)
    others = {
        "etypes": torch.randint(3, (graph.num_edges(),)),
        "edge_feat": torch.randn(graph.num_edges(), 3, dtype=torch.float64, requires_grad=True),
    }
    extra = tuple(others[name] for name in extras)
    names = [name for name, _ in layer.named_parameters()]
    values = [parameter.detach().requires_grad_() for parameter in layer.parameters()]

    def run(feat, *rest):
        parameters = dict(zip(names, rest[len(extra) :], strict=True))
        return functional_call(layer, parameters, (graph, feat, *rest[: len(extra)]))

    assert torch.autograd.gradcheck(run, (feat, *extra, *values), fast_mode=True)
    assert torch.autograd.gradgradcheck(run, (feat, *extra, *values), fast_mode=True)


EDGE_WEIGHTED = {
    "mean": lambda: SAGEConv(3, 2, "mean"),
    "gcn": lambda: SAGEConv(3, 2, "gcn"),
    "pool": lambda: SAGEConv(3, 2, "pool"),
    "lstm": lambda: SAGEConv(3, 2, "lstm"),
    "GraphConv": lambda: GraphConv(3, 2),
    "GATConv": lambda: GATConv(3, 2, 2),
    "GINConv": lambda: GINConv(),
}


@pytest.mark.parametrize("kind", EDGE_WEIGHTED)
def test_gradient_of_edge_weights(kind):
    torch.manual_seed(0)
    layer, graph = EDGE_WEIGHTED[kind]().double(), toy_graph()
    feat = torch.randn(4, 3, dtype=torch.float64)
    weight = torch.rand(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: layer(graph, feat, edge_weight=w), (weight,))


@pytest.mark.parametrize(
    "kind", [k for k in GRADIENTS if "lstm" not in k or computes_lstm_in_bfloat16()]
)
def test_mixed_precision(kind):
    """bfloat16 by autocast on the CPU: the result is near the one in float32."""
    torch.manual_seed(0)
    make_layer, extras = GRADIENTS[kind]
    layer, graph = make_layer(), toy_graph()
    others = {"etypes": torch.randint(3, (7,)), "edge_feat": torch.randn(7, 3)}
    inputs = torch.randn(4, 4 if "etypes" in extras else 3), *(others[name] for name in extras)
    exact = layer(graph, *inputs)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(graph, *inputs)
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)
    rounded.float().sum().backward()


@pytest.mark.parametrize("name", STATES)
def test_pickle_and_torch_save(name):
    layer, file = build(name), io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(layer)), torch.load(file, weights_only=False)):
        assert repr(copy) == repr(layer)
        assert all(
            torch.equal(copy.state_dict()[name], value)
            for name, value in layer.state_dict().items()
        )


@pytest.mark.parametrize(
    "make",
    [
        lambda: SAGEConv(3, 2, "max"),
        lambda: GraphConv(3, 2, norm="sym"),
        lambda: GINConv(aggregator_type="lstm"),
        lambda: HeteroGraphConv({}, "average"),
        lambda: EdgePredictor("add"),
    ],
)
def test_an_unknown_choice(make):
    with pytest.raises(KeyError) as error:
        make()
    assert error.value.code == "unknown_choice"
