"""Distributed loaders as DGL's: iterators with ``next``, and ``expected_idxs`` for their length.

A subclass of :class:`DistDataLoader` may define ``_next_data``, which returns the items of the
next batch, or None at the end of an epoch. GraphStorm's loaders do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gnnlab import random
from gnnlab.dataloading import collate
from gnnlab.dataloading.collate import NodeCollator as NodeCollator
from gnnlab.dataloading.sampler import Sampler
from gnnlab.distributed import dataloader as ours
from gnnlab.distributed.graph import DistGraph


class _Steps:
    """Adds ``next(loader)``, which continues the epoch that ``iter(loader)`` began last.

    An epoch is an iterator of its own, so that a loop inside another has its own batches.
    """

    _epoch: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        epoch: Iterator[Any] = super().__iter__()  # type: ignore[misc]
        self._epoch = epoch
        return epoch

    def __next__(self) -> Any:
        if getattr(self._epoch, "gi_frame", None) is None:  # none has begun, or a loop ended it
            iter(self)  # type: ignore[call-overload]
        try:
            return next(self._epoch)  # type: ignore[arg-type]
        except BaseException:
            self._epoch = None
            raise

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


class EdgeCollator(collate.EdgeCollator):
    """:class:`gnnlab.dataloading.EdgeCollator`; with a DistGraph, pairs of the seeds' types."""

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
        super().__init__(
            *(g, eids, graph_sampler, g_sampling, exclude, reverse_eids, reverse_etypes),
            negative_sampler,
        )
        if isinstance(g, DistGraph):
            self.graph_sampler = _PairsOfSeedTypes(self.graph_sampler)


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
    for name in (
        *ours.OPTIONS_WITHOUT_EFFECT,
        "use_prefetch_thread",
        "use_alternate_streams",
        "pin_prefetcher",
    ):
        kwargs.pop(name, None)
    return kwargs
