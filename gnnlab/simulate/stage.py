"""Threads that take turns, each playing one trainer.

One thread runs at a time, so that what a trainer computes can be timed, and a run goes the same way
every time. A trainer runs until it has to wait for the others; then the next one that need not wait
has its turn. Where all wait, at different places, nobody would ever come: that is an error at once,
which real processes would notice after their deadline.

Each trainer has generators of random numbers and variables of the environment of its own, as a
process has; they are exchanged when the turn passes.
"""

from __future__ import annotations

import os
import random as python_random
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.errors import GNNLabError
from gnnlab.simulate.tape import Recorder

__all__ = ["Player", "SimulationError", "Stage", "player"]

_here = threading.local()
_TICK = 0.2  # seconds between two looks at the deadline


class SimulationError(GNNLabError):
    """A simulated trainer has failed, or they wait for each other for ever."""


class _Over(BaseException):
    """Unwinds the threads of a run that has failed."""


class Player:
    """One trainer on the stage.

    Attributes
    ----------
    rank : int
    waits_at : str or None
        The place at which it waits for the others.
    recorder : Recorder
        Its tapes.
    in_group : bool
        Whether it is in the process group of ``torch.distributed``.
    num_calls : int
        How many calls of ``torch.distributed`` it has made.
    """

    recorder: Recorder

    def __init__(self, stage: Stage, rank: int, environment: Mapping[str, str]) -> None:
        self.stage, self.rank = stage, rank
        self.waits_at: str | None = None
        self.has_ended = self.in_group = False
        self.num_calls = 0
        self.result: Any = None
        self.found: tuple[int, list[Any]] = (0, [])
        self.surroundings = _Surroundings(rank, environment)
        self.turn = threading.Semaphore(0)

    def meet(self, place: str, value: Any = None) -> tuple[int, list[Any]]:
        """Wait for all players, and return the number of the meeting and the value of each.

        Raises
        ------
        SimulationError
            Not all will ever come.
        """
        return self.stage.meet(self, place, value)

    def check(self) -> None:
        """Leave the stage if the run is over: another player has failed."""
        if self.stage.is_over:
            raise _Over


def player() -> Player | None:
    """Return the player of this thread; None in all other threads."""
    return getattr(_here, "player", None)


class Stage:
    """All players of a run.

    Parameters
    ----------
    environments : list of dict
        What each player finds in ``os.environ`` beside what is there.

    Examples
    --------
    >>> from gnnlab.simulate.stage import Stage, player
    >>> def play(rank):
    ...     number, values = player().meet("the market", rank * 10)
    ...     return values
    >>> Stage([{}, {}]).run(play)
    [[0, 10], [0, 10]]
    """

    def __init__(self, environments: list[dict[str, str]]) -> None:
        self.players = [Player(self, rank, env) for rank, env in enumerate(environments)]
        self.is_over = False
        self.failure: tuple[int, BaseException] | None = None
        self._places: dict[str, dict[int, Any]] = {}
        self._num_meetings = 0
        self._done = threading.Event()

    def run(self, play: Callable[[int], Any], timeout: float = 3600.0) -> list[Any]:
        """Let each player play ``play(rank)`` in a thread of its own; return the results.

        Raises
        ------
        SimulationError
            A player has failed, they wait for each other for ever, or the time is over.
        """
        threads = [
            threading.Thread(target=self._play, args=(each, play), daemon=True)
            for each in self.players
        ]
        own = _Surroundings(0, {})
        own.keep()
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + timeout
        self.players[0].turn.release()
        try:
            while not self._done.wait(_TICK):
                if time.monotonic() > deadline:
                    busy = next((p.rank for p in self.players if not _waits(p)), 0)
                    raise SimulationError(
                        f"the run is not over after {timeout:g} s; rank {busy} was at work. Give "
                        "more time by timeout=, or look at what it does"
                    )
        finally:
            self._end()
            for thread in threads:
                thread.join(_TICK if not self._done.is_set() else None)
            own.restore()
        if self.failure is not None:
            raise self._complaint(*self.failure)
        return [each.result for each in self.players]

    def _play(self, me: Player, play: Callable[[int], Any]) -> None:
        _here.player = me
        me.turn.acquire()
        try:
            me.check()
            me.surroundings.restore()
            me.result = play(me.rank)
        except _Over:
            pass
        except BaseException as error:
            self._fail(me, error)
        finally:
            me.has_ended = True
            try:
                self._pass_on(me)
            except SimulationError as error:
                self._fail(me, error)

    def _fail(self, me: Player, error: BaseException) -> None:
        if self.failure is None:
            self.failure = me.rank, error
        self._end()

    def _end(self) -> None:
        """Wake all who wait; they leave."""
        self.is_over = True
        for each in self.players:
            each.turn.release()

    def _complaint(self, rank: int, error: BaseException) -> SimulationError:
        if isinstance(error, SimulationError):
            return error
        text = "".join(traceback.format_exception(error))
        found = SimulationError(
            f"rank {rank} of {len(self.players)} failed: {type(error).__name__}: {error}\n\n{text}"
        )
        found.__cause__ = error
        return found

    def meet(self, me: Player, place: str, value: Any) -> tuple[int, list[Any]]:
        """See :meth:`Player.meet`."""
        me.check()
        came = self._places.setdefault(place, {})
        came[me.rank] = value
        if len(came) < len(self.players):
            me.waits_at = place
            self._pass_on(me)
            return me.found
        del self._places[place]
        found = self._num_meetings, [came[each.rank] for each in self.players]
        self._num_meetings += 1
        for each in self.players:
            each.found, each.waits_at = found, None
        return found

    def _pass_on(self, me: Player) -> None:
        """Give the turn to the next player that need not wait, and wait for one's own."""
        if self.is_over:
            self._finish_if_last()
            if not me.has_ended:
                raise _Over
            return
        count = len(self.players)
        others = (self.players[(me.rank + i) % count] for i in range(1, count))
        following = next((p for p in others if not _waits(p)), None)
        if following is None and not me.has_ended:
            raise SimulationError(self._stuck())
        if following is None and any(not p.has_ended for p in self.players):
            raise SimulationError(self._stuck())
        me.surroundings.keep()
        if following is None:
            self._done.set()
            return
        following.turn.release()
        if me.has_ended:
            return
        me.turn.acquire()
        me.check()
        me.surroundings.restore()

    def _finish_if_last(self) -> None:
        if all(each.has_ended for each in self.players):
            self._done.set()

    def _stuck(self) -> str:
        where: dict[str, list[str]] = {}
        for each in self.players:
            state = "have ended" if each.has_ended else f"wait at: {each.waits_at}"
            where.setdefault(state, []).append(str(each.rank))
        found = "; ".join(f"ranks {', '.join(ranks)} {state}" for state, ranks in where.items())
        return (
            f"trainers wait for each other for ever: {found}. All must meet at the same places, "
            "in the same order, and make the same number of steps"
        )


def _waits(each: Player) -> bool:
    return each.has_ended or each.waits_at is not None


class _Surroundings:
    """What a process has of its own and threads share: generators, variables of the environment."""

    def __init__(self, rank: int, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}
        self._torch = torch.Generator().get_state()  # as a process has it when it starts
        self._own = (0, 0)
        self._numpy = np.random.RandomState(rank).get_state()
        self._python = python_random.Random(rank).getstate()

    def keep(self) -> None:
        """Remember everything as it is."""
        self._environment = dict(os.environ)
        self._torch, self._own = torch.get_rng_state(), random.get_state()
        self._numpy, self._python = np.random.get_state(), python_random.getstate()

    def restore(self) -> None:
        """Put everything in place."""
        torch.set_rng_state(self._torch)
        random.set_state(self._own)
        np.random.set_state(self._numpy)
        python_random.setstate(self._python)
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        os.environ.update(self._environment)
