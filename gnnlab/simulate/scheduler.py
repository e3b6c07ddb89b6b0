"""Run the ranks of a simulated job as threads, one at a time.

Each virtual rank is a thread. A rank runs until it reaches a rendezvous that other ranks have not
reached; then the next rank that is not blocked runs. So exactly one thread runs at a time: what a
rank computes can be timed, and every run is scheduled the same way. When all ranks are blocked or
finished and some rendezvous is incomplete, the run is a deadlock and fails at once.

Each rank has its own random generators and environment variables, swapped in when it runs.
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
from gnnlab.simulate.optrace import Recorder

_thread = threading.local()
_POLL_SECONDS = 0.2  # between two checks of the deadline


class SimulationError(GNNLabError):
    """A simulated trainer failed, or the trainers are in a deadlock."""


class _Stopped(BaseException):
    """Unwinds the thread of a rank after another rank has failed."""


class VirtualRank:
    """One simulated trainer: a thread, and the state that its process would have.

    ``waiting_at`` is the rendezvous at which the rank is blocked, ``in_group`` says whether it is
    in the process group of ``torch.distributed``, of which it has called ``num_calls`` functions.
    """

    recorder: Recorder

    def __init__(self, scheduler: Scheduler, rank: int, environment: Mapping[str, str]) -> None:
        self.scheduler, self.rank = scheduler, rank
        self.waiting_at: str | None = None
        self.has_ended = self.in_group = False
        self.num_calls = 0
        self.result: Any = None
        self.gathered: tuple[int, list[Any]] = (0, [])
        self.state = _ProcessState(rank, environment)
        self.turn = threading.Semaphore(0)

    def rendezvous(self, point: str, value: Any = None) -> tuple[int, list[Any]]:
        """Wait until all ranks reach ``point``; return its number and the value of each rank."""
        return self.scheduler.rendezvous(self, point, value)

    def check(self) -> None:
        """Unwind this thread if the run was stopped because another rank failed."""
        if self.scheduler.is_stopped:
            raise _Stopped


def current_rank() -> VirtualRank | None:
    """Return the virtual rank that this thread runs; None in all other threads."""
    return getattr(_thread, "rank", None)


class Scheduler:
    """The virtual ranks of a run, of which one runs at a time.

    ``environments`` are the environment variables of each, in addition to those of this process.
    """

    def __init__(self, environments: list[dict[str, str]]) -> None:
        self.ranks = [VirtualRank(self, rank, env) for rank, env in enumerate(environments)]
        self.is_stopped = False
        self.failure: tuple[int, BaseException] | None = None
        self._arrived: dict[str, dict[int, Any]] = {}
        self._num_rendezvous = 0
        self._done = threading.Event()

    def run(self, body: Callable[[int], Any], timeout: float = 3600.0) -> list[Any]:
        """Call ``body(rank)`` in a thread for each rank; return the results by rank."""
        threads = [
            threading.Thread(target=self._run_rank, args=(each, body), daemon=True)
            for each in self.ranks
        ]
        own = _ProcessState(0, {})
        own.save()
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + timeout
        self.ranks[0].turn.release()
        try:
            while not self._done.wait(_POLL_SECONDS):
                if time.monotonic() > deadline:
                    running = next((each.rank for each in self.ranks if not _is_blocked(each)), 0)
                    raise SimulationError(
                        f"the run did not end within {timeout:g} s; rank {running} was running. "
                        "Pass a larger timeout=, or check what that rank computes"
                    )
        finally:
            self._stop()
            for thread in threads:
                thread.join(_POLL_SECONDS if not self._done.is_set() else None)
            own.restore()
        # Results and tracebacks may hold distributed tensors, which keep this object until they go.
        failure, self.failure = self.failure, None
        results = [each.result for each in self.ranks]
        for each in self.ranks:
            each.result = None
        if failure is not None:
            raise self._as_error(*failure)
        return results

    def _run_rank(self, me: VirtualRank, body: Callable[[int], Any]) -> None:
        _thread.rank = me
        me.turn.acquire()
        try:
            me.check()
            me.state.restore()
            me.result = body(me.rank)
        except _Stopped:
            pass
        except BaseException as error:
            self._fail(me, error)
        finally:
            me.has_ended = True
            try:
                self._yield_turn(me)
            except SimulationError as error:
                self._fail(me, error)

    def _fail(self, me: VirtualRank, error: BaseException) -> None:
        if self.failure is None:
            self.failure = me.rank, error
        self._stop()

    def _stop(self) -> None:
        """Wake all blocked ranks, which then unwind."""
        self.is_stopped = True
        for each in self.ranks:
            each.turn.release()

    def _as_error(self, rank: int, error: BaseException) -> SimulationError:
        if isinstance(error, SimulationError):
            return error
        text = "".join(traceback.format_exception(error))
        found = SimulationError(
            f"rank {rank} of {len(self.ranks)} failed: {type(error).__name__}: {error}\n\n{text}"
        )
        found.__cause__ = error
        return found

    def rendezvous(self, me: VirtualRank, point: str, value: Any) -> tuple[int, list[Any]]:
        """See :meth:`VirtualRank.rendezvous`."""
        me.check()
        arrived = self._arrived.setdefault(point, {})
        arrived[me.rank] = value
        if len(arrived) < len(self.ranks):
            me.waiting_at = point
            self._yield_turn(me)
            return me.gathered
        del self._arrived[point]
        gathered = self._num_rendezvous, [arrived[each.rank] for each in self.ranks]
        self._num_rendezvous += 1
        for each in self.ranks:
            each.gathered, each.waiting_at = gathered, None
        return gathered

    def _yield_turn(self, me: VirtualRank) -> None:
        """Let the next rank run that is not blocked; return when it is this rank's turn again."""
        if self.is_stopped:
            if all(each.has_ended for each in self.ranks):
                self._done.set()
            if not me.has_ended:
                raise _Stopped
            return
        count = len(self.ranks)
        others = (self.ranks[(me.rank + i) % count] for i in range(1, count))
        following = next((each for each in others if not _is_blocked(each)), None)
        if following is None and not all(each.has_ended for each in self.ranks):
            raise SimulationError(self._deadlock())
        me.state.save()
        if following is None:
            self._done.set()
            return
        following.turn.release()
        if me.has_ended:
            return
        me.turn.acquire()
        me.check()
        me.state.restore()

    def _deadlock(self) -> str:
        where: dict[str, list[str]] = {}
        for each in self.ranks:
            state = "have ended" if each.has_ended else f"wait at: {each.waiting_at}"
            where.setdefault(state, []).append(str(each.rank))
        found = "; ".join(f"ranks {', '.join(ranks)} {state}" for state, ranks in where.items())
        return (
            f"deadlock: {found}. All trainers must make the same collective calls in the same "
            "order, and the same number of steps"
        )


def _is_blocked(each: VirtualRank) -> bool:
    return each.has_ended or each.waiting_at is not None


class _ProcessState:
    """What processes have of their own and threads share: generators, environment variables."""

    def __init__(self, rank: int, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}
        self._torch = torch.Generator().get_state()  # as in a process that has just started
        self._own = (0, 0)
        self._numpy = np.random.RandomState(rank).get_state()
        self._python = python_random.Random(rank).getstate()

    def save(self) -> None:
        """Save the current state of this process."""
        self._environment = dict(os.environ)
        self._torch, self._own = torch.get_rng_state(), random.get_state()
        self._numpy, self._python = np.random.get_state(), python_random.getstate()

    def restore(self) -> None:
        """Make the saved state that of this process."""
        torch.set_rng_state(self._torch)
        random.set_state(self._own)
        np.random.set_state(self._numpy)
        python_random.setstate(self._python)
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        os.environ.update(self._environment)
