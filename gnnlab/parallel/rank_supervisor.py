"""Wait for the results of all ranks, or for the first failure; ``processes.py`` then ends all."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from typing import Any

from gnnlab.errors import GNNLabError
from gnnlab.launch import first_failure
from gnnlab.parallel.multiplexer import OutputMultiplexer
from gnnlab.parallel.rank import RELEASE, Failure
from gnnlab.parallel.rank_process import EXIT_TIMEOUT, TICK, RankProcess
from gnnlab.parallel.rendezvous import PATIENCE

_ANSWER = 0.5  # seconds for a rank to send its traceback
_LOOK = 2.0  # seconds between two questions where ranks stand, once one of them has returned


class RankError(GNNLabError, RuntimeError):
    """A rank failed, and all other ranks were ended; ``rank`` is the one that failed first."""

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
    rendezvous, next_look = first_failure.Rendezvous(PATIENCE), 0.0
    while late := _unsettled(ranks):
        if any(rank.failure for rank in ranks):
            break
        if len(late) < len(ranks) and time.monotonic() > next_look:
            next_look = time.monotonic() + _LOOK
            waiting = {rank.number for rank in late if rank.is_in_rendezvous}
            if rendezvous.is_stuck({rank.number for rank in late}, waiting):
                first, other = next(rank for rank in ranks if rank not in late), late[0]
                what = f"returned {rendezvous.missed(f'rank {other.number}')}"
                raise _error(first, ranks, what, _stands([other]))
            for rank in late:
                rank.ask_where()
        if deadline is not None and time.monotonic() > deadline:
            for rank in late:
                rank.ask_where()
            first_failure.wait(lambda: all(rank.stand for rank in late), _ANSWER)
            raise _error(late[0], ranks, f"still ran after {timeout:g} s", _stands(late))
        output.update(ranks)
        time.sleep(TICK)
    if any(rank.failure for rank in ranks):
        raise _first_failure(ranks)
    for rank in ranks:
        rank.send(RELEASE)
    first_failure.wait(lambda: all(rank.poll() is not None for rank in ranks), EXIT_TIMEOUT)
    return [pickle.loads(rank.result or b"") for rank in ranks]


def _unsettled(ranks: Sequence[RankProcess]) -> list[RankProcess]:
    return [rank for rank in ranks if not rank.look()]


def _first_failure(ranks: Sequence[RankProcess]) -> RankError:
    def failed() -> list[tuple[Failure, RankProcess]]:
        pairs = [(rank.failure, rank) for rank in ranks if rank.failure]
        return sorted(pairs, key=lambda pair: pair[0].time)

    def listen() -> bool:
        time.sleep(TICK / 5)
        return not _unsettled(ranks)

    failure, rank = first_failure.first_failure(failed, lambda pair: pair[0].distance, listen)
    rank.kill()
    rank.join()  # its output is complete now
    return _error(rank, ranks, f"failed: {failure.reason}", failure.details)


def _stands(ranks: Sequence[RankProcess]) -> str:
    return "\n".join(f"Rank {rank.number} stands here:\n{rank.stand or '?'}" for rank in ranks)


def _error(rank: RankProcess, ranks: Sequence[RankProcess], what: str, details: str) -> RankError:
    name = f"rank {rank.number}"
    what = f"{name} of {len(ranks)} {what}"
    return RankError(first_failure.report(what, details, name, rank.last_output()), rank.number)
