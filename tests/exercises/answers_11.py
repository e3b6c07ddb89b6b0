"""Answers to the exercises of lesson 11, right and wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch


def lru(batches: Any, slots: Any, sign: int = 1, recent: int = -1) -> Any:
    fetched, held, last = 0, set[int](), dict[int, int]()
    for now, batch in enumerate(batches):
        fetched += len(set(batch) - held)
        last.update(dict.fromkeys(batch, now))
        rows = sorted(held | set(batch), key=lambda row: (recent * last[row], sign * row))
        held = set(rows[:slots])
    return fetched


def lru_by_list(batches: Any, slots: Any) -> Any:
    fetched, held = 0, list[int]()
    for batch in batches:
        fetched += sum(row not in held for row in batch)
        held = (sorted(batch) + [row for row in held if row not in batch])[:slots]
    return np.int64(fetched)


def first_in_first_out(batches: Any, slots: Any) -> Any:
    fetched, held = 0, list[int]()
    for batch in batches:
        new = sorted(row for row in batch if row not in held)
        fetched += len(new)
        held = (new + held)[:slots]
    return fetched


def most_often(batches: Any, slots: Any) -> Any:
    fetched, held, counts = 0, set[int](), Counter[int]()
    for batch in batches:
        fetched += len(set(batch) - held)
        counts.update(batch)
        held = set(sorted(held | set(batch), key=lambda row: (-counts[row], row))[:slots])
    return fetched


def planned(batches: Any, slots: Any) -> Any:
    fetched, held = 0, set[int]()
    for now, batch in enumerate(batches):
        fetched += len(set(batch) - held)
        coming: dict[int, int] = {}
        for later in range(len(batches) - 1, now, -1):
            coming.update(dict.fromkeys(batches[later], later))
        held = set(sorted((held | set(batch)) & set(coming), key=lambda row: coming[row])[:slots])
    return fetched


RIGHT: dict[int, list[Any]] = {
    1: [53.9, 188_339 * 100 * 4 * 3 / 4 / 2**20, np.float32(53.9), torch.tensor([53.9])],
    2: [0.41, 0.43, 0.1 * (16.7 - 5.71) / (16.7 - 14.0), np.float64(0.42), torch.tensor(0.41)],
    3: [lru, lru_by_list, lambda batches, slots: torch.tensor(lru(batches, slots))],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (71.8, "1 all"),
        (56.5, "1 MiB"),
        (18.0, ""),
        (17.96, "1 own"),
        (13.47, "1 bytes"),
        (431.1, "1 bits"),
        (54, ""),
        ("53.9 MiB", "not a number"),
    ],
    2: [
        (0.2457, "2 alpha"),
        (0.464, "2 alpha"),
        (2.457, "2 inverse"),
        (0.6185, "2 complete"),
        (41, "2 percent"),
        (0.5, ""),
        ([0.41, 0.43], "not a number"),
    ],
    3: [
        (lambda batches, slots: lru(batches, slots, sign=-1), "3 ties"),
        (first_in_first_out, "3 first"),
        (lambda batches, slots: lru(batches, slots, recent=1), "3 oldest"),
        (most_often, "3 often"),
        (lambda batches, slots: lru(batches, 99), "3 size"),
        (lambda batches, slots: lru(batches, 0), "3 none"),
        (planned, ""),
        (lambda batches, slots: lru(batches, slots + 1), ""),
        (lambda batches, slots: None, "not a number"),
    ],
}
