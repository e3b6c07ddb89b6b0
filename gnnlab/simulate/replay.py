"""When everything happens: tapes, a network and processors give times.

Each lane of each trainer is played from its beginning. Work takes a processor of the machine. A
question costs its asker some work, then a packet there and back, then the stores that are asked
compute, then the bytes travel: out of each machine that sends, into each that receives, and they
keep processors busy on both sides. A meeting
is over when all have come. An all-reduce goes round a ring of all ranks, in the order of their
numbers, so of the ranks of a machine one sends to the next machine. What needs the same link or
processor shares it (:mod:`gnnlab.simulate.fluid`).

Left out are what packets meet on their way through a switch, the slow start of TCP, and what
processes cost each other beside processors: caches, the bandwidth of memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.simulate.fluid import Fluid
from gnnlab.simulate.network import Network
from gnnlab.simulate.tape import Ask, Lane, Meet, Pass, Signal, Wait, Work
from gnnlab.simulate.timing import Timing, summarise
from gnnlab.trace import Event

__all__ = ["FREE", "Machines", "replay"]

FREE = ("bandwidth", "latency", "allreduce", "serve", "sample", "compute")
"""What can be thought free, to see what it costs."""

_MOVED = 1e-18  # seconds of a processor that a byte takes where it is said to take none
_OVER: tuple[float, dict[int, float]] = 0.0, {}  # what a lane gives at the end of its tape

_Steps = Generator[tuple[float, Mapping[int, float]] | None, None, None]


@dataclass(frozen=True)
class Machines:
    """What there is to compute with.

    Attributes
    ----------
    count : int
    cores : float
        Of each machine.
    shared : float or None
        Cores that all machines have together; then ``cores`` does not matter.
    """

    count: int
    cores: float
    shared: float | None = None


def replay(
    lanes: Sequence[Lane], network: Network, machines: Machines, free: Sequence[str] = ()
) -> Timing:
    """Compute when everything happens.

    Parameters
    ----------
    lanes : sequence of Lane
        Of all trainers.
    network : Network
    machines : Machines
    free : sequence of str
        Names in :data:`FREE` of what takes no time.

    Examples
    --------
    Rank 0 asks machine 1 for a megabyte, and then both compute the mean of their gradients.

    >>> from gnnlab.simulate import Network
    >>> from gnnlab.simulate.replay import Machines, replay
    >>> from gnnlab.simulate.tape import Ask, Lane, Meet, Work
    >>> ask = Ask("fetch", out={1: 100}, back={1: 10**6}, serve={1: 0.01}, requests=1)
    >>> lanes = [
    ...     Lane(0, 0, "trainer", [ask, Work("compute", 0.5), Meet("allreduce", 0, 10**5)]),
    ...     Lane(1, 1, "trainer", [Work("compute", 0.5), Meet("allreduce", 0, 10**5)]),
    ... ]
    >>> network = Network(bandwidth=8e6, latency=0.001, per_request=0, overhead=0)
    >>> timing = replay(lanes, network, Machines(2, cores=2))
    >>> round(timing.seconds, 3), {kind: round(s, 3) for kind, s in timing.parts.items()}
    (1.614, {'compute': 0.5, 'fetch': 0.506, 'wait': 0.506, 'allreduce': 0.102})
    """
    strange = set(free) - set(FREE)
    if strange:
        raise InvalidInput(f"no {sorted(strange)} can be free; there are {', '.join(FREE)}")
    return _Replay(lanes, network, machines, frozenset(free)).run()


class _Replay:
    def __init__(
        self, lanes: Sequence[Lane], network: Network, machines: Machines, free: frozenset[str]
    ) -> None:
        self.lanes, self.network, self.machines, self.free = lanes, network, machines, free
        self.num_ranks = len({lane.rank for lane in lanes})
        count = machines.count
        links = np.full(2 * count, network.bytes_per_second)
        pools = np.full(count, float(machines.cores))
        if machines.shared is not None:
            pools = np.array([float(machines.shared)])
        self.fluid = Fluid(len(lanes) + 1, np.concatenate([links, pools]))
        self.ready: list[int] = []
        self.num_over = 0
        self.signals: dict[tuple[int, object], Lane] = {}
        self.blocked: dict[tuple[int, object], list[int]] = defaultdict(list)
        self.arrived: dict[int, list[int]] = defaultdict(list)
        self.began: dict[int, float] = {}
        self.ring: tuple[list[int], float] = ([], 0.0)
        self.rings: list[tuple[list[int], int]] = []
        self.events: list[Event] = []
        self.passes: dict[int, list[list[float]]] = defaultdict(list)

    # ------------------------------------------------------------------ the clock
    def run(self) -> Timing:
        actors = [self._play(number, lane) for number, lane in enumerate(self.lanes)]
        actors.append(self._rings())
        self.ready = list(range(len(actors)))
        while True:
            while self.ready:
                actor = self.ready.pop()
                activity = next(actors[actor], _OVER)
                if activity == _OVER:
                    self.num_over += 1
                elif activity is not None:
                    self.fluid.begin(actor, *activity, cap=1.0)
            ended = self.fluid.advance()
            if not ended:
                return self._finish()
            self.ready = ended

    def _finish(self) -> Timing:
        if self.num_over < len(self.lanes):
            raise GNNLabError(
                f"{len(self.lanes) - self.num_over} of {len(self.lanes)} tapes wait for what never "
                "comes; they are not all of one run"
            )
        return summarise(self.events, self.passes, self.num_ranks)

    # ------------------------------------------------------------------ activities
    def _pool(self, machine: int) -> int:
        return 2 * self.machines.count + (machine if self.machines.shared is None else 0)

    def _link(self, machine: int, inward: bool) -> int:
        return machine + self.machines.count * inward

    def _work(self, machine: int, seconds: float) -> _Steps:
        if seconds > 0:
            yield seconds, {self._pool(machine): 1.0}

    def _delay(self, seconds: float) -> _Steps:
        if seconds > 0:
            yield seconds, {}

    def _serve(self, entry: Ask) -> _Steps:
        """Let the stores compute: each with one thread, all at once."""
        per_request = 0.0 if "latency" in self.free else self.network.per_request
        seconds: dict[int, float] = defaultdict(float)
        for machine, measured in entry.serve.items():
            seconds[self._pool(machine)] += measured + per_request
        size = max(seconds.values(), default=0.0)
        if size > 0:
            yield size, {pool: each / size for pool, each in seconds.items()}

    def _transfer(self, machine: int, out: Mapping[int, int], back: Mapping[int, int]) -> _Steps:
        """Move bytes from a machine to others, and back."""
        cost = self.network.per_byte
        amounts: dict[int, float] = defaultdict(float)
        for other in out:
            amounts[self._pool(machine)] += cost * (out[other] + back[other])
            amounts[self._pool(other)] += cost * (out[other] + back[other])
            if other != machine:
                amounts[self._link(machine, False)] += out[other]
                amounts[self._link(other, True)] += out[other]
                amounts[self._link(other, False)] += back[other]
                amounts[self._link(machine, True)] += back[other]
        yield from self._move(amounts, sum(out.values()) + sum(back.values()))

    def _move(self, amounts: Mapping[int, float], num_bytes: float) -> _Steps:
        # The unit is what one processor moves in a second: where a processor is shared, moving gets
        # as much of it as computing.
        size = num_bytes * (self.network.per_byte or _MOVED)
        if size > 0:
            yield size, {resource: a / size for resource, a in amounts.items()}

    # ------------------------------------------------------------------- the tapes
    def _play(self, number: int, lane: Lane) -> _Steps:
        for entry in lane.entries:
            start, kind = self.fluid.now, getattr(entry, "kind", "wait")
            info: dict[str, int | float | str] = {}
            if isinstance(entry, Work):
                if kind not in self.free:
                    yield from self._work(lane.machine, entry.seconds)
            elif isinstance(entry, Ask):
                info = {"bytes": sum(entry.out.values()) + sum(entry.back.values())}
                info |= {"requests": entry.requests, "rows": entry.rows}
                yield from self._ask(lane.machine, entry)
            elif isinstance(entry, Meet):
                yield from self._meet(number, lane, entry)
                begin = self.began.get(entry.number, self.fluid.now)
                if entry.bytes and begin > start:
                    self._note(lane, "wait", start, begin, entry.step, {})
                    start = begin
                info = {"bytes": entry.bytes} if entry.bytes else {}
            elif isinstance(entry, Wait):
                key = lane.rank, entry.key
                if key not in self.signals:
                    self.blocked[key].append(number)
                    yield None
                info = {"place": "batch", "maker": self.signals[key].name}
            elif isinstance(entry, Signal):
                key = lane.rank, entry.key
                self.signals[key] = lane
                self.ready.extend(self.blocked.pop(key, ()))
            elif isinstance(entry, Pass):
                self._mark(lane.rank, entry)
            step = getattr(entry, "step", None)
            self._note(lane, kind, start, self.fluid.now, step, info)

    def _note(
        self, lane: Lane, kind: str, start: float, end: float, step: int | None, info: dict
    ) -> None:
        if end > start:
            role = "sampler" if lane.name.startswith("sampler") else "trainer"
            if lane.name != "trainer":
                info = {**info, "lane": lane.name}
            self.events.append(
                Event(kind, start, end - start, lane.rank, role, lane.machine, step, info)
            )

    def _mark(self, rank: int, entry: Pass) -> None:
        if entry.begins:
            self.passes[rank].append([self.fluid.now, self.fluid.now, 0])
        else:
            self.passes[rank][-1][1:] = [self.fluid.now, entry.steps]

    def _ask(self, machine: int, entry: Ask) -> _Steps:
        is_far, with_latency = set(entry.out) != {machine}, "latency" not in self.free
        if with_latency:
            yield from self._work(machine, self.network.per_request * entry.requests)
        since = self.fluid.now
        if is_far and with_latency:
            yield from self._delay(2 * self.network.latency)
        if "serve" not in self.free:
            yield from self._serve(entry)
        if "bandwidth" not in self.free:
            yield from self._transfer(machine, entry.out, entry.back)
        yield from self._work(machine, entry.here - (self.fluid.now - since))

    def _meet(self, number: int, lane: Lane, entry: Meet) -> _Steps:
        here = self.arrived[entry.number]
        here.append(number)
        if len(here) < self.num_ranks:
            yield None
        else:
            del self.arrived[entry.number]
            self.began[entry.number] = self.fluid.now
            here.remove(number)
            if entry.bytes and self.num_ranks > 1 and "allreduce" not in self.free:
                self.rings.append(([*here, number], entry.bytes))
                if len(self.rings) == 1:
                    self.ready.append(len(self.lanes))
                yield None
            else:
                self.ready.extend(here)
        if not entry.bytes and lane.machine and "latency" not in self.free:
            yield from self._delay(2 * self.network.latency)

    def _rings(self) -> _Steps:
        """The one actor that sums up for all."""
        while True:
            if not self.rings:
                yield None
                continue
            waiting, num_bytes = self.rings[0]
            rounds = 2 * (self.num_ranks - 1)
            yield from self._delay(rounds * self.network.latency * (self.machines.count > 1))
            count = self.machines.count
            if count > 1:
                each = num_bytes * rounds / self.num_ranks
                amounts: dict[int, float] = dict.fromkeys(range(2 * count), each)
                for machine in range(count):
                    pool = self._pool(machine)
                    amounts[pool] = amounts.get(pool, 0.0) + 2 * self.network.per_byte * each
                yield from self._move(amounts, 2 * each)
            self.rings.pop(0)
            self.ready.extend(waiting)
