"""Quality of a partition: cut edges, replicated nodes, and balance.

For a cut edge, a machine fetches a node's features from another one. A halo node is a node of
another part that a part has a copy of. Training waits for the slowest machine in every step, so the
balance of nodes, edges and training nodes is the largest part, as a multiple of the average.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from gnnlab.partition.files import read_config
from gnnlab.partition.part import Part, open_part


@dataclass(frozen=True)
class PartitionReport:
    """Counts of a partitioned graph, all types together.

    Attributes
    ----------
    graph_name, part_method : str
    num_parts, num_hops : int
    counts : dict of str to tuple of int
        Quantity → one number a part: "nodes" and "edges" that it owns, "halo nodes" and "halo
        edges" that it stores besides, "cut edges" of its own that start in another part, and the
        marked nodes under the name of the mask.
    """

    graph_name: str
    part_method: str
    num_parts: int
    num_hops: int
    counts: dict[str, tuple[int, ...]]

    @property
    def cut(self) -> float:
        """Share of edges between two parts."""
        return self._ratio("cut edges", "edges")

    @property
    def halo_share(self) -> float:
        """Halo nodes for each node: how much of the graph is replicated."""
        return self._ratio("halo nodes", "nodes")

    def _ratio(self, what: str, of: str) -> float:
        return sum(self.counts[what]) / max(sum(self.counts[of]), 1)

    @property
    def balance(self) -> dict[str, float]:
        """Largest part divided by the average, of each count; 1 is perfect."""
        return {
            name: max(each) * len(each) / max(sum(each), 1) if sum(each) else 1.0
            for name, each in self.counts.items()
        }

    @property
    def _title(self) -> str:
        parts = "1 part" if self.num_parts == 1 else f"{self.num_parts} parts"
        return f"{self.graph_name}: {parts} ({self.part_method})"

    @property
    def summary(self) -> str:
        """One-line summary."""
        nodes, edges = self.balance["nodes"], self.balance["edges"]
        return (
            f"{self._title}; {self.cut:.1%} of the edges are cut, "
            f"{self.halo_share:.2f} halo nodes per node; "
            f"balance: nodes {nodes:.2f}, edges {edges:.2f}"
        )

    def __str__(self) -> str:
        """A table with a line per part."""
        lines = [["part", *self.counts]]
        rows = zip(*self.counts.values(), strict=True)
        lines += [[str(i), *(f"{n:,}" for n in row)] for i, row in enumerate(rows)]
        lines += [["balance", *(f"{value:.3f}" for value in self.balance.values())]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in lines]
        head = f"{self._title}, halo of {self.num_hops} hop" + "s" * (self.num_hops > 1)
        cut = f"{self.cut:.1%} of the edges are cut; {self.halo_share:.2f} halo nodes per node; "
        return "\n".join([head, *table, cut + "balance = largest part / average"])


def partition_report(
    part_config: str | os.PathLike[str], mask: str | None = "train_mask"
) -> PartitionReport:
    """Compute the report of a partitioned graph from its files.

    Parameters
    ----------
    part_config : path
        The JSON file that ``partition_graph`` wrote.
    mask : str, optional
        Node feature that marks nodes, counted for the types that have it.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> g.ndata["train_mask"] = torch.tensor([True, True, False, False])
    >>> dgl.partition.partition_graph(
    ...     g, "ring", 2, folder, part_method=lambda g, k: [0, 0, 0, 1]
    ... )  # doctest: +ELLIPSIS
    ring: ...
    >>> print(dgl.partition.partition_report(f"{folder}/ring.json"))
    ring: 2 parts (custom), halo of 1 hop
       part  nodes  halo nodes  edges  halo edges  cut edges  train_mask
          0      3           1      3           1          1           2
          1      1           2      1           1          1           0
    balance  1.500       1.333  1.500       1.000      1.000       2.000
    50.0% of the edges are cut; 0.75 halo nodes per node; balance = largest part / average
    """
    config = read_config(part_config)
    rows = [_count(open_part(config, i, verify=False), mask) for i in range(config.num_parts)]
    counts = {name: tuple(row[name] for row in rows) for name in rows[0]}
    return PartitionReport(
        config.graph_name, config.part_method, config.num_parts, config.halo_hops, counts
    )


def _count(part: Part, mask: str | None) -> dict[str, int]:
    nodes, edges = part.nodes.values(), part.edges.items()
    counts = {
        "nodes": sum(each.num_inner for each in nodes),
        "halo nodes": sum(len(each.halo) for each in nodes),
        "edges": sum(each.num_inner for _, each in edges),
        "halo edges": sum(len(each.halo) for _, each in edges),
        "cut edges": sum(
            int((each.indices[: each.num_inner] >= part.nodes[etype[0]].num_inner).sum())
            for etype, each in edges
        ),
    }
    marked = [each.data[mask] for each in nodes if mask in each.data]
    if mask is not None and marked:
        counts[mask] = sum(int((each != 0).sum()) for each in marked)
    return counts
