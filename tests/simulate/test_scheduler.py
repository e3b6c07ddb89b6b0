"""The scheduler: order, rendezvous, failures, and the process state of each rank."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.simulate.scheduler import Scheduler, SimulationError, current_rank


def scheduler(count: int = 3) -> Scheduler:
    return Scheduler([{"RANK": str(rank)} for rank in range(count)])


def test_ranks_run_one_at_a_time_and_always_in_the_same_order() -> None:
    trails: list[list[tuple[int, int]]] = [[], []]

    def body(rank: int) -> None:
        me = current_rank()
        assert me is not None
        for step in range(3):
            trails[-1].append((rank, step))
            time.sleep(0.001 * (3 - rank))  # others would come between if they could
            me.rendezvous(f"step {step}")

    scheduler().run(body)
    trails.reverse()
    scheduler().run(body)
    assert trails[0] == trails[1]
    assert sorted(trails[0]) == [(rank, step) for rank in range(3) for step in range(3)]
    assert [step for _, step in trails[0]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_rendezvous_gives_the_values_of_all_ranks() -> None:
    def body(rank: int) -> Any:
        me = current_rank()
        assert me is not None
        return [me.rendezvous(f"place {i}", (rank, i)) for i in range(2)]

    expected = [(0, [(0, 0), (1, 0), (2, 0)]), (1, [(0, 1), (1, 1), (2, 1)])]
    assert scheduler().run(body) == [expected] * 3


def test_the_first_failure_ends_all_and_names_the_rank() -> None:
    def body(rank: int) -> None:
        me = current_rank()
        assert me is not None
        me.rendezvous("start")
        if rank == 1:
            raise ZeroDivisionError("division by zero")
        me.rendezvous("never")

    with pytest.raises(SimulationError, match="rank 1 of 3 failed: ZeroDivisionError") as caught:
        scheduler().run(body)
    assert 'raise ZeroDivisionError("division by zero")' in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert threading.active_count() < 50


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["a", "a", None], "ranks 0, 1 wait at: a; ranks 2 have ended"),
        (["a", "b", "a"], "ranks 0, 2 wait at: a; ranks 1 wait at: b"),
    ],
)
def test_a_deadlock_is_an_error_at_once(places: list[str | None], message: str) -> None:
    def body(rank: int) -> None:
        me, place = current_rank(), places[rank]
        if me is not None and place is not None:
            me.rendezvous(place)

    with pytest.raises(SimulationError, match="deadlock") as caught:
        scheduler().run(body)
    assert message in str(caught.value)


def test_a_run_that_takes_too_long_fails() -> None:
    stop = threading.Event()
    with pytest.raises(SimulationError, match=r"0\.3 s; rank 0"):
        scheduler(2).run(lambda rank: stop.wait(20), timeout=0.3)
    stop.set()


def draws(rank: int, pause: Any) -> list[Any]:
    """Numbers of all generators, with pauses in which other ranks draw."""
    os.environ["GNNLAB_TEST_OWN"] = str(rank)
    for seed in (torch.manual_seed, np.random.seed, random.seed, dgl.seed):
        seed(rank)
    found: list[Any] = []
    for i in range(3):
        found += [torch.rand(2).tolist(), np.random.rand(), random.random()]
        found += [dgl.random.next_key(), os.environ["GNNLAB_TEST_OWN"]]
        pause(f"place {i}")
    return found


def test_each_rank_has_its_own_generators_and_environment() -> None:
    before = dict(os.environ), torch.get_rng_state(), dgl.random.get_state()

    def body(rank: int) -> Any:
        me = current_rank()
        assert me is not None and os.environ["RANK"] == str(rank)
        return torch.rand(1).item(), draws(rank, me.rendezvous)

    simulated = scheduler().run(body)
    assert dict(os.environ) == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert dgl.random.get_state() == before[2]
    fresh = torch.rand(1, generator=torch.Generator()).item()  # as in a new process
    try:
        assert simulated == [(fresh, draws(rank, id)) for rank in range(3)]
    finally:
        del os.environ["GNNLAB_TEST_OWN"]
        torch.set_rng_state(before[1])
        dgl.random.set_state(before[2])
