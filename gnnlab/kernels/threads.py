"""A small thread pool for kernels that release the interpreter lock.

A compiled kernel works on a range of rows. Several ranges can be processed concurrently if no two
of them write to the same address; then the result does not depend on the number of threads. The
pool is plain Python: unlike OpenMP it works after a fork (the child starts a pool of its own), and
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

_CHUNKS_PER_THREAD = 8  # rows differ in cost: small chunks keep all threads busy to the end
_WORTH_A_CHUNK = 1 << 18  # elementary operations, some 100 µs: well above the cost of a dispatch

_pool: ThreadPoolExecutor | None = None
_lock = Lock()
_here = threading.local()  # .compiler: numba's lock, while this thread forks


def grain_for(size: int, cost: int) -> int:
    """Choose how many items make a chunk: ``size`` or more when the work is too small to share.

    ``cost`` is the approximate number of elementary operations for all items together.
    """
    even = -(-size // (_CHUNKS_PER_THREAD * torch.get_num_threads()))
    worthwhile = -(-size * _WORTH_A_CHUNK // max(cost, 1))
    return max(even, worthwhile, 1)


def run_chunks(work: Callable[[int, int], object], size: int, grain: int) -> None:
    """Call ``work(lo, hi)`` on ranges that together cover ``range(size)``.

    With several threads every range starts at a multiple of ``grain`` and has ``grain`` items (the
    last one fewer), in no particular order. With one thread, or if one chunk suffices, there is one
    call for the whole range, in this thread. The calling thread takes chunks, too, and returns when
    all are done; the first error is raised again. ``work`` should release the interpreter lock.
    """
    helpers = min(torch.get_num_threads(), -(-size // grain)) - 1
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
        # All chunks are taken. Cancel helpers that have not started: to await them may deadlock in
        # nested calls.
        started = [future for future in futures if not future.cancel()]
        errors = [future.exception() for future in started]
    for error in errors:
        if error is not None:
            raise error


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            # The executor starts its threads on demand.
            _pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="gnnlab")
        return _pool


def _start_afresh() -> None:
    """Drop the pool in a forked child, which inherits its memory but not its threads."""
    global _pool
    _pool = None
    _let_compile()


def _hold_compiler() -> None:
    """Take numba's compiler lock before a fork; held by another thread, it would block a child."""
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
