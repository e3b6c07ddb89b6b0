"""A small pool of threads for kernels that let go of the interpreter lock.

A compiled kernel works on a range of rows. Several ranges can be worked on at once, provided that
no two of them write to the same place; then the result cannot depend on how many threads there are.
The pool is plain Python: unlike OpenMP it survives a fork (the child starts a pool of its own), and
several callers, for example a training loop and a prefetcher, may use it at the same time.

The number of threads is torch's: ``torch.set_num_threads`` governs gnnlab as well.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from gnnlab.helpers.fork import Lock

__all__ = ["grain_for", "num_threads", "run_chunks"]

_CHUNKS_PER_THREAD = 8  # rows differ in cost: small chunks keep all threads busy to the end
_WORTH_A_CHUNK = 1 << 18  # elementary operations, some 100 µs: well above the cost of a handover

_pool: ThreadPoolExecutor | None = None
_lock = Lock()
_here = threading.local()  # .compiler: numba's lock, while this thread forks


def num_threads() -> int:
    """Return how many threads kernels may use: ``torch.get_num_threads()``."""
    return torch.get_num_threads()


def grain_for(size: int, cost: int) -> int:
    """Choose how many items make a chunk.

    Parameters
    ----------
    size : int
        Number of items.
    cost : int
        Elementary operations that all items take together, roughly.

    Returns
    -------
    int
        At least 1; ``size`` or more when the work is too small to share.

    Examples
    --------
    >>> from gnnlab.kernels import threads
    >>> threads.grain_for(1000, cost=1000) >= 1000
    True
    """
    even = -(-size // (_CHUNKS_PER_THREAD * num_threads()))
    worthwhile = -(-size * _WORTH_A_CHUNK // max(cost, 1))
    return max(even, worthwhile, 1)


def run_chunks(work: Callable[[int, int], object], size: int, grain: int) -> None:
    """Call ``work(lo, hi)`` on ranges that together cover ``range(size)``.

    With several threads every range starts at a multiple of ``grain`` and holds ``grain`` items
    (the last one fewer), in no particular order. With one thread, or when one chunk suffices, there
    is one call for the whole range, in this thread. The caller works too and returns when all is
    done; the first error is raised again.

    Parameters
    ----------
    work : callable
        Takes ``lo, hi``; spends its time without the interpreter lock.
    size : int
        Number of items; 0 calls nothing.
    grain : int
        Items per chunk, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.kernels import threads
    >>> squares = np.arange(6)
    >>> def square(lo, hi):
    ...     squares[lo:hi] **= 2
    >>> threads.run_chunks(square, len(squares), 2)
    >>> squares
    array([ 0,  1,  4,  9, 16, 25])
    """
    helpers = min(num_threads(), -(-size // grain)) - 1
    if helpers < 1:
        if size > 0:
            work(0, size)
        return
    waiting = deque(range(0, size, grain))

    def drain() -> None:
        while True:
            try:
                lo = waiting.popleft()
            except IndexError:
                return
            try:
                work(lo, min(lo + grain, size))
            except BaseException:
                waiting.clear()
                raise

    pool = _get_pool()
    futures = [pool.submit(drain) for _ in range(helpers)]
    try:
        drain()
    finally:
        # A helper that has not started has nothing left to do; not waiting for it means that
        # nested calls cannot block one another.
        started = [future for future in futures if not future.cancel()]
        errors = [future.exception() for future in started]
    for error in errors:
        if error is not None:
            raise error


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            # Threads start one by one, when there is work for them.
            _pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="gnnlab")
        return _pool


def _start_afresh() -> None:
    """A forked child inherits the pool's memory but not its threads."""
    global _pool
    _pool = None
    _let_compile()


def _hold_compiler() -> None:
    """Wait for a thread that compiles a kernel: its lock would never be opened in a child."""
    module = sys.modules.get("numba.core.compiler_lock")
    _here.compiler = module and module.global_compiler_lock
    if _here.compiler:
        _here.compiler.acquire()


def _let_compile() -> None:
    if _here.compiler:
        _here.compiler.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_compiler, after_in_parent=_let_compile, after_in_child=_start_afresh
    )
