"""Lesson 02: link prediction."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.exercises.judging import (
    Wrong,
    expect,
    expect_ids,
    expect_tensor,
    function,
    sequence,
    tensor,
)
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph


def _toy() -> Graph:
    u, v = [0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]
    return graph((u + v, v + u))


def _one_way() -> Graph:
    src = [0, 0, 3, 4, 5, 6, 7, 8, 2, 1, 8]
    return graph((src, [1, 2, 0, 0, 3, 5, 8, 7, 8, 7, 0]))


def exercise_1(answer: Any) -> None:
    known = {200: "1 negatives", 600: "1 ends", 1200: "1 sources", 7: "1 edge"}
    expect(answer, 700, known | {500: "1 positives", 1000: "1 positives"})


def exercise_2(answer: Any) -> None:
    known: dict[Any, str] = {(0, 10): "2 self", (3, 7): "2 batch"}
    known |= {(0, 7, 10): "2 one reverse", (0, 3, 10): "2 one reverse"}
    known |= dict.fromkeys([(0, 7, 10, 17), (0, 7, 10, 11), (0, 1, 10, 11)], "2 where")
    expect_ids(answer, [0, 3, 7, 10], known)


def exercise_3(answer: Any) -> None:
    sampler = function(answer)
    for g, eids in ((_toy(), torch.arange(14)), (_one_way(), torch.tensor([9, 2, 0, 4, 8, 3]))):
        eids = eids.repeat(50)
        right = g.find_edges(eids)[0]
        src, dst = (torch.as_tensor(x) for x in sequence(sampler(g, eids.clone()), 2))
        if len(src) != len(eids) or len(dst) != len(eids):
            raise Wrong("3 one each", found=len(dst), expected=len(eids))
        src, dst = tensor(src, like=right), tensor(dst, like=right)
        if not torch.equal(src, right):
            raise Wrong("3 source")
        if (src == dst).any():
            raise Wrong("3 itself")
        if g.has_edges_between(src, dst).any():
            raise Wrong("3 edge")
        both = torch.cartesian_prod(right.unique(), g.nodes()).T
        joined = g.has_edges_between(*both) | g.has_edges_between(*both.flip(0))
        allowed = both[:, ~joined & (both[0] != both[1])].T.tolist()
        drawn = torch.stack([src, dst]).T.tolist()
        if missing := [pair for pair in allowed if pair not in drawn]:
            raise Wrong("3 never", u=missing[0][0], v=missing[0][1])


def exercise_4(answer: Any) -> None:
    distance = function(answer)
    h = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    for g in (_toy(), _one_way()):
        x = h[: g.num_nodes()]
        a, b = (x[ends] for ends in g.edges())
        right, dot = (a - b).square().sum(1), (a * b).sum(1)
        known = {"4 root": right.sqrt(), "4 mean": right / 4, "4 sum": (a - b).sum(1).square()}
        known |= {"4 norm": 2 - 2 * dot, "4 dot": dot}
        expect_tensor(distance(g, x.clone()), right, known)
