"""What tests share: processes with a deadline, and data sets that may be absent.

A test that starts processes starts them here. A failure shows what the failing process wrote to
stderr; afterwards no descendant and no shared-memory segment may be left.

Most of the time of such a test would be spent on importing torch. Scripts are therefore run by
forks of a process that has done so (``tests/nursery.py``), and by fresh interpreters with
``make test ALL=1`` or where ``fresh=True`` asks for one: what is tested may be the import itself,
memory or OpenMP.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings

from tests.nursery import EARLY, IS_POSSIBLE, PLUG, TOKEN, Child, Nursery

ROOT = Path(__file__).resolve().parents[1]
HAS_GPU = "is about the pretend device; a GPU is here"
NO_DATA = "needs the data set"
NO_INDEX = "no package index can be reached"
NO_TRITON = "Triton is not installed; make test installs it on Linux (x86-64) where CI is set"
NO_PYARROW = "pyarrow, which reads Parquet, is not installed"
NO_KNOBS = "make test-knobs runs the lessons with other settings"
ALLOWED_SKIPS = (HAS_GPU, NO_DATA, NO_INDEX, NO_TRITON, NO_PYARROW, NO_KNOBS)
# Everything, at length: in CI, and with `make test ALL=1`, which also starts fresh interpreters.
FRESH = bool(os.environ.get("GNNLAB_TEST_ALL"))
THOROUGH = bool(os.environ.get("CI")) or FRESH

_TOKEN = TOKEN
# Ports that no system hands out by itself; each worker of pytest-xdist has some of its own.
_NUM_PORTS = 2_500
_FIRST_PORT = 10_000 + _NUM_PORTS * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8)
_turns = itertools.count(int.from_bytes(os.urandom(2), "big"))
SHARED_MEMORY = Path("/dev/shm")
_SCRATCH = "gnnlab-scratch-"
GRACE = 5.0  # seconds in which what a process has started may end after it


def run_script(
    source: str | Path,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    fresh: bool = False,
) -> str:
    """Run a script in a process and return what it printed; fail with its stderr."""
    return run_processes(source, [dict(env or {})], args, timeout, fresh)[0]


def run_ranks(
    source: str | Path,
    world_size: int,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> list[str]:
    """Run a script once per rank, as torchrun would; return what each printed.

    Each process finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its
    environment, so ``torch.distributed.init_process_group("gloo")`` needs no arguments.
    """
    common = {
        **(env or {}),
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    ranks = [{**common, "RANK": str(r), "LOCAL_RANK": str(r)} for r in range(world_size)]
    return run_processes(source, ranks, args, timeout)


def examples(number: int, parent: settings | None = None) -> settings:
    """Settings of hypothesis with so many examples at length, a third in CI, and a tenth else."""
    share = 1 if FRESH else 3 if THOROUGH else 10
    return settings(parent, max_examples=max(10, number // share))


def computes_lstm_in_bfloat16() -> bool:
    """Whether torch has an LSTM of bfloat16 for this processor; for some it has none."""
    import torch

    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(1, 1)(torch.ones(1, 1))
    except RuntimeError:
        return False
    return True


def let_go(caught: pytest.ExceptionInfo[BaseException]) -> None:
    """Free what the frames of an error hold, the iteration of a loader with workers among it.

    Where the garbage collector finds it later, in some other test, torch waits 5 s for each worker.
    """
    traceback.clear_frames(caught.tb)


def wait_until(what: str | Callable[[], str], is_so: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the first true result of a function; raise TimeoutError if it comes too late."""
    deadline = time.monotonic() + seconds
    while not (found := is_so()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what if isinstance(what, str) else what()}: not in {seconds:g} s")
        time.sleep(0.02)
    return found


def free_port() -> int:
    """Return a TCP port that is free on all addresses, and that no other test gets meanwhile.

    On a busy computer it takes half a minute until the process for which it is listens there.
    """
    for turn in itertools.islice(_turns, _NUM_PORTS):
        port = _FIRST_PORT + turn % _NUM_PORTS
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("", port))
            return port
    raise OSError(f"no port is free from {_FIRST_PORT} to {_FIRST_PORT + _NUM_PORTS - 1}")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder in memory where there is one: for tests with very many files."""
    place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=place)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond some bytes: "File too large", as on a full disk."""
    resource = pytest.importorskip("resource", reason="this system has no limit on a file's size")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def save_as_windows(*paths: Path) -> None:
    """Save text files as editors of Windows may: with a byte order mark, lines end in CR LF."""
    for path in paths:
        text = path.read_bytes().replace(b"\n", b"\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + text)


def shared_data(name: str) -> Path:
    """Return a data set's folder, or skip the test where there is none.

    Looked for in ``$GNNLAB_TEST_DATA``, else in ``shared/data`` beside the repository.
    """
    base = os.environ.get("GNNLAB_TEST_DATA") or ROOT.parent / "shared" / "data"
    folder = Path(base) / name
    if not folder.is_dir():
        pytest.skip(f"{NO_DATA} {name}; set GNNLAB_TEST_DATA to the folder that holds it")
    return folder


def run_processes(
    source: str | Path,
    environments: list[dict[str, str]],
    args: Sequence[str],
    timeout: float,
    fresh: bool = False,
) -> list[str]:
    """Run a script once per environment, at the same time; return what each printed."""
    token, segments = uuid.uuid4().hex, _segments()
    with tempfile.TemporaryDirectory(prefix="gnnlab-test-") as name:
        folder = Path(name)
        script = source if isinstance(source, Path) else folder / "script.py"
        if isinstance(source, str):
            script.write_text(textwrap.dedent(source), encoding="utf8")
        processes = [
            start_script(script, args, {**env, _TOKEN: token}, folder / str(rank), fresh)
            for rank, env in enumerate(environments)
        ]
        try:
            complaint = _wait(processes, time.monotonic() + timeout, timeout)
            if complaint is None:
                jobs = [env["GNNLAB_JOB"] for env in environments if "GNNLAB_JOB" in env]
                complaint = _left_over(token, segments, jobs)
        finally:
            _end(_descendants(token))
        outputs = [(folder / f"{rank}.out").read_text("utf8") for rank in range(len(processes))]
        errors = [(folder / f"{rank}.err").read_text("utf8") for rank in range(len(processes))]
    if complaint is not None:
        rank, what = complaint
        pytest.fail(f"{what}\n{outputs[rank][-2000:]}{errors[rank][-6000:]}", pytrace=False)
    return outputs


def start_script(
    script: Path, args: Sequence[str], env: Mapping[str, str], log: Path, fresh: bool = False
) -> subprocess.Popen[bytes] | Child:
    """Start a script that writes to ``{log}.out`` and ``{log}.err``; the caller looks after it."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    fresh = fresh or (FRESH and PLUG not in env) or not IS_POSSIBLE
    fresh = fresh or any(name.startswith(EARLY) for name in env)
    words = [str(script), *args]
    env = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **env}
    # Files, not pipes: a grandchild that outlives the process would keep a pipe open for ever.
    with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
        if not fresh:
            return _nursery().start(words, env, out.fileno(), err.fileno())
        return subprocess.Popen(
            [sys.executable, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


@functools.cache
def _nursery() -> Nursery:
    return Nursery()


def _wait(
    processes: Sequence[subprocess.Popen[bytes] | Child], deadline: float, timeout: float
) -> tuple[int, str] | None:
    """Return the rank that failed first and how, or None when all ended well."""
    while True:
        codes = [process.poll() for process in processes]
        for rank, code in enumerate(codes):
            if code not in (None, 0):
                return rank, f"process {rank} of {len(codes)} ended with status {code}:"
        if None not in codes:
            return None
        if time.monotonic() > deadline:
            return codes.index(None), f"process {codes.index(None)} still ran after {timeout:g} s:"
        time.sleep(0.01)


def _left_over(
    token: str, segments: set[str], jobs: Sequence[str] | None = None
) -> tuple[int, str] | None:
    """Say what is still there some seconds after the processes ended.

    Memory of distributed jobs counts when it is of one of ``jobs``: tests beside this one run jobs
    as well, whose files stay for a moment after their processes. By default all of it counts.
    Semaphores count when the nursery has named them; nobody can tell whose the others are.
    """
    deadline = time.monotonic() + GRACE
    suspects: set[str] | None = None
    while True:
        alive = [p.pid for p in _descendants(token)]
        there = {n for n in _segments() - segments if _counts(n, token, jobs)}
        if alive or suspects is None:
            suspects = there
        leaked = _orphans(suspects & there)  # what comes later is of tests beside this one
        if not alive and not leaked:
            return None
        if time.monotonic() > deadline:
            return 0, f"left behind: processes {alive}, shared memory {sorted(leaked)}"
        time.sleep(0.05)


def _counts(name: str, token: str, jobs: Sequence[str] | None) -> bool:
    if name.startswith("sem."):
        return token in name
    return jobs is None or not name.startswith("gnnlab-") or any(job in name for job in jobs)


def _segments() -> set[str]:
    if not SHARED_MEMORY.is_dir():
        return set()
    return {p.name for p in SHARED_MEMORY.iterdir() if _is_ours(p)}


def _is_ours(path: Path) -> bool:
    """Whether a test of this user may have made it; who maps another user's, nobody tells us."""
    with suppress(FileNotFoundError):
        return path.stat().st_uid == os.getuid() and not path.name.startswith(_SCRATCH)
    return False


def _orphans(names: set[str]) -> set[str]:
    """Segments that no running process maps (another test's are mapped by its processes)."""
    if not names:
        return names
    # By number: the name of a semaphore is a link to a file that was mapped under another name.
    lines = "".join(_maps(p.pid) for p in psutil.process_iter()).splitlines()
    mapped = {int(line.split()[4]) for line in lines if f" {SHARED_MEMORY}/" in line}
    numbers = {name: _number(SHARED_MEMORY / name) for name in names}
    return {name for name, number in numbers.items() if number and number not in mapped}


def _number(file: Path) -> int:
    """Return the number of a file in its file system; 0 when it is gone."""
    with suppress(FileNotFoundError):
        return file.stat().st_ino
    return 0


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


def _descendants(token: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter() if _has_token(p, token)]


def _has_token(process: psutil.Process, token: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_TOKEN) == token
    except (psutil.Error, OSError):
        return False


def _end(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
            process.wait(5)
        except psutil.Error:
            continue
