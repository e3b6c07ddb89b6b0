"""Sets of slots: rows are found again, the worthier stay, and no slot is given twice."""

from __future__ import annotations

import numpy as np
import pytest

from gnnlab.kernels import cache


def slow_admit(rows: list[int], held: list[int], ways: int, scores: list[int], bits: int) -> None:
    """Put one row after the other where it belongs."""
    for row in rows:
        first = row % (len(held) // ways) * ways
        slots = range(first, first + ways)
        if any(held[s] == row for s in slots):
            continue
        worst = min(slots, key=lambda s: -1 if held[s] < 0 else scores[held[s] >> bits])
        if held[worst] < 0 or scores[held[worst] >> bits] < scores[row >> bits]:
            held[worst] = row


@pytest.mark.parametrize("ways", [1, 3, 8])
@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_as_one_row_after_the_other(ways: int, bits: int, dtype: type) -> None:
    rng = np.random.default_rng(ways)
    held = np.full(5 * ways, -1, dtype)
    expected = held.tolist()
    content = np.full(5 * ways, -1, np.int64)
    scores = rng.integers(0, 99, (500 >> bits) + 1).astype(np.uint16)
    scores[3] = 65_530
    before = scores.copy()
    for _ in range(30):
        rows = rng.integers(0, 500, 40).astype(dtype)
        found = cache.look_up(rows - dtype(7), 7, held, ways, scores, bits, 2)
        for row, slot in zip(rows.tolist(), found.tolist(), strict=True):
            assert (held[slot] == row) if slot >= 0 else (row not in held)
            before[row >> bits] = min(65_535, int(before[row >> bits]) + 2)
        np.testing.assert_array_equal(scores, before)
        slots = cache.admit(rows - dtype(7), 7, held, ways, scores, bits)
        slow_admit(rows.tolist(), expected, ways, scores.tolist(), bits)
        assert held.tolist() == expected
        taken = slots[slots >= 0]
        assert len(set(taken.tolist())) == len(taken)
        content[taken] = rows[slots >= 0]
        np.testing.assert_array_equal(content, held)
