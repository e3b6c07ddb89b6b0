"""Fork processes that can compute and that share a graph, with torch alone.

Origin:  gnnlab/helpers/fork.py
Version: gnnlab 0.1.0
License: Apache-2.0
Needs:   Python 3.11 or newer, torch 2.8 or newer

A fork is a cheap copy of a process. The child sees the memory of its parent as it was, and a page
is copied only when one of the two writes to it, so any number of children share a graph of 10 GB.
They share what exists before the fork; what a child makes later is its own. Call `prepare_mp(g)`
with a graph of gnnlab, DGL or block_sampler.py before processes are forked, and put `fix_openmp` on
the function that each of them runs:

>>> import torch
>>> x, sums = torch.ones(1_000_000), torch.zeros(2).share_memory_()  # children may write
>>> @fix_openmp
... def train(rank, x):
...     sums[rank] = x.sum()              # on several cores, in OpenMP's threads
>>> train(0, x)                           # from now on, this process has such threads
>>> protect_forks()                       # prepare_mp(graph) does this too
>>> if "fork" in torch.multiprocessing.get_all_start_methods():
...     child = torch.multiprocessing.get_context("fork").Process(target=train, args=(1, x))
...     child.start()
...     child.join()
... else:                                 # Windows cannot fork
...     train(1, x)
>>> sums
tensor([1000000., 1000000.])

Three things do not survive a fork:

* **Threads.** The child has the thread that called fork, and no other. GNU OpenMP, with which
  torch's operators use several cores, keeps a team of threads for each thread that has used it. In
  the child, only the records of the team are left: the next operator gives it work and hangs.
  `rest_openmp` ends the team before a fork, `protect_forks` before every fork. `fix_openmp` runs a
  function in a new thread of the child, which gets a new team; it helps where the team cannot be
  ended (GCC before 9) or the fork came before `protect_forks`.
* **The state of a GPU.** CUDA's driver, for example, is unusable in a forked child. Fork before the
  GPU is used, or start fresh interpreters (spawn); `check_fork` raises an error where a child would
  fail. ``torch.cuda.is_available()`` starts the driver, and so does the first ``backward()``, even
  one on the CPU, which also starts threads.
* **The holder of a lock.** A lock that another thread of the parent holds during the fork stays
  locked in the child for ever. Use the `Lock` of this file: in a forked child it is unlocked.

References
----------
PyTorch documentation, "Multiprocessing best practices", section "Poison fork".
OpenMP API specification 5.0, ``omp_pause_resource_all``.
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

__all__ = ["ForkError", "Lock", "check_fork", "fix_openmp", "prepare_mp", "protect_forks"]
__all__ += ["rest_openmp"]

P = ParamSpec("P")
T = TypeVar("T")

_MAPS = Path("/proc/self/maps")
_PAUSE_SOFT = 1  # enum omp_pause_resource_t: end the threads, keep the settings
_imported_in = os.getpid()
_protected = False


class ForkError(RuntimeError):
    """A forked child would fail or hang; the message says why and what to do."""


# ------------------------------------------------------------------------------ before the fork
def prepare_mp(graph: Any) -> None:
    """Make all sparse formats of a graph now, so that forked children share them.

    A graph makes COO, CSR and CSC when each is first needed; a format that a child makes is in the
    memory of that child alone. Also calls :func:`protect_forks`.

    Parameters
    ----------
    graph : Graph
        Of gnnlab or DGL: it has ``create_formats_``, or, as in old versions of DGL,
        ``in_degrees``, ``out_degrees`` and ``find_edges``, which make the formats. Of a graph of
        block_sampler.py, ``csc`` is made, which sampling reads.

    Raises
    ------
    TypeError
        It is none of these. PyG's ``Data`` needs no such call.

    Examples
    --------
    >>> class Graph:
    ...     def create_formats_(self):
    ...         print("now there are COO, CSR and CSC")
    >>> prepare_mp(Graph())
    now there are COO, CSR and CSC
    """
    protect_forks()
    if hasattr(graph, "create_formats_"):
        graph.create_formats_()
    elif hasattr(graph, "in_degrees"):
        if graph.num_edges():
            graph.in_degrees(0)
            graph.out_degrees(0)
            graph.find_edges([0])
    elif hasattr(graph, "pick"):  # of block_sampler.py; PyG's Data has a csc() that keeps nothing
        graph.csc()
    else:
        raise TypeError(
            f"prepare_mp takes a graph of gnnlab, DGL or block_sampler.py; found {graph!r:.80}"
        )


def protect_forks() -> None:
    """Call :func:`rest_openmp` before every later fork of this process.

    Children of ``get_context("fork")`` can then compute. A second call changes nothing.

    Examples
    --------
    >>> protect_forks()
    """
    global _protected
    if not _protected and hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=rest_openmp)
        _protected = True


def rest_openmp() -> bool:
    """End the OpenMP threads of this thread; its next operator starts new ones.

    Returns
    -------
    bool
        True when a forked child can use OpenMP: the threads of GNU's OpenMP have ended, or another
        one is loaded (Intel's, LLVM's), which handles forks itself.

    Examples
    --------
    >>> rest_openmp()
    True
    """
    if not _MAPS.exists():  # not Linux: torch comes with LLVM's OpenMP
        return True
    paused = []
    # A line of /proc/self/maps has five fields and the path of a library, perhaps with spaces.
    for path in set(re.findall(r"^(?:\S+ +){5}(/.*libgomp\S*)", _MAPS.read_text(), re.MULTILINE)):
        pause = getattr(ctypes.CDLL(path), "omp_pause_resource_all", None)  # from GCC 9 on
        paused.append(pause is not None and pause(_PAUSE_SOFT) == 0)
    return all(paused)


def check_fork() -> None:
    """End OpenMP's threads; raise if a child forked now could not use OpenMP or the GPU.

    Raises
    ------
    ForkError
        A GPU is initialized, or OpenMP's threads cannot be ended; the message gives the remedy.

    Examples
    --------
    >>> check_fork()  # no error: fork now
    """
    if _gpu("is_initialized") or _has_cuda_driver():
        raise ForkError(_gpu_remedy())
    if not rest_openmp():
        raise ForkError(
            "OpenMP's threads are busy or cannot be ended, and a forked child would wait for "
            "them for ever. Put @fix_openmp on the function that the child runs, or start fresh "
            "interpreters (start_method='spawn')"
        )


def _gpu(question: str) -> bool:
    """Ask torch.cuda and the module of the accelerator (torch.xpu, …) a question."""
    device = torch.accelerator.current_accelerator()
    modules = [torch.cuda, *([] if device is None else [torch.get_device_module(device)])]
    return any(getattr(module, question, bool)() for module in modules)


def _has_cuda_driver() -> bool:
    """Whether CUDA's driver runs here; torch.cuda.is_initialized() does not tell."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", getattr(os, "RTLD_NOLOAD", 0))
    except OSError:  # nothing has loaded it
        return False
    number = ctypes.c_int()  # of devices; not set before the driver is initialized
    driver.cuDeviceGetCount(ctypes.byref(number))
    return number.value > 0


def _gpu_remedy() -> str:
    name = str(torch.accelerator.current_accelerator() or "cuda")
    return (
        f"{name.upper()} is initialized in this process, and a forked child cannot use it. Start "
        "fresh interpreters (start_method='spawn'), or fork before anything uses the GPU, as "
        f"tensor.to('{name}'), torch.{name}.is_available() and the first backward() do; "
        f"torch.{name}.device_count() is harmless" + (" if it can ask NVML" * (name == "cuda"))
    )


# -------------------------------------------------------------------------------- in the child
def fix_openmp(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function use OpenMP in a forked child, by running it in a new thread there.

    Decorate the function that a process starts with. In the main process it is a plain call. In a
    child, results, exceptions and tracebacks are the same, but the new thread has none of the
    caller's ``torch.no_grad()`` or ``autocast``, and ``signal.signal`` raises ValueError there.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
        With the same arguments and results.

    Examples
    --------
    >>> @fix_openmp
    ... def train(rank, num_rows):
    ...     return torch.ones(num_rows).sum().item()
    >>> train(0, 10)  # or: multiprocessing.get_context("fork").Process(target=train, args=(0, 10))
    10.0
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

    # A daemon, so that the process can end when Ctrl-C or a signal interrupts the wait below.
    thread = threading.Thread(target=run, name=f"{threading.current_thread().name}-openmp")
    thread.daemon = True
    thread.start()
    thread.join()
    if errors:
        error = errors.pop()
        if re.search("Cannot re-initialize|CUDA error: initialization error", str(error)):
            error.add_note(_gpu_remedy())
        if "Autograd-and-Fork" in str(error):
            error.add_note(
                "Where there is a GPU, torch has threads for gradients, even for those on the CPU, "
                "and a child that is forked after the first backward() has none. Start fresh "
                "interpreters (start_method='spawn'), or fork before the first backward()"
            )
        raise error
    return results[0]


class Lock:
    """A reentrant lock that is unlocked in a forked child, whichever thread of the parent held it.

    The child may find what the lock guards half changed. Use it where the child can tell, or where
    that does no harm. A child that is forked inside the ``with`` block must not leave the block.

    Examples
    --------
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


def _unlock_all() -> None:
    for lock in _locks:
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)
