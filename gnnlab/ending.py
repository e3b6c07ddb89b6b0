"""The end of a process: torch's threads are at rest before the interpreter goes.

A process group of gloo works in threads of its own. When a collective of a backward pass is over,
its thread lets go of what it was given, for which it needs the interpreter's lock. A thread that
asks for the lock while the interpreter is being taken down is ended by Python on the spot, and a
C++ thread that is ended so takes the whole process along: "terminate called without an active
exception", status 134 (SIGABRT), after all work was done. On a busy computer that met one script
in many hundreds. The threads outlive ``destroy_process_group`` where a model still holds the group,
so a script cannot guard against it.

References
----------
CPython documentation, "Thread states and the global interpreter lock", on finalization.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

__all__ = ["await_torch"]

_TASKS = Path("/proc/self/task")
_OFTEN_ENOUGH = 3  # a thread that has just been given the lock may not have been woken yet


def await_torch(limit: float = 5.0) -> None:
    """Wait until torch's own threads sleep; ``import gnnlab`` has it called at the end.

    Parameters
    ----------
    limit : float
        Seconds after which it goes on in any case.

    Examples
    --------
    >>> from gnnlab.ending import await_torch
    >>> await_torch()
    """
    deadline = time.monotonic() + limit
    quiet = 0
    while (states := _states()) and quiet < _OFTEN_ENOUGH and time.monotonic() < deadline:
        quiet = 0 if states & {"R", "D"} else quiet + 1
        time.sleep(0.001)  # without the lock: whoever waits for it has it now


def _states() -> set[str]:
    """The states of torch's other threads, "R" of those that run or wait for a processor.

    Where the system does not tell, as if they slept.
    """
    if not _TASKS.is_dir():
        return {"S"}
    states = set()
    own = str(threading.get_native_id())  # it runs, and torchrun gives it a name of torch's
    for task in _TASKS.iterdir():
        if task.name == own:
            continue
        try:
            name, _, rest = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
        except OSError:  # it has ended meanwhile
            continue
        if name.startswith("pt_"):
            states.add(rest[0])
    return states
