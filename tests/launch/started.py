"""A launcher in a process of its own, and what a test may do to its job."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers import _TOKEN, ROOT, _descendants, _segments, wait_until

START = 90  # seconds within which a job must run, on a busy computer
END = 30  # seconds within which everything is gone after a failure; five where nobody else computes


class Started:
    """A launcher that runs, and what can be done to its job."""

    def __init__(self, folder: Path, words: list[str], env: dict[str, str]) -> None:
        self.folder, self.token = folder, uuid.uuid4().hex
        self.listening: set[tuple[str, int]] = set()
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.output, self.errors = folder / "out.txt", folder / "err.txt"
        command = [sys.executable, "-m", "gnnlab.launch.launch", "--log_dir", f"{folder}/logs"]
        envs = ["--extra_envs", f"TEST_FOLDER={folder}", f"{_TOKEN}={self.token}"]
        own = {"PYTHONPATH": path, "TMPDIR": f"{folder}/tmp", **env, _TOKEN: self.token}
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self.process = subprocess.Popen(
                [*command, *envs, *words], env={**os.environ, **own}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip

    def wait_for(self, *names: str) -> int:
        """Wait until processes have begun; return the ID of the last one."""
        for name in names:
            file = self.folder / f"{name}.pid"
            self._wait_until(file.exists)
        return int(file.read_text())

    def wait_for_text(self, pattern: str) -> re.Match[str]:
        """Wait until the job has printed a text."""
        return self._wait_until(lambda: re.search(pattern, self.output.read_text()))

    def _wait_until(self, condition: Callable[[], Any]) -> Any:
        def look() -> Any:
            found = condition()
            assert found or self.process.poll() is None, self.said()
            return found

        return wait_until(self.said, look, START)

    def find(self, *words: str) -> list[psutil.Process]:
        """Processes of the job whose command holds all of these words, oldest first."""
        found = []
        for process in _descendants(self.token):
            with suppress(psutil.NoSuchProcess):
                if all(word in " ".join(process.cmdline()) for word in words):
                    found.append((process.create_time(), process.pid, process))
        return [process for *_, process in sorted(found)]

    def note_ports(self) -> None:
        """Look where the job listens: nobody may do so after its end."""
        for process in _descendants(self.token):
            with suppress(psutil.NoSuchProcess):
                found = process.net_connections("tcp")
                self.listening |= {tuple(c.laddr) for c in found if c.status == psutil.CONN_LISTEN}

    def end(self, seconds: float = END) -> tuple[int, str]:
        """Wait for the end; return exit status and errors. Nothing may be left."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {seconds} s:\n{self.said()}")
        self.check_nothing_left()
        return status, self.errors.read_text()

    def check_nothing_left(self, seconds: float = 5.0) -> None:
        """Within some seconds there are no processes, files in memory, other files and ports."""
        jobs = [path.name.rpartition("-")[2] for path in (self.folder / "logs").glob("*")]

        def left() -> dict[str, list[Any]]:
            found = {
                "processes": _descendants(self.token),
                "memory": [n for n in _segments() if any(m in n for m in (self.token, *jobs))],
                "files": list((self.folder / "tmp").iterdir()),
                "ports": list(filter(_is_open, self.listening)),
            }
            return {what: those for what, those in found.items() if those}

        try:
            wait_until("the end", lambda: not left(), seconds)
        except TimeoutError:
            pytest.fail(f"left behind: {left()}\n{self.said()}")

    def said(self) -> str:
        return self.output.read_text() + self.errors.read_text()


def _is_open(place: tuple[str, int]) -> bool:
    try:
        host, port = place[0].removeprefix("::ffff:"), place[1]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError:
        return True
    return False
