"""Op traces: what each simulated trainer did, in order, without times on a network.

A trainer has one *track* for its main thread, and one for each of its samplers or its prefetch
thread. The ops on a track are measured work, requests to servers with their sizes, and points where
the track waits: for the other trainers, or for a mini-batch that another track makes. How long
requests and waiting take depends on the network: see :mod:`gnnlab.simulate.replay`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Work:
    """Computing on the track itself, in processor seconds."""

    kind: str
    seconds: float
    step: int | None = None


@dataclass(slots=True)
class RoundTrip:
    """Messages to servers, all sent at once, and their replies.

    ``out`` and ``back`` are machine → bytes of requests and of replies, ``serve`` machine → seconds
    that its servers compute, and ``here`` the seconds that the asking process works meanwhile.
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
class Collective:
    """A barrier ("wait") or an all-reduce ("allreduce") of all trainers.

    ``number`` is the same on all ranks; ``bytes`` are those that each rank contributes to the sum.
    """

    kind: str
    number: int
    bytes: int = 0
    step: int | None = None


@dataclass(slots=True)
class Signal:
    """Releases the :class:`Wait` of the same key on another track of the trainer."""

    key: tuple[Any, ...]


@dataclass(slots=True)
class Wait:
    """Blocks the track until the :class:`Signal` of the same key."""

    key: tuple[Any, ...]
    step: int | None = None


@dataclass(slots=True)
class LoaderPass:
    """The beginning or the end of a loader's pass over its batches."""

    number: int
    begins: bool
    steps: int = 0


@dataclass
class Track:
    """The op trace of one thread or process of a trainer: ops of the classes of this module.

    Its name is "trainer", "prefetch", or "sampler-0", "sampler-1", ….
    """

    rank: int
    machine: int
    name: str
    ops: list[Any] = field(default_factory=list)


class Recorder:
    """Records the op traces of one trainer, by name; the first is that of the main thread.

    ``clock`` returns processor seconds, by default the thread's; ``step`` is its mini-batch number.
    """

    def __init__(
        self, rank: int, machine: int, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self.rank, self.machine, self._clock = rank, machine, clock
        self.tracks = {"trainer": Track(rank, machine, "trainer")}
        self._track = self.tracks["trainer"]
        self.kind = "compute"
        self.step: int | None = None
        self._since = 0.0
        self._passes = 0

    def start(self) -> None:
        """Begin to measure."""
        self._since = self._clock()

    def lap(self) -> None:
        """Record the work since the last op."""
        now = self._clock()
        ops, seconds = self._track.ops, now - self._since
        last = ops[-1] if ops else None
        if isinstance(last, Work) and (last.kind, last.step) == (self.kind, self.step):
            last.seconds += seconds
        elif seconds > 0:
            ops.append(Work(self.kind, seconds, self.step))
        self._since = now

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave out the time inside: it is work of the simulator, not of the trainer."""
        self.lap()
        try:
            yield
        finally:
            self.start()

    def new_pass(self) -> int:
        """Return a number for a loader's pass that no earlier pass had."""
        self._passes += 1
        return self._passes

    def timed(self, function: Callable[[], Any]) -> tuple[Any, float]:
        """Call a function; return its result and how many seconds it took."""
        begin = self._clock()
        found = function()
        return found, self._clock() - begin

    def add(self, op: Any) -> None:
        """Append an op to the current track; call it inside :meth:`pause`."""
        self._track.ops.append(op)

    @contextmanager
    def sampling(self, track: str | None, step: int) -> Iterator[None]:
        """Record the work inside as sampling of a mini-batch, on a track or on the current one."""
        self.lap()
        before = self._track, self.kind, self.step
        if track is not None:
            self._track = self.tracks.setdefault(track, Track(self.rank, self.machine, track))
        self.kind, self.step = "sample", step
        try:
            yield
        finally:
            self.lap()
            self._track, self.kind, self.step = before
