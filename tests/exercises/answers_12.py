"""Answers to the exercises of lesson 12, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def affected(pays: Any, new: Any) -> Any:
    shops, old = {s for _, s in new}, {a for a, _ in pays}
    return {a for a, _ in new if a in old} | {a for a, s in pays if s in shops}


def by_scores(pays: Any, new: Any) -> Any:
    """Try it: compute a score with features that no sum has twice, before and after."""

    def score(pairs: Any, account: int) -> float:
        def shop(s: int) -> float:
            given = [2.0**-a + 1 for a, t in pairs if t == s]
            return sum(given) / len(given)

        def row(a: int) -> float:
            return sum(3.0**s for b, s in pairs if b == a)

        means = [shop(s) for a, s in pairs if a == account]
        return sum(means) / len(means) + row(account)

    return [a for a in {a for a, _ in pays} if score(pays, a) != score(pays + new, a)]


def too_far(pays: Any, new: Any) -> Any:
    first = affected(pays, new)
    shops = {s for a, s in [*pays, *new] if a in {a for a, _ in new}}
    return first | {a for a, s in pays if s in shops}


def alarm(right: Any, drop: Any) -> Any:
    share = [sum(day) / len(day) for day in right]
    return next((d for d, x in enumerate(share) if share[0] - x >= drop), None)


def by_numpy(right: Any, drop: Any) -> Any:
    share = np.array([np.mean(day) for day in right])
    days = np.flatnonzero(share[0] - share >= drop)
    return days[0] if len(days) else None


def since_yesterday(right: Any, drop: Any) -> Any:
    share = [sum(day) / len(day) for day in right]
    return next((d for d in range(1, len(share)) if share[d - 1] - share[d] >= drop), None)


def of_counts(right: Any, drop: Any) -> Any:
    return next((d for d, x in enumerate(right) if sum(right[0]) - sum(x) >= drop * len(x)), None)


def move(saved: Any, wanted: Any) -> Any:
    ids, rows = (torch.cat(each) for each in zip(*saved, strict=True))
    table = torch.empty_like(rows)
    table[ids] = rows
    return [table[each] for each in wanted]


def by_dict(saved: Any, wanted: Any) -> Any:
    known = {int(i): row for ids, rows in saved for i, row in zip(ids, rows, strict=True)}
    empty = saved[0][1][:0].numpy()
    return tuple(
        np.stack([known[int(i)].numpy() for i in each]) if len(each) else empty for each in wanted
    )


def backward(saved: Any, wanted: Any) -> Any:
    ids, rows = (torch.cat(each) for each in zip(*saved, strict=True))
    return [rows[ids[each]] for each in wanted]


def in_turn(saved: Any, wanted: Any) -> Any:
    rows = torch.cat([rows for _, rows in saved])
    return list(rows.split([len(each) for each in wanted]))


RIGHT: dict[int, list[Any]] = {
    1: [[0, 1, 3, 4], [4, 3, 1, 0], {0, 1, 3, 4}],
    2: [[1046, 28, 4]],
    3: [affected, by_scores, lambda pays, new: torch.tensor([*affected(pays, new)])],
    4: [alarm, by_numpy],
    5: [move, by_dict],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        ([0, 1, 3], "1 itself"),
        ([4], "1 features"),
        ([0, 2], "1 shops"),
        ([0, 1, 2, 3, 4], "1 far"),
        ([0, 1, 2, 3], "1 far"),
        ([0, 1, 1, 3, 4], "twice"),
    ],
    2: [
        ([1049, 29, 4], "2 again"),
        ([1048, 28, 4], "2 again"),
        ([1042, 24, 3], "2 last hop"),
        ([1045, 25, 3], "2 last hop"),
        ([1045, 27, 3], "2 own"),
        ([1046, 34, 4], "2 five"),
        ([1046, 33, 4], "2 five"),
        ([1046, 111, 4], "2 shops"),
        ([1046, 28, 3], "which"),
        ([1046, 28], "length"),
    ],
    3: [
        (lambda pays, new: {a for a, s in pays if s in {s for _, s in new}}, "3 payers"),
        (lambda pays, new: {a for a, _ in new} & {a for a, _ in pays}, "3 customers"),
        (lambda pays, new: {s for _, s in new}, "3 shops"),
        (lambda pays, new: affected(pays, new) | {a for a, _ in new}, "3 new"),
        (lambda pays, new: {a for a, _ in new}, "3 only new"),
        (too_far, "3 far"),
        (lambda pays, new: {a for a, _ in pays}, ""),
        (lambda pays, new: set(), "3 customers"),
        (lambda pays, new: None, "not a list"),
    ],
    4: [
        (since_yesterday, "4 before"),
        (lambda right, drop: alarm(right, drop * sum(right[0]) / len(right[0])), "4 share"),
        (lambda right, drop: alarm(right, drop + 1e-9), "4 more"),
        (lambda right, drop: alarm(right, drop) or 0, "4 none"),
        (of_counts, ""),
        (lambda right, drop: len(right) - 1, ""),
    ],
    5: [
        (lambda saved, wanted: [torch.cat([r for _, r in saved])[i] for i in wanted], "5 order"),
        (backward, ""),
        (in_turn, ""),
        (lambda saved, wanted: [rows.sort(0).values for rows in move(saved, wanted)], ""),
        (lambda saved, wanted: move(saved, wanted)[:1], "length"),
        (lambda saved, wanted: torch.cat(move(saved, wanted)), "length"),
    ],
}
