"""Lesson 04: training with multiple processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, expect_each, function, is_close, number
from gnnlab.parallel import launch_processes

START_METHOD = "spawn"  # what works in a notebook, whatever it has run
COUNTS = ((30, 40), (10, 50), (7, 10))  # of each rank: right predictions, nodes


def exercise_1(answer: Any) -> None:
    known: dict[float, str] = {750_000: "1 half", 250_000: "1 chunk", 1_000_000: "1 half"}
    known |= {2_000_000: "1 itself", 6_000_000: "1 whole", 6: "1 chunks", 1.5: "1 chunks"}
    expect(answer, 1_500_000, known | {3_000_000: "1 whole"})


def exercise_2(answer: Any) -> None:
    expect(answer, 6, {5: "2 last", 16: "2 alone", 18: "2 all", 334: "2 nodes", 5.21875: "2 last"})


def exercise_3(answer: Any) -> None:
    weigh = function(answer)
    for sizes in ([1, 3], [5, 2, 13, 4], [4, 4, 4], [64, 0]):
        total, ranks = sum(sizes), len(sizes)
        known = {(1 / ranks,) * ranks: "3 equal", tuple(sizes): "3 total"}
        known |= {tuple(ranks * s / total for s in sizes): "3 total", (1,) * ranks: "3 total"}
        known[tuple((total - s) / total for s in sizes)] = "3 inverse"
        expect_each(weigh(list(sizes)), [s / total for s in sizes], known)


def exercise_4(answer: Any) -> None:
    found = launch_processes(
        _with_own(function(answer)), len(COUNTS), start_method=START_METHOD, timeout=120
    )
    if found[0] is not None and any(x is None for x in found):
        raise Wrong("4 every rank")
    values = [number(x) for x in found]
    hits, nodes = (sum(part) for part in zip(*COUNTS, strict=True))
    own = [h / n for h, n in COUNTS]
    if all(is_close(x, hits / nodes, 1e-5) for x in values):
        return
    known = [(own, "4 alone"), ([sum(own) / len(own)] * len(own), "4 mean")]
    known += [([sum(own)] * len(own), "4 sum"), ([hits] * len(own), "4 hits")]
    known += [([100 * hits / nodes] * len(own), "4 percent")]
    for wrong, why in known:
        if all(is_close(x, y, 1e-5) for x, y in zip(values, wrong, strict=True)):
            raise Wrong(why)
    raise Wrong("4 every rank" if is_close(values[0], hits / nodes, 1e-5) else "")


def _with_own(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Run an answer where the rows of other ranks are zeros: they arrive by communication only."""
    own = torch.tensor(COUNTS)

    def run(rank: int, world_size: int) -> Any:
        counts = torch.zeros_like(own)
        counts[rank] = own[rank]
        return answer(rank, world_size, counts)

    return run
