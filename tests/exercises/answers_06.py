"""Answers to the exercises of lesson 06, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np


def adds(tensor: Any, ids: Any, values: Any) -> None:
    distinct, position = ids.unique(return_inverse=True)
    rows = tensor[distinct]
    tensor[distinct] = rows.index_add_(0, position, values)


def adds_one_by_one(tensor: Any, ids: Any, values: Any) -> None:
    for row, value in zip(ids, values, strict=True):
        tensor[row[None]] = tensor[row[None]] + value


def adds_last(tensor: Any, ids: Any, values: Any) -> None:
    tensor[ids] = tensor[ids] + values


def replaces(tensor: Any, ids: Any, values: Any) -> None:
    tensor[ids] = values


def owners(g: Any, ids: Any) -> Any:
    return g.get_partition_book().nid2partid(ids)


def asks(g: Any, ids: Any, part: int) -> Any:
    return (owners(g, ids.unique()) != part).sum()


def asks_by_sets(g: Any, ids: Any, part: int) -> Any:
    pairs = zip(ids.tolist(), owners(g, ids).tolist(), strict=True)
    return np.int64(len({i for i, p in pairs if p != part}))


RIGHT: dict[int, list[Any]] = {
    1: [[2, 101]],
    2: [-0.195, -0.1 - 0.3 / 10**0.5, -0.1949],
    3: [adds, adds_one_by_one],
    4: [asks, asks_by_sets, lambda g, ids, part: asks(g, ids, part).item()],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        ([2, 1000], "1 global"),
        ([2, 102], "1 from 0"),
        ([3, 102], "1 from 0"),
        ([1, 550], "1 range"),
        ([101, 2], "1 order"),
        ([2, 100], "which"),
        ([2], "length"),
    ],
    2: [
        (-0.1, "2 sum"),
        (-0.2, "2 state"),
        (-0.4, "2 rate"),
        (-0.25, "2 squares"),
        (-0.095, "2 second"),
        (0.195, "2 sign"),
        (-0.19, ""),
    ],
    3: [
        (adds_last, "3 last"),
        (replaces, "3 replaced"),
        (lambda tensor, ids, values: tensor[:].index_add_(0, ids, values), "3 not written"),
        (lambda tensor, ids, values: adds(tensor, ids[:1], values[:1]), ""),
        (lambda tensor, ids, values: tensor.index_add_(0, ids, values), "NoAttribute"),
    ],
    4: [
        (lambda g, ids, part: (owners(g, ids) != part).sum(), "4 twice"),
        (lambda g, ids, part: (owners(g, ids.unique()) == part).sum(), "4 own"),
        (lambda g, ids, part: len(ids.unique()), "4 all"),
        (lambda g, ids, part: 2, ""),
        (lambda g, ids, part: owners(g, ids) != part, "not a number"),
    ],
}
