"""A generated graph of the size of ogbn-products whose clusters a partition can find.

A degree-corrected block model of two levels: 47 classes consist of clusters of about 2,000 nodes.
The second end of an edge is in the cluster of the first with probability 0.7, in its class with
0.25, and anywhere with 0.05. Degrees follow the power law of :mod:`gnnlab.data.generate`, whose
graphs have one level: more edges run between their parts.

References
----------
Peixoto, "Hierarchical Block Structures and High-Resolution Model Selection in Large Networks",
Physical Review X 4, 2014.
"""

from __future__ import annotations

import numpy as np
import torch

import gnnlab as dgl
from gnnlab.data.generate import CHUNK, EXPONENT, NUM_CLASSES, _rank
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import draw, uniform
from gnnlab.system.bars import progress_bar

CLUSTER = 2000  # mean number of nodes
LARGEST = 300.0  # weight; heavier nodes would be tied to all of their cluster
IN_CLUSTER, IN_CLASS = 0.7, 0.95  # the latter with the former


def clustered(
    num_nodes: int, num_edges: int, num_train: int, progress: bool = True
) -> tuple[dgl.Graph, torch.Tensor]:
    """Generate a graph.

    Returns
    -------
    g : Graph
        ``num_edges // 2`` pairs, each in both directions; IDs of nodes are in random order.
    train : torch.Tensor
        Shape (num_train,), int64, ascending: drawn uniformly.
    """
    random, wanted = np.random.default_rng(0), num_edges // 2
    cluster = np.sort(random.integers(0, max(NUM_CLASSES, num_nodes // CLUSTER), num_nodes))
    group = cluster * NUM_CLASSES // (int(cluster[-1]) + 1)
    weight = (1 - random.random(num_nodes)) ** (-1 / (EXPONENT - 1))
    mass = np.concatenate([[0.0], np.cumsum(np.minimum(weight, LARGEST))])
    low, high = (
        np.stack([mass[np.searchsorted(level, level, side)] for level in (cluster, group)])
        for side in ("left", "right")
    )
    slices = np.arange(num_nodes) * (mass[-1] / num_nodes)
    guide = np.searchsorted(mass[1:], slices, side="right").astype(np.int32)
    pairs, first = np.empty(0, np.int64), 0
    with progress_bar(None, progress, total=wanted, desc="edges", unit_scale=True) as bar:
        while len(pairs) < wanted:
            drawn = np.empty((wanted - len(pairs)) * 3 // 2 + 1000, np.int64)
            for start in range(0, len(drawn), CHUNK):
                some = drawn[start : start + CHUNK]
                _draw_pairs(some, np.uint64(1), first, mass[1:], low, high, guide)
                first += len(some)
                bar.update(min(len(some), bar.total - bar.n))
            pairs = np.unique(np.concatenate([pairs, drawn[drawn >= 0]]))
    keep = np.ones(len(pairs), bool)
    keep[random.choice(len(pairs), len(pairs) - wanted, replace=False)] = False
    names = random.permutation(num_nodes).astype(np.int32)
    u, v = names[pairs[keep] >> 32], names[pairs[keep] & 0xFFFFFFFF]
    ends = np.concatenate([u, v]), np.concatenate([v, u])
    train = np.sort(random.permutation(num_nodes)[:num_train])
    return dgl.graph(ends, num_nodes=num_nodes), torch.from_numpy(train)


@njit(nogil=True, cache=True)
def _draw_pairs(out, key, first, mass, low, high, guide):  # type: ignore[no-untyped-def]
    """Fill ``out`` with pairs number ``first``, ``first`` + 1, …; −1 for a self-loop."""
    for i in range(len(out)):
        number = 3 * (first + i)
        u = _rank(uniform(draw(key, number)) * mass[-1], mass, guide)
        level = uniform(draw(key, number + 1))
        start, end = 0.0, mass[-1]
        if level < IN_CLUSTER:
            start, end = low[0, u], high[0, u]
        elif level < IN_CLASS:
            start, end = low[1, u], high[1, u]
        v = _rank(start + uniform(draw(key, number + 2)) * (end - start), mass, guide)
        out[i] = (min(u, v) << 32 | max(u, v)) if u != v else -1
