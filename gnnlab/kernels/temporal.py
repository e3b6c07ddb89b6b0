"""Edges sorted by time, and lists of nodes that are seen at several times.

In a row whose edges are sorted by time, those up to a time are a prefix; a bisection finds its end.

Two seeds with different times may see the same node with different edges, so a mini-batch numbers
pairs (node, time). A hash table looks them up: an array over all pairs would be too large.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.kernels.dtypes import torch_ids_dtype
from gnnlab.kernels.jit import njit, prefetch, unsigned

_RUN = 32  # rows, or pairs, that are prefetched before the first is read
_FEW = 8  # the same for rows of pairs
_ONE, _TWO, _HALF = np.uint64(1), np.uint64(2), np.uint64(32)


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
        rows, at, out = (unsigned(x.numpy()) for x in (indptr, seeds, found))
        _spans(rows, times.numpy(), at, until.numpy(), np.uint64(most % 2**64), out)
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
            prefetch(times, hi - min(hi, _ONE))
            prefetch(times, (lo + hi) // _TWO)
        for i in range(start, stop):
            lo, end = found[2 * i], found[2 * i + 1]
            if lo < end and times[end - _ONE] > until[i]:  # else, the whole row is seen
                while lo < end:
                    middle = (lo + end) // _TWO
                    if times[middle] <= until[i]:
                        lo = middle + _ONE
                    else:
                        end = middle
                found[2 * i + 1] = end
            if end - found[2 * i] > most:  # −1 is larger than any degree
                found[2 * i] = end - most


class TimedNodes:
    """A growing list of distinct pairs (node, time) with the position of each.

    The pairs are in the order of their first appearance. ``known`` are all times, distinct, int64
    or float64; a pair's is given by its place there.

    Each time has a hash table of its own, a range of one array. Nodes that are added together have
    few times, so the part of the array that is in use stays in the processor's cache. Where a table
    would be as long as the list of all nodes, it is indexed by the nodes themselves.
    """

    def __init__(self, num_nodes: int, known: torch.Tensor) -> None:
        self.num_nodes, self.count, self._known = num_nodes, 0, known
        self._ids = torch.empty(0, dtype=torch_ids_dtype(num_nodes), device=known.device)
        self._places = torch.empty(0, dtype=torch.int32, device=known.device)
        self._table = np.empty(0, np.int32)
        self._ranges = np.zeros((2, len(known)), np.uint64)  # begin and length of each

    @property
    def ids(self) -> torch.Tensor:
        """The node of each pair."""
        return self._ids[: self.count]

    @property
    def places(self) -> torch.Tensor:
        """The place of each pair's time, int32."""
        return self._places[: self.count]

    @property
    def times(self) -> torch.Tensor:
        """The time of each pair."""
        return self._known.index_select(0, self.places)

    def add(self, ids: torch.Tensor, places: torch.Tensor, ptr: torch.Tensor) -> torch.Tensor:
        """Add the pairs that are not in the list yet; return the positions of all, int32.

        IDs ``ptr[i]:ptr[i + 1]`` have the time at ``places[i]``.
        """
        more, bound = self.count + len(ids) - len(self._ids), np.uint64(self.num_nodes)
        if more > 0:
            self._ids = torch.cat([self._ids, self._ids.new_empty(more)])
            self._places = torch.cat([self._places, self._places.new_empty(more)])
        known = unsigned(self._ids.numpy()), unsigned(self._places.numpy())
        new = unsigned(ids.numpy()), unsigned(places.numpy()), unsigned(ptr.numpy())
        size = _lay_out(self._ranges, known[1], self.count, *new[1:], bound)
        if size != len(self._table):  # else, no range has changed: they only grow
            self._table = np.full(int(size), -1, np.int32)
            _fill(self._table, self._ranges, *known, self.count, bound)
        local = torch.empty(len(ids), dtype=torch.int32)
        table = self._table, self._ranges, bound
        self.count = int(_add(*table, *known, self.count, *new, local.numpy()))
        return local


class TimedNodesOnDevice(TimedNodes):
    """As :class:`TimedNodes`, with torch operators, on any device."""

    def add(self, ids: torch.Tensor, places: torch.Tensor, ptr: torch.Tensor) -> torch.Tensor:
        """Add the pairs that are not in the list yet; return the positions of all, int32."""
        of = places.repeat_interleave(torch.diff(ptr), output_size=len(ids))
        before, ids, of = self.count, torch.cat([self.ids, ids]), torch.cat([self.places, of])
        group = torch.unique(ids.long() * len(self._known) + of, return_inverse=True)[1]
        place = torch.arange(len(ids), device=ids.device)
        first = torch.full_like(place, len(ids)).scatter_reduce_(0, group, place, "amin")
        first = torch.sort(first[first < len(ids)]).values
        self._ids, self._places, self.count = ids[first], of[first], len(first)
        number = torch.empty_like(place)
        number[group[first]] = place[: len(first)]
        return number[group[before:]].int()


def timed_nodes(num_nodes: int, known: torch.Tensor) -> TimedNodes:
    """Return a list of pairs (node, time), on the device of the times."""
    return (TimedNodes if known.device.type == "cpu" else TimedNodesOnDevice)(num_nodes, known)


def add_seeds(nodes: TimedNodes, ids: torch.Tensor, places: torch.Tensor) -> None:
    """Add the first pairs, whose nodes exist; raise if one stands twice with the same time."""
    local = nodes.add(ids, places, torch.arange(len(ids) + 1, device=ids.device))
    if nodes.count < len(ids):
        twice = torch.bincount(local) > 1
        node = int(nodes.ids[twice.nonzero()[0, 0]])
        raise InvalidInput(
            f"node {node} stands twice among the seeds with the same time; give each pair of node "
            "and time once in a batch"
        )


@njit(nogil=True, cache=True)
def _lay_out(ranges, places, count, of, ptr, num_nodes):  # type: ignore[no-untyped-def]
    """Divide the table by time, so that all pairs fill at most half of a range."""
    need, total = np.zeros(ranges.shape[1], np.uint64), np.uint64(0)
    for i in range(count):
        need[places[i]] += _TWO
    for i in range(len(of)):
        need[of[i]] += _TWO * (ptr[i + 1] - ptr[i])
    for i in range(len(need)):
        size = max(ranges[1, i], min(need[i], num_nodes))
        ranges[0, i], ranges[1, i] = total, size
        total += size
    return total


@njit(inline="always")
def _entry(node, size, num_nodes):  # type: ignore[no-untyped-def]
    if size == num_nodes:
        return np.uint64(node)
    bits = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    return (np.uint64(np.uint32(bits ^ (bits >> _HALF))) * size) >> _HALF


@njit(inline="always")
def _find(table, begin, size, num_nodes, ids, node):  # type: ignore[no-untyped-def]
    """Return the place in the table that holds a node, or the empty one where it belongs."""
    entry = _entry(node, size, num_nodes)
    while size < num_nodes and table[begin + entry] >= 0 and ids[table[begin + entry]] != node:
        entry = np.uint64(0) if entry + _ONE == size else entry + _ONE
    return begin + entry


@njit(nogil=True, cache=True)
def _fill(table, ranges, ids, places, count, num_nodes):  # type: ignore[no-untyped-def]
    for i in range(count):
        begin, size = ranges[0, places[i]], ranges[1, places[i]]
        table[_find(table, begin, size, num_nodes, ids, ids[i])] = i


@njit(nogil=True, cache=True)
def _add(  # type: ignore[no-untyped-def]
    table, ranges, num_nodes, ids, places, count, nodes, of, ptr, local
):
    for start in range(0, len(of), _FEW):
        stop = min(start + _FEW, len(of))
        for i in range(start, stop):
            begin, size = ranges[0, of[i]], ranges[1, of[i]]
            for e in range(ptr[i], ptr[i + 1]):
                prefetch(table, begin + _entry(nodes[e], size, num_nodes))
        for i in range(start, stop):
            begin, size = ranges[0, of[i]], ranges[1, of[i]]
            for e in range(ptr[i], ptr[i + 1]):
                at = _find(table, begin, size, num_nodes, ids, nodes[e])
                if table[at] < 0:
                    ids[count], places[count], table[at] = nodes[e], of[i], count
                    count += 1
                local[e] = table[at]
    return count
