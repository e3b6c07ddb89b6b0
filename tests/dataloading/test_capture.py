"""Captured training learns what ordinary training learns; padding changes nothing."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab.dataloading import CapturedTraining, DataLoader, LaborSampler, NeighborSampler
from gnnlab.system import accelerators
from tests.accelerator import GPU


class Frontier(dgl.dataloading.BlockSampler):
    """A custom sampler, whose blocks do not hold their edges by destination."""

    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        return dgl.sampling.sample_neighbors(dgl.reverse(g), seed_nodes, 3, edge_dir="out").reverse(
            copy_edata=True
        )


class Model(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        layer = {
            "sage": lambda *size: dgl.nn.SAGEConv(*size, "mean"),
            "pool": lambda *size: dgl.nn.SAGEConv(*size, "pool"),
            "gat": lambda *size: dgl.nn.GATConv(*size, 1, allow_zero_in_degree=True),
        }[kind]
        self.layers = torch.nn.ModuleList([layer(5, 8), layer(8, 3)])

    def forward(self, blocks: list[Any], x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the seeds."""
        for conv, block in zip(self.layers, blocks, strict=True):
            x = conv(block, x.tanh()).flatten(1)
        return x


def make_graph(device: str) -> Any:
    torch.manual_seed(0)
    g = dgl.rand_graph(300, 1500)
    g.ndata["x"], g.ndata["y"] = torch.randn(300, 5).double(), torch.arange(300) % 3
    g.edata["w"] = torch.rand(1500).double()
    return g.to(device)


def train(g: Any, model: Any, sampler: Any, captured: bool, **options: Any) -> list[float]:
    """Train two epochs; the last of the four mini-batches of each is not full."""

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        count = len(output_nodes)
        scores = model(blocks, blocks[0].srcdata["x"])[:count]
        return F.cross_entropy(scores, blocks[-1].dstdata["y"][:count])

    loader = DataLoader(g, range(230), sampler, batch_size=60, shuffle=True, seed=1, **options)
    optimizer = torch.optim.Adam(model.parameters(), 0.01, capturable=g.device.type == "cuda")
    if captured:
        training = CapturedTraining(loader, loss, optimizer)
        return [float(value) for _ in range(2) for value in training]
    losses = []
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            value = loss(*batch)
            value.backward()
            optimizer.step()
            losses.append(float(value.detach()))
    return losses


NEIGHBORS = NeighborSampler([3, 4], prefetch_node_feats=["x"])
OTHERS = [pytest.param("sage", LaborSampler([3, 3]), "cpu", id="labor")]
OTHERS += [pytest.param("sage", Frontier(2), "cpu", id="frontier")]
CASES = [pytest.param(kind, NEIGHBORS, "cpu") for kind in ("sage", "pool", "gat")]
CASES += [pytest.param(*case.values[:2], GPU, marks=pytest.mark.gpu) for case in CASES]


@pytest.mark.parametrize(("kind", "sampler", "device"), [*CASES, *OTHERS])
def test_losses_are_those_of_ordinary_training(kind: str, sampler: Any, device: str) -> None:
    g, model = make_graph(device), Model(kind).double().to(device)
    ordinary = train(g, copy.deepcopy(model), sampler, False)
    assert len(ordinary) == 8 and (sampler is not NEIGHBORS or ordinary[0] > ordinary[-1])
    assert train(g, model, sampler, True) == pytest.approx(ordinary, rel=1e-6)


@pytest.mark.parametrize("kind", ["sage", "pool", "gat", "graphconv", "three"])
def test_rows_that_are_not_cut_are_found(kind: str) -> None:
    """The model's result has rows of padding, which a learner forgets."""
    torch.manual_seed(1)
    model = (Model("sage") if kind in ("graphconv", "three") else Model(kind)).double()
    if kind == "graphconv":
        make = partial(dgl.nn.GraphConv, allow_zero_in_degree=True)
        model.layers = torch.nn.ModuleList([make(5, 8), make(8, 3)]).double()
    if kind == "three":
        sizes = (5, 8), (8, 8), (8, 3)
        made = [dgl.nn.SAGEConv(*size, "mean") for size in sizes]
        model.layers = torch.nn.ModuleList(made).double()
    g, fanouts = make_graph("cpu"), [3] * len(model.layers)

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        x = blocks[0].srcdata["x"]
        for conv, block in zip(model.layers, blocks, strict=True):
            x = conv(block, x).flatten(1).relu()
        return F.cross_entropy(x, blocks[-1].dstdata["y"])

    loader = DataLoader(g, range(200), NeighborSampler(fanouts), batch_size=40)
    with pytest.raises(dgl.InvalidInput, match="padding rows"):
        list(CapturedTraining(loader, loss, torch.optim.SGD(model.parameters(), 0.01)))


def losses_of(loss: Any, g: Any = None, **options: Any) -> list[torch.Tensor]:
    loader = DataLoader(g or make_graph("cpu"), range(200), NeighborSampler([3, 3]), batch_size=40)
    parameters = options.pop("parameters", [torch.ones(1, requires_grad=True)])
    return list(CapturedTraining(loader, loss, torch.optim.SGD(parameters, 0.1), **options))


def test_typed_blocks_with_seeds_of_one_type() -> None:
    torch.manual_seed(0)
    ends = {
        ("user", "buys", "item"): (torch.randint(80, (400,)), torch.randint(60, (400,))),
        ("item", "sold", "user"): (torch.randint(60, (400,)), torch.randint(80, (400,))),
    }
    g = dgl.heterograph(ends, {"user": 80, "item": 60})
    g.ndata["x"] = {"user": torch.randn(80, 4).double(), "item": torch.randn(60, 4).double()}
    weight = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        x = {ntype: rows @ weight for ntype, rows in blocks[0].srcdata["x"].items()}
        for block in blocks:
            with block.local_scope():
                block.srcdata["h"] = x
                mean = dgl.function.copy_u("h", "m"), dgl.function.mean("m", "h")
                block.multi_update_all(dict.fromkeys(block.etypes, mean), "sum")
                x = block.dstdata["h"]
        return x["item"][: len(output_nodes["item"])].square().sum()

    sampler = NeighborSampler([3, 3])
    loader = DataLoader(g, {"item": range(50)}, sampler, batch_size=10, seed=2)
    sgd = torch.optim.SGD([weight], 1e-3)
    begin = weight.detach().clone()
    losses = [float(value) for value in CapturedTraining(loader, loss, sgd)]
    weight.data.copy_(begin)
    loader.set_epoch(0)
    for value, batch in zip(losses, loader, strict=True):
        sgd.zero_grad()
        ordinary = loss(*batch)
        ordinary.backward()
        sgd.step()
        assert value == pytest.approx(float(ordinary.detach()), rel=1e-9)


def test_blocks_grow_with_the_mini_batches() -> None:
    """A star: seeds 0–9 have one in-edge each, the later ones two hundred."""
    few, many = torch.arange(200), torch.arange(200).repeat_interleave(200)
    src = torch.cat([few, torch.arange(200).repeat(200)])
    g = dgl.graph((src, torch.cat([few, many + 200])), num_nodes=400)
    g.ndata["x"] = torch.arange(400.0)

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        block = blocks[0]
        out = dgl.ops.copy_u_sum(block, block.srcdata["x"][:, None] * scale)
        return out[: len(output_nodes)].sum()

    scale = torch.ones(1, requires_grad=True)
    loader = DataLoader(g, range(400), NeighborSampler([-1]), batch_size=40)
    training = CapturedTraining(loader, loss, torch.optim.SGD([scale], 0.0))
    sums = [float(value) for value in training]
    assert sums == [float(few[n : n + 40].sum()) for n in range(0, 200, 40)] + [40 * 19900.0] * 5


@pytest.mark.parametrize(
    ("loss", "match"),
    [
        (lambda i, o, blocks: (blocks[1].dstdata["x"] * scale).sum(), "padding rows"),
        (lambda i, o, blocks: norm(blocks[0].srcdata["x"])[: len(o)].square()[0, 0], "padding"),
        (lambda i, o, blocks: blocks[0].srcdata["x"][: len(o)] @ scale.expand(5), "scalar"),
    ],
    ids=["not cut", "BatchNorm", "many numbers"],
)
def test_losses_that_cannot_be_captured(loss: Any, match: str) -> None:
    with pytest.raises((dgl.InvalidInput, RuntimeError), match=match):
        losses_of(loss, parameters=[scale])


scale = torch.ones(1, dtype=torch.float64, requires_grad=True)
norm = torch.nn.BatchNorm1d(5).double()


def test_a_feature_that_is_read_in_some_steps_only() -> None:
    steps = []

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        steps.append(1)
        extra = blocks[1].edata["w"].sum() if len(steps) > 5 else 0
        return (blocks[0].srcdata["x"][: len(output_nodes)] * scale).sum() + extra * 0

    with pytest.raises(dgl.InvalidInput, match="'w'"):
        losses_of(loss, parameters=[scale])


@pytest.mark.gpu
def test_an_optimizer_whose_state_is_in_main_memory() -> None:
    g = make_graph(GPU)
    weight = torch.ones(5, 1, dtype=torch.float64, device=GPU, requires_grad=True)

    def loss(input_nodes: Any, output_nodes: Any, blocks: Any) -> torch.Tensor:
        return (blocks[1].dstdata["x"][: len(output_nodes)] @ weight).sum()

    loader = DataLoader(g, range(200), NeighborSampler([2, 2]), batch_size=40)
    training = CapturedTraining(loader, loss, torch.optim.Adagrad([weight]))
    training.records = True
    with pytest.raises(dgl.InvalidInput, match="'step'"):
        list(training)


@pytest.mark.gpu
def test_wrong_arguments() -> None:
    g = make_graph("cpu")
    sgd = torch.optim.SGD([scale], 0.1)
    with pytest.raises(dgl.InvalidInput, match="DataLoader"):
        CapturedTraining([1, 2], print, sgd)  # type: ignore[arg-type]
    for options in {"use_ddp": (0, 2)}, {"device": GPU}:
        loader = DataLoader(g, [1, 2], NeighborSampler([1]), **options)
        adam = torch.optim.Adam([scale])
        records = patch.object(accelerators, "can_record", lambda device: device.type == GPU)
        with records, pytest.raises(dgl.InvalidInput, match=r"use_ddp|capturable"):
            CapturedTraining(loader, print, adam)
    edges = dgl.dataloading.as_edge_prediction_sampler(NeighborSampler([1]))
    with pytest.raises(dgl.InvalidInput, match="blocks"):
        next(iter(CapturedTraining(DataLoader(g, [1, 2], edges), print, sgd)))
    both = dgl.heterograph({("a", "to", "b"): ([0], [0])})
    loader = DataLoader(both, {"a": [0], "b": [0]}, NeighborSampler([1]), batch_size=2)
    with pytest.raises(dgl.InvalidInput, match="one node type"):
        next(iter(CapturedTraining(loader, print, sgd)))
    assert len(CapturedTraining(DataLoader(g, [1, 2], NeighborSampler([1])), print, sgd)) == 2
