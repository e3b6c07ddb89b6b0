"""All processes below this one: find them, even after ``setsid``, and end them.

Servers, trainers and users' programs start sessions and process groups of their own, so a signal to
a process group does not reach all of them. Instead, the processes of a job's agent are subreapers:
orphans become their children, and every process of the job stays their descendant.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gnnlab.launch.first_failure import wait

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def adopt_orphans() -> None:
    """Make this process a subreaper: it inherits orphaned descendants (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


class Row(NamedTuple):
    """A process: ID, parent's ID, state as ``ps`` prints it, and processor time."""

    pid: int
    parent: int
    state: str
    time: str

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return self.state[0] in "Tt"


def processes() -> dict[int, Row]:
    """Return all processes of this computer that have not ended."""
    if os.path.isdir("/proc/self"):
        rows = list(filter(None, map(_row, filter(str.isdigit, os.listdir("/proc")))))
    else:
        command = ["ps", "-A", "-o", "pid=,ppid=,stat=,time="]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ps:
            table = [line.split() for line in ps.communicate()[0].splitlines()]
        rows = [Row(int(row[0]), int(row[1]), *row[2:]) for row in table if int(row[0]) != ps.pid]
    return {row.pid: row for row in rows if not row.state.startswith("Z")}


def is_stopped(pid: int) -> bool:
    """Whether a process exists and is stopped."""
    row = _row(str(pid)) if os.path.isdir("/proc/self") else processes().get(pid)
    return row is not None and row.is_stopped


def _row(pid: str) -> Row | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # the process has ended meanwhile
        return None
    return Row(int(pid), int(fields[1]), fields[0], f"{fields[11]} {fields[12]}")


def ancestors() -> list[Row]:
    """Return the parent of this process, its parent, and so on."""
    rows = None if os.path.isdir("/proc/self") else processes()
    found, pid = [], os.getppid()
    while row := rows.get(pid) if rows is not None else _row(str(pid)):
        found.append(row)
        pid = row.parent
    return found


def descendants(of: int, rows: dict[int, Row]) -> list[int]:
    """Return the IDs of all direct and indirect children of process ``of``."""
    children: dict[int, list[int]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.pid)
    found = list(children.get(of, ()))
    for each in found:
        found += children.get(each, ())
    return found


def end_descendants(grace: float, spared: int = 0) -> None:
    """End all descendants of this process: SIGTERM, and SIGKILL after ``grace`` seconds."""
    deadline = time.monotonic() + grace
    asked = {spared}
    while time.monotonic() < deadline + 5:
        running = [pid for pid in descendants(os.getpid(), processes()) if pid != spared]
        if not running:
            return
        is_late = time.monotonic() >= deadline
        # Children before their parents, so that nothing is left if this process is killed.
        for pid in reversed(running) if is_late else set(running) - asked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped process handles SIGTERM only then
        asked.update(running)
        time.sleep(0.02)


def await_descendants(seconds: float) -> None:
    """Wait until all descendants of this process have ended, at most ``seconds``."""
    wait(lambda: not descendants(os.getpid(), processes()), seconds)


def remove_files(folder: Path) -> None:
    """Remove an agent's folder, and the shared memory of its job."""
    with suppress(OSError):
        job = (folder / "job").read_text()
        for memory in (Path("/dev/shm"), folder.parent):  # without /dev/shm: the parent
            for left in memory.glob(f"gnnlab-{job}-*"):
                left.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
