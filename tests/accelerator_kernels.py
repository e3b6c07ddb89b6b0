"""What ``gnnlab.kernels.segment_triton`` does, on the pretend device: by the CPU's kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gnnlab.kernels import sddmm, spmm
from tests import accelerator


def _array(x: Tensor) -> Any:
    assert x.is_contiguous()
    return (x.float() if x.itemsize == 2 else x).numpy()


def _slots(rows: Tensor | None, count: int) -> Any:
    return (torch.arange(count) if rows is None else rows).numpy()


def _weighted_sum(
    indptr: Tensor,
    indices: Tensor | None,
    x: Tensor,
    weights: Tensor | None,
    order: Tensor | None,
    mean: bool,
    others: Tensor | None,
) -> Tensor:
    rows, values = _slots(indices, len(x)), _array(x)
    if others is not None:
        values = values / others.diff().clamp(min=1).numpy().reshape(-1, *[1] * (x.dim() - 1))
        values = values.astype(_array(x).dtype)
    weighted = () if weights is None else (_array(weights), _slots(order, len(rows)))
    out = spmm.weighted_sum(indptr.numpy(), rows, values, *weighted, mean=mean)
    return torch.from_numpy(out).to(x.dtype)


def _extreme(
    indptr: Tensor, indices: Tensor | None, x: Tensor, smallest: bool
) -> tuple[Tensor, ...]:
    found = spmm.extreme(indptr.numpy(), _slots(indices, len(x)), _array(x), smallest)
    return torch.from_numpy(found[0]).to(x.dtype), torch.from_numpy(found[1])


def _dot(src: Tensor, dst: Tensor, lhs: Tensor, rhs: Tensor) -> Tensor:
    found = sddmm.dot(src.numpy(), dst.numpy(), _array(lhs), _array(rhs))
    return torch.from_numpy(found).to(lhs.dtype)


def weighted_sum(
    indptr: Tensor,
    indices: Tensor | None,
    x: Tensor,
    weights: Tensor | None = None,
    order: Tensor | None = None,
    mean: bool = False,
    others: Tensor | None = None,
) -> Any:
    return accelerator.launch(_weighted_sum, indptr, indices, x, weights, order, mean, others)


def extreme(indptr: Tensor, indices: Tensor | None, x: Tensor, smallest: bool = False) -> Any:
    return accelerator.launch(_extreme, indptr, indices, x, smallest)


def dot(src: Tensor, dst: Tensor, lhs: Tensor, rhs: Tensor) -> Any:
    return accelerator.launch(_dot, src, dst, lhs, rhs)
