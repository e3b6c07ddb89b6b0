"""Threads by turns: order, meetings, failures, and what each thread has of its own."""

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
from gnnlab.simulate.stage import SimulationError, Stage, player


def stage(count: int = 3) -> Stage:
    return Stage([{"RANK": str(rank)} for rank in range(count)])


def test_players_run_one_at_a_time_and_in_the_same_order_always() -> None:
    def trail() -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def play(rank: int) -> None:
            for step in range(3):
                found.append((rank, step))
                time.sleep(0.001 * (3 - rank))  # others would come between if they could
                me = player()
                assert me is not None
                me.meet(f"step {step}")

        stage().run(play)
        return found

    first = trail()
    assert sorted(first) == [(rank, step) for rank in range(3) for step in range(3)]
    assert all(first[i][1] <= first[i + 1][1] for i in range(8))
    assert trail() == first


def test_a_meeting_gives_what_all_have_brought() -> None:
    def play(rank: int) -> Any:
        me = player()
        assert me is not None
        return [me.meet(f"place {i}", (rank, i)) for i in range(2)]

    expected = [(0, [(0, 0), (1, 0), (2, 0)]), (1, [(0, 1), (1, 1), (2, 1)])]
    assert stage().run(play) == [expected] * 3


def test_the_first_failure_ends_all_and_names_the_rank() -> None:
    def play(rank: int) -> None:
        me = player()
        assert me is not None
        me.meet("start")
        if rank == 1:
            raise ZeroDivisionError("one by nothing")
        me.meet("never")

    with pytest.raises(SimulationError, match="rank 1 of 3 failed: ZeroDivisionError") as caught:
        stage().run(play)
    assert 'raise ZeroDivisionError("one by nothing")' in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert threading.active_count() < 50


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["a", "a", None], "ranks 0, 1 wait at: a; ranks 2 have ended"),
        (["a", "b", "a"], "ranks 0, 2 wait at: a; ranks 1 wait at: b"),
    ],
)
def test_who_waits_for_ever_is_told_at_once(places: list[str | None], message: str) -> None:
    def play(rank: int) -> None:
        me, place = player(), places[rank]
        if me is not None and place is not None:
            me.meet(place)

    with pytest.raises(SimulationError, match="for ever") as caught:
        stage().run(play)
    assert message in str(caught.value)


def test_a_run_that_takes_too_long_is_given_up() -> None:
    stop = threading.Event()
    with pytest.raises(SimulationError, match=r"not over after 0\.3 s; rank 0 was at work"):
        stage(2).run(lambda rank: stop.wait(20), timeout=0.3)
    stop.set()


def test_each_player_has_its_own_generators_and_environment() -> None:
    before = dict(os.environ), torch.get_rng_state(), dgl.random.get_state()

    def draw() -> list[Any]:
        return [
            torch.rand(2).tolist(),
            np.random.rand(),
            random.random(),
            dgl.random.next_key(),
            os.environ["RANK"],
        ]

    def play(rank: int) -> Any:
        me = player()
        assert me is not None
        fresh = torch.rand(1).item()
        torch.manual_seed(rank)
        np.random.seed(rank)
        random.seed(rank)
        dgl.seed(rank)
        found = []
        for i in range(3):
            found.append(draw())
            me.meet(f"place {i}")
        return fresh, found

    def alone(rank: int) -> Any:
        os.environ["RANK"] = str(rank)
        torch.manual_seed(rank)
        np.random.seed(rank)
        random.seed(rank)
        dgl.seed(rank)
        return [draw() for _ in range(3)]

    played = stage().run(play)
    assert dict(os.environ) == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert dgl.random.get_state() == before[2]
    try:
        for rank, (fresh, found) in enumerate(played):
            assert fresh == torch.rand(1, generator=torch.Generator()).item()  # as a new process
            assert found == alone(rank)
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        torch.set_rng_state(before[1])
        dgl.random.set_state(before[2])


def test_what_a_player_does_to_its_environment_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNLAB_TEST_SHARED", "outside")
    before = dict(os.environ)

    def play(rank: int) -> Any:
        me = player()
        assert me is not None
        os.environ["GNNLAB_TEST_OWN"] = str(rank)
        if rank == 1:
            del os.environ["GNNLAB_TEST_SHARED"]
        me.meet("a place")
        return os.environ["GNNLAB_TEST_OWN"], os.environ.get("GNNLAB_TEST_SHARED")

    assert stage(3).run(play) == [("0", "outside"), ("1", None), ("2", "outside")]
    assert dict(os.environ) == before
