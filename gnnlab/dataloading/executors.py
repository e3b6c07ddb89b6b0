"""Executors: where and when the mini-batches of an epoch are made.

An executor takes a recipe and the tasks of an epoch, and yields the batches in order. Here are the
training thread itself, a thread that prefetches (kernels release the global interpreter lock), and
worker processes, which share the graph's memory. :mod:`gnnlab.distributed.sampler_processes` and
:mod:`gnnlab.simulate.executors` have others. A batch is a function of its task, so all make the
same batches.
"""

from __future__ import annotations

import io
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

import torch

from gnnlab import random, trace
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.graph.frame import is_unchanged, versions
from gnnlab.graph.graph import Graph
from gnnlab.multiprocessing import check_sockets, explained, raise_file_limit
from gnnlab.system import accelerators

_choice = threading.local()  # .function: see chosen_by()


class Executor(Protocol):
    """Makes the mini-batches of an epoch."""

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield the batch of each task, in order."""


@contextmanager
def chosen_by(function: Callable[[Executor], Executor]) -> Iterator[None]:
    """Have ``function(own)`` choose the executor of each loader that this thread iterates over."""
    before = getattr(_choice, "function", None)
    _choice.function = function
    try:
        yield
    finally:
        _choice.function = before


def choose(own: Executor) -> Executor:
    """Return the executor for a loader whose own is given."""
    function = getattr(_choice, "function", None)
    return own if function is None else function(own)


class Inline:
    """Makes a batch in the training thread, when it is asked for."""

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Make one batch after the other."""
        return map(recipe, tasks)


class Thread:
    """Makes batches ahead in one thread; at most ``ahead`` are pending."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Make batches ahead; what has changed in the meantime is made again."""
        return trace.waiting(self._run(recipe, tasks))

    def _run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        transfer = recipe.transfer
        enter = accelerators.keep_device() if transfer is None else transfer.enter
        thread = ThreadPoolExecutor(1, "gnnlab-prefetch", enter)

        def make(task: Task, order: Any) -> tuple[Any, Any]:
            if transfer is None:
                return recipe(task), None
            transfer.follow(order)
            batch = recipe(task)
            return batch, transfer.made(batch)

        def begin(task: Task) -> tuple[list[Any], Future[Any]]:
            order = None if transfer is None else transfer.order()
            return versions(recipe.reads()), thread.submit(make, task, order)

        def current(task: Task, read: list[Any], batch: Any, made: Any) -> Any:
            if transfer is not None:
                transfer.receive(*made)
            if not is_unchanged(read, recipe.reads()):
                return recipe(task)
            recipe.renew(batch)
            return batch

        try:
            pending = deque(map(begin, tasks[: self.ahead]))
            for number, task in enumerate(tasks):
                read, made = pending.popleft()
                batch, done = made.result()
                if number + self.ahead < len(tasks):
                    pending.append(begin(tasks[number + self.ahead]))
                yield current(task, read, batch, done)
        finally:
            # The thread ends with the iteration, also if that is left early. The garbage collector
            # may close the iteration in a prefetch thread; waiting there could be a deadlock.
            in_prefetch = threading.current_thread().name.startswith("gnnlab")
            thread.shutdown(wait=not in_prefetch, cancel_futures=True)
            if transfer is not None and not in_prefetch:
                transfer.end()


class Workers:
    """Samples batches in ``count`` worker processes; this process completes them.

    Passes at the same time have processes of their own; persistent ones serve the next pass.
    """

    def __init__(self, count: int, options: Mapping[str, Any]) -> None:
        self.count, self.options = count, options
        self._idle: _Pool | None = None

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Start the workers; then yield batches."""
        pool, self._idle = self._idle, None
        if pool is None or not is_unchanged(pool.read, recipe.reads()):
            pool = _Pool(recipe, self.count, self.options)
        return self._completed(pool, recipe, tasks, pool.begin(tasks))

    def _completed(
        self, pool: _Pool, recipe: Recipe, tasks: Sequence[Task], batches: Any
    ) -> Iterator[Any]:
        def complete(task: Task, batch: Any) -> Any:
            is_current = is_unchanged(pool.read, recipe.reads())
            return recipe.complete(batch) if is_current else recipe(task)

        try:
            yield from map(complete, tasks, trace.waiting(received(map(pickle.loads, batches))))
        finally:
            self._idle = pool


class _Pool:
    """Worker processes, for one iteration at a time: torch's DataLoader of the tasks."""

    def __init__(self, recipe: Recipe, count: int, options: Mapping[str, Any]) -> None:
        check_sockets()
        raise_file_limit()  # each tensor of a batch is an open file
        for graph in recipe.graphs:
            if isinstance(graph, Graph):  # before the fork, not in each worker
                for relation in graph.relations.values():
                    _ = relation.coo(), relation.csc().eids
        self._tasks, self.read = _Tasks(), versions(recipe.reads())
        self._loader: Any = torch.utils.data.DataLoader(
            _SampledBatches(recipe.on_cpu()),
            batch_size=None,
            sampler=self._tasks,
            num_workers=count,
            collate_fn=_identity,
            generator=torch.Generator(),  # torch draws a seed from it, not from the program's
            **options,
        )

    def begin(self, tasks: Sequence[Task]) -> Iterator[bytes]:
        """Begin an iteration; workers that are not persistent start with it."""
        key = tasks[0][0] if tasks else 0
        self._loader.generator.manual_seed(random.fold(key, torch.initial_seed()) >> 1)
        self._tasks.tasks = tasks
        with explained("worker processes"):
            return iter(self._loader)


class _ByValue(pickle.Pickler):
    """Pickles tensors by value. To torch's, each is an open file, without which a worker ends."""

    def reducer_override(self, obj: Any) -> Any:
        is_tensor = isinstance(obj, torch.Tensor)
        return (torch.from_numpy, (obj.cpu().numpy(),)) if is_tensor else NotImplemented


class _Tasks:
    """The tasks of the next epoch, pickled, as the ``sampler`` of torch's DataLoader."""

    def __init__(self) -> None:
        self.tasks: Sequence[Task] = []

    def __iter__(self) -> Iterator[bytes]:
        for task in self.tasks:
            _ByValue(packed := io.BytesIO()).dump(task)
            yield packed.getvalue()

    def __len__(self) -> int:
        return len(self.tasks)


class _SampledBatches(torch.utils.data.Dataset[Any]):
    """What a worker process holds: its item at a task is the sampled batch, pickled.

    torch would pickle it in a thread of the worker; after an error there, the loader would hang.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def __getitem__(self, task: bytes) -> bytes:
        batch = self.recipe.sample(pickle.loads(task))
        with explained("the mini-batch of a worker"):
            return bytes(ForkingPickler.dumps(batch))  # its tensors move to shared memory


def _identity(batch: Any) -> Any:
    return batch


def received(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what worker processes have made; errors for a lack of files say what to do."""
    while True:
        with explained("the mini-batches of worker processes"):
            if not (one := list(islice(batches, 1))):
                return
        yield one.pop()  # keep no reference: the batch is freed when its user drops it
