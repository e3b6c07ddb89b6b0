"""One progress bar for all ranks.

A rank counts its batches or epochs with :func:`track`; the process that started the ranks draws one
bar, that of the slowest rank. In a process that is no rank, the calls draw a bar there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

from gnnlab.system.bars import is_kernel, progress_bar

T = TypeVar("T")

_imported_in = os.getpid()
_PAUSE = 0.1  # seconds between two messages of a rank

_send: Callable[[dict[str, Any]], None] | None = None
_state: dict[str, Any] = {"done": 0, "total": 0, "description": "", "figures": {}}
_sent = 0.0
_bar: Any = None


def track(iterable: Iterable[T], description: str = "", total: int | None = None) -> Iterator[T]:
    """Iterate, for instance over a loader, and show a progress bar.

    Before the bar stands ``description``, for instance the epoch; ``total`` is the number of items,
    if the iterable has no length.

    Examples
    --------
    >>> from gnnlab.parallel import track
    >>> for step in track(range(3), "epoch 0"):
    ...     pass
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    yield from (_alone if _send is None else _as_rank)(iterable, description, total)


def report(**figures: float) -> None:
    """Show figures beside the bar, such as the loss; with several ranks, those of the lowest rank.

    Examples
    --------
    >>> from gnnlab.parallel import report, track
    >>> for step in track(range(3)):
    ...     report(loss=1 / (step + 1))
    """
    if _send is not None:
        _state["figures"].update({name: float(value) for name, value in figures.items()})
        _tell()
    elif _bar is not None:
        _bar.set_postfix(**figures)


def send_to(send: Callable[[dict[str, Any]], None] | None) -> None:
    """Make this process a rank: pass its progress to ``send`` instead of drawing a bar."""
    global _send
    if _state["figures"]:
        _tell(at_once=True)  # the last report
    _send = send
    _state.update(done=0, total=0, description="", figures={})


def _alone(iterable: Iterable[T], description: str, total: int | None) -> Iterator[T]:
    global _bar
    if os.getpid() != _imported_in and is_kernel():
        yield from iterable  # a copy of a notebook's kernel cannot draw in the notebook
        return
    around = _bar
    with progress_bar(iterable, desc=description or None, total=total, delay=0) as _bar:
        try:
            yield from _bar
        finally:
            _bar = around


def _as_rank(iterable: Iterable[T], description: str, total: int | None) -> Iterator[T]:
    done = 0
    _state["total"] += total or 0
    _state["description"] = description
    _tell(at_once=True)
    try:
        for item in iterable:
            yield item
            done += 1
            _state["done"] += 1
            _tell()
    finally:
        # Left early, or of unknown length: remove the remaining items from the total.
        _state["total"] += done - (total or 0)
        _tell(at_once=True)


def _tell(at_once: bool = False) -> None:
    global _sent
    now = time.monotonic()
    if _send is not None and (at_once or now - _sent > _PAUSE):
        _sent = now
        _send(_state)
