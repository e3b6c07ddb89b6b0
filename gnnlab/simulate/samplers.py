"""Lanes beside the trainer's: samplers, and the thread that makes mini-batches ahead.

In a real job they run at the same time as the trainer. In a simulation a mini-batch is made when
the trainer wants it, by the trainer's own thread, but on another lane of the tape, with the signals
that real ones exchange: which batch may be begun, and which is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gnnlab.distributed import context
from gnnlab.distributed.samplers import _Batches
from gnnlab.parallel.payload import pack, unpack
from gnnlab.simulate.tape import Pass, Recorder, Signal, Wait

__all__ = ["SimulatedSamplers", "ahead_of", "passes"]


class SimulatedSamplers:
    """The sampler processes of one simulated trainer.

    Parameters
    ----------
    processes : sequence of context.Process
        Each with a context of its own, so that it has its own connections and its own cache.
    recorder : Recorder
    """

    def __init__(self, processes: Sequence[context.Process], recorder: Recorder) -> None:
        self._processes, self._recorder = processes, recorder

    def run(
        self, make: Callable[[Any], Any], names: Sequence[Any], ahead: int | None = None
    ) -> Iterator[Any]:
        """Make a batch of each name, in turn; see :class:`gnnlab.distributed.samplers.Samplers`."""
        count = len(self._processes)
        tasks: dict[int, Callable[[Any], Any]] = {}

        def make_there(number: int) -> Any:
            sampler = number % count
            with context.playing(self._processes[sampler]):
                if sampler not in tasks:
                    tasks[sampler] = _carried(make)
                batch = tasks[sampler](names[number])
            return _carried(batch)

        lanes = [f"sampler-{number}" for number in range(count)]
        ahead = 4 * count if ahead is None else ahead
        return ahead_of(self._recorder, make_there, len(names), lanes, ahead)

    def close(self) -> None:
        """Nothing is left behind."""


def _carried(value: Any) -> Any:
    """A value as it arrives in another process."""
    with pack(value, _Batches) as payload:
        return unpack(payload)


def ahead_of(
    recorder: Recorder, make: Callable[[int], Any], count: int, lanes: Sequence[str], ahead: int
) -> Iterator[Any]:
    """Make batches on other lanes, ahead of the trainer.

    Parameters
    ----------
    recorder : Recorder
    make : callable
        Makes the batch of a number.
    count : int
        Number of batches.
    lanes : sequence of str
        Who makes them, in turn.
    ahead : int
        How many batches may be under way.
    """
    run = recorder.new_run()
    with recorder.pause():
        recorder.add(Signal((run, "begin")))
    for number in range(count):
        with recorder.making(lanes[number % len(lanes)], number):
            with recorder.pause():
                room = (run, "begin") if number < ahead else (run, "room", number)
                recorder.add(Wait(room, number))
            batch = [make(number)]
            with recorder.pause():
                recorder.add(Signal((run, "made", number)))
        with recorder.pause():
            recorder.add(Wait((run, "made", number), number))
            recorder.add(Signal((run, "room", number + ahead)))
        yield batch.pop()  # no name here: a batch lives as long as its user needs it


def passes(recorder: Recorder, batches: Iterator[Any]) -> Iterator[Any]:
    """Mark on the tape where a loader begins and ends, and which batch is computed on."""
    number = recorder.new_run()
    with recorder.pause():
        recorder.add(Pass(number, begins=True))
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
            recorder.add(Pass(number, begins=False, steps=steps))
