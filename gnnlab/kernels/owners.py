"""Routing row requests to the ranges of a distributed tensor.

The rows of a distributed tensor are divided into ranges, one per part. To read rows in any order,
group their IDs by range, send each range its request, and put the replies in the order of the
original request. If the IDs are sorted already, or all in one range, nothing is reordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from gnnlab.errors import OutOfRange
from gnnlab.kernels import gather, threads
from gnnlab.kernels.jit import njit

_GRAIN = 4096
_WORDS = ((8, torch.int64), (4, torch.int32), (2, torch.int16), (1, torch.uint8))


class Shard(NamedTuple):
    """The part of a request for one range.

    ``rows``, shape (K,), int64 or int32, are counted from the start of the range; ``positions``,
    ascending, are those of the rows in the request.
    """

    part: int
    rows: torch.Tensor
    positions: torch.Tensor | slice


def split(ids: torch.Tensor, offsets: np.ndarray, what: str = "row") -> list[Shard]:
    """Split a request for IDs, shape (K,), int64 or int32, into one per range.

    Range p has the IDs from ``offsets[p]`` to ``offsets[p + 1]`` − 1, where ``offsets``, shape
    (P + 1,), int64, ascends from 0. The result is in the order of the parts; parts without rows are
    left out. ``what`` says in the error message what an ID stands for.
    """
    if len(ids) == 0:
        return []
    low, high = (int(end) for end in ids.aminmax())
    if low < 0 or high >= offsets[-1]:
        raise OutOfRange(
            f"{what} {low if low < 0 else high} does not exist: IDs must be from 0 to "
            f"{offsets[-1] - 1}"
        )
    first, last = np.searchsorted(offsets, [low, high], side="right") - 1
    if first == last:
        return [Shard(int(first), _shift(ids, int(offsets[first])), slice(0, len(ids)))]
    counts, ascending = _count(ids.numpy(), offsets)
    begin = np.concatenate([[0], np.cumsum(counts)])
    present = np.flatnonzero(counts).tolist()
    if ascending:
        positions = {p: slice(int(begin[p]), int(begin[p + 1])) for p in present}
        return [Shard(p, _shift(ids[positions[p]], int(offsets[p])), positions[p]) for p in present]
    rows, order = torch.empty_like(ids), torch.empty(len(ids), dtype=torch.int64)
    _sort(ids.numpy(), offsets, begin[:-1].copy(), rows.numpy(), order.numpy())
    cuts = [(p, slice(int(begin[p]), int(begin[p + 1]))) for p in present]
    return [Shard(p, rows[cut], order[cut]) for p, cut in cuts]


def _shift(ids: torch.Tensor, first: int) -> torch.Tensor:
    return ids - first if first else ids


@njit(inline="always")
def _range_of(value, offsets):  # type: ignore[no-untyped-def]
    lo, hi = 0, len(offsets) - 1
    while hi - lo > 1:
        middle = (lo + hi) // 2
        if offsets[middle] <= value:
            lo = middle
        else:
            hi = middle
    return lo


@njit(nogil=True, cache=True)
def _count(ids, offsets):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(offsets) - 1, np.int64)
    ascending, previous = True, 0
    for i in range(len(ids)):
        part = _range_of(ids[i], offsets)
        counts[part] += 1
        ascending &= part >= previous
        previous = part
    return counts, ascending


@njit(nogil=True, cache=True)
def _sort(ids, offsets, at, rows, order):  # type: ignore[no-untyped-def]
    for i in range(len(ids)):
        part = _range_of(ids[i], offsets)
        rows[at[part]] = ids[i] - offsets[part]
        order[at[part]] = i
        at[part] += 1


def copy_rows(
    source: torch.Tensor,
    rows: torch.Tensor | None,
    target: torch.Tensor,
    positions: torch.Tensor | slice,
) -> None:
    """Write ``source[rows]``, or all rows, to ``target[positions]`` in one pass, on the CPU.

    ``source`` and ``target`` have shapes (N, …) and (M, …) of one dtype, contiguous; ``rows`` and
    ``positions`` shape (K,), int32 or int64, in range (not checked). If a place occurs twice and
    ``rows`` is None, the last row is kept.
    """
    if isinstance(positions, slice):
        if rows is None:
            target[positions] = source
        else:
            gather.copy_rows(source, rows, target[positions])
        return
    width = target[:1].numel() * target.element_size()
    if width == 0 or len(positions) == 0:
        return
    word = next(
        (dtype for size, dtype in _WORDS if width % size == 0 and _aligned(source, target, size)),
        torch.uint8,
    )
    old, new = (t.reshape(len(t), -1).view(word).numpy() for t in (source, target))
    to = positions.numpy()
    if rows is None:
        _scatter(old, new, to)
        return
    take = rows.numpy()
    threads.run_chunks(lambda lo, hi: _copy(old, new, take, to, lo, hi), len(to), _GRAIN)


def _aligned(source: torch.Tensor, target: torch.Tensor, size: int) -> bool:
    return all(t.storage_offset() * t.element_size() % size == 0 for t in (source, target))


@njit(nogil=True, cache=True)
def _copy(source, target, rows, positions, lo, hi):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        r, p = rows[i], positions[i]
        for j in range(source.shape[1]):
            target[p, j] = source[r, j]


@njit(nogil=True, cache=True)
def _scatter(source, target, positions):  # type: ignore[no-untyped-def]
    for i in range(len(positions)):
        p = positions[i]
        for j in range(source.shape[1]):
            target[p, j] = source[i, j]


class Merge:
    """Put the lists of all rows, of different lengths and grouped by part, in the request's order.

    The shards are from :func:`split`, of a request of ``num_rows`` rows; ``ptrs`` has the offsets
    of each one's lists: list i is ``values[ptr[i]:ptr[i + 1]]``. ``ptr``, shape (num_rows + 1,),
    int64, are those of the lists of all rows.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gnnlab.kernels import owners
    >>> shards = owners.split(torch.tensor([5, 0, 3]), np.array([0, 3, 6]))
    >>> merge = owners.Merge(shards, [torch.tensor([0, 2]), torch.tensor([0, 1, 2])], 3)
    >>> merge.ptr, merge([torch.tensor([7, 8]), torch.tensor([1, 2])])
    (tensor([0, 1, 3, 4]), tensor([1, 7, 8, 2]))
    """

    def __init__(self, shards: list[Shard], ptrs: Sequence[torch.Tensor], num_rows: int) -> None:
        self._positions = [shard.positions for shard in shards]
        self._ptrs = ptrs
        if self._positions == [slice(0, num_rows)]:
            self.ptr = ptrs[0]
            return
        self.ptr = torch.zeros(num_rows + 1, dtype=torch.int64)
        for positions, ptr in zip(self._positions, ptrs, strict=True):
            self.ptr[1:][positions] = torch.diff(ptr)
        torch.cumsum(self.ptr, 0, out=self.ptr)

    def __call__(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the values of all shards, one-dimensional, in the order of the request."""
        if all(isinstance(positions, slice) for positions in self._positions):
            return values[0] if len(values) == 1 else torch.cat(list(values))
        merged = gather.empty((int(self.ptr[-1]),), values[0].dtype)
        for positions, ptr, part in zip(self._positions, self._ptrs, values, strict=True):
            arrays = (positions, ptr, self.ptr, part, merged)
            _place_lists(*(array.numpy() for array in arrays))  # type: ignore[union-attr]
        return merged


@njit(nogil=True, cache=True)
def _place_lists(positions, begin, ptr, values, merged):  # type: ignore[no-untyped-def]
    for i in range(len(positions)):
        shift = ptr[positions[i]] - begin[i]
        for j in range(begin[i], begin[i + 1]):
            merged[j + shift] = values[j]
