"""Everything public that computes on tensors gives on a GPU what it gives on the CPU.

Names are read from the package: a new operator, layer, sampler or transform needs a case here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import gnnlab as dgl
from gnnlab import nn as layers
from gnnlab import ops, sampling, transforms
from gnnlab.dataloading import negative_sampler
from tests.accelerator import GPU
from tests.nn.toy import ramp

pytestmark = pytest.mark.gpu

NUM_NODES, NUM_EDGES, WIDTH = 9, 30, 4
Case = Callable[[dgl.Graph], Any]


@pytest.fixture(scope="module")
def graph() -> dgl.Graph:
    """Every node has in-edges; some edges are doubled."""
    src = torch.arange(NUM_EDGES) * 5 % NUM_NODES
    g = dgl.graph((src, torch.arange(NUM_EDGES) * 7 % NUM_NODES), num_nodes=NUM_NODES)
    g.ndata["x"], g.edata["e"] = ramp(NUM_NODES, WIDTH) + 1, ramp(NUM_EDGES, WIDTH, start=1) + 1
    return g


def features(g: dgl.Graph, target: str) -> torch.Tensor:
    values = ramp(NUM_EDGES if target == "e" else NUM_NODES, WIDTH, start=ord(target)) + 1.0
    return values.double().to(g.device).requires_grad_()


def operator(name: str) -> Case:
    """Values and gradients of an operator whose name says its operands, as in ``u_mul_e_sum``."""

    def run(g: dgl.Graph) -> Any:
        inputs = [features(g, letter) for letter in re.findall(r"(?:^|_)([uve])(?=_|$)", name)]
        out = getattr(ops, name)(g, *inputs)
        return out, torch.autograd.grad(out.square().sum(), inputs)

    return run


def lengths(g: dgl.Graph) -> torch.Tensor:
    return torch.tensor([10, 0, 20], device=g.device)


OPERATORS: dict[str, Case] = {
    name: operator(name) for name in ops.__all__ if re.search(r"(^|_)[uve](_|$)", name)
}
OPERATORS |= {
    "edge_softmax": lambda g: ops.edge_softmax(g, features(g, "e")),
    "gspmm": lambda g: ops.gspmm(g, "mul", "max", features(g, "u"), features(g, "e")),
    "gsddmm": lambda g: ops.gsddmm(g, "dot", features(g, "u"), features(g, "v")),
    "spmm": lambda g: ops.spmm(g.relation(), "add", "mean", features(g, "u"), features(g, "e")),
    "sddmm": lambda g: ops.sddmm(g.relation(), "sub", features(g, "u"), features(g, "e"), "u", "e"),
    "segment_reduce": lambda g: ops.segment_reduce(lengths(g), features(g, "e"), "mean"),
    "relu_dropout": lambda g: ops.relu_dropout(features(g, "u") - 1, 0.0),
}


def layer(make: Callable[[], nn.Module], *more: str) -> Case:
    """Output of a layer and the gradients of its parameters."""

    def run(g: dgl.Graph) -> Any:
        torch.manual_seed(0)
        module = make().to(g.device)
        out = module(g, g.ndata["x"], *(g.edata[name] for name in more))
        out.square().sum().backward()
        return out, [parameter.grad for parameter in module.parameters()]

    return run


def seeded(case: Case) -> Case:
    return lambda g: (torch.manual_seed(0), case(g))[1]


def types(g: dgl.Graph) -> torch.Tensor:
    return torch.arange(g.num_edges(), device=g.device) % 3


LAYERS: dict[str, Case] = {
    "SAGEConv": layer(lambda: layers.SAGEConv(WIDTH, 3, "mean")),
    "SAGEConv pool": layer(lambda: layers.SAGEConv(WIDTH, 3, "pool")),
    "SAGEConv gcn": layer(lambda: layers.SAGEConv(WIDTH, 3, "gcn")),
    "SAGEConv lstm": layer(lambda: layers.SAGEConv(WIDTH, 3, "lstm")),
    "GraphConv": layer(lambda: layers.GraphConv(WIDTH, 3)),
    "GATConv": layer(lambda: layers.GATConv(WIDTH, 3, 2)),
    "GINConv": layer(lambda: layers.GINConv(nn.Linear(WIDTH, 3), "max")),
    "GINEConv": layer(lambda: layers.GINEConv(nn.Linear(WIDTH, 3)), "e"),
    "SumPooling": lambda g: layers.SumPooling()(dgl.batch([g, g]), torch.cat([g.ndata["x"]] * 2)),
    "AvgPooling": lambda g: layers.AvgPooling()(dgl.batch([g, g]), torch.cat([g.ndata["x"]] * 2)),
    "RelGraphConv": seeded(
        lambda g: layers.RelGraphConv(WIDTH, 3, 3).to(g.device)(g, g.ndata["x"], types(g))
    ),
    "HeteroGraphConv": seeded(
        lambda g: layers.HeteroGraphConv({"_E": layers.GraphConv(WIDTH, 3)}).to(g.device)(
            g, {"_N": g.ndata["x"]}
        )
    ),
    "EdgePredictor": lambda g: layers.EdgePredictor("dot")(g.ndata["x"], g.ndata["x"].flip(0)),
    "ReLUDropout": lambda g: layers.ReLUDropout(0.0)(g.ndata["x"] - 1),
    "TypedLinear": seeded(
        lambda g: layers.TypedLinear(WIDTH, 3, 3).to(g.device)(g.edata["e"], types(g))
    ),
    "WeightBasis": seeded(lambda g: layers.WeightBasis((WIDTH, 3), 2, 3).to(g.device)()),
    "edge_softmax": lambda g: layers.edge_softmax(g, g.edata["e"]),
}


def sampled(sampler: Any) -> Case:
    return lambda g: sampler.sample(g, torch.tensor([4, 1, 7]))


def loaded(make: Callable[..., Any], ids: torch.Tensor, *args: Any, **kwargs: Any) -> Case:
    return lambda g: list(make(g, ids, *args, batch_size=4, seed=3, shuffle=True, **kwargs))


class Frontiers(dgl.dataloading.BlockSampler):
    """A sampler of a learner's own."""

    def sample_frontier(self, layer_id: int, g: dgl.Graph, seed_nodes: Any) -> dgl.Graph:
        return dgl.sampling.sample_neighbors(g, seed_nodes, 2)


data, NODES, EDGES = dgl.dataloading, torch.arange(NUM_NODES), torch.arange(12)
TWO = data.NeighborSampler([2, 3])
PAIRS = data.as_edge_prediction_sampler(TWO, negative_sampler=negative_sampler.Uniform(2))


def captured(g: dgl.Graph) -> Any:
    """Losses of two epochs, the last ones of padded blocks, and the weight that is learned."""
    weight = torch.ones(WIDTH, 1, dtype=torch.float64, device=g.device, requires_grad=True)

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        out = blocks[0].srcdata["x"].double() @ weight
        for block in blocks:
            out = ops.copy_u_mean(block, out)
        return out[: len(output_nodes)].sum()

    loader = data.DataLoader(g, NODES, TWO, batch_size=3, seed=3)
    training = data.CapturedTraining(loader, loss, torch.optim.SGD([weight], 0.01))
    return [*training, *training], weight.detach()


LOADERS: dict[str, Case] = {
    "NeighborSampler": sampled(TWO),
    "NeighborSampler with replacement": sampled(data.NeighborSampler([2, 3], replace=True)),
    "MultiLayerNeighborSampler": sampled(data.MultiLayerNeighborSampler([20, -1])),
    "MultiLayerFullNeighborSampler": sampled(data.MultiLayerFullNeighborSampler(2)),
    "BlockSampler": sampled(Frontiers(2)),
    "LaborSampler": lambda g: data.LaborSampler([2, 2]).sample(g, [4, 1]),
    "DataLoader": loaded(data.DataLoader, NODES, TWO),
    "CapturedTraining": captured,
    "NodeDataLoader": loaded(data.NodeDataLoader, NODES, TWO),
    "EdgeDataLoader": loaded(data.EdgeDataLoader, EDGES, TWO),
    "as_edge_prediction_sampler": loaded(data.DataLoader, EDGES, PAIRS),
    "GraphDataLoader": lambda g: [
        batch.ndata["x"].to(g.device) for batch in data.GraphDataLoader([g.cpu()] * 2, batch_size=2)
    ],
    "full_neighbor_blocks": lambda g: [
        block.in_edges(block.dstnodes(), "eid") for _, block in data.full_neighbor_blocks(g, 4)
    ],
    "score": lambda g: data.score(
        *(g, lambda blocks, x: ops.copy_u_mean(blocks[1], ops.copy_u_mean(blocks[0], x))),
        *(NODES, TWO, "x"),
        new_edges=([NUM_NODES, 1], [4, NUM_NODES]),
        new_inputs=g.ndata["x"][:1],
    ),
    "ranking": lambda g: data.ranking.rank_among_all(
        g, *g.find_edges(EDGES), lambda src, dst: (src[:, None] * dst) % 5, chunk_size=4
    ),
}
NEGATIVE: dict[str, Case] = {
    name: lambda g, name=name: getattr(negative_sampler, name)(2)(g, EDGES.to(g.device))
    for name in ("Uniform", "PerSourceUniform", "GlobalUniform", "DegreePower", "InBatch")
}
NEGATIVE["Hard"] = lambda g: negative_sampler.Hard(
    negative_sampler.Uniform(2, True), torch.arange(g.num_edges())[:, None] % NUM_NODES
)(g, EDGES.to(g.device))
SAMPLING: dict[str, Case] = {
    "sample_neighbors": lambda g: sampling.sample_neighbors(g, [4, 1], 2),
    "sample_labors": lambda g: sampling.sample_labors(g, [4, 1], 2),
    "sample_labors weighted": lambda g: sampling.sample_labors(
        g, [4, 1], 2, prob=g.edata["e"][:, 0]
    ),
    "sample_labors by importance": lambda g: sampling.sample_labors(
        g, [4, 1], 2, importance_sampling=-1
    ),
    "random_walk": lambda g: sampling.random_walk(g, [4, 1], length=5),
    "global_uniform_negative_sampling": lambda g: sampling.global_uniform_negative_sampling(g, 5),
    "PinSAGESampler": lambda g: sampling.PinSAGESampler(g, "_N", "_N", 3, 0.3, 10, 4)(NODES),
    "RandomWalkNeighborSampler": lambda g: sampling.RandomWalkNeighborSampler(g, 3, 0.3, 10, 4)(
        NODES.to(g.device)
    ),
}
TRANSFORMS: dict[str, Case] = {
    name: lambda g, name=name: getattr(transforms, name)()(g)
    for name in ("AddReverse", "AddSelfLoop", "RemoveSelfLoop", "ToSimple")
}
TRANSFORMS["Compose"] = lambda g: transforms.Compose([transforms.AddSelfLoop()])(g)


READOUTS: dict[str, Case] = {
    f"{reducer}_{kind}": lambda g, name=f"{reducer}_{kind}", column=column: getattr(dgl, name)(
        dgl.batch([g, g]), column
    )
    for reducer in ("sum", "mean", "max")
    for kind, column in (("nodes", "x"), ("edges", "e"))
}

#: Bases without work of their own, and names for lazy features, of which loaders make use.
NO_WORK = {"Timed", "BaseTransform", "Sampler", "EdgePredictionSampler", "negative_sampler"}
GROUPS = {
    ops: OPERATORS,
    layers: LAYERS,
    dgl.dataloading: LOADERS,
    sampling: SAMPLING,
    transforms: TRANSFORMS,
}


@pytest.mark.parametrize("module", GROUPS, ids=lambda module: module.__name__)
def test_nothing_public_is_left_out(module: Any) -> None:
    covered = {name.split()[0] for name in GROUPS[module]} | NO_WORK
    missing = {n for n in module.__all__ if n not in covered and not n.endswith("lazy_features")}
    assert not missing, f"add a case to {__name__} for {sorted(missing)}"


AGAIN = pytest.mark.thorough("tests/ops compares gspmm and gsddmm, which these call")
CASES = [
    pytest.param(case, id=name, marks=[AGAIN] if name in ops.NAMED else [])
    for cases in (*GROUPS.values(), NEGATIVE, READOUTS)
    for name, case in cases.items()
]


@pytest.fixture
def float64() -> Iterator[None]:
    """A GPU adds in another order: in float32, that alone is more than the tolerance."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("case", CASES)
def test_as_on_the_cpu(case: Case, graph: dgl.Graph, float64: None) -> None:
    compare(case, graph)


def compare(case: Case, graph: dgl.Graph) -> None:
    results, graph = [], dgl.to_double(graph)
    for device in ("cpu", GPU):
        g = copy.copy(graph).to(device)
        dgl.seed(5)
        results.append(plain(case(g), device))
    expected, found = results
    assert expected, "a case has tensors"
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value.is_floating_point():
            torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-6, msg=name)
        else:
            assert torch.equal(found[name], value), name


def plain(value: Any, device: str, name: str = "result") -> dict[str, torch.Tensor]:
    """All tensors of a result, by their place, on the CPU; each was on the device before."""
    if isinstance(value, torch.Tensor):
        assert value.device.type == device, f"{name} is on {value.device}"
        return {name: value.detach().cpu()}
    parts: dict[str, Any] = {}
    if isinstance(value, dgl.Graph):
        for etype in value.canonical_etypes:
            parts[f"edges of {etype}"] = value.edges(form="all", etype=etype)
        for kind in ("srcdata", "dstdata", "edata"):
            parts[kind] = dict(getattr(value, kind))
    elif isinstance(value, dict):
        parts = {str(key): part for key, part in value.items()}
    elif isinstance(value, list | tuple):
        parts = {str(number): part for number, part in enumerate(value)}
    found: dict[str, torch.Tensor] = {}
    for key, part in parts.items():
        found |= plain(part, device, f"{name}.{key}")
    return found
