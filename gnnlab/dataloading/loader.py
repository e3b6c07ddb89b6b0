"""Loaders: iterate over the mini-batches of an epoch.

A loader shuffles the seeds, splits them into batches, calls a sampler for each, and attaches
features. A thread or worker processes can sample ahead (:mod:`gnnlab.dataloading.executors`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from gnnlab.dataloading import affinity
from gnnlab.dataloading.epochs import Loader, warn_of_ranks
from gnnlab.dataloading.executors import Workers
from gnnlab.dataloading.recipe import GraphRecipe, Recipe, Task
from gnnlab.dataloading.sampler import check_sampler, innermost, is_pure
from gnnlab.dataloading.seeds import read_indices
from gnnlab.dataloading.transfer import CacheInfo, Transfer
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import describe
from gnnlab.graph.placement import pin_features
from gnnlab.graph.temporal import sort_by_time
from gnnlab.system import accelerators

_PREFETCH = 2  # default of ``prefetch``
WORKER_OPTIONS = ["multiprocessing_context", "persistent_workers", "prefetch_factor", "timeout"]
WORKER_OPTIONS += ["worker_init_fn"]  # of torch's DataLoader


class DataLoader(Loader):
    """Iterate over mini-batches of a graph.

    Parameters
    ----------
    indices : tensor, numpy array, list, or dict of them by type
        Seed IDs of nodes or edges of the graph, or a mask.
    graph_sampler : Sampler
        Makes a mini-batch from a batch of seeds.
    device : torch.device, optional
        Device of the mini-batches; by default that of the graph.
    use_ddp : bool or (int, int)
        Split the seeds of every epoch among the ranks of ``torch.distributed``, or among those of a
        given (rank, number of ranks). All ranks make the same number of steps: some seeds are
        repeated, or with ``drop_last`` left out. Step i of all ranks together has the seeds of
        step i of a single process whose batches are larger by the number of ranks. Ranks of a
        process group that train without ``use_ddp`` get a warning; (0, 1) splits nothing, silently.
    ddp_seed : int
        ``seed`` of the ranks if ``seed`` is not given.
    batch_size, drop_last, shuffle
        Seeds per mini-batch; leave out a last batch that is not full; shuffle in every epoch.
    num_workers : int
        Worker processes that sample ahead. They share the graph's memory. Code of your own in a
        sampler finds the graph there as it was when they started.
    prefetch : int, optional
        Mini-batches that a thread samples ahead if there are no workers; 0 samples in the training
        thread. By default 2 for samplers of this library and 0 for custom samplers, which may not
        be thread-safe; a custom class may declare ``pure = True``, which subclasses do not inherit.
    seed : int, optional
        Seed of shuffling and sampling: epoch k of two loaders with the same seed is the same. By
        default each epoch takes the next key after :func:`gnnlab.seed`.
    use_uva : bool
        Pin the features of a graph in main memory when an iteration begins; the graph then holds
        pinned copies. A GPU with Triton reads the rows of a batch there by itself.
    seed_times : tensor, or dict of them by type, optional
        The time of each seed node, for a sampler with ``time=…``, shape of ``indices``. By default
        the node feature of that name; edges have their own.
    gpu_cache : dict, optional
        Rows of features in main memory to keep on the GPU, as in
        ``{"node": {"feat": 500000}, "edge": {"weight": 10000}}``, for each node or edge type that
        has the feature: those of nodes with most out-edges. After a write, rows come from main
        memory until the next iteration. See :meth:`cache_info`.
    sampler : torch.utils.data.Sampler, optional
        Draws the seeds of an epoch, as positions in ``indices``, perhaps repeatedly:
        ``WeightedRandomSampler(weights, num_samples)`` for rare labels. Without a generator of its
        own, it draws by the key of the epoch, hence the same on all ranks. A seed that stands in a
        batch several times has as many rows in the blocks and in ``output_nodes``.
    **kwargs
        ``persistent_workers``, ``prefetch_factor``, ``timeout``, ``worker_init_fn``,
        ``multiprocessing_context`` go to :class:`torch.utils.data.DataLoader`.

    Yields
    ------
    Any
        Results of the sampler; for block samplers ``(input_nodes, output_nodes, blocks)``. Blocks
        have the features of ``graph``, which are gathered when they are first read. Those that a
        thread has gathered before are gathered again if they have been assigned or written to when
        the batch is yielded. torch must count the writes: for those through numpy, ``.data`` or a
        fused optimizer, by other processes, or to a DistTensor, ``prefetch=0`` is needed.

    Notes
    -----
    Several iterations may run at a time; each has all batches of its epoch. With
    ``persistent_workers``, a second one starts workers of its own. No iteration draws from the
    generators of torch, numpy and Python in this process.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.rand_graph(100, 1000)
    >>> g.ndata["feat"] = torch.randn(100, 8)
    >>> sampler = dgl.dataloading.NeighborSampler([4, 4])
    >>> loader = dgl.dataloading.DataLoader(g, range(100), sampler, batch_size=32, shuffle=True)
    >>> len(loader)
    4
    >>> for input_nodes, output_nodes, blocks in loader:
    ...     assert blocks[0].srcdata["feat"].shape == (len(input_nodes), 8)
    """

    def __init__(
        self,
        graph: Any,
        indices: Any,
        graph_sampler: Any = None,
        device: Any = None,
        use_ddp: bool | tuple[int, int] = False,
        ddp_seed: int = 0,
        batch_size: int = 1,
        drop_last: bool = False,
        shuffle: bool = False,
        use_uva: bool = False,
        *,
        num_workers: int = 0,
        prefetch: int | None = None,
        seed: int | None = None,
        seed_times: Any = None,
        gpu_cache: Mapping[str, Mapping[str, int]] | None = None,
        sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        check_sampler(graph_sampler, "graph_sampler", "sample(g, indices)")
        if seed_times is not None and not getattr(innermost(graph_sampler), "time", None):
            raise InvalidInput(
                "seed_times are for a sampler that knows where times are, such as "
                f"NeighborSampler([10, 10], time='t'); found {type(graph_sampler).__name__}"
            )
        if not hasattr(graph, "idtype"):
            raise InvalidInput(
                f"the first argument is the graph, the second the seeds; found "
                f"{type(graph).__name__} and {type(indices).__name__}"
            )
        if unknown := set(kwargs) - set(WORKER_OPTIONS):
            raise InvalidInput(
                f"a loader has no option {describe(sorted(unknown))}; for worker processes there "
                f"are {describe(WORKER_OPTIONS)}. gnnlab.compat drops those of DGL without a use"
            )
        if prefetch is None:
            prefetch = _PREFETCH if is_pure(graph_sampler) else 0
        self.graph, self.graph_sampler = graph, graph_sampler
        self.device = graph.device if device is None else accelerators.read_device(device)
        self.num_workers = whole_number(num_workers, "num_workers", 0)
        how: Any = {"use_ddp": use_ddp, "ddp_seed": ddp_seed, "prefetch": prefetch}
        how["workers"] = Workers(self.num_workers, kwargs) if num_workers else None
        seeds = read_indices(graph, indices, seed_times)
        super().__init__(seeds, batch_size, shuffle, drop_last, seed, sampler=sampler, **how)
        self.use_uva, self._gpu_cache = bool(use_uva), _read_cache(gpu_cache)
        self._check_placement()
        self._transfer: Transfer | None = None  # to the device; made by the first iteration

    def _check_placement(self) -> None:
        if self.num_workers and self.graph.device.type != "cpu":
            raise InvalidInput(
                "worker processes cannot sample a graph on a GPU; use num_workers=0 (a GPU samples "
                "fast), or keep the graph in main memory"
            )
        is_apart = self.device.type != "cpu" and self.graph.device.type == "cpu"
        option = "use_uva=True" if self.use_uva else "gpu_cache" if self._gpu_cache else ""
        if option and not (is_apart and isinstance(self.graph, Graph)):
            raise InvalidInput(
                f"{option} is for a graph in main memory and a GPU as device; found "
                f"{type(self.graph).__name__} on {self.graph.device}, device {self.device}"
            )

    @contextmanager
    def enable_cpu_affinity(
        self,
        loader_cores: Sequence[int] | None = None,
        compute_cores: Sequence[int] | None = None,
        verbose: bool = True,
    ) -> Iterator[None]:
        """Run each worker process on a core of its own, and this process on the others.

        For use as ``with loader.enable_cpu_affinity():``. All threads of this process are moved,
        and torch uses as many as there are cores; both are undone afterwards. It can help where
        workers and training compete for the same cores; measure it. Where a system does not let
        processes choose their cores (macOS), it warns and does nothing.

        ``loader_cores`` are those of the workers, one for each, by default the first ones that this
        process may use, and ``compute_cores`` those of this process, by default the rest.
        """
        if not affinity.can_pin():
            yield
            return
        allowed = sorted(os.sched_getaffinity(0))
        cores = affinity.choose_cores(self.num_workers, allowed, loader_cores, compute_cores)
        if verbose:
            print(f"workers on cores {cores[0]}, training on cores {cores[1]}")
        own = self._workers
        assert own is not None  # choose_cores has refused a loader without workers
        also = own.options.get("worker_init_fn")
        begin = partial(affinity.pin_worker, cores=cores[0], also=also)
        self._workers = Workers(own.count, {**own.options, "worker_init_fn": begin})
        try:
            with affinity.compute_on(cores[1]):
                yield
        finally:
            self._workers = Workers(own.count, own.options)

    # -------------------------------------------------------------- iteration
    def __iter__(self) -> Iterator[Any]:
        if not self.use_ddp and isinstance(self.graph, Graph):
            warn_of_ranks("use_ddp=True splits them, use_ddp=(0, 1) does not and is silent")
        self._begin_transfer()
        return super().__iter__()

    def _sources(self) -> list[Any]:
        """Return the graph; and another one, if the last part of a batch is sampled from that."""
        return [self.graph]

    def recipe(self, tasks: Sequence[Task]) -> Recipe:
        """Return how the batches of an epoch are made."""
        time = getattr(innermost(self.graph_sampler), "time", None)
        if isinstance(time, str):
            for graph in self._sources():
                sort_by_time(graph, time)  # before workers are forked, which then share it
        how = self.graph_sampler, self.device, self._transfer, self.sampler is not None
        return GraphRecipe(self._sources(), *how)

    def _begin_transfer(self) -> None:
        output = getattr(innermost(self.graph_sampler), "output_device", None)
        places = self.device, self.graph.device, accelerators.read_device(output or "cpu")
        place = next((place for place in places if place.type != "cpu"), places[0])
        wanted = self._gpu_cache or accelerators.is_fast(place)
        if not wanted or not accelerators.has_streams(place):
            return
        if self.use_uva:
            for graph in self._sources():
                pin_features(graph)
        for kind, names in self._gpu_cache.items():
            known = {name for graph in self._sources() for name in _names(graph, kind)}
            if unknown := set(names) - known:
                raise InvalidInput(
                    f"gpu_cache names the {kind} feature {describe(sorted(unknown))}; the graph "
                    f"has {describe(sorted(known))}"
                )
        if self._transfer is None:
            self._transfer = Transfer(place, self._sources(), self._gpu_cache)
        self._transfer.begin()

    def cache_info(self) -> CacheInfo:
        """Return how often features were found on the GPU; see ``gpu_cache``.

        Examples
        --------
        >>> import gnnlab as dgl
        >>> g, sampler = dgl.rand_graph(20, 50), dgl.dataloading.NeighborSampler([2])
        >>> dgl.dataloading.DataLoader(g, range(20), sampler).cache_info().hit_rate
        0.0
        """
        return CacheInfo() if self._transfer is None else self._transfer.info()


class NodeDataLoader(DataLoader):
    """:class:`DataLoader` with the older order and names of its first arguments.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g, sampler = dgl.rand_graph(100, 1000), dgl.dataloading.MultiLayerNeighborSampler([4, 4])
    >>> loader = dgl.dataloading.NodeDataLoader(g, range(100), sampler, batch_size=50)
    >>> [len(output_nodes) for input_nodes, output_nodes, blocks in loader]
    [50, 50]
    """

    def __init__(
        self, g: Graph, nids: Any, block_sampler: Any = None, device: Any = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("graph_sampler", block_sampler)
        super().__init__(g, nids, device=device, **kwargs)


def _names(graph: Graph, kind: str) -> set[str]:
    frames: Mapping[Any, Any] = graph.node_frames() if kind == "node" else graph.edge_frames
    return {name for frame in frames.values() for name in frame}


def _read_cache(rows: Any) -> dict[str, dict[str, int]]:
    """Return the numbers of rows to cache, by "node" or "edge" and name of the feature."""
    rows = {} if rows is None else rows
    by_kind = rows if isinstance(rows, Mapping) else {"": rows}
    if set(by_kind) - {"node", "edge"} or not all(isinstance(x, Mapping) for x in by_kind.values()):
        raise InvalidInput(
            'gpu_cache is a dict of rows by feature, such as {"node": {"feat": 500000}}; found '
            f"{rows!r:.80}"
        )
    return {
        kind: {name: whole_number(n, f"gpu_cache of {name!r}", 0) for name, n in names.items()}
        for kind, names in by_kind.items()
        if names
    }
