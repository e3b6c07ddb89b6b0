"""``TUDataset`` and ``LegacyTUDataset``, from the files that :mod:`gnnlab.data.tu` reads."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from gnnlab.compat.data.published import REQUIRED, Published
from gnnlab.data.tu import read_tu
from gnnlab.graph.construct import graph


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
