"""Data sets of one graph with DGL's interface: ``dataset[0]`` has features, labels and masks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from gnnlab.data import catalog
from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph

__all__ = [
    "NodeDataset",
    "RedditDataset",
    "load",
    "load_data",
    "products_like",
    "register_data_args",
]

MASKS = ("train_mask", "val_mask", "test_mask")
Transform = Callable[[Graph], Graph]


class OneGraph:
    """Indexing of a data set that holds one graph."""

    name: str
    _graph: Graph
    _transform: Transform | None = None

    def __getitem__(self, index: int) -> Graph:
        """Return the graph; 0 is the only index."""
        if index != 0:
            raise OutOfRange(f"{self.name} holds one graph, dataset[0]; found index {index}")
        return self._graph if self._transform is None else self._transform(self._graph)

    def __len__(self) -> int:
        """Number of graphs: 1."""
        return 1


def _column(name: str) -> property:
    return property(lambda self: self._graph.ndata[name], doc=f"``dataset[0].ndata[{name!r}]``.")


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
        self._graph = graph(ends, num_nodes=raw.num_nodes, idtype=torch.int64)
        self._graph.ndata["feat"] = torch.from_numpy(raw.feat)
        self._graph.ndata["label"] = torch.from_numpy(raw.label)
        parts = (raw.train_idx, raw.val_idx, raw.test_idx)
        self.train_idx, self.val_idx, self.test_idx = (torch.from_numpy(ids) for ids in parts)
        set_masks(self._graph.ndata, (self.train_idx, self.val_idx, self.test_idx))

    # DGL's old names, as is ``num_labels``
    features, labels = _column("feat"), _column("label")
    train_mask, val_mask, test_mask = map(_column, MASKS)

    @property
    def graph(self) -> Graph:
        """The graph before ``transform``: an old name."""
        return self._graph

    def __repr__(self) -> str:
        """Name, sizes of the graph, number of classes and sizes of the split."""
        g = self._graph
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

    Returns
    -------
    NodeDataset

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
    seed : int
    **options
        ``num_features``, ``add_reverse_edges`` and ``progress``, as in :func:`load`.

    Returns
    -------
    NodeDataset

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.products_like(num_nodes=1000, num_edges=20_000)
    Dataset("products-like", num_nodes=1000, num_edges=20000, num_features=100, num_classes=47,
            train/val/test=80/20/900)
    """
    return load("products-like", num_nodes=num_nodes, num_edges=num_edges, seed=seed, **options)


def RedditDataset(
    self_loop: bool = False,
    raw_dir: str | Path | None = None,
    verbose: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Reddit under DGL's name: an edge joins posts that the same user commented on.

    Parameters
    ----------
    self_loop : bool
        Whether every node has an edge to itself: a different archive.
    raw_dir : str or Path, optional
        Folder that holds the two files, or into which the archive is downloaded.
    verbose : bool
        Whether to show a progress bar.
    transform : callable, optional
        Takes the graph and returns another; called at every access to ``dataset[0]``.

    Returns
    -------
    NodeDataset
        Both directions of every edge, ``feat``, ``label`` and the published masks.

    Raises
    ------
    InvalidInput
        A file is damaged or not of this layout.
    DownloadFailed
        The download did not succeed; the message says how to do it by hand.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.RedditDataset(self_loop=True).num_classes              # doctest: +SKIP
    41

    References
    ----------
    Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
    """
    return load(
        "reddit", folder=raw_dir, progress=verbose, transform=transform, self_loop=self_loop
    )


_ARGUMENTS = ("cora", "citeseer", "pubmed", "reddit", "reddit-self-loop")


def register_data_args(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``--dataset`` to a command line, for :func:`load_data`.

    Parameters
    ----------
    parser : argparse.ArgumentParser

    Examples
    --------
    >>> import argparse
    >>> from gnnlab.data import register_data_args
    >>> parser = argparse.ArgumentParser()
    >>> register_data_args(parser)
    >>> parser.parse_args(["--dataset", "cora"])
    Namespace(dataset='cora')
    """
    parser.add_argument("--dataset", help=f"one of {', '.join(_ARGUMENTS)}")


def load_data(args: argparse.Namespace) -> NodeDataset:
    """Load the data set that ``--dataset`` names; see :func:`load` for other data sets.

    Parameters
    ----------
    args : argparse.Namespace
        Its ``dataset`` is cora, citeseer, pubmed, reddit or reddit-self-loop.

    Returns
    -------
    NodeDataset

    Raises
    ------
    NotFound
        ``--dataset`` is missing or has another value.

    Examples
    --------
    >>> import argparse
    >>> from gnnlab.data import load_data
    >>> load_data(argparse.Namespace(dataset="cora")).num_classes       # doctest: +SKIP
    7
    """
    if args.dataset not in _ARGUMENTS:
        raise NotFound(f"--dataset must be one of {', '.join(_ARGUMENTS)}; found {args.dataset}")
    if args.dataset.startswith("reddit"):
        return RedditDataset(self_loop=args.dataset == "reddit-self-loop")
    return load(args.dataset)


def set_masks(data: Any, split: Iterable[torch.Tensor]) -> None:
    """Set the three masks as node features, from three tensors of IDs."""
    for name, ids in zip(MASKS, split, strict=True):
        mask = torch.zeros(len(data["label"]), dtype=torch.bool)
        mask[ids] = True
        data[name] = mask
