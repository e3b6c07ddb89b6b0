"""DistributedDataParallel among players."""

from __future__ import annotations

import torch
from torch.nn.parallel import DistributedDataParallel

import gnnlab as dgl
from gnnlab.simulate import simulate


def step() -> list[float]:
    dgl.distributed.initialize()
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 10.0 * rank)
    model = DistributedDataParallel(layer)  # the name was imported before the run
    model(torch.tensor([[2.0 + 4 * rank]])).backward()
    return [layer.weight.item(), layer.weight.grad.item()]


def test_a_class_that_was_imported_before_takes_means_too() -> None:
    """Weights are those of rank 0; gradients 2 and 6 have mean 4."""
    ring = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    assert simulate(ring, machines=2).run(step).returned == [[0.0, 4.0], [0.0, 4.0]]
    assert DistributedDataParallel.__init__.__module__ == "torch.nn.parallel.distributed"
