"""Answers to the exercises of lesson 04, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from gnnlab.exercises import lesson_04

lesson_04.START_METHOD = "fork"  # two dozen groups of processes, each in half a second


def reduced(x: Any) -> Any:
    dist.init_process_group("gloo")
    dist.all_reduce(x)
    return x


def everywhere(rank: int, world_size: int, counts: Any) -> Any:
    hits, nodes = reduced(counts[rank]).tolist()
    return hits / nodes


def gathered(rank: int, world_size: int, counts: Any) -> Any:
    dist.init_process_group("gloo")
    rows = [torch.zeros_like(counts[0]) for _ in range(world_size)]
    dist.all_gather(rows, counts[rank])
    total = torch.stack(rows).sum(0)
    dist.destroy_process_group()
    return total[0] / total[1]


def mean(rank: int, world_size: int, counts: Any) -> Any:
    return reduced(counts[rank, 0] / counts[rank, 1]).item() / world_size


def on_rank_0(rank: int, world_size: int, counts: Any) -> Any:
    found = everywhere(rank, world_size, counts)
    return found if rank == 0 else None


def own_nodes(rank: int, world_size: int, counts: Any) -> Any:
    nodes = counts[rank, 1].item()
    return reduced(counts[rank, :1]).item() / nodes


def share(sizes: Any) -> Any:
    return [size / sum(sizes) for size in sizes]


RIGHT: dict[int, list[Any]] = {
    1: [1_500_000, 2 * 3 / 4 * 1e6],
    2: [6, -(-334 // 64)],
    3: [share, lambda sizes: torch.tensor(sizes) / sum(sizes), lambda s: np.array(s) / sum(s)],
    4: [everywhere, gathered],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (750_000, "1 half"),
        (250_000, "1 chunk"),
        (2_000_000, "1 itself"),
        (6_000_000, "1 whole"),
        (6, "1 chunks"),
        (1_500_010, ""),
    ],
    2: [
        (5, "2 last"),
        (1000 / 3 / 64, ""),
        (16, "2 alone"),
        (18, "2 all"),
        (334, "2 nodes"),
        (7, ""),
    ],
    3: [
        (lambda sizes: [1 / len(sizes) for _ in sizes], "3 equal"),
        (lambda sizes: sizes, "3 total"),
        (lambda sizes: [len(sizes) * w for w in share(sizes)], "3 total"),
        (lambda sizes: [1 - w for w in share(sizes)], "3 inverse"),
        (lambda sizes: [0.25, 0.75], "length"),
        (lambda sizes: [size // sum(sizes) for size in sizes], "which"),
        (lambda sizes: share(sizes)[::-1], "3 inverse"),
        (lambda sizes: sizes / sum(sizes), "TypeError"),
    ],
    4: [
        (lambda rank, size, counts: (counts.sum(0)[0] / counts.sum(0)[1]).item(), "4 alone"),
        (mean, "4 mean"),
        (lambda rank, size, counts: size * mean(rank, size, counts), "4 sum"),
        (on_rank_0, "4 every rank"),
        (own_nodes, ""),
    ],
}
