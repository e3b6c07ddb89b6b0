"""Answers to the exercises of lesson 07, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def bound(matrix: Any, bandwidth: Any) -> Any:
    return 8 * (matrix.sum(0) + matrix.sum(1)).max().item() / bandwidth


def bound_by_loop(matrix: Any, bandwidth: Any) -> Any:
    rows = np.asarray(matrix).tolist()
    used = [sum(rows[i]) + sum(row[i] for row in rows) for i in range(len(rows))]
    return np.float64(max(used) * 8 / bandwidth)


def largest(is_enough: Any) -> Any:
    """The largest number of machines whose speed-up is enough for a share of it."""
    return lambda machines, seconds, share: max(
        k for k, s in zip(machines, seconds, strict=True) if is_enough(k, seconds[0] / s, share)
    )


choose = largest(lambda k, faster, share: faster >= share * k)


def choose_backwards(machines: Any, seconds: Any, share: Any) -> Any:
    for k, s in reversed(list(zip(machines, seconds, strict=True))):
        if seconds[0] / s / k >= share:
            return torch.tensor(k)
    raise AssertionError


def stops(machines: Any, seconds: Any, share: Any) -> Any:
    best = 1
    for k, s in zip(machines, seconds, strict=True):
        if seconds[0] / s < share * k:
            break
        best = k
    return best


RIGHT: dict[int, list[Any]] = {
    1: [[1, 3]],
    2: [67, 67.2, 1000 * 8 * 2 * 12e6 * 4 * 7 / 8 / 10e9],
    3: [bound, bound_by_loop, lambda m, b: 8 * (m.sum(0) + m.sum(1)).max() / b],
    4: [choose, choose_backwards],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        ([3, 1], "1 order"),
        ([0, 1], "1 one layer"),
        ([0, 3], "1 structure"),
        ([3, 3], "1 last layer"),
        ([1, 2], "1 on the way"),
        ([4, 7], "1 local"),
        ([1, 4], "which"),
        ([1, 3, 0], "length"),
    ],
    2: [
        (34, "2 twice"),
        (33.6, "2 twice"),
        (77, "2 share"),
        (8.4, "2 bits"),
        (16.8, "2 four"),
        (0.0672, "2 seconds"),
        (537.6, "2 one link"),
        (60, ""),
    ],
    3: [
        (lambda m, b: bound(m, b) / 8, "3 bits"),
        (lambda m, b: 8 * max(m.sum(0).max(), m.sum(1).max()) / b, "3 shared"),
        (lambda m, b: 8 * m.sum(0).max() / b, "3 one way"),
        (lambda m, b: 8 * (m.sum(0).max() + m.sum(1).max()) / b, "3 machine"),
        (lambda m, b: 8 * m.sum() / b, "3 total"),
        (lambda m, b: 8 * m.max() / b, ""),
        (lambda m, b: bound(m, 2001), ""),
        (lambda m, b: 8 * (m.sum(0) + m.sum(1)) / b, "not a number"),
    ],
    4: [
        (stops, "4 stops"),
        (lambda k, s, share: 1, "4 largest"),
        (
            lambda k, s, share: sum(s[0] / t >= share * m for m, t in zip(k, s, strict=True)),
            "4 number",
        ),
        (largest(lambda k, faster, share: faster >= share), "4 ideal"),
        (largest(lambda k, faster, share: faster > share * k), "4 equal"),
        (largest(lambda k, faster, share: 1 / faster <= share * k), "4 ideal"),
        (
            lambda k, s, share: [m for m, t in zip(k, s, strict=True) if s[0] / t >= share * m],
            "not a number",
        ),
    ],
}
