"""A line that says how far the tests are and which of them run, in the place of dots.

A new line comes every half minute, and with each failure. ``-v`` and ``-q`` show pytest's lines.
"""

from __future__ import annotations

import time

import pytest

EVERY = 30.0  # seconds between two lines


class Progress:
    """A plugin of pytest, in the process that prints."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: dict[str, None] = {}  # in the order in which they began
        self._done = self._failed = 0
        self._start = self._next = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._screen = self._config.pluginmanager.get_plugin("terminalreporter")
        self._screen.showfspath = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for what has passed or failed; other letters are rare."""
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            return "passed", "", ""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        return ("skipped", "", "") if report.skipped and not hasattr(report, "wasxfail") else None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None
        self._write()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._screen.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._done += 1
        if self._done == self._session.testscollected:
            self._next = 0.0
            self._write()

    def _write(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        share = 100 * self._done // max(1, self._session.testscollected)
        minutes, seconds = divmod(int(now - self._start), 60)
        files = dict.fromkeys(nodeid.partition("::")[0] for nodeid in self._running)
        failed = f" ({self._failed} failed)" if self._failed else ""
        self._screen.write_line(f"[{share:3d}%] {minutes}:{seconds:02d} {', '.join(files)}{failed}")
        self._screen.flush()  # a file or a pipe would hold it back
