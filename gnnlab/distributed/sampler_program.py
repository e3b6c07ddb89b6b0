"""A sampler process: makes the mini-batches of one trainer, which started it."""

from __future__ import annotations

import gc
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cloudpickle

from gnnlab.distributed import context, startup
from gnnlab.distributed.sampler_processes import receive, send
from gnnlab.errors import GNNLabError


def main() -> None:
    """Run a sampler: make batches until the trainer closes the socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # at exit, Python would otherwise traverse all objects of torch, for half a second
    with socket.socket(fileno=int(sys.argv[1])) as line:
        job = receive(line)
        if job is None:
            return
        try:
            startup.join(job)
        except BaseException as error:
            send(line, (None, None, _portable(error)))
            return
        tasks: dict[int, Callable[[Any], Any]] = {}
        with suppress(BrokenPipeError, ConnectionResetError):
            while (message := receive(line)) is not None:
                run, number, what = message
                if number is None:  # a new loader, and the loaders still in use
                    tasks[run], active = what
                    tasks = {key: make for key, make in tasks.items() if key in active}
                    continue
                try:
                    send(line, ((run, number), tasks[run](what), None))
                except (BrokenPipeError, ConnectionResetError):
                    raise
                except Exception as error:
                    send(line, ((run, number), None, _portable(error)))
        context.exit_client()


def _portable(error: BaseException) -> BaseException:
    """Return an error that can be pickled, with this process's traceback as a note."""
    where = "In a sampler process:\n" + "".join(traceback.format_exception(error))
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        error = GNNLabError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error.with_traceback(None)
