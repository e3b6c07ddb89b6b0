"""Rows of a feature matrix.

Gathering moves more bytes than anything else in a training loop. Page faults of newly allocated
memory can be half of its time. numpy requests huge pages and torch does not, so numpy allocates
outputs. On a CPU ``gather_numba`` copies the rows, in torch's number of threads.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.kernels.dtypes import NUMPY_DTYPES

# torch's index_select lacks these in one dimension.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_FEW = 1 << 16  # bytes, for which importing numba is not worth it


def empty(shape: Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Allocate an uninitialized CPU tensor, on huge pages if the system has them."""
    kind = NUMPY_DTYPES.get(dtype)
    if kind is None:
        return torch.empty(tuple(shape), dtype=dtype)
    values = torch.from_numpy(np.empty(tuple(shape), kind))
    return values if values.dtype is dtype else values.view(dtype)


def rows(matrix: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return ``matrix[index]``, rows along the first dimension, on the device of the matrix.

    ``matrix`` has shape (N, …), any dtype; ``index`` shape (K,), int32 or int64, on any device.
    Raises IndexError if a row does not exist.
    """
    if index.device != matrix.device:
        index = index.to(matrix.device)
    if matrix.device.type != "cpu" or matrix.requires_grad:
        return matrix[index] if matrix.dtype in _SIGNED else matrix.index_select(0, index)
    return copy_rows(matrix, index, empty((len(index), *matrix.shape[1:]), matrix.dtype))


def copy_rows(matrix: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Write ``matrix[index]`` to ``out``, of the same dtype, and return it; all on the CPU."""
    if _suits(matrix, index, out):
        source, target = (t.reshape(len(t), -1).view(torch.int32).numpy() for t in (matrix, out))
        kernels.gather_numba.take(source, index.numpy(), target)
        return out
    signed = _SIGNED.get(matrix.dtype)
    if signed is not None:
        copy_rows(matrix.view(signed), index, out.view(signed))
        return out
    return torch.index_select(matrix, 0, index, out=out)


def words(matrix: torch.Tensor) -> torch.Tensor:
    """View a contiguous matrix, (N, …), as rows of 32-bit words, or of bytes: shape (N, W)."""
    flat = matrix.flatten(1) if matrix.dim() > 1 else matrix[:, None]
    aligned = not (flat.shape[1] * flat.itemsize | matrix.data_ptr()) % 4
    return flat.view(torch.int32 if aligned else torch.uint8)


def _suits(matrix: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether rows can be copied as runs of 32-bit words, by one loop for all dtypes.

    Otherwise torch copies them, and reports rows that do not exist.
    """
    size = out.numel() * out.element_size()
    if size < _FEW or (size < 16 * _FEW and "numba" not in sys.modules):
        return False
    if not (matrix.is_contiguous() and out.is_contiguous() and index.is_contiguous()):
        return False
    if index.dtype not in (torch.int32, torch.int64):
        return False
    if size // len(out) % 4 or (matrix.data_ptr() | out.data_ptr()) % 4:
        return False
    low, high = torch.aminmax(index)
    return bool(low >= 0) and bool(high < len(matrix))
