"""Lesson 01: node classification."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, function, number, sequence, tensor
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph


def _toy() -> Graph:
    src = [1, 2, 3, 4, 0, 5, 6, 6, 7, 2, 7, 8, 8, 5]
    dst = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4]
    return graph((src, dst))


def exercise_1(answer: Any) -> None:
    expect(answer, 85, {84: "1 seed", 64: "1 last hop", 125: "1 drawn again", 21: "1 two layers"})


def exercise_2(answer: Any) -> None:
    found = [int(number(node)) for node in sequence(answer)]
    right = [2, 3, 6, 7, 8]
    if sorted(found) != right:
        known = {
            (2, 7, 8): "2 one layer",
            (2, 3, 7, 8): "2 one layer",
            (2, 6, 7, 8): "2 itself",
            (0, 3): "2 direction",
        }
        twice = "2 twice" if set(found) == set(right) else ""
        raise Wrong(known.get(tuple(sorted(set(found))), twice))


def exercise_3(answer: Any) -> None:
    mean = function(answer)
    generator = torch.Generator().manual_seed(1)
    lonely = graph(([0, 1, 1, 4], [2, 2, 0, 2]), num_nodes=6)
    for g in (_toy(), lonely):
        x = torch.randn(g.num_nodes(), 3, generator=generator)
        adjacency = torch.zeros(g.num_nodes(), g.num_nodes())
        adjacency[g.edges()[1], g.edges()[0]] = 1
        total, degree = adjacency @ x, adjacency.sum(1, keepdim=True)
        found = tensor(mean(g, x.clone()), like=x)
        if g.ndata or g.edata:
            raise Wrong("3 left", names=", ".join([*g.ndata, *g.edata]))
        if torch.allclose(found, total / degree.clamp(min=1), atol=1e-5):
            continue
        if torch.allclose(found, total, atol=1e-5):
            raise Wrong("3 sum")
        if torch.allclose(found, (total + x) / (degree + 1), atol=1e-5):
            raise Wrong("3 itself")
        sent = adjacency.T @ x / adjacency.sum(0)[:, None].clamp(min=1)
        raise Wrong("3 direction" if torch.allclose(found, sent, atol=1e-5) else "")


def exercise_4(answer: Any) -> None:
    count = function(answer)
    both = graph(([0, 1, 1, 2], [1, 0, 2, 1]))
    one_way = graph(([0, 1, 2, 0], [1, 2, 3, 2]))
    itself = graph(([0, 1, 1, 2], [0, 1, 2, 1]))
    for g, right in ((_toy(), 12), (both, 0), (one_way, 4), (itself, 0)):
        found = number(count(g))
        if found != right:
            reason = "4 opposite" if found == g.num_edges() - right else ""
            raise Wrong("4 pairs" if found == right / 2 else reason)
