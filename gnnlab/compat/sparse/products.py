"""Products of matrices: sparse with dense, sparse with sparse, and dense with dense at elements."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.compat.base import BadArgument
from gnnlab.compat.sparse.elements import Elements, M, collected
from gnnlab.ops.sddmm import sddmm as dot_edges
from gnnlab.ops.spmm import spmm as reduce_edges


def spmm(A: Elements, X: torch.Tensor) -> torch.Tensor:
    """Multiply a sparse matrix (L, M) with a dense matrix (M, N) or vector (M,)."""
    _check(A, 1)
    _check_dense("X", X, (1, 2), 0, A.shape[1])
    weights = A.val if X.dim() == 1 else A.val[:, None]
    return reduce_edges(A.relation(), "mul", "sum", X, weights)


def bspmm(A: Elements, X: torch.Tensor) -> torch.Tensor:
    """Multiply K sparse matrices, (L, M) with elements (K,), with K dense ones, (M, N, K).

    Returns (L, N, K).
    """
    _check(A, 2)
    _check_dense("X", X, (3,), 0, A.shape[1])
    _check_dense("X", X, (3,), 2, A.val.shape[1])
    heads = X.transpose(1, 2)  # (M, K, N): one weight of an edge for each row of a head
    return reduce_edges(A.relation(), "mul", "sum", heads, A.val[:, :, None]).transpose(1, 2)


def spspmm(A: M, B: M) -> M:
    """Multiply two sparse matrices, (L, M) and (M, N), whose elements are numbers."""
    _check(A, 1)
    _check(B, 1)
    if A.shape[1] != B.shape[0]:
        raise BadArgument(f"expected shapes (L, M) and (M, N); found {A.shape} and {B.shape}")
    shape = A.shape[0], B.shape[1]
    if A.is_diag() and B.is_diag():
        common = min(len(A.val), len(B.val))
        rest = torch.zeros(min(shape) - common, dtype=A.dtype, device=A.device)
        return A.with_diag(torch.cat([A.val[:common] * B.val[:common], rest]), shape)
    if A.is_diag() and A.shape[0] == A.shape[1]:
        return B.with_val(A.val[B.row] * B.val)
    if B.is_diag() and B.shape[0] == B.shape[1]:
        return A.with_val(A.val * B.val[A.col])
    met = B.index_select(0, A.col)  # each element (i, k) of A meets all elements (k, j) of B
    like = A.with_elements(A.row[:0], A.row[:0], A.val[:0], shape)
    return collected(like, A.row[met.row] * shape[1] + met.col, A.val[met.row] * met.val)


def matmul(A: Any, B: Any) -> Any:
    """Multiply two matrices, each dense or sparse; a sparse one stands first or both are sparse.

    Vectors as elements are multiplied one by one, as in :func:`bspmm`.
    """
    if isinstance(A, torch.Tensor) and isinstance(B, torch.Tensor):
        return A @ B
    if isinstance(A, Elements) and isinstance(B, Elements):
        return spspmm(A, B)
    if isinstance(A, Elements) and isinstance(B, torch.Tensor):
        return bspmm(A, B) if A.val.dim() == 2 else spmm(A, B)
    raise BadArgument(
        f"found {type(A).__name__} @ {type(B).__name__}; a sparse matrix is multiplied with a "
        "sparse or a dense one. For dense @ sparse: (A.T @ X.T).T"
    )


def sddmm(A: M, X1: torch.Tensor, X2: torch.Tensor) -> M:
    """Multiply dense (L, M) and (M, N), at the elements of a sparse (L, N) alone, and with these.

    Vectors X1 (L,) and X2 (N,) are a column and a row.
    """
    _check(A, 1)
    if X1.dim() == 1:
        X1 = X1[:, None]
    if X2.dim() == 1:
        X2 = X2[None, :]
    _check_dense("X1", X1, (2,), 0, A.shape[0])
    _check_dense("X2", X2, (2,), 1, A.shape[1])
    _check_dense("X2", X2, (2,), 0, X1.shape[1])
    return A.with_val(dot_edges(A.relation(), "dot", X2.T, X1)[:, 0] * A.val)


def bsddmm(A: M, X1: torch.Tensor, X2: torch.Tensor) -> M:
    """Multiply K pairs of dense matrices, (L, M, K) and (M, N, K), at the elements of A (L, N).

    The elements of the result are vectors (K,).
    """
    _check(A, 1, 2)
    _check_dense("X1", X1, (3,), 0, A.shape[0])
    _check_dense("X2", X2, (3,), 1, A.shape[1])
    _check_dense("X2", X2, (3,), 0, X1.shape[1])
    _check_dense("X2", X2, (3,), 2, X1.shape[2])
    rows, cols = X1.transpose(1, 2), X2.permute(1, 2, 0)  # (L, K, M) and (N, K, M)
    found = dot_edges(A.relation(), "dot", cols, rows)[:, :, 0]
    return A.with_val(found * (A.val if A.val.dim() == 2 else A.val[:, None]))


def _check(A: Any, *dims: int) -> None:
    if not isinstance(A, Elements):
        raise BadArgument(f"expected a SparseMatrix; found {type(A).__name__}")
    if A.val.dim() not in dims:
        wanted = " or ".join({1: "numbers", 2: "vectors"}[dim] for dim in dims)
        raise BadArgument(
            f"the elements must be {wanted}; found values of shape {tuple(A.val.shape)}"
        )


def _check_dense(name: str, X: Any, dims: tuple[int, ...], dim: int, size: int) -> None:
    if not isinstance(X, torch.Tensor) or X.dim() not in dims or X.shape[dim] != size:
        what = tuple(X.shape) if isinstance(X, torch.Tensor) else type(X).__name__
        raise BadArgument(
            f"{name} is a tensor of {' or '.join(map(str, dims))} dimensions whose dimension {dim} "
            f"has size {size}; found {what}"
        )
