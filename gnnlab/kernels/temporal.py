"""Edges sorted by time, and lists of nodes that are seen at several times.

In a row whose edges are sorted by time, those up to a time are a prefix: one bisection finds where
it ends, and a sampler of rows does the rest.

Two seeds with different times may see the same node with different edges, so a mini-batch numbers
pairs (node, time). A hash table knows which pairs are in the list: an array with an entry for each
would be larger than the graph.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit, prefetch, unsigned
from gnnlab.kernels.rng import mix

_RUN = 32  # rows, or pairs, that are prefetched before the first is read
_SHORT, _LINE = np.uint64(64), np.uint64(8)  # slots of a row to prefetch, and of a cache line
_ONE, _TWO = np.uint64(1), np.uint64(2)


def row_order(indptr: torch.Tensor, times: torch.Tensor) -> torch.Tensor | None:
    """Return the order of slots that sorts each row by time; None if all rows are sorted.

    ``times``, shape (E,), are those of the slots. Edges of the same time keep their order.
    """
    falls = times[1:] < times[:-1]
    first = indptr[(indptr > 0) & (indptr < len(times))]
    falls[first - 1] = False  # from one row to the next
    if not bool(falls.any()):
        return None
    order = torch.sort(times, stable=True).indices
    rows = torch.repeat_interleave(torch.diff(indptr), output_size=len(times))
    return order[torch.sort(rows[order], stable=True).indices]


def spans(
    indptr: torch.Tensor, times: torch.Tensor, seeds: torch.Tensor, until: torch.Tensor, most: int
) -> torch.Tensor:
    """Return for each seed the first and the end of the slots that are not later than the seed.

    ``times``, shape (E,), int64 or float64, ascend in each row; ``seeds`` and ``until``, shape
    (S,), are rows, and times of the same dtype. A span begins ``most`` slots before its end; −1
    stands for the whole row. The result has shape (2 · S + 1,), int64: begin and end of each seed,
    then E.
    """
    if times.device.type == "cpu":
        found = torch.empty(2 * len(seeds) + 1, dtype=torch.int64)
        found[-1] = len(times)
        arrays = [unsigned(x.numpy()) for x in (indptr, seeds, found)]
        _spans(
            arrays[0], times.numpy(), arrays[1], until.numpy(), np.uint64(most % 2**64), arrays[2]
        )
        return found
    begin = lo = indptr[seeds.long()]
    hi = indptr[seeds.long() + 1]
    for _ in range(len(times).bit_length()):
        middle = (lo + hi) // 2
        is_past = times[middle.clamp(max=len(times) - 1)] > until
        is_open = lo < hi
        lo = torch.where(is_open & ~is_past, middle + 1, lo)
        hi = torch.where(is_open & is_past, middle, hi)
    begin = begin if most < 0 else torch.maximum(begin, lo - most)
    return torch.cat([torch.stack([begin, lo], 1).flatten(), lo.new_full((1,), len(times))])


@njit(nogil=True, cache=True)
def _spans(indptr, times, seeds, until, most, found):  # type: ignore[no-untyped-def]
    for start in range(0, len(seeds), _RUN):
        stop = min(start + _RUN, len(seeds))
        for i in range(start, stop):
            prefetch(indptr, seeds[i])
        for i in range(start, stop):
            lo, hi = indptr[seeds[i]], indptr[seeds[i] + _ONE]
            found[2 * i], found[2 * i + 1] = lo, hi
            prefetch(times, (lo + hi) // _TWO)
            for slot in range(lo, min(hi, lo + _SHORT), _LINE):
                prefetch(times, slot)
        for i in range(start, stop):
            lo, hi = found[2 * i], found[2 * i + 1]
            while lo < hi:
                middle = (lo + hi) // _TWO
                if times[middle] <= until[i]:
                    lo = middle + _ONE
                else:
                    hi = middle
            if lo - found[2 * i] > most:  # −1 is larger than any degree
                found[2 * i] = lo - most
            found[2 * i + 1] = lo


class TimedNodes:
    """A growing list of distinct pairs (node, time) with the position of each.

    The pairs are in the order of their first appearance.
    """

    def __init__(self, num_nodes: int, dtype: torch.dtype) -> None:
        self.num_nodes, self.count, self._dtype = num_nodes, 0, dtype
        self._ids, self._times = np.empty(0, ids_dtype(num_nodes)), np.empty(0, np.int64)
        self._table = np.full(1, -1, np.int32)

    @property
    def ids(self) -> torch.Tensor:
        """The node of each pair."""
        return torch.from_numpy(self._ids[: self.count])

    @property
    def times(self) -> torch.Tensor:
        """The time of each pair."""
        return torch.from_numpy(self._times[: self.count]).view(self._dtype)

    def add(self, ids: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Add the pairs that are not in the list yet; return the positions of all, int32."""
        room = self.count + len(ids)
        if 2 * room > len(self._table):
            size = 1 << (2 * room).bit_length()
            self._ids = np.concatenate([self._ids, np.empty(size // 2, self._ids.dtype)])
            self._times = np.concatenate([self._times, np.empty(size // 2, np.int64)])
            self._table = np.full(size, -1, np.int32)
            _fill(self._table, self._ids, self._times, self.count)
        local = np.empty(len(ids), np.int32)
        new = unsigned(ids.numpy()), times.view(torch.int64).numpy()
        self.count = int(_add(self._table, self._ids, self._times, self.count, *new, local))
        return torch.from_numpy(local)


class TimedNodesOnDevice:
    """As :class:`TimedNodes`, with torch operators, on any device."""

    def __init__(self, num_nodes: int, dtype: torch.dtype, device: torch.device) -> None:
        self.num_nodes = num_nodes
        self.ids = torch.empty(0, dtype=torch.int64, device=device)
        self.times = torch.empty(0, dtype=dtype, device=device)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.ids)

    def add(self, ids: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Add the pairs that are not in the list yet; return the positions of all, int32."""
        before, ids, times = self.count, torch.cat([self.ids, ids]), torch.cat([self.times, times])
        pairs = torch.stack([ids, times.view(torch.int64)], 1)
        group = torch.unique(pairs, dim=0, return_inverse=True)[1]
        place = torch.arange(len(ids), device=ids.device)
        first = torch.full_like(place, len(ids)).scatter_reduce_(0, group, place, "amin")
        first = torch.sort(first[first < len(ids)]).values
        self.ids, self.times = ids[first], times[first]
        number = torch.empty_like(place)
        number[group[first]] = place[: len(first)]
        return number[group[before:]].int()


def timed_nodes(
    num_nodes: int, dtype: torch.dtype, device: torch.device
) -> TimedNodes | TimedNodesOnDevice:
    """Return a list of pairs (node, time) for a device; times are int64 or float64."""
    if device.type == "cpu":
        return TimedNodes(num_nodes, dtype)
    return TimedNodesOnDevice(num_nodes, dtype, device)


def add_seeds(
    nodes: TimedNodes | TimedNodesOnDevice, ids: torch.Tensor, times: torch.Tensor
) -> None:
    """Add the first pairs; raise if a node does not exist, or stands twice with the same time."""
    wrong = (ids < 0) | (ids >= nodes.num_nodes)
    if bool(wrong.any()):
        raise OutOfRange(
            f"node {int(ids[wrong][0])} does not exist: the graph has nodes 0 to "
            f"{nodes.num_nodes - 1}"
        )
    local = nodes.add(ids, times)
    if nodes.count < len(ids):
        twice = torch.bincount(local) > 1
        node = int(nodes.ids[twice.nonzero()[0, 0]])
        raise InvalidInput(
            f"node {node} stands twice among the seeds with the same time; give each pair of node "
            "and time once in a batch"
        )


@njit(inline="always")
def _entry(table, node, time):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    return mix(np.uint64(node) + np.uint64(time) * np.uint64(0x9E3779B97F4A7C15)) & mask


@njit(inline="always")
def _place(table, ids, times, node, time):  # type: ignore[no-untyped-def]
    """Return the entry of the table that holds a pair, or the empty one where it belongs."""
    entry, mask = _entry(table, node, time), np.uint64(len(table) - 1)
    while table[entry] >= 0 and (ids[table[entry]] != node or times[table[entry]] != time):
        entry = (entry + _ONE) & mask
    return entry


@njit(nogil=True, cache=True)
def _fill(table, ids, times, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        table[_place(table, ids, times, ids[i], times[i])] = i


@njit(nogil=True, cache=True)
def _add(table, ids, times, count, new, of, local):  # type: ignore[no-untyped-def]
    last = len(new) - 1
    for i in range(len(new)):
        ahead = min(i + _RUN, last)
        prefetch(table, _entry(table, new[ahead], of[ahead]))
        entry = _place(table, ids, times, new[i], of[i])
        if table[entry] < 0:
            ids[count], times[count], table[entry] = new[i], of[i], count
            count += 1
        local[i] = table[entry]
    return count
