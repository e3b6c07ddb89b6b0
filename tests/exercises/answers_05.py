"""Answers to the exercises of lesson 05, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def bucket(borders: Any, ids: Any) -> Any:
    return torch.bucketize(ids, torch.tensor(borders[1:]), right=True)


def one_by_one(borders: Any, ids: Any) -> Any:
    return [sum(border <= i for border in borders[1:]) for i in ids.tolist()]


def restore(values: Any, node_map: Any) -> Any:
    restored = torch.empty_like(values)
    restored[node_map] = values
    return restored


def whole_numbers(values: Any, node_map: Any) -> Any:
    restored = torch.zeros(values.shape, dtype=torch.int64)
    restored[node_map] = values.long()
    return restored


def pieces(order: Any, num_parts: int) -> Any:
    part = torch.empty(len(order), dtype=torch.int64)
    part[torch.as_tensor(order)] = torch.arange(len(order)) * num_parts // len(order)
    return part


def by_label(graph: Any, num_parts: int) -> Any:
    return pieces(graph.ndata["label"].argsort(stable=True), num_parts)


def by_search(graph: Any, num_parts: int) -> Any:
    order: list[int] = []
    seen: set[int] = set()
    after: list[list[int]] = [[] for _ in range(graph.num_nodes())]
    for u, v in zip(*(ends.tolist() for ends in graph.edges()), strict=True):
        after[u].append(v)
    for start in range(graph.num_nodes()):
        queue = [] if start in seen else [start]
        seen.update(queue)
        for node in queue:
            new = [n for n in after[node] if n not in seen]
            seen.update(new)
            queue += new
        order += queue
    return pieces(order, num_parts).numpy()


RIGHT: dict[int, list[Any]] = {
    1: [0.9, 1 - 1 / 10],
    2: [[4, 5]],
    3: [
        bucket,
        one_by_one,
        lambda borders, ids: np.searchsorted(borders, ids.numpy(), "right") - 1,
    ],
    4: [restore, lambda values, node_map: values[node_map.argsort()].numpy()],
    5: [by_label, by_search, lambda g, k: by_label(g, k).tolist()],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (90, "1 percent"),
        (0.1, "1 kept"),
        (0.75, "1 four parts"),
        (0.99, "1 both ends"),
        (0.91, ""),
    ],
    2: [
        ([3, 5], "2 before"),
        ([5, 4], "2 order"),
        ([4, 4], "2 leaving"),
        ([4, 8], "2 twice"),
        ([4, 3], "2 halo"),
        ([2, 5], "2 cut"),
        ([6, 6], "2 neither"),
        ([4], "length"),
    ],
    3: [
        (lambda borders, ids: ids // 4, "3 size"),
        (lambda borders, ids: torch.bucketize(ids, torch.tensor(borders[1:])), "3 border"),
        (lambda borders, ids: torch.bucketize(ids, torch.tensor(borders), right=True), "3 first"),
        (lambda borders, ids: ids - torch.tensor(borders)[bucket(borders, ids)], "3 where"),
        (lambda borders, ids: (ids >= borders[1]).long(), ""),
        (lambda borders, ids: [1, 0, 0, 1, 0], "shape"),
        (lambda borders, ids: bucket(borders, ids)[0], "shape"),
        (lambda borders, ids: borders[ids], "TypeError"),
    ],
    4: [
        (lambda values, node_map: values[node_map], "4 other way"),
        (lambda values, node_map: torch.arange(len(values)), ""),
        (lambda values, node_map: values, "4 as they are"),
        (lambda values, node_map: values.sort().values, "4 sorted"),
        (lambda values, node_map: node_map.argsort(), ""),
        (whole_numbers, ""),
        (lambda values, node_map: restore(values, node_map)[:8], "shape"),
        (lambda values, node_map: None, "not a tensor"),
    ],
    5: [
        (lambda g, k: torch.arange(g.num_nodes()) % k, "5 cut"),
        (lambda g, k: pieces(torch.arange(g.num_nodes()), k), "5 cut"),
        (lambda g, k: torch.zeros(g.num_nodes()), "5 balance"),
        (lambda g, k: g.ndata["label"] * k // 10, "5 balance"),
        (lambda g, k: by_label(g, k - 1), "5 balance"),
        (lambda g, k: (torch.arange(g.num_nodes()) % (2 * k)).clamp(max=k - 1), "5 both"),
        (lambda g, k: by_label(g, 4), "5 part"),
        (lambda g, k: by_label(g, k) + 1, "5 part"),
        (lambda g, k: by_label(g, k).bincount(), "shape"),
        (lambda g, k: g.ndata["labels"], "NotFound"),
    ],
}
