"""Lesson 12: after training."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.exercises import judging
from gnnlab.exercises.judging import Wrong, function, number, sequence

Pairs = list[tuple[int, int]]
TOY: Pairs = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 1), (3, 2)]  # (account, shop)
MANY: Pairs = [(a, s) for a in range(12) for s in range(7) if (a * 5 + s * s) % 4 == 0]


def exercise_1(answer: Any) -> None:
    known = {(0, 1, 3): "1 itself", (4,): "1 features", (0, 2): "1 shops", (0, 1, 2, 3): "1 far"}
    judging.expect_ids(answer, [0, 1, 3, 4], known | {(0, 1, 2, 3, 4): "1 far"})


def exercise_2(answer: Any) -> None:
    known = {(1049, 29, 4): "2 again", (1048, 28, 4): "2 again", (1045, 25, 3): "2 last hop"}
    known |= {(1042, 24, 3): "2 last hop", (1045, 27, 3): "2 own"}
    known |= {(1046, 34, 4): "2 five", (1046, 33, 4): "2 five", (1046, 111, 4): "2 shops"}
    judging.expect_each(answer, [1046, 28, 4], known)


def exercise_3(answer: Any) -> None:
    affected = function(answer)
    several = [(20, 6), (3, 1), (20, 9)]
    for pays, new in ((TOY, [(4, 1), (4, 2)]), (TOY, [(0, 2)]), (TOY, [(2, 3)]), (MANY, several)):
        found = {number(each) for each in sequence(affected(list(pays), list(new)))}
        payers, shops, old = {a for a, _ in new}, {s for _, s in new}, {a for a, _ in pays}
        customers = {a for a, s in pays if s in shops}
        if found == (payers & old) | customers:
            continue
        visited = shops | {s for a, s in pays if a in payers}
        known = {"3 payers": customers, "3 customers": payers & old, "3 shops": shops}
        known |= {"3 new": payers | customers, "3 only new": payers}
        known["3 far"] = (payers & old) | {a for a, s in pays if s in visited}
        raise Wrong(_told(known, found))


def exercise_4(answer: Any) -> None:
    alarm = function(answer)
    falls = [
        ([8, 8, 7, 7, 5], 0.25),
        ([8, 7, 6, 5, 4], 0.25),
        ([8, 6, 8, 4], 0.25),
        ([4, 4, 5], 0.25),
    ]
    for counts, drop in (*falls, ([4, 3, 2], 0.25), ([6, 6, 3, 8], 0.375), ([8, 0, 0], 1.5)):
        days = [[i < count for i in range(8)] for count in counts]
        days[1:] = [day * 3 for day in days[1:]]  # days differ in size
        share, found = [count / 8 for count in counts], alarm([list(day) for day in days], drop)
        first = share[:1] * len(share)
        right = _first(drop, first, share)
        if (found is None) == (right is None) and (found is None or number(found) == right):
            continue
        known = {"4 before": _first(drop, share, share[1:], 1)}
        known["4 share"] = _first(drop * share[0], first, share)
        known["4 more"] = _first(drop + 1e-9, first, share)
        raise Wrong("4 none" if right is None else _told(known, found))


def _first(drop: float, before: list[float], now: list[float], start: int = 0) -> int | None:
    pairs = enumerate(zip(before, now, strict=False), start)
    return next((d for d, (x, y) in pairs if x - y >= drop), None)


def _told(known: dict[str, Any], found: Any) -> str:
    return next((why for why, wrong in known.items() if wrong == found), "")


def exercise_5(answer: Any) -> None:
    move = function(answer)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(2))
    rows = torch.arange(33.0).view(11, 3)
    old, new = order.split([5, 2, 4]), torch.arange(11).flip(0).split([4, 7])
    for wanted in (list(new), [torch.arange(11)], [*order.split(3), order[:0]]):
        found = sequence(move([(ids, rows[ids]) for ids in old], list(wanted)), len(wanted))
        for ids, one in zip(wanted, found, strict=True):
            got, joined = judging.tensor(one, rows[ids]), torch.cat([rows[each] for each in old])
            if torch.equal(got, rows[ids]):
                continue
            raise Wrong("5 order" if torch.equal(got, joined[ids]) else "")
