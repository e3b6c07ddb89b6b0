"""``dgl.backend``: DGL's names for functions of torch, its only backend here.

Names that are not defined here are torch's: ``F.int64``, ``F.stack``, ``F.exp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnlab.compat import lazy

backend_name = "pytorch"
data_type_dict = {
    name: getattr(torch, name)
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
} | {"bool": torch.bool, "bfloat16": torch.bfloat16}
reverse_data_type_dict = {dtype: name for name, dtype in data_type_dict.items()}


def cpu() -> torch.device:
    """Return the device of main memory."""
    return torch.device("cpu")


def tensor(data: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of numbers, lists, arrays or tensors."""
    return torch.as_tensor(data, dtype=dtype)


def context(input: Tensor) -> torch.device:
    """Return the device of a tensor."""
    return input.device


def device_type(ctx: Any) -> str:
    """Return the type of a device: "cpu" or "cuda"."""
    return torch.device(ctx).type


def dtype(input: Tensor) -> torch.dtype:
    """Return the dtype of a tensor."""
    return input.dtype


def shape(input: Tensor) -> torch.Size:
    """Return the shape of a tensor."""
    return input.shape


def ndim(input: Tensor) -> int:
    """Return the number of dimensions."""
    return input.dim()


def astype(input: Tensor, ty: torch.dtype) -> Tensor:
    """Return a tensor of another dtype."""
    return input.type(ty)


def as_scalar(data: Tensor) -> Any:
    """Return the number that a tensor of one element holds."""
    return data.item()


def asnumpy(input: Tensor) -> np.ndarray:
    """Return an array in main memory, without gradients."""
    return input.detach().cpu().numpy()


zerocopy_to_numpy = asnumpy
zerocopy_from_numpy = torch.as_tensor


def copy_to(input: Tensor, ctx: Any, **kwargs: Any) -> Tensor:
    """Return a tensor on a device."""
    return input.to(ctx, **kwargs)


def sum(input: Tensor, dim: int, keepdims: bool = False) -> Tensor:
    """Sum over a dimension."""
    return torch.sum(input, dim=dim, keepdim=keepdims)


def mean(input: Tensor, dim: int) -> Tensor:
    """Mean over a dimension."""
    return torch.mean(input, dim=dim)


def max(input: Tensor, dim: int) -> Tensor:
    """Maximum over a dimension."""
    return torch.amax(input, dim=dim)


def min(input: Tensor, dim: int) -> Tensor:
    """Minimum over a dimension."""
    return torch.amin(input, dim=dim)


def reduce_sum(input: Tensor) -> Tensor:
    """Sum of all elements."""
    return input.sum()


def gather_row(data: Tensor, row_index: Tensor) -> Tensor:
    """Return some rows."""
    return torch.index_select(data, 0, row_index.long())


def scatter_row(data: Tensor, row_index: Tensor, value: Tensor) -> Tensor:
    """Return a copy with some rows replaced."""
    return data.index_copy(0, row_index.long(), value)


def scatter_row_inplace(data: Tensor, row_index: Tensor, value: Tensor) -> None:
    """Replace some rows."""
    data[row_index.long()] = value


def boolean_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return the rows for which a mask is true."""
    return input[mask.bool()]


def nonzero_1d(input: Tensor) -> Tensor:
    """Return the places of elements other than 0, shape (K,)."""
    return input.nonzero().flatten()


def sort_1d(input: Tensor) -> tuple[Tensor, Tensor]:
    """Return the elements in ascending order, and their places."""
    return torch.sort(input)


def arange(start: int, stop: int, dtype: torch.dtype = torch.int64, ctx: Any = None) -> Tensor:
    """Return the integers from start to stop − 1."""
    return torch.arange(start, stop, dtype=dtype, device=ctx)


def zeros(shape: Sequence[int], dtype: torch.dtype, ctx: Any = None) -> Tensor:
    """Return zeros."""
    return torch.zeros(shape, dtype=dtype, device=ctx)


def ones(shape: Sequence[int], dtype: torch.dtype, ctx: Any = None) -> Tensor:
    """Return ones."""
    return torch.ones(shape, dtype=dtype, device=ctx)


def full_1d(length: int, fill_value: Any, dtype: torch.dtype, ctx: Any = None) -> Tensor:
    """Return a tensor of shape (length,) with one value."""
    return torch.full((length,), fill_value, dtype=dtype, device=ctx)


def array_equal(a: Tensor, b: Tensor) -> bool:
    """Whether shapes and elements are equal."""
    return torch.equal(a.cpu(), b.cpu())


def attach_grad(x: Tensor) -> Tensor:
    """Let a tensor collect gradients, beginning with none; return it."""
    x.grad = None
    return x if x.grad_fn is not None else x.requires_grad_()


def backward(x: Tensor, head_gradient: Tensor | None = None) -> None:
    """Compute gradients of a tensor with respect to what it was computed from."""
    if head_gradient is not None and head_gradient.shape[:1] == (1,) and x.dim() == 0:
        head_gradient = head_gradient[0]
    x.backward(head_gradient)


def grad(x: Tensor) -> Tensor | None:
    """Return the gradient that a tensor has collected."""
    return x.grad


record_grad = torch.enable_grad
__getattr__, __dir__ = lazy.attributes(__name__, "torch")
