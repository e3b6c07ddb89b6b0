"""Lesson 03: writing your own samplers."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, expect_each, function, number, sequence
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID


def _ring(num_nodes: int, degree: int) -> Graph:
    """Each node receives from the ``degree`` nodes after it, at the times 0 to 9 in some order."""
    dst = torch.arange(num_nodes).repeat(degree)
    step = torch.arange(1, degree + 1).repeat_interleave(num_nodes)
    g = graph(((dst + step) % num_nodes, dst))
    g.edata["time"] = (7 * step + 3 * dst) % 10
    return g


def _edges(answer: Any, g: Graph, seeds: torch.Tensor, layers: int, *args: Any) -> list[Any]:
    """Sample with a reader's class; per layer, source and destination of each edge in the graph."""
    blocks = sequence(sequence(answer(*args).sample(g, seeds), 3)[2])
    if len(blocks) != layers:
        raise Wrong("layers", found=len(blocks), expected=layers)
    found = []
    for block in blocks:
        u, v = block.edges()
        ends = block.srcdata[NID][u], block.dstdata[NID][v]
        if not g.has_edges_between(*ends).all():
            raise Wrong("no edges")
        if not torch.equal(g.edge_ids(*ends), block.edata[EID]):
            raise Wrong("wrong ids")
        found.append((block.dstdata[NID], *ends))
    return found


def exercise_1(answer: Any) -> None:
    known = {384: "1 seeds", 288: "1 one layer", 160: "1 one layer"}
    known |= {32 * 256 * 128: "1 product", 32 * 257 * 129: "1 product", 1152: "1 fanouts"}
    expect(answer, 416, known | {32 * 384: "1 per seed", 32 * 385: "1 per seed"})


def exercise_2(answer: Any) -> None:
    found = [number(weight) for weight in sequence(answer, 5)]
    if min(found) <= 0:
        raise Wrong("2 positive")
    known: dict[Any, str] = {(1, 1, 1, 1, 1): "2 uniform", (4, 1, 2, 2, 1): "2 degree"}
    known |= {(36, 1, 9, 4, 1): "2 square", (1 / 6, 1, 1 / 3, 1 / 2, 1): "2 inverse"}
    shares = {tuple(x / sum(key) for x in key): why for key, why in known.items()}
    right = [x / 13 for x in (6, 1, 3, 2, 1)]
    expect_each([x / sum(found) for x in found], right, shares, tolerance=0.006)


def exercise_3(answer: Any) -> None:
    make, g, seeds = function(answer), _ring(120, 20), torch.arange(100)
    for rate, kept in ((0.0, 20), (1.0, 0)):
        for nodes, u, _ in _edges(make, g, seeds, 3, 3, rate):
            if len(u) != kept * len(nodes):
                reverse = rate == 0 and len(u) == 0
                raise Wrong("3 reverse" if reverse else "3 ends", rate=rate, kept=kept)
    drawn = [_edges(make, g, seeds, 2, 2, 0.3) for _ in range(2)]
    for nodes, _, v in drawn[0]:
        counts = v.bincount(minlength=120)[nodes].double()
        if not 0.4 < counts.var().item() / (20 * 0.3 * 0.7) < 2:
            raise Wrong("3 each edge")
        share = counts.mean().item() / 20
        if abs(share - 0.7) > 0.06:
            raise Wrong("3 share", share=f"{share:.0%}")
    if all(map(torch.equal, drawn[0][1], drawn[1][1])):
        raise Wrong("3 same")


def exercise_4(answer: Any) -> None:
    make, g, seeds = function(answer), _ring(60, 10), torch.arange(0, 60, 6)
    times, seen = g.edata["time"], set[int]()
    for fanouts, limit in [([2, 3], 4)] * 12 + [([1, 2, 2], 7), ([-1], 5)]:
        layers = _edges(make, g, seeds, len(fanouts), fanouts, limit)
        for fanout, (nodes, u, v) in reversed([*zip(fanouts, layers, strict=True)]):
            time = times[g.edge_ids(u, v)]
            if (time >= limit).any():
                reason = "4 limit" if time.max() == limit else "4 future"
                raise Wrong(reason if nodes is layers[-1][0] else "4 layer")
            there = g.edges()[1][times < limit].bincount(minlength=60)[nodes]
            wanted = there if fanout < 0 else there.clamp(max=fanout)
            count = v.bincount(minlength=60)[nodes]
            if not torch.equal(count, wanted):
                varies = (count <= wanted).all() and len(count.unique()) > 1
                raise Wrong("4 after" if varies else "4 fanout")
        seen.update(g.edge_ids(*layers[-1][1:]).tolist() if limit == 4 else [])
    last = g.in_edges(seeds, form="eid")
    if seen != set(last[times[last] < 4].tolist()):
        raise Wrong("4 chance")
