"""Where a loader stands: in which epoch, and how many of its batches it has given.

Since a batch is a function of its name (key of the epoch, number), a loader that knows its position
can go on in the middle of an epoch as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gnnlab.errors import InvalidInput

__all__ = ["Position"]


class Position:
    """Counts epochs and batches.

    Examples
    --------
    >>> from gnnlab.dataloading.position import Position
    >>> position = Position()
    >>> key, first = position.begin(lambda epoch: 100 + epoch)
    >>> batches = position.count(iter("abc"), 3)
    >>> next(batches), position.state()
    ('a', {'epoch': 0, 'batch': 1, 'key': 100})
    >>> list(batches), position.state()
    (['b', 'c'], {'epoch': 1, 'batch': 0, 'key': None})
    """

    def __init__(self) -> None:
        self._next: tuple[int, int, int | None] = (0, 0, None)  # epoch, batch, key
        self._now: list[int] | None = None  # the same of the epoch that is being iterated

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next. If it is the one to be continued, that stays so."""
        if epoch != self._next[0]:
            self._next = (epoch, 0, None)

    def begin(self, make_key: Callable[[int], int]) -> tuple[int, int]:
        """Begin the next epoch, or continue one; return its key and the first batch to give."""
        epoch, first, key = self._next
        if key is None:
            key = make_key(epoch)
        self._next = (epoch + 1, 0, None)
        self._now = [epoch, first, key]
        return key, first

    def count(self, batches: Iterator[Any], number: int) -> Iterator[Any]:
        """Give ``number`` batches; at the end, or when left early, the epoch is over."""
        return self._count(batches, number, self._now or [])

    def _count(self, batches: Iterator[Any], number: int, now: list[int]) -> Iterator[Any]:
        try:
            for _ in range(number):
                now[1] += 1
                yield next(batches)  # no name here: a batch lives as long as its user needs it
        finally:
            if self._now is now:
                self._now = None

    def state(self) -> dict[str, Any]:
        """Return the position as plain values."""
        return dict(zip(("epoch", "batch", "key"), self._now or self._next, strict=True))

    def load(self, state: Mapping[str, Any]) -> None:
        """Take the position of another loader; the next iteration gives the rest of its epoch."""
        try:
            epoch, batch, key = int(state["epoch"]), int(state["batch"]), state["key"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"not the state of a loader: {error!r} in {state!r}") from None
        self._next, self._now = (epoch, batch, key), None
