"""Loaders: iterate over the mini-batches of an epoch.

A loader shuffles the seeds, splits them into batches, calls a sampler for each, and attaches
features. Sampling can run ahead of training, in a thread (kernels release the global interpreter
lock) or in worker processes (which share the graph's memory). The batches are the same in each
case, because a batch is a function of (seed, epoch, number of the batch).

Here a *task* is the tuple (key of the epoch, number of the batch, seeds), all that a process needs
to sample this batch.

References
----------
DGL user guide, chapters 6.1 to 6.3.
"""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch

from gnnlab import random, trace
from gnnlab.dataloading import affinity
from gnnlab.dataloading.features import attach_features, fetch_ahead, graphs_in, renew
from gnnlab.dataloading.position import Position
from gnnlab.dataloading.sampler import Sampler, check_ids_of, check_sampler, is_pure, to_device
from gnnlab.dataloading.seeds import read_indices
from gnnlab.dataloading.transfer import CacheInfo, Transfer
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.frame import is_unchanged, versions
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import describe
from gnnlab.graph.placement import pin_features
from gnnlab.helpers.ddp_loader import rank_share, share_size
from gnnlab.multiprocessing import check_sockets, explained, raise_file_limit
from gnnlab.system import accelerators
from gnnlab.system.ending import await_torch_at_exit

__all__ = ["DataLoader", "NodeDataLoader", "received", "warn_of_ranks"]

_PREFETCH = 2  # default of ``prefetch``
_has_warned = False  # of ranks with the same seeds
_WORKER_OPTIONS = (
    *("multiprocessing_context", "persistent_workers", "prefetch_factor", "timeout"),
    "worker_init_fn",
)

_Task = tuple[int, int, Any]


class DataLoader:
    """Iterate over mini-batches of a graph.

    Parameters
    ----------
    graph : Graph or DistGraph
    indices : tensor, numpy array, list, or dict of them by type
        Seed IDs, or a mask.
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
    batch_size : int
        Seeds per mini-batch.
    drop_last : bool
        Leave out a last batch that is not full.
    shuffle : bool
        Shuffle the seeds in every epoch.
    num_workers : int
        Worker processes that sample ahead. They share the graph's memory. Code of your own in a
        sampler finds the graph there as it was when they started.
    prefetch : int, optional
        Mini-batches that a thread samples ahead if there are no workers; 0 samples in the training
        thread. By default 2 for samplers of this library and 0 for custom samplers, which may not
        be thread-safe; a custom class may declare ``pure = True``, for itself and not for classes
        derived from it.
    seed : int, optional
        Seed of shuffling and sampling: epoch k of two loaders with the same seed is the same. By
        default each epoch takes the next key after :func:`gnnlab.seed`.
    use_uva : bool
        Pin the features of a graph in main memory when an iteration begins; the graph then holds
        pinned copies. A GPU with Triton reads the rows of a batch there by itself.
    gpu_cache : dict, optional
        Rows of features in main memory to keep on the GPU, as in
        ``{"node": {"feat": 500000}, "edge": {"weight": 10000}}``, for each node or edge type that
        has the feature: those of nodes with most out-edges. After a write, rows come from main
        memory until the next iteration. See :meth:`cache_info`.
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
        graph: Graph,
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
        gpu_cache: Mapping[str, Mapping[str, int]] | None = None,
        **kwargs: Any,
    ) -> None:
        check_sampler(graph_sampler, "graph_sampler", "sample(g, indices)")
        if not hasattr(graph, "idtype"):
            raise InvalidInput(
                f"the first argument is the graph, the second the seeds; found "
                f"{type(graph).__name__} and {type(indices).__name__}"
            )
        batch_size = whole_number(batch_size, "batch_size", 1)
        num_workers = whole_number(num_workers, "num_workers", 0)
        for name, switch in ("shuffle", shuffle), ("drop_last", drop_last):
            if not isinstance(switch, bool | int | np.bool_):
                raise InvalidInput(f"{name} must be True or False; found {switch!r}")
        unknown = set(kwargs) - set(_WORKER_OPTIONS)
        if unknown:
            raise InvalidInput(
                f"a loader has no option {describe(sorted(unknown))}; for worker processes there "
                f"are {describe(_WORKER_OPTIONS)}. gnnlab.compat drops those of DGL without a use"
            )
        self.graph, self.graph_sampler = graph, graph_sampler
        self._graphs = [graph]
        self.indices = read_indices(graph, indices)
        self.device = graph.device if device is None else accelerators.read_device(device)
        self.use_ddp, self.ddp_seed = use_ddp, ddp_seed
        self.batch_size, self.drop_last, self.shuffle = batch_size, drop_last, shuffle
        self.num_workers, self.seed = num_workers, seed
        if prefetch is None:
            prefetch = _PREFETCH if is_pure(graph_sampler) else 0
        self.prefetch = whole_number(prefetch, "prefetch", 0)
        self.use_uva, self._gpu_cache = bool(use_uva), _read_cache(gpu_cache)
        self._check_placement()
        self._transfer: Transfer | None = None  # to the device; made by the first iteration
        self._position = Position()
        self._worker_options = kwargs
        self._workers: Any = None  # those that no iteration uses
        self._warn_if_empty()

    def _warn_if_empty(self) -> None:
        if not len(self.indices):
            text = "there are no seeds, so the loader has no mini-batch"
        elif self.drop_last and len(self.indices) < self.batch_size:
            text = (
                "drop_last leaves out the only mini-batch: there are "
                f"{len(self.indices)} seeds and batch_size is {self.batch_size}. Take "
                "smaller batches, or drop_last=False"
            )
        else:
            return
        warnings.warn(text, stacklevel=3)

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

    # ----------------------------------------------------------------- length
    def _rank(self) -> tuple[int, int]:
        """Return (rank, number of ranks)."""
        if not self.use_ddp:
            return 0, 1
        if isinstance(self.use_ddp, tuple):
            rank, ranks = self.use_ddp
            if not 0 <= rank < ranks:
                raise InvalidInput(f"expected 0 <= rank < number of ranks; found {rank}, {ranks}")
            return int(rank), int(ranks)
        if not torch.distributed.is_initialized():
            raise InvalidInput(
                "use_ddp=True needs torch.distributed.init_process_group() to be called before"
            )
        await_torch_at_exit()
        return torch.distributed.get_rank(), torch.distributed.get_world_size()

    def __len__(self) -> int:
        """Number of mini-batches of an epoch (on this rank)."""
        seeds = share_size(len(self.indices), self._rank()[1], self.drop_last)
        return seeds // self.batch_size if self.drop_last else -(-seeds // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; by default each iteration begins the next one."""
        self._position.set_epoch(int(epoch))

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

        Parameters
        ----------
        loader_cores, compute_cores : list of int, optional
            Cores of the workers, one for each, and of this process. By default the first ones that
            this process may use, and the rest.
        verbose : bool
            Print the cores.

        Raises
        ------
        InvalidInput
            The loader has no workers, or there are too few cores.
        """
        if not affinity.can_pin():
            yield
            return
        allowed = sorted(os.sched_getaffinity(0))
        cores = affinity.choose_cores(self.num_workers, allowed, loader_cores, compute_cores)
        if verbose:
            print(f"workers on cores {cores[0]}, training on cores {cores[1]}")
        options = self._worker_options
        begin = partial(affinity.pin_worker, cores=cores[0], also=options.get("worker_init_fn"))
        self._worker_options = {**options, "worker_init_fn": begin}
        self._workers = None
        try:
            with affinity.compute_on(cores[1]):
                yield
        finally:
            self._worker_options, self._workers = options, None

    # ------------------------------------------------------------------ state
    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader: the epoch, and how many of its batches are done.

        Examples
        --------
        >>> import gnnlab as dgl
        >>> g, sampler = dgl.rand_graph(20, 50), dgl.dataloading.NeighborSampler([2])
        >>> loader = dgl.dataloading.DataLoader(g, range(20), sampler, batch_size=5)
        >>> for number, batch in enumerate(loader):
        ...     if number == 1:
        ...         state = loader.state_dict()
        >>> state["epoch"], state["batch"]
        (0, 2)
        >>> loader.load_state_dict(state)
        >>> [output_nodes.tolist() for input_nodes, output_nodes, blocks in loader]
        [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]
        """
        return {**self._position.state(), "cut": self._batching()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume at the position of another loader: the next iteration has the rest of its epoch.

        Raises
        ------
        InvalidInput
            This loader splits the seeds into other batches.
        """
        if state.get("cut") != self._batching():
            raise InvalidInput(
                f"the state is of a loader with {state.get('cut')}; this one has "
                f"{self._batching()}. Only the same batches can be continued"
            )
        self._position.load(state)

    def _batching(self) -> dict[str, int]:
        """Return the options that, with the key, decide which seeds are in which batch."""
        return {
            "seeds": len(self.indices),
            "ranks": self._rank()[1],
            "batch_size": self.batch_size,
            "drop_last": int(self.drop_last),
            "shuffle": int(self.shuffle),
        }

    # -------------------------------------------------------------- iteration
    def __iter__(self) -> Iterator[Any]:
        if not self.use_ddp and isinstance(self.graph, Graph):
            warn_of_ranks("use_ddp=True splits them, use_ddp=(0, 1) does not and is silent")
        self._begin_transfer()
        key, first = self._position.begin(self._key)
        tasks = [(key, number, seeds) for number, seeds in enumerate(self._batches(key))][first:]
        return trace.steps(self._position.count(self._make_all(tasks), len(tasks)), first)

    def _begin_transfer(self) -> None:
        output = getattr(_innermost(self.graph_sampler), "output_device", None)
        places = self.device, self.graph.device, accelerators.read_device(output or "cpu")
        place = next((place for place in places if place.type != "cpu"), places[0])
        wanted = self._gpu_cache or accelerators.is_fast(place)
        if not wanted or not accelerators.has_streams(place):
            return
        if self.use_uva:
            for graph in self._graphs:
                pin_features(graph)
        for kind, names in self._gpu_cache.items():
            known = {name for graph in self._graphs for name in _names(graph, kind)}
            if unknown := set(names) - known:
                raise InvalidInput(
                    f"gpu_cache names the {kind} feature {describe(sorted(unknown))}; the graph "
                    f"has {describe(sorted(known))}"
                )
        if self._transfer is None:
            self._transfer = Transfer(place, self._graphs, self._gpu_cache)
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

    def _make_all(self, tasks: list[_Task]) -> Iterator[Any]:
        if self.num_workers:
            return self._from_workers(tasks)
        if self.prefetch:
            return trace.waiting(self._from_thread(tasks))
        return map(self._make, tasks)

    def _key(self, epoch: int) -> int:
        seed = self.ddp_seed if self.seed is None and self.use_ddp else self.seed
        return random.next_key() if seed is None else random.fold(seed, epoch)

    def _batches(self, key: int) -> Iterator[Any]:
        """Split this rank's share of the (shuffled) seeds into batches."""
        count = len(self.indices)
        order = torch.arange(count)
        if self.shuffle:
            generator = torch.Generator().manual_seed(key & (2**63 - 1))
            order = torch.randperm(count, generator=generator)
        rank, ranks = self._rank()
        if ranks > 1:
            share = rank_share(count, rank, ranks, shuffle=False, drop_last=self.drop_last)
            order = order[share]
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            yield self.indices.take(order[start : start + self.batch_size])

    def _attach(self, batch: Any, *more: Any) -> None:
        attach_features(self.graph, batch, *more)

    def _finish(self, batch: Any) -> Any:
        moved, fetch = batch, None
        if self.device.type != "cpu" or self.graph.device.type != "cpu":
            with trace.span("copy"):
                if self._transfer is not None:
                    fetch = self._transfer.rows
                if self._transfer is not None and self.graph.device.type == "cpu":
                    moved = self._transfer.move(batch)
                else:
                    moved = to_device(batch, self.device)
        self._attach(moved, batch, fetch)
        fetch_ahead(moved)
        return moved

    def _make(self, task: _Task) -> Any:
        return self._finish(_sample(self.graph, self.graph_sampler, task))

    def _reads(self) -> list[torch.Tensor]:
        """Return the tensors that making a batch reads, besides features: weights of edges."""
        weights = getattr(_innermost(self.graph_sampler), "prob", None)
        return [
            frame[weights]
            for graph in self._graphs
            if isinstance(weights, str) and isinstance(graph, Graph)
            for frame in graph.edge_frames.values()
            if weights in frame
        ]

    def _make_ahead(self, task: _Task, order: Any) -> tuple[Any, Any]:
        if self._transfer is None:
            return self._make(task), None
        self._transfer.follow(order)
        batch = self._make(task)
        return batch, self._transfer.made(batch)

    def _hand_over(self, task: _Task, read: list[Any], batch: Any, made: Any) -> Any:
        """Return a batch that was made ahead, with what has changed in the meantime."""
        if self._transfer is not None:
            self._transfer.receive(*made)
        if not is_unchanged(read, self._reads()):
            return self._make(task)
        if hasattr(self.graph, "ntypes"):
            self._attach(batch)  # new features
            renew(batch)
        return batch

    def _from_thread(self, tasks: list[_Task]) -> Iterator[Any]:
        transfer = self._transfer
        enter = accelerators.keep_device() if transfer is None else transfer.enter
        thread = ThreadPoolExecutor(1, "gnnlab-prefetch", enter)

        def make(task: _Task) -> tuple[list[Any], Future[Any]]:
            order = None if transfer is None else transfer.order()
            return versions(self._reads()), thread.submit(self._make_ahead, task, order)

        try:
            pending = deque(map(make, tasks[: self.prefetch]))
            for number, task in enumerate(tasks):
                read, made = pending.popleft()
                batch, done = made.result()
                if number + self.prefetch < len(tasks):
                    pending.append(make(tasks[number + self.prefetch]))
                yield self._hand_over(task, read, batch, done)
        finally:
            # The thread ends with the iteration, also if that is left early. The garbage collector
            # may close the iteration in a prefetch thread; waiting there could be a deadlock.
            in_prefetch = threading.current_thread().name.startswith("gnnlab")
            thread.shutdown(wait=not in_prefetch, cancel_futures=True)
            if transfer is not None and not in_prefetch:
                transfer.end()

    def _from_workers(self, tasks: list[_Task]) -> Iterator[Any]:
        # Another iteration at the same time starts workers of its own.
        workers, self._workers = self._workers, None
        if workers is None or not is_unchanged(workers.read, self._reads()):
            workers = _Workers(self)
        return self._received(workers, tasks, workers.begin(tasks))

    def _received(self, workers: _Workers, tasks: list[_Task], batches: Any) -> Iterator[Any]:
        def finish(task: _Task, batch: Any) -> Any:
            is_current = is_unchanged(workers.read, self._reads())
            return self._finish(batch) if is_current else self._make(task)

        try:
            yield from map(finish, tasks, trace.waiting(received(map(pickle.loads, batches))))
        finally:
            if workers.options is self._worker_options:
                self._workers = workers


class NodeDataLoader(DataLoader):
    """:class:`DataLoader` with the older order of arguments.

    Parameters
    ----------
    g : Graph or DistGraph
    nids : tensor, numpy array, list, or dict of them by node type
    block_sampler : Sampler
    device : torch.device, optional
    **kwargs
        As for :class:`DataLoader`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> import numpy as np
    >>> g = dgl.rand_graph(100, 1000)
    >>> sampler = dgl.dataloading.MultiLayerNeighborSampler([4, 4])
    >>> loader = dgl.dataloading.NodeDataLoader(g, np.arange(100), sampler, batch_size=50)
    >>> [len(output_nodes) for input_nodes, output_nodes, blocks in loader]
    [50, 50]
    """

    def __init__(
        self, g: Graph, nids: Any, block_sampler: Any = None, device: Any = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("graph_sampler", block_sampler)
        super().__init__(g, nids, device=device, **kwargs)


def received(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what worker processes have made; errors for a lack of files say what to do."""
    while True:
        with explained("the mini-batches of worker processes"):
            try:
                one = [next(batches)]
            except StopIteration:
                return
        yield one.pop()  # keep no reference: the batch is freed when its user drops it


def warn_of_ranks(remedy: str) -> None:
    """Warn, once per process, where several ranks would each train on all seeds."""
    global _has_warned
    group = torch.distributed
    if _has_warned or not (group.is_available() and group.is_initialized()):
        return
    if group.get_world_size() > 1 and torch.is_grad_enabled():  # off, it is an evaluation
        _has_warned = True
        warnings.warn(
            f"this process is one of {group.get_world_size()} ranks, and its loader iterates over "
            "all the seeds that it was given. If they are the same on each rank, all ranks train "
            f"on the same mini-batches: {remedy}. Seeds that differ by rank, and evaluation on "
            "each rank, need no change",
            stacklevel=3,
        )


def _innermost(sampler: Any) -> Any:
    """Return the sampler of nodes behind one of edges."""
    return getattr(sampler, "sampler", sampler)


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


def _sample(graph: Graph, sampler: Any, task: _Task) -> Any:
    key, number, seeds = task
    with trace.span("sample", number), random.stream(key, number):
        batch = sampler.sample(graph, seeds)
    if isinstance(graph, Graph) or hasattr(graph, "ntypes"):
        for part in graphs_in(batch):
            check_ids_of(graph, part, "a graph of the mini-batch")
    return batch


class _Workers:
    """Worker processes, for one iteration at a time: torch's DataLoader of the tasks."""

    def __init__(self, loader: DataLoader) -> None:
        check_sockets()
        raise_file_limit()  # each tensor of a batch is an open file
        for graph in loader._graphs:
            if isinstance(graph, Graph):  # before the fork, not in each worker
                for relation in graph.relations.values():
                    _ = relation.coo(), relation.csc().eids
        self.options, self._tasks = loader._worker_options, _Tasks()
        self.read = versions(loader._reads())
        self._loader: Any = torch.utils.data.DataLoader(
            _SampledBatches(loader.graph, loader.graph_sampler),
            batch_size=None,
            sampler=self._tasks,
            num_workers=loader.num_workers,
            collate_fn=_identity,
            generator=torch.Generator(),  # torch draws a seed from it, not from the program's
            **self.options,
        )

    def begin(self, tasks: list[_Task]) -> Iterator[bytes]:
        """Begin an iteration; workers that are not persistent start with it."""
        key = tasks[0][0] if tasks else 0
        self._loader.generator.manual_seed(random.fold(key, torch.initial_seed()) >> 1)
        self._tasks.tasks = tasks
        with explained("worker processes"):
            return iter(self._loader)


class _Tasks:
    """The tasks of the next epoch, as the ``sampler`` of torch's DataLoader."""

    def __init__(self) -> None:
        self.tasks: list[_Task] = []

    def __iter__(self) -> Iterator[_Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


class _SampledBatches(torch.utils.data.Dataset[Any]):
    """What a worker process holds: its item at a task is the sampled batch, pickled.

    torch would pickle it in a thread of the worker, where an error is not told to the loader: it
    would wait for the batch for ever.
    """

    def __init__(self, graph: Graph, sampler: Sampler) -> None:
        self.graph, self.sampler = graph, sampler

    def __getitem__(self, task: _Task) -> bytes:
        batch = _sample(self.graph, self.sampler, task)
        with explained("the mini-batch of a worker"):
            return bytes(ForkingPickler.dumps(batch))  # its tensors move to shared memory


def _identity(batch: Any) -> Any:
    return batch
