from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import gnnlab as dgl
from gnnlab.graph.relation import Relation
from gnnlab.ops import spmm
from tests.ops import reference
from tests.ops.reference import assert_near, random_graph, some, toy_graph

BINARY = ["add", "sub", "mul", "div"]
REDUCE = ["sum", "mean", "max", "min"]
# rows of the sources, rows of the edges
SHAPES = [
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((3,), (1,)),
    ((3,), (3,)),
    ((1,), (3,)),
    ((2, 3), (2, 1)),
    ((2, 3), (1, 1)),
    ((1, 3), (2, 1)),
    ((2, 3), (3,)),
    ((2, 1), (2, 1)),
    ((2, 3, 2), (2, 3, 1)),
    ((2, 3, 2), (1, 3, 1)),
    ((70,), ()),
    ((4, 0), (4, 1)),
]


def operands(
    graph: dgl.Graph, shapes: tuple, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(graph.relation().num_src, *shapes[0], dtype=dtype)
    y = torch.rand(graph.num_edges(), *shapes[1], dtype=dtype) + 0.5
    return x, y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduce", REDUCE)
@pytest.mark.parametrize("op", [*BINARY, "copy_lhs", "copy_rhs"])
def test_equals_the_definition(op: str, reduce: str, dtype: torch.dtype, path: str) -> None:
    for graph in (toy_graph(), random_graph(30, 40, 200).int()):
        for shapes in some(SHAPES):
            x, y = operands(graph, shapes, dtype)
            x, y = (None if op == "copy_rhs" else x), (None if op == "copy_lhs" else y)
            expected = reference.spmm(graph, op, reduce, x, y)
            assert_near(spmm(graph.relation(), op, reduce, x, y), expected)


@pytest.mark.parametrize("reduce", REDUCE)
@pytest.mark.parametrize("op", [*BINARY, "copy_lhs", "copy_rhs"])
def test_gradients(op: str, reduce: str, path: str) -> None:
    graph = toy_graph()
    for shapes in some(SHAPES[:-2]):
        x, y = (t.requires_grad_() for t in operands(graph, shapes))
        wanted = [t for t, skip in ((x, "copy_rhs"), (y, "copy_lhs")) if op != skip]

        def run(*tensors: torch.Tensor) -> torch.Tensor:
            both = [None, *tensors] if op == "copy_rhs" else [*tensors, None][:2]
            return spmm(graph.relation(), op, reduce, *both)

        assert gradcheck(run, wanted, fast_mode=True)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_second_derivatives(reduce: str) -> None:
    graph = toy_graph()
    for shapes in (((2,), ()), ((2, 2), (2, 1)), ((2,), (2,))):
        x, y = (t.requires_grad_() for t in operands(graph, shapes))
        assert gradgradcheck(lambda x, y: spmm(graph.relation(), "mul", reduce, x, y), (x, y))


def test_reads_edges_of_a_sorted_and_an_unsorted_list_alike(path: str) -> None:
    src, dst = torch.tensor(reference.SRC), torch.tensor(reference.DST)
    order = torch.argsort(dst, stable=True)
    x, y = operands(toy_graph(), ((3,), ()))
    given = spmm(Relation(6, 5, (src, dst)), "mul", "sum", x, y)
    ordered = spmm(Relation(6, 5, (src[order], dst[order])), "mul", "sum", x, y[order])
    assert_near(given, ordered)


def test_empty_graphs(path: str) -> None:
    for num_src, num_dst in ((0, 0), (3, 0), (0, 3), (3, 4)):
        graph = dgl.heterograph({("u", "to", "v"): ([], [])}, {"u": num_src, "v": num_dst})
        x = torch.randn(num_src, 2, 3, requires_grad=True)
        y = torch.randn(0, 2, 1, requires_grad=True)
        for reduce in REDUCE:
            out = spmm(graph.relation(), "mul", reduce, x, y)
            assert torch.equal(out, torch.zeros(num_dst, 2, 3))
            grads = torch.autograd.grad(out.sum(), (x, y))
            assert torch.equal(grads[0], torch.zeros_like(x)) and grads[1].shape == y.shape


def test_integers() -> None:
    relation, x = toy_graph().relation(), torch.arange(6)
    y = torch.arange(8)
    assert spmm(relation, "copy_lhs", "sum", x, None).tolist() == [2, 5, 6, 0, 3]
    assert spmm(relation, "copy_lhs", "max", x, None).tolist() == [1, 5, 4, 0, 3]
    assert spmm(relation, "mul", "sum", x, y).tolist() == [4, 35, 16, 0, 15]
    assert spmm(relation, "sub", "min", x, y).tolist() == [-2, -2, -6, 0, -2]
    assert spmm(relation, "div", "sum", x, y + 1).dtype == torch.float32
    mixed = spmm(relation, "mul", "mean", x.double(), y)
    assert_near(mixed, reference.spmm(toy_graph(), "mul", "mean", x.double(), y.double()))
    with pytest.raises(dgl.DGLError, match=r"int64 values, whose mean.*\.float\(\)"):
        spmm(relation, "copy_lhs", "mean", x, None)
    with pytest.raises(dgl.DGLError, match="bool"):
        spmm(relation, "copy_lhs", "sum", x > 2, None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype: torch.dtype, path: str) -> None:
    graph = random_graph(10, 4, 300)
    x, y = (t.to(dtype).requires_grad_() for t in operands(graph, ((2, 3), (2, 1))))
    for reduce in ("sum", "mean", "max"):
        out = spmm(graph.relation(), "mul", reduce, x, y)
        wide = [t.detach().float().requires_grad_() for t in (x, y)]
        expected = spmm(graph.relation(), "mul", reduce, *wide)
        assert out.dtype == dtype
        torch.testing.assert_close(out.float(), expected, atol=1e-2, rtol=1e-2)
        grads = torch.autograd.grad(out.sum(), (x, y))
        for found, other in zip(grads, torch.autograd.grad(expected.sum(), wide), strict=True):
            assert found.dtype == dtype
            torch.testing.assert_close(found.float(), other, atol=5e-2, rtol=5e-2)


def test_views_and_expanded_gradients() -> None:
    graph = toy_graph()
    x = torch.randn(3, 6, dtype=torch.float64).t()
    y = torch.rand(16, dtype=torch.float64)[::2]
    assert not x.is_contiguous() and not y.is_contiguous()
    for reduce in REDUCE:
        assert_near(
            spmm(graph.relation(), "mul", reduce, x, y), reference.spmm(graph, "mul", reduce, x, y)
        )
    leaf = torch.randn(6, 3, requires_grad=True)
    spmm(graph.relation(), "copy_lhs", "mean", leaf, None).sum().backward()
    expected = torch.tensor([1 / 2 + 1 / 3, 1, 1 / 3, 1, 1 / 3, 1 / 2]).unsqueeze(1).expand(6, 3)
    assert_near(leaf.grad, expected)


def test_nan_and_infinity_are_not_hidden(path: str) -> None:
    x = torch.tensor([1.0, float("nan"), 3.0, 4.0, float("inf"), 5.0])
    for reduce in REDUCE:
        out = spmm(toy_graph().relation(), "copy_lhs", reduce, x, None)
        assert out.isnan().tolist() == [True, False, False, False, False]
    assert spmm(toy_graph().relation(), "copy_lhs", "mean", x, None)[2] == float("inf")


def test_first_of_equals_gets_the_gradient(path: str) -> None:
    x = torch.ones(6, 1, requires_grad=True)
    spmm(toy_graph().relation(), "copy_lhs", "max", x, None).sum().backward()
    # item 2 hears 4, 2 and 0 in this order; item 0 hears 1 twice
    assert x.grad.flatten().tolist() == [1, 1, 0, 1, 1, 0]


def test_a_sum_of_copies_needs_no_edge_ids() -> None:
    relation = Relation.from_edges(torch.tensor(reference.SRC), torch.tensor(reference.DST), 6, 5)
    x = torch.randn(6, 3, requires_grad=True)
    spmm(relation, "copy_lhs", "mean", x, None).sum().backward()
    assert relation.csc()._eids is None and relation.csr()._eids is None
