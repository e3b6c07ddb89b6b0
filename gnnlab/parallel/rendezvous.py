"""Detect a rank that waits inside ``torch.distributed.init_process_group``.

That call returns when all ranks have made it. A rank that has ended before makes the others wait
until torch's timeout of half an hour. Whoever supervises ranks therefore asks whether all that
still run wait there; then nothing can complete the group any more.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

from gnnlab.launch import environment

PATIENCE = 10.0  # seconds within the call after which a rank counts as waiting
_TICK = 0.5  # seconds between two looks


def is_in_rendezvous(frame: FrameType | None) -> bool:
    """Return whether a thread with this innermost frame is inside ``init_process_group``."""
    while frame:
        module = frame.f_globals.get("__name__")
        if frame.f_code.co_name == "init_process_group" and module in _MODULES:
            return True
        frame = frame.f_back
    return False


_MODULES = ("torch.distributed.distributed_c10d", "gnnlab.parallel.ddp")


def notify_agent(event: str) -> None:
    """Notify the launcher's agent on this host, if there is one.

    "ready": this server accepts requests, or this trainer has joined the job. "waiting": for
    :data:`PATIENCE` seconds it has been inside ``init_process_group``. "met": it has left that
    call. "stopping": it stops because the job will end. "failing": an uncaught exception ends it.
    """
    env = os.environ
    is_server = env.get(environment.ROLE) == "server"
    role, number = ("server", environment.SERVER_ID) if is_server else ("trainer", "RANK")
    with suppress(KeyError, OSError):
        path = os.path.join(env[environment.OUTPUT], environment.EVENTS)
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # fails without a reader
        try:
            os.set_blocking(descriptor, True)
            os.write(descriptor, f"{role} {env[number]} {event}\n".encode())
        finally:
            os.close(descriptor)


@functools.cache
def watch() -> None:
    """Notify the agent when this trainer waits in its first ``init_process_group``.

    Without an agent this does nothing.
    """
    if environment.OUTPUT in os.environ:
        threading.Thread(target=_watch, name="gnnlab-rendezvous", daemon=True).start()


def _watch() -> None:
    since = None
    is_waiting = False
    while True:
        time.sleep(_TICK)
        if any(map(is_in_rendezvous, sys._current_frames().values())):
            since = since or time.monotonic()
            if not is_waiting and time.monotonic() - since >= PATIENCE:
                is_waiting = True
                notify_agent("waiting")
        elif since:
            if is_waiting:
                notify_agent("met")
            return
