"""Copying rows that are far apart: the compiled loops of ``gather``.

A row that is not in the cache takes some 100 ns to arrive, and each does so alone if the processor
learns too late which rows come next. The loops therefore prefetch rows that they copy later.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit, prefetch, unsigned

_ROWS_AHEAD, _ITEMS_AHEAD = 8, 32
_LINE = 64  # bytes; the processor itself fetches what follows the first two lines of a row
_GRAIN = 1 << 18  # bytes


def take(values: np.ndarray, index: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write ``values[index]`` to ``out`` and return it.

    ``values`` has shape (N,) or (N, W), contiguous, ``index`` shape (K,), int32 or int64, in range
    (not checked), and ``out`` shape (K,) or (K, W), of the same dtype or a wider one.
    """
    places = unsigned(index)
    kernel = _items if values.ndim == 1 else _rows
    grain = max(_GRAIN // max(values.strides[0], 1), 1)

    def copy(lo: int, hi: int) -> None:
        kernel(values, places[lo:hi], out[lo:hi])

    threads.run_chunks(copy, len(out), grain)
    return out


@njit(nogil=True, cache=True)
def _items(values, index, out):  # type: ignore[no-untyped-def]
    last = len(index) - 1
    for i in range(len(index)):
        prefetch(values, index[min(i + _ITEMS_AHEAD, last)])
        out[i] = values[index[i]]


@njit(nogil=True, cache=True)
def _rows(values, index, out):  # type: ignore[no-untyped-def]
    width, second, last = values.shape[1], _LINE // values.itemsize, len(index) - 1
    for i in range(len(index)):
        ahead = values[index[min(i + _ROWS_AHEAD, last)]]
        prefetch(ahead, 0)
        if second < width:
            prefetch(ahead, second)
        row, to = values[index[i]], out[i]
        for j in range(width):
            to[j] = row[j]
