"""Which rows to keep at hand when there is not room for all.

A cache is cut into sets of a few slots, as that of a processor is. A row has one set in which it
may lie, found by a division, so looking it up reads a few numbers that lie side by side. A score
says what keeping a row is worth. A row that comes takes an empty slot of its set, else that of the
row with the least score, if that is less than its own.

References
----------
Hennessy and Patterson, "Computer Architecture: A Quantitative Approach", appendix B, "Review of
Memory Hierarchy".
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels.jit import njit

__all__ = ["admit", "look_up"]

_MOST = np.iinfo(np.uint16).max


@njit(nogil=True, cache=True)
def look_up(rows, shift, held, ways, scores, bits, gain):  # type: ignore[no-untyped-def]
    """Find the slots of rows, and raise their scores.

    Parameters
    ----------
    rows : ndarray
        Shape (K,), int64 or int32.
    shift : int
        What is added to get the numbers of the rows, 0 or more.
    held : ndarray
        Shape (S · ways,), int64 or int32: number of the row in each slot, or −1.
    ways : int
        Slots of a set.
    scores : ndarray
        Shape (M,), uint16. Row r has ``scores[r >> bits]``: neighbors may share one.
    bits : int
    gain : int
        What each request adds to the score of its row, up to the largest number.

    Returns
    -------
    ndarray
        Shape (K,), int64: slot of each row, or −1.
    """
    slots = np.empty(len(rows), np.int64)
    num_sets = len(held) // ways
    for i in range(len(rows)):
        row = rows[i] + shift
        scores[row >> bits] = min(_MOST, scores[row >> bits] + gain)
        first = row % num_sets * ways
        slots[i] = -1
        for slot in range(first, first + ways):
            if held[slot] == row:
                slots[i] = slot
                break
    return slots


@njit(nogil=True, cache=True)
def admit(rows, shift, held, ways, scores, bits):  # type: ignore[no-untyped-def]
    """Give slots to rows that are worth it; the content of a slot is to be written by the caller.

    Parameters are those of :func:`look_up`.

    Returns
    -------
    ndarray
        Shape (K,), int64: slot of each row, or −1 for those that are not kept, or held already. No
        slot stands twice.
    """
    slots = np.empty(len(rows), np.int64)
    num_sets = len(held) // ways
    for i in range(len(rows)):
        row = rows[i] + shift
        first = row % num_sets * ways
        best, least = -1, scores[row >> bits]
        for slot in range(first, first + ways):
            other = held[slot]
            if other == row:
                best = -1
                break
            if other < 0:  # slots fill up in order, so the row is in none of the rest
                best = slot
                break
            if scores[other >> bits] < least:
                best, least = slot, scores[other >> bits]
        slots[i] = best
        if best >= 0:
            held[best] = row
    for i in range(len(rows)):
        if slots[i] >= 0 and held[slots[i]] != rows[i] + shift:
            slots[i] = -1  # a later row has taken its slot
    return slots
