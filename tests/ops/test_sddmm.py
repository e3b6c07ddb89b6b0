from __future__ import annotations

from itertools import product

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import gnnlab as dgl
from gnnlab.ops import gsddmm, sddmm
from tests.ops import reference
from tests.ops.reference import assert_near, random_graph, some, toy_graph

OPS = ["add", "sub", "mul", "div", "dot"]
ENDS = ["".join(ends) for ends in product("uve", repeat=2)]
SHAPES = [
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (2, 3)),
    ((1, 64), (1, 64)),
    ((2, 3), (3,)),
    ((1, 3), (2, 3)),
    ((1,), (1,)),
    ((2, 0), (2, 0)),
]


def operands(
    graph: dgl.Graph, ends: str, shapes: tuple, dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    torch.manual_seed(1)
    rows = {"u": graph.relation().num_src, "v": graph.relation().num_dst, "e": graph.num_edges()}
    return [
        torch.rand(rows[end], *shape, dtype=dtype) + 0.5
        for end, shape in zip(ends, shapes, strict=True)
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("op", OPS)
def test_equals_the_definition(op: str, ends: str, dtype: torch.dtype, path: str) -> None:
    for graph in (toy_graph(), random_graph(20, 30, 100).int()):
        for shapes in some(SHAPES):
            x, y = operands(graph, ends, shapes, dtype)
            expected = reference.sddmm(graph, op, x, y, ends)
            assert_near(sddmm(graph.relation(), op, x, y, *ends), expected)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("op", OPS)
def test_gradients(op: str, ends: str, path: str) -> None:
    graph = toy_graph()
    for shapes in some(SHAPES[:-1]):
        x, y = (t.requires_grad_() for t in operands(graph, ends, shapes))
        assert gradcheck(
            lambda x, y: sddmm(graph.relation(), op, x, y, *ends), (x, y), fast_mode=True
        )


def test_second_derivatives_of_a_dot_product() -> None:
    graph = toy_graph()
    for shapes in SHAPES[1:3]:
        x, y = (t.requires_grad_() for t in operands(graph, "uv", shapes))
        assert gradgradcheck(lambda x, y: sddmm(graph.relation(), "dot", x, y), (x, y))


@pytest.mark.parametrize("end", "uve")
def test_copies(end: str, path: str) -> None:
    graph = toy_graph()
    for dtype in (torch.float64, torch.int64, torch.bool, torch.float16):
        x = torch.randn({"u": 6, "v": 5, "e": 8}[end], 2, 2).to(dtype)
        expected = reference.sddmm(graph, "copy_lhs", x, None, f"{end}e")
        assert torch.equal(sddmm(graph.relation(), "copy_lhs", x, None, end), expected)
        assert torch.equal(
            sddmm(graph.relation(), "copy_rhs", None, x, "u", rhs_target=end), expected
        )
    leaf = torch.randn(*x.shape, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: sddmm(graph.relation(), "copy_lhs", x, None, end), leaf)


def test_empty_graph(path: str) -> None:
    graph = dgl.heterograph({("u", "to", "v"): ([], [])}, {"u": 3, "v": 0})
    x, y = torch.ones(3, 2, 4, requires_grad=True), torch.ones(0, 2, 4)
    for op, last in (("dot", 1), ("add", 4)):
        out = sddmm(graph.relation(), op, x, y)
        assert out.shape == (0, 2, last)
        assert torch.autograd.grad(out.sum(), x)[0].eq(0).all()


def test_integers_and_mixed_dtypes(path: str) -> None:
    graph = toy_graph()
    x, y = torch.arange(12).view(6, 2), torch.arange(10).view(5, 2)
    for op in OPS:
        found = sddmm(graph.relation(), op, x, y + 1)
        assert found.dtype == (torch.float32 if op == "div" else torch.int64)
        expected = reference.sddmm(graph, op, x, y + 1)
        assert torch.allclose(found.double(), expected.double())
    assert sddmm(graph.relation(), "dot", x, y.double()).dtype == torch.float64


def test_nan_and_infinity_are_kept(path: str) -> None:
    x, one = torch.tensor([[1.0, torch.nan], [torch.inf, 1.0]]), dgl.graph(([0, 1], [0, 1]))
    out = sddmm(one.relation(), "dot", x, torch.ones(2, 2))
    assert out[0].isnan() and out[1].isinf()


def test_half_precision_dot(path: str) -> None:
    x, y = (t.half().requires_grad_() for t in operands(toy_graph(), "uv", ((2, 40), (2, 40))))
    out = gsddmm(toy_graph(), "dot", x, y)
    assert out.dtype == torch.float16
    torch.testing.assert_close(
        out.float(), gsddmm(toy_graph(), "dot", x.float(), y.float()), atol=2e-2, rtol=2e-3
    )
    assert all(g.dtype == torch.float16 for g in torch.autograd.grad(out.sum(), (x, y)))
