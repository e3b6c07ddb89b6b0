"""A set-associative cache of rows: which rows to keep when there is no room for all.

Like a processor's cache, it is divided into sets of a few slots. A row can only be in one set, its
number modulo the number of sets, so a lookup reads a few adjacent numbers. Each row has a score. A
new row takes an empty slot of its set, or else replaces the row with the lowest score in the set,
if that is lower than its own.

References
----------
Hennessy and Patterson, "Computer Architecture", appendix B, "Review of Memory Hierarchy".
"""

import numpy as np

from gnnlab.kernels.jit import njit

_MOST = np.iinfo(np.uint16).max
_CERTAIN = -1000.0  # logarithm of the probability that something certain does not happen


@njit(nogil=True, cache=True)
def look_up(rows, shift, held, ways, scores, bits, gain):  # type: ignore[no-untyped-def]
    """Return the slot of each row, or −1: shape (K,), int64; and increase the scores of the rows.

    Parameters
    ----------
    rows, shift : ndarray, int
        The numbers of the rows are ``rows + shift``: shape (K,), int64 or int32.
    held, ways : ndarray, int
        Shape (S · ways,), int64 or int32: number of the row in each slot, or −1; slots of a set.
    scores, bits : ndarray, int
        Shape (M,), uint16. Row r has ``scores[r >> bits]``: adjacent rows may share one.
    gain : int
        Added to the score of a row by each request, up to the largest uint16.
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
def lowest_of(scores, count):  # type: ignore[no-untyped-def]
    """Return the lowest of the ``count`` highest uint16 scores, and how many of them are equal."""
    numbers = np.zeros(_MOST + 1, np.int64)
    for score in scores:
        numbers[score] += 1
    least, left = _MOST, count  # the lowest score that is taken, and how many with it
    while least > 0 and numbers[least] < left:
        left -= numbers[least]
        least -= 1
    return least, left


@njit(nogil=True, cache=True)
def highest(scores, at, least, left, count):  # type: ignore[no-untyped-def]
    """Return up to ``count`` places, ascending from ``at``, with :func:`lowest_of`'s result.

    Of equal scores the first are taken. Also returns the next ``at`` and ``left``: unlike sorting,
    this takes memory only for some places at a time.
    """
    places, found = np.empty(min(count, len(scores) - at), np.int64), 0
    while at < len(scores) and found < count:
        if scores[at] > least or (scores[at] == least and left > 0):
            left -= scores[at] == least
            places[found] = at
            found += 1
        at += 1
    return places[:found], at, left


@njit(nogil=True, cache=True)
def count_sources(sources, low, num_inner, halo, out):  # type: ignore[no-untyped-def]
    """Add to each node the number of edges that leave it; return whether all sources exist.

    Local IDs below ``num_inner`` are of the nodes from ``low`` on, the others of those in ``halo``.
    """
    for source in sources:
        if not 0 <= source < num_inner + len(halo):
            return False
        node = source + low if source < num_inner else halo[source - num_inner]
        if not 0 <= node < len(out):
            return False
        out[node] += 1
    return True


@njit(nogil=True, cache=True)
def admit(rows, shift, held, ways, scores, bits):  # type: ignore[no-untyped-def]
    """Assign slots to rows whose score suffices; the caller writes the content of the slots.

    Returns the slot of each row, or −1 for rows that are not kept, or held already. No slot occurs
    twice. Parameters are those of :func:`look_up`.
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


@njit(nogil=True, cache=True)
def add_misses(indptr, indices, rows, probs, fanout, replace, out):  # type: ignore[no-untyped-def]
    """Add to each node the logarithm of the probability that no row samples it.

    ``indptr`` and ``indices`` are in-edges of each row, and their sources. The rows, shape (K,),
    sample ``fanout`` neighbors (−1 for all), each with a probability in ``probs``, float64.
    ``out``, float64, has an entry for each source. Returns False at a source that it lacks.
    """
    for i in range(len(rows)):
        first, last = indptr[rows[i]], indptr[rows[i] + 1]
        degree, share = last - first, 1.0
        if replace and fanout >= 0 and degree:
            share = 1 - (1 - 1 / degree) ** fanout
        elif 0 <= fanout < degree:
            share = fanout / degree
        prob = probs[i] * share
        change = np.log1p(-prob) if prob < 1 else _CERTAIN
        for source in indices[first:last]:
            if not 0 <= source < len(out):
                return False
            out[source] += change
    return True
