"""The tracks beside the trainer's: sampler processes, and the prefetch thread.

In a real job they run at the same time as the trainer. In a simulation the trainer's own thread
makes a mini-batch when the trainer asks for it, but records the work on another track, with the
signals that real processes exchange: this batch is ready, and this batch may be started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gnnlab.distributed import context
from gnnlab.distributed.samplers import _Batches
from gnnlab.parallel.payload import pack, unpack
from gnnlab.simulate.optrace import LoaderPass, Recorder, Signal, Wait

__all__ = ["SimulatedSamplers", "prefetched", "recorded_pass"]


class SimulatedSamplers:
    """The sampler processes of one simulated trainer.

    Parameters
    ----------
    processes : sequence of context.Process
        Each has a context of its own, and therefore its own connections and its own cache.
    recorder : Recorder
    """

    def __init__(self, processes: Sequence[context.Process], recorder: Recorder) -> None:
        self._processes, self._recorder = processes, recorder

    def run(
        self, make: Callable[[Any], Any], names: Sequence[Any], ahead: int | None = None
    ) -> Iterator[Any]:
        """Make a batch of each name; see :class:`gnnlab.distributed.samplers.Samplers`."""
        count = len(self._processes)
        tasks: dict[int, Callable[[Any], Any]] = {}

        def make_there(number: int) -> Any:
            sampler = number % count
            with context.playing(self._processes[sampler]):
                if sampler not in tasks:
                    tasks[sampler] = _transferred(make)
                batch = tasks[sampler](names[number])
            return _transferred(batch)

        tracks = [f"sampler-{number}" for number in range(count)]
        ahead = 4 * count if ahead is None else ahead
        return prefetched(self._recorder, make_there, len(names), tracks, ahead)

    def close(self) -> None:
        """Do nothing: there are no processes to end."""


def _transferred(value: Any) -> Any:
    """Return a value as another process would receive it."""
    with pack(value, _Batches) as payload:
        return unpack(payload)


def prefetched(
    recorder: Recorder, make: Callable[[int], Any], count: int, tracks: Sequence[str], ahead: int
) -> Iterator[Any]:
    """Yield batches that other tracks make ahead of the trainer.

    Parameters
    ----------
    recorder : Recorder
    make : callable
        Makes the batch of a number.
    count : int
        Number of batches.
    tracks : sequence of str
        Names of the tracks that make them, round-robin.
    ahead : int
        How many batches may be made before the trainer takes the first of them.
    """
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


def recorded_pass(recorder: Recorder, batches: Iterator[Any]) -> Iterator[Any]:
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
