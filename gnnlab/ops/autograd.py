"""Four operators and their gradients; all others are compositions of them.

=================  ===============================  ========================================
operator           computes                         its gradient
=================  ===============================  ========================================
``weighted_sum``   Σ weight · x over neighbors      ``weighted_sum`` the other way, ``dot``
``dot``            x_u · y_v for each edge          ``weighted_sum`` both ways
``gather``         the row of its end, per edge     ``row_sum``
``row_sum``        Σ of the rows of a group         ``gather``
=================  ===============================  ========================================

Each gradient is again one of the four, so gradients of any order exist. Two more operators have
gradients of their own: ``extreme``, which stores the winning rows, and ``softmax``.

Each operator has three implementations: kernels that numba compiles on the CPU, kernels that Triton
compiles on most GPUs, and torch operators, for integers and all other devices. Half precision is
computed in float32 and rounded once.
"""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch.autograd import Function

from gnnlab.kernels import gather as rows_of
from gnnlab.ops import numba_ops, torch_ops
from gnnlab.ops.groups import Groups, NodeGroups
from gnnlab.system import accelerators

_HALF = (torch.float16, torch.bfloat16)


def implementation(x: torch.Tensor) -> ModuleType:
    """Return the module whose functions compute with a tensor."""
    if not x.is_floating_point():
        return torch_ops
    return numba_ops if x.device.type == "cpu" else _gpu_ops(x.device)


@cache
def _gpu_ops(device: torch.device) -> ModuleType:
    if not accelerators.runs_triton(device):
        return torch_ops
    x = torch.zeros(1, 1, device=device)
    groups = Groups(1, 1, indptr=torch.arange(2, device=device))
    try:
        from gnnlab.ops import triton_ops

        triton_ops.row_sum(groups, x, False)
    except Exception as error:
        warnings.warn(
            f"Triton cannot compile kernels for {device}, so that aggregation takes more time and "
            f"memory. It needs a C compiler, such as gcc, and Python's header files. {error}",
            stacklevel=2,
        )
        return torch_ops
    return triton_ops


def _wide(x: Any) -> Any:
    """Convert half precision to float32, except for Triton's kernels, which do so themselves."""
    is_half = isinstance(x, torch.Tensor) and x.dtype in _HALF
    return x.float() if is_half and implementation(x) in (numba_ops, torch_ops) else x


def weighted_sum(
    groups: NodeGroups,
    x: torch.Tensor,
    weights: torch.Tensor | None = None,
    norm: str | None = None,
) -> torch.Tensor:
    """Sum the rows of x at the other ends of each node's edges; zeros for nodes without edges.

    ``x`` has shape (N, D), or (N, H, D) with weights for H heads, and ``weights`` (E,), or (E, H),
    of the same dtype. ``norm`` divides the weight of each edge by the degree of an end, "u" or "v":
    by the receiving end for a mean.
    """
    return _WeightedSum.apply(groups, x, weights, norm)  # type: ignore[no-any-return]


def row_sum(groups: Groups, x: torch.Tensor, mean: bool = False) -> torch.Tensor:
    """Sum or average the rows of each group: shape (size, D) → (count, D)."""
    return _RowSum.apply(groups, x, mean)  # type: ignore[no-any-return]


def gather(groups: Groups, x: torch.Tensor) -> torch.Tensor:
    """Return the row of x at this end of each edge: shape (N, …) → (E, …), any dtype."""
    return _Gather.apply(groups, x)  # type: ignore[no-any-return]


def dot(groups: NodeGroups, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Inner product per edge: x at the end of ``groups``, y at the other.

    Shapes (N, H, D) and (M, H, D) → (E, H).
    """
    return _Dot.apply(groups, x, y)  # type: ignore[no-any-return]


def extreme(
    groups: Groups, x: torch.Tensor, by_neighbor: bool = False, smallest: bool = False
) -> torch.Tensor:
    """Largest or smallest row of each group, elementwise: shape (size or N, D) → (count, D).

    With ``by_neighbor``, x has one row per node at the other end, else one row per edge. Empty
    groups give zero. The gradient goes to the first row that has the extreme value.
    """
    return _Extreme.apply(groups, x, by_neighbor, smallest)  # type: ignore[no-any-return]


def softmax(groups: Groups, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the rows of each group: shape (size, H) → (size, H)."""
    return _Softmax.apply(groups, scores)  # type: ignore[no-any-return]


class _WeightedSum(Function):
    @staticmethod
    def forward(ctx, groups, x, weights, norm):  # type: ignore[no-untyped-def]
        ctx.groups, ctx.norm = groups, norm
        learned = ctx.needs_input_grad[2]
        ctx.save_for_backward(x if learned else None, weights)
        out = implementation(x).weighted_sum(groups, _wide(x), _wide(weights), norm)
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, weights = ctx.saved_tensors
        groups, norm = ctx.groups, ctx.norm
        grad_x = grad_weights = None
        if ctx.needs_input_grad[1]:
            grad_x = weighted_sum(groups.flipped(), grad, weights, norm)
        if ctx.needs_input_grad[2]:
            if norm == groups.end:
                grad = _divide(groups, grad)
            elif norm is not None:
                x = _divide(groups.flipped(), x)
            heads = weights.dim() == 2
            grad_weights = dot(groups, *(t if heads else t.unsqueeze(1) for t in (grad, x)))
            grad_weights = grad_weights if heads else grad_weights.squeeze(1)
        return None, grad_x, grad_weights, None


class _RowSum(Function):
    @staticmethod
    def forward(ctx, groups, x, mean):  # type: ignore[no-untyped-def]
        ctx.groups, ctx.mean = groups, mean
        return implementation(x).row_sum(groups, _wide(x), mean).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        grad = _divide(ctx.groups, grad) if ctx.mean else grad
        return None, gather(ctx.groups, grad), None


class _Gather(Function):
    @staticmethod
    def forward(ctx, groups, x):  # type: ignore[no-untyped-def]
        ctx.groups = groups
        return rows_of.rows(x.detach(), groups.index)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        flat = grad.flatten(1) if grad.dim() > 1 else grad.unsqueeze(1)
        return None, row_sum(ctx.groups, flat).reshape(ctx.groups.count, *grad.shape[1:])


class _Dot(Function):
    @staticmethod
    def forward(ctx, groups, x, y):  # type: ignore[no-untyped-def]
        ctx.groups = groups
        ctx.save_for_backward(x, y)
        ends = groups.index, groups.flipped().index
        return implementation(x).dot(*ends, _wide(x), _wide(y)).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (x, y), groups = ctx.saved_tensors, ctx.groups
        grad_x = weighted_sum(groups, y, grad) if ctx.needs_input_grad[1] else None
        grad_y = weighted_sum(groups.flipped(), x, grad) if ctx.needs_input_grad[2] else None
        return None, grad_x, grad_y


class _Extreme(Function):
    @staticmethod
    def forward(ctx, groups, x, by_neighbor, smallest):  # type: ignore[no-untyped-def]
        out, winner = implementation(x).extreme(groups, _wide(x), by_neighbor, smallest)
        ctx.save_for_backward(winner)
        ctx.rows = len(x)
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (winner,) = ctx.saved_tensors
        # One more row, for empty groups.
        out = grad.new_zeros((ctx.rows + 1, grad.shape[1])).scatter_add_(0, winner, grad)
        return None, out[:-1], None, None


class _Softmax(Function):
    @staticmethod
    def forward(ctx, groups, scores):  # type: ignore[no-untyped-def]
        ctx.groups = groups
        out = implementation(scores).softmax(groups, _wide(scores)).to(scores.dtype)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (out,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # this gradient is differentiated, too
            each = grad * out
            return None, each - out * gather(ctx.groups, row_sum(ctx.groups, each))
        result = implementation(out).softmax_grad(ctx.groups, _wide(out), _wide(grad))
        return None, result.to(grad.dtype)


def _divide(groups: Groups, x: torch.Tensor) -> torch.Tensor:
    """Divide each row by the size of its group."""
    return x * torch_ops.column(groups.inverse_sizes(x.dtype), x)
