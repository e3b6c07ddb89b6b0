"""Adapters of any data set to node classification, link prediction or graph classification.

``raw_dir``, ``save_dir``, ``force_reload`` and ``verbose`` have no effect: nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gnnlab.data.dataset import MASKS, OneGraph, set_masks
from gnnlab.data.split import random_split
from gnnlab.errors import InvalidInput
from gnnlab.graph.edit import remove_edges
from gnnlab.random import stream
from gnnlab.sampling.negative import global_uniform_negative_sampling


class AsNodePredDataset(OneGraph):
    """Add masks and index tensors for node classification to any one-graph dataset.

    Parameters
    ----------
    dataset
        ``dataset[0]`` is a graph with ``ndata["label"]``, or a pair (graph, labels) as OGB returns
        it, then with ``dataset.get_idx_split()``.
    split_ratio : sequence of three floats, optional
        Fractions of a new random split. By default the dataset's own split is used.
    target_ntype : str, optional
        Node type to classify; needed for a graph with several.

    Attributes
    ----------
    num_classes : int
    train_idx, val_idx, test_idx : torch.Tensor
        Node IDs, int64.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dataset = dgl.data.AsNodePredDataset(dgl.data.load("digits"))
    >>> dataset.num_classes, len(dataset.train_idx)
    (10, 179)
    """

    def __init__(
        self,
        dataset: Any,
        split_ratio: tuple[float, float, float] | None = None,
        target_ntype: str | None = None,
        **kwargs: Any,
    ) -> None:
        _check_options("AsNodePredDataset", kwargs)
        item = dataset[0]
        found, labels = item if isinstance(item, tuple) else (item, None)
        self.graph = g = found.local_var()
        data = g.ndata if target_ntype is None else g.nodes[target_ntype].data
        if labels is not None:
            data["label"] = torch.as_tensor(labels).reshape(-1)
        if "label" not in data:
            raise InvalidInput(f"node classification needs ndata['label']; found {sorted(data)}")
        self.name = getattr(dataset, "name", type(dataset).__name__)
        self.num_classes = getattr(dataset, "num_classes", None) or int(data["label"].max()) + 1
        split = self._split(dataset, data, split_ratio)
        self.train_idx, self.val_idx, self.test_idx = split
        set_masks(data, split)

    @staticmethod
    def _split(
        dataset: Any, data: Any, ratio: tuple[float, float, float] | None
    ) -> list[torch.Tensor]:
        if ratio is not None:
            return [torch.from_numpy(ids) for ids in random_split(len(data["label"]), ratio)]
        if hasattr(dataset, "get_idx_split"):
            return _published(dataset)
        if all(mask in data for mask in MASKS):
            return [data[mask].bool().nonzero().flatten() for mask in MASKS]
        raise InvalidInput(
            f"found neither {', '.join(MASKS)} nor get_idx_split(); give split_ratio"
        )


class AsLinkPredDataset(OneGraph):
    """Split the edges of a one-graph dataset for link prediction, and draw negative pairs.

    The edges u → v and v → u go to the same set, because a model trained on one of them could
    predict the other from it. Self-loops stay in the training graph.

    Parameters
    ----------
    dataset
        ``dataset[0]`` is a graph with one node type and one edge type.
    split_ratio : sequence of three floats, optional
        Fractions of training, validation and test edges; by default 0.8, 0.1, 0.1.
    neg_ratio : int
        Negative pairs (pairs without an edge) per validation and test edge; fewer if the graph is
        so dense that not enough are found.
    seed : int
        Seed of split and pairs, on every machine; :func:`gnnlab.seed` has no influence.

    Attributes
    ----------
    val_edges, test_edges : tuple
        ``((src, dst), (neg_src, neg_dst))``, node IDs. No negative pair is in both.
    num_classes : int or None
        That of ``dataset``, if it has this attribute.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dataset = dgl.data.AsLinkPredDataset(dgl.data.load("digits"))
    >>> (src, dst), (neg_src, neg_dst) = dataset.test_edges
    >>> dataset[0].num_edges(), len(src), len(neg_src)
    (15886, 1986, 5958)

    References
    ----------
    Liben-Nowell and Kleinberg, "The Link Prediction Problem for Social Networks", CIKM 2003.
    """

    def __init__(
        self,
        dataset: Any,
        split_ratio: Sequence[float] | None = None,
        neg_ratio: int = 3,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        _check_options("AsLinkPredDataset", kwargs)
        self.name = getattr(dataset, "name", type(dataset).__name__)
        g = dataset[0]
        if not g.is_homogeneous:
            raise InvalidInput(
                "AsLinkPredDataset takes a graph with one node type and one edge type; found "
                f"{g.canonical_etypes}; take one out with gnnlab.edge_type_subgraph(g, [etype])"
            )
        self.num_classes = getattr(dataset, "num_classes", None)
        src, dst = g.edges()
        subset = _split_edges(src.long(), dst.long(), _ratio(split_ratio), seed)
        self.graph = remove_edges(g, subset > 0)
        val, test = ((src[subset == part], dst[subset == part]) for part in (1, 2))
        num_held_out = len(val[0]) + len(test[0])
        with stream(seed):
            pairs = global_uniform_negative_sampling(g, neg_ratio * num_held_out)
        num_val = len(pairs[0]) * len(val[0]) // max(num_held_out, 1)
        self.val_edges = (val, (pairs[0][:num_val], pairs[1][:num_val]))
        self.test_edges = (test, (pairs[0][num_val:], pairs[1][num_val:]))


def _split_edges(
    src: torch.Tensor, dst: torch.Tensor, ratio: Sequence[float], seed: int
) -> torch.Tensor:
    """Return 0, 1 or 2 for each edge: training, validation or test."""
    low, high = torch.minimum(src, dst), torch.maximum(src, dst)
    links = (src != dst).nonzero().flatten()
    keys = (low << 32 | high)[links]
    distinct, pair_of = torch.unique(keys, return_inverse=True)
    subset_of_pair = torch.zeros_like(distinct)
    for number, ids in enumerate(random_split(len(distinct), ratio, seed)):
        subset_of_pair[torch.from_numpy(ids).to(src.device)] = number
    subset = torch.zeros_like(src)
    subset[links] = subset_of_pair[pair_of]
    return subset


class AsGraphPredDataset:
    """Add index tensors for graph classification to a dataset of many graphs.

    Parameters
    ----------
    dataset
        ``dataset[i]`` is a pair of a graph and its label.
    split_ratio : sequence of three floats, optional
        Fractions of a random split. By default the dataset's own split is used if it has OGB's
        method ``get_idx_split()``, else 0.8, 0.1, 0.1.
    seed : int
        Seed of that split.

    Attributes
    ----------
    train_idx, val_idx, test_idx : torch.Tensor
        Indices of graphs, int64.
    num_tasks : int
        Number of labels per graph.
    num_classes : int or None
        That of ``dataset`` if it has this attribute, else the largest label + 1; None if labels
        are not integers.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> graphs = [(dgl.rand_graph(n, 9), n % 2) for n in range(3, 13)]
    >>> dataset = dgl.data.AsGraphPredDataset(graphs)
    >>> len(dataset.train_idx), dataset.num_classes, dataset.num_tasks
    (8, 2, 1)
    """

    def __init__(
        self, dataset: Any, split_ratio: Sequence[float] | None = None, seed: int = 0, **kwargs: Any
    ) -> None:
        _check_options("AsGraphPredDataset", kwargs)
        first = dataset[0]
        if not isinstance(first, tuple) or len(first) != 2:
            raise InvalidInput(
                f"expected pairs of a graph and a label; found {type(first).__name__}"
            )
        self._dataset = dataset
        if split_ratio is None and hasattr(dataset, "get_idx_split"):
            split = _published(dataset)
        else:
            parts = random_split(len(dataset), _ratio(split_ratio), seed)
            split = [torch.from_numpy(ids) for ids in parts]
        self.train_idx, self.val_idx, self.test_idx = split
        label = torch.as_tensor(first[1])
        self.num_tasks = getattr(dataset, "num_tasks", label.numel())
        self.num_classes = getattr(dataset, "num_classes", None)
        if self.num_classes is None and not label.is_floating_point():
            labels = (dataset[i][1] for i in range(len(dataset)))
            self.num_classes = 1 + max(int(torch.as_tensor(label).max()) for label in labels)

    def __getitem__(self, index: int) -> Any:
        """Return the graph at this index and its label."""
        return self._dataset[index]

    def __len__(self) -> int:
        """Number of graphs."""
        return len(self._dataset)


def _published(dataset: Any) -> list[torch.Tensor]:
    """Return the published split of an OGB data set."""
    parts = dataset.get_idx_split()
    return [torch.as_tensor(np.asarray(parts[part])) for part in ("train", "valid", "test")]


def _ratio(split_ratio: Sequence[float] | None) -> Sequence[float]:
    return (0.8, 0.1, 0.1) if split_ratio is None else split_ratio


def _check_options(name: str, options: dict[str, Any]) -> None:
    known = ("raw_dir", "save_dir", "force_reload", "verbose")
    if unknown := sorted(set(options) - set(known)):
        raise InvalidInput(
            f"{name} has no option {', '.join(unknown)}; it takes {', '.join(known)}"
        )
