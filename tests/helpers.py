"""What tests share: fresh interpreters with a deadline, and data sets that may be absent.

A test that starts processes starts them here. A failure shows what the failing process wrote to
stderr; afterwards no descendant and no shared-memory segment may be left.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_GPU = "needs a CUDA device"
NO_DATA = "needs the data set"
ALLOWED_SKIPS = (NO_GPU, NO_DATA)

_TOKEN = "GNNLAB_TEST_TOKEN"
# Ports that no system hands out by itself; each worker of pytest-xdist has some of its own.
_NUM_PORTS = 2_500
_FIRST_PORT = 10_000 + _NUM_PORTS * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8)
_turns = itertools.count(int.from_bytes(os.urandom(2), "big"))
_SHARED_MEMORY = Path("/dev/shm")
_SCRATCH = "gnnlab-scratch-"


def run_script(
    source: str | Path,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> str:
    """Run a script in a fresh interpreter and return what it printed; fail with its stderr."""
    return run_processes(source, [dict(env or {})], args, timeout)[0]


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
    place = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=place)


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
    source: str | Path, environments: list[dict[str, str]], args: Sequence[str], timeout: float
) -> list[str]:
    """Run a script once per environment, at the same time; return what each printed."""
    token, segments = uuid.uuid4().hex, _segments()
    with tempfile.TemporaryDirectory(prefix="gnnlab-test-") as name:
        folder = Path(name)
        script = source if isinstance(source, Path) else folder / "script.py"
        if isinstance(source, str):
            script.write_text(textwrap.dedent(source), encoding="utf8")
        processes = [
            _start(script, args, {**env, _TOKEN: token}, folder / str(rank))
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


def _start(
    script: Path, args: Sequence[str], env: dict[str, str], log: Path
) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Files, not pipes: a grandchild that outlives the process would keep a pipe open for ever.
    with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
        return subprocess.Popen(
            [sys.executable, str(script), *args],
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **env},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def _wait(
    processes: list[subprocess.Popen[bytes]], deadline: float, timeout: float
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
    """
    deadline = time.monotonic() + 5
    suspects: set[str] | None = None
    while True:
        alive = [p.pid for p in _descendants(token)]
        there = {n for n in _segments() - segments if _counts(n, jobs)}
        if alive or suspects is None:
            suspects = there
        leaked = _orphans(suspects & there)  # what comes later is of tests beside this one
        if not alive and not leaked:
            return None
        if time.monotonic() > deadline:
            return 0, f"left behind: processes {alive}, shared memory {sorted(leaked)}"
        time.sleep(0.05)


def _counts(name: str, jobs: Sequence[str] | None) -> bool:
    return jobs is None or not name.startswith("gnnlab-") or any(job in name for job in jobs)


def _segments() -> set[str]:
    if not _SHARED_MEMORY.is_dir():
        return set()
    return {p.name for p in _SHARED_MEMORY.iterdir() if not p.name.startswith(_SCRATCH)}


def _orphans(names: set[str]) -> set[str]:
    """Segments that no running process maps (another test's are mapped by its processes)."""
    if not names:
        return names
    mapped = "".join(_maps(p.pid) for p in psutil.process_iter())
    return {n for n in names if f"{_SHARED_MEMORY}/{n}\n" not in mapped}


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
