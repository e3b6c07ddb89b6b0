"""Which rows of other machines to cache: the policies of :mod:`gnnlab.distributed.cache`.

- "access": those requested most often so far, at first those with most edges into the own part.
- "degree": those of the nodes with most edges into the own part.
- "halo": any of the nodes with an edge into the own part, and no others.
- "vip": those that a mini-batch most probably needs (:mod:`gnnlab.distributed.inclusion`).
- "belady": those needed again soonest. Keyed sampling makes every batch of an epoch known in
  advance, so the optimum, which caches are usually only measured against, can be used itself.

A cache with "vip" or "belady" is prepared by the first epoch, or by every epoch, of a loader of
:mod:`gnnlab.distributed.dataloader`. Here the rows of other parts are numbered consecutively,
without those of the own part.

References
----------
Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", IBM Systems Journal 5,
1966. "RapidGNN", arXiv 2509.05207, 2025: a cache planned by deterministic sampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gnnlab import kernels

__all__ = ["Chosen", "EpochReads", "Planned", "Scored", "ranked"]

POLICIES = ("access", "degree", "halo", "vip", "belady")
NEVER = np.iinfo(np.int32).max  # the next use of a row that no later batch needs
_WAYS = 8  # slots per set; their row numbers fit in a line of the CPU cache
_REQUEST = 16  # added to a row's score by a request
_HEAD_START = 4.0  # initial score of a node of mean degree, in requests
_FOR_SCORES = 4  # scores use at most 1 / this of the memory
_AT_ONCE = 1 << 16  # rows whose scores are computed at a time


class Scored:
    """Sets of eight slots; in each, the rows with the highest scores ("access", "degree").

    Parameters
    ----------
    edges : ndarray
        Shape (remote rows,): edges from each into the own part.
    counts : bool
        Whether requests raise the score.

    Examples
    --------
    >>> import numpy as np
    >>> cache = Scored(np.array([1.0, 9.0, 2.0, 8.0]), counts=False)
    >>> cache.resize(2 * (4 + 400) + 8, row_bytes=400)  # two rows, their numbers, four scores
    >>> cache.num_slots, cache.admit(np.arange(4), 0)
    (2, array([-1,  1, -1,  0]))
    """

    def __init__(self, edges: np.ndarray, counts: bool) -> None:
        self._scores = np.zeros(len(edges), np.uint16)
        scale = _REQUEST * _HEAD_START / max(float(edges.mean(dtype=np.float64)), 1e-9)
        for at in range(0, len(edges) if edges.any() else 0, _AT_ONCE):
            some = slice(at, at + _AT_ONCE)
            self._scores[some] = (edges[some] * scale).clip(0, np.iinfo(np.uint16).max)
        self._num_rows, self._bits, self._gain = len(edges), 0, _REQUEST if counts else 0

    def resize(self, num_bytes: int, row_bytes: int) -> None:
        """Make slots; adjacent rows share a score where the scores would take too much memory."""
        while len(self._scores) > 1 and self._scores.nbytes * _FOR_SCORES > num_bytes:
            last = self._scores[len(self._scores) // 2 * 2 :]  # of an odd number
            self._scores = np.append(self._scores, last).reshape(-1, 2).max(1)
            self._bits += 1
        numbers = _numbers(self._num_rows)
        slots = max(0, num_bytes - self._scores.nbytes) // (row_bytes + numbers.itemsize)
        if not len(self._scores):
            slots = 0  # an earlier resize dropped the scores: the table stays empty
        if slots == 0:
            self._scores = self._scores[:0].copy()
        self._ways = min(_WAYS, slots)
        self.num_slots = min(slots // _WAYS or 1, -(-self._num_rows // _WAYS)) * self._ways
        self._held = np.full(self.num_slots, -1, numbers)

    def clear(self) -> None:
        """Empty all slots; keep the scores."""
        self._held[:] = -1

    def look_up(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Return the slot of each row, or −1, and raise its score."""
        where = shift, self._held, self._ways, self._scores, self._bits
        return kernels.cache.look_up(rows, *where, self._gain)

    def admit(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Assign slots to the rows whose scores are high enough."""
        where = shift, self._held, self._ways, self._scores, self._bits
        return kernels.cache.admit(rows, *where)

    def wanted(self, count: int) -> Iterator[np.ndarray]:
        """Yield the rows with the highest scores that would fit, ascending, some ``count`` each."""
        scores, bits, at = self._scores, self._bits, 0  # other threads may resize
        least, left = kernels.cache.lowest_of(scores, self.num_slots >> bits)
        while at < len(scores):
            some = max(1, count >> bits)
            best, at, left = kernels.cache.highest(scores, at, least, left, some)
            rows = ((best << bits)[:, None] + np.arange(1 << bits)).ravel()
            yield rows[rows < self._num_rows]

    def num_held(self) -> int:
        """Return the number of rows in the cache."""
        return int((self._held >= 0).sum())

    def num_bytes(self) -> int:
        """Return the bytes of row numbers and scores."""
        return self._held.nbytes + self._scores.nbytes


class Chosen:
    """A fixed choice of rows, each kept from its first request on ("halo", "vip").

    Parameters
    ----------
    best : ndarray
        Shape (K,), int64: the numbers of the rows worth keeping, the best first. They take memory
        beside the cache's, for all features of a node type together.
    num_rows : int
        Number of all remote rows.

    Examples
    --------
    >>> import numpy as np
    >>> cache = Chosen(np.array([3, 1]), num_rows=5)
    >>> cache.resize(405, row_bytes=400)
    >>> cache.admit(np.arange(5), 0), cache.look_up(np.arange(5), 0)
    (array([-1, -1, -1,  0, -1]), array([-1, -1, -1,  0, -1]))
    """

    def __init__(self, best: np.ndarray, num_rows: int) -> None:
        self._best, self._dtype = best, _numbers(num_rows)

    def resize(self, num_bytes: int, row_bytes: int) -> None:
        """Choose as many of the best rows as fit."""
        self.num_slots = min(len(self._best), num_bytes // (row_bytes + self._dtype.itemsize + 1))
        self._rows = np.sort(self._best[: self.num_slots]).astype(self._dtype)
        self._filled = np.zeros(self.num_slots, bool)

    def clear(self) -> None:
        """Empty all slots."""
        self._filled[:] = False

    def _slots(self, rows: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
        numbers = rows.astype(self._dtype) + self._dtype.type(shift)
        slots = np.searchsorted(self._rows, numbers)
        slots[slots == self.num_slots] = 0
        return slots, self._rows[slots] == numbers

    def look_up(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Return the slot of each row, or −1."""
        slots, is_chosen = self._slots(rows, shift)
        return np.where(is_chosen & self._filled[slots], slots, -1)

    def admit(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Return the slots of chosen rows."""
        slots, is_chosen = self._slots(rows, shift)
        self._filled[slots[is_chosen]] = True
        return np.where(is_chosen, slots, -1)

    def wanted(self, count: int) -> Iterator[np.ndarray]:
        """Yield all chosen rows, ascending, ``count`` at a time."""
        for at in range(0, self.num_slots, count):
            yield self._rows[at : at + count].astype(np.int64)

    def num_held(self) -> int:
        """Return the number of rows in the cache."""
        return int(self._filled.sum())

    def num_bytes(self) -> int:
        """Return the bytes of row numbers and marks."""
        return self._rows.nbytes + self._filled.nbytes


class EpochReads:
    """The remote rows that the batches of an epoch need, with the next use of each.

    Parameters
    ----------
    batches : sequence of ndarray
        The row numbers of each batch; within a batch all differ.
    num_rows : int
        Number of all remote rows.

    Attributes
    ----------
    rows, following : ndarray
        Shape (requests,), int64 and int32: row, and number of the next batch that needs it again,
        or ``NEVER``.
    first : ndarray
        Shape (num_rows,), int32: number of the first batch that needs a row, or ``NEVER``.

    Examples
    --------
    >>> import numpy as np
    >>> int(EpochReads([np.array([2, 4]), np.array([4])], num_rows=5).following[1])
    1
    """

    def __init__(self, batches: Sequence[np.ndarray], num_rows: int) -> None:
        self.rows = np.concatenate([np.zeros(0, np.int64), *batches])
        number = np.repeat(np.arange(len(batches), dtype=np.int32), list(map(len, batches)))
        order = np.argsort(self.rows, kind="stable")
        again = np.flatnonzero(self.rows[order][1:] == self.rows[order][:-1])
        self.following = np.full(len(order), NEVER, np.int32)
        self.following[order[again]] = number[order[again + 1]]
        self.first = np.full(num_rows, NEVER, np.int32)
        self.first[self.rows[::-1]] = number[::-1]  # of equal indices, the last assignment counts


class Planned:
    """Belady's optimum for a known sequence of batches: evict the row needed last.

    A fetched row that no later batch needs is not kept. Reads that are not the next ones of the
    plan are answered from the cache and do not change it. The plan takes 12 bytes per remote row,
    and 12 per request, beside the cache's memory.

    Parameters
    ----------
    num_rows : int
        Number of all remote rows.

    Examples
    --------
    Room for one row: row 4 is needed again sooner than row 2, so it stays.

    >>> import numpy as np
    >>> batches = [np.array([2, 4]), np.array([4]), np.array([2])]
    >>> cache = Planned(num_rows=5)
    >>> cache.resize(4 + 400, row_bytes=400)
    >>> cache.follow(EpochReads(batches, num_rows=5))
    >>> for batch in batches:
    ...     cache.expect(batch)
    ...     missing = batch[cache.look_up(batch, 0) < 0]
    ...     slots = cache.admit(missing, 0)
    ...     print(missing)
    [2 4]
    []
    [2]
    """

    def __init__(self, num_rows: int) -> None:
        self._slot = np.full(num_rows, -1, np.int32)
        self._dtype = _numbers(num_rows)
        self.follow(EpochReads([], num_rows))

    def follow(self, plan: EpochReads) -> None:
        """Start a new plan; rows in the cache stay until others are needed sooner."""
        self._plan, self._at, self._next = plan, 0, plan.first.copy()

    def expect(self, numbers: np.ndarray) -> None:
        """Tell which rows are about to be looked up, in the order of the plan."""
        end = self._at + len(numbers)
        self._on_plan = np.array_equal(self._plan.rows[self._at : end], numbers)
        if self._on_plan:
            self._next[numbers] = self._plan.following[self._at : end]
            self._at = end

    def resize(self, num_bytes: int, row_bytes: int) -> None:
        """Make slots."""
        self.num_slots = min(len(self._slot), num_bytes // (row_bytes + self._dtype.itemsize))
        self._held = np.zeros(self.num_slots, self._dtype)
        self.clear()

    def clear(self) -> None:
        """Empty all slots."""
        self._slot[:] = -1
        self._num_held, self._on_plan = 0, False

    def look_up(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Return the slot of each row, or −1."""
        return self._slot[rows.astype(np.int64) + shift].astype(np.int64)

    def admit(self, rows: np.ndarray, shift: int) -> np.ndarray:
        """Assign slots to the rows that are needed sooner than rows in the cache."""
        slots = np.full(len(rows), -1, np.int64)
        if not self._on_plan:
            return slots
        numbers = rows.astype(np.int64) + shift
        new = np.flatnonzero((self._next[numbers] < NEVER) & (self._slot[numbers] < 0))
        free = np.arange(self._num_held, min(self.num_slots, self._num_held + len(new)))
        if len(free) < len(new):
            held = self._held[: self._num_held]
            # Of equal next uses, rows in the cache come first: nothing is copied in vain.
            wanted = np.concatenate([self._next[held] * 2.0, self._next[numbers[new]] * 2.0 + 1])
            keep = np.zeros(len(wanted), bool)
            keep[np.argpartition(wanted, self.num_slots - 1)[: self.num_slots]] = True
            evicted = np.flatnonzero(~keep[: len(held)])
            self._slot[held[evicted]] = -1
            new, free = new[keep[len(held) :]], np.concatenate([evicted, free])
        slots[new] = free
        self._slot[numbers[new]], self._held[free] = free, numbers[new]
        self._num_held = max(self._num_held, int(free.max(initial=-1)) + 1)
        return slots

    def wanted(self, count: int) -> Iterator[np.ndarray]:
        """Yield no rows: what is kept, and when, is for the plan to say."""
        return iter(())

    def num_held(self) -> int:
        """Return the number of rows in the cache."""
        return self._num_held

    def num_bytes(self) -> int:
        """Return the bytes of row numbers; those of the plan are not counted."""
        return self._held.nbytes


Placement = Scored | Chosen | Planned
"""Decides which rows are in which of ``num_slots`` slots; the number of a row is row + shift."""


def _numbers(num_rows: int) -> np.dtype[Any]:
    return np.dtype(np.int32 if num_rows < 1 << 31 else np.int64)


def ranked(scores: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows with a score above 0, the highest first; ties at random.

    Examples
    --------
    >>> import numpy as np
    >>> ranked(np.array([0.5, 0.0, 0.9]))
    array([2, 0], dtype=int32)
    """
    found = np.flatnonzero(scores > 0).astype(_numbers(len(scores)))
    ties = np.random.default_rng(0).random(len(found))
    return found[np.lexsort((ties, -scores[found]))]
