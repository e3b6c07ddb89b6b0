"""Data sets without files: random block models, and the karate club.

The random numbers are numpy's; graphs are not those that DGL draws from the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from gnnlab.compat.data.published import REQUIRED, Published
from gnnlab.errors import InvalidInput
from gnnlab.graph.batch import batch
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.transforms import line_graph


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
            raise InvalidInput(f"{nodes} nodes cannot fall into {groups} communities of one size")
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
