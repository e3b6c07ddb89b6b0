"""Rows of mapped files that are larger than memory.

A read of a mapped file that is not in memory waits for the disk, one page after the other, and the
system then reads 128 KiB around it, in the belief that the neighbors are wanted. For rows at random
places both are wrong. So a file is marked as read at random, and before rows are copied, the system
is told about all of them: it then reads just their pages, many at a time.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

import numpy as np
import torch

from gnnlab.kernels import threads

_PAGE = mmap.PAGESIZE
_GRAIN = 1024  # ranges that one thread asks for at a time


def read_at_random(tensor: torch.Tensor) -> None:
    """Tell the system that rows of a mapped tensor are read at random places."""
    if sys.platform == "linux" and tensor.nbytes:
        begin = tensor.data_ptr() // _PAGE * _PAGE
        end = tensor.data_ptr() + tensor.nbytes
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_RANDOM
        )


def will_need_rows(tensor: torch.Tensor, rows: torch.Tensor) -> None:
    """Have the pages of rows of a mapped tensor, contiguous, read, without waiting for them."""
    first = np.sort(rows.numpy())
    will_need(tensor, first, first + 1)


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
    will, page = int(mmap.MADV_WILLNEED), _PAGE

    @numba.njit(nogil=True)
    def ask(begin, stop):  # type: ignore[no-untyped-def]
        i = 0
        while i < len(begin):
            first, end = begin[i], stop[i]
            i += 1
            while i < len(begin) and begin[i] <= end:  # a run of pages is one request
                end = max(end, stop[i])
                i += 1
            madvise(first * page, (end - first) * page, will)

    return ask
