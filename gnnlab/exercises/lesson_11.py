"""Lesson 11: published claims, checked by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, function, number

TOY = [[], [], [4], [1, 2], [4], [], [4, 7], [2, 7]]  # remote rows of the lesson's toy batches


def exercise_1(answer: Any) -> None:
    known = {71.85: "1 all", 75.34: "1 all", 56.5: "1 MiB", 17.96: "1 own", 18.8: "1 own"}
    known |= {13.47: "1 bytes", 14.13: "1 bytes", 431.1: "1 bits", 452.0: "1 bits"}
    expect(answer, 53.9, known, tolerance=0.001)


def exercise_2(answer: Any) -> None:
    found = number(answer)
    if not 0.38 <= found <= 0.46:
        known = {0.2457: "2 alpha", 0.4641: "2 alpha", 2.457: "2 inverse", 2.32: "2 inverse"}
        known |= {0.6185: "2 complete", 0.6549: "2 complete", 41: "2 percent", 43: "2 percent"}
        expect(found, 0.42, known, tolerance=0.003)


def exercise_3(answer: Any) -> None:
    lru = function(answer)
    generator = torch.Generator().manual_seed(8)
    many = [torch.randperm(9, generator=generator)[:4].tolist() for _ in range(12)]
    ties = [[4], [1, 2, 3], [3], [4], [1, 3]]
    cases = [(many, 3), (many, 5), (ties, 2), ([[1, 2], [3], [1], [2, 3]], 2)]
    for batches, slots in [*cases, *((TOY, k) for k in (0, 1, 2, 4))]:
        found = number(lru([list(batch) for batch in batches], slots))
        if found == _fetched(batches, slots, lambda last, new, often, row: (-last, row)):
            continue
        others: dict[str, Callable[..., Any]] = {
            "3 ties": lambda last, new, often, row: (-last, -row),
            "3 first": lambda last, new, often, row: (-new, row),
            "3 oldest": lambda last, new, often, row: (last, row),
            "3 often": lambda last, new, often, row: (-often, row),
        }
        known = {why: _fetched(batches, slots, key) for why, key in others.items()}
        known["3 size"] = len(set().union(*batches))
        known["3 none"] = sum(map(len, batches))
        raise Wrong(next((why for why, rows in known.items() if rows == found), ""))


def _fetched(batches: list[list[int]], slots: int, key: Callable[..., Any]) -> int:
    """Rows fetched by a cache that keeps the rows with the smallest keys after each batch."""
    fetched, held = 0, set[int]()
    last, new, often = dict[int, int](), dict[int, int](), Counter[int]()
    for now, batch in enumerate(batches):
        fetched += len(set(batch) - held)
        new.update(dict.fromkeys(set(batch) - held, now))
        last.update(dict.fromkeys(batch, now))
        often.update(batch)
        rows = held | set(batch)
        held = set(sorted(rows, key=lambda row: key(last[row], new[row], often[row], row))[:slots])
    return fetched
