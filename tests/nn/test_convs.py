"""The convolutions: values of DGL 2.1, dense matrices, pairs, nodes without in-edges, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnlab as dgl
from gnnlab.nn import GATConv, GINConv, GINEConv, GraphConv, RelGraphConv, SAGEConv
from tests.accelerator import GPU
from tests.nn.toy import (
    EDGE_WEIGHT,
    OF_DGL,
    adjacency,
    assert_close,
    fill,
    mean_adjacency,
    ramp,
    random_block,
    random_graph,
    toy_block,
    toy_graph,
)

ETYPES = torch.tensor([0, 1, 0, 2, 1, 2, 0])
BLOCK_ETYPES = torch.tensor([1, 0, 2, 0])
AGGREGATORS = ("mean", "gcn", "pool", "lstm")

# Layer and case of dgl.json → how to build the layer. Its rows have size 3, or what is said here.
BUILD: dict[str, Callable[..., nn.Module]] = {
    "SAGEConv": lambda kind, size, out: SAGEConv(int(size), int(out), kind),
    "GraphConv": lambda norm, size, out: GraphConv(int(size), int(out), norm=norm),
    "GINConv": lambda kind: GINConv(nn.Linear(3, 2), kind, init_eps=0.5, activation=torch.tanh),
    "GINEConv": lambda kind: GINEConv(nn.Linear(3, 2), init_eps=0.5),
    "RelGraphConv": lambda kind, size: RelGraphConv(
        int(size), 2, 3, None if kind == "None" else kind, num_bases=2
    ),
}
OTHERS: dict[str, Callable[[], nn.Module]] = {
    "two heads": lambda: GATConv(3, 2, 2),
    "residual": lambda: GATConv(3, 2, 2, residual=True, activation=torch.tanh),
    "residual of equal size": lambda: GATConv(4, 2, 2, residual=True),
    "without weight": lambda: GraphConv(3, 2, weight=False, bias=False),
    "layer norm": lambda: RelGraphConv(3, 2, 3, layer_norm=True, activation=torch.relu),
    "without self-loop": lambda: RelGraphConv(3, 2, 3, self_loop=False, bias=False),
    "relu before norm": lambda: SAGEConv(
        3, 2, "mean", activation=torch.relu, norm=lambda out: out - 10
    ),
}
SIZES = {"residual of equal size": 4, "bdd 4": 4}


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in OF_DGL for case in OF_DGL[name]]
)
def test_values_of_dgl(name: str, case: str) -> None:
    """On the graph, with weights of edges and on the block, where the rows may also be a pair."""
    layer = fill(OTHERS[case]() if case in OTHERS else BUILD[name](*case.split()))
    feat = ramp(4, SIZES.get(case, 2 if case.endswith(" 2 3") else 3))
    on_graph, weighted, on_block = OF_DGL[name][case]
    of_graph, of_block = {
        "RelGraphConv": ((ETYPES,), (BLOCK_ETYPES,)),
        "GINEConv": ((ramp(7, 3, start=1),), (ramp(4, 3, start=1),)),
    }.get(name, ((), ()))
    if on_graph:
        assert_close(layer(toy_graph(), feat, *of_graph), on_graph)
    if weighted:
        word = "norm" if name == "RelGraphConv" else "edge_weight"
        for weight in (EDGE_WEIGHT, EDGE_WEIGHT.view(-1, 1)):
            assert_close(layer(toy_graph(), feat, *of_graph, **{word: weight}), weighted)
    if on_block:
        for rows in (feat, (feat, feat[:2])):
            assert_close(layer(toy_block(), rows, *of_block), on_block)


# --------------------------------------------------------------------------- dense references
def sage(layer: Any, g: Any, src: Tensor, dst: Tensor, weight: Tensor, etypes: Tensor) -> Tensor:
    if layer.aggregator_type == "gcn":
        degrees = adjacency(g).sum(1, keepdim=True)
        return layer.fc_neigh((adjacency(g, weight) @ src + dst) / (degrees + 1)) + layer.bias
    if layer.aggregator_type == "mean":
        return layer.fc_self(dst) + layer.fc_neigh(mean_adjacency(g, weight) @ src)
    rows = layer.fc_pool(src).relu() if layer.aggregator_type == "pool" else src
    sources, destinations = g.edges()
    messages, summary = rows[sources] * weight[:, None], torch.zeros_like(dst)
    for node in destinations.unique().tolist():
        inbox = messages[destinations == node]
        pool = layer.aggregator_type == "pool"
        summary[node] = inbox.max(0).values if pool else layer.lstm(inbox)[0][-1]
    return layer.fc_self(dst) + layer.fc_neigh(summary)


def graphconv(
    layer: Any, g: Any, src: Tensor, dst: Tensor, weight: Tensor, etypes: Tensor
) -> Tensor:
    out_degrees, in_degrees = (adjacency(g).sum(axis).clamp(min=1) for axis in (0, 1))
    left = {"left": 1 / out_degrees, "both": out_degrees**-0.5}.get(layer.norm, 1 + 0 * out_degrees)
    right = {"right": 1 / in_degrees, "both": in_degrees**-0.5}.get(layer.norm, 1 + 0 * in_degrees)
    return right[:, None] * adjacency(g, weight) * left @ src @ layer.weight + layer.bias


def gin(layer: Any, g: Any, src: Tensor, dst: Tensor, weight: Tensor, etypes: Tensor) -> Tensor:
    matrix = (adjacency if layer.aggregator_type == "sum" else mean_adjacency)(g, weight)
    return layer.apply_func((1 + layer.eps) * dst + matrix @ src)


def rel(layer: Any, g: Any, src: Tensor, dst: Tensor, weight: Tensor, etypes: Tensor) -> Tensor:
    """One adjacency matrix per relation."""
    weights = layer.linear_r.get_weight()
    if weights.dim() == 2:
        weights = torch.stack([torch.block_diag(*blocks) for blocks in weights.view(3, 2, 3, 2)])
    out = dst @ layer.loop_weight + layer.h_bias
    for relation in range(3):
        out = out + adjacency(g, weight * (etypes == relation)) @ src @ weights[relation]
    return out


DENSE: dict[str, tuple[Callable[..., Tensor], Callable[[], nn.Module]]] = {
    **{
        f"SAGEConv {kind} {out}": (sage, lambda kind=kind, out=out: SAGEConv(6, out, kind))
        for kind in AGGREGATORS
        for out in (3, 8)  # smaller and larger than its rows
    },
    **{
        f"GraphConv {norm} {out}": (
            graphconv,
            lambda norm=norm, out=out: GraphConv(6, out, norm=norm, allow_zero_in_degree=True),
        )
        for norm in ("both", "right", "left", "none")
        for out in (3, 8)
    },
    **{
        f"GINConv {kind}": (gin, lambda kind=kind: GINConv(nn.Linear(6, 3), kind, init_eps=0.3))
        for kind in ("sum", "mean")
    },
    **{
        f"RelGraphConv {kind}": (rel, lambda kind=kind: RelGraphConv(6, 4, 3, kind, num_bases=2))
        for kind in (None, "basis", "bdd")
    },
}


@pytest.mark.parametrize("make", [random_graph, random_block])
@pytest.mark.parametrize("name", DENSE)
def test_dense_reference(name: str, make: Callable[[], dgl.Graph]) -> None:
    """With matrices and loops over nodes, in float64; SAGEConv has rows of its own on each side."""
    torch.manual_seed(0)
    (reference, build), g = DENSE[name], make()
    layer = build().double()
    src = torch.randn(g.num_src_nodes(), 6, dtype=torch.float64)
    dst = src[: g.num_dst_nodes()]
    if reference is sage:
        dst = torch.randn_like(dst)
    weight, etypes = torch.rand(g.num_edges()).double(), torch.randint(3, (g.num_edges(),))
    word, more = ("norm", (etypes,)) if reference is rel else ("edge_weight", ())
    found = layer(g, (src, dst) if reference is sage else src, *more, **{word: weight})
    torch.testing.assert_close(found, reference(layer, g, src, dst, weight, etypes))


@pytest.mark.parametrize("make", [random_graph, random_block])
@pytest.mark.parametrize("in_feats", [6, (6, 5)], ids=["shared", "pair"])
def test_dense_attention(make: Callable[[], dgl.Graph], in_feats: Any) -> None:
    """Softmax over a matrix of logits; parallel edges share their weight."""
    torch.manual_seed(0)
    graph, heads, size = make(), 3, 4
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


@pytest.mark.parametrize("make", [random_graph, random_block])
def test_edge_features_dense(make: Callable[[], dgl.Graph]) -> None:
    torch.manual_seed(0)
    graph = make()
    feat, edge_feat = torch.randn(graph.num_src_nodes(), 6), torch.randn(graph.num_edges(), 6)
    expected = feat[: graph.num_dst_nodes()].clone()
    for (src, dst), edge in zip(zip(*graph.edges(), strict=True), edge_feat, strict=True):
        expected[dst] += (feat[src] + edge).relu()
    assert_close(GINEConv()(graph, feat, edge_feat), expected)


# ------------------------------------------------------------------------------ rows and edges
@pytest.mark.parametrize(
    "make",
    [
        *(lambda kind=kind: SAGEConv(3, 2, kind) for kind in ("mean", "gcn", "pool")),
        *(lambda: GraphConv(3, 2), lambda: GATConv(3, 2, 2)),
    ],
)
def test_rows_may_be_matrices(make: Callable[[], nn.Module]) -> None:
    layer, feat = make(), torch.randn(4, 5, 3)
    out = layer(toy_graph(), feat)
    assert out.shape[:2] == (4, 5)
    assert_close(out[:, 1], layer(toy_graph(), feat[:, 1]))


# DGL 2.1: nodes without in-edges get the bias.
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: GraphConv(3, 2), [[-0.5, 0.2], [-0.46, -0.11], [-0.5, 0.2]]),
        (
            lambda: GATConv(3, 2, 2),
            [[[0.1, -0.3], [0.4, 0]], [[-0.02, -0.37], [0.16, -0.19]], [[0.1, -0.3], [0.4, 0]]],
        ),
    ],
)
def test_nodes_without_in_edges_are_refused(make: Any, expected: list[Any]) -> None:
    graph, layer = dgl.graph(([0, 0], [1, 1]), num_nodes=3), fill(make())
    with pytest.raises(dgl.DGLError, match=rf"{type(layer).__name__}: 2 of 3.*add_self_loop"):
        layer(graph, ramp(3, 3))
    layer.set_allow_zero_in_degree(True)
    assert_close(layer(graph, ramp(3, 3)), expected)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_without_edges_only_the_own_row_counts(aggregator: str) -> None:
    graph = dgl.graph(([], []), num_nodes=3)
    layer, feat = SAGEConv(4, 2, aggregator), torch.randn(3, 4)
    own = layer.fc_neigh if aggregator == "gcn" else layer.fc_self
    assert_close(layer(graph, feat), own(feat))
    nothing = dgl.graph(([], []), num_nodes=0)
    assert GraphConv(3, 2)(nothing, torch.empty(0, 3)).shape == (0, 2)


def test_another_row_for_destinations() -> None:
    """DGL 2.1."""
    feat = ramp(4, 3)
    pair = [[[0.42, 0.02], [0.28, -0.12]], [[0.25914, -0.12247], [0.24006, -0.1433]]]
    assert_close(fill(GATConv(3, 2, 2))(toy_block(), (feat, feat[2:])), pair)


def test_weight_from_outside() -> None:
    """DGL 2.1, weight given to forward."""
    layer = GraphConv(3, 2, weight=False, bias=False)
    expected = [[-0.24, 0.2], [0.005, 0.11], [-0.11839, 0.18779], [-0.21213, 0.16971]]
    assert_close(layer(toy_graph(), ramp(4, 3), weight=ramp(3, 2)), expected)


def test_wrong_number_of_edge_weights() -> None:
    for wrong in (torch.ones(2), torch.tensor(1.0), torch.ones(7).double(), torch.ones(7) + 0j):
        for aggregator in ("mean", "lstm"):
            with pytest.raises(dgl.DGLError, match="edge_weight"):
                SAGEConv(3, 2, aggregator)(toy_graph(), ramp(4, 3), wrong)


def test_edges_sorted_by_relation() -> None:
    layer, feat = fill(RelGraphConv(3, 2, 3)), ramp(4, 3)
    src, dst = toy_graph().edges()
    etypes, order = ETYPES.sort(stable=True)
    graph = dgl.graph((src[order], dst[order]))
    expected = OF_DGL["RelGraphConv"]["None 3"][0]
    assert_close(layer(graph, feat, etypes.int()), expected)
    assert_close(layer(graph, feat, etypes, presorted=True), expected)
    assert_close(layer(graph, feat, [3, 2, 2]), expected)
    for counts in ([3, 2], [3, 2, 1], [0, 1, 0, 2, 1, 2, 0]):
        with pytest.raises(dgl.DGLError, match=r"\(3\).* 7 edges"):
            layer(toy_graph(), feat, counts)


# ------------------------------------------------------------------------------------ training
def test_dropout_of_rows_and_attention() -> None:
    """One mask serves sources and destinations."""
    layer = SAGEConv(50, 50, "mean", feat_drop=0.5, bias=False)
    with torch.no_grad():
        layer.fc_self.weight.copy_(torch.eye(50))
        layer.fc_neigh.weight.copy_(-torch.eye(50))
    assert_close(layer(dgl.graph(([0], [0])), torch.ones(1, 50)), torch.zeros(1, 50))
    layer = GATConv(3, 2, 1, attn_drop=0.5)
    torch.manual_seed(0)
    _, attention = layer(toy_graph(), ramp(4, 3), get_attention=True)
    assert (attention == 0).any()
    _, attention = layer.eval()(toy_graph(), ramp(4, 3), get_attention=True)
    assert (attention > 0).all()


def test_learned_epsilon_gets_a_gradient() -> None:
    layer = GINConv(learn_eps=True)
    layer(toy_graph(), ramp(4, 3)).sum().backward()
    assert_close(layer.eps.grad, ramp(4, 3).sum().view(1))


def test_nan_in_edge_features_warns() -> None:
    with pytest.warns(UserWarning, match="edge features"):
        GINEConv()(toy_graph(), ramp(4, 3), torch.full((7, 3), torch.nan))
    with pytest.raises(ValueError, match="edge features"):
        GINEConv()(toy_graph(), ramp(4, 3), ramp(6, 3))


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
