"""The terminal output of a job: lines that processes print, above a table of hosts and roles.

Without a terminal, a line is printed when all processes of a role on a host reach the next state.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

_STATES = {"hello": "connected", "started": "started", "ready": "ready", "exited": "ended"}


class StatusTable:
    """Display of a job; ``numbers`` says how many processes of each role a machine has."""

    def __init__(
        self, addresses: Sequence[str], numbers: Mapping[str, int], output: TextIO | None = None
    ) -> None:
        self._addresses, self.numbers = addresses, {"agent": 1, **numbers}
        self._output = output or sys.stdout
        self._is_terminal = self._output.isatty()
        self._states: dict[tuple[int, str], dict[int, str]] = {
            (machine, role): {} for machine in range(len(addresses)) for role in self.numbers
        }
        self._height = 0

    def print(self, text: str) -> None:
        """Print a line above the table."""
        self._write(text + "\n")

    def update(self, machine: int, role: str, number: int, kind: str, status: int) -> None:
        """Record the new state of a process."""
        state = f"ended ({status})" if status else _STATES.get(kind)
        if state is None or role not in self.numbers:
            return
        states = self._states[machine, role]
        states[number] = state
        if self._is_terminal:
            self._write("")
        elif Counter(states.values())[state] == self.numbers[role]:
            self._write(f"{self._addresses[machine]}  {self._cell(machine, role)}\n")

    def close(self) -> None:
        """Leave the table on the screen."""
        self._height = 0

    def _cell(self, machine: int, role: str) -> str:
        counts = Counter(self._states[machine, role].values())
        states = ", ".join(f"{number} {state}" for state, number in counts.items())
        return f"{role}s: {states or '-'}"

    def _write(self, text: str) -> None:
        if self._is_terminal:
            above = f"\x1b[{self._height}F\x1b[J" if self._height else ""
            width = max(map(len, self._addresses))
            rows = [
                f"{address:<{width}}  "
                + "  ".join(f"{self._cell(machine, role):<24}" for role in self.numbers)
                for machine, address in enumerate(self._addresses)
            ]
            text = above + text + "".join(f"{row.rstrip()}\n" for row in rows)
            self._height = len(rows)
        # Output of a host may have characters that the terminal's encoding lacks.
        encoding = getattr(self._output, "encoding", None) or "utf8"
        try:
            self._output.write(text.encode(encoding, "replace").decode(encoding))
            self._output.flush()
        except OSError:
            if not self._is_terminal:  # a terminal may be closed while the job goes on or ends
                raise
