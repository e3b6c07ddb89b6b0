"""Data sets without files: shapes, random block models, and the karate club.

The random numbers are numpy's; graphs are not those that DGL draws from the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from gnnlab.compat.data.published import REQUIRED, Published
from gnnlab.compat.transforms.paths import line_graph
from gnnlab.errors import InvalidInput
from gnnlab.graph.batch import batch
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.graph.transform import add_self_loop


def _both_ways(pairs: Any, num_nodes: int) -> Graph:
    """Make a graph with both directions of each pair, sorted, without repeated edges."""
    ends = np.asarray(pairs, np.int64).reshape(-1, 2)
    ends = np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0)
    return graph(tuple(torch.from_numpy(ends).T), num_nodes=num_nodes)


_FRIENDS = """
    1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31, 2 3 7 13 17 19 21 30, 3 7 8 9 13 27 28 32, 7 12 13,
    6 10, 6 10 16, 16, , 30 32 33, 33, , , , 33, 32 33, 32 33, , , 32 33, 33, 32 33, , 32 33,
    25 27 29 32 33, 25 27 31, 31, 29 33, 33, 31 33, 32 33, 32 33, 32 33, 33
"""


class KarateClubDataset(Published):
    """Zachary's karate club: 34 members, 78 friendships; ``ndata["label"]``: who follows whom.

    References: Zachary, Journal of Anthropological Research 33, 1977.
    """

    title, num_classes, common = "karate_club", 2, ("transform",)

    def process(self) -> None:
        """Make the graph."""
        pairs = [(u, int(v)) for u, row in enumerate(_FRIENDS.split(",")) for v in row.split()]
        g = _both_ways(pairs, 34)
        first = {*range(9), 10, 11, 12, 13, 16, 17, 19, 21}
        g.ndata["label"] = torch.tensor([int(node not in first) for node in range(34)])
        self.graphs = [g]


def _shape(kind: int, n: int) -> tuple[Any, int]:
    """Return the pairs and the number of nodes, at most n, of one of the eight shapes."""
    half, side, power = n // 2, math.isqrt(n), 1 << int(math.log2(n))
    width, star, clique = n // side, [(0, i) for i in range(1, n)], np.argwhere(np.tri(n, k=-1))
    head = clique[clique[:, 0] < n - half].tolist()
    tail = [(i, i + 1) for i in range(n - half - 1, n - 1)]
    rows = [(i, i + 1) for i in range(side * width) if (i + 1) % width]
    rungs = [(i, half + i) for i in range(half)]
    shapes: tuple[tuple[Any, int], ...] = (
        ([(i, (i + 1) % n) for i in range(n)], n),
        (star, n),
        (star + [(i, i % (n - 1) + 1) for i in range(1, n)], n),
        (head + tail, n),
        ([(u, u ^ power >> i) for u in range(power) for i in range(1, n) if power >> i], power),
        (rows + [(i, i + width) for i in range((side - 1) * width)], side * width),
        (clique, n),
        (rungs + [(i + k, (i + 1) % half + k) for i in range(half) for k in (0, half)], 2 * half),
    )
    return shapes[kind]


class MiniGCDataset(Published):
    """Eight shapes to tell apart; an item is a graph with self-loops and its class.

    0 ring, 1 star, 2 wheel, 3 lollipop, 4 hypercube, 5 grid, 6 clique, 7 circular ladder, in this
    order. Sizes are drawn from ``min_num_v`` (at least 6) … ``max_num_v`` − 1; a hypercube, grid or
    ladder has the largest possible number of nodes up to the one drawn.
    """

    title, num_classes, common = "minigc", 8, ("force_reload", "verbose", "transform")
    options: ClassVar = dict.fromkeys(("num_graphs", "min_num_v", "max_num_v"), REQUIRED) | {
        "seed": 0,
        "save_graph": True,
    }

    def process(self) -> None:
        """Draw the sizes and make the graphs."""
        count, low, high, seed, _ = self.option.values()
        if not 6 <= low < high:
            raise InvalidInput(f"expected 6 <= min_num_v < max_num_v; found {low} and {high}")
        self.labels = torch.arange(count) * 8 // max(count, 1)
        sizes = np.random.RandomState(seed).randint(low, high, count).tolist()
        made = [_shape(kind, n) for kind, n in zip(self.labels.tolist(), sizes, strict=True)]
        self.graphs = [add_self_loop(_both_ways(*each)) for each in made]


class SBMMixtureDataset(Published):
    """Graphs of the stochastic block model with random densities, to find communities in.

    An item is (graph, its line graph without backtracking, in-degrees of each, float32, and the
    source of every edge). ``n_nodes`` nodes fall into ``n_communities`` of equal size; the expected
    number of neighbors of a node inside and outside of its own is ``pq``: a list of pairs, or
    "Appendix_C", which draws them so that ``avg_deg`` is kept. ``rng`` is a ``RandomState``.
    References: Chen, Li and Bruna, "Supervised Community Detection with Line Graph Neural
    Networks", ICLR 2019.
    """

    title, common = "sbmmixture", ()
    options: ClassVar = dict.fromkeys(("n_graphs", "n_nodes", "n_communities"), REQUIRED) | {
        "k": 2,
        "avg_deg": 3,
        "pq": "Appendix_C",
        "rng": None,
    }

    def process(self) -> None:
        """Draw the graphs and make their line graphs."""
        count, nodes, groups, k, degree, pq, rng = self.option.values()
        random = np.random.RandomState() if rng is None else rng
        if groups < 1 or nodes % groups:
            raise InvalidInput(
                f"n_nodes must be a multiple of n_communities; found {nodes} and {groups}"
            )
        if pq == "Appendix_C":
            low = random.uniform(0, degree - math.sqrt(degree), count)
            swap = random.rand(count) < 0.5
            pq = [
                (k * degree - q, q)[:: -1 if turn else 1] for q, turn in zip(low, swap, strict=True)
            ]
        if len(pq) != count:
            raise InvalidInput(f"pq must be 'Appendix_C' or {count} pairs; found {len(pq)}")
        group = np.arange(nodes) // (nodes // groups)
        u, v = np.triu_indices(nodes)
        for p, q in pq:
            drawn = random.rand(len(u)) < np.where(group[u] == group[v], p, q) / nodes
            self.graphs.append(_both_ways(np.stack([u[drawn], v[drawn]], 1), nodes))
        self.line_graphs = [line_graph(g, backtracking=False) for g in self.graphs]

    def __getitem__(self, idx: int) -> Any:
        """Return graph, line graph, in-degrees of both, and the source of every edge."""
        g, line = self.graphs[idx], self.line_graphs[idx]
        return g, line, g.in_degrees().float(), line.in_degrees().float(), g.edges()[0]

    def collate_fn(self, x: Sequence[Any]) -> Any:
        """Return items as a batch: both batched graphs, degrees and sources one after another."""
        graphs, lines, degrees, line_degrees, sources = zip(*x, strict=True)
        nodes = self.option["n_nodes"]
        moved = [source + i * nodes for i, source in enumerate(sources)]
        parts = (torch.cat(part) for part in (degrees, line_degrees, moved))
        return batch(graphs), batch(lines), *parts
