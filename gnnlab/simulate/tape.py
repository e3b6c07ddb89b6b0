"""What each trainer did, in order, without saying when: the tapes that a replay puts into time.

A trainer has one *lane*, its main thread, and one for each of its samplers or its prefetch thread.
On a lane there is work, which was measured; questions to other machines, which have a size; and
places where it waits: for the other trainers, or for a mini-batch of another lane. How long the
questions and the waiting take depends on the network, so it is computed afterwards
(:mod:`gnnlab.simulate.replay`), as often as one likes and for any network.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Ask", "Lane", "Meet", "Pass", "Recorder", "Signal", "Wait", "Work"]


@dataclass(slots=True)
class Work:
    """Computing on the lane itself, in seconds of a processor."""

    kind: str
    seconds: float
    step: int | None = None


@dataclass(slots=True)
class Ask:
    """A question to servers, all asked at once.

    Attributes
    ----------
    kind : str
    out, back : dict
        Machine → bytes of requests and of replies.
    serve : dict
        Machine → seconds that its servers compute.
    here : float
        Seconds of work that is done here meanwhile.
    requests, rows : int
    step : int or None
    """

    kind: str
    out: dict[int, int]
    back: dict[int, int]
    serve: dict[int, float]
    here: float = 0.0
    requests: int = 0
    rows: int = 0
    step: int | None = None


@dataclass(slots=True)
class Meet:
    """Waiting for all trainers.

    Attributes
    ----------
    kind : str
        "wait", or "allreduce".
    number : int
        The same for all that meet.
    bytes : int
        What each has to sum up with the others; 0 where they only meet.
    step : int or None
    """

    kind: str
    number: int
    bytes: int = 0
    step: int | None = None


@dataclass(slots=True)
class Signal:
    """Saying to another lane of the trainer that something is there."""

    key: tuple[Any, ...]


@dataclass(slots=True)
class Wait:
    """Waiting for a :class:`Signal` of another lane."""

    key: tuple[Any, ...]
    step: int | None = None


@dataclass(slots=True)
class Pass:
    """The beginning, or the end, of a loader's way through its batches."""

    number: int
    begins: bool
    steps: int = 0


@dataclass
class Lane:
    """One tape.

    Attributes
    ----------
    rank, machine : int
    name : str
        "trainer", "prefetch", or "sampler-0", "sampler-1", ….
    entries : list
        Of the classes of this module.
    """

    rank: int
    machine: int
    name: str
    entries: list[Any] = field(default_factory=list)


class Recorder:
    """Writes the tapes of one trainer.

    Parameters
    ----------
    rank, machine : int
    clock : callable
        Seconds of a processor; by default those of this thread.

    Attributes
    ----------
    lanes : dict
        Name → Lane; the first is that of the main thread.
    step : int or None
        Which mini-batch is being computed on.

    Examples
    --------
    >>> from gnnlab.simulate.tape import Recorder
    >>> recorder = Recorder(0, 0, clock=iter([0.0, 2.0, 2.5]).__next__)
    >>> recorder.start()
    >>> with recorder.pause():
    ...     pass
    >>> recorder.lanes["trainer"].entries
    [Work(kind='compute', seconds=2.0, step=None)]
    """

    def __init__(self, rank: int, machine: int, clock: Any = time.thread_time) -> None:
        self.rank, self.machine, self._clock = rank, machine, clock
        self.lanes = {"trainer": Lane(rank, machine, "trainer")}
        self._lane = self.lanes["trainer"]
        self.kind = "compute"
        self.step: int | None = None
        self._since = 0.0
        self._runs = 0

    def start(self) -> None:
        """Begin to measure."""
        self._since = self._clock()

    def lap(self) -> None:
        """Write down the work since the last entry."""
        now = self._clock()
        entries, seconds = self._lane.entries, now - self._since
        last = entries[-1] if entries else None
        if isinstance(last, Work) and (last.kind, last.step) == (self.kind, self.step):
            last.seconds += seconds
        elif seconds > 0:
            entries.append(Work(self.kind, seconds, self.step))
        self._since = now

    @contextmanager
    def pause(self) -> Iterator[None]:
        """What happens inside is the simulation's own work and does not count."""
        self.lap()
        try:
            yield
        finally:
            self.start()

    def new_run(self) -> int:
        """Return a number that no pass of a loader had before."""
        self._runs += 1
        return self._runs

    def seconds(self, work: Any) -> tuple[Any, float]:
        """Call a function; return its result and how long it took."""
        begin = self._clock()
        found = work()
        return found, self._clock() - begin

    def add(self, entry: Any) -> None:
        """Write an entry; within :meth:`pause`."""
        self._lane.entries.append(entry)

    @contextmanager
    def making(self, lane: str | None, step: int) -> Iterator[None]:
        """What happens inside makes a mini-batch, on a lane or, without one, where we are."""
        self.lap()
        before = self._lane, self.kind, self.step
        if lane is not None:
            self._lane = self.lanes.setdefault(lane, Lane(self.rank, self.machine, lane))
        self.kind, self.step = "sample", step
        try:
            yield
        finally:
            self.lap()
            self._lane, self.kind, self.step = before
