"""Lesson 06: the distributed API."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.distributed import DistTensor
from gnnlab.exercises.judging import Wrong, expect, expect_each, function, number
from gnnlab.exercises.parted import partitioned
from gnnlab.graph.construct import graph

_RING = graph((torch.arange(12), torch.arange(1, 13) % 12))
_OWNER = torch.tensor([0, 1, 2, 1, 0, 1, 2, 1, 1, 2, 0, 1])


def exercise_1(answer: Any) -> None:
    known = {(2, 1000): "1 global", (2, 102): "1 from 0", (3, 101): "1 from 0"}
    known |= {(3, 102): "1 from 0", (1, 550): "1 range", (101, 2): "1 order"}
    expect_each(answer, (2, 101), known)


def exercise_2(answer: Any) -> None:
    known = {-0.1: "2 sum", -0.2: "2 state", -0.4: "2 rate", -0.25: "2 squares"}
    known |= {-0.095: "2 second", 0.195: "2 sign"}
    expect(answer, -0.195, known, tolerance=0.003)


def exercise_3(answer: Any) -> None:
    add = function(answer)
    with partitioned(_RING, 3, _OWNER) as g:
        policy = g.get_node_partition_policy("_N")
        tensor = DistTensor((12,), torch.int64, part_policy=policy)
        right = tensor[:] + 10
        tensor[:] = right
        for ids, values in (([5, 3, 5], [1, 2, 3]), ([0, 11, 0, 0, 5], [7, 1, 2, 4, 6])):
            before, rows, more = right.clone(), torch.tensor(ids), torch.tensor(values)
            right.index_add_(0, rows, more)
            add(tensor, rows.clone(), more.clone())
            found = tensor[:]
            if torch.equal(found, right):
                continue
            last, replaced = before.clone(), before.clone()
            last[rows], replaced[rows] = before[rows] + more, more
            known = {"3 last": last, "3 replaced": replaced, "3 not written": before}
            raise Wrong(next((k for k, v in known.items() if torch.equal(v, found)), ""))


def exercise_4(answer: Any) -> None:
    count = function(answer)
    with partitioned(_RING, 3, _OWNER) as g:
        owner = g.get_partition_book().nid2partid
        for ids in ([0, 5, 5, 5, 11, 3, 0, 7], [2, 2, 2], list(range(12))):
            rows = torch.tensor(ids)
            for part in range(3):
                away = owner(rows) != part
                right = len(rows[away].unique())
                found = number(count(g, rows.clone(), part))
                if found != right:
                    known = {"4 twice": int(away.sum()), "4 own": len(rows[~away].unique())}
                    known |= {"4 all": len(rows.unique())}
                    raise Wrong(next((k for k, v in known.items() if v == found), ""))
