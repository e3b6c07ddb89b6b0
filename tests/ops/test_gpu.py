"""The same operators on a GPU: the same values, and never a visit to the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
import torch

from gnnlab import ops
from gnnlab.ops import torch_ops
from gnnlab.system import accelerators
from tests.accelerator import GPU, OWN_GPU_OPS, no_waits
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


@pytest.fixture(params=["triton", "torch"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def forget() -> None:
        accelerators.runs_triton.cache_clear()
        OWN_GPU_OPS.cache_clear()

    monkeypatch.setenv("GNNLAB_FAST_GPU", "1" if request.param == "triton" else "0")
    forget()
    yield str(request.param)
    forget()


@pytest.mark.parametrize("name", list(CASES))
def test_equals_the_cpu(name: str, path: str) -> None:
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


def test_gradients_of_gradients(path: str) -> None:
    torch.manual_seed(0)
    graph, there = toy_graph(), toy_graph(GPU)
    found = []
    for g in (graph, there):
        generator = torch.Generator().manual_seed(0)
        x, w = (
            torch.rand(shape, generator=generator, dtype=torch.float64).to(g.device)
            for shape in ((6, 2, 3), (8, 2, 1))
        )
        x.requires_grad_(), w.requires_grad_()
        total = ops.u_mul_e_mean(g, x, w).square().sum() + ops.copy_u_max(g, x).pow(3).sum()
        first = torch.autograd.grad(total, (x, w), create_graph=True)
        second = torch.autograd.grad(sum(one.square().sum() for one in first), (x, w))
        found.append([one.detach().cpu() for one in (*first, *second)])
    for one, other in zip(*found, strict=True):
        assert_near(other, one)


def test_rows_need_not_be_contiguous(path: str) -> None:
    graph, there = toy_graph(), toy_graph(GPU)
    x, w = torch.arange(36.0).reshape(6, 6)[:, ::2], torch.arange(16.0)[::2]
    for name, operands in {"copy_u_sum": [x], "copy_u_max": [x], "u_mul_e_sum": [x, w]}.items():
        expected = getattr(ops, name)(graph, *operands)
        strided = [torch.stack([one, one], -1).to(GPU)[..., 0] for one in operands]
        assert_near(getattr(ops, name)(there, *strided).cpu(), expected)


def test_integers_are_reduced_by_torch() -> None:
    x = torch.arange(18).reshape(6, 3)
    for reduce in ("sum", "max"):
        expected = ops.gspmm(toy_graph(), "copy_lhs", reduce, x, None)
        found = ops.gspmm(toy_graph(GPU), "copy_lhs", reduce, x.to(GPU), None)
        assert torch.equal(found.cpu(), expected)


def test_without_a_compiler_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators, "runs_triton", lambda device: True)
    with pytest.warns(UserWarning, match="Triton"):  # it has no kernels for a CPU
        assert OWN_GPU_OPS.__wrapped__(torch.device("cpu")) is torch_ops


def test_relu_dropout() -> None:
    x = torch.ones(1000, 100, device=GPU, requires_grad=True)
    out = ops.relu_dropout(x, 0.5)
    assert abs(out.mean().item() - 1) < 0.05
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], out.detach())
