"""Keep every system alive in a process of its own and give them the same task in turn.

The protocol: a system is started with ``SIZE THREADS serve``, prints ``READY``, then reads one
task a line and answers each with one JSON object on a line (``ms``, ``s`` or ``total_s``; ``rss``
and ``peak`` in MB; ``error`` where it failed) until it reads ``quit``. Other lines are ignored.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.table import OURS

ROOT = Path(__file__).resolve().parents[1]


class System:
    """One library in one process, answering tasks.

    Parameters
    ----------
    name : str
    command : sequence of str
        Starts the process; it must print ``READY``.
    folder : Path
        Working folder of the process.
    env : dict of str to str
        Added to this process's environment.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, env: dict[str, str]
    ) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, task: str) -> dict:
        """Run one task and return what the system answered, with ``sys`` and ``task`` set."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(task + "\n")
            self._process.stdin.flush()
            line = self._next(lambda text: text.startswith("{"))
            answer = json.loads(line) if line else {"error": f"process ended: {self.complaint()}"}
        except BrokenPipeError:
            answer = {"error": f"process ended: {self.complaint()}"}
        return {**answer, "sys": self.name, "task": task}

    def wait_ready(self) -> None:
        """Return once the system has said READY; RuntimeError with its last words if it ends."""
        if not self._next(lambda text: text.strip() == "READY"):
            raise RuntimeError(f"{self.name} ended before it was ready:\n{self.complaint()}")

    def complaint(self) -> str:
        """Return the end of what the process wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read()[-2000:].strip()

    def _next(self, wanted: Callable[[str], bool]) -> str:
        assert self._process.stdout is not None
        return next((line for line in self._process.stdout if wanted(line)), "")

    def __enter__(self) -> System:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._process.poll() is None and kind is None:
                self._process.communicate("quit\n", timeout=30)
        except (subprocess.TimeoutExpired, OSError):
            pass
        finally:
            self._process.kill()
            self._process.wait()
            self._errors.close()


def limits(threads: int) -> dict[str, str]:
    """Environment that holds every numerical library to a number of threads."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def ourselves(size: str, threads: int, data: Path) -> System:
    """Start gnnlab as a system, on the graph in a folder."""
    command = [sys.executable, "-m", "benchmarks", "serve", size, str(threads), "--data", str(data)]
    return System(OURS, command, ROOT, limits(threads))


def peers_in(folder: Path, only: Sequence[str] = ()) -> list[str]:
    """Return the systems a folder holds: those with ``NAME/bin/python`` and ``bench_NAME.py``."""
    scripts = sorted(folder.glob("bench_*.py"))
    found = [p.stem.removeprefix("bench_") for p in scripts]
    found = [name for name in found if (folder / name / "bin" / "python").exists()]
    missing = set(only) - set(found)
    if missing:
        raise SystemExit(
            f"{folder} has no {', '.join(sorted(missing))}: expected NAME/bin/python and "
            f"bench_NAME.py; it has {', '.join(found) or 'none'}."
        )
    return [name for name in found if not only or name in only]


def peer(name: str, folder: Path, size: str, threads: int) -> System:
    """Start another library's script as a system."""
    python, script = folder / name / "bin" / "python", folder / f"bench_{name}.py"
    command = [str(python), str(script), size, str(threads), "serve"]
    return System(name, command, folder, {**limits(threads), "BENCH_DIR": str(folder)})


def of_molecules(name: str, python: Path, threads: int) -> System:
    """Start DGL, or gnnlab in its place, on the tasks ``small``; they need no graph."""
    runs = ["-m", "gnnlab.as_dgl"] if name == OURS else []
    command = [str(python), *runs, str(ROOT / "benchmarks" / "molecules.py")]
    return System(name, command, ROOT, {**limits(threads), "DGLBACKEND": "pytorch"})


def interleave(
    systems: Sequence[System],
    tasks: Iterable[str],
    rounds: int,
    translate: Callable[[str, str], str | None],
    report: Callable[[dict], None] = lambda result: None,
) -> list[dict]:
    """Give each task to each system in turn, round after round.

    Parameters
    ----------
    systems : sequence of System
    tasks : iterable of str
        In gnnlab's words.
    rounds : int
    translate : callable
        ``(system, task)`` -> the task in that system's words, or None where it has none.
    report : callable
        Called with each result as it comes.

    Returns
    -------
    list of dict
        All results; ``task`` is in gnnlab's words whoever answered.
    """
    results = []
    for task in tasks:
        for round_ in range(rounds):
            for system in systems:
                words = translate(system.name, task)
                if words is None:
                    continue
                results.append({**system.ask(words), "task": task, "asked": words, "round": round_})
                report(results[-1])
    return results
