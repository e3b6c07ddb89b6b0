"""Seeds and keys of the random numbers in sampling and shuffling.

Neighbor sampling is a pure function of (seed, epoch, batch, layer, node). This module keeps the
first four: a base seed, and a *stream* that identifies the epoch and batch being sampled. A loader
opens a stream for each batch; outside a loader every call of a sampling function counts as a batch
of its own, so the n-th call after :func:`seed` gives the same result on every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gnnlab.helpers.block_sampler import fold
from gnnlab.helpers.fork import Lock

__all__ = ["fold", "generator", "next_key", "seed", "stream"]

_MASK = (1 << 64) - 1
_lock = Lock()  # released in a forked child, where the thread holding it does not exist
_base = 0
_calls = 0
_local = threading.local()


def seed(value: int) -> None:
    """Set the base seed of all sampling and shuffling, and reset the count of calls.

    Parameters
    ----------
    value : int
        Any Python integer; its lowest 64 bits are used.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.rand_graph(100, 2000)
    >>> dgl.seed(7)
    >>> first = dgl.sampling.sample_neighbors(g, [3], 4).edges()[0]
    >>> dgl.seed(7)
    >>> again = dgl.sampling.sample_neighbors(g, [3], 4).edges()[0]
    >>> bool((first == again).all())
    True
    """
    global _base, _calls
    with _lock:
        _base, _calls = int(value) & _MASK, 0


def get_state() -> tuple[int, int]:
    """Return the base seed and the number of calls since it was set, for :func:`set_state`."""
    with _lock:
        return _base, _calls


def set_state(state: tuple[int, int]) -> None:
    """Restore the state that :func:`get_state` returned."""
    global _base, _calls
    with _lock:
        _base, _calls = (int(part) for part in state)


@contextmanager
def stream(*name: int) -> Iterator[None]:
    """Open a stream for the calls inside, in this thread, named usually (seed, epoch, batch).

    The k-th sampling call inside uses the k-th key of the stream, independent of earlier calls.

    Examples
    --------
    >>> from gnnlab.random import next_key, stream
    >>> with stream(0, 1, 2):
    ...     first = [next_key(), next_key()]
    >>> with stream(0, 1, 2):
    ...     print([next_key(), next_key()] == first)
    True
    """
    previous = getattr(_local, "stream", None)
    _local.stream = [fold(*name), 0]
    try:
        yield
    finally:
        _local.stream = previous


def next_key() -> int:
    """Return the 64-bit key of the next sampling call, from the open stream or else the process."""
    global _calls
    current = getattr(_local, "stream", None)
    if current is not None:
        current[1] += 1
        return fold(current[0], current[1])
    worker = torch.utils.data.get_worker_info()
    with _lock:
        _calls += 1
        # torch's worker processes inherit the count, so several of them would draw the same keys.
        name = (_base, _calls) if worker is None else (_base, _calls, worker.seed)
        return fold(*name)


def generator(device: torch.device | str = "cpu") -> torch.Generator:
    """Make a generator for torch's random functions, seeded with the key of the next call.

    A sampler that draws with it is a function of (seed, epoch, batch), as the library's are: a
    loader makes the same batches in its own thread and in worker processes.
    """
    return torch.Generator(device).manual_seed(next_key() & (2**63 - 1))
