"""Data sets of one graph with DGL's interface: ``dataset[0]`` has features, labels and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from gnnlab.data import catalog
from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph

MASKS = ("train_mask", "val_mask", "test_mask")
Transform = Callable[[Graph], Graph]


class OneGraph:
    """Indexing of a data set that holds one graph."""

    name: str
    graph: Graph  # before the transform
    _transform: Transform | None = None

    def __getitem__(self, index: int) -> Graph:
        """Return the graph; 0 is the only index."""
        if index != 0:
            raise OutOfRange(f"{self.name} holds one graph, dataset[0]; found index {index}")
        return self.graph if self._transform is None else self._transform(self.graph)

    def __len__(self) -> int:
        """Number of graphs: 1."""
        return 1


def _column(name: str) -> property:
    return property(lambda self: self.graph.ndata[name], doc=f"``dataset[0].ndata[{name!r}]``.")


class NodeDataset(OneGraph):
    """A graph with labeled nodes and a split, for node classification.

    Parameters
    ----------
    raw : RawDataset
    add_reverse_edges : bool
        Whether the graph also gets v → u for each edge u → v that is not a self-loop.
    citation : str
        What users of the data set should cite.
    transform : callable, optional
        Takes the graph and returns another; called at every access to ``dataset[0]``.

    Attributes
    ----------
    name : str
    num_classes, num_labels : int
        Number of classes; ``num_labels`` is its old name.
    train_idx, val_idx, test_idx : torch.Tensor
        Node IDs, int64.
    citation : str

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dataset = dgl.data.load("digits")
    >>> g = dataset[0]
    >>> g.ndata["feat"].shape, g.ndata["train_mask"].sum()
    (torch.Size([1797, 64]), tensor(179))
    """

    def __init__(
        self,
        raw: RawDataset,
        add_reverse_edges: bool = True,
        citation: str = "",
        transform: Transform | None = None,
    ) -> None:
        self.name, self.num_classes, self.citation = raw.name, raw.num_classes, citation
        self.num_labels, self._transform = raw.num_classes, transform
        edges = raw.with_reverse_edges() if add_reverse_edges else raw
        ends = (torch.from_numpy(edges.src), torch.from_numpy(edges.dst))
        self.graph = graph(ends, num_nodes=raw.num_nodes, idtype=torch.int64)
        self.graph.ndata["feat"] = torch.from_numpy(raw.feat)
        self.graph.ndata["label"] = torch.from_numpy(raw.label)
        parts = (raw.train_idx, raw.val_idx, raw.test_idx)
        self.train_idx, self.val_idx, self.test_idx = (torch.from_numpy(ids) for ids in parts)
        set_masks(self.graph.ndata, (self.train_idx, self.val_idx, self.test_idx))

    # DGL's old names, as is ``num_labels``
    features, labels = _column("feat"), _column("label")
    train_mask, val_mask, test_mask = map(_column, MASKS)

    def __repr__(self) -> str:
        """Name, sizes of the graph, number of classes and sizes of the split."""
        g = self.graph
        return (
            f'Dataset("{self.name}", num_nodes={g.num_nodes()}, num_edges={g.num_edges()}, '
            f"num_features={g.ndata['feat'].shape[1]}, num_classes={self.num_classes}, "
            f"train/val/test={len(self.train_idx)}/{len(self.val_idx)}/{len(self.test_idx)})"
        )


def load(
    name: str = "digits",
    *,
    add_reverse_edges: bool = True,
    folder: str | Path | None = None,
    progress: bool = True,
    transform: Transform | None = None,
    **options: Any,
) -> NodeDataset:
    """Load a data set by name; missing files are downloaded.

    Parameters
    ----------
    name : str
        One of ``gnnlab.data.DATASETS``.
    add_reverse_edges : bool
        Whether to add v → u for each edge u → v, so that messages go both ways. The files of all
        data sets but ``reddit`` hold each edge in one direction.
    folder : str or Path, optional
        Folder that holds the files, or into which they are downloaded; by default below
        ``gnnlab.data.data_home()``. If ``$GNNLAB_DATA_URL`` is set, it is downloaded from there.
    progress : bool
        Whether to show a bar for steps that take longer than a second.
    transform : callable, optional
        Takes the graph and returns another; called at every access to ``dataset[0]``.
    **options
        Keywords in ``DATASETS[name].options``, passed to the reader: ``read_citations``,
        ``read_facebook``, ``read_reddit`` or ``generate``.

    Raises
    ------
    NotFound
        No data set has this name.
    InvalidInput
        A file is missing or wrong.
    DownloadFailed
        The download did not succeed; the message says how to do it by hand.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.load("digits")
    Dataset("digits", num_nodes=1797, num_edges=19858, num_features=64, num_classes=10,
            train/val/test=179/179/1439)
    >>> dgl.data.load("digits", add_reverse_edges=False)[0].num_edges()
    9929
    """
    info = catalog.find(name)
    given = None if folder is None else Path(folder).expanduser()
    unknown = sorted(set(options) - set(info.options))
    if unknown:
        known = ", ".join(("add_reverse_edges", "folder", "progress", "transform", *info.options))
        raise InvalidInput(f"{name} has no option {', '.join(unknown)}; it has {known}")
    raw = info.read(given, progress, **options)
    add = add_reverse_edges and not info.both_ways
    return NodeDataset(raw, add, info.citation, transform)


def products_like(
    num_nodes: int = 100_000, num_edges: int = 2_500_000, seed: int = 0, **options: Any
) -> NodeDataset:
    """Generate a graph of any size with the statistics of ogbn-products.

    Parameters
    ----------
    num_nodes, num_edges : int
        Directed edges: each pair counts twice.
    **options
        ``num_features``, ``add_reverse_edges`` and ``progress``, as in :func:`load`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.products_like(num_nodes=1000, num_edges=20_000)
    Dataset("products-like", num_nodes=1000, num_edges=20000, num_features=100, num_classes=47,
            train/val/test=80/20/900)
    """
    return load("products-like", num_nodes=num_nodes, num_edges=num_edges, seed=seed, **options)


def set_masks(data: Any, split: Iterable[torch.Tensor]) -> None:
    """Set the three masks as node features, from three tensors of IDs."""
    for name, ids in zip(MASKS, split, strict=True):
        mask = torch.zeros(len(data["label"]), dtype=torch.bool)
        mask[ids] = True
        data[name] = mask
