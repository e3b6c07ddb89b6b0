"""The process of a rank as seen by its starter: pipes, output, result, and how it ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gnnlab.launch.first_failure import describe_exit, wait
from gnnlab.parallel.rank import DUMP_STACK, Failure, Lines, read_message, send_message

TICK = 0.05  # seconds between two checks of the ranks
EXIT_TIMEOUT = 10.0  # seconds for a rank to end after all results have arrived
_KEPT = 1 << 20  # bytes of output kept until they are shown
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows: SIGTERM kills, too
_QUOTED = 4000  # bytes of a failed rank's output quoted in its error


class RankProcess:
    """The starter's handle of a rank's process, which leads a process group.

    ``poll`` returns the exit status, negative for a signal, or None while the process runs.
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
            threading.Thread(
                target=self._read_events, args=(os.fdopen(lines.events, "rb"),), daemon=True
            ),
            threading.Thread(target=self._read_output, args=(lines.output,), daemon=True),
        ]

    def listen(self) -> None:
        """Start the threads that read from the rank. Call this after all forks."""
        for reader in self._readers:
            reader.start()

    def give(self, value: Any) -> None:
        """Send a value through the lifeline."""
        with suppress(BrokenPipeError):  # the rank has ended; ``look`` finds out how
            send_message(self._lifeline, value)

    def send(self, message: bytes) -> None:
        """Send ``RELEASE`` or ``DUMP_STACK``."""
        with suppress(BrokenPipeError, ValueError):  # closed: the rank has ended
            self._lifeline.write(message)

    def ask_where(self) -> None:
        """Request ``stand``, a traceback, and ``is_in_rendezvous``; they are unset until then."""
        self.stand, self.is_in_rendezvous = "", False
        self.send(DUMP_STACK)

    def _read_events(self, events: Any) -> None:
        with events:
            while (message := read_message(events)) is not None:
                kind, value = message
                if kind == "stand":
                    self.stand, self.is_in_rendezvous = value
                else:
                    setattr(self, kind, value)

    def _read_output(self, output: int) -> None:
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

    def last_output(self) -> str:
        """Return the last text that the rank printed."""
        with self._lock:
            return self._tail.decode("utf8", "replace")

    def look(self) -> bool:
        """Check whether the rank has a result or has failed; return True if so."""
        if self.result is None and self.failure is None and self.poll() is not None:
            self.kill()
            self.join()
            if self.result is None and self.failure is None:
                status = self.poll() or 0
                early = " before its function returned" if status >= 0 else ""
                reason = f"it {describe_exit(status)}{early}"
                self.failure = Failure(reason, time=time.monotonic())
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
        wait(lambda: self.poll() is not None, EXIT_TIMEOUT)
        for reader in self._readers:
            if reader.ident is not None:
                reader.join(2.0)
        with suppress(OSError):
            self._lifeline.close()
