"""Run one command for an agent, and end all its processes when the agent is gone.

An agent starts each server, and torchrun, through a watchdog. Watchdogs hold the reading end of a
pipe, the *lifeline*, whose writing end only the two processes of the agent hold. When both are
killed, the lifeline reads end of file; each watchdog then kills its descendants and removes the
agent's files. When both are stopped, the launcher counts them as lost, but the pipe stays open;
watchdogs check for that every second and kill them. While the agent runs, it ends the processes
itself, and a watchdog only returns the exit status. One watchdog has no command: first to start,
last to end.

The agent runs this file as a script, isolated from the user's environment, so it imports only the
standard library and starts within some hundredths of a second.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["Row", "adopt_orphans", "await_descendants", "end_descendants", "is_stopped", "main"]
__all__ += ["processes", "remove_files"]

BEAT = 1.0  # seconds between two heartbeats of launcher and agents
SILENCE = 4.5  # seconds without a heartbeat after which the peer counts as lost
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def main() -> None:
    """Run a command, if any: ``watchdog.py LIFELINE FOLDER GUARD WORKER [COMMAND...]``.

    Arguments: reading end of the lifeline, the agent's folder, the IDs of its two processes.
    """
    lifeline, folder, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[5:]
    agent = _Agent({int(pid) for pid in sys.argv[3:5]})
    noted, tell = os.pipe()
    os.set_blocking(tell, False)
    os.set_blocking(noted, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):  # exec resets the handlers
        signal.signal(number, lambda *_: None)
    adopt_orphans()
    status = 127
    try:
        child = 0
        if command:
            ready = int(os.environ["GNNLAB_READY_FD"])
            process = subprocess.Popen(
                command, pass_fds=(ready,)
            )  # held: __del__ reaps an ended child
            child = process.pid
            os.close(ready)
        ended = None
        while ended is None and not _is_ready(lifeline, noted):
            with suppress(BlockingIOError):
                os.read(noted, 1 << 16)
            agent.look()
            ended = _reap(child)
        status = ended or 0
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
    if _is_ready(lifeline):
        end_descendants(0.0)
        remove_files(folder)
    os._exit(status if status >= 0 else 128 - status)


def _is_ready(lifeline: int, *others: int) -> bool:
    """Whether the lifeline is closed. With other descriptors, wait up to BEAT s for any of them."""
    return lifeline in select.select([lifeline, *others], [], [], BEAT if others else 0)[0]


class _Agent:
    """The two processes of the agent; kills those that are left if all of them are stopped."""

    def __init__(self, pids: set[int]) -> None:
        self._pids = pids
        self._seen: set[tuple[int, str]] = set()  # process ID and processor time
        self._since = self._next_look = 0.0

    def look(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BEAT
        # Only ancestors: the ID of a process that has ended may have been reused.
        above = [row for row in _ancestors() if row.pid in self._pids]
        seen = {(row.pid, row.time) for row in above}
        if not all(row.is_stopped for row in above) or not seen <= self._seen:
            self._seen, self._since = seen, now
        elif now - self._since >= SILENCE:
            for row in above:
                with suppress(ProcessLookupError):
                    os.kill(row.pid, signal.SIGKILL)


def _reap(child: int) -> int | None:
    """Wait for all ended children; return the exit status of ``child`` if it is one."""
    status = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
    return status


# ---------------------------------------------------------------------- ending processes
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


def _ancestors() -> list[Row]:
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
        # Watchdogs last: if this process is killed meanwhile, they end the remaining processes.
        for pid in reversed(running) if is_late else set(running) - asked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped process handles SIGTERM only then
        asked.update(running)
        time.sleep(0.02)


def await_descendants(seconds: float) -> None:
    """Wait until all descendants of this process have ended, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while descendants(os.getpid(), processes()) and time.monotonic() < deadline:
        time.sleep(0.02)


def remove_files(folder: Path) -> None:
    """Remove an agent's folder, and the shared memory of its job."""
    with suppress(OSError):
        job = (folder / "job").read_text()
        for memory in (Path("/dev/shm"), folder.parent):  # without /dev/shm: the parent
            for left in memory.glob(f"gnnlab-{job}-*"):
                left.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
