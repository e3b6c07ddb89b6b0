"""Datasets as DGL code expects them: ``dataset[0]`` is the graph, with features and masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.data import catalog
from gnnlab.data.raw import RawDataset
from gnnlab.data.split import random_split
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph

__all__ = ["AsNodePredDataset", "CoraGraphDataset", "NodeDataset", "load", "products_like"]

_MASKS = ("train_mask", "val_mask", "test_mask")


class NodeDataset:
    """One graph whose nodes are to be classified.

    Parameters
    ----------
    raw : RawDataset
    add_reverse_edges : bool
        Whether the graph also gets v → u for each edge u → v that is not a self-loop.
    citation : str
        Whom to cite.

    Attributes
    ----------
    name : str
    num_classes : int
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

    def __init__(self, raw: RawDataset, add_reverse_edges: bool = True, citation: str = "") -> None:
        self.name, self.num_classes, self.citation = raw.name, raw.num_classes, citation
        edges = raw.with_reverse_edges() if add_reverse_edges else raw
        ends = (torch.from_numpy(edges.src), torch.from_numpy(edges.dst))
        self._graph = graph(ends, num_nodes=raw.num_nodes, idtype=torch.int64)
        self._graph.ndata["feat"] = torch.from_numpy(raw.feat)
        self._graph.ndata["label"] = torch.from_numpy(raw.label)
        parts = (raw.train_idx, raw.val_idx, raw.test_idx)
        self.train_idx, self.val_idx, self.test_idx = (torch.from_numpy(ids) for ids in parts)
        _set_masks(self._graph, (self.train_idx, self.val_idx, self.test_idx))

    def __getitem__(self, index: int) -> Graph:
        """Return the graph; 0 is the only index."""
        if index != 0:
            raise OutOfRange(f"{self.name} holds one graph, dataset[0]; found index {index}")
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
    **options: Any,
) -> NodeDataset:
    """Load a data set by name, downloading it the first time where it has to be.

    Parameters
    ----------
    name : str
        One of ``gnnlab.data.DATASETS``.
    add_reverse_edges : bool
        The files hold each edge in one direction. True makes neighbors hear from each other; False
        gives the graph as it is in the file.
    folder : str or Path, optional
        Where the files are; by default below ``gnnlab.data.data_home()``. Downloads come from
        ``$GNNLAB_DATA_URL`` where that is set.
    progress : bool
        Whether to show a bar for what takes longer than a second.
    **options
        Those of ``DATASETS[name].options``, for the reader: ``read_cora``, ``read_facebook`` or
        ``generate``.

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
        known = ", ".join(("add_reverse_edges", "folder", "progress", *info.options))
        raise InvalidInput(f"{name} has no option {', '.join(unknown)}; it has {known}")
    raw = info.read(place, progress, **options)
    return NodeDataset(raw, add_reverse_edges, info.citation)


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


def CoraGraphDataset(
    raw_dir: str | Path | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    reverse_edge: bool = True,
) -> NodeDataset:
    """Load Cora under DGL's name.

    The graph is the same; the 140 / 500 / 1000 split is drawn here and not Planetoid's, and
    features are 0 and 1, not divided by their row sums.

    Parameters
    ----------
    raw_dir : str or Path, optional
        Folder that holds ``cora.npz``; by default it is downloaded.
    force_reload : bool
        Accepted and not needed: the file is read every time.
    verbose : bool
        Whether to show a progress bar.
    reverse_edge : bool
        Whether to add reverse edges.

    Returns
    -------
    NodeDataset

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.CoraGraphDataset().num_classes                         # doctest: +SKIP
    7
    """
    return load("cora", folder=raw_dir, progress=verbose, add_reverse_edges=reverse_edge)


class AsNodePredDataset:
    """Give any one-graph dataset masks and index tensors for node classification.

    Parameters
    ----------
    dataset
        ``dataset[0]`` is a graph with ``ndata["label"]``, or a pair (graph, labels) as OGB returns
        it, then with ``dataset.get_idx_split()``.
    split_ratio : sequence of three floats, optional
        Shares of a new random split. By default the dataset's own split is kept.
    target_ntype : str, optional
        Node type to classify; needed for a graph with several.

    Attributes
    ----------
    num_classes : int
    train_idx, val_idx, test_idx : torch.Tensor
        Node IDs, int64.

    Raises
    ------
    InvalidInput
        There are no labels, or there is neither a split nor a ratio.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dataset = dgl.data.AsNodePredDataset(dgl.data.load("digits"))
    >>> dataset.num_classes, len(dataset.train_idx)
    (10, 179)
    """

    def __init__(
        self,
        dataset: Any,
        split_ratio: tuple[float, float, float] | None = None,
        target_ntype: str | None = None,
    ) -> None:
        item = dataset[0]
        g, labels = item if isinstance(item, tuple) else (item, None)
        self._graph = g.local_var()
        data = _node_data(self._graph, target_ntype)
        if labels is not None:
            data["label"] = torch.as_tensor(labels).reshape(-1)
        if "label" not in data:
            raise InvalidInput(f"node classification needs ndata['label']; found {sorted(data)}")
        self.name = getattr(dataset, "name", type(dataset).__name__)
        self.num_classes = getattr(dataset, "num_classes", None) or int(data["label"].max()) + 1
        split = self._split(dataset, data, split_ratio)
        self.train_idx, self.val_idx, self.test_idx = split
        _set_masks(self._graph, split, target_ntype)

    @staticmethod
    def _split(
        dataset: Any, data: Any, ratio: tuple[float, float, float] | None
    ) -> list[torch.Tensor]:
        if ratio is not None:
            return [torch.from_numpy(ids) for ids in random_split(len(data["label"]), ratio)]
        if hasattr(dataset, "get_idx_split"):
            parts = dataset.get_idx_split()
            return [torch.as_tensor(np.asarray(parts[part])) for part in ("train", "valid", "test")]
        if all(mask in data for mask in _MASKS):
            return [data[mask].bool().nonzero().flatten() for mask in _MASKS]
        raise InvalidInput(
            f"found neither {', '.join(_MASKS)} nor get_idx_split(); give split_ratio"
        )

    def __getitem__(self, index: int) -> Graph:
        """Return the graph; 0 is the only index."""
        if index != 0:
            raise OutOfRange(f"this dataset holds one graph, dataset[0]; found index {index}")
        return self._graph

    def __len__(self) -> int:
        """Number of graphs: 1."""
        return 1


def _node_data(g: Graph, ntype: str | None) -> Any:
    return g.ndata if ntype is None else g.nodes[ntype].data


def _set_masks(g: Graph, split: Any, ntype: str | None = None) -> None:
    data = _node_data(g, ntype)
    for name, ids in zip(_MASKS, split, strict=True):
        mask = torch.zeros(len(data["label"]), dtype=torch.bool)
        mask[ids] = True
        data[name] = mask
