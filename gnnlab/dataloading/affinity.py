"""Which cores a loader's workers and the training process run on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from gnnlab.errors import InvalidInput


def choose_cores(
    num_workers: int,
    allowed: Sequence[int],
    loader_cores: Sequence[int] | None,
    compute_cores: Sequence[int] | None,
) -> tuple[list[int], list[int]]:
    """Choose a core for each worker, and the cores of the training process, of those allowed."""
    if num_workers < 1:
        raise InvalidInput(
            "enable_cpu_affinity places worker processes on cores, and this loader has none; give "
            "the loader num_workers=1 or more, or leave the call out"
        )
    taken = set(compute_cores or ())
    workers = [core for core in allowed if core not in taken][:num_workers]
    workers = workers if loader_cores is None else list(loader_cores)
    compute = [core for core in allowed if core not in workers]
    compute = compute if compute_cores is None else list(compute_cores)
    if len(workers) != num_workers or not compute:
        raise InvalidInput(
            f"{num_workers} workers need a core each, and the training process at least one more; "
            f"there are the cores {list(allowed)}; found loader_cores={workers}, "
            f"compute_cores={compute}. Take fewer workers"
        )
    if strange := sorted({*workers, *compute} - set(allowed)):
        raise InvalidInput(f"this process may use the cores {list(allowed)}; found {strange}")
    return workers, compute


def pin_worker(worker: int, cores: Sequence[int], also: Any = None) -> None:
    """Move a worker process to its core; then call the user's ``worker_init_fn``."""
    os.sched_setaffinity(0, [cores[worker]])
    if also is not None:
        also(worker)


@contextmanager
def compute_on(cores: Sequence[int]) -> Iterator[None]:
    """Run all threads of this process on some cores, as many of torch's as there are cores."""
    before = {}
    for thread in _threads():
        with suppress(ProcessLookupError):  # it has ended
            before[thread] = os.sched_getaffinity(thread)
    here, count = os.sched_getaffinity(0), torch.get_num_threads()
    for thread in before:
        _move(thread, cores)
    torch.set_num_threads(len(cores))
    try:
        yield
    finally:
        torch.set_num_threads(count)
        for thread in _threads():
            _move(thread, before.get(thread, here))


def _threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]


def _move(thread: int, cores: Any) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.sched_setaffinity(thread, cores)


def can_pin() -> bool:
    """Whether this system lets a process choose its cores; warn if not."""
    if hasattr(os, "sched_setaffinity") and os.path.isdir("/proc/self/task"):
        return True
    warnings.warn("this system does not let a process choose its cores: no effect", stacklevel=4)
    return False
