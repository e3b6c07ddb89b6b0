"""The TU collection: over a hundred data sets of small graphs in text files of one layout.

``NAME_A.txt`` has an edge a line, nodes counted from 1 through all graphs;
``NAME_graph_indicator.txt`` the graph of each node; ``NAME_graph_labels.txt`` the class of each
graph; further files have labels and attributes of nodes and edges.

References
----------
Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", 2020.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch

from gnnlab.compat.data.published import REQUIRED, Published
from gnnlab.data.table import read_floats, read_integers
from gnnlab.errors import InvalidInput
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
        member, edges = self._read("graph_indicator", 1)[:, 0], self._read("A", 2)
        path = self.path(f"{self.name}_A.txt")
        if (np.diff(member) < 0).any() or not len(member) or member[0] != 1:
            raise InvalidInput(
                f"{path.parent}/{self.name}_graph_indicator.txt: nodes must be in the order of "
                "graphs 1, 2, 3 …"
            )
        if not 1 <= edges.min(initial=1) <= edges.max(initial=1) <= len(member):
            raise InvalidInput(f"{path}: expected nodes 1 … {len(member)}; found {edges.max()}")
        member, edges = member - 1, edges - 1
        owner = member[edges[:, 0]]
        if (owner != member[edges[:, 1]]).any():
            line = int((owner != member[edges[:, 1]]).argmax()) + 1
            raise InvalidInput(f"{path}, line {line}: the two nodes belong to two graphs")
        sizes = np.bincount(member)
        order = np.argsort(owner, kind="stable")
        lengths = np.bincount(owner, minlength=len(sizes)).tolist()
        local = edges - (np.cumsum(sizes) - sizes)[owner][:, None]
        parts = torch.from_numpy(local[order]).split(lengths)
        sizes = sizes.tolist()
        self.graphs = [
            graph((ends[:, 0], ends[:, 1]), num_nodes=size)
            for ends, size in zip(parts, sizes, strict=True)
        ]
        for kind, rows, counts in (("node", slice(None), sizes), ("edge", order, lengths)):
            for what, name in (("labels", "labels"), ("attributes", "attr")):
                values = self._values(f"{kind}_{what}", sum(counts))
                if values is not None:
                    for g, part in zip(self.graphs, values[rows].split(counts), strict=True):
                        (g.ndata if kind == "node" else g.edata)[f"{kind}_{name}"] = part.clone()
        label = self._values("graph_labels", len(sizes))
        if label is None:  # data sets for regression
            label, self.num_classes = self._values("graph_attributes", len(sizes)), None
        else:
            self.num_classes = int(label.max()) + 1
        self.labels = self.graph_labels = label
        self.max_num_node = max(sizes)

    def _read(self, what: str, columns: int) -> np.ndarray:
        path = self.path(f"{self.name}_{what}.txt")
        return np.stack(read_integers(path, columns, progress=self.verbose), 1).astype(np.int64)

    def _values(self, what: str, rows: int) -> torch.Tensor | None:
        """Return labels, counted from 0, or attributes; None if there is no such file."""
        name = f"{self.name}_{what}.txt"
        if not self.has(name):
            return None
        values = torch.from_numpy(
            read_floats(
                self.path(name), rows=rows, rows_from="this data set", progress=self.verbose
            )
        )
        return values if "attributes" in what else (values - values.min()).long()


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
