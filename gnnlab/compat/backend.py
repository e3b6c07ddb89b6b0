"""``dgl.backend``: DGL's names for functions of torch, its only backend here.

Names that are not defined here are torch's: ``F.int64``, ``F.stack``, ``F.exp``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gnnlab.compat import lazy

backend_name = "pytorch"
data_type_dict = {
    name: getattr(torch, name)
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
} | {"bool": torch.bool, "bfloat16": torch.bfloat16}
reverse_data_type_dict = {dtype: name for name, dtype in data_type_dict.items()}
zerocopy_from_numpy = torch.as_tensor
record_grad = torch.enable_grad

_IN_TORCH: dict[str, Any] = {
    "cpu": lambda: torch.device("cpu"),
    "tensor": lambda data, dtype=None: torch.as_tensor(data, dtype=dtype),
    "context": lambda input: input.device,
    "device_type": lambda ctx: torch.device(ctx).type,
    "dtype": lambda input: input.dtype,
    "shape": lambda input: input.shape,
    "ndim": lambda input: input.dim(),
    "astype": lambda input, ty: input.type(ty),
    "as_scalar": lambda data: data.item(),
    "asnumpy": lambda input: input.detach().cpu().numpy(),
    "zerocopy_to_numpy": lambda input: input.detach().cpu().numpy(),
    "copy_to": lambda input, ctx, **kwargs: input.to(ctx, **kwargs),
    "sum": lambda input, dim, keepdims=False: torch.sum(input, dim=dim, keepdim=keepdims),
    "mean": lambda input, dim: torch.mean(input, dim=dim),
    "max": lambda input, dim: torch.amax(input, dim=dim),
    "min": lambda input, dim: torch.amin(input, dim=dim),
    "reduce_sum": lambda input: input.sum(),
    "gather_row": lambda data, row_index: torch.index_select(data, 0, row_index.long()),
    "scatter_row": lambda data, row_index, value: data.index_copy(0, row_index.long(), value),
    "scatter_row_inplace": lambda data, index, value: data.index_copy_(0, index.long(), value),
    "boolean_mask": lambda input, mask: input[mask.bool()],
    "nonzero_1d": lambda input: input.nonzero().flatten(),
    "sort_1d": lambda input: torch.sort(input),
    "arange": lambda start, stop, dtype=torch.int64, ctx=None: torch.arange(
        start, stop, dtype=dtype, device=ctx
    ),
    "zeros": lambda shape, dtype, ctx=None: torch.zeros(shape, dtype=dtype, device=ctx),
    "ones": lambda shape, dtype, ctx=None: torch.ones(shape, dtype=dtype, device=ctx),
    "full_1d": lambda length, fill_value, dtype, ctx=None: torch.full(
        (length,), fill_value, dtype=dtype, device=ctx
    ),
    "repeat": lambda input, repeats, dim: torch.repeat_interleave(input, repeats, dim),
    "uniform": lambda shape, dtype, ctx, low, high: torch.empty(
        shape, dtype=dtype, device=ctx
    ).uniform_(low, high),
    "array_equal": lambda a, b: torch.equal(a.cpu(), b.cpu()),
    "grad": lambda x: x.grad,
}
globals().update(_IN_TORCH)


def attach_grad(x: Tensor) -> Tensor:
    """Let a tensor collect gradients, beginning with none; return it."""
    x.grad = None
    return x if x.grad_fn is not None else x.requires_grad_()


def backward(x: Tensor, head_gradient: Tensor | None = None) -> None:
    """Compute gradients of a tensor with respect to what it was computed from."""
    if head_gradient is not None and head_gradient.shape[:1] == (1,) and x.dim() == 0:
        head_gradient = head_gradient[0]
    x.backward(head_gradient)


__getattr__, __dir__ = lazy.attributes(__name__, "torch")
