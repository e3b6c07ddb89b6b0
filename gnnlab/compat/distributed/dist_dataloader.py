"""Distributed loaders as DGL's: iterators with ``next``, and ``expected_idxs`` for their length.

A subclass of :class:`DistDataLoader` may define ``_next_data``, which returns the items of the
next batch, or None at the end of an epoch. GraphStorm's loaders do. The collators make mini-batches
for programs that construct torch's DataLoader themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.dataloading.edges import EdgePredictionSampler
from gnnlab.dataloading.recipe import GraphRecipe
from gnnlab.dataloading.sampler import Sampler
from gnnlab.dataloading.seeds import read_indices
from gnnlab.distributed import dataloader as ours
from gnnlab.distributed.graph import DistGraph
from gnnlab.errors import check_graph


class _Epoch:
    """An iterator with its loader's attributes; ``iter`` of one that was read begins an epoch."""

    def __init__(self, loader: Any, batches: Iterator[Any]) -> None:
        self._loader, self._batches, self._is_new = loader, batches, True

    def __iter__(self) -> Iterator[Any]:
        return self if self._is_new else iter(self._loader)

    def __next__(self) -> Any:
        self._is_new = False
        return next(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Steps:
    """Adds ``next(loader)``, which continues the epoch that ``iter(loader)`` began last.

    An epoch is an iterator of its own, so that a loop inside another has its own batches.
    """

    _epoch: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._epoch = super().__iter__()  # type: ignore[misc]
        return _Epoch(self, self._epoch)

    def __next__(self) -> Any:
        if getattr(self._epoch, "gi_frame", None) is None:  # none has begun, or a loop ended it
            iter(self)  # type: ignore[call-overload]
        return next(self._epoch)  # type: ignore[arg-type]

    @property
    def expected_idxs(self) -> int:
        """Number of batches of an epoch."""
        return len(self)  # type: ignore[arg-type]


class DistNodeDataLoader(_Steps, ours.DistNodeDataLoader):
    """:class:`gnnlab.distributed.DistNodeDataLoader`, also an iterator."""


class _PairsOfSeedTypes(Sampler):
    """Leaves in the graph of pairs only the edge types of the seeds, as DGL's distributed graphs.

    Programs read the type that they predict from it: ``pair_graph.canonical_etypes[0]``.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.pure = getattr(sampler, "pure", False)

    def sample(self, g: Any, seed_edges: Any) -> Any:
        input_nodes, pairs, *rest = self.sampler.sample(g, seed_edges)
        if isinstance(seed_edges, Mapping):
            etypes = [g.to_canonical_etype(etype) for etype in seed_edges]
            pairs = pairs.derive(
                {etype: pairs.relations[etype] for etype in etypes},
                node_frames=pairs.node_frames(),
                edge_frames={etype: pairs.edge_frames[etype] for etype in etypes},
            )
        return input_nodes, pairs, *rest


class NodeCollator:
    """Make mini-batches of nodes in torch's DataLoader; that of gnnlab is faster.

    Parameters
    ----------
    g : Graph or DistGraph
    nids : tensor, numpy array, list, or dict of them by node type
    graph_sampler : Sampler

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.distributed.dist_dataloader import NodeCollator
    >>> from torch.utils.data import DataLoader
    >>> g = dgl.rand_graph(10, 50)
    >>> nodes = NodeCollator(g, range(10), dgl.dataloading.NeighborSampler([2]))
    >>> loader = DataLoader(nodes.dataset, batch_size=5, collate_fn=nodes.collate)
    >>> for input_nodes, output_nodes, blocks in loader:
    ...     print(output_nodes)
    tensor([0, 1, 2, 3, 4])
    tensor([5, 6, 7, 8, 9])
    """

    def __init__(self, g: Any, nids: Any, graph_sampler: Any) -> None:
        check_graph(g, type(self).__name__)
        self.g, self.graph_sampler = g, graph_sampler
        self._recipe = GraphRecipe([g], graph_sampler, g.device)
        #: One item per seed: an ID, or (type, ID) if seeds are given by type.
        self.dataset: Any = read_indices(g, nids).items()

    def collate(self, items: Sequence[Any]) -> Any:
        """Make a mini-batch from items of :attr:`dataset`."""
        ids: Any = {}
        if isinstance(items[0], tuple):
            for name, i in items:
                ids.setdefault(name, []).append(i)
        else:
            ids = torch.as_tensor([int(i) for i in items])
        return self._recipe.complete(self.graph_sampler.sample(self.g, ids))


class EdgeCollator(NodeCollator):
    """Make mini-batches of edges in torch's DataLoader; on a DistGraph, pairs of the seeds' types.

    Parameters
    ----------
    g : Graph or DistGraph
    eids : tensor, numpy array, list, or dict of them by edge type
    graph_sampler : Sampler
    g_sampling, exclude, reverse_eids, reverse_etypes, negative_sampler
        As for :class:`gnnlab.dataloading.EdgeDataLoader`.
    """

    def __init__(
        self,
        g: Any,
        eids: Any,
        graph_sampler: Any,
        g_sampling: Any = None,
        exclude: Any = None,
        reverse_eids: Any = None,
        reverse_etypes: Any = None,
        negative_sampler: Any = None,
    ) -> None:
        sampler = EdgePredictionSampler(
            *(graph_sampler, exclude, reverse_eids, reverse_etypes, negative_sampler),
            g_sampling=None if g_sampling is g else g_sampling,
        )
        super().__init__(g, eids, sampler)
        if sampler.g_sampling is not None:
            self._recipe.graphs = [g, sampler.g_sampling]
        if isinstance(g, DistGraph):
            self.graph_sampler = _PairsOfSeedTypes(sampler)


class DistEdgeDataLoader(_Steps, ours.DistEdgeDataLoader):
    """:class:`gnnlab.distributed.DistEdgeDataLoader`, an iterator; pairs of the seeds' types."""

    def __init__(
        self, g: Any, eids: Any, graph_sampler: Any = None, device: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(g, eids, graph_sampler, device, **kwargs)
        self.graph_sampler = _PairsOfSeedTypes(self.graph_sampler)


class DistDataLoader(_Steps, ours.DistDataLoader):
    """:class:`gnnlab.distributed.DistDataLoader`, also an iterator.

    In a subclass that defines ``_next_data``, that chooses the items of each batch, in this
    process; ``dataset`` may then be a dictionary of arrays by type.

    Examples
    --------
    >>> from gnnlab.compat.distributed.dist_dataloader import DistDataLoader
    >>> class Pairs(DistDataLoader):
    ...     def __iter__(self):
    ...         self.at = -2
    ...         return self
    ...     def _next_data(self):
    ...         self.at += 2
    ...         return self.dataset[self.at : self.at + 2] if self.at < len(self.dataset) else None
    >>> list(Pairs([1, 2, 3], 1, collate_fn=sum))
    [3, 3]
    """

    _steps_done = 0

    def __iter__(self) -> Iterator[Any]:
        self._steps_done = 0
        return self if hasattr(self, "_next_data") else super().__iter__()

    def __init__(self, dataset: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("batch_size", 1) if not args else None
        if isinstance(dataset, Mapping):
            super().__init__(np.arange(sum(map(len, dataset.values()))), *args, **kwargs)
            self.dataset = dataset
        else:
            super().__init__(dataset, *args, **kwargs)

    def __next__(self) -> Any:
        choose = getattr(self, "_next_data", None)
        if choose is None:
            return super().__next__()
        items = choose()
        if items is None:
            self._steps_done = 0
            raise StopIteration
        if not self._steps_done:
            self._epoch_key = random.next_key()
        self._steps_done += 1
        if self.collate_fn is None:
            return items
        with random.stream(self._epoch_key, self._steps_done - 1):
            return self.collate_fn(items)

    @property
    def expected_idxs(self) -> int:
        """Number of batches of an epoch; a subclass may set it."""
        return self.__dict__.get("expected_idxs", len(self))

    @expected_idxs.setter
    def expected_idxs(self, count: int) -> None:
        self.__dict__["expected_idxs"] = count


def _remove_kwargs_dist(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of ordinary loaders that distributed ones do not take; return the rest."""
    if kwargs.get("num_workers") or kwargs.get("pin_memory"):
        warnings.warn(
            "num_workers and pin_memory have no effect on a distributed loader: samplers are "
            "started with the job (gnnlab launch --num_samplers)",
            stacklevel=3,
        )
    of_dgl = ("use_prefetch_thread", "use_alternate_streams", "pin_prefetcher")
    for name in (*ours.OPTIONS_WITHOUT_EFFECT, *of_dgl):
        kwargs.pop(name, None)
    return kwargs
