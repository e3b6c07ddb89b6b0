"""Operators on the elements: between two matrices, with a number, and with a vector.

``A + B`` and others of :class:`~gnnlab.compat.sparse.matrix.SparseMatrix` are these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import torch

from gnnlab.compat.base import BadArgument, BadType
from gnnlab.compat.sparse.elements import Elements, M, collected

_OPERATORS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.true_divide,
}


def is_scalar(x: Any) -> bool:
    """Whether ``x`` is a number, or a tensor with one."""
    return isinstance(x, Number) or (isinstance(x, torch.Tensor) and x.dim() == 0)


# ------------------------------------------------------------------------- between two matrices
def sp_add(A: M, B: M) -> M:
    """Return A + B; an element is where one of them has one.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> A = dglsp.diag(torch.tensor([1.0, 2.0]))
    >>> (A + dglsp.from_coo(torch.tensor([0]), torch.tensor([1]), shape=(2, 2))).to_dense()
    tensor([[1., 1.],
            [0., 2.]])
    """
    _check_shapes(A, B)
    if A.is_diag() and B.is_diag():
        return A.with_diag(A.val + B.val, A.shape)
    return collected(A, torch.cat([A.keys(), B.keys()]), torch.cat([A.val, B.val]))


def spsp_mul(A: M, B: M) -> M:
    """Return the product of the elements at the same place; both matrices have no duplicates."""
    _check_shapes(A, B)
    if A.is_diag() and B.is_diag():
        return A.with_diag(A.val * B.val, A.shape)
    place, at_a, at_b = _common(A, B)
    return collected(A, place, A.val[at_a] * B.val[at_b])


def spsp_div(A: M, B: M) -> M:
    """Return the quotient of the elements; both matrices have theirs at the same places."""
    _check_shapes(A, B)
    if A.is_diag() and B.is_diag():
        return A.with_diag(A.val / B.val, A.shape)
    place, at_a, at_b = _common(A, B)
    if not len(place) == A.nnz == B.nnz:
        raise BadArgument(
            f"A / B needs matrices whose elements are at the same places; {len(place)} of "
            f"{A.nnz} and {B.nnz} are"
        )
    return A.with_val(torch.empty_like(A.val).index_copy(0, at_a, A.val[at_a] / B.val[at_b]))


def _common(A: Elements, B: Elements) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the places that both have, and which element of each stands there."""
    for name, matrix in ("A", A), ("B", B):
        if matrix.has_duplicate():
            raise BadArgument(f"{name} has several elements at one place: {name}.coalesce() first")
    places, order = torch.sort(A.keys())
    wanted = B.keys()
    if not len(places):
        return wanted[:0], wanted[:0], wanted[:0]
    at = torch.searchsorted(places, wanted).clamp_max(len(places) - 1)
    found = (places[at] == wanted).nonzero().flatten()
    return wanted[found], order[at[found]], found


def _check_shapes(A: Any, B: Any) -> None:
    for each in A, B:
        if not isinstance(each, Elements):
            raise BadType(f"expected two matrices; found {_kind(each)}")
    if A.shape != B.shape or A.val.shape[1:] != B.val.shape[1:]:
        raise BadArgument(
            f"expected matrices of one shape; found {A.shape} with elements of shape "
            f"{tuple(A.val.shape[1:])}, and {B.shape} with {tuple(B.val.shape[1:])}"
        )


# ------------------------------------------------------------------------------ with a number
def sp_sub(A: M, B: Any) -> M:
    """Return ``A - B`` of two matrices."""
    _check_shapes(A, B)
    return sp_add(A, neg(B))


def sp_mul(A: M, B: Any) -> M:
    """Return ``A * B`` with a matrix or a number."""
    return A.with_val(A.val * B) if is_scalar(B) else spsp_mul(A, B)


def sp_div(A: M, B: Any) -> M:
    """Return ``A / B`` with a matrix or a number."""
    return A.with_val(A.val / B) if is_scalar(B) and not is_scalar(A) else spsp_div(A, B)


def sp_power(A: M, scalar: Any) -> M:
    """Return the elements to a power, which is a number."""
    if not is_scalar(scalar):
        raise BadArgument(f"the power is a number; found {_kind(scalar)}")
    return A.with_val(A.val**scalar)


spsp_add = add = sp_add
sub, div, power = sp_sub, sp_div, sp_power


def mul(A: Any, B: Any) -> Any:
    """Return ``A * B``, element by element; one of them may be a number."""
    return sp_mul(B, A) if is_scalar(A) else sp_mul(A, B)


def neg(A: M) -> M:
    """Return ``-A``."""
    return A.with_val(-A.val)


def inv(A: M) -> M:
    """Return the inverse of a square diagonal matrix.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> dglsp.inv(dglsp.diag(torch.tensor([2.0, 4.0]))).val
    tensor([0.5000, 0.2500])
    """
    if not A.is_diag() or A.shape[0] != A.shape[1]:
        kind = "diagonal" if A.is_diag() else "not made by diag()"
        raise BadArgument(f"inv needs a square diagonal matrix; found {A.shape}, {kind}")
    return A.with_diag(1.0 / A.val, A.shape)


# ------------------------------------------------------------------------------ with a vector
def sp_broadcast_v(A: M, v: torch.Tensor, op: str) -> M:
    """Apply ``op`` to each element and the entry of a vector in its column, or in its row.

    ``v`` has shape (N,) or (1, N) for the columns, (L, 1) for the rows. ``op`` is "add", "sub",
    "mul" or "truediv".

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> A = dglsp.spmatrix(torch.tensor([[1, 0, 2], [0, 3, 2]]), shape=(3, 4))
    >>> dglsp.sp_add_v(A, torch.tensor([[10.0], [20.0], [30.0]])).val
    tensor([21., 11., 31.])
    """
    if op not in _OPERATORS:
        raise BadArgument(f"op is one of {', '.join(_OPERATORS)}; found {op!r}")
    shape = (1, *v.shape) if v.dim() == 1 else tuple(v.shape)
    if shape not in ((1, A.shape[1]), (A.shape[0], 1)):
        raise BadArgument(
            f"v is a vector for the {A.shape[1]} columns, or of shape ({A.shape[0]}, 1) for the "
            f"rows; found {tuple(v.shape)}"
        )
    entries = v.flatten()[A.col if shape[0] == 1 else A.row]
    if A.val.dim() > 1:
        entries = entries[:, None]
    return A.with_val(_OPERATORS[op](A.val, entries))


def _with_vector(op: str) -> Callable[[M, torch.Tensor], M]:
    def call(A: M, v: torch.Tensor) -> M:
        return sp_broadcast_v(A, v, op)

    call.__doc__ = f"Apply ``{op}`` to the elements and a vector; see :func:`sp_broadcast_v`."
    return call


sp_add_v, sp_sub_v, sp_mul_v, sp_div_v = map(_with_vector, _OPERATORS)


def _kind(x: Any) -> str:
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)
