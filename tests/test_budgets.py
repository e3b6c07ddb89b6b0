"""What a GPU would feel of a mini-batch: operators, waits for the device, bytes copied.

At some 5 µs an operator, 300 operators of sampling are 1.5 ms, 0.3 s in an epoch of 192 steps.
``operators`` are those that a GPU has to run; ``dispatched`` also counts views and allocations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab.nn import GATConv, SAGEConv
from tests.accelerator import GPU, NAME, counting, no_waits
from tests.helpers import HAS_GPU

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)]

SEEDS = torch.arange(100)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = [(8, 16), (16, 16), (16, 3)]
        self.layers = torch.nn.ModuleList(SAGEConv(*size, "mean") for size in sizes)

    def forward(self, blocks: list[dgl.Block], x: torch.Tensor) -> torch.Tensor:
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(block, x if layer is self.layers[0] else x.relu())
        return x


@contextmanager
def budget(**limits: int) -> Iterator[None]:
    """Fail if more is counted than allowed."""
    with counting() as counts:
        yield
    spent = {name: counts[name] for name in limits}
    assert all(spent[name] <= limit for name, limit in limits.items()), f"{spent} > {limits}"


@pytest.fixture(scope="module")
def graph() -> dgl.Graph:
    torch.manual_seed(0)
    g = dgl.graph((torch.randint(500, (9000,)), torch.randint(500, (9000,))), num_nodes=500)
    g.ndata["x"], g.ndata["y"] = torch.randn(500, 8), torch.randint(3, (500,))
    return g


@pytest.fixture
def there(graph: dgl.Graph) -> dgl.Graph:
    moved = graph.to(GPU)
    moved.create_formats_()
    return moved


def batch(
    g: dgl.Graph, seeds: torch.Tensor = SEEDS
) -> tuple[torch.Tensor, torch.Tensor, list[dgl.Block]]:
    dgl.seed(0)
    return dgl.dataloading.NeighborSampler([15, 10, 5]).sample(g, seeds)


@pytest.mark.parametrize("seeds_on_device", [True, False])
def test_sampling_three_layers(there: dgl.Graph, seeds_on_device: bool) -> None:
    """Seeds are checked on the CPU; those of a device are copied there first."""
    seeds = SEEDS.to(GPU) if seeds_on_device else SEEDS
    waits, to_host = (7, SEEDS.nbytes) if seeds_on_device else (6, 0)
    with budget(operators=240, dispatched=300, waits=waits, to_host=to_host, to_device=800):
        batch(there, seeds)


@pytest.mark.parametrize(
    ("options", "operators"),
    [({"prob": "w"}, 313), ({"prob": "w", "replace": True}, 364), ({}, 326)],
)
def test_sampling_by_weight_or_without_some_edges(
    there: dgl.Graph, options: dict[str, object], operators: int
) -> None:
    """Three waits a layer: for the numbers of all edges, of those allowed and of new nodes."""
    there.edata["w"] = torch.ones(9000, device=GPU)
    sampler = dgl.dataloading.NeighborSampler([15, 10, 5], **options)
    excluded = () if options else (torch.arange(200),)
    sampler.sample(there, SEEDS, *excluded)  # the slots of all edges are computed once
    with budget(operators=operators, dispatched=operators + 25, waits=9):
        sampler.sample(there, SEEDS, *excluded)


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize(
    ("fast", "first", "second"), [("0", (64, 116), (55, 104)), ("1", (50, 94), (40, 84))]
)
def test_a_training_step(
    graph: dgl.Graph,
    there: dgl.Graph,
    on_device: bool,
    fast: str,
    first: tuple[int, int],
    second: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GNNLAB_FAST_GPU", fast)
    model = Model().to(GPU)
    inputs, outputs, blocks = batch(there if on_device else graph)
    x, y = there.ndata["x"][inputs.to(GPU)], there.ndata["y"][outputs.to(GPU)]
    blocks = [block.to(GPU) for block in blocks]
    with no_waits(), budget(operators=first[0], dispatched=first[1], waits=0):
        F.cross_entropy(model(blocks, x), y).backward()
    model.zero_grad()
    with no_waits(), budget(operators=second[0], dispatched=second[1], waits=0):  # edges are known
        F.cross_entropy(model(blocks, x), y).backward()


def test_message_passing_does_not_wait(there: dgl.Graph) -> None:
    *_, blocks = batch(there)
    layer = GATConv(8, 4, 2, allow_zero_in_degree=True).to(GPU)
    x = there.ndata["x"][blocks[0].srcdata[dgl.NID]]
    with no_waits():
        layer(blocks[0], x).sum().backward()


@pytest.mark.parametrize("on_device", [True, False])
def test_a_loader(graph: dgl.Graph, there: dgl.Graph, on_device: bool) -> None:
    """A graph on the device is sampled there; of one on the host, only the batch is copied."""
    g, sampler = there if on_device else graph, dgl.dataloading.NeighborSampler([15, 10, 5])
    loader = dgl.dataloading.DataLoader(g, SEEDS, sampler, batch_size=100, device=GPU, prefetch=0)
    waits = 8 if on_device else 0  # one of them once: the features are looked at for NaN
    with budget(waits=waits, dispatched=300 if on_device else 40):
        for _, _, blocks in loader:
            assert blocks[0].srcdata["x"].device.type == GPU


def test_exact_inference_waits_for_the_sizes_of_all_blocks_at_once(there: dgl.Graph) -> None:
    layer = SAGEConv(8, 4, "mean").to(GPU)
    x = there.ndata["x"]
    with torch.no_grad(), budget(waits=2):
        for rows, block in dgl.dataloading.full_neighbor_blocks(there, 100):
            layer(block, (x, x[rows]))
