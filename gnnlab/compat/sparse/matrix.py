"""``SparseMatrix``, and the functions that make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gnnlab.compat.base import BadArgument
from gnnlab.compat.sparse.elements import Elements, checked_values
from gnnlab.compat.sparse.elementwise import (
    inv,
    is_scalar,
    mul,
    neg,
    sp_add,
    sp_div,
    sp_power,
    sp_sub,
)
from gnnlab.compat.sparse.products import matmul
from gnnlab.compat.sparse.reduction import reduce, smax, smean, smin, softmax, sprod, sum
from gnnlab.graph.relation import Relation, check_ids, checked_adjacency


class SparseMatrix(Elements):
    """A sparse matrix of shape (L, N) with nnz elements, made by :func:`spmatrix` and others.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> A = dglsp.spmatrix(torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0]))
    >>> A @ torch.tensor([10.0, 20.0])
    tensor([20., 20.])
    >>> (2 * A + A.T).to_dense()
    tensor([[0., 4.],
            [5., 0.]])
    """

    def __add__(self, other: Any) -> SparseMatrix:
        return sp_add(self, other) if isinstance(other, SparseMatrix) else NotImplemented

    def __sub__(self, other: Any) -> SparseMatrix:
        return sp_sub(self, other) if isinstance(other, SparseMatrix) else NotImplemented

    def __mul__(self, other: Any) -> SparseMatrix:
        is_known = isinstance(other, SparseMatrix) or is_scalar(other)
        return mul(self, other) if is_known else NotImplemented

    def __truediv__(self, other: Any) -> SparseMatrix:
        is_known = isinstance(other, SparseMatrix) or is_scalar(other)
        return sp_div(self, other) if is_known else NotImplemented

    def __pow__(self, scalar: Any) -> SparseMatrix:
        return sp_power(self, scalar) if is_scalar(scalar) else NotImplemented

    __rmul__, __neg__, __matmul__ = __mul__, neg, matmul
    neg, inv, softmax = neg, inv, softmax
    reduce, sum, smax, smin, smean, sprod = reduce, sum, smax, smin, smean, sprod


# ------------------------------------------------------------------------------------- making
def spmatrix(
    indices: Any, val: torch.Tensor | None = None, shape: Sequence[int] | None = None
) -> SparseMatrix:
    """Make a matrix of row and column of each element, (2, nnz).

    ``val`` has shape (nnz,) or (nnz, D); ones by default. The default shape is the smallest.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> dglsp.spmatrix(torch.tensor([[0, 1, 2], [1, 2, 0]]))
    SparseMatrix(indices=tensor([[0, 1, 2],
                                 [1, 2, 0]]),
                 values=tensor([1., 1., 1.]),
                 shape=(3, 3), nnz=3)
    """
    if len(indices) != 2:
        raise BadArgument(f"indices have rows and columns: two; found {len(indices)}")
    return from_coo(indices[0], indices[1], val, shape)


def from_coo(
    row: torch.Tensor, col: torch.Tensor, val: Any = None, shape: Sequence[int] | None = None
) -> SparseMatrix:
    """Make a matrix of the row and the column of each element; see :func:`spmatrix`."""
    if shape is None:
        shape = [int(ids.max()) + 1 if len(ids) else 0 for ids in (row, col)]
    check_ids(row, shape[0], "row")
    check_ids(col, shape[1], "column")
    relation = Relation.from_edges(col, row, shape[1], shape[0])
    return SparseMatrix(relation, checked_values(val, relation))


def from_csr(
    indptr: torch.Tensor, indices: torch.Tensor, val: Any = None, shape: Sequence[int] | None = None
) -> SparseMatrix:
    """Make a matrix of the columns of its rows, of which row i has ``indptr[i]:indptr[i + 1]``.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> dglsp.from_csr(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1])).to_dense()
    tensor([[0., 1.],
            [1., 1.]])
    """
    if shape is None:
        shape = len(indptr) - 1, int(indices.max()) + 1 if len(indices) else 0
    rows = checked_adjacency(shape[0], shape[1], indptr.long(), indices)
    relation = Relation(shape[1], shape[0], csc=rows)
    return SparseMatrix(relation, checked_values(val, relation))


def from_csc(
    indptr: torch.Tensor, indices: torch.Tensor, val: Any = None, shape: Sequence[int] | None = None
) -> SparseMatrix:
    """Make a matrix of the rows of its columns; see :func:`from_csr`."""
    return from_csr(indptr, indices, val, None if shape is None else shape[::-1]).transpose()


def val_like(mat: SparseMatrix, val: torch.Tensor) -> SparseMatrix:
    """Return a matrix with the same structure and the given values, (nnz,) or (nnz, D)."""
    return mat.with_val(val)


def diag(val: torch.Tensor, shape: Sequence[int] | None = None) -> SparseMatrix:
    """Return the matrix with the given diagonal, (min(L, N),) or (min(L, N), D).

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> dglsp.diag(torch.tensor([1.0, 2.0]), shape=(2, 3)).to_dense()
    tensor([[1., 0., 0.],
            [0., 2., 0.]])
    """
    if not isinstance(val, torch.Tensor) or val.dim() not in (1, 2):
        what = tuple(val.shape) if isinstance(val, torch.Tensor) else type(val).__name__
        raise BadArgument(f"the values of a diagonal are a vector or one row each; found {what}")
    shape = (len(val), len(val)) if shape is None else shape
    if len(val) != min(shape):
        raise BadArgument(
            f"found {len(val)} values for the diagonal of a matrix of shape {tuple(shape)}, which "
            f"has {min(shape)}"
        )
    place = torch.arange(len(val), device=val.device)
    return SparseMatrix(Relation.from_edges(place, place, shape[1], shape[0]), val, True)


def identity(
    shape: Sequence[int], d: int | None = None, dtype: Any = None, device: Any = None
) -> SparseMatrix:
    """Return the identity matrix of a shape; with ``d``, each element is a vector of d ones."""
    size = (min(shape),) if d is None else (min(shape), d)
    return diag(torch.ones(size, dtype=dtype, device=device), shape)


def from_torch_sparse(torch_sparse_tensor: torch.Tensor) -> SparseMatrix:
    """Convert a sparse tensor of torch, of layout COO, CSR or CSC."""
    x, shape = torch_sparse_tensor, tuple(torch_sparse_tensor.shape[:2])
    if x.layout == torch.sparse_csr:
        return from_csr(x.crow_indices(), x.col_indices(), x.values(), shape)
    if x.layout == torch.sparse_csc:
        return from_csc(x.ccol_indices(), x.row_indices(), x.values(), shape)
    if x.layout != torch.sparse_coo:
        raise BadArgument(f"expected a sparse tensor (COO, CSR or CSC); found {x.layout}")
    x = x.coalesce()
    return spmatrix(x.indices(), x.values(), shape)


def to_torch_sparse_coo(spmat: SparseMatrix) -> torch.Tensor:
    """Convert to a sparse tensor of torch, of layout COO."""
    return torch.sparse_coo_tensor(spmat.indices(), spmat.val, _whole_shape(spmat))


def to_torch_sparse_csr(spmat: SparseMatrix) -> torch.Tensor:
    """Convert to a sparse tensor of torch, of layout CSR."""
    indptr, indices, values = spmat.csr()
    return torch.sparse_csr_tensor(indptr, indices, spmat.val[values], _whole_shape(spmat))


def to_torch_sparse_csc(spmat: SparseMatrix) -> torch.Tensor:
    """Convert to a sparse tensor of torch, of layout CSC."""
    indptr, indices, values = spmat.csc()
    return torch.sparse_csc_tensor(indptr, indices, spmat.val[values], _whole_shape(spmat))


def _whole_shape(spmat: SparseMatrix) -> tuple[int, ...]:
    return (*spmat.shape, *spmat.val.shape[1:])
