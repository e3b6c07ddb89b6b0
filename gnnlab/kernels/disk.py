"""Rows of mapped files that are larger than memory.

A read of a mapped file that is not in memory waits for the disk, one page after the other, and the
system then reads 128 KiB around it, in the belief that the neighbors are wanted. For rows at random
places both are wrong. So a file is marked as read at random, and before rows are copied, the system
is told about them: it then reads just their pages, many at a time.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

import numpy as np
import torch

from gnnlab.kernels import gather, owners, threads

_PAGE = mmap.PAGESIZE
_GRAIN = 1024  # ranges that one thread asks for at a time
_GAP = 3  # pages between two ranges: reading them takes less than a request of its own
_AHEAD = 4096  # rows that are read while as many are copied: few enough to stay until then


def read_at_random(tensor: torch.Tensor) -> None:
    """Tell the system that rows of a mapped tensor are read at random places."""
    if sys.platform == "linux" and tensor.nbytes:
        begin = tensor.data_ptr() // _PAGE * _PAGE
        end = tensor.data_ptr() + tensor.nbytes
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_RANDOM
        )


def copy_rows(tensor: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return ``tensor[rows]`` of a mapped tensor, contiguous, for rows in range.

    The next rows are read while some are copied.
    """
    out = gather.empty((len(rows), *tensor.shape[1:]), tensor.dtype)
    ordered, order = torch.sort(rows)
    for at in range(-_AHEAD, len(rows), _AHEAD):
        coming = ordered[at + _AHEAD : at + 2 * _AHEAD].numpy()
        will_need(tensor, coming, coming + 1)
        if at >= 0:
            some = slice(at, at + _AHEAD)
            owners.copy_rows(tensor, ordered[some], out, order[some])
    return out


def will_need(tensor: torch.Tensor, first: np.ndarray, end: np.ndarray) -> None:
    """Have the pages of ranges of rows read, ``first[i]`` to ``end[i]``, ascending."""
    if sys.platform != "linux" or not len(first) or not tensor.nbytes:
        return
    width = tensor.nbytes // len(tensor)
    base = tensor.data_ptr()
    begin = (base + first.astype(np.int64) * width) // _PAGE
    stop = (base + end.astype(np.int64) * width + _PAGE - 1) // _PAGE
    ask = _compiled()
    threads.run_chunks(lambda lo, hi: ask(begin[lo:hi], stop[lo:hi]), len(begin), _GRAIN)


@cache
def _compiled() -> Any:
    """Compile the loop: not kept on disk, as the address of the system's function changes."""
    import numba

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    will, page, gap = int(mmap.MADV_WILLNEED), _PAGE, _GAP

    @numba.njit(nogil=True)
    def ask(begin, stop):  # type: ignore[no-untyped-def]
        i = 0
        while i < len(begin):
            first, end = begin[i], stop[i]
            i += 1
            while i < len(begin) and begin[i] <= end + gap:  # a run of pages is one request
                end = max(end, stop[i])
                i += 1
            madvise(first * page, (end - first) * page, will)

    return ask
