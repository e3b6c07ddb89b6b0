"""Trace events: what each process of a job did, when, and for how long.

Each process appends its events to a file of its own, unbuffered, as one line of JSON each, so the
events of a killed process are not lost. Events contain kinds of work, steps and sizes, never
features or keys. Before :func:`start` is called, a :func:`span` costs one test of a variable.

Loaders, clients and servers record ``sample`` and ``copy`` (a mini-batch is made, and moved to a
device), ``fetch`` (rows are read from or written to other machines), ``wait`` (for other trainers,
or for a mini-batch from another process or thread), ``serve`` (a server answers a request), and
``compute``: everything that your program does between two mini-batches. To record parts of that,
such as an all-reduce, write ``with trace.span("allreduce"): …``.

A GPU works later than the host asks it to. Once a process has used one, a span also gives an event
of the role "device" (unless its kind is ``fetch``, ``wait`` or ``serve``): from when the GPU began
with what the span gave to the current stream until it had finished. It is written when the GPU has
finished and the next span ends, or by :func:`stop`.

References
----------
"Trace Event Format", the file format of chrome://tracing and https://ui.perfetto.dev.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

from gnnlab.errors import InvalidInput, reading, writing
from gnnlab.system import accelerators

__all__ = [
    "KINDS",
    "Event",
    "is_on",
    "read",
    "record",
    "seconds",
    "span",
    "start",
    "start_if_asked",
    "steps",
    "stop",
    "waiting",
    "write_chrome",
]

KINDS = ("sample", "fetch", "copy", "compute", "allreduce", "wait", "serve")
_ON_HOST = ("fetch", "wait", "serve")  # no GPU works for these
_ROLES = ("trainer", "device", "sampler", "server")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Event:
    """A timed piece of work of one process.

    All processes of a machine use the same clock: seconds since 1970 in real runs, since the start
    of the run in simulated ones. ``info`` has numbers and text, such as ``rows`` and ``bytes``;
    ``lane`` names the track of the event where several threads or samplers run at the same time.
    """

    kind: str  #: one of :data:`KINDS`, or a name of your own
    start: float
    seconds: float  #: duration
    rank: int  #: rank of the trainer, also for its samplers; or number of the server
    role: str = "trainer"  #: "trainer", "sampler", "server"; or "device", for the work of a GPU
    machine: int = 0
    step: int | None = None  #: number of the mini-batch within its epoch
    info: dict[str, int | float | str] = field(default_factory=dict)


class _Writer:
    """Appends events to the file of this process."""

    def __init__(self, folder: Path, rank: int, role: str, machine: int, lane: str) -> None:
        self.folder, self.rank, self.role = folder, rank, role
        self.machine, self.lane = machine, lane
        self.pid = os.getpid()
        self.late: deque[tuple[_Clock, Any, Any, Event]] = deque()  # the device works on them
        self.offset = time.time() - time.perf_counter()
        name = f"machine{machine}-{role}-{rank}-{self.pid}.jsonl"
        self._file = open(folder / name, "ab", buffering=0)  # noqa: SIM115 (open until close)

    def write(self, event: Event) -> None:
        line = json.dumps(asdict(event), separators=(",", ":"), default=_refuse) + "\n"
        with suppress(ValueError):  # another thread has closed the file
            self._file.write(line.encode())

    def write_late(self, wait: bool = False) -> None:
        """Write the events of a device that it has finished."""
        with suppress(IndexError):  # none is left
            while True:
                clock, begin, end, event = self.late.popleft()
                if wait:
                    end.synchronize()
                elif not end.query():
                    return self.late.appendleft((clock, begin, end, event))
                at, spent = clock.origin.elapsed_time(begin) / 1e3, begin.elapsed_time(end) / 1e3
                start = clock.begin + self.offset + at
                self.write(replace(event, start=start, seconds=spent, role="device"))

    def close(self) -> None:
        try:
            if self.pid == os.getpid():
                self.write_late(wait=True)
        finally:
            self._file.close()


class _Clock:
    """A moment by the clocks of a device and of the host; making it waits for the device."""

    def __init__(self) -> None:
        self.origin = accelerators.mark()
        self.origin.synchronize()
        self.begin = time.perf_counter()


def _refuse(value: Any) -> Any:
    raise InvalidInput(
        f"events hold numbers and text; found {type(value).__name__}. Record sizes, not content"
    )


_writer: _Writer | None = None
_here = threading.local()  # .step: the step that this thread recorded last
_OFF: AbstractContextManager[None] = nullcontext()


def start(
    folder: str | os.PathLike[str],
    rank: int = 0,
    role: str = "trainer",
    machine: int = 0,
    lane: str = "",
) -> None:
    """Record the events of this process in a folder, which is created if it does not exist.

    Processes of a job may share the folder. Jobs of ``gnnlab launch`` and ranks of
    ``launch_processes`` call this themselves if the environment variable ``GNNLAB_TRACE`` is set.

    Parameters
    ----------
    rank, role, machine
        Identify this process; see :class:`Event`.
    lane : str
        Distinguishes processes of equal rank and role.

    Examples
    --------
    >>> import tempfile, gnnlab as dgl
    >>> folder = tempfile.mkdtemp()
    >>> dgl.trace.start(folder)
    >>> g, sampler = dgl.rand_graph(20, 50), dgl.dataloading.NeighborSampler([2])
    >>> for batch in dgl.dataloading.DataLoader(g, range(20), sampler, batch_size=10, prefetch=0):
    ...     pass
    >>> dgl.trace.stop()
    >>> [(event.kind, event.step) for event in dgl.trace.read(folder)]
    [('sample', 0), ('compute', 0), ('sample', 1), ('compute', 1)]
    """
    global _writer
    stop()
    path = Path(folder)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        _writer = _Writer(path, rank, role, machine, lane)


def start_if_asked(rank: int, role: str = "trainer", machine: int = 0, lane: str = "") -> None:
    """Record in the folder that the environment variable ``GNNLAB_TRACE`` names, if it is set.

    Variables such as ``$HOME`` are expanded. If events are being recorded already, do nothing.
    """
    folder = os.path.expandvars(os.environ.get("GNNLAB_TRACE", ""))
    if folder and _writer is None:
        start(folder, rank, role, machine, lane)


def stop() -> None:
    """Stop recording and close the file."""
    global _writer
    writer, _writer = _writer, None
    if writer is not None:
        writer.close()


def is_on() -> bool:
    """Whether events are recorded."""
    return _writer is not None


def span(kind: str, step: int | None = None, **info: int | float | str) -> Any:
    """Record the body of a ``with`` statement as one :class:`Event`.

    By default its step is the one that this thread recorded last.
    """
    return _OFF if _writer is None else _Span(kind, step, info)


class _Span:
    def __init__(self, kind: str, step: int | None, info: dict[str, Any]) -> None:
        self._kind, self._info = kind, info
        if step is not None:
            _here.step = step

    def __enter__(self) -> None:
        self._step = getattr(_here, "step", None)
        self._mark = None
        if self._kind not in _ON_HOST and accelerators.is_initialized():
            clocks = vars(_here).setdefault("clocks", {})  # by device
            self._mark = accelerators.mark()
            if self._mark.device not in clocks:
                clocks[self._mark.device] = _Clock()
                self._mark = accelerators.mark()
        self._begin = time.perf_counter()

    def __exit__(self, error: object, *_: object) -> None:
        event, writer = record(self._kind, self._begin, self._step, **self._info), _writer
        if self._mark is None or event is None or writer is None or error is not None:
            return
        end, device = accelerators.mark(), self._mark.device
        if end.device == device:
            writer.late.append((_here.clocks[device], self._mark, end, event))
        writer.write_late()


def record(
    kind: str, begin: float, step: int | None = None, **info: int | float | str
) -> Event | None:
    """Record an event that ends now, and return it; None if events are not recorded.

    It began at ``begin`` by ``time.perf_counter()``; see also :func:`span`.
    """
    global _writer
    writer, end = _writer, time.perf_counter()
    if writer is None:
        return None
    try:
        if writer.pid != os.getpid():  # a forked child, such as a worker of a loader
            lane = f"process {os.getpid()}"
            writer = _writer = _Writer(writer.folder, writer.rank, "sampler", writer.machine, lane)
        if threading.current_thread() is not threading.main_thread():
            info.setdefault("lane", threading.current_thread().name)
        elif writer.lane:
            info.setdefault("lane", writer.lane)
        at = begin + writer.offset, end - begin
        event = Event(kind, *at, writer.rank, writer.role, writer.machine, step, info)
        writer.write(event)
    except OSError as error:
        if _writer is writer:
            stop()
        warnings.warn(f"recording of events stopped: {error}", stacklevel=2)
        return None
    return event


# ------------------------------------------------------------------------- for loaders
def steps(batches: Iterator[_T], first: int = 0) -> Iterator[_T]:
    """Yield mini-batches; record the time between two of them as a step's ``compute``."""
    return batches if _writer is None else _steps(batches, first)


def _steps(batches: Iterator[_T], first: int) -> Iterator[_T]:
    before = getattr(_here, "step", None)
    try:
        for step in count(first):
            _here.step = step
            if not (one := list(islice(batches, 1))):
                return
            with span("compute", step):
                yield one.pop()  # keep no reference: the batch is freed when its user drops it
    finally:
        _here.step = before


def waiting(batches: Iterator[_T]) -> Iterator[_T]:
    """Yield mini-batches from another process or thread; record the ``wait`` for each."""
    return batches if _writer is None else _waiting(batches)


def _waiting(batches: Iterator[_T]) -> Iterator[_T]:
    begin = time.perf_counter()
    while one := list(islice(batches, 1)):
        record("wait", begin, getattr(_here, "step", None), place="batch")
        yield one.pop()
        begin = time.perf_counter()


# ----------------------------------------------------------------------------- reading
def read(folder: str | os.PathLike[str]) -> list[Event]:
    """Read the events of all processes in a folder, sorted by start.

    Clocks of machines may differ. An incomplete last line, of a killed process, is skipped.

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab import trace
    >>> folder = tempfile.mkdtemp()
    >>> trace.start(folder, rank=1)
    >>> with trace.span("copy", step=0, bytes=80):
    ...     pass
    >>> trace.stop()
    >>> [(event.kind, event.rank, event.step, event.info) for event in trace.read(folder)]
    [('copy', 1, 0, {'bytes': 80})]
    """
    with reading(folder, InvalidInput):
        os.listdir(folder)  # glob finds nothing where there is no folder
    files = sorted(Path(folder).glob("*.jsonl"))
    if not files:
        raise InvalidInput(
            f"{folder} holds no traces (*.jsonl); record them with gnnlab launch --trace DIR, "
            "or trace.start(folder)"
        )
    return sorted(chain(*map(_read_file, files)), key=lambda event: event.start)


def _read_file(file: Path) -> Iterator[Event]:
    lines = file.read_text("utf8", "replace").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            yield Event(**json.loads(line))
        except (ValueError, TypeError) as error:
            if number < len(lines) or line.endswith("\n"):
                raise InvalidInput(f"{file}:{number} is not an event of a trace: {error}") from None


def seconds(events: Iterable[Event]) -> dict[str, float]:
    """Sum up time by kind, over all processes and tracks of some events.

    The time of an event inside another one is counted only once.

    Examples
    --------
    >>> from gnnlab.trace import Event, seconds
    >>> seconds([Event("compute", 0.0, 5.0, rank=0), Event("allreduce", 3.0, 1.0, rank=0)])
    {'compute': 4.0, 'allreduce': 1.0}
    """
    found: dict[str, float] = defaultdict(float)
    around: dict[Any, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.start, -event.seconds)):
        found[event.kind] += event.seconds
        stack = around[track_of(event)]
        while stack and stack[-1].start + stack[-1].seconds <= event.start:
            stack.pop()
        if stack:
            found[stack[-1].kind] -= event.seconds
        stack.append(event)
    return dict(found)


def track_of(event: Event) -> tuple[int, int, str, int, str]:
    """Return the track of an event, a sort key; events of one track are nested or disjoint."""
    order = _ROLES.index(event.role) if event.role in _ROLES else len(_ROLES)
    return event.machine, order, event.role, event.rank, str(event.info.get("lane", ""))


def write_chrome(events: Iterable[Event], path: str | os.PathLike[str]) -> None:
    """Write events as a file for https://ui.perfetto.dev and chrome://tracing.

    Times are in microseconds from the first event. A machine is shown as a process, and a trainer,
    sampler or server as a thread of it.

    Examples
    --------
    >>> import json, tempfile
    >>> from gnnlab.trace import Event, write_chrome
    >>> path = tempfile.mkdtemp() + "/trace.json"
    >>> write_chrome([Event("sample", 7.0, 0.25, rank=1, step=3)], path)
    >>> json.load(open(path))["traceEvents"][-1]
    {'name': 'sample', 'ph': 'X', 'ts': 0.0, 'dur': 250000.0, 'pid': 0, 'tid': 0,
     'args': {'step': 3}}
    """
    events = list(events)
    zero = min((event.start for event in events), default=0.0)
    tids = {track: tid for tid, track in enumerate(sorted({track_of(e) for e in events}))}
    rows: list[dict[str, Any]] = []
    for machine in sorted({track[0] for track in tids}):
        rows.append(_name("process_name", machine, 0, f"machine {machine}"))
    for (machine, _, role, rank, lane), tid in tids.items():
        name = f"{role} {rank}" + (f", {lane}" if lane else "")
        rows.append(_name("thread_name", machine, tid, name))
    for event in events:
        args = dict(event.info) if event.step is None else {"step": event.step, **event.info}
        times = {"ts": (event.start - zero) * 1e6, "dur": event.seconds * 1e6}
        where = {"pid": event.machine, "tid": tids[track_of(event)], "args": args}
        rows.append({"name": event.kind, "ph": "X", **times, **where})
    content = json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"})
    Path(path).write_text(content, encoding="utf8")


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
