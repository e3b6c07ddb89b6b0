"""Answers to the exercises of lesson 10, right and wrong."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch


def rate(asks: Any, size: Any) -> Any:
    return float(asks.sort(descending=True).values[:size].sum() / asks.sum())


def rate_by_list(asks: Any, size: Any) -> Any:
    counts = sorted(asks.tolist(), reverse=True)
    return np.float64(sum(counts[:size]) / sum(counts))


def chosen(is_in_time: Any, best: Any = min) -> Any:
    """A choice among the offers that are in time."""

    def choose(offers: Any, deadline: Any) -> Any:
        found = [(cost, name) for cost, hours, name in offers if is_in_time(hours, deadline)]
        return best(found, default=(None, None))[1]

    return choose


cheapest = chosen(operator.le)


def cheapest_by_loop(offers: Any, deadline: Any) -> Any:
    best, name = float("inf"), None
    for cost, hours, other in offers:
        if hours <= deadline and cost < best:
            best, name = cost, other
    return name


def seconds(rows: Any, gigabytes: Any, row: Any, more: float = 0.002, seeds: int = 250_000) -> Any:
    return rows * row + gigabytes / 1.15 + seeds / 128 * more


def moving(remote: Any, machines: Any) -> Any:
    if machines == 1:
        return 0.0
    ring = 2 * (machines - 1) * (302_268 / machines / 1.15e9 + 1e-4)
    return 2 * (2e-4 + (machines - 1) * 1e-4) + remote * 408 / 1.15e9 + ring


def hours(machines: Any, share: Any, row: Any, work: bool = True, rows: int = 128 * 93) -> Any:
    step = work * rows * row + moving(rows * share, machines)
    return 10_000_000 / 128 * step / 3600


RIGHT: dict[int, list[Any]] = {
    1: [1_056_000],
    2: [31.2, 31.16],
    3: [10, 25e6 * 8 / 0.020 / 1e9],
    4: [rate, rate_by_list, lambda asks, size: asks.topk(size).values.sum() / asks.sum()],
    5: [cheapest, cheapest_by_loop],
    6: [[[3, 4], [18, 27], [2, 9]], [[3, 4], [18, 27], [2.13, 9.26]]],
    7: [
        seconds,
        lambda rows, gb, row: rows * row + gb / 1.15 + 1954 * 0.002,
        lambda rows, gb, row: torch.tensor(seconds(rows, gb, row)),
    ],
    8: [hours, lambda k, share, row: torch.tensor(hours(k, share, row) / k) * k],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [(750_000, "1 itself"), (916_000, "1 again"), (1056, "1 one seed"), (15_488, "")],
    2: [
        (30.72, "2 IDs"),
        (41.6, "2 remote"),
        (3.9, "2 bits"),
        (0.0312, "2 seconds"),
        (8.16, "2 row"),
        (33.9, "2 full"),
        (31.0, ""),
    ],
    3: [(1.25, "3 bits"), (10e9, "3 unit"), (0.01, "3 ms"), (8, ""), ("10", "not a number")],
    4: [
        (lambda asks, size: asks[:size].sum() / asks.sum(), "4 order"),
        (lambda asks, size: asks.sort().values[:size].sum() / asks.sum(), "4 least"),
        (lambda asks, size: asks.topk(size).values.sum(), "4 rate"),
        (lambda asks, size: asks.topk(size).values.sum() / asks.max() / len(asks), ""),
        (lambda asks, size: rate(asks, size + 1), "4 off"),
        (lambda asks, size: size / len(asks), "4 rows"),
        (lambda asks, size: rate(asks, 2), ""),
        (lambda asks, size: asks.topk(size).values.sum() / 10, ""),
        (lambda asks, size: asks.topk(size).values, "not a number"),
    ],
    5: [
        (chosen(operator.lt), "5 within"),
        (chosen(operator.le, max), ""),
        (lambda offers, limit: min(offers, key=lambda offer: offer[1])[2], "5 fastest"),
        (lambda offers, limit: min(offers)[2], "5 late"),
        (lambda offers, limit: cheapest(offers, limit) or "a", "5 none"),
        (lambda offers, limit: min(o for o in offers if o[1] <= limit), "5 tuple"),
        (lambda offers, limit: min(o for o in offers if o[1] <= limit)[2], "ValueError"),
    ],
    6: [
        ([[2, 3], [18, 27], [2, 9]], "6 up"),
        ([[2, 2], [18, 27], [2, 9]], "6 half"),
        ([[3, 4], [72, 108], [2, 9]], "6 each"),
        ([[3, 4], [18, 27], [9, 37]], "6 trainers"),
        ([[3, 4], [18, 27], [6, 12]], "6 remote"),
        ([[4, 3], [27, 18], [9, 2]], "6 order"),
        ([[3, 4], [18, 27], [5, 9]], "which"),
        ([[3, 4], [18, 27]], "length"),
        ([3, 4, 18, 27, 2, 9], "length"),
    ],
    7: [
        (lambda rows, gb, row: seconds(rows, gb, row, 0), "7 more"),
        (lambda rows, gb, row: seconds(rows, gb, row, seeds=1_000_000), "7 trainers"),
        (lambda rows, gb, row: seconds(rows, gb, row, 2), "7 ms"),
        (lambda rows, gb, row: seconds(rows, gb * 8, row), "7 bits"),
        (lambda rows, gb, row: seconds(rows, gb * 1.15 / 1.25, row), "7 headers"),
        (lambda rows, gb, row: max(rows * row, gb / 1.15) + 1953 * 0.002, "7 sum"),
        (lambda rows, gb, row: seconds(rows, gb, row, 0) + 0.002, "7 more"),
        (lambda rows, gb, row: 65.91, ""),
    ],
    8: [
        (lambda k, share, row: hours(k, share, row) / k, "8 machines"),
        (lambda k, share, row: hours(k, share, row) * k, "8 divided"),
        (lambda k, share, row: hours(k, share, row) * 3600, "8 seconds"),
        (lambda k, share, row: hours(k, share, row, work=False), "8 work"),
        (lambda k, share, row: hours(k, 1, row), "8 remote"),
        (lambda k, share, row: hours(k, share, row, rows=93), "8 seeds"),
        (lambda k, share, row: hours(k, share, row) * 128, "8 batches"),
        (lambda k, share, row: hours(47, share, row), ""),
    ],
}
