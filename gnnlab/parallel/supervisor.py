"""Wait for the results of all ranks, or for the first failure."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from typing import Any

from gnnlab.errors import GNNLabError
from gnnlab.launch import supervision
from gnnlab.parallel.multiplexer import OutputMultiplexer
from gnnlab.parallel.rank import RELEASE, Failure
from gnnlab.parallel.rank_process import EXIT_TIMEOUT, TICK, RankProcess
from gnnlab.parallel.rendezvous import PATIENCE

_ANSWER = 0.5  # seconds for a rank to send its traceback
_LOOK = 2.0  # seconds between two questions where ranks stand, once one of them has returned


class RankError(GNNLabError, RuntimeError):
    """A rank failed, and all other ranks were ended.

    Attributes
    ----------
    rank : int
        The rank that failed first.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


def supervise(
    ranks: Sequence[RankProcess], output: OutputMultiplexer, timeout: float | None
) -> list[Any]:
    """Wait until all ranks have a result and return the results; raise when one fails."""
    deadline = None if timeout is None else time.monotonic() + timeout
    for rank in ranks:
        rank.listen()
    rendezvous, next_look = supervision.Rendezvous(PATIENCE), 0.0
    while late := _unsettled(ranks):
        if any(rank.failure for rank in ranks):
            break
        if len(late) < len(ranks) and time.monotonic() > next_look:
            next_look = time.monotonic() + _LOOK
            waiting = {rank.number for rank in late if rank.is_in_rendezvous}
            if rendezvous.is_stuck({rank.number for rank in late}, waiting):
                raise _left_early(ranks, late)
            for rank in late:
                rank.ask_where()
        if deadline is not None and time.monotonic() > deadline:
            raise _out_of_time(late, len(ranks), timeout or 0)
        output.update(ranks)
        time.sleep(TICK)
    if any(rank.failure for rank in ranks):
        raise _first_failure(ranks)
    for rank in ranks:
        rank.send(RELEASE)
    supervision.wait(lambda: all(rank.poll() is not None for rank in ranks), EXIT_TIMEOUT)
    return [pickle.loads(rank.result or b"") for rank in ranks]


def _left_early(ranks: Sequence[RankProcess], late: Sequence[RankProcess]) -> RankError:
    first = next(rank for rank in ranks if rank not in late)
    what = f"returned {supervision.Rendezvous.missed(f'rank {late[0].number}')}"
    return _error(first, len(ranks), what, f"Rank {late[0].number} stands here:\n{late[0].stand}")


def _unsettled(ranks: Sequence[RankProcess]) -> list[RankProcess]:
    return [rank for rank in ranks if not rank.look()]


def _first_failure(ranks: Sequence[RankProcess]) -> RankError:
    def failed() -> list[tuple[Failure, RankProcess]]:
        pairs = [(rank.failure, rank) for rank in ranks if rank.failure]
        return sorted(pairs, key=lambda pair: pair[0].time)

    def listen() -> bool:
        time.sleep(TICK / 5)
        return not _unsettled(ranks)

    failure, rank = supervision.first_failure(failed, lambda pair: pair[0].distance, listen)
    rank.kill()
    rank.join()  # its output is complete now
    return _error(rank, len(ranks), f"failed: {failure.reason}", failure.details)


def _out_of_time(late: Sequence[RankProcess], world_size: int, timeout: float) -> RankError:
    for rank in late:
        rank.ask_where()
    supervision.wait(lambda: all(rank.stand for rank in late), _ANSWER)
    stands = [f"Rank {rank.number} stands here:\n{rank.stand or '?'}" for rank in late]
    return _error(late[0], world_size, f"still ran after {timeout:g} s", "\n".join(stands))


def _error(rank: RankProcess, world_size: int, what: str, details: str) -> RankError:
    name = f"rank {rank.number}"
    what = f"{name} of {world_size} {what}"
    return RankError(supervision.report(what, details, name, rank.last_output()), rank.number)
