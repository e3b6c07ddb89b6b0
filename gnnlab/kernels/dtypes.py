"""dtype of IDs: int32 if they fit, else int64. Imports no numba, so that it loads quickly."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["ids_dtype", "torch_ids_dtype"]

_MOST = np.iinfo(np.int32).max


def ids_dtype(bound: int) -> type[np.signedinteger]:
    """Return numpy's int32 when all of ``range(bound)`` fits in it, else int64."""
    return np.int32 if bound <= _MOST else np.int64


def torch_ids_dtype(bound: int) -> torch.dtype:
    """Return torch's int32 when all of ``range(bound)`` fits in it, else int64."""
    return torch.int32 if ids_dtype(bound) is np.int32 else torch.int64
