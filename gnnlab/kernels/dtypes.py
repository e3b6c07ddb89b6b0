"""dtypes of IDs and of features. Imports no numba, so that it loads quickly.

IDs are int32 if they fit, else int64. A feature has one of :data:`DTYPES`: those that torch can
index on a CPU. They are the same in files, in messages, on servers and in caches.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.errors import InvalidInput

_MOST = np.iinfo(np.int32).max
_NAMES = (
    "float64 float32 float16 bfloat16 bool uint8 int64 int32 int16 int8 uint64 uint32 uint16 "
    "complex128 complex64 complex32 "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES.split()}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
NUMPY_DTYPES = {  # numpy's own, otherwise integers of the same width
    dtype: np.dtype(name if hasattr(np, name) else f"i{dtype.itemsize}")
    for name, dtype in DTYPES.items()
}


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype in messages and files, such as ``float32``."""
    return str(dtype).removeprefix("torch.")


def read_dtype(name: str) -> torch.dtype:
    """Return the dtype of a name; raises InvalidInput if features cannot have it."""
    check_stored(DTYPES.get(name, name))
    return DTYPES[name]


def check_stored(dtype: torch.dtype | str, what: str = "a feature") -> None:
    """Raise InvalidInput if ``what``, of this dtype, can neither be stored nor sent."""
    if dtype not in NUMPY_DTYPES:
        raise InvalidInput(
            f"{what} cannot hold {dtype}: it can neither be stored nor sent; convert it, a "
            f"quantized tensor with .dequantize(). Possible are {', '.join(DTYPES)}"
        )


def numpy_dtype(dtype: torch.dtype) -> np.dtype:
    """Return numpy's dtype; of one that numpy lacks, that of integers of the same width."""
    check_stored(dtype)
    return NUMPY_DTYPES[dtype]


def numpy_view(values: torch.Tensor) -> torch.Tensor:
    """View values whose dtype numpy lacks as integers of the same width."""
    return values.view(DTYPES[numpy_dtype(values.dtype).name])


def ids_dtype(bound: int) -> type[np.signedinteger]:
    """Return numpy's int32 when all of ``range(bound)`` fits in it, else int64."""
    return np.int32 if bound <= _MOST else np.int64


def torch_ids_dtype(bound: int) -> torch.dtype:
    """Return torch's int32 when all of ``range(bound)`` fits in it, else int64."""
    return torch.int32 if ids_dtype(bound) is np.int32 else torch.int64
