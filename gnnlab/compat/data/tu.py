"""``TUDataset`` and ``LegacyTUDataset``: over a hundred data sets of small graphs in text files.

``NAME_A.txt`` has an edge a line, with nodes counted from 1 through all graphs;
``NAME_graph_indicator.txt`` the graph of each node; ``NAME_graph_labels.txt`` the class of each
graph. Further files have ``node_labels``, ``node_attributes``, ``edge_labels``, ``edge_attributes``
and ``graph_attributes``.

References
----------
Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", 2020.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from gnnlab.compat.data.published import REQUIRED, Published
from gnnlab.data.table import read_floats, read_integers
from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph


class RawCollection(NamedTuple):
    """G graphs with N nodes and E directed edges in all, as plain arrays."""

    num_nodes: np.ndarray  # (G,) int64
    num_edges: np.ndarray  # (G,) int64
    edges: np.ndarray  # (E, 2) int64, counted from 0 in each graph, graph after graph
    values: dict[str, np.ndarray]  # name of a further file → (G, N or E; columns)


def read_tu(folder: str | Path, name: str, progress: bool = True) -> RawCollection:
    """Read the files of one data set, with whose name all file names begin.

    Labels are int64 and counted from 0, the smallest in the file; attributes are float32.
    """
    path, where = Path(folder, f"{name}_A.txt"), Path(folder, f"{name}_graph_indicator.txt")
    member = read_integers(where, progress=progress)[0].astype(np.int64)
    edges = np.stack(read_integers(path, 2, progress=progress), 1).astype(np.int64)
    if (np.diff(member) < 0).any() or not len(member) or member[0] != 1:
        raise InvalidInput(f"{where}: nodes must be in the order of graphs 1, 2, 3 …")
    if not 1 <= edges.min(initial=1) <= edges.max(initial=1) <= len(member):
        raise InvalidInput(f"{path}: expected nodes 1 … {len(member)}; found {edges.max()}")
    member, edges = member - 1, edges - 1
    owner = member[edges[:, 0]]
    if (owner != member[edges[:, 1]]).any():
        line = int((owner != member[edges[:, 1]]).argmax()) + 1
        raise InvalidInput(f"{path}, line {line}: the two nodes belong to two graphs")
    sizes = np.bincount(member)
    order = np.argsort(owner, kind="stable")
    rows = {"graph": len(sizes), "node": len(member), "edge": len(edges)}
    values = {}
    for file in sorted(path.parent.glob(f"{name}_*.txt")):
        what = file.stem.removeprefix(f"{name}_")
        kind, _, sort = what.partition("_")
        if kind in rows and sort in ("labels", "attributes"):
            count = rows[kind]
            found = read_floats(file, rows=count, rows_from="this data set", progress=progress)
            found = found[order] if kind == "edge" else found
            values[what] = found if sort == "attributes" else (found - found.min()).astype(np.int64)
    if not {"graph_labels", "graph_attributes"} & set(values):
        raise InvalidInput(
            f"{path.parent}/{name}_graph_labels.txt: no such file, nor {name}_graph_attributes.txt"
        )
    local = (edges - (np.cumsum(sizes) - sizes)[owner][:, None])[order]
    return RawCollection(sizes, np.bincount(owner, minlength=len(sizes)), local, values)


class TUDataset(Published):
    """One data set of the collection; items are a graph and its label, shape (1,).

    ``ndata["node_labels"]`` and ``edata["edge_labels"]``, shape (…, 1), int64, counted from 0;
    ``ndata["node_attr"]`` and ``edata["edge_attr"]``, float32: those that the data set has.
    """

    title = "{name}"
    files = ("https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip",)
    options: ClassVar[dict[str, Any]] = {"name": REQUIRED}

    def process(self) -> None:
        """Read the files and divide nodes and edges into graphs."""
        raw = read_tu(self.path(f"{self.name}_A.txt").parent, self.name, self.verbose)
        count = {"node": raw.num_nodes.tolist(), "edge": raw.num_edges.tolist()}
        parts = torch.from_numpy(raw.edges).split(count["edge"])
        self.graphs = [
            graph((ends[:, 0], ends[:, 1]), num_nodes=size)
            for ends, size in zip(parts, count["node"], strict=True)
        ]
        values = {what: torch.from_numpy(array) for what, array in raw.values.items()}
        for what in set(values) - {"graph_labels", "graph_attributes"}:
            kind, name = what[:4], what.replace("attributes", "attr")
            for g, rows in zip(self.graphs, values[what].split(count[kind]), strict=True):
                (g.ndata if kind == "node" else g.edata)[name] = rows.clone()
        label = values.get("graph_labels")
        self.num_classes = None if label is None else int(label.max()) + 1
        self.labels = self.graph_labels = values["graph_attributes"] if label is None else label
        self.max_num_node = max(count["node"])


class LegacyTUDataset(TUDataset):
    """A data set of the collection with one feature; items are a graph and its label, a scalar.

    ``ndata["feat"]``, float32: attributes, else one-hot labels, else ``hidden_size`` ones.
    ``max_allow_node`` leaves larger graphs out; ``use_pandas`` has no effect.
    """

    options: ClassVar[dict[str, Any]] = {
        **TUDataset.options,
        "use_pandas": False,
        "hidden_size": 10,
        "max_allow_node": None,
    }

    def process(self) -> None:
        """Read the files and make one feature of labels or attributes."""
        super().process()
        most = self.option["max_allow_node"] or self.max_num_node
        keep = [i for i, g in enumerate(self.graphs) if g.num_nodes() <= most]
        known = [g.ndata["node_labels"].max() for g in self.graphs if "node_labels" in g.ndata]
        width = int(max(known, default=0)) + 1
        for g in self.graphs:
            feat = torch.ones(g.num_nodes(), self.option["hidden_size"])
            if known:
                feat = torch.nn.functional.one_hot(g.ndata.pop("node_labels")[:, 0], width).float()
            g.ndata["feat"] = g.ndata.pop("node_attr") if "node_attr" in g.ndata else feat
        self.graphs, self.labels = [self.graphs[i] for i in keep], self.labels[keep].squeeze(1)
        self.max_num_node = max((g.num_nodes() for g in self.graphs), default=0)

    def statistics(self) -> tuple[int, int, int]:
        """Return the length of ``feat``, the number of classes and the most nodes of a graph."""
        return self.graphs[0].ndata["feat"].shape[1], self.num_classes, self.max_num_node
