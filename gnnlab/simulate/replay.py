"""Compute the times of a run from op traces, a network and processors.

All tracks are replayed at once, from their first op. Work takes a processor of the machine. A
request costs the client some work, then a round trip, then the servers compute, then the bytes are
sent: out of each sending machine and into each receiving machine, which also costs processor time
on both sides; beside that, the client copies rows of its own machine. A barrier ends when all ranks
have reached it. An all-reduce is a ring of all ranks in rank order, so one rank of each machine
sends to the next. Links and processors are shared max-min fairly (:mod:`gnnlab.simulate.flow`).

The model leaves out queues in the switch, TCP's slow start, and contention between processes for
anything but processors: caches and memory bandwidth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.simulate.flow import FairFlow
from gnnlab.simulate.network import Network
from gnnlab.simulate.optrace import Collective, LoaderPass, RoundTrip, Signal, Track, Wait, Work
from gnnlab.simulate.timing import Timing, summarize
from gnnlab.trace import Event

FREE = ("bandwidth", "latency", "allreduce", "serve", "sample", "compute")
"""What a replay can leave out, to see how much time it costs."""

_MIN_PER_BYTE = 1e-18  # used where the network says that a byte costs no processor time
_ENDED: tuple[float, dict[int, float]] = 0.0, {}  # yielded at the end of a track

_Steps = Generator[tuple[float, Mapping[int, float]] | None, None, None]


@dataclass(frozen=True)
class Machines:
    """The machines and their processors, each with a number of cores.

    If one computer runs them all, ``shared`` is the number of cores that they share, instead of
    ``cores``. ``slowdown`` is kind of work → how many times the measured processor seconds it takes
    on these machines, by default 1: "sample", "fetch", "compute", and "serve" for servers.
    """

    count: int
    cores: float
    shared: float | None = None
    slowdown: Mapping[str, float] = field(default_factory=dict)


def replay(
    tracks: Sequence[Track], network: Network, machines: Machines, free: Sequence[str] = ()
) -> Timing:
    """Compute start and duration of everything, for all tracks of all trainers.

    ``free`` are names in :data:`FREE` of what is to take no time.

    Examples
    --------
    Rank 0 requests a megabyte from machine 1, then both ranks all-reduce their gradients.

    >>> from gnnlab.simulate import Network
    >>> from gnnlab.simulate.replay import Machines, replay
    >>> from gnnlab.simulate.optrace import Collective, RoundTrip, Track, Work
    >>> request = RoundTrip("fetch", out={1: 100}, back={1: 10**6}, serve={1: 0.01}, requests=1)
    >>> allreduce = Collective("allreduce", number=0, bytes=10**5)
    >>> tracks = [
    ...     Track(0, 0, "trainer", [request, Work("compute", 0.5), allreduce]),
    ...     Track(1, 1, "trainer", [Work("compute", 0.5), allreduce]),
    ... ]
    >>> network = Network(bandwidth=8e6, latency=0.001, per_request=0, overhead=0)
    >>> timing = replay(tracks, network, Machines(2, cores=2))
    >>> round(timing.seconds, 3), {kind: round(s, 3) for kind, s in timing.parts.items()}
    (1.614, {'compute': 0.5, 'fetch': 0.506, 'wait': 0.506, 'allreduce': 0.102})
    """
    unknown = set(free) - set(FREE)
    if unknown:
        raise InvalidInput(f"free has unknown names {sorted(unknown)}; known are {', '.join(FREE)}")
    return _Replay(tracks, network, machines, frozenset(free)).run()


class _Replay:
    def __init__(
        self, tracks: Sequence[Track], network: Network, machines: Machines, free: frozenset[str]
    ) -> None:
        self.tracks, self.network, self.machines, self.free = tracks, network, machines, free
        self.num_ranks = len({track.rank for track in tracks})
        count = machines.count
        links = np.full(2 * count, network.bytes_per_second)
        pools = np.full(count, float(machines.cores))
        if machines.shared is not None:
            pools = np.array([float(machines.shared)])
        self.flow = FairFlow(2 * len(tracks) + 1, np.concatenate([links, pools]))
        self.ready: list[int] = []
        self.num_ended = 0
        self.signals: dict[tuple[int, object], Track] = {}
        self.blocked: dict[tuple[int, object], list[int]] = defaultdict(list)
        self.arrived: dict[int, list[int]] = defaultdict(list)
        self.began: dict[int, float] = {}
        self.ring: tuple[list[int], float] = ([], 0.0)
        self.rings: list[tuple[list[int], int]] = []
        self.beside: dict[int, float] = {}  # track → seconds of work beside its request
        self.joining: set[int] = set()  # tracks whose request has ended before that work
        self.events: list[Event] = []
        self.passes: dict[int, list[list[float]]] = defaultdict(list)

    # ------------------------------------------------------------------ event loop
    def run(self) -> Timing:
        actors = [self._run_track(number, track) for number, track in enumerate(self.tracks)]
        actors += [self._beside(number, track) for number, track in enumerate(self.tracks)]
        actors.append(self._allreduces())
        self.ready = list(range(len(actors)))
        while True:
            while self.ready:
                actor = self.ready.pop()
                activity = next(actors[actor], _ENDED)
                if activity == _ENDED:
                    self.num_ended += 1
                elif activity is not None:
                    self.flow.begin(actor, *activity, cap=1.0)
            ended = self.flow.advance()
            if not ended:
                return self._finish()
            self.ready = ended

    def _finish(self) -> Timing:
        if self.num_ended < len(self.tracks):
            raise GNNLabError(
                f"{len(self.tracks) - self.num_ended} of {len(self.tracks)} tracks wait for ops "
                "that no track contains; pass all tracks of one run"
            )
        return summarize(self.events, self.passes, self.num_ranks)

    # ------------------------------------------------------------------ activities
    def _pool(self, machine: int) -> int:
        return 2 * self.machines.count + (machine if self.machines.shared is None else 0)

    def _slowdown(self, kind: str) -> float:
        return self.machines.slowdown.get(kind, 1.0)

    def _link(self, machine: int, inward: bool) -> int:
        return machine + self.machines.count * inward

    def _work(self, machine: int, seconds: float) -> _Steps:
        if seconds > 0:
            yield seconds, {self._pool(machine): 1.0}

    def _wait(self, machines: Iterable[int]) -> float:
        """Seconds that a packet takes that leaves one of these machines now."""
        users = self.flow.users([self._link(machine, False) for machine in machines])
        return self.network.latency + self.network.queue * users

    def _delay(self, seconds: float) -> _Steps:
        if seconds > 0:
            yield seconds, {}

    def _serve(self, op: RoundTrip) -> _Steps:
        """Servers compute at the same time, each with one thread."""
        per_request = 0.0 if "latency" in self.free else self.network.per_request
        slowdown = self._slowdown("serve")
        seconds = {m: slowdown * measured + per_request for m, measured in op.serve.items()}
        size = max(seconds.values(), default=0.0)
        if size > 0:
            usage: dict[int, float] = defaultdict(float)
            for machine, each in seconds.items():
                usage[self._pool(machine)] += each / size
            yield size, usage

    def _transfer(self, machine: int, out: Mapping[int, int], back: Mapping[int, int]) -> _Steps:
        """Send bytes from a machine to others, and back."""
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
        # The unit is what a processor sends in a second: sending and computing share it equally.
        size = num_bytes * (self.network.per_byte or _MIN_PER_BYTE)
        if size > 0:
            yield size, {resource: a / size for resource, a in amounts.items()}

    # ------------------------------------------------------------------- op traces
    def _run_track(self, number: int, track: Track) -> _Steps:
        for op in track.ops:
            start, kind = self.flow.now, getattr(op, "kind", "wait")
            info: dict[str, int | float | str] = {}
            if isinstance(op, Work):
                if kind not in self.free:
                    yield from self._work(track.machine, op.seconds * self._slowdown(kind))
            elif isinstance(op, RoundTrip):
                info = {"bytes": sum(op.out.values()) + sum(op.back.values())}
                info |= {"requests": op.requests, "rows": op.rows}
                yield from self._request(number, track.machine, op)
            elif isinstance(op, Collective):
                yield from self._collective(number, track, op)
                begin = self.began.get(op.number, self.flow.now)
                if op.bytes and begin > start:
                    self._add_event(track, "wait", start, begin, op.step, {})
                    start = begin
                info = {"bytes": op.bytes} if op.bytes else {}
            elif isinstance(op, Wait):
                key = track.rank, op.key
                if key not in self.signals:
                    self.blocked[key].append(number)
                    yield None
                info = {"place": "batch", "maker": self.signals[key].name}
            elif isinstance(op, Signal):
                key = track.rank, op.key
                self.signals[key] = track
                self.ready.extend(self.blocked.pop(key, ()))
            elif isinstance(op, LoaderPass):
                self._record_pass(track.rank, op)
            step = getattr(op, "step", None)
            self._add_event(track, kind, start, self.flow.now, step, info)

    def _add_event(
        self, track: Track, kind: str, start: float, end: float, step: int | None, info: dict
    ) -> None:
        if end > start:
            role = "sampler" if track.name.startswith("sampler") else "trainer"
            if track.name != "trainer":
                info = {**info, "lane": track.name}
            self.events.append(
                Event(kind, start, end - start, track.rank, role, track.machine, step, info)
            )

    def _record_pass(self, rank: int, op: LoaderPass) -> None:
        if op.begins:
            self.passes[rank].append([self.flow.now, self.flow.now, 0])
        else:
            self.passes[rank][-1][1:] = [self.flow.now, op.steps]

    def _request(self, number: int, machine: int, op: RoundTrip) -> _Steps:
        is_remote, with_latency = set(op.out) != {machine}, "latency" not in self.free
        if with_latency:
            yield from self._work(machine, self.network.per_request * op.requests)
        if op.here and "serve" not in self.free:  # the store of this machine is read meanwhile
            self.beside[number] = op.here * self._slowdown(op.kind)
            self.ready.append(len(self.tracks) + number)
        if is_remote and with_latency:
            yield from self._delay(self._wait([machine]) + self._wait(op.out))
        if "serve" not in self.free:
            yield from self._serve(op)
        if "bandwidth" not in self.free:
            yield from self._transfer(machine, op.out, op.back)
        if number in self.beside:
            self.joining.add(number)
            yield None

    def _beside(self, number: int, track: Track) -> _Steps:
        """The work that a track does beside its requests: an actor of its own."""
        while True:
            yield None
            yield from self._work(track.machine, self.beside[number])
            del self.beside[number]
            if number in self.joining:
                self.joining.remove(number)
                self.ready.append(number)

    def _collective(self, number: int, track: Track, op: Collective) -> _Steps:
        if op.bytes and "allreduce" not in self.free:
            rounds = 2 * (self.num_ranks - 1)
            yield from self._work(track.machine, self.network.per_round * rounds)
        arrived = self.arrived[op.number]
        arrived.append(number)
        if len(arrived) < self.num_ranks:
            yield None
        else:
            del self.arrived[op.number]
            self.began[op.number] = self.flow.now
            arrived.remove(number)
            if op.bytes and self.num_ranks > 1 and "allreduce" not in self.free:
                self.rings.append(([*arrived, number], op.bytes))
                if len(self.rings) == 1:
                    self.ready.append(2 * len(self.tracks))
                yield None
            else:
                self.ready.extend(arrived)
        if not op.bytes and track.machine and "latency" not in self.free:
            yield from self._delay(2 * self.network.latency)

    def _allreduces(self) -> _Steps:
        """Run all all-reduces, one after another: the last actor."""
        while True:
            if not self.rings:
                yield None
                continue
            waiting, num_bytes = self.rings[0]
            rounds = 2 * (self.num_ranks - 1)
            count = self.machines.count
            each = num_bytes / self.num_ranks  # bytes of a round on each link
            amounts: dict[int, float] = dict.fromkeys(range(2 * count), each)
            for machine in range(count):
                pool = self._pool(machine)
                amounts[pool] = amounts.get(pool, 0.0) + 2 * self.network.per_byte * each
            for _ in range(rounds if count > 1 else 0):
                # On its way around the ring, a value leaves a machine in this share of the rounds.
                yield from self._delay(count / self.num_ranks * self._wait(range(count)))
                yield from self._move(amounts, 2 * each)
            self.rings.pop(0)
            self.ready.extend(waiting)
