"""Data loaders for distributed training.

The ordinary loaders accept a :class:`DistGraph` too; features of the mini-batch are fetched from
their owners on first read. The names here are those of DGL's distributed package. Seeds are divided
among trainers beforehand (:mod:`gnnlab.distributed.split`), so each trainer's loader iterates over
all seeds that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab.dataloading.edges import EdgeDataLoader
from gnnlab.dataloading.epochs import Loader
from gnnlab.dataloading.executors import Executor
from gnnlab.dataloading.features import graphs_in
from gnnlab.dataloading.loader import DataLoader, NodeDataLoader
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.dataloading.sampler import NeighborSampler
from gnnlab.dataloading.seeds import Seeds
from gnnlab.distributed import context
from gnnlab.distributed.cache import own_range, remote_numbers
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.inclusion import inclusion_of_parts
from gnnlab.distributed.policies import EpochReads, ranked
from gnnlab.distributed.sampler_processes import SamplerExecutor
from gnnlab.distributed.transport import InProcess
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.names import NID
from gnnlab.graph.neighbor import read_fanouts

#: Accepted, but without effect: the job starts the samplers, and results are on the CPU.
OPTIONS_WITHOUT_EFFECT = (
    *("num_workers", "persistent_workers", "prefetch_factor", "worker_init_fn"),
    *("multiprocessing_context", "timeout", "pin_memory", "use_ddp", "ddp_seed", "use_uva"),
)


def executor_of_job(own: Executor, ahead: int | None = None) -> Executor:
    """Return the sampler processes of this trainer if it has any, else the loader's own executor.

    At most ``ahead`` batches are pending; see :meth:`Samplers.run`.
    """
    samplers = context.samplers()
    return own if samplers is None else SamplerExecutor(samplers, ahead)


class DistDataLoader(Loader):
    """Iterate over mini-batches that a user function makes.

    Parameters
    ----------
    dataset : tensor, numpy array or sequence
        Items, usually the IDs from :func:`node_split` or :func:`edge_split`.
    batch_size : int
    shuffle : bool
        Shuffle the items again in each epoch.
    collate_fn : callable, optional
        Takes the items of a batch, in the form of the data set (a tensor, an array, or a list), and
        returns the mini-batch. By default, the items themselves.
    drop_last : bool
        Leave out a last batch that is not full.
    queue_size : int, optional
        Batches that sampler processes may prefetch; by default four per process, at most 32 per
        process. Standalone mode has no such processes.
    seed : int, optional
        Seed of shuffling and sampling; see :class:`gnnlab.dataloading.DataLoader`. What
        ``collate_fn`` samples depends on it, on the epoch and on the number of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.distributed import DistDataLoader
    >>> loader = DistDataLoader(np.arange(5), batch_size=2, collate_fn=lambda ids: ids * 10)
    >>> len(loader), list(loader)
    (3, [array([ 0, 10]), array([20, 30]), array([40])])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        shuffle: bool = False,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        queue_size: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise InvalidInput(
                "dataset needs a length and an index, as arrays, tensors and lists have; found "
                f"{type(dataset).__name__}"
            )
        if collate_fn is not None and not callable(collate_fn):
            raise InvalidInput(f"collate_fn must be a function of a batch; found {collate_fn!r}")
        self.dataset, self.collate_fn = dataset, collate_fn
        self.queue_size = None if queue_size is None else whole_number(queue_size, "queue_size", 1)
        positions = Seeds({"": torch.arange(len(dataset))}, typed=False)
        super().__init__(positions, batch_size, shuffle, drop_last, seed)

    def recipe(self, tasks: Sequence[Task]) -> Recipe:
        """Return how the batches of an epoch are made."""
        return _Collated(self.dataset, self.collate_fn)

    def executor(self) -> Executor:
        """Return what makes the batches."""
        return executor_of_job(super().executor(), self.queue_size)


class _OfGraph(DataLoader):
    """Loaders of a distributed graph: its cache is prepared for each epoch."""

    def recipe(self, tasks: Sequence[Task]) -> Recipe:
        """Return how the batches of an epoch are made."""
        recipe = super().recipe(tasks)
        _prepare_cache(self, recipe, tasks)
        return recipe

    def executor(self) -> Executor:
        """Return what makes the batches."""
        return executor_of_job(super().executor())


class DistNodeDataLoader(_OfGraph, NodeDataLoader):
    """Iterate over mini-batches of nodes of a distributed graph.

    Parameters
    ----------
    g : DistGraph
    nids : tensor, numpy array, list, or dict of them by node type
        Type-wise IDs: this trainer's share.
    **kwargs
        ``device``, ``batch_size``, ``shuffle``, ``drop_last``, ``seed``, … as for
        :class:`gnnlab.dataloading.DataLoader`. Options of worker processes are accepted and have no
        effect: samplers are started with the job.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = dgl.graph(([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> dgl.distributed.partition_graph(path, "path", 2, folder, part_method="random")
    path: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("path", part_config=f"{folder}/path.json")
    >>> sampler = dgl.dataloading.MultiLayerNeighborSampler([2, 2])
    >>> loader = dgl.distributed.DistNodeDataLoader(g, range(6), sampler, batch_size=3)
    >>> [(len(seeds), len(blocks)) for input_nodes, seeds, blocks in loader]
    [(3, 2), (3, 2)]
    """

    def __init__(
        self, g: Any, nids: Any, graph_sampler: Any = None, device: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(g, nids, graph_sampler, device, **_here(kwargs))


class DistEdgeDataLoader(_OfGraph, EdgeDataLoader):
    """Iterate over mini-batches of edges of a distributed graph.

    Parameters
    ----------
    eids : tensor, numpy array, list, or dict of them by edge type
        Type-wise IDs: this trainer's share.
    **kwargs
        ``negative_sampler``, ``exclude``, ``reverse_eids``, ``reverse_etypes`` as for
        :func:`gnnlab.dataloading.as_edge_prediction_sampler`, with edge IDs of the partitioned
        graph; others as for :class:`DistNodeDataLoader`.
    """

    def __init__(
        self, g: Any, eids: Any, graph_sampler: Any = None, device: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(g, eids, graph_sampler, device, **_here(kwargs))


def _here(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in OPTIONS_WITHOUT_EFFECT}


class _Collated(Recipe):
    """Items of a data set as a mini-batch; the seeds are their positions."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any] | None) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn

    def draw(self, seeds: torch.Tensor) -> Any:
        """Return the items at some positions, collated."""
        items: Any
        if isinstance(self.dataset, torch.Tensor):
            items = self.dataset[seeds]
        elif isinstance(self.dataset, np.ndarray):
            items = self.dataset[seeds.numpy()]
        else:
            items = [self.dataset[i] for i in seeds.tolist()]
        return items if self.collate_fn is None else self.collate_fn(items)


def _prepare_cache(loader: Any, recipe: Recipe, tasks: Sequence[Task]) -> None:
    """Prepare the cache of the loader's graph, where it has one with such a policy."""
    if not isinstance(loader.graph, DistGraph):
        return
    cache = loader.graph.client.cache
    if not cache.num_bytes or type(cache.transport) is InProcess:
        return
    if cache.policy == "vip" and not cache.best:
        cache.prepare(_most_probable(loader))
    if cache.policy == "belady":
        if context.samplers() is not None:
            raise InvalidInput(
                "cache_policy='belady' plans the reads of one process, and sampler processes share "
                "the batches; start the job without them, or use cache_policy='vip'"
            )
        cache.follow(_plans(loader.graph, recipe, tasks))


def _most_probable(loader: Any) -> dict[str, np.ndarray]:
    """Return the remote rows by the probability that a batch needs them, of each node type."""
    g, sampler = loader.graph, loader.graph_sampler
    if not isinstance(sampler, NeighborSampler) or sampler.prob is not None:
        raise InvalidInput(
            "cache_policy='vip' computes probabilities for loaders of nodes with a NeighborSampler "
            f"without prob; found {type(sampler).__name__}. Use cache_policy='access'"
        )
    share = min(1.0, loader.batch_size / max(1, len(loader.indices)))
    probs = {ntype: np.zeros(g.num_nodes(ntype)) for ntype in g.ntypes}
    for name, ids in loader.indices.by_type.items():
        probs[name or g.ntypes[0]][ids.numpy()] = share
    client, fanouts = g.client, [read_fanouts(g, fanout) for fanout in sampler.fanouts]
    found = inclusion_of_parts(
        client.transport, g.canonical_etypes, probs, fanouts, sampler.replace
    )
    best = {}
    for ntype, values in found.items():
        low, high = _own(g, ntype)
        best[ntype] = ranked(np.delete(values, np.s_[low:high]))
    return best


def _plans(g: DistGraph, recipe: Recipe, tasks: Sequence[Task]) -> dict[str, EpochReads]:
    """Sample all batches; return the remote rows that they need of each node type."""
    needed: dict[str, list[np.ndarray]] = {ntype: [] for ntype in g.ntypes}
    for task in tasks:
        graphs = list(graphs_in(recipe.sample(task)))
        first = next((each for each in graphs if each.is_block), graphs[0] if graphs else None)
        for ntype, rows in needed.items():
            frame = None if first is None else first.src_frames.get(ntype)
            if frame is not None and NID in frame:
                rows.append(remote_numbers(frame[NID], _own(g, ntype)))
            else:
                rows.append(np.zeros(0, np.int64))
    return {
        ntype: EpochReads(rows, g.num_nodes(ntype) - int(np.subtract(*_own(g, ntype)[::-1])))
        for ntype, rows in needed.items()
    }


def _own(g: DistGraph, ntype: str) -> tuple[int, int]:
    """Return the first ID of the own part, and the one after its last."""
    return own_range(g.client.transport, g.get_partition_book().node_ranges[ntype])
