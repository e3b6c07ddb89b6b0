"""The end of a process: wait until torch's threads sleep before the interpreter is finalized.

A process group of gloo has threads of its own. After a collective of a backward pass, one of them
releases the tensors it was given and takes Python's global lock for that. CPython terminates a
thread that takes the lock while the interpreter is being finalized, and terminating a C++ thread
this way aborts the process: "terminate called without an active exception", status 134 (SIGABRT),
after all work was done. On busy computers this happened in one of many hundreds of runs. The
threads continue after ``destroy_process_group`` while a model refers to the group, so a script
cannot prevent it.

Processes that take part in a group or in a job therefore wait at their end: ranks of
``launch_processes``, and all that call ``initialize``, ``init_process_group``, ``init_model`` or a
loader with ``use_ddp``. ``import gnnlab`` alone registers nothing.

References
----------
CPython documentation, "Thread states and the global interpreter lock", on finalization.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from pathlib import Path

_TASKS = Path("/proc/self/task")
_OFTEN_ENOUGH = 3  # a thread that has just been granted the lock may not run yet


@functools.cache
def await_torch_at_exit() -> None:
    """Register :func:`await_torch` to run at the exit of this process; further calls do nothing.

    Functions that are registered with ``atexit`` later run before it.
    """
    atexit.register(await_torch)


def await_torch(limit: float = 5.0) -> None:
    """Wait until all threads that torch has started are asleep, at most ``limit`` seconds."""
    deadline, quiet = time.monotonic() + limit, 0
    while (states := _states()) and quiet < _OFTEN_ENOUGH and time.monotonic() < deadline:
        quiet = 0 if states & {"R", "D"} else quiet + 1
        time.sleep(0.001)  # releases the lock for the threads that wait for it


def _states() -> set[str]:
    """Return the states of torch's threads in /proc, such as "R", running or waiting for a core.

    Without /proc, return {"S"}: sleeping.
    """
    if not _TASKS.is_dir():
        return {"S"}
    states = set()
    own = str(threading.get_native_id())  # runs; under torchrun, named "pt_…"
    for task in _TASKS.iterdir():
        if task.name == own:
            continue
        try:
            name, _, rest = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
        except OSError:  # the thread has ended
            continue
        if name.startswith("pt_"):
            states.add(rest[0])
    return states
