"""Nine data sets for graph classification: molecules and social networks.

``dataset.zip`` holds a text file per data set. Its first line is the number of graphs. A graph is a
line ``n label`` and a line ``tag m neighbor_1 … neighbor_m`` for each of its n nodes, which are
counted from 0; numbers after the neighbors are attributes. An edge is listed at both endpoints.

References
----------
Xu, Hu, Leskovec and Jegelka, "How Powerful are Graph Neural Networks?", ICLR 2019 (the files).
Yanardag and Vishwanathan, "Deep Graph Kernels", KDD 2015 (the data sets).
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, Subset

from gnnlab.data.dataset import Transform
from gnnlab.data.download import data_folder, local_archive
from gnnlab.errors import InvalidInput, NotFound, OutOfRange, check_file, reading
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.graph.transform import add_self_loop
from gnnlab.system.bars import progress_bar

URL = "https://github.com/weihua916/powerful-gnns/raw/master/dataset.zip"
NAMES = (
    *("MUTAG", "COLLAB", "IMDBBINARY", "IMDBMULTI", "NCI1"),
    *("PROTEINS", "PTC", "REDDITBINARY", "REDDITMULTI5K"),
)


class RawGraphs(NamedTuple):
    """G graphs with N nodes and E directed edges in all, as plain arrays, int64."""

    label: np.ndarray  # (G,) as in the file
    num_nodes: np.ndarray  # (G,)
    tag: np.ndarray  # (N,) as in the file
    degree: np.ndarray  # (N,) number of neighbors
    neighbor: np.ndarray  # (E,) counted from 0 in each graph
    attributes: np.ndarray  # (N, D) float32; D is 0 if the file has none


class GINDataset(Dataset[Any]):
    """Load one of the nine data sets under DGL's name: ``dataset[i]`` is a graph and its class.

    ``name`` is one of ``NAMES``. ``degree_as_nlabel`` uses the in-degree of a node as its label,
    instead of its tag. ``raw_dir`` holds ``dataset/NAME/NAME.txt``, or gets the archive.
    ``transform`` takes a graph and returns another, at every access.

    Attributes
    ----------
    graphs : list of Graph
        ``ndata["label"]``, int64: tags, numbered in order of first appearance; or degrees.
        ``ndata["attr"]``, float32: one-hot labels, or the attributes of the file if it has some.
    labels : torch.Tensor
        Shape (G,), int64: classes, numbered in order of first appearance.
    num_classes, gclasses : int
    dim_nfeats : int
        Columns of ``ndata["attr"]``.
    citation : str

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dataset = dgl.data.GINDataset("MUTAG", self_loop=True)          # doctest: +SKIP
    >>> g, label = dataset[0]                                           # doctest: +SKIP
    >>> len(dataset), dataset.num_classes                               # doctest: +SKIP
    (188, 2)

    References
    ----------
    Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019.
    """

    citation = (
        "K. Xu, W. Hu, J. Leskovec, S. Jegelka: How Powerful are Graph Neural Networks? ICLR 2019. "
        "P. Yanardag, S. V. N. Vishwanathan: Deep Graph Kernels. KDD 2015."
    )

    def __init__(
        self,
        name: str,
        self_loop: bool,
        degree_as_nlabel: bool = False,
        raw_dir: str | Path | None = None,
        verbose: bool = False,
        transform: Transform | None = None,
    ) -> None:
        if name not in NAMES:
            raise NotFound(f"no data set is called {name!r}; there are {', '.join(NAMES)}")
        self.name, self.transform = name, transform
        local = local_archive(URL, data_folder("gin", raw_dir) / "dataset", verbose, room=2)
        raw = read_gin(local / name / f"{name}.txt", progress=verbose)
        self.labels, self.num_classes = _number(raw.label)
        self.gclasses = self.num_classes
        self.graphs = _graphs(raw, self_loop)
        label, width = _number(raw.tag)
        column = label
        if degree_as_nlabel:
            label = torch.cat([g.in_degrees() for g in self.graphs])
            distinct, column = torch.unique(label, return_inverse=True)
            width = len(distinct)
        self.dim_nfeats = raw.attributes.shape[1] or width
        sizes = raw.num_nodes.tolist()
        parts = [part.split(sizes) for part in (label, column, torch.from_numpy(raw.attributes))]
        for g, labels, ones, attributes in zip(self.graphs, *parts, strict=True):
            # Copies: pickling a view would send the rows of all graphs to another process.
            g.ndata["label"] = labels.clone()
            one_hot = torch.nn.functional.one_hot(ones, width).float()
            g.ndata["attr"] = attributes.clone() if attributes.shape[1] else one_hot

    def __len__(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    def __getitem__(self, index: Any) -> Any:
        """Return a graph and its class; a Subset for a slice or several indices."""
        try:
            chosen = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        except IndexError as error:
            raise OutOfRange(f"{self.name} has {len(self)} graphs; {error}") from error
        if chosen.ndim:
            return Subset(self, chosen.tolist())
        g = self.graphs[chosen]
        return g if self.transform is None else self.transform(g), self.labels[int(chosen)]


def read_gin(path: str | Path, progress: bool = True) -> RawGraphs:
    """Read one text file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gnnlab.compat.data.gin import read_gin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "PAIR.txt")
    ...     _ = path.write_text("1\\n2 0\\n5 1 1\\n7 1 0\\n")
    ...     read_gin(path).neighbor
    array([1, 0])
    """
    path = Path(path).expanduser()
    check_file(path)
    label, sizes, tag, degree, neighbor = (array("q") for _ in range(5))
    values, count, left, width = array("f"), 0, 0, 0
    with reading(path, InvalidInput), open(path, encoding="utf-8-sig", errors="replace") as stream:
        lines = progress_bar(stream, progress, desc=path.name, unit=" lines")
        for number, line in enumerate(lines, 1):
            fields = line.split()
            try:
                if number == 1:
                    expected = "the number of graphs"
                    (count,) = map(int, fields)
                elif not fields:
                    continue
                elif not left:
                    expected = "a number of nodes and a class"
                    left, graph_class = map(int, fields)
                    if left < 1:
                        raise ValueError
                    sizes.append(left)
                    label.append(graph_class)
                else:
                    size = sizes[-1]
                    expected = f"a tag, a number m, m neighbors 0 … {size - 1} and {width} others"
                    m = int(fields[1])
                    neighbors, others = [int(n) for n in fields[2 : 2 + m]], fields[2 + m :]
                    width = width if tag else len(others)
                    if (len(neighbors), len(others)) != (m, width):
                        raise ValueError
                    if m and not 0 <= min(neighbors) <= max(neighbors) < size:
                        raise ValueError
                    tag.append(int(fields[0]))
                    degree.append(m)
                    neighbor.extend(neighbors)
                    values.extend(map(float, others))
                    left -= 1
            except (ValueError, IndexError, OverflowError) as error:
                found = f"{line.strip()[:60]!r}"
                raise InvalidInput(
                    f"{path}, line {number}: expected {expected}; found {found}"
                ) from error
    if left or len(sizes) != count or not count:
        raise InvalidInput(
            f"{path}: expected {count or 'some'} graphs; found {len(sizes)}, and the last lacks "
            f"{left} nodes"
        )
    attributes = np.array(values, np.float32).reshape(len(tag), width)
    if not np.isfinite(attributes).all():
        node = int((~np.isfinite(attributes)).any(1).argmax())
        raise InvalidInput(f"{path}: node {node} of all has an attribute that is not finite")
    arrays = [np.array(part, np.int64) for part in (label, sizes, tag, degree, neighbor)]
    return RawGraphs._make([*arrays, attributes])


def _number(values: np.ndarray) -> tuple[torch.Tensor, int]:
    """Number the distinct values in order of first appearance; also return their count."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return torch.from_numpy(np.argsort(np.argsort(first))[inverse]), len(distinct)


def _graphs(raw: RawGraphs, self_loop: bool) -> list[Graph]:
    start = np.cumsum(raw.num_nodes) - raw.num_nodes
    node = np.arange(len(raw.tag)) - np.repeat(start, raw.num_nodes)
    num_edges = np.add.reduceat(raw.degree, start).tolist()
    src = torch.from_numpy(np.repeat(node, raw.degree)).split(num_edges)
    dst = torch.from_numpy(raw.neighbor).split(num_edges)
    sizes = raw.num_nodes.tolist()
    graphs = [graph((u, v), num_nodes=n) for u, v, n in zip(src, dst, sizes, strict=True)]
    return [add_self_loop(g) for g in graphs] if self_loop else graphs
