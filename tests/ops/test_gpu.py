"""The same operators on a GPU: the same values, and never a visit to the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch

from gnnlab import ops
from tests.accelerator import GPU, no_waits
from tests.ops.reference import assert_near, toy_graph

pytestmark = pytest.mark.gpu

LENGTHS = torch.tensor([3, 0, 5])
CASES: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    **{
        f"{op}_{reduce}_{len(shapes[1])}": (
            lambda g, x, y, op=op, reduce=reduce: ops.gspmm(g, op, reduce, x, y),
            shapes,
        )
        for op in ("add", "sub", "mul", "div")
        for reduce in ("sum", "mean", "max", "min")
        for shapes in ([(6, 3), (8,)], [(6, 2, 3), (8, 2, 1)])
    },
    **{f"copy_u_{r}": (getattr(ops, f"copy_u_{r}"), [(6, 3)]) for r in ("sum", "mean", "max")},
    "u_dot_v": (ops.u_dot_v, [(6, 2, 3), (5, 2, 3)]),
    "u_add_v": (ops.u_add_v, [(6, 2, 1), (5, 2, 1)]),
    "e_mul_v": (ops.e_mul_v, [(8,), (5, 3)]),
    "edge_softmax": (ops.edge_softmax, [(8, 2, 1)]),
    "segment_mean": (lambda g, x: ops.segment_reduce(LENGTHS.to(x.device), x, "mean"), [(8, 2)]),
    "segment_max": (lambda g, x: ops.segment_reduce(LENGTHS.to(x.device), x, "max"), [(8, 2)]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_equals_the_cpu(name: str) -> None:
    function, shapes = CASES[name]
    torch.manual_seed(0)
    values = [torch.rand(shape, dtype=torch.float64) + 0.5 for shape in shapes]
    here = [x.clone().requires_grad_() for x in values]
    there = [x.to(GPU).requires_grad_() for x in values]
    expected = function(toy_graph(), *here)
    graph = toy_graph(GPU)
    graph.relation().coo()
    with nullcontext() if name.startswith("segment") else no_waits():
        found = function(graph, *there)
        found.square().sum().backward()
    expected.square().sum().backward()
    assert_near(found.cpu(), expected)
    for one, other in zip(there, here, strict=True):
        assert_near(one.grad.cpu(), other.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    x, w = torch.randn(6, 2, 3), torch.rand(8, 2, 1)
    expected = ops.u_mul_e_mean(toy_graph(), x, w)
    found = ops.u_mul_e_mean(toy_graph(GPU), x.to(GPU).to(dtype), w.to(GPU).to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.cpu().float(), expected, atol=3e-2, rtol=3e-2)


def test_relu_dropout() -> None:
    x = torch.ones(1000, 100, device=GPU, requires_grad=True)
    out = ops.relu_dropout(x, 0.5)
    assert abs(out.mean().item() - 1) < 0.05
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], out.detach())
