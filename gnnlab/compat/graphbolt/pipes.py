"""Stages of a pipeline, from items to mini-batches that a model takes.

Each stage is made from the one before it, ``NeighborSampler(pipe, graph, fanouts)``, or is called
as its method: ``pipe.sample_neighbor(graph, fanouts)``.
"""

from __future__ import annotations

import pickle
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.utils.data import IterDataPipe, functional_datapipe

from gnnlab.compat.base import BadArgument
from gnnlab.compat.graphbolt.itemset import HeteroItemSet, ItemSet
from gnnlab.compat.graphbolt.minibatch import MiniBatch, moved
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.helpers.ddp_loader import rank_share, share_size
from gnnlab.multiprocessing import check_sockets, explained, raise_file_limit
from gnnlab.random import fold, next_key


class Stage(IterDataPipe[Any]):
    """A stage that changes each mini-batch of the stage before it."""

    #: Whether it may run in another thread: what it returns depends on the mini-batch alone.
    is_pure = False

    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __iter__(self) -> Iterator[Any]:
        return map(self._change, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)

    def _change(self, minibatch: Any) -> Any:
        raise NotImplementedError


def minibatcher_default(batch: Any, names: tuple[str, ...] | None) -> Any:
    """Make a :class:`MiniBatch` of the values of some items, which have the given names."""
    if names is None:
        warnings.warn(
            "the items have no names, so a mini-batch is what the item set returns; name them, as "
            'in ItemSet(items, names="seeds")',
            stacklevel=2,
        )
        return batch
    typed = isinstance(batch, dict)
    made = MiniBatch()
    for i, name in enumerate(names):
        if not hasattr(made, name):
            warnings.warn(f"a MiniBatch has no attribute {name!r}: it gets one", stacklevel=2)
        by_type = batch if typed else {"": batch}
        values = {k: v[i] if isinstance(v, tuple) else v for k, v in by_type.items()}
        setattr(made, name, values if typed else values[""])
    return made


class ItemSampler(IterDataPipe[Any]):
    """The first stage: mini-batches of the items of a set, shuffled anew in each iteration.

    ``minibatcher`` takes the items of a batch and their names. ``seed`` is that of shuffling and of
    what later stages draw; by default each iteration takes the next key after ``dgl.seed``.
    """

    _ranks = (0, 1)
    _drop_uneven = False

    def __init__(
        self,
        item_set: Any,
        batch_size: int,
        minibatcher: Callable[[Any, Any], Any] = minibatcher_default,
        drop_last: bool = False,
        shuffle: bool = False,
        seed: int | None = None,
    ) -> None:
        if not isinstance(item_set, ItemSet | HeteroItemSet):
            raise InvalidInput(f"expected an ItemSet; found {type(item_set).__name__}")
        self.item_set, self.batch_size = item_set, whole_number(batch_size, "batch_size", 1)
        self.minibatcher, self.drop_last, self.shuffle_items = minibatcher, drop_last, shuffle
        self.seed, self._epoch = seed, 0
        self.key: int | None = None  # of the next iteration, if a loader has drawn it

    def draw_key(self) -> int:
        """Return the key of the next iteration."""
        self._epoch += 1
        return next_key() if self.seed is None else fold(self.seed, self._epoch - 1)

    def __len__(self) -> int:
        size = share_size(len(self.item_set), self._ranks[1], self._drop_uneven)
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        key = self.draw_key() if self.key is None else self.key
        size = len(self.item_set)
        order = torch.arange(size)
        if self.shuffle_items:
            order = torch.randperm(size, generator=torch.Generator().manual_seed(key & (2**63 - 1)))
        rank, ranks = self._ranks
        if ranks > 1:
            order = order[rank_share(size, rank, ranks, shuffle=False, drop_last=self._drop_uneven)]
        worker = torch.utils.data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for number in range(first, len(self), step):
            at = order[number * self.batch_size : (number + 1) * self.batch_size]
            made = self.minibatcher(self.item_set[at], self.item_set.names)
            if isinstance(made, MiniBatch):
                made.task = key, number
            yield made


class DistributedItemSampler(ItemSampler):
    """As :class:`ItemSampler`, on each rank of a process group with a share of the items.

    All ranks have the same number of mini-batches: some items are repeated, or with
    ``drop_uneven_inputs`` left out.
    """

    def __init__(self, *args: Any, drop_uneven_inputs: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        group = torch.distributed
        if not (group.is_available() and group.is_initialized()):
            raise InvalidInput("DistributedItemSampler needs init_process_group() before")
        self._ranks = group.get_rank(), group.get_world_size()
        self._drop_uneven = drop_uneven_inputs
        if self.seed is None:  # the same order on all ranks
            drawn = [next_key()]
            group.broadcast_object_list(drawn)
            self.seed = drawn[0]


@functional_datapipe("transform")
class MiniBatchTransformer(Stage):
    """A stage of your own: a function that takes and returns a mini-batch."""

    def __init__(self, datapipe: Any, transformer: Callable[[Any], Any] | None = None) -> None:
        super().__init__(datapipe)
        self.transformer = transformer or (lambda minibatch: minibatch)

    def _change(self, minibatch: Any) -> Any:
        changed = self.transformer(minibatch)
        if not isinstance(changed, MiniBatch):
            raise BadArgument(f"a transformer returns a MiniBatch; found {type(changed).__name__}")
        return changed


@functional_datapipe("copy_to")
class CopyTo(Stage):
    """Move mini-batches to a device."""

    def __init__(self, datapipe: Any, device: Any, non_blocking: bool = False) -> None:
        super().__init__(datapipe)
        self.device, self.non_blocking = torch.device(device), non_blocking

    def _change(self, minibatch: Any) -> Any:
        return moved(minibatch, self.device, self.non_blocking)


class DataLoader:
    """Iterate over a pipeline; other options of DGL have no effect.

    ``num_workers`` processes run the stages before the first :class:`CopyTo`, each for every n-th
    batch; without them, a thread samples ahead. Mini-batches are the same in each case.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb
    >>> pipe = gb.ItemSampler(gb.ItemSet(4, names="seeds"), batch_size=2)
    >>> [minibatch.seeds.tolist() for minibatch in gb.DataLoader(pipe)]
    [[0, 1], [2, 3]]
    """

    def __init__(self, datapipe: Any, num_workers: int = 0, **options: Any) -> None:
        self.dataset = datapipe
        self.num_workers = whole_number(num_workers, "num_workers", 0)

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        stages = [self.dataset]
        while hasattr(stages[-1], "datapipe"):
            stages.append(stages[-1].datapipe)
        source = stages[-1]
        if self.num_workers:
            moves = [i + 1 for i, stage in enumerate(stages) if isinstance(stage, CopyTo)]
            cut = moves[-1] if moves else 0
            batches = self._of_workers(stages[cut], isinstance(source, ItemSampler))
        else:
            last = [i + 1 for i, stage in enumerate(stages[:-1]) if not _is_pure(stage)]
            cut = last[-1] if last else 0
            if not all(isinstance(stage, Stage) for stage in stages[:cut]):
                cut = 0
            batches = _ahead(stages[cut]) if _is_pure(stages[cut]) else iter(stages[cut])
        if isinstance(source, ItemSampler):
            source.key = source.draw_key()
        try:
            for minibatch in batches:
                for stage in reversed(stages[:cut]):
                    minibatch = stage._change(minibatch)
                yield minibatch
        finally:
            if isinstance(batches, Generator):
                batches.close()  # the thread ends, or the processes
            if isinstance(source, ItemSampler):
                source.key = None

    def _of_workers(self, pipe: Any, is_shared: bool) -> Iterator[Any]:
        check_sockets()
        raise_file_limit()
        workers = torch.utils.data.DataLoader(
            _Pickled(pipe, is_shared),
            batch_size=None,
            num_workers=self.num_workers,
            generator=torch.Generator(),
            persistent_workers=True,  # one that has finished holds tensors that were not read yet
        )
        for packed in workers:
            yield pickle.loads(packed)


def _is_pure(stage: Any) -> bool:
    own = type(stage).__module__.startswith("gnnlab.")  # those of users may do what they like
    return own and bool(getattr(stage, "is_pure", False))


def _ahead(pipe: Any) -> Iterator[Any]:
    """Run a pipeline in another thread, two mini-batches ahead."""
    thread = ThreadPoolExecutor(1, "gnnlab-prefetch")
    batches = iter(pipe)
    pending = deque(thread.submit(next, batches, None) for _ in range(2))
    try:
        while (minibatch := pending.popleft().result()) is not None:
            pending.append(thread.submit(next, batches, None))
            yield minibatch
    finally:
        thread.shutdown(cancel_futures=True)


class _Pickled(torch.utils.data.IterableDataset[bytes]):
    """The mini-batches of a pipeline in a worker, pickled there, where an error is reported.

    ``is_shared`` says that the first stage makes only those of this worker.
    """

    def __init__(self, pipe: Any, is_shared: bool) -> None:
        self.pipe, self.is_shared = pipe, is_shared

    def __iter__(self) -> Iterator[bytes]:
        worker, pipe = torch.utils.data.get_worker_info(), iter(self.pipe)
        if not self.is_shared:
            pipe = islice(pipe, worker.id, None, worker.num_workers)  # type: ignore[union-attr]
        for minibatch in pipe:
            with explained("the mini-batch of a worker"):
                yield bytes(ForkingPickler.dumps(minibatch))
