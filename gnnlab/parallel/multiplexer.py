"""Display of the ranks: their output, and one progress bar for all.

With ``live``, lines of all ranks are shown as they arrive. Otherwise a notebook shows the same in
each run: the output of rank 0 live, that of another rank when all before it have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnlab.launch.first_failure import last_state
from gnnlab.parallel.rank_process import RankProcess
from gnnlab.system.bars import progress_bar


class OutputMultiplexer:
    """Shows output and progress of ranks; of several, each line begins with its rank."""

    def __init__(self, world_size: int, live: bool = False) -> None:
        self._world_size, self._is_live = world_size, live
        self._turn = 0
        self._rests = [b""] * world_size
        self._bar: Any = None

    def update(self, ranks: Sequence[RankProcess], is_last: bool = False) -> None:
        """Show new output; the last time, also that of ranks after one that has not ended."""
        if self._is_live:
            for number in range(len(ranks)):
                self._show(ranks, number, is_last)
        else:
            while self._turn < len(ranks) and self._show(ranks, self._turn, is_last):
                self._turn += 1
        self._draw([rank.progress for rank in ranks if rank.progress])

    def _show(self, ranks: Sequence[RankProcess], number: int, is_last: bool) -> bool:
        """Show complete lines of a rank; return True if its output has ended."""
        new, is_all = ranks[number].take_output()
        is_all = is_all or is_last
        *lines, rest = (self._rests[number] + new).split(b"\n")
        if is_all and rest:
            lines, rest = [*lines, rest], b""
        self._rests[number] = rest
        self._write(number, lines)
        return is_all

    def close(self) -> None:
        """Close the bar; it stays on the screen."""
        if self._bar is not None:
            self._bar.close()

    def _write(self, number: int, lines: list[bytes]) -> None:
        if not lines:
            return
        name = f"rank {number} | " if self._world_size > 1 else ""
        text = "".join(f"{name}{last_state(line)}\n" for line in lines)
        if self._bar is None:
            print(text, end="", flush=True)
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
        if bar.disable:  # it has no start_t
            return
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
