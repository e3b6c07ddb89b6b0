"""Answers to the exercises of lesson 01, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import gnnlab as dgl
from gnnlab import function as fn


def mean(graph: Any, x: Any) -> Any:
    with graph.local_scope():
        graph.ndata["x"] = x
        graph.update_all(fn.copy_u("x", "m"), fn.mean("m", "y"))
        return graph.ndata["y"]


def mean_by_hand(graph: Any, x: Any) -> Any:
    rows = [x[graph.predecessors(v)] for v in range(graph.num_nodes())]
    return torch.stack([row.mean(0) if len(row) else torch.zeros(x.shape[1]) for row in rows])


def sums(graph: Any, x: Any) -> Any:
    with graph.local_scope():
        graph.ndata["x"] = x
        graph.update_all(fn.copy_u("x", "m"), fn.sum("m", "y"))
        return graph.ndata["y"]


def leaves_features(graph: Any, x: Any) -> Any:
    graph.ndata["x"] = x
    graph.update_all(fn.copy_u("x", "m"), fn.mean("m", "y"))
    return graph.ndata["y"]


def no_reverse(graph: Any) -> Any:
    src, dst = graph.edges()
    return (~graph.has_edges_between(dst, src)).sum()


def by_sets(graph: Any) -> Any:
    pairs = list(zip(*(x.tolist() for x in graph.edges()), strict=True))
    return np.int64(sum((v, u) not in set(pairs) for u, v in pairs))


RIGHT: dict[int, list[Any]] = {
    1: [85],
    2: [[2, 3, 6, 7, 8], [8, 7, 6, 3, 2]],
    3: [mean, mean_by_hand],
    4: [no_reverse, lambda g: no_reverse(g).item(), by_sets],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [(84, "1 seed"), (64, "1 last hop"), (125, "1 drawn again"), (21, "1 two layers"), (86, "")],
    2: [
        ([2, 7, 8], "2 one layer"),
        ([2, 3, 7, 8], "2 one layer"),
        ([2, 6, 7, 8], "2 itself"),
        ([2, 3, 6, 7, 7, 8], "2 twice"),
        ([3], ""),
    ],
    3: [
        (sums, "3 sum"),
        (lambda g, x: mean(dgl.add_self_loop(g), x), "3 itself"),
        (lambda g, x: mean(dgl.reverse(g), x), "3 direction"),
        (leaves_features, "3 left"),
        (lambda g, x: x, ""),
        (lambda g, x: mean(g, x)[:3], "shape"),
        (lambda g, x: None, "not a tensor"),
        (lambda g: g, "TypeError"),
    ],
    4: [
        (lambda g: g.num_edges() - no_reverse(g), "4 opposite"),
        (lambda g: no_reverse(g) / 2, "4 pairs"),
        (lambda g: 12, ""),
        (lambda g: g.num_edges(), ""),
        (lambda g: ~g.has_edges_between(*g.edges()), "not a number"),
    ],
}
