"""Lesson 05: partitioning a graph."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.data import load
from gnnlab.exercises.judging import (
    Wrong,
    expect,
    expect_tensor,
    function,
    number,
    sequence,
    tensor,
)


def exercise_1(answer: Any) -> None:
    expect(answer, 0.9, {90: "1 percent", 0.1: "1 kept", 0.75: "1 four parts", 0.99: "1 both ends"})


def exercise_2(answer: Any) -> None:
    found = tuple(number(x) for x in sequence(answer, 2))
    if found == (4, 5):
        return
    known: dict[Any, str] = {(3, 5): "2 before", (5, 4): "2 order"}
    known |= {(4, 4): "2 leaving", (4, 8): "2 twice"}
    one = "2 halo" if found[0] == 4 else "2 cut" if found[1] == 5 else "2 neither"
    raise Wrong(known.get(found, one))


def exercise_3(answer: Any) -> None:
    find = function(answer)
    cases = [([0, 4, 8], [7, 3, 0, 4, 3]), ([0, 4, 9, 10, 16], [15, 9, 1, 2, 10, 8, 0, 4])]
    for borders, ids in [*cases, ([0, 3, 3, 10**9], [3, 2, 10**9 - 1, 77])]:
        given, inner = torch.tensor(ids), torch.tensor(borders[1:])
        right = torch.bucketize(given, inner, right=True)
        known = {"3 border": torch.bucketize(given, inner), "3 first": right + 1}
        known |= {"3 size": given // borders[1], "3 where": given - torch.tensor(borders)[right]}
        expect_tensor(find(list(borders), given), right, known)


def exercise_4(answer: Any) -> None:
    restore, generator = function(answer), torch.Generator().manual_seed(0)
    for shape in ((8,), (11, 2)):
        node_map = torch.randperm(shape[0], generator=generator)
        right = torch.randn(shape, generator=generator)
        values = right[node_map]
        known = {"4 other way": values[node_map], "4 as they are": values}
        known |= {"4 sorted": values.sort(0).values, "4 map": right[node_map.argsort()]}
        expect_tensor(restore(values.clone(), node_map.clone()), right, known)


def exercise_5(answer: Any) -> None:
    method, g = function(answer), load("digits")[0]
    for parts in (4, 3):
        part = tensor(method(g, parts), like=torch.zeros(g.num_nodes(), dtype=torch.int64))
        if part.min() < 0 or part.max() >= parts:
            raise Wrong("5 part", parts=parts, low=part.min().item(), high=part.max().item())
        u, v = g.edges()
        cut, most = (part[u] != part[v]).double().mean().item(), (1 - 1 / parts) / 2
        fullest = parts * part.bincount().max().item() / len(part)
        told = {"cut": f"{cut:.0%}", "most": f"{most:.0%}", "fullest": f"{fullest:.2f}"}
        if cut > most or fullest > 1.05:
            key = "5 cut" if fullest <= 1.05 else "5 balance" if cut <= most else "5 both"
            raise Wrong(key, parts=parts, **told)
