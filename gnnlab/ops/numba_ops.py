"""The operators on the CPU, for float32 and float64, by compiled kernels."""

from __future__ import annotations

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.ops.groups import Groups, NodeGroups
from gnnlab.ops.torch_ops import column


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def weighted_sum(
    groups: NodeGroups, x: torch.Tensor, weights: torch.Tensor | None, norm: str | None
) -> torch.Tensor:
    """Sum the rows of x at the other ends of each node's edges, see :mod:`gnnlab.ops.autograd`."""
    if x.dim() == 3 and x.shape[1] == 1 and weights is not None:
        return weighted_sum(groups, x.squeeze(1), weights.squeeze(1), norm).unsqueeze(1)
    mean = norm == groups.end
    order = groups.order if weights is not None else None
    if norm is not None and not mean:
        inverse = groups.flipped().inverse_sizes(x.dtype)
        if weights is None:
            # Divide once per node at the other end; the result is a weight like any other.
            weights, order = inverse.squeeze(1), groups.neighbors
        else:
            x = x * column(inverse, x)
    out = kernels.spmm.weighted_sum(
        groups.indptr.numpy(),
        groups.neighbors.numpy(),
        _array(x),
        None if weights is None else _array(weights),
        None if order is None else order.numpy(),
        mean,
    )
    return torch.from_numpy(out)


def row_sum(groups: Groups, x: torch.Tensor, mean: bool) -> torch.Tensor:
    """Sum (or average) the rows of each group; x has shape (size, D)."""
    order = groups.order.numpy()
    out = kernels.spmm.weighted_sum(groups.indptr.numpy(), order, _array(x), mean=mean)
    return torch.from_numpy(out)


def extreme(
    groups: Groups, x: torch.Tensor, by_neighbor: bool, smallest: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the extreme of each group and the row of x that has it (``len(x)`` if empty)."""
    rows = groups.neighbors if by_neighbor else groups.order  # type: ignore[attr-defined]
    out, winner = kernels.spmm.extreme(groups.indptr.numpy(), rows.numpy(), _array(x), smallest)
    return torch.from_numpy(out), torch.from_numpy(winner)


def dot(src: torch.Tensor, dst: torch.Tensor, lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Inner products of ``lhs[src]`` and ``rhs[dst]``: shapes (N, H, D) → (E, H)."""
    return torch.from_numpy(kernels.sddmm.dot(src.numpy(), dst.numpy(), _array(lhs), _array(rhs)))


def softmax(groups: Groups, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the rows of each group; scores have shape (size, H)."""
    indptr, order = groups.indptr.numpy(), groups.order.numpy()
    return torch.from_numpy(kernels.softmax.softmax(indptr, order, _array(scores)))


def softmax_grad(groups: Groups, out: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """Gradient of :func:`softmax` with respect to the scores."""
    indptr, order = groups.indptr.numpy(), groups.order.numpy()
    return torch.from_numpy(kernels.softmax.softmax_grad(indptr, order, _array(out), _array(grad)))
