"""The starter's side of its ranks: read their messages, detect how each ends, and end them all.

When one rank fails, the connections of the others break a moment later, and they fail too. The
error to report is the first one, the root cause; the others are its consequences.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from gnnlab.errors import GNNLabError
from gnnlab.parallel.rank import (
    WELL_DONE,
    WHERE,
    Failure,
    Lines,
    read_message,
    send_message,
)
from gnnlab.parallel.rendezvous import PATIENCE
from gnnlab.parallel.screen import Screen

__all__ = ["Rank", "RankError", "oversee"]

_TICK = 0.05  # seconds between two checks of the ranks
_FAREWELL = 10.0  # seconds for a rank to end after all results have arrived
_HINDSIGHT = 0.5  # seconds to wait after a failure for an earlier one that caused it
_KEPT = 1 << 20  # bytes of output kept until they are shown
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows: SIGTERM kills, too
_QUOTED = 4000  # bytes of a failed rank's output quoted in its error


class RankError(GNNLabError, RuntimeError):
    """A rank failed, and all other ranks were ended.

    Attributes
    ----------
    rank : int
        The rank that failed first.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


class Rank:
    """The starter's handle of a rank's process.

    Parameters
    ----------
    number : int
    pid : int
        Also the ID of the process group of the rank and its children.
    poll : callable
        Returns the exit status, negative for a signal, or None while the process runs.
    lines : Lines
        The starter's ends of the pipes.
    """

    def __init__(self, number: int, pid: int, poll: Callable[[], int | None], lines: Lines) -> None:
        self.number, self.pid, self.poll = number, pid, poll
        self.progress: dict[str, Any] | None = None
        self.result: bytes | None = None
        self.failure: Failure | None = None
        self.stand, self.is_in_rendezvous = "", False
        self._lifeline = os.fdopen(lines.lifeline, "wb", buffering=0)
        self._lock = threading.Lock()
        self._output, self._tail = bytearray(), b""
        self._readers = [
            threading.Thread(target=self._hear, args=(os.fdopen(lines.events, "rb"),), daemon=True),
            threading.Thread(target=self._watch, args=(lines.output,), daemon=True),
        ]

    def listen(self) -> None:
        """Start the threads that read from the rank. Call this after all forks."""
        for reader in self._readers:
            reader.start()

    def give(self, value: Any) -> None:
        """Send a value through the lifeline."""
        with suppress(BrokenPipeError):  # the rank has ended; ``look`` finds out how
            send_message(self._lifeline, value)

    def tell(self, word: bytes) -> None:
        """Send ``WELL_DONE`` or ``WHERE``."""
        with suppress(BrokenPipeError, ValueError):  # closed: the rank has ended
            self._lifeline.write(word)

    def ask_where(self) -> None:
        """Request ``stand``, a traceback, and ``is_in_rendezvous``; they are unset until then."""
        self.stand, self.is_in_rendezvous = "", False
        self.tell(WHERE)

    def _hear(self, events: Any) -> None:
        with events:
            while (message := read_message(events)) is not None:
                kind, value = message
                if kind == "stand":
                    self.stand, self.is_in_rendezvous = value
                else:
                    setattr(self, kind, value)

    def _watch(self, output: int) -> None:
        with os.fdopen(output, "rb", buffering=0) as file:
            while part := file.read(1 << 16):
                with self._lock:
                    self._output += part
                    self._tail = (self._tail + part)[-_QUOTED:]
                    if len(self._output) > _KEPT:
                        del self._output[: -_KEPT // 2]
                        self._output[:0] = b"(earlier lines are left out)\n"

    def take_output(self) -> tuple[bytes, bool]:
        """Return the output since the last call, and whether the output has ended."""
        is_all = not self._readers[1].is_alive()
        with self._lock:
            new = bytes(self._output)
            self._output.clear()
        return new, is_all

    def last_words(self) -> str:
        """Return the last lines that the rank printed."""
        with self._lock:
            text = self._tail.decode("utf8", "replace")
        return "\n".join(text.splitlines()[-25:])

    def look(self) -> bool:
        """Check whether the rank has a result or has failed; return True if so."""
        if self.result is None and self.failure is None and self.poll() is not None:
            self.kill()
            self.join()
            if self.result is None and self.failure is None:
                self.failure = Failure(_describe(self.poll() or 0), time=time.monotonic())
        return self.result is not None or self.failure is not None

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, _KILL)
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, _KILL)

    def join(self) -> None:
        """Wait until the process has ended and all its output has been read."""
        _wait(lambda: self.poll() is not None, _FAREWELL)
        for reader in self._readers:
            if reader.ident is not None:
                reader.join(2.0)
        with suppress(OSError):
            self._lifeline.close()


def oversee(ranks: Sequence[Rank], screen: Screen, timeout: float | None) -> list[Any]:
    """Wait until all ranks have a result and return the results; raise when one fails."""
    deadline = None if timeout is None else time.monotonic() + timeout
    for rank in ranks:
        rank.listen()
    rendezvous = _Rendezvous()
    while late := _unsettled(ranks):
        if any(rank.failure for rank in ranks):
            break
        if rendezvous.is_stuck(ranks, late):
            raise _left_early(ranks, late)
        if deadline is not None and time.monotonic() > deadline:
            raise _out_of_time(late, len(ranks), timeout or 0)
        screen.update(ranks)
        time.sleep(_TICK)
    if any(rank.failure for rank in ranks):
        raise _first_failure(ranks)
    for rank in ranks:
        rank.tell(WELL_DONE)
    _wait(lambda: all(rank.poll() is not None for rank in ranks), _FAREWELL)
    return [pickle.loads(rank.result or b"") for rank in ranks]


class _Rendezvous:
    """Detects that a rank has returned, and all others wait in ``init_process_group`` for it."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._since: float | None = None

    def is_stuck(self, ranks: Sequence[Rank], late: Sequence[Rank]) -> bool:
        now = time.monotonic()
        if len(late) == len(ranks) or now < self._next_look:
            return False
        self._next_look = now + 2.0
        is_waiting = all(rank.is_in_rendezvous for rank in late)
        self._since = (self._since or now) if is_waiting else None
        if self._since is not None and now - self._since >= PATIENCE:
            return True
        for rank in late:
            rank.ask_where()
        return False


def _left_early(ranks: Sequence[Rank], late: Sequence[Rank]) -> RankError:
    first = next(rank for rank in ranks if rank not in late)
    what = (
        "returned without joining torch.distributed.init_process_group(), in which rank "
        f"{late[0].number} waits"
    )
    return _error(first, len(ranks), what, f"Rank {late[0].number} stands here:\n{late[0].stand}")


def _unsettled(ranks: Sequence[Rank]) -> list[Rank]:
    return [rank for rank in ranks if not rank.look()]


def _first_failure(ranks: Sequence[Rank]) -> RankError:
    _wait(lambda: not _unsettled(ranks), _HINDSIGHT)
    failed = [(rank, rank.failure) for rank in ranks if rank.failure]
    rank, failure = min(failed, key=lambda pair: (pair[1].is_consequence, pair[1].time))
    rank.kill()
    rank.join()  # its output is complete now
    return _error(rank, len(ranks), f"failed: {failure.reason}", failure.details)


def _out_of_time(late: Sequence[Rank], world_size: int, timeout: float) -> RankError:
    for rank in late:
        rank.ask_where()
    _wait(lambda: all(rank.stand for rank in late), _HINDSIGHT)
    stands = [f"Rank {rank.number} stands here:\n{rank.stand or '?'}" for rank in late]
    return _error(late[0], world_size, f"still ran after {timeout:g} s", "\n".join(stands))


def _error(rank: Rank, world_size: int, what: str, details: str) -> RankError:
    parts = [f"rank {rank.number} of {world_size} {what}", details.strip()]
    if words := rank.last_words().strip("\n"):
        parts.append(f"The last lines of rank {rank.number}:\n{words}")
    return RankError("\n\n".join(filter(None, parts)), rank.number)


def _describe(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status} before its function returned"
    name = next((s.name for s in signal.Signals if s == -status), f"signal {-status}")
    hint = ". The system kills processes when memory runs out" if name == "SIGKILL" else ""
    return f"it was ended by {name}{hint}"


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(_TICK / 5)
