"""What the user sees of the ranks: one bar for all, and what they print.

By default that comes in the order of the ranks: rank 0 is shown live, the others when those before
them have ended, so that a notebook which runs again shows the same. ``live`` shows all at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gnnlab.bars import progress_bar

if TYPE_CHECKING:
    from gnnlab.parallel.oversight import Rank

__all__ = ["Screen"]


class Screen:
    """Shows output and progress of ranks.

    Parameters
    ----------
    world_size : int
        Number of ranks; with several, each line says who printed it.
    live : bool
        Show lines of all ranks as they come.
    """

    def __init__(self, world_size: int, live: bool = False) -> None:
        self._world_size, self._is_live = world_size, live
        self._turn = 0
        self._rests = [b""] * world_size
        self._bar: Any = None

    def update(self, ranks: Sequence[Rank], is_last: bool = False) -> None:
        """Show what is new; the last time also what stands behind a rank that goes on."""
        if self._is_live:
            for number in range(len(ranks)):
                self._show(ranks, number, is_last)
        else:
            while self._turn < len(ranks) and self._show(ranks, self._turn, is_last):
                self._turn += 1
        self._draw([rank.progress for rank in ranks if rank.progress])

    def _show(self, ranks: Sequence[Rank], number: int, is_last: bool) -> bool:
        """Show whole lines of a rank; True when there will be no more."""
        new, is_all = ranks[number].take_output()
        is_all = is_all or is_last
        *lines, rest = (self._rests[number] + new).split(b"\n")
        if is_all and rest:
            lines, rest = [*lines, rest], b""
        self._rests[number] = rest
        self._write(number, lines)
        return is_all

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()

    def _write(self, number: int, lines: list[bytes]) -> None:
        if not lines:
            return
        name = f"rank {number} | " if self._world_size > 1 else ""
        # A line that was drawn over and over, as bars do: its last state.
        texts = [
            line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf8", "replace") for line in lines
        ]
        text = "".join(f"{name}{text}\n" for text in texts)
        if self._bar is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            self._bar.write(text, end="")

    def _draw(self, states: list[dict[str, Any]]) -> None:
        if not states:
            return
        # Ranks step together, so the bar counts steps, not steps times ranks.
        total = max(state["total"] for state in states)
        done = total - max(state["total"] - state["done"] for state in states)
        if self._bar is None:
            self._bar = progress_bar(total=total, delay=0)
        bar = self._bar
        figures = states[0]["figures"]
        if (bar.n, bar.total, getattr(bar, "shown", {})) == (done, total, figures):
            return
        if bar.total != total:
            started = bar.start_t
            bar.reset(total=total)
            bar.start_t = started
        bar.n, bar.shown = done, dict(figures)
        bar.set_description(states[0]["description"], refresh=False)
        bar.set_postfix(figures, refresh=False)
        bar.refresh()
