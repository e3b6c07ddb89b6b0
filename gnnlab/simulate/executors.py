"""The executors of simulated trainers.

In a real job, sampler processes and the prefetch thread run at the same time as the trainer. In a
simulation the trainer's own thread makes a mini-batch when the trainer asks for it, but records the
work on another track, with the signals of real processes: a batch is ready, or may be started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gnnlab.dataloading.executors import Executor, Thread, Workers
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.distributed import context
from gnnlab.distributed.sampler_processes import BatchPacker, SamplerExecutor
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.parallel.payload import pack, unpack
from gnnlab.simulate.optrace import LoaderPass, Recorder, Signal, Wait


class Recorded:
    """Makes the batches of a loader as its own executor would, and records the work."""

    def __init__(self, recorder: Recorder, own: Executor) -> None:
        if isinstance(own, Workers):
            raise InvalidInput(
                "a simulation does not support num_workers; use sampler processes instead: "
                "simulate(…, samplers_per_trainer=…)"
            )
        self._recorder, self._own = recorder, own

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield the batch of each task."""
        return _recorded_pass(self._recorder, self._run(recipe, tasks))

    def _run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        recorder, own = self._recorder, self._own
        if isinstance(own, SamplerExecutor):
            return own.run(recipe, tasks)
        if isinstance(own, Thread):

            def make_ahead(number: int) -> Any:
                return _made(recipe, tasks[number])

            return _prefetched(recorder, make_ahead, len(tasks), ["prefetch"], own.ahead)

        def make(task: Task) -> Any:
            with recorder.sampling(None, task[1]):
                return _made(recipe, task)

        return map(make, tasks)


class SimulatedSamplers:
    """The sampler processes of one simulated trainer.

    Each has a context of its own, and therefore its own connections and its own cache.
    """

    def __init__(self, processes: Sequence[context.ProcessState], recorder: Recorder) -> None:
        self._processes, self._recorder = processes, recorder

    def run(self, recipe: Recipe, tasks: Sequence[Task], ahead: int | None = None) -> Iterator[Any]:
        """Make the batch of each task, as :class:`Samplers` does in a real job."""
        count = len(self._processes)
        recipes: dict[int, Recipe] = {}

        def make_there(number: int) -> Any:
            sampler = number % count
            with context.playing(self._processes[sampler]):
                if sampler not in recipes:
                    recipes[sampler] = _transferred(recipe)
                batch = _made(recipes[sampler], tasks[number])
            return _transferred(batch)

        tracks = [f"sampler-{number}" for number in range(count)]
        ahead = 4 * count if ahead is None else ahead
        return _prefetched(self._recorder, make_there, len(tasks), tracks, ahead)

    def close(self) -> None:
        """Do nothing: there are no processes to end."""


def _made(recipe: Recipe, task: Task) -> Any:
    """Return the batch of a task; a design may change what it sends."""
    if recipe.graphs and isinstance(recipe.graphs[0], Graph):  # not the parts of the cluster
        return recipe(task)
    remote = context.current().remote
    with remote.making(*task[:2]):
        batch = recipe(task)
    remote.split_first_layer(batch)
    return batch


def _transferred(value: Any) -> Any:
    """Return a value as another process would receive it."""
    with pack(value, BatchPacker) as payload:
        return unpack(payload)


def _prefetched(
    recorder: Recorder, make: Callable[[int], Any], count: int, tracks: Sequence[str], ahead: int
) -> Iterator[Any]:
    """Yield the batches of numbers; other tracks make them, by turns, so many ahead at most."""
    run = recorder.new_pass()
    with recorder.pause():
        recorder.add(Signal((run, "begin")))
    for number in range(count):
        with recorder.sampling(tracks[number % len(tracks)], number):
            with recorder.pause():
                permit = (run, "begin") if number < ahead else (run, "slot", number)
                recorder.add(Wait(permit, number))
            batch = [make(number)]
            with recorder.pause():
                recorder.add(Signal((run, "made", number)))
        with recorder.pause():
            recorder.add(Wait((run, "made", number), number))
            recorder.add(Signal((run, "slot", number + ahead)))
        yield batch.pop()  # keep no reference: the batch is freed when its user drops it


def _recorded_pass(recorder: Recorder, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; record where the pass begins and ends, and which batch is computed on."""
    number = recorder.new_pass()
    with recorder.pause():
        recorder.add(LoaderPass(number, begins=True))
    steps, before = 0, recorder.step
    try:
        for step, batch in enumerate(batches):
            recorder.step, steps = step, step + 1
            one = [batch]
            del batch
            yield one.pop()
    finally:
        recorder.step = before
        with recorder.pause():
            recorder.add(LoaderPass(number, begins=False, steps=steps))
