"""Answers to the exercises of lesson 02, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gnnlab import function as fn
from gnnlab.dataloading.negative_sampler import DegreePower, GlobalUniform


def redrawn(is_wrong: Any, nodes: int = 0) -> Any:
    """A sampler that draws destinations again while they are wrong."""

    def sample(g: Any, eids: Any) -> Any:
        src, count = g.find_edges(eids)[0], nodes or g.num_nodes()
        dst = torch.randint(count, src.shape)
        while (wrong := is_wrong(g, src, dst)).any():
            dst[wrong] = torch.randint(count, dst[wrong].shape)
        return src, dst

    return sample


def edge_or_itself(g: Any, src: Any, dst: Any) -> Any:
    return g.has_edges_between(src, dst) | (src == dst)


no_edges = redrawn(edge_or_itself)
neither_way = redrawn(lambda g, u, v: edge_or_itself(g, u, v) | g.has_edges_between(v, u))
random_ends = redrawn(lambda g, src, dst: torch.zeros(len(src)))


def one_by_one(g: Any, eids: Any) -> Any:
    src = g.find_edges(eids)[0].tolist()
    free = {u: set(range(g.num_nodes())) - {u, *g.successors(u).tolist()} for u in set(src)}
    return src, [np.random.default_rng().choice(sorted(free[u])) for u in src]


def draws_again_once(g: Any, eids: Any) -> Any:
    src, dst = random_ends(g, eids)
    wrong = edge_or_itself(g, src, dst)
    dst[wrong] = torch.randint(g.num_nodes(), dst[wrong].shape)
    return src, torch.where(src == dst, (src + 1) % g.num_nodes(), dst)


def first_free(g: Any, eids: Any) -> Any:
    src = g.find_edges(eids)[0].tolist()
    nodes = set(range(g.num_nodes()))
    return src, [min(nodes - {u, *g.successors(u).tolist()}) for u in src]


def distance(graph: Any, h: Any) -> Any:
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.apply_edges(fn.u_sub_v("h", "h", "difference"))
        return (graph.edata["difference"] ** 2).sum(1)


def by_hand(graph: Any, h: Any) -> Any:
    return (h[graph.edges()[0]] - h[graph.edges()[1]]).norm(dim=1) ** 2


def dot(graph: Any, h: Any) -> Any:
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.apply_edges(fn.u_dot_v("h", "h", "dot"))
        return graph.edata["dot"].flatten()


def ends(graph: Any, h: Any) -> Any:
    return h[graph.edges()[0]] - h[graph.edges()[1]]


RIGHT: dict[int, list[Any]] = {
    1: [700, 100 * (2 + 5)],
    2: [[0, 3, 7, 10], [10, 7, 3, 0], {0, 3, 7, 10}],
    3: [no_edges, one_by_one, lambda g, eids: [*neither_way(g, eids)]],
    4: [distance, lambda g, h: distance(g, h)[:, None], lambda g, h: by_hand(g, h).numpy()],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (600, "1 ends"),
        (1200, "1 sources"),
        (200, "1 negatives"),
        (500, "1 positives"),
        (1000, "1 positives"),
        (7, "1 edge"),
        (701, ""),
    ],
    2: [
        ([0, 10], "2 self"),
        ([3, 7], "2 batch"),
        ([0, 7, 10], "2 one reverse"),
        ([0, 3, 10], "2 one reverse"),
        ([0, 7, 10, 17], "2 where"),
        ([0, 1, 10, 11], "2 where"),
        ([0, 3, 7, 7, 10], "twice"),
        ([0.4, 3, 7, 10], ""),
    ],
    3: [
        (random_ends, "3 itself"),
        (draws_again_once, "3 edge"),
        (redrawn(lambda g, u, v: g.has_edges_between(u, v)), "3 itself"),
        (redrawn(lambda g, u, v: edge_or_itself(g, v, u)), "3 edge"),
        (redrawn(edge_or_itself, 6), "3 never"),
        (first_free, "3 never"),
        (lambda g, e: no_edges(g, e)[::-1], "3 source"),
        (GlobalUniform(1), "3 one each"),
        (lambda g, e: no_edges(g, e.repeat_interleave(5)), "3 one each"),
        (lambda g, e: (g.edges()[0], g.edges()[1]), "3 one each"),
        (DegreePower(1), "3 itself"),
        (lambda g, e: no_edges(g, e)[1], "length"),
    ],
    4: [
        (lambda g, h: by_hand(g, h).sqrt(), "4 root"),
        (lambda g, h: ends(g, h).square().mean(1), "4 mean"),
        (lambda g, h: ends(g, h).sum(1) ** 2, "4 sum"),
        (lambda g, h: 2 - 2 * dot(g, h), "4 norm"),
        (dot, "4 dot"),
        (lambda g, h: ends(g, h).square().sum(0), "shape"),
        (lambda g, h: 5 * dot(g, h), ""),
        (lambda g, h: h[99], "IndexError"),
    ],
}
