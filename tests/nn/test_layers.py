"""What every layer keeps: DGL's state_dict and initial values, gradients, pickling, repr."""

from __future__ import annotations

import io
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call

from gnnlab.nn import (
    EdgePredictor,
    GATConv,
    GINConv,
    GINEConv,
    GraphConv,
    HeteroGraphConv,
    RelGraphConv,
    SAGEConv,
    TypedLinear,
    WeightBasis,
)
from tests.helpers import computes_lstm_in_bfloat16
from tests.nn.toy import random_block, random_graph, toy_graph

# DGL 2.1: names and shapes of state_dict(); KEY is a canonical edge type.
STATES = [
    (SAGEConv(5, 3, "mean"), "fc_neigh.weight 3,5 fc_self.weight 3,5 fc_self.bias 3"),
    (SAGEConv((5, 4), 3, "mean", bias=False), "fc_neigh.weight 3,5 fc_self.weight 3,4"),
    (SAGEConv(5, 3, "gcn"), "bias 3 fc_neigh.weight 3,5"),
    (SAGEConv(5, 3, "gcn", bias=False), "fc_neigh.weight 3,5"),
    (
        SAGEConv((5, 4), 3, "pool"),
        "fc_pool.weight 5,5 fc_pool.bias 5 fc_neigh.weight 3,5 fc_self.weight 3,4 fc_self.bias 3",
    ),
    (
        SAGEConv(5, 3, "lstm"),
        "lstm.weight_ih_l0 20,5 lstm.weight_hh_l0 20,5 lstm.bias_ih_l0 20 lstm.bias_hh_l0 20 "
        "fc_neigh.weight 3,5 fc_self.weight 3,5 fc_self.bias 3",
    ),
    (GraphConv(5, 3), "weight 5,3 bias 3"),
    (GraphConv(5, 3, weight=False, bias=False), ""),
    (GATConv(5, 3, 2), "attn_l 1,2,3 attn_r 1,2,3 bias 6 fc.weight 6,5"),
    (
        GATConv(5, 3, 2, residual=True),
        "attn_l 1,2,3 attn_r 1,2,3 fc.weight 6,5 res_fc.weight 6,5 res_fc.bias 6",
    ),
    (GATConv(6, 3, 2, residual=True), "attn_l 1,2,3 attn_r 1,2,3 bias 6 fc.weight 6,6"),
    (
        GATConv((5, 4), 3, 2, residual=True, bias=False),
        "attn_l 1,2,3 attn_r 1,2,3 fc_src.weight 6,5 fc_dst.weight 6,4 res_fc.weight 6,4",
    ),
    (RelGraphConv(4, 6, 3), "h_bias 6 loop_weight 4,6 linear_r.W 3,4,6"),
    (
        RelGraphConv(4, 6, 3, "basis", 2),
        "h_bias 6 loop_weight 4,6 linear_r.W 2,4,6 linear_r.coeff 3,2",
    ),
    (
        RelGraphConv(4, 6, 3, "bdd", 2, bias=False, self_loop=False, layer_norm=True),
        "linear_r.W 3,12 layer_norm_weight.weight 6 layer_norm_weight.bias 6",
    ),
    (GINConv(nn.Linear(5, 3)), "eps 1 apply_func.weight 3,5 apply_func.bias 3"),
    (GINEConv(learn_eps=True), "eps 1"),
    (EdgePredictor("cat", 5, 3, bias=True), "linear.weight 3,10 linear.bias 3"),
    (WeightBasis((4, 5), 2, 3), "weight 2,4,5 w_comp 3,2"),
    (TypedLinear(4, 6, 3), "W 3,4,6"),
    (
        HeteroGraphConv({"a": GraphConv(5, 3), ("u", "b", "v"): GraphConv(5, 3, bias=False)}),
        "mods.a.weight 5,3 mods.a.bias 3 mods.KEY.weight 5,3",
    ),
]


@pytest.mark.parametrize(("layer", "expected"), STATES, ids=lambda value: type(value).__name__)
def test_state_dict_of_dgl(layer, expected):
    words = expected.split()
    shapes = {
        name.replace("KEY", "('u', 'b', 'v')"): tuple(map(int, shape.split(",")))
        for name, shape in zip(words[::2], words[1::2], strict=True)
    }
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == shapes
    layer.load_state_dict({name: torch.zeros(shape) for name, shape in shapes.items()})


# DGL 2.1 after torch.manual_seed(0): the sum of all values of each parameter.
INITIAL = [
    (
        lambda: SAGEConv(5, 3, "mean"),
        "fc_neigh.weight 0.28344 fc_self.weight -2.61388 fc_self.bias -0.07781",
    ),
    (lambda: SAGEConv(5, 3, "gcn"), "bias 0.0 fc_neigh.weight 0.85101"),
    (
        lambda: SAGEConv(5, 3, "pool"),
        "fc_pool.weight 2.54574 fc_pool.bias -0.35736 fc_neigh.weight -3.09945 fc_self.weight "
        "0.7926 fc_self.bias 0.1173",
    ),
    (
        lambda: SAGEConv(5, 3, "lstm"),
        "lstm.weight_ih_l0 1.72491 lstm.weight_hh_l0 1.75207 lstm.bias_ih_l0 -0.33312 "
        "lstm.bias_hh_l0 1.09444 fc_neigh.weight -2.99983 fc_self.weight -0.54247 fc_self.bias "
        "-0.84465",
    ),
    (lambda: GraphConv(5, 3), "weight -2.3614 bias 0.0"),
    (
        lambda: GATConv((5, 4), 3, 2, residual=True),
        "attn_l -0.23136 attn_r 1.57025 fc_src.weight 4.44708 fc_dst.weight 2.66019 "
        "res_fc.weight 1.15745 res_fc.bias 0.0",
    ),
    (
        lambda: RelGraphConv(4, 6, 3, "basis", 2),
        "h_bias 0.0 loop_weight 2.50541 linear_r.W -2.17003 linear_r.coeff 2.61208",
    ),
    (
        lambda: RelGraphConv(4, 6, 3, "bdd", 2),
        "h_bias 0.0 loop_weight -0.07618 linear_r.W -3.04153",
    ),
    (lambda: WeightBasis((4, 5), 2, 3), "weight -1.95722 w_comp -3.8152"),
    (lambda: EdgePredictor("cat", 5, 3, bias=True), "linear.weight -0.64253 linear.bias -0.05502"),
]


@pytest.mark.parametrize(("build", "sums"), INITIAL)
def test_initial_values_of_dgl(build, sums):
    torch.manual_seed(0)
    found = {name: float(value.double().sum()) for name, value in build().state_dict().items()}
    words = sums.split()
    expected = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    assert found == pytest.approx(expected, abs=1e-4)


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
    build, extras = GRADIENTS[kind]
    layer, graph = build().double(), make(6, 10)
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

    assert torch.autograd.gradcheck(run, (feat, *extra, *values))


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
    build, extras = GRADIENTS[kind]
    layer, graph = build(), toy_graph()
    others = {"etypes": torch.randint(3, (7,)), "edge_feat": torch.randn(7, 3)}
    inputs = torch.randn(4, 4 if "etypes" in extras else 3), *(others[name] for name in extras)
    exact = layer(graph, *inputs)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(graph, *inputs)
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)
    rounded.float().sum().backward()


@pytest.mark.parametrize("layer", [layer for layer, _ in STATES], ids=lambda x: type(x).__name__)
def test_pickle_and_torch_save(layer):
    file = io.BytesIO()
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
