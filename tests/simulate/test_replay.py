"""Times computed by hand, on op traces of a few ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.errors import InvalidInput
from gnnlab.simulate import Network
from gnnlab.simulate.flow import fair_rates
from gnnlab.simulate.optrace import Collective, LoaderPass, RoundTrip, Signal, Track, Wait, Work
from gnnlab.simulate.replay import Machines, replay

# A link carries 1000 bytes per second; a packet takes 0.1 s.
SLOW = Network(bandwidth=8000, latency=0.1, per_request=0, per_byte=0, overhead=0)


def ask(machine: int, back: int, out: int = 0, serve: float = 0.0, **more: Any) -> RoundTrip:
    return RoundTrip("fetch", {machine: out}, {machine: back}, {machine: serve}, requests=1, **more)


def trainers(*entries: list[Any]) -> list[Track]:
    return [Track(rank, rank, "trainer", each) for rank, each in enumerate(entries)]


def seconds(tracks: list[Track], network: Network = SLOW, **machines: Any) -> float:
    count = max(track.machine for track in tracks) + 2
    return replay(tracks, network, Machines(**{"count": count, "cores": 9, **machines})).seconds


def test_a_question_alone() -> None:
    """A round trip takes 0.2 s, the server 0.5 s, 2000 bytes 2 s; work here is hidden."""
    with_request = trainers([ask(1, 2000, out=10, serve=0.5)])
    assert seconds(with_request) == pytest.approx(2.7 + 0.01 / 2, 0.01)
    assert seconds(trainers([ask(1, 2000, serve=0.5, here=1.5)])) == pytest.approx(2.7)
    assert seconds(trainers([ask(1, 2000, serve=0.5, here=4.0)])) == pytest.approx(4.0)


@given(st.integers(2, 4), st.randoms(use_true_random=False))
def test_no_work_is_lost_on_shared_processors(count: int, chance: Any) -> None:
    """One processor needs all work; more than enough are as good as each machine's own."""
    work = 0.0
    tracks = trainers(*([] for _ in range(count)))
    for track in tracks:
        for _ in range(chance.randint(1, 6)):
            others = [m for m in range(count) if m != track.machine]
            others = chance.sample(others, chance.randint(1, len(others)))
            here, serve = chance.uniform(0.1, 1), {m: chance.uniform(0.1, 1) for m in others}
            back = {m: chance.choice([0, 500]) for m in others}
            out = dict.fromkeys(others, 10)
            track.ops += [RoundTrip("fetch", out, back, serve, here), Work("compute", here)]
            work += 2 * here + sum(serve.values())
    assert seconds(tracks, shared=1) >= work - 1e-6
    assert seconds(tracks, shared=100) == pytest.approx(seconds(tracks))


def test_requests_and_bytes_cost_processors() -> None:
    asked = trainers([ask(1, 1000)])
    network = Network(8000, latency=0, per_request=0.25, per_byte=0, overhead=0)
    assert seconds(asked, network) == pytest.approx(0.25 + 0.25 + 1)
    # Moving at 1000 bytes per second keeps a tenth of a processor busy on both sides, or all of it.
    network = Network(8000, latency=0, per_request=0, per_byte=1e-4, overhead=0)
    assert seconds(asked, network) == pytest.approx(1.0)
    network = Network(8000, latency=0, per_request=0, per_byte=2e-3, overhead=0)
    assert seconds(asked, network) == pytest.approx(2.0)
    # Computing and moving share the one processor of machine 1.
    network = Network(1e9, latency=0, per_request=0, per_byte=1e-3, overhead=0)
    work = trainers([ask(1, 1000)], [Work("compute", 1.0)])
    assert seconds(work, network, cores=1) == pytest.approx(2.0)


def test_a_link_is_shared_and_directions_are_not() -> None:
    """Machines 0 and 1 both read from 2: its link out carries 2000 bytes. Reading from each other
    they use one direction of each link."""
    assert seconds(trainers([ask(2, 1000)], [ask(2, 1000)])) == pytest.approx(0.2 + 2)
    assert seconds(trainers([ask(1, 1000)], [ask(0, 1000)])) == pytest.approx(0.2 + 1)


def test_a_packet_waits_where_its_link_is_in_use() -> None:
    """Machine 1 answers 2 for 2 s; the request of 0 waits for it there, not where it leaves."""
    network = Network(8000, latency=0.1, per_request=0, per_byte=0, overhead=0, queue=0.4)
    first, later = [ask(1, 2000)], [Work("compute", 1.0), ask(1, 100)]
    timing = replay(trainers(later, [], first), network, Machines(3, 9))
    (fetch,) = (each for each in timing.events if each.kind == "fetch" and each.rank == 0)
    assert fetch.seconds == pytest.approx(0.1 + (0.1 + 0.4) + 0.2)
    alone = replay(trainers(later), network, Machines(2, 9)).seconds
    assert alone == pytest.approx(1.0 + 0.2 + 0.1)
    # Behind two transfers it waits twice as long, and then gets a third of the link.
    timing = replay(trainers(later, [], first, first), network, Machines(4, 9))
    (fetch,) = (each for each in timing.events if each.kind == "fetch" and each.rank == 0)
    assert fetch.seconds == pytest.approx(0.1 + (0.1 + 2 * 0.4) + 0.3)


def test_all_reduce_is_a_ring_of_ranks() -> None:
    """Four ranks, 600 bytes: each link carries 2·3/4·600 bytes, and there are 6 rounds."""
    entries = [[Work("compute", float(rank)), Collective("allreduce", 0, 600)] for rank in range(4)]
    timing = replay(trainers(*entries), SLOW, Machines(4, 9))
    assert timing.seconds == pytest.approx(3 + 0.9 + 6 * 0.1)
    assert timing.parts == pytest.approx({"compute": 1.5, "wait": 1.5, "allreduce": 1.5})
    one_machine = [Track(track.rank, 0, "trainer", track.ops) for track in trainers(*entries)]
    assert replay(one_machine, SLOW, Machines(1, 9)).seconds == pytest.approx(3.0)
    # Two ranks on each of two machines: half of a value's steps leave a machine.
    pairs = [Track(track.rank, track.rank // 2, "trainer", track.ops) for track in one_machine]
    assert replay(pairs, SLOW, Machines(2, 9)).seconds == pytest.approx(3 + 0.9 + 3 * 0.1)


def test_work_takes_longer_where_processes_are_slower() -> None:
    """A second of computing takes three, a second of a server two, one that is hidden by it too."""
    slowdown = {"compute": 3.0, "serve": 2.0, "fetch": 2.5}
    work = trainers([Work("compute", 1.0), ask(1, 0, serve=1.0, here=1.0), Work("sample", 1.0)])
    network = Network(8000, latency=0, per_request=0, per_byte=0)
    assert seconds(work, network, slowdown=slowdown) == pytest.approx(3.0 + 2.5 + 1.0)
    free = replay(work, network, Machines(2, 9), ["serve"]).seconds
    assert free == pytest.approx(1.0 + 1.0)


def test_a_barrier_waits_for_the_last_and_for_a_packet_there_and_back() -> None:
    tracks = trainers(*([Work("compute", rank + 0.5), Collective("wait", 0)] for rank in range(3)))
    timing = replay(tracks, SLOW, Machines(3, 9))
    ends = {e.rank: e.start + e.seconds for e in timing.events if e.kind == "wait"}
    assert ends == pytest.approx({0: 2.5, 1: 2.7, 2: 2.7})


def pipeline(make: float, train: float, count: int, ahead: int) -> list[Track]:
    sampler, trainer = Track(0, 0, "sampler-0"), Track(0, 0, "trainer")
    trainer.ops += [LoaderPass(1, True), Signal(("begin",))]
    for n in range(count):
        sampler.ops += [Wait(("begin",) if n < ahead else ("room", n)), Work("sample", make)]
        sampler.ops += [Signal(("made", n))]
        trainer.ops += [Wait(("made", n)), Signal(("room", n + ahead)), Work("compute", train)]
    trainer.ops.append(LoaderPass(1, False, count))
    return [trainer, sampler]


@pytest.mark.parametrize(
    ("make", "train", "expected"), [(1.0, 3.0, 1 + 5 * 3.0), (3.0, 1.0, 5 * 3.0 + 1)]
)
def test_sampling_ahead_is_a_pipeline(make: float, train: float, expected: float) -> None:
    """Five batches: the slower stage, and once the other one to fill or empty the pipe."""
    timing = replay(pipeline(make, train, 5, 2), SLOW, Machines(1, 9))
    assert timing.seconds == pytest.approx(expected)
    (epoch,) = timing.epochs
    assert (epoch.seconds, epoch.steps) == (pytest.approx(expected), 5)
    # While the trainer waits for a batch, the time is the sampler's work.
    assert epoch.parts == pytest.approx({"sample": expected - 5 * train, "compute": 5 * train})


def test_a_sampler_is_not_further_ahead_than_it_may() -> None:
    timing = replay(pipeline(1.0, 10.0, 4, 1), SLOW, Machines(1, 9))
    begins = [round(e.start) for e in timing.events if e.kind == "sample"]
    assert begins == [0, 1, 11, 21]


def test_what_is_free_takes_no_time() -> None:
    tracks = trainers(
        [
            Work("sample", 1.0),
            ask(1, 4000, serve=2.0),
            Work("compute", 8.0),
            Collective("allreduce", 0, 9),
        ],
        [Collective("allreduce", 0, 9)],
    )
    machines = Machines(2, 9)
    full = replay(tracks, SLOW, machines).seconds
    assert full == pytest.approx(1 + 0.2 + 2 + 4 + 8 + 0.2 + 0.009)
    saved = {
        name: full - replay(tracks, SLOW, machines, (name,)).seconds
        for name in ("bandwidth", "latency", "serve", "sample", "compute", "allreduce")
    }
    expected = {"bandwidth": 4, "latency": 0.2, "serve": 2, "sample": 1, "compute": 8}
    assert saved == pytest.approx({**expected, "allreduce": 0.209})
    with pytest.raises(InvalidInput, match=r"'gold'.*bandwidth"):
        replay(tracks, SLOW, machines, ("gold",))


def test_an_unlimited_resource_limits_no_rate() -> None:
    usage, caps = np.eye(2), np.ones(2)
    assert fair_rates(usage, caps, np.array([np.inf, 0.5])).tolist() == [1.0, 0.5]


@given(st.integers(1, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_fair_rates(num_activities: int, num_resources: int, chance: Any) -> None:
    """No resource is overused, and each activity is held back by its cap, or by a resource that is
    used up and on which no activity has a higher rate."""
    rng = np.random.default_rng(chance.randrange(10**6))
    usage = rng.random((num_activities, num_resources)) * (rng.random((1, num_resources)) < 0.7)
    caps = np.where(rng.random(num_activities) < 0.5, rng.random(num_activities) * 5 + 0.1, 9.0)
    capacity = rng.random(num_resources) * 3 + 0.1
    rates = fair_rates(usage, caps, capacity)
    load = rates @ usage
    assert (load <= capacity * (1 + 1e-6)).all() and (rates <= caps * (1 + 1e-6)).all()
    full = load >= capacity * (1 - 1e-6)
    for a in range(num_activities):
        others = [rates[usage[:, r] > 0].max() for r in np.flatnonzero(full & (usage[a] > 0))]
        assert rates[a] >= caps[a] * (1 - 1e-6) or any(rates[a] >= o * (1 - 1e-6) for o in others)
