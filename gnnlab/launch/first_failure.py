"""Which of the processes that depend on each other has failed first, and how to report that.

When one process fails, the connections of the others break a moment later, and they fail too. The
error to report is the first one, the root cause; the others are its consequences. A process may
also end in order while the others wait for it in a rendezvous; then nothing fails, and nothing ever
ends. :mod:`gnnlab.launch.job_supervisor` follows these rules and ends a job on many machines,
:mod:`gnnlab.parallel.rank_supervisor` the ranks on one.
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Sequence, Set
from typing import TypeVar

T = TypeVar("T")

QUOTED = 25  # lines of output quoted in an error
# Distance of a failure from its cause: it may be a cause itself, it lost a server, or some
# connection broke; and the seconds to wait for an earlier failure.
_CAUSE, _LOST_SERVER, LOST_PEER = range(3)
_HINDSIGHT = (0.5, 1.5, 3.0)
_BROKEN = re.compile(
    r"gloo/|NCCL|TCPStore|Broken pipe|connection (was )?(closed|reset|refused)", re.IGNORECASE
)


def distance(text: str) -> int:
    """Return how far a failure is from its cause: 0 for one that may be a cause itself.

    ``text`` is the error, or the last lines of output.
    """
    if "ServerLost" in text:
        return _LOST_SERVER
    return LOST_PEER if _BROKEN.search(text) else _CAUSE


def first_failure(
    failures: Callable[[], Sequence[T]], distance: Callable[[T], int], listen: Callable[[], object]
) -> T:
    """Return the first of the failures that are nearest to their cause.

    ``failures()`` returns those known so far, at least one, in the order of time; ``distance`` is
    that of a failure from its cause; ``listen()`` waits for more, and is true if none can come.
    """
    start = time.monotonic()
    while time.monotonic() - start < _HINDSIGHT[min(map(distance, failures()))]:
        if listen():
            break
    return min(failures(), key=distance)


def describe_exit(status: int) -> str:
    """Return how a process ended, from its exit status, negative for a signal."""
    if status >= 0:
        return f"ended with status {status}"
    name = next((s.name for s in signal.Signals if s == -status), f"signal {-status}")
    hint = ". The system kills processes when memory runs out" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


class Rendezvous:
    """Detects that all processes that still run wait for a group, which then cannot complete.

    ``patience`` are the seconds for which they must have waited.
    """

    def __init__(self, patience: float) -> None:
        self._patience, self._since = patience, math.inf

    def is_stuck(self, running: Set[int], waiting: Set[int]) -> bool:
        """Whether it is so, given the ranks that run and those that wait."""
        now = time.monotonic()
        self._since = min(self._since, now) if running and running <= waiting else math.inf
        return now - self._since >= self._patience

    @staticmethod
    def missed(waiting: str) -> str:
        """Return what is wrong with a process that has ended meanwhile."""
        return f"without joining torch.distributed.init_process_group(), in which {waiting} waits"


def last_state(line: bytes) -> str:
    """Return the text of a line; of one that progress bars redraw, its last state."""
    return line.rstrip(b"\r\n").rpartition(b"\r")[2].decode("utf8", "replace")


def wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def report(what: str, details: str, name: str, output: str, end: str = "") -> str:
    """Return an error message: what failed, details such as a traceback, the output of ``name``."""
    quoted = "\n".join(output.splitlines()[-QUOTED:]).strip("\n")
    last = quoted and f"The last lines of {name}:\n{quoted}"
    return "\n\n".join(filter(None, [what, details.strip(), last, end]))
