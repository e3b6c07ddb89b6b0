"""``dgl.sparse`` gives what dense matrices give, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gnnlab.compat.sparse as dglsp

PLACES = torch.tensor([[2, 0, 0, 1], [1, 0, 3, 2]])
OTHERS = torch.tensor([[0, 1, 2, 0], [0, 2, 2, 3]])


def matrix(places: torch.Tensor = PLACES, width: int = 0, seed: int = 0) -> Any:
    """A matrix of shape (3, 4) with 4 elements, numbers or vectors, whose values have gradients."""
    shape = (4, width) if width else (4,)
    val = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) + 0.5
    return dglsp.spmatrix(places, val.requires_grad_(), (3, 4))


def dense_of(A: Any, places: torch.Tensor = PLACES) -> torch.Tensor:
    return torch.zeros(*A.shape, *A.val.shape[1:]).index_put(tuple(places), A.val)


def check(ours: torch.Tensor, theirs: torch.Tensor, *leaves: torch.Tensor) -> None:
    """Both are equal, and so are their gradients for a weighted sum."""
    torch.testing.assert_close(ours, theirs)
    weights = torch.linspace(1, 2, ours.numel()).view_as(ours)
    found = torch.autograd.grad((ours * weights).sum(), leaves, retain_graph=True)
    wanted = torch.autograd.grad((theirs * weights).sum(), leaves)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("columns", [0, 5])
def test_products_with_dense_matrices(columns: int) -> None:
    A = matrix()
    X = torch.rand((4, columns) if columns else (4,), requires_grad=True)
    check(A @ X, dense_of(A) @ X, A.val, X)
    check(dglsp.spmm(A, X), dense_of(A) @ X, A.val, X)


def test_products_of_batches() -> None:
    A, X = matrix(width=2), torch.rand(4, 5, 2, requires_grad=True)
    check(dglsp.bspmm(A, X), torch.einsum("lmk,mnk->lnk", dense_of(A), X), A.val, X)
    assert torch.equal(A @ X, dglsp.bspmm(A, X))


def test_products_of_sparse_matrices() -> None:
    A, B = matrix(), matrix(OTHERS, seed=1)
    check((A @ B.T).to_dense(), dense_of(A) @ dense_of(B, OTHERS).T, A.val, B.val)
    D = dglsp.diag(torch.tensor([1.0, 2.0, 3.0]), (3, 5))
    assert torch.equal((A.T @ D).to_dense(), dense_of(A).T @ D.to_dense())
    assert (D @ D.T).is_diag() and (D @ D.T).shape == (3, 3)


def test_products_at_elements() -> None:
    A = matrix()
    X1, X2 = (torch.rand(size, requires_grad=True) for size in [(3, 5), (5, 4)])
    at = tuple(PLACES)
    check(dglsp.sddmm(A, X1, X2).val, (X1 @ X2)[at] * A.val, A.val, X1, X2)
    x1, x2 = (torch.rand(size, requires_grad=True) for size in [3, 4])
    check(dglsp.sddmm(A, x1, x2).val, torch.outer(x1, x2)[at] * A.val, A.val, x1, x2)
    for width in 0, 2:
        A = matrix(width=width)
        X1, X2 = (torch.rand(size, requires_grad=True) for size in [(3, 5, 2), (5, 4, 2)])
        products = torch.einsum("lmk,mnk->lnk", X1, X2)[at]
        check(dglsp.bsddmm(A, X1, X2).val, products * A.val.view(4, -1), A.val, X1, X2)


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_elements_of_two_matrices(op: str, width: int) -> None:
    A, B = matrix(width=width), matrix(OTHERS, width, seed=1)
    ours, theirs = getattr(dglsp, op)(A, B), getattr(torch, op)
    check(ours.to_dense(), theirs(dense_of(A), dense_of(B, OTHERS)), A.val, B.val)
    assert not ours.has_duplicate()


def test_elements_and_numbers() -> None:
    A = matrix()
    for ours, theirs in (
        (A * 2, A.val * 2),
        (2 * A, A.val * 2),
        (A / 2, A.val / 2),
        (A**2, A.val**2),
        (-A, -A.val),
        (A / (A * 4), A.val / (A.val * 4)),
    ):
        check(ours.val, theirs, A.val)
    assert dglsp.diag(torch.tensor([2.0, 4.0])).inv().val.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("width", [0, 2])
def test_elements_and_vectors(width: int) -> None:
    A = matrix(width=width)
    row, col = PLACES
    for v, entries in (
        (torch.arange(1.0, 5), torch.arange(1.0, 5)[col]),
        (torch.arange(1.0, 5)[None, :], torch.arange(1.0, 5)[col]),
        (torch.arange(1.0, 4)[:, None], torch.arange(1.0, 4)[row]),
    ):
        entries = entries.view(4, *(1,) * bool(width))
        check(dglsp.sp_add_v(A, v).val, A.val + entries, A.val)
        check(dglsp.sp_sub_v(A, v).val, A.val - entries, A.val)
        check(dglsp.sp_mul_v(A, v).val, A.val * entries, A.val)
        check(dglsp.sp_div_v(A, v).val, A.val / entries, A.val)


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize(
    ("rtype", "dense"),
    [
        ("sum", lambda rows: rows.sum(0)),
        ("smean", lambda rows: rows.mean(0)),
        ("smax", lambda rows: rows.amax(0)),
        ("smin", lambda rows: rows.amin(0)),
        ("sprod", lambda rows: rows.prod(0)),
    ],
)
def test_reductions(rtype: str, dense: Callable[[torch.Tensor], torch.Tensor], width: int) -> None:
    """Zeros that are not elements do not count; a row without elements gives 0."""
    A = matrix(torch.tensor([[2, 0, 0, 0], [1, 0, 3, 2]]), width)
    empty = torch.zeros(A.val.shape[1:])
    check(A.reduce(1, rtype), torch.stack([dense(A.val[1:]), empty, dense(A.val[:1])]), A.val)
    check(getattr(A, rtype)(0), torch.stack([A.val[i] for i in (1, 0, 3, 2)]), A.val)
    check(getattr(dglsp, rtype)(A), dense(A.val), A.val)


def test_functions_are_no_modules() -> None:
    """A module of the name of a function would take its place, once it is imported."""
    A = matrix()
    assert torch.equal(dglsp.matmul(A, torch.ones(4)), A.sum(1))
    assert torch.equal(dglsp.reduce(A, 1), dglsp.sum(A, 1))
    with pytest.raises(TypeError):
        dglsp.add(A, 2)


def test_softmax() -> None:
    A = matrix()
    minus = torch.full((3, 4), float("-inf"))
    for dim in 0, 1:
        dense = minus.index_put(tuple(PLACES), A.val)
        check(A.softmax(dim).val, torch.softmax(dense, dim)[tuple(PLACES)], A.val)


def test_forms() -> None:
    """The same elements come back from each format; csr and csc say which value is where."""
    A = matrix()
    for made, arrays in (dglsp.from_csr, A.csr()), (dglsp.from_csc, A.csc()):
        indptr, indices, values = arrays
        assert torch.equal(made(indptr, indices, A.val[values], A.shape).to_dense(), dense_of(A))
    for to in dglsp.to_torch_sparse_coo, dglsp.to_torch_sparse_csr, dglsp.to_torch_sparse_csc:
        there = to(A)
        assert torch.equal(there.to_dense(), dense_of(A))
        assert torch.equal(dglsp.from_torch_sparse(there).to_dense(), dense_of(A))
    assert torch.equal(A.T.to_dense(), dense_of(A).T) and torch.equal(A.T.val, A.val)
    twice = dglsp.spmatrix(torch.tensor([[1, 0, 1], [1, 0, 1]]), torch.tensor([1.0, 2.0, 3.0]))
    assert twice.has_duplicate() and not twice.coalesce().has_duplicate()
    assert twice.coalesce().val.tolist() == [2.0, 4.0]
    assert torch.equal(twice.to_dense(), torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    assert A.double().dtype == torch.float64 and A.to("cpu") is A


def test_parts() -> None:
    A, dense = matrix(), dense_of(matrix())
    for dim, index in (0, [2, 0]), (1, [3, 3, 1]):
        index = torch.tensor(index)
        assert torch.equal(A.index_select(dim, index).to_dense(), dense.index_select(dim, index))
    assert torch.equal(A.range_select(1, slice(1, 3)).to_dense(), dense[:, 1:3])
    B, rows = dglsp.spmatrix(torch.tensor([[5, 2, 2], [1, 0, 1]])).compact(0, torch.tensor([3, 5]))
    assert rows.tolist() == [3, 5, 2] and B.row.tolist() == [1, 2, 2]


def test_samples_are_parts_of_rows() -> None:
    A = matrix()
    drawn = A.sample(0, 1)
    assert drawn.shape == A.shape and drawn.row.sort().values.tolist() == [0, 1, 2]
    kept = drawn.to_dense() > 0
    assert torch.equal(drawn.to_dense(), dense_of(A) * kept)
    assert A.sample(1, 1, torch.tensor([3, 0])).shape == (3, 2)
    assert A.sample(0, 3, replace=True).row.bincount().tolist() == [3, 3, 3]
    biased = dglsp.spmatrix(torch.tensor([[0, 0], [0, 1]]), torch.tensor([0.0, 1.0]))
    assert all(biased.sample(0, 1, bias=True).col.tolist() == [1] for _ in range(20))
