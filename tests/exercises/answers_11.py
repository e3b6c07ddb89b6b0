"""Answers to the exercises of lesson 11, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def policy(rank: Any) -> Any:
    """Rows fetched by a cache that holds those of the lowest rank after each batch."""

    def count(batches: Any, slots: Any) -> Any:
        fetched, held = 0, set[int]()
        for now, batch in enumerate(batches, 1):
            fetched += len(set(batch) - held)
            ranks = {row: rank(row, batches[:now], batches[now:]) for row in held | set(batch)}
            held = set(sorted(ranks, key=ranks.get)[:slots])
        return fetched

    return count


def last(row: int, past: Any) -> int:
    return max(now for now, batch in enumerate(past) if row in batch)


def planned(row: int, past: Any, later: Any) -> int:
    return next((now for now, batch in enumerate(later) if row in batch), 99)


lru = policy(lambda row, past, later: (-last(row, past), row))


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


RIGHT: dict[int, list[Any]] = {
    1: [53.9, 188_339 * 100 * 4 * 3 / 4 / 2**20],
    2: [0.41, 0.43, 0.1 * (16.7 - 5.71) / (16.7 - 14.0)],
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
    ],
    2: [
        (0.2457, "2 alpha"),
        (0.464, "2 alpha"),
        (2.457, "2 inverse"),
        (0.6185, "2 complete"),
        (41, "2 percent"),
        (0.5, ""),
    ],
    3: [
        (policy(lambda row, past, later: (-last(row, past), -row)), "3 ties"),
        (first_in_first_out, "3 first"),
        (policy(lambda row, past, later: (last(row, past), row)), "3 oldest"),
        (policy(lambda row, past, later: (-sum(row in b for b in past), row)), "3 often"),
        (lambda batches, slots: lru(batches, 99), "3 size"),
        (lambda batches, slots: lru(batches, 0), "3 none"),
        (
            policy(lambda row, past, later: next((i for i, b in enumerate(later) if row in b), 99)),
            "",
        ),
        (lambda batches, slots: lru(batches, slots + 1), ""),
        (lambda batches, slots: None, "not a number"),
    ],
}
