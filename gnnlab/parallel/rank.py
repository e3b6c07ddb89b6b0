"""The process of a rank, from its start to its end.

The process that starts a rank, its *starter*, has three pipes to it. Through the *lifeline* the
starter sends the work, and at the end a message that all ranks are done; when the lifeline reads
end of file, the starter is gone, and the rank kills itself and its children. Through *events* the
rank sends its progress, then its result or its error. The third pipe is for printed output.
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import cloudpickle
import torch

from gnnlab import random, trace
from gnnlab.helpers import fork
from gnnlab.launch import first_failure
from gnnlab.parallel import progress
from gnnlab.parallel.payload import Payload, unpack
from gnnlab.parallel.rendezvous import is_in_rendezvous
from gnnlab.system.ending import await_torch

RELEASE, DUMP_STACK = b".", b"?"  # messages through the lifeline after the work
_OUR_FILES = (__file__, fork.__file__)
_worker = 0  # the thread that runs the function


class Lines(NamedTuple):
    """One side's ends of the three pipes between starter and rank, as descriptors."""

    lifeline: int
    events: int
    output: int


class Settings(NamedTuple):
    """Settings of a rank, sent with its work."""

    rank: int
    world_size: int
    environment: dict[str, str]
    num_threads: int


class Failure(NamedTuple):
    """Why a rank did not return."""

    reason: str  # one line
    details: str = ""  # the traceback
    time: float = 0.0  # seconds on the system's monotonic clock
    distance: int = 0  # from the cause; see :func:`first_failure.distance`


def main() -> None:
    """Run a rank in a fresh interpreter: standard input is the lifeline, standard output events."""
    lines = Lines(os.dup(0), os.dup(1), os.dup(2))
    with open(lines.lifeline, "rb", buffering=0, closefd=False) as file:
        message = read_message(file)
    if message is None:
        sys.exit(1)  # the starter ended before it sent the work
    settings, payload = message
    sys.exit(run(lines, settings, lambda: unpack_work(payload)))


def run(
    lines: Lines,
    settings: Settings,
    get_work: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]],
) -> int:
    """Run the function of a rank, send its result or error, and return the exit status."""
    _redirect(lines.output)
    released = threading.Event()
    events = _Events(lines.events)
    _end_with_starter(lines.lifeline, released, events)
    os.environ.update(settings.environment)
    torch.set_num_threads(settings.num_threads)
    trace.start_if_asked(settings.rank)
    ending: tuple[str, Any]
    progress.send_to(lambda state: events.send("progress", state))
    try:
        function, args = get_work()
        result = fork.fix_openmp(_call)(function, settings.rank, settings.world_size, *args)
        ending = "result", _dump(result)
    except BaseException as error:
        ending = "failure", _describe(error)
    progress.send_to(None)
    with suppress(BrokenPipeError):  # the starter is gone; the lifeline's thread ends this process
        sys.stdout.flush()
        sys.stderr.flush()
        events.send(*ending)
    # Other ranks may still need this one, for example as the host of torch's rendezvous.
    released.wait()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    await_torch()
    return 0 if ending[0] == "result" else 1


def _call(function: Callable[..., Any], *args: Any) -> Any:
    global _worker
    _worker = threading.get_ident()
    try:
        return function(*args)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        return None


def _dump(result: Any) -> bytes:
    """Pickle; objects whose class is only defined in this process are pickled by value."""
    try:
        return pickle.dumps(result)
    except Exception:
        return cloudpickle.dumps(result)


# ---------------------------------------------------------------------------------- work
def pack_work(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add the state that a forked process would inherit to a function and its arguments."""
    # The source of notebook cells is in no file; tracebacks quote it from this cache.
    cells = {
        name: entry
        for name, entry in linecache.cache.items()
        if len(entry) == 4 and entry[1] is None
    }
    return function, args, random.get_state(), torch.get_rng_state(), cells


def unpack_work(payload: Payload) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Restore the starter's state; return the function and its arguments."""
    try:
        function, args, state, generator, cells = unpack(payload)
    finally:
        if not payload.name:
            os.close(payload.memory)
    linecache.cache.update(cells)
    random.set_state(state)
    torch.set_rng_state(generator)
    return function, args


def _describe(error: BaseException) -> Failure:
    trace = error.__traceback__
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename in _OUR_FILES:
        trace = trace.tb_next
    reason = "".join(traceback.format_exception_only(error)).strip()
    lost_peer = isinstance(error, getattr(torch.distributed, "DistError", ()))
    return Failure(
        reason,
        "".join(traceback.format_exception(type(error), error, trace)),
        time.monotonic(),
        first_failure.LOST_PEER if lost_peer else first_failure.distance(reason),
    )


# --------------------------------------------------------------------------------- pipes
def send_message(file: Any, value: Any) -> None:
    """Write a value to a pipe, as its length and its pickle."""
    content = pickle.dumps(value)
    file.write(struct.pack("<Q", len(content)) + content)


def read_message(file: Any) -> Any:
    """Read a value from a pipe; None at the end of file."""
    head = _read(file, 8)
    content = head and _read(file, struct.unpack("<Q", head)[0])
    return pickle.loads(content) if content else None


def _read(file: Any, size: int) -> bytes:
    parts = [b""]
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"" if size else b"".join(parts)


class _Events:
    """The rank's end of the pipe for events; forked children do not write to it."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def send(self, kind: str, value: Any) -> None:
        if os.getpid() == self._owner:
            with self._lock:
                send_message(self._file, (kind, value))
                self._file.flush()


def _redirect(output: int) -> None:
    """Redirect all output of this process, by Python and by C code, to one pipe, in order."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = os.fdopen(1, "w", 1, "utf8", "backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf8", "backslashreplace", closefd=False)
    faulthandler.enable(sys.stderr, all_threads=False)


def _end_with_starter(lifeline: int, released: threading.Event, events: _Events) -> None:
    """Watch the lifeline; at its end of file, kill this process and its children."""
    starter = os.getppid()
    poll = None
    if hasattr(select, "poll"):  # select() is limited to descriptors below 1024
        poll = select.poll()
        poll.register(lifeline, select.POLLIN)

    def watch() -> None:
        while True:
            # On Windows, read returns when the starter ends, the only one with the writing end.
            message = os.read(lifeline, 1) if poll is None or poll.poll(1000) else None
            if message == RELEASE:
                released.set()
            elif message == DUMP_STACK:
                events.send("stand", _stand())
            elif message == b"" or os.getppid() != starter:
                if hasattr(os, "killpg"):
                    os.killpg(os.getpgid(0), signal.SIGKILL)
                os._exit(1)

    threading.Thread(target=watch, name="gnnlab-lifeline", daemon=True).start()


def _stand() -> tuple[str, bool]:
    """Return the function's traceback without frames of gnnlab, and if it is in a rendezvous."""
    frame = sys._current_frames().get(_worker)
    stack = traceback.extract_stack(frame)
    start = 1 + max((i for i, f in enumerate(stack) if f.filename in _OUR_FILES), default=-1)
    return "".join(traceback.format_list(stack[start:])), is_in_rendezvous(frame)
