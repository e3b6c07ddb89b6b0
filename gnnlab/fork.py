"""Forking: what a child process inherits, and what it cannot.

A fork costs next to nothing. The child sees the parent's memory as it was, and a page is copied
only when one of them writes to it, so a graph of 10 GB is there once for any number of children.
That holds for what exists before the fork; what each child makes for itself, it has for itself.
Hence :func:`prepare_mp`.

Three things do not come along:

* **Threads.** Only the thread that forks lives on in the child. GNU OpenMP, which runs torch's
  operators on several cores, keeps a team of threads per thread that used it. The child's memory
  says that the team is waiting for work; it hands out work, and waits for ever. Before a fork the
  team can be dismissed (:func:`rest_openmp`). After it, a new thread of the child has a new team
  (:func:`fix_openmp`).
* **CUDA.** A GPU's driver refuses a process that it has not met. Fork before the GPU is used, or
  start fresh interpreters (:func:`check_fork`).
* **Who holds a lock.** A thread of the parent may hold one at the moment of the fork. It is not in
  the child, where the lock would stay closed for ever (:class:`Lock`).

Origin: gnnlab/fork.py of gnnlab (Apache-2.0). It needs torch alone: copy it where you need it.

References
----------
PyTorch documentation, "Multiprocessing best practices", section "Poison fork".
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import re
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

__all__ = [
    "ForkError",
    "Lock",
    "check_fork",
    "fix_openmp",
    "prepare_mp",
    "protect_forks",
    "rest_openmp",
]

P = ParamSpec("P")
T = TypeVar("T")

_MAPS = Path("/proc/self/maps")
_PAUSE_SOFT = 1  # enum omp_pause_resource_t: give the threads back, keep the settings
_imported_in = os.getpid()
_protected = False


class ForkError(RuntimeError):
    """A fork would give a child that cannot work."""


def prepare_mp(graph: Any) -> None:
    """Make all that children will need of a graph, so that they share it instead of making it.

    Call it before processes are forked. A graph makes its sparse formats when they are first asked
    for; a child that has to make one owns it alone. From then on, forks of this process are also
    safe with OpenMP (:func:`protect_forks`).

    Parameters
    ----------
    graph : Graph
        Of gnnlab, DGL, or anything with their ``in_degrees``, ``out_degrees`` and ``find_edges``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab.fork import prepare_mp
    >>> g = dgl.graph(([0, 2, 1], [1, 0, 2]))
    >>> g.formats()["created"]
    ['coo']
    >>> prepare_mp(g)
    >>> g.formats()["created"]
    ['coo', 'csr', 'csc']
    """
    protect_forks()
    if hasattr(graph, "create_formats_"):
        graph.create_formats_()
    elif graph.num_edges():
        graph.in_degrees(0)
        graph.out_degrees(0)
        graph.find_edges([0])


def fix_openmp(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function use OpenMP in a forked child, by running it in a new thread there.

    Put it on the function that a process starts with. Results and exceptions arrive as from a
    plain call, tracebacks included. In a process that was not forked it is a plain call.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
        Takes and returns the same.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.fork import fix_openmp
    >>> @fix_openmp
    ... def train(rank, graph):
    ...     return torch.ones(10_000_000).sum().item()
    >>> train(0, None)  # the target of a torch.multiprocessing.Process, for instance
    10000000.0
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        if os.getpid() == _imported_in and multiprocessing.parent_process() is None:
            return function(*args, **kwargs)
        return _in_new_thread(lambda: function(*args, **kwargs))

    return wrapper


def _in_new_thread(work: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    # A daemon: when Ctrl-C or a signal ends the wait below, nothing holds the process back.
    thread = threading.Thread(target=run, name=f"{threading.current_thread().name}-openmp")
    thread.daemon = True
    thread.start()
    thread.join()
    if errors:
        error = errors.pop()
        if torch.cuda._is_in_bad_fork() and "CUDA" in str(error):
            error.add_note(_cuda_remedy())
        raise error
    return results[0]


def check_fork() -> None:
    """Put OpenMP to rest and raise unless a fork is safe now.

    Raises
    ------
    ForkError
        CUDA is initialised, or OpenMP's threads cannot be dismissed; the message says what to do.

    Examples
    --------
    >>> from gnnlab.fork import check_fork
    >>> check_fork()  # nothing to complain about
    """
    if torch.cuda.is_initialized():
        raise ForkError(_cuda_remedy())
    if not rest_openmp():
        raise ForkError(
            "OpenMP's threads are at work or cannot be dismissed, and a forked child would wait "
            "for them for ever. Put @fix_openmp on the function that the child runs, or start "
            "fresh interpreters (start_method='spawn')"
        )


def rest_openmp() -> bool:
    """Dismiss the OpenMP threads of this thread; they come back with the next work for them.

    Returns
    -------
    bool
        True when a forked child can use OpenMP: GNU's has been put to rest, or the process has
        another one (Intel's, LLVM's), which looks after forks itself.

    References
    ----------
    OpenMP API specification 5.0, ``omp_pause_resource_all``.

    Examples
    --------
    >>> from gnnlab.fork import rest_openmp
    >>> rest_openmp()
    True
    """
    if not _MAPS.exists():
        return True
    pauses = []
    # A line is five numbers and a path, which may hold spaces.
    for path in set(re.findall(r"^(?:\S+ +){5}(/.*libgomp\S*)", _MAPS.read_text(), re.MULTILINE)):
        pause = getattr(ctypes.CDLL(path), "omp_pause_resource_all", None)  # GCC 9 and newer
        pauses.append(pause is not None and pause(_PAUSE_SOFT) == 0)
    return all(pauses)


def protect_forks() -> None:
    """Put OpenMP to rest before every fork of this process from now on.

    Plain ``torch.multiprocessing`` then starts children that can compute. Calling it again changes
    nothing.

    Examples
    --------
    >>> from gnnlab.fork import protect_forks
    >>> protect_forks()
    """
    global _protected
    if not _protected and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=rest_openmp)
        _protected = True


class Lock:
    """A reentrant lock that is open in a forked child, whoever held it in the parent.

    What it guards may be half done in the child then: use it where that can be told or does no
    harm.

    Examples
    --------
    >>> from gnnlab.fork import Lock
    >>> lock = Lock()
    >>> with lock:
    ...     with lock:
    ...         pass
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _open_locks() -> None:
    for lock in _locks:
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_locks)


def _cuda_remedy() -> str:
    return (
        "CUDA is initialised in this process, and a forked child cannot use it. Start fresh "
        "interpreters (start_method='spawn', the default of gnnlab.parallel.launch_processes), or "
        "fork before the first use of the GPU: that is any tensor.to('cuda') and "
        "torch.cuda.current_device(); torch.cuda.device_count() is harmless"
    )
