"""Each layer of ``gnnlab.compat.nn`` against ``nn_references``, and what all layers keep.

The names are read from the package: a layer without a case here is a failure.
``python -m tests.compat.test_nn`` writes the table of docs/dgl_layers.md: layers and references.
"""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import gnnlab as dgl
from gnnlab import compat as dgl_compat
from gnnlab.compat import nn as layers
from tests.accelerator import GPU
from tests.compat import nn_references as ref
from tests.helpers import ROOT, computes_lstm_in_bfloat16
from tests.nn.toy import random_block, random_graph

PAGE = ROOT / "docs/dgl_layers.md"
BEGIN, END = "<!-- layers: begin -->\n", "<!-- layers: end -->\n"
KEY = ("user", "follows", "user")


class Case:
    """How to build a layer, its reference, what forward takes besides the graph, on which graphs.

    Inputs: ``x5`` node rows of size 5, ``p54`` a pair of sizes 5 and 4, ``e4`` edge rows, ``w``
    positive edge weights, ``n2`` node types of 2, ``t3`` edge types of 3; anything else is passed
    as it is. Without names of graphs, the module takes none.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        reference: Callable,
        inputs: str | tuple,
        graphs: str = "whole block",
        attention: bool = False,
    ) -> None:
        self.make, self.reference, self.graphs = make, reference, graphs.split()
        self.inputs = tuple(inputs.split()) if isinstance(inputs, str) else inputs
        self.kwargs = {"get_attention": True} if attention else {}


def whole() -> dgl.Graph:
    return random_graph(7, 18)


def block() -> dgl.Graph:
    return random_block(7, 18)


def bipartite() -> dgl.Graph:
    src, dst = torch.tensor([0, 1, 2, 2, 4, 4, 3]), torch.tensor([0, 0, 1, 1, 2, 0, 0])
    return dgl.heterograph({("u", "r", "v"): (src, dst)}, {"u": 5, "v": 4})


def batch() -> dgl.Graph:
    """Graphs of 4, 1 and 6 nodes."""
    return dgl.batch([random_graph(4, 6), dgl.graph(([0], [0])), random_graph(6, 12, seed=1)])


def matrix(rows: int = 4) -> Tensor:
    """Weights from each of 7 sources, symmetric where it is square; the last row is zero."""
    weights = torch.rand(7, 7, dtype=torch.float64) * (torch.rand(7, 7) < 0.6)
    weights = (weights + weights.T)[:rows]
    weights[-1] = 0
    if rows == 7:
        weights[:, -1] = 0
    return weights


def blocks() -> list[dgl.Graph]:
    """Two blocks: the destinations of the first are the sources of the second."""
    inner = block()
    outer = dgl.to_block(random_graph(inner.num_dst_nodes(), 9))
    return [inner, outer]


GRAPHS = {
    "whole": whole,
    "block": block,
    "blocks": blocks,
    "bipartite": bipartite,
    "batch": batch,
    "matrix": matrix,
    "square": lambda: matrix(7),
}


def sides(g: Any) -> tuple[int, int]:
    """Numbers of source and destination nodes."""
    if isinstance(g, list):
        return g[0].num_src_nodes(), g[-1].num_dst_nodes()
    if isinstance(g, Tensor):
        return g.shape[1], g.shape[0]
    return (7, 7) if g is None else (g.num_src_nodes(), g.num_dst_nodes())


def draw(spec: Any, g: Any) -> Any:
    if isinstance(spec, tuple):
        return tuple(draw(each, g) for each in spec)
    if not isinstance(spec, str):
        return spec
    kind, sizes = spec[0], [int(digit) for digit in spec[1:]]
    if kind == "x":
        return torch.randn(sides(g)[0], *sizes, dtype=torch.float64)
    if kind == "p":
        return tuple(
            torch.randn(n, size, dtype=torch.float64)
            for n, size in zip(sides(g), sizes, strict=True)
        )
    if kind == "e":
        return torch.randn(g.num_edges(), *sizes, dtype=torch.float64)
    if kind == "w":
        return torch.rand(g.num_edges(), *sizes, dtype=torch.float64) + 0.1
    return torch.randint(sizes[0], (sides(g)[0] if kind == "n" else g.num_edges(),))


IDS = {"user": torch.tensor([2, 0, 2]), KEY: torch.tensor([1])}
L = layers
# Two graphs of 4 and 3 nodes, padded to 4, with paths of up to 3 edges.
_DRAW = torch.Generator().manual_seed(5)
DEGREES = torch.tensor([[[1, 2, 9, 0], [3, 1, 1, 0]], [[2, 0, 1, 4], [1, 5, 0, 0]]])
DISTANCES = torch.randint(-1, 4, (2, 4, 4), generator=_DRAW)
PATHS = torch.randn(2, 4, 4, 3, 3, generator=_DRAW, dtype=torch.float64)
PATHS = PATHS * (torch.arange(3) < DISTANCES[..., None])[..., None]
ROWS = torch.randn(2, 4, 6, generator=_DRAW, dtype=torch.float64)
BIASES = torch.randn(2, 4, 4, 2, generator=_DRAW, dtype=torch.float64)
MASK = torch.rand(2, 4, 4, generator=_DRAW) < 0.3
MASK[1, 2] = True  # a node that attends to none
FILTERS = torch.tensor([12.0, 8.0]), torch.tensor([0.0, 2.0]), torch.tensor([4.0, 1.0])
CASES = {
    "GATv2Conv": Case(lambda: L.GATv2Conv(5, 3, 2), ref.gatv2, "x5"),
    "GATv2Conv shared": Case(
        lambda: L.GATv2Conv(6, 3, 2, residual=True, share_weights=True, activation=torch.tanh),
        ref.gatv2, "x6",
    ),
    "GATv2Conv pair": Case(
        lambda: L.GATv2Conv((5, 4), 3, 2, residual=True, bias=False),
        ref.gatv2, "p54", "block bipartite", attention=True,
    ),
    "EdgeGATConv": Case(lambda: L.EdgeGATConv(5, 4, 3, 2), ref.edge_gat, "x5 e4"),
    "EdgeGATConv plain": Case(
        lambda: L.EdgeGATConv(5, 4, 3, 2, residual=False, bias=False), ref.edge_gat, "x5 e4"
    ),
    "EdgeGATConv pair": Case(
        lambda: L.EdgeGATConv((5, 6), 4, 3, 2, activation=torch.tanh),
        ref.edge_gat, "p56 e4", "block bipartite", attention=True,
    ),
    "DotGatConv": Case(lambda: L.DotGatConv(5, 3, 2), ref.dot_gat, "x5", attention=True),
    "DotGatConv pair": Case(
        lambda: L.DotGatConv((5, 4), 3, 2), ref.dot_gat, "p54", "block bipartite"
    ),
    "AGNNConv": Case(lambda: L.AGNNConv(0.7), ref.agnn, "x5"),
    "AGNNConv pair": Case(lambda: L.AGNNConv(2, False), ref.agnn, "p55", "block bipartite"),
    "EGATConv": Case(lambda: L.EGATConv(5, 4, 3, 2, 2), ref.egat, "x5 e4", attention=True),
    "EGATConv pair": Case(
        lambda: L.EGATConv((5, 3), 4, 3, 2, 2, bias=False), ref.egat, "p53 e4 w", "block bipartite"
    ),
    "SGConv": Case(lambda: L.SGConv(5, 3, k=3), ref.sg, "x5", "whole batch"),
    "SGConv weighted": Case(
        lambda: L.SGConv(5, 3, k=2, bias=False, norm=torch.tanh), ref.sg, "x5 w", "whole"
    ),
    "APPNPConv": Case(lambda: L.APPNPConv(4, 0.2), ref.appnp, "x5", "whole batch"),
    "APPNPConv weighted": Case(lambda: L.APPNPConv(3, 0.3), ref.appnp, "x5 w", "whole"),
    # compared in evaluation mode, where nothing is dropped
    "APPNPConv edge_drop": Case(
        lambda: L.APPNPConv(3, 0.3, edge_drop=0.5).eval(), ref.appnp, "x5", "whole"
    ),
    "TAGConv": Case(lambda: L.TAGConv(5, 3), ref.tag, "x5", "whole batch"),
    "TAGConv weighted": Case(lambda: L.TAGConv(5, 3, k=3, bias=False), ref.tag, "x5 w", "whole"),
    "ChebConv": Case(lambda: L.ChebConv(5, 3, 4), ref.cheb, ("x5", [1.7, 2.0, 1.4]), "batch"),
    "ChebConv k=1": Case(
        lambda: L.ChebConv(5, 3, 1, activation=None), ref.cheb, ("x5", torch.tensor([1.5])), "whole"
    ),
    "GCN2Conv": Case(lambda: L.GCN2Conv(4, 2), ref.gcn2, "x4 x4", "whole batch"),
    "GCN2Conv two weights": Case(
        lambda: L.GCN2Conv(4, 3, 0.3, 0.5, project_initial_features=False, bias=False,
            activation=torch.tanh),
        ref.gcn2, "x4 x4 w", "whole",
    ),
    "EdgeWeightNorm": Case(
        lambda: L.EdgeWeightNorm(), ref.edge_weight_norm, "w", "whole block bipartite"
    ),
    "EdgeWeightNorm right": Case(
        lambda: L.EdgeWeightNorm("right", 0.1), ref.edge_weight_norm, "w", "whole block"
    ),
    "EdgeWeightNorm none": Case(
        lambda: L.EdgeWeightNorm("none"), ref.edge_weight_norm, "w", "whole"
    ),
    "NNConv": Case(lambda: L.NNConv(3, 2, nn.Linear(4, 6), residual=True), ref.nnconv, "x3 e4"),
    "NNConv max": Case(
        lambda: L.NNConv((3, 2), 2, nn.Linear(4, 6), "max", residual=True, bias=False),
        ref.nnconv, "p32 e4", "block bipartite",
    ),
    "EdgeConv": Case(lambda: L.EdgeConv(5, 3), ref.edge_conv, "x5"),
    "EdgeConv batch_norm": Case(
        lambda: L.EdgeConv(5, 3, batch_norm=True), ref.edge_conv, "p55", "block bipartite"
    ),
    "GMMConv": Case(lambda: L.GMMConv(5, 3, 2, 4), ref.gmm, "x5 e2"),
    "GMMConv max": Case(
        lambda: L.GMMConv((5, 4), 3, 2, 4, "max", residual=True, bias=False),
        ref.gmm, "p54 e2", "block bipartite",
    ),
    "GMMConv mean": Case(lambda: L.GMMConv(3, 3, 2, 4, "mean", residual=True), ref.gmm, "x3 e2"),
    "CFConv": Case(lambda: L.CFConv(5, 4, 3, 2), ref.cf, "x5 e4"),
    "AtomicConv": Case(lambda: L.AtomicConv(*FILTERS), ref.atomic, "x2 e1"),
    "AtomicConv types": Case(
        lambda: L.AtomicConv(*FILTERS, torch.tensor([1.0, 6.0, 8.0])), ref.atomic, "x1 e1"
    ),
    "GatedGraphConv": Case(
        lambda: L.GatedGraphConv(3, 4, 3, 3), ref.gated_graph, "x3 t3", "whole batch"
    ),
    "GatedGraphConv one type": Case(
        lambda: L.GatedGraphConv(4, 4, 2, 1, bias=False), ref.gated_graph, "x4", "whole"
    ),
    "GatedGCNConv": Case(lambda: L.GatedGCNConv(5, 4, 3), ref.gated_gcn, "x5 e4", "whole"),
    "GatedGCNConv residual": Case(
        lambda: L.GatedGCNConv(4, 4, 4, batch_norm=False, activation=torch.tanh),
        ref.gated_gcn, "x4 e4", "whole",
    ),
    "EGNNConv": Case(lambda: L.EGNNConv(5, 6, 3), ref.egnn, "x5 x3", "whole batch"),
    "EGNNConv edges": Case(lambda: L.EGNNConv(5, 6, 3, 4), ref.egnn, "x5 x2 e4", "whole"),
    "DegreeEncoder": Case(lambda: L.DegreeEncoder(4, 3), ref.degree_encoder, (DEGREES,), ""),
    "DegreeEncoder in": Case(
        lambda: L.DegreeEncoder(4, 3, "in"), ref.degree_encoder, (DEGREES[0],), ""
    ),
    "SpatialEncoder": Case(lambda: L.SpatialEncoder(2, 3), ref.spatial_encoder, (DISTANCES,), ""),
    "PathEncoder": Case(lambda: L.PathEncoder(4, 3, 2), ref.path_encoder, (DISTANCES, PATHS), ""),
    "BiasedMHA": Case(lambda: L.BiasedMHA(6, 2, attn_drop=0), ref.biased_mha, (ROWS, BIASES), ""),
    "BiasedMHA mask": Case(
        lambda: L.BiasedMHA(6, 2, False, "mul", 0), ref.biased_mha, (ROWS, BIASES, MASK), ""
    ),
    "GraphormerLayer": Case(
        lambda: L.GraphormerLayer(6, 5, 2, dropout=0, attn_dropout=0, activation=nn.Tanh()),
        ref.graphormer, (ROWS, BIASES, MASK), "",
    ),
    "GraphormerLayer norm first": Case(
        lambda: L.GraphormerLayer(6, 5, 2, "mul", True, 0, 0), ref.graphormer, (ROWS, BIASES), ""
    ),
    "PNAConv": Case(
        lambda: L.PNAConv(4, 6, ["mean", "max", "min", "sum", "var"], ["identity",
            "amplification"], 1.2, num_towers=2),
        ref.pna, "x4", "whole batch",
    ),
    "PNAConv edges": Case(
        lambda: L.PNAConv(4, 4, ["std", "moment3", "moment4", "moment5"], ["attenuation"], 0.8,
            edge_feat_size=3),
        ref.pna, "x4 e3", "whole",
    ),
    "HGTConv": Case(lambda: L.HGTConv(5, 3, 2, 2, 3, dropout=0), ref.hgt, "x5 n2 t3"),
    "HGTConv norm": Case(
        lambda: L.HGTConv(6, 3, 2, 2, 3, dropout=0, use_norm=True), ref.hgt, "x6 n2 t3"
    ),
    "DenseGraphConv": Case(lambda: L.DenseGraphConv(5, 3), ref.dense_graph, "x5", "matrix"),
    "DenseGraphConv right": Case(
        lambda: L.DenseGraphConv(3, 5, "right", bias=False, activation=torch.tanh),
        ref.dense_graph, "x3", "matrix",
    ),
    "DenseSAGEConv": Case(lambda: L.DenseSAGEConv(5, 3), ref.dense_sage, "x5", "square"),
    "DenseSAGEConv pair": Case(
        lambda: L.DenseSAGEConv(5, 3, norm=torch.tanh, activation=torch.exp),
        ref.dense_sage, "p55", "matrix",
    ),
    "DenseChebConv": Case(lambda: L.DenseChebConv(5, 3, 4), ref.dense_cheb, "x5", "square"),
    "DenseChebConv k=1": Case(
        lambda: L.DenseChebConv(5, 3, 1, bias=False), ref.dense_cheb, ("x5", 2.0), "square"
    ),
    "TransE": Case(lambda: L.TransE(3, 5), ref.trans_e, ("x5", "x5", torch.arange(7) % 3), ""),
    "TransE p=2": Case(
        lambda: L.TransE(3, 5, p=2), ref.trans_e, ("x5", "x5", torch.arange(7) % 3), ""
    ),
    "TransR": Case(
        lambda: L.TransR(3, 4, 5, p=2), ref.trans_r, ("x5", "x5", torch.arange(7) % 3), ""
    ),
    "JumpingKnowledge": Case(lambda: L.JumpingKnowledge(), ref.jumping, (("x5", "x5"),), ""),
    "JumpingKnowledge max": Case(
        lambda: L.JumpingKnowledge("max"), ref.jumping, (("x5", "x5", "x5"),), ""
    ),
    "JumpingKnowledge lstm": Case(
        lambda: L.JumpingKnowledge("lstm", 5, 3), ref.jumping, (("x5", "x5", "x5"),), ""
    ),
    "Sequential": Case(
        lambda: L.Sequential(L.SAGEConv(5, 4, "mean"), L.TAGConv(4, 3)),
        ref.sequential, "x5", "whole",
    ),
    "Sequential of blocks": Case(
        lambda: L.Sequential(L.SAGEConv(5, 4, "mean"), L.SAGEConv(4, 3, "pool")),
        ref.sequential, "x5", "blocks",
    ),
    "LabelPropagation": Case(
        lambda: L.LabelPropagation(3, 0.7),
        ref.label_propagation, (torch.tensor([0, 2, 1, 1, 0, 2, 2]), torch.tensor([True, True,
        False] * 2 + [False])), "whole",
    ),
    "LabelPropagation reset": Case(
        lambda: L.LabelPropagation(3, 0.7, "row", clamp=False, normalize=True, reset=True),
        ref.label_propagation, ("x3", torch.tensor([True, True, False] * 2 + [False])), "whole",
    ),
    "MaxPooling": Case(lambda: L.MaxPooling(), ref.max_pooling, "x5", "whole batch"),
    "SortPooling": Case(lambda: L.SortPooling(3), ref.sort_pooling, "x5", "whole batch"),
    "WeightAndSum": Case(lambda: L.WeightAndSum(5), ref.weight_and_sum, "x5", "whole batch"),
    "GlobalAttentionPooling": Case(
        lambda: L.GlobalAttentionPooling(nn.Linear(5, 1)),
        ref.attention_pooling, "x5", "whole batch", attention=True,
    ),
    "GlobalAttentionPooling feat_nn": Case(
        lambda: L.GlobalAttentionPooling(nn.Linear(5, 1), nn.Linear(5, 2)),
        ref.attention_pooling, "x5", "batch",
    ),
    "Set2Set": Case(lambda: L.Set2Set(4, 3, 2), ref.set2set, "x4", "whole batch"),
    "HeteroLinear": Case(
        lambda: L.HeteroLinear({"user": 2, KEY: 3}, 4),
        ref.hetero_linear, ({"user": torch.ones(2, 2).double(), KEY: torch.ones(1, 3).double()},),
        "",
    ),
    "HeteroEmbedding": Case(
        lambda: L.HeteroEmbedding({"user": 3, KEY: 2}, 4), ref.hetero_embedding, (IDS,), ""
    ),
}  # fmt: skip

# What DGL 2.1 has: layer → parameters, case → names and shapes of state_dict().
OF_DGL = Path(__file__).with_name("layers.txt").read_text("utf8")
SIGNATURES = dict(re.findall(r"^(\w+)\((.*)\)$", OF_DGL, re.MULTILINE))
STATES = dict(re.findall(r"^(\w[^(:]*): (.*)$", OF_DGL, re.MULTILINE))


def build(name: str) -> nn.Module:
    """A layer in float64 that accepts nodes without in-edges."""
    torch.manual_seed(0)
    layer = CASES[name].make().double()
    for parameter in layer.parameters():  # biases that are not zero
        nn.init.normal_(parameter)
    if hasattr(layer, "set_allow_zero_in_degree"):
        layer.set_allow_zero_in_degree(True)
    return layer


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [each for part in parts for each in tensors(part)] if hasattr(value, "__len__") else []


def map_tensors(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same value with each tensor, also those in tuples and dicts, replaced."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: map_tensors(function, part) for key, part in value.items()}
    return tuple(map_tensors(function, p) for p in value) if isinstance(value, tuple) else value


def runs(name: str) -> list[tuple[Any, tuple]]:
    """Graphs and inputs of a case; the graph is None for modules that take none."""
    case = CASES[name]
    if not case.graphs:
        return [(None, draw(case.inputs, None))]
    graphs = [GRAPHS[kind]() for kind in case.graphs]
    return [(g, tuple(draw(spec, g) for spec in case.inputs)) for g in graphs]


def call(layer: nn.Module, g: Any, inputs: tuple, kwargs: dict | None = None) -> Any:
    return layer(*([] if g is None else [g]), *inputs, **(kwargs or {}))


def exported() -> set[str]:
    """Layers of gnnlab.compat.nn."""
    return {
        name
        for module, names in layers._MODULES.items()
        for name in names.split()
        if not module.endswith(("sparse_emb", "metapath2vec"))  # test_optim, test_metapath2vec
        if isinstance(getattr(layers, name), type)
    }


#: Modules that make graphs; their reference is in test_graphs_of_points.
OF_POINTS = {"KNNGraph", "RadiusGraph", "SegmentedKNNGraph"}


def test_every_layer_has_a_reference():
    assert {name.split()[0] for name in CASES} | OF_POINTS == exported()
    assert set(SIGNATURES) == exported()
    for case in CASES.values():
        assert case.reference.__doc__, case.reference


@pytest.mark.parametrize("name", CASES)
def test_equals_its_reference(name):
    layer, case = build(name), CASES[name]
    for g, inputs in runs(name):
        expected = case.reference(layer, g, *inputs, **case.kwargs)
        found = call(layer, g, inputs, case.kwargs)
        assert type(found) is type(expected)
        assert len(tensors(found)) == len(tensors(expected))
        for one, other in zip(tensors(found), tensors(expected), strict=True):
            close = 1e-9 if other.dtype == torch.float64 else 1e-6
            torch.testing.assert_close(one, other, rtol=close, atol=close)


#: The row of padding in their tables gets no gradient: test_padding_is_not_learned.
PADDED = {"DegreeEncoder", "DegreeEncoder in", "SpatialEncoder"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in PADDED])
def test_gradients(name):
    """Numerical gradients of all inputs and parameters, on the first graph of the case."""
    layer = build(name)
    g, inputs = runs(name)[0]
    given = [] if g is None else [t for t in tensors(inputs) if t.dtype == torch.float64]
    for each in given:
        each.requires_grad_()
    names = [key for key, _ in layer.named_parameters()]
    values = [parameter.detach().requires_grad_() for parameter in layer.parameters()]

    def run(*rest):
        parameters = dict(zip(names, rest[len(given) :], strict=True))
        new = dict(zip(map(id, given), rest[: len(given)], strict=True))
        replaced = map_tensors(lambda each: new.get(id(each), each), inputs)
        arguments = replaced if g is None else (g, *replaced)
        out = functional_call(layer, parameters, arguments, CASES[name].kwargs)
        return tuple(each for each in tensors(out) if each.requires_grad)

    if given or values:
        assert torch.autograd.gradcheck(run, (*given, *values), fast_mode=True)


# Options of a layer change what it computes, which the tests above compare.
AGAIN = pytest.mark.thorough("the layer's first case is in each run")
FIRST = [pytest.param(name, marks=[AGAIN] if " " in name else []) for name in CASES]


@pytest.mark.parametrize("name", FIRST)
def test_float32_pickle_and_state_dict(name):
    layer = build(name)
    g, inputs = runs(name)[0]
    expected = tensors(call(layer, g, inputs))
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    other = CASES[name].make().double()
    other.load_state_dict(layer.state_dict())
    if hasattr(other, "set_allow_zero_in_degree"):
        other.set_allow_zero_in_degree(True)
    for same in (pickle.loads(pickle.dumps(layer)), torch.load(file, weights_only=False), other):
        assert repr(same) == repr(layer)
        found = tensors(call(same, g, inputs))
        assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    lower = map_tensors(lambda t: t.float() if t.is_floating_point() else t, inputs)
    found = tensors(call(copy.deepcopy(layer).to(torch.float32), g, lower))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == torch.float32
        torch.testing.assert_close(x, y.float(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_of_dgl(name):
    parameters = inspect.signature(getattr(layers, name)).parameters.values()
    found = ", ".join(
        p.name
        if p.default is p.empty
        else f"{p.name}={getattr(p.default, '__name__', None) or repr(p.default)}"
        for p in parameters
        if p.name not in ("args", "kwargs")
    )
    assert found == SIGNATURES[name]


@pytest.mark.parametrize("name", STATES)
def test_state_dict_of_dgl(name):
    words = STATES[name].split()
    expected = {
        key.replace("KEY", str(KEY)): ()
        if shape == "-"
        else tuple(int(n) for n in shape.split(","))
        for key, shape in zip(words[::2], words[1::2], strict=True)
    }
    found = {key: tuple(value.shape) for key, value in CASES[name].make().state_dict().items()}
    assert found == expected


#: Errors of 1e-16 grow: their fifth root is 6e-4; rows are divided by sums near zero.
AMPLIFIED = {"PNAConv edges": 1e-2, "LabelPropagation reset": 1e-2}


@pytest.mark.gpu
@pytest.mark.parametrize("name", FIRST)
def test_as_on_the_cpu(name):
    """On a GPU, or on the pretend device, outputs and gradients are those of the CPU."""
    results = []
    for device in ("cpu", GPU):
        layer = build(name).to(device)
        g, inputs = runs(name)[0]
        if g is not None:
            g = [each.to(device) for each in g] if isinstance(g, list) else g.to(device)
        out = tensors(call(layer, g, map_tensors(lambda t, to=device: t.to(to), inputs)))
        assert {tensor.device.type for tensor in out} == {device}
        if any(parameter.requires_grad for parameter in layer.parameters()):
            sum(tensor.square().sum() for tensor in out).backward()
        gradients = [p.grad for p in layer.parameters() if p.grad is not None]
        results.append([tensor.detach().cpu() for tensor in (*out, *gradients)])
    tolerance = AMPLIFIED.get(name, 1e-6)
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


MIXED = [
    each
    for each in FIRST
    if computes_lstm_in_bfloat16() or not str(each.values[0]).endswith(("lstm", "Set2Set"))
]


@pytest.mark.parametrize("name", MIXED)
def test_mixed_precision(name):
    """Under autocast the result is near the one in float32, and has gradients."""
    layer = build(name).float()
    g, inputs = runs(name)[0]
    inputs = map_tensors(lambda t: t.float() if t.is_floating_point() else t, inputs)
    exact = tensors(call(layer, g, inputs))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = tensors(call(layer, g, inputs))
    for x, y in zip(rounded, exact, strict=True):
        scale = float(y.detach().abs().max())
        assert float((x.float() - y).detach().abs().max()) <= 0.1 * scale
    if rounded[0].requires_grad:
        rounded[0].float().sum().backward()


def flagged() -> list[str]:
    return [name for name in CASES if "allow_zero_in_degree=False" in SIGNATURES[name.split()[0]]]


@pytest.mark.parametrize("name", flagged())
def test_nodes_without_in_edges(name):
    layer = CASES[name].make().double()
    for g, inputs in runs(name):
        layer.set_allow_zero_in_degree(False)
        with pytest.raises(dgl.DGLError, match="no in-edge"):
            call(layer, g, inputs)
        layer.set_allow_zero_in_degree(True)
        assert all(bool(t.isfinite().all()) for t in tensors(call(layer, g, inputs)))


def test_graphs_of_points():
    """They are those of the functions, which test_functions.py compares with all distances."""
    torch.manual_seed(0)
    x = torch.randn(2, 9, 2)
    g, lengths = dgl_compat.radius_graph(x[0], 1.0, get_distances=True)
    found, same = L.RadiusGraph(1.0)(x[0], get_distances=True)
    assert torch.equal(same, lengths)
    pairs = [(found, g)]
    for made in L.KNNGraph(3)(x), L.SegmentedKNNGraph(3)(x.flatten(0, 1), [9, 9]):
        pairs.append((made, dgl_compat.knn_graph(x, 3)))
    for one, other in pairs:
        assert all(map(torch.equal, one.edges(), other.edges()))


@pytest.mark.parametrize("name", sorted(PADDED))
def test_padding_is_not_learned(name):
    """Other rows have the gradients of the reference."""
    found, expected = build(name), build(name)
    inputs = runs(name)[0][1]
    found(*inputs).square().sum().backward()
    CASES[name].reference(expected, None, *inputs).square().sum().backward()
    for one, other in zip(found.parameters(), expected.parameters(), strict=True):
        assert not one.grad[0].any()
        torch.testing.assert_close(one.grad[1:], other.grad[1:])


def test_attention_on_a_typed_block():
    """HeteroGraphConv runs the layers on the relations of a block, as GraphStorm does."""
    torch.manual_seed(0)
    g = dgl.heterograph(
        {("user", "rates", "item"): ([0, 1, 2], [0, 0, 1]), KEY: ([1, 2], [0, 0])},
        {"user": 3, "item": 2},
    )
    seeds = {"user": torch.tensor([0]), "item": torch.tensor([1, 0])}
    block = dgl.to_block(dgl.in_subgraph(g, seeds), seeds)
    rows = {ntype: torch.randn(block.num_src_nodes(ntype), 4) for ntype in block.srctypes}
    convs = {"rates": L.GATv2Conv(4, 3, 2), KEY: L.EdgeGATConv(4, 5, 3, 2)}
    weights = torch.randn(2, 5)
    out = L.HeteroGraphConv(convs)(block, rows, mod_args={"follows": (weights,)})
    pairs = {t: (rows[t], rows[t][: block.num_dst_nodes(t)]) for t in rows}
    expected = ref.gatv2(convs["rates"], block["rates"], (rows["user"], pairs["item"][1]))
    torch.testing.assert_close(out["item"], expected)
    expected = ref.edge_gat(convs[KEY], block["follows"], pairs["user"], weights)
    torch.testing.assert_close(out["user"], expected)


def test_dropped_edges():
    """One step from a node's only in-neighbor: an edge is dropped, or counts twice."""
    torch.manual_seed(0)
    n = 400
    ring = dgl.graph((torch.arange(n), (torch.arange(n) + 1) % n))
    layer = L.APPNPConv(1, 0.0, edge_drop=0.5)
    out = layer(ring, torch.ones(n, 1)).flatten()
    assert set(out.tolist()) == {0.0, 2.0}
    assert 0.4 < float(out.mean()) / 2 < 0.6
    assert set(layer.eval()(ring, torch.ones(n, 1)).flatten().tolist()) == {1.0}


def test_largest_eigenvalue_by_default():
    layer, g, x = L.ChebConv(5, 3, 3), batch(), torch.randn(11, 5)
    with pytest.warns(UserWarning, match="laplacian_lambda_max"):
        found = layer(g, x)
    torch.testing.assert_close(found, layer(g, x, [2.0] * 3))
    values = dgl_compat.laplacian_lambda_max(g)
    assert len(values) == 3 and layer(g, x, values).shape == (11, 3)


def test_atomic_convolution_by_type():
    """Figures of DGL 2.1: 0 → 1 ← 2 of carbon; 1 → 2 of oxygen."""
    g = dgl.graph(([0, 1, 2, 2], [1, 2, 0, 1]))
    layer = layers.AtomicConv(*FILTERS, torch.tensor([6.0, 8.0]))
    atoms, distances = torch.tensor([[6.0], [8.0], [6.0]]), torch.tensor([[1.0], [2.0], [9], [0.5]])
    expected = [[0, 0, 0, 0], [0.38431, 0.45826, 0, 0], [0, 0, 1.05e-07, 0.85355]]
    torch.testing.assert_close(
        layer(g, atoms, distances), torch.tensor(expected), rtol=1e-4, atol=1e-9
    )


WORDS = {
    "whole": "a graph",
    "block": "a block",
    "blocks": "blocks",
    "bipartite": "two node types",
    "batch": "a batch of graphs",
    "matrix": "a bipartite matrix",
    "square": "a matrix",
}


def table() -> str:
    """Markdown: each layer, the reference that it is compared with, and on what graphs."""
    places: dict[str, list[str]] = {}
    how = dict.fromkeys(sorted(OF_POINTS), "all pairs of distances, sorted in Python")
    for name, case in CASES.items():
        layer = name.split()[0]
        how[layer] = (case.reference.__doc__ or "").splitlines()[0]
        kinds = [WORDS[kind] for kind in case.graphs] or ["rows alone"]
        places[layer] = [*dict.fromkeys(places.get(layer, []) + kinds)]
    lines = ["| layer | compared with | on |", "|---|---|---|"]
    for layer in sorted(how):
        lines.append(f"| `{layer}` | {how[layer]} | {', '.join(places.get(layer, ['points']))} |")
    return "\n".join(lines) + "\n"


def renewed() -> str:
    """The page with the table as it should be."""
    before, _, rest = PAGE.read_text("utf8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def test_the_page_shows_the_references():
    assert PAGE.read_text("utf8") == renewed(), "python -m tests.compat.test_nn writes the table"


if __name__ == "__main__":
    PAGE.write_text(renewed(), "utf8")
