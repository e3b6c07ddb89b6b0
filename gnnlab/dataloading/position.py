"""Position of a loader: its epoch, and how many batches of it have been returned.

A batch is a function of (key of the epoch, number of the batch). So a loader that loads a position
resumes in the middle of an epoch with the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gnnlab.errors import InvalidInput


class Position:
    """Counter of epochs and batches.

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
        self._current: list[int] | None = None  # the same of the epoch that is being iterated

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; if that is the epoch to be resumed, resume it."""
        if epoch != self._next[0]:
            self._next = (epoch, 0, None)

    def begin(self, make_key: Callable[[int], int]) -> tuple[int, int]:
        """Begin or resume the next epoch; return its key and the number of its first batch."""
        epoch, first, key = self._next
        if key is None:
            key = make_key(epoch)
        self._next = (epoch + 1, 0, None)
        self._current = [epoch, first, key]
        return key, first

    def count(self, batches: Iterator[Any], number: int) -> Iterator[Any]:
        """Yield ``number`` batches; the epoch ends with them, or when the loop is left early."""
        return self._count(batches, number, self._current or [])

    def _count(self, batches: Iterator[Any], number: int, current: list[int]) -> Iterator[Any]:
        try:
            for _ in range(number):
                current[1] += 1
                yield next(batches)  # no variable: it would keep the batch alive
        finally:
            if self._current is current:
                self._current = None

    def state(self) -> dict[str, Any]:
        """Return the position as plain values."""
        return dict(zip(("epoch", "batch", "key"), self._current or self._next, strict=True))

    def load(self, state: Mapping[str, Any]) -> None:
        """Load the position of another loader; the next iteration yields the rest of its epoch."""
        try:
            epoch, batch, key = int(state["epoch"]), int(state["batch"]), state["key"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"not the state of a loader: {error!r} in {state!r}") from None
        self._next, self._current = (epoch, batch, key), None
