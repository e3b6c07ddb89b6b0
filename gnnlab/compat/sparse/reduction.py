"""Reductions of the elements of each row or column, and the softmax over them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gnnlab.compat.base import BadArgument
from gnnlab.compat.sparse.elements import Elements, M, check_dim
from gnnlab.graph.relation import Relation
from gnnlab.ops.edge_softmax import edge_softmax
from gnnlab.ops.spmm import spmm as reduce_edges

_KINDS = {"sum": "sum", "smax": "max", "smin": "min", "smean": "mean", "sprod": "prod"}


def reduce(input: Elements, dim: int | None = None, rtype: str = "sum") -> torch.Tensor:
    """Reduce the elements, not the zeros, of each column (``dim`` 0), each row (1), or all (None).

    ``rtype`` is "sum", "smax", "smin", "smean" or "sprod". Returns (N,), (L,) or (), with the
    dimension of vectors as elements behind; 0 for a row or column without elements.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> A = dglsp.spmatrix(torch.tensor([[0, 0, 2], [0, 1, 1]]), torch.tensor([1.0, 2.0, 5.0]))
    >>> dglsp.reduce(A, 1, "smax"), A.sum(0), A.smean()
    (tensor([2., 0., 5.]), tensor([1., 7.]), tensor(2.6667))
    """
    if rtype not in _KINDS:
        raise BadArgument(f"rtype is one of {', '.join(_KINDS)}; found {rtype!r}")
    relation = input.relation()
    if dim is None:
        everything = torch.zeros(input.nnz, dtype=torch.int64, device=input.device)
        relation = Relation.from_edges(everything, everything, 1, 1)
    elif check_dim(dim) == 0:
        relation = relation.reverse()
    if rtype == "sprod":
        found = _product(relation, input.val)
    elif rtype == "smean" and not input.val.is_floating_point():  # rounded down
        counts = relation.in_degrees().clamp_min(1).view(-1, *(1,) * (input.val.dim() - 1))
        found = reduce_edges(relation, "copy_rhs", "sum", None, input.val) // counts
    else:
        found = reduce_edges(relation, "copy_rhs", _KINDS[rtype], None, input.val)
    return found[0] if dim is None else found


def _product(relation: Relation, val: torch.Tensor) -> torch.Tensor:
    at = relation.coo()[1].long()
    index = at if val.dim() == 1 else at[:, None].expand_as(val)
    start = torch.zeros(relation.num_dst, *val.shape[1:], dtype=val.dtype, device=val.device)
    return start.scatter_reduce(0, index, val, "prod", include_self=False)


def _of_kind(rtype: str) -> Callable[..., torch.Tensor]:
    def call(input: Elements, dim: int | None = None) -> torch.Tensor:
        return reduce(input, dim, rtype)

    call.__doc__ = f"Reduce the elements by ``{rtype}``; see :func:`reduce`."
    return call


sum, smax, smin, smean, sprod = map(_of_kind, _KINDS)


def softmax(input: M, dim: int = 1) -> M:
    """Make the elements of each row (``dim`` 1) or column (0) positive, with a sum of 1.

    Examples
    --------
    >>> import gnnlab.compat.sparse as dglsp, torch
    >>> A = dglsp.spmatrix(torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([1.0, 1.0, 5.0]))
    >>> dglsp.softmax(A).val
    tensor([0.5000, 0.5000, 1.0000])
    """
    norm_by = "dst" if check_dim(dim) == 1 else "src"
    return input.with_val(edge_softmax(input, input.val, norm_by=norm_by))
