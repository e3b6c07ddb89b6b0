"""The operators by torch operators: for GPUs without Triton, and everywhere for integers.

No operator synchronizes with the host: sizes come from the graph, never from values. Messages are
materialized, then scattered to their groups. GPUs add in no fixed order, so sums vary by rounding.
"""

from __future__ import annotations

import torch

from gnnlab.ops.groups import Groups, NodeGroups


def weighted_sum(
    groups: NodeGroups, x: torch.Tensor, weights: torch.Tensor | None, norm: str | None
) -> torch.Tensor:
    """Sum the rows of x at the other ends of each node's edges, see :mod:`gnnlab.ops.autograd`."""
    other = groups.flipped()
    if norm == other.end:
        x = x * column(other.inverse_sizes(x.dtype), x)
    messages = x.index_select(0, other.index)
    if weights is not None:
        messages = messages * column(weights, messages)
    return row_sum(groups, messages, norm == groups.end)


def row_sum(groups: Groups, x: torch.Tensor, mean: bool) -> torch.Tensor:
    """Sum (or average) the rows of each group."""
    out = x.new_zeros((groups.count, *x.shape[1:])).index_add_(0, groups.index, x)
    return out * column(groups.inverse_sizes(x.dtype), out) if mean else out


def extreme(
    groups: Groups, x: torch.Tensor, by_neighbor: bool, smallest: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the extreme of each group and the row of x that has it (``len(x)`` if empty).

    Of several edges with the extreme value, the first one wins.
    """
    others = groups.flipped().index.long() if isinstance(groups, NodeGroups) else None
    rows = x.index_select(0, others) if by_neighbor and others is not None else x
    index = groups.index.long().unsqueeze(1).expand_as(rows)
    shape = (groups.count, x.shape[1])
    best = x.new_zeros(shape).scatter_reduce_(
        0, index, rows, "amin" if smallest else "amax", include_self=False
    )
    # amax and amin propagate NaN, which is not equal to itself.
    wins = (rows == best.gather(0, index)) | (rows != rows)
    edges = torch.arange(groups.size, device=x.device).unsqueeze(1).expand_as(rows)
    none = torch.full(shape, groups.size, dtype=torch.int64, device=x.device)
    winner = none.scatter_reduce_(0, index, edges.where(wins, groups.size), "amin")
    if by_neighbor and others is not None:
        padded = torch.cat([others, others.new_full((1,), len(x))])
        winner = padded[winner]
    return best, winner


def dot(src: torch.Tensor, dst: torch.Tensor, lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Inner products of ``lhs[src]`` and ``rhs[dst]``: shapes (N, H, D) → (E, H)."""
    return (lhs.index_select(0, src) * rhs.index_select(0, dst)).sum(-1)


def softmax(groups: Groups, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the rows of each group; scores have shape (size, H)."""
    index = groups.index.long().unsqueeze(1).expand_as(scores)
    shape = (groups.count, scores.shape[1])
    top = scores.new_zeros(shape).scatter_reduce_(0, index, scores, "amax", include_self=False)
    out = (scores - top.gather(0, index)).exp_()
    return out / scores.new_zeros(shape).index_add_(0, groups.index, out).gather(0, index)


def softmax_grad(groups: Groups, out: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Gradient of :func:`softmax` with respect to the scores."""
    weighted = out * grad
    return weighted - out * row_sum(groups, weighted, False).index_select(0, groups.index)


def column(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Append dimensions of size 1 to values until there are as many as ``like`` has."""
    missing = like.dim() - values.dim()
    return values.reshape(*values.shape, *[1] * missing) if missing else values
