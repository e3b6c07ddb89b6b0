"""torch.distributed among threads gives what it gives among processes."""

from __future__ import annotations

import json
import tempfile
from typing import Any

import pytest
import torch
import torch.distributed as dist

import gnnlab as dgl
from gnnlab.simulate import Simulation, SimulationError, simulate
from tests.helpers import run_ranks

# Run by three real ranks with gloo, and in a simulation: every result must be equal.
CALLS = """
import torch, torch.distributed as dist
import gnnlab as dgl
from torch.nn.parallel import DistributedDataParallel

def calls():
    assert not dist.is_initialized()
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    found = [dist.get_backend(), rank, count, dist.is_initialized()]
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT):
        x = torch.tensor([rank + 1.0, 2.0 - rank])
        dist.all_reduce(x, op)
        found.append(x.tolist())
    x = torch.tensor([rank])
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    found.append(x.tolist())
    x = torch.tensor([rank + 1])
    dist.reduce(x, 0)
    found.append(x.tolist() if rank == 0 else "undefined")
    many = [torch.zeros(2) for _ in range(count)]
    dist.all_gather(many, torch.tensor([rank, 7.0]))
    found.append([each.tolist() for each in many])
    flat = torch.zeros(count * 2)
    dist.all_gather_into_tensor(flat, torch.tensor([rank, 7.0]))
    found.append(flat.tolist())
    objects = [None] * count
    dist.all_gather_object(objects, {"rank": rank})
    found.append(objects)
    x = torch.tensor([rank])
    dist.broadcast(x, 2)
    names = ["a", rank]
    dist.broadcast_object_list(names, 1)
    dist.barrier()
    found += [x.tolist(), names, dgl.parallel.global_mean(rank, 1)]

    torch.manual_seed(rank)
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
            self.b, self.rare = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
        def forward(self, x, rare):
            h = self.norm(self.a(x))
            return self.rare(h) if rare else self.b(h)
    model = DistributedDataParallel(Model(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        x = torch.arange(12.0).view(4, 3) * (rank + 1) + step
        optimizer.zero_grad()
        if step == 2:
            with model.no_sync():  # gradients of two passes add up
                model(x * 2, False).square().mean().backward()
        model(x, step == 1 and rank == 0).square().mean().backward()
        optimizer.step()
    found.append([p.tolist() for p in model.parameters()])
    found.append({n: b.tolist() for n, b in model.module.named_buffers()} if rank == 0 else "")
    with torch.no_grad():  # model.module: no collective call
        found.append(model.module(torch.ones(2, 3), False).shape[0])
    return found
"""


def ring() -> Simulation:
    g = dgl.graph(([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]))
    return simulate(g, 3, part_method=lambda g, k: [0, 0, 1, 1, 2, 2])


def test_calls_give_what_gloo_gives() -> None:
    # Now and then a process that ends while threads of gloo are at work aborts; hence _exit.
    ending = "\nimport json, os\nprint(json.dumps(calls()), flush=True)\nos._exit(0)"
    real = [json.loads(each) for each in run_ranks(CALLS + ending, 3, env={"OMP_NUM_THREADS": "1"})]
    space: dict[str, Any] = {}
    exec(CALLS, space)
    before = dist.all_reduce, torch.nn.parallel.DistributedDataParallel
    mine = ring().run(lambda: space["calls"]()).returned
    assert (dist.all_reduce, torch.nn.parallel.DistributedDataParallel) == before
    assert not dist.is_initialized()
    for one, other in zip(real, json.loads(json.dumps(mine)), strict=True):
        for a, b in zip(one, other, strict=True):
            assert _near(a, b), (a, b)


def _near(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_near(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(_near(x, y) for x, y in zip(a, b, strict=True))
    return a == b or (isinstance(a, float) and abs(a - b) < 1e-6 * max(1, abs(a)))


def test_a_function_imported_before_the_run_does_not_hang() -> None:
    real = dist.init_process_group
    with pytest.raises(dgl.GNNLabError, match=r"torch\.distributed\.init_process_group"):
        ring().run(lambda: real("gloo"), timeout=20)


def test_gradients_that_are_missing_are_told() -> None:
    def train() -> None:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
        )
        model.module.forward = lambda x: model.module[0](x)
        model(torch.ones(1, 1)).sum().backward()

    with pytest.raises(SimulationError, match="2 of 4 parameters"):
        ring().run(train)


def test_other_threads_use_the_real_torch_distributed() -> None:
    """A notebook has a process group of one while it simulates three ranks."""
    with tempfile.NamedTemporaryFile() as file:
        dist.init_process_group("gloo", init_method=f"file://{file.name}-x", rank=0, world_size=1)
        try:
            sizes = ring().run(lambda: dist.init_process_group("gloo") or dist.get_world_size())
            assert sizes.returned == [3, 3, 3]
            assert dist.get_world_size() == 1
        finally:
            dist.destroy_process_group()
