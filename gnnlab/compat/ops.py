"""``dgl.ops``: the operators of gnnlab, and products with one matrix for each group of rows."""

from __future__ import annotations

import sys

import torch

from gnnlab.compat import lazy
from gnnlab.errors import InvalidInput
from gnnlab.graph.ids import as_integers
from gnnlab.graph.relation import check_ids
from gnnlab.nn.utils import check_dtype, check_size
from gnnlab.ops import segment_reduce


def segment_mm(a: torch.Tensor, b: torch.Tensor, seglen_a: torch.Tensor) -> torch.Tensor:
    """Multiply each run of rows of ``a`` (N, I) with a matrix of its own, of ``b`` (R, I, O).

    ``seglen_a`` (R,) has the lengths of the runs, which add up to N. Returns (N, O).

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> b = torch.tensor([[[1.0]], [[10.0]]])
    >>> dgl.ops.segment_mm(torch.ones(3, 1), b, torch.tensor([1, 2])).flatten()
    tensor([ 1., 10., 10.])
    """
    lengths = as_integers(seglen_a, "seglen_a").tolist()
    check_size(a, b.shape[1], "a")
    check_dtype(a, b.dtype, "a")
    if sum(lengths) != len(a) or len(lengths) != len(b):
        raise InvalidInput(
            f"found {len(lengths)} runs of {sum(lengths)} rows for {len(b)} matrices and {len(a)} "
            "rows; give one length for each matrix, which together cover all rows"
        )
    return torch.cat([part @ matrix for part, matrix in zip(a.split(lengths), b, strict=True)])


def gather_mm(a: torch.Tensor, b: torch.Tensor, *, idx_b: torch.Tensor) -> torch.Tensor:
    """Multiply each row i of ``a`` (N, I) with ``b[idx_b[i]]``, of shape (I, O); return (N, O)."""
    which = as_integers(idx_b, "idx_b, the types of the rows,").long()
    if which.shape != a.shape[:1]:
        raise InvalidInput(
            f"idx_b has one type per row of a; found shapes {tuple(which.shape)}, {tuple(a.shape)}"
        )
    check_ids(which, len(b), "type")
    order = torch.argsort(which, stable=True)
    found = segment_mm(a[order], b, torch.bincount(which, minlength=len(b)))
    return torch.empty_like(found).index_copy(0, order, found)


def segment_softmax(seglen: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Softmax over each run of rows of ``value`` (N, …); ``seglen`` has the lengths of the runs."""
    top = torch.repeat_interleave(segment_reduce(seglen, value.detach(), "max"), seglen, 0)
    powers = (value - top).exp()
    return powers / torch.repeat_interleave(segment_reduce(seglen, powers), seglen, 0)


_FUNCTIONS = {"edge_softmax"}  # with the name of a module
__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.ops")
sys.modules[__name__].__class__ = lazy.Face
