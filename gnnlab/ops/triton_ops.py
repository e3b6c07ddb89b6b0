"""The operators on a GPU for which Triton compiles: nothing of the size edges × width is stored."""

from __future__ import annotations

import torch

from gnnlab.kernels import segment_triton
from gnnlab.ops.groups import Groups, NodeGroups


def weighted_sum(
    groups: NodeGroups, x: torch.Tensor, weights: torch.Tensor | None, norm: str | None
) -> torch.Tensor:
    """Sum the rows of x at the other ends of each node's edges, see :mod:`gnnlab.ops.autograd`."""
    other = groups.flipped()
    return segment_triton.weighted_sum(
        groups.indptr,
        groups.neighbors,
        x.contiguous(),
        None if weights is None else weights.contiguous(),
        None if weights is None else groups.rows,
        norm == groups.end,
        other.indptr if norm == other.end else None,
    )


def row_sum(groups: Groups, x: torch.Tensor, mean: bool) -> torch.Tensor:
    """Sum (or average) the rows of each group; x has shape (size, D)."""
    return segment_triton.weighted_sum(groups.indptr, groups.rows, x.contiguous(), mean=mean)


def extreme(
    groups: Groups, x: torch.Tensor, by_neighbor: bool, smallest: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the extreme of each group and the row of x that has it (``len(x)`` if empty)."""
    rows = groups.neighbors if by_neighbor else groups.rows  # type: ignore[attr-defined]
    return segment_triton.extreme(groups.indptr, rows, x.contiguous(), smallest)


def dot(src: torch.Tensor, dst: torch.Tensor, lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Inner products of ``lhs[src]`` and ``rhs[dst]``: shapes (N, H, D) → (E, H)."""
    return segment_triton.dot(src, dst, lhs.contiguous(), rhs.contiguous())


def softmax(groups: Groups, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the rows of each group; scores have shape (size, H)."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    top = extreme(groups, scores, False, False)[0]
    out = (scores - top.index_select(0, groups.index)).exp_()
    return out.div_(row_sum(groups, out, False).index_select(0, groups.index))


def softmax_grad(groups: Groups, out: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Gradient of :func:`softmax` with respect to the scores."""
    out = out.to(torch.promote_types(out.dtype, torch.float32))
    weighted = out * grad
    total = row_sum(groups, weighted, False).index_select(0, groups.index)
    return weighted.sub_(total.mul_(out))
