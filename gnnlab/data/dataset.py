"""Datasets as DGL code expects them: ``dataset[0]`` is the graph, with features and masks."""

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


class NodeDataset:
    """One graph whose nodes are to be classified.

    Parameters
    ----------
    raw : RawDataset
    add_reverse_edges : bool
        Whether the graph also gets v → u for each edge u → v that is not a self-loop.
    citation : str
        Whom to cite.
    transform : callable, optional
        Takes the graph and returns another, each time that ``dataset[0]`` is asked for.

    Attributes
    ----------
    name : str
    num_classes, num_labels : int
        The same number; the second name is that of old programs.
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

    def __getitem__(self, index: int) -> Graph:
        """Return the graph; 0 is the only index."""
        if index != 0:
            raise OutOfRange(f"{self.name} holds one graph, dataset[0]; found index {index}")
        return self._graph if self._transform is None else self._transform(self._graph)

    @property
    def graph(self) -> Graph:
        """The graph without ``transform``: an old name."""
        return self._graph

    def __len__(self) -> int:
        """Number of graphs: 1."""
        return 1

    def __repr__(self) -> str:
        """Counts, at a glance."""
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
    """Load a data set by name, downloading it the first time where it has to be.

    Parameters
    ----------
    name : str
        One of ``gnnlab.data.DATASETS``.
    add_reverse_edges : bool
        The files, but for those of ``reddit``, hold each edge in one direction. True makes
        neighbors hear from each other; False gives the graph as it is in the file.
    folder : str or Path, optional
        Where the files are, or shall be put; by default below ``gnnlab.data.data_home()``.
        Downloads come from ``$GNNLAB_DATA_URL`` where that is set.
    progress : bool
        Whether to show a bar for what takes longer than a second.
    transform : callable, optional
        Takes the graph and returns another, each time that ``dataset[0]`` is asked for.
    **options
        Those of ``DATASETS[name].options``, for the reader: ``read_citations``,
        ``read_facebook``, ``read_reddit`` or ``generate``.

    Returns
    -------
    NodeDataset

    Raises
    ------
    NotFound
        There is no such name.
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
    place = None if folder is None else Path(folder).expanduser()
    unknown = sorted(set(options) - set(info.options))
    if unknown:
        known = ", ".join(("add_reverse_edges", "folder", "progress", "transform", *info.options))
        raise InvalidInput(f"{name} has no option {', '.join(unknown)}; it has {known}")
    raw = info.read(place, progress, **options)
    both_ways = add_reverse_edges and not info.both_ways
    return NodeDataset(raw, both_ways, info.citation, transform)


def products_like(
    num_nodes: int = 100_000, num_edges: int = 2_500_000, seed: int = 0, **options: Any
) -> NodeDataset:
    """Generate a graph shaped like ogbn-products, at any size.

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
    force_reload: bool = False,
    verbose: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Reddit under DGL's name: posts, joined where one user commented on both.

    Parameters
    ----------
    self_loop : bool
        Whether every node has an edge to itself; another archive is downloaded then.
    raw_dir : str or Path, optional
        Folder that holds the two files, or into which the archive is downloaded.
    force_reload : bool
        Accepted and not needed: the files are read every time.
    verbose : bool
        Whether to show a progress bar.
    transform : callable, optional
        Takes the graph and returns another, each time that ``dataset[0]`` is asked for.

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


_BY_ARGUMENT = ("cora", "citeseer", "pubmed", "reddit", "reddit-self-loop")


def register_data_args(parser: argparse.ArgumentParser) -> None:
    """Give a command line the argument ``--dataset``, for :func:`load_data`.

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
    parser.add_argument("--dataset", help=f"one of {', '.join(_BY_ARGUMENT)}")


def load_data(args: argparse.Namespace) -> NodeDataset:
    """Load what ``--dataset`` names; for other data sets there is :func:`load`.

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
        Another name, or none.

    Examples
    --------
    >>> import argparse
    >>> from gnnlab.data import load_data
    >>> load_data(argparse.Namespace(dataset="cora")).num_classes       # doctest: +SKIP
    7
    """
    if args.dataset not in _BY_ARGUMENT:
        raise NotFound(f"--dataset must be one of {', '.join(_BY_ARGUMENT)}; found {args.dataset}")
    if args.dataset.startswith("reddit"):
        return RedditDataset(self_loop=args.dataset == "reddit-self-loop")
    return load(args.dataset)


def set_masks(data: Any, split: Iterable[torch.Tensor]) -> None:
    """Add the three masks to the features of the nodes."""
    for name, ids in zip(MASKS, split, strict=True):
        mask = torch.zeros(len(data["label"]), dtype=torch.bool)
        mask[ids] = True
        data[name] = mask
