"""What the user sees of the ranks: one bar for all, and what they print, in the order of ranks.

Of several ranks that print at once, only one can be followed live: rank 0. What the others print
is kept and shown when those before them have ended.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnlab.parallel.oversight import Rank

__all__ = ["Screen"]


class Screen:
    """Shows output and progress of ranks.

    Parameters
    ----------
    world_size : int
        Number of ranks; with several, each line says who printed it.
    """

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._turn = 0
        self._rest = b""
        self._bar: Any = None

    def update(self, ranks: Sequence[Rank], is_last: bool = False) -> None:
        """Show what is new; the last time also what stands behind a rank that goes on."""
        while self._turn < len(ranks):
            new, is_all = ranks[self._turn].take_output()
            is_all = is_all or is_last
            *lines, self._rest = (self._rest + new).split(b"\n")
            if is_all and self._rest:
                lines, self._rest = [*lines, self._rest], b""
            self._write(lines)
            if not is_all:
                break
            self._turn += 1
        self._draw([rank.progress for rank in ranks if rank.progress])

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()

    def _write(self, lines: list[bytes]) -> None:
        if not lines:
            return
        name = f"rank {self._turn} | " if self._world_size > 1 else ""
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
        done, total = (sum(state[what] for state in states) for what in ("done", "total"))
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total)
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
