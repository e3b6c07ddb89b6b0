"""Shared fixtures, what runs in which order, and the rule that a test may not skip itself quietly.

Without a GPU, tests marked ``gpu`` run on a pretend device. With ``CI`` set, a skip counts as a
failure unless its reason is one of ``helpers.ALLOWED_SKIPS``. Tests marked ``thorough("reason")``
run in CI, with ``make test ALL=1``, and when they are named one by one.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing.util
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests import accelerator
from tests.helpers import ALLOWED_SKIPS, FRESH, ROOT, THOROUGH
from tests.progress import Progress

# The first example may compile a kernel; how long one takes is no matter of correctness.
settings.register_profile(
    "gnnlab",
    deadline=None,
    max_examples=100 if FRESH else 33 if THOROUGH else 10,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gnnlab")

# Where files take longest: they run first, so that no worker ends long after the others.
SLOW = (
    *("tests/site", "tests/notebooks", "notebooks", "tests/test_systems.py", "tests/examples"),
    *("tests/launch", "tests/tools", "tests/distributed", "tests/simulate", "tests/parallel"),
)

# Tests of these files go to any worker, one by one: a file takes minutes, its fixtures little.
SPREAD = (
    *("tests/launch/", "tests/simulate/test_against_jobs.py", "tests/distributed/test_job.py"),
    *("tests/parallel/", "tests/tools/test_cli.py", "tests/system/test_ending.py"),
    *("tests/test_systems.py", "tests/notebooks/test_on_device.py"),
)

# A shell ignores Ctrl-C for what it starts in the background, and all children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests write need not outlive a power cut; a disk takes milliseconds for each of many files.
os.fsync = lambda file: None  # type: ignore[assignment]

# Tests download from themselves; a proxy would not find them.
for name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)


class Leftovers:
    """A plugin: all processes of a run share a temporary folder, in which nothing of ours is left.

    Folders of tests that pytest keeps are in the usual place. Browsers may leave what they like.
    """

    OURS = ("gnnlab-", "tmp", "torchelastic_")
    NOT = "gnnlab-kernels-"  # compiled code, where it can be kept nowhere else
    GRACE = 20.0  # seconds in which processes that are about to end may remove their files

    def __init__(self) -> None:
        self._before = os.environ.get("TMPDIR")
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self._folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="gnnlab-")
        tempfile.tempdir = None
        self._left: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        gc.collect()  # folders go with their objects, which may refer to each other
        deadline = time.monotonic() + self.GRACE
        while (left := self._look()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self._left = left
        if left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _look(self) -> list[str]:
        names = [name for name in os.listdir(self._folder) if name.startswith(self.OURS)]
        names = [name for name in names if not name.startswith(self.NOT)]
        return [f"{name}: {sorted(_names(Path(self._folder, name)))[:9]}" for name in sorted(names)]

    def pytest_unconfigure(self) -> None:
        # After multiprocessing has removed its own folder from it, which has priority -100.
        remove, when = functools.partial(shutil.rmtree, ignore_errors=True), -200
        multiprocessing.util.Finalize(None, remove, (self._folder,), exitpriority=when)
        tempfile.tempdir = None
        os.environ.pop("TMPDIR")
        if self._before is not None:
            os.environ["TMPDIR"] = self._before
        for text in self._left:
            print(f"FAILED: left in the temporary folder: {text}", file=sys.stderr)


def _names(path: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(path)
    return []


class Doctests:
    """A plugin: what an example in a docstring leaves in temporary folders goes with it.

    A hook of this file alone would not be called for the modules of gnnlab.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if not isinstance(item, pytest.DoctestItem):
            return (yield)
        before = tempfile.tempdir
        with tempfile.TemporaryDirectory(prefix="gnnlab-doctest-") as tempfile.tempdir:
            try:
                return (yield)
            finally:
                tempfile.tempdir = before


class Spreading(LoadFileScheduling):
    """A file stays on one worker, but for those of SPREAD."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(SPREAD) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return Spreading(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Doctests())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Leftovers())
    if config.option.verbose == 0 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
    later = [item for item in items if item.get_closest_marker("thorough")]
    for item in later:
        if not all(mark.args for mark in item.iter_markers("thorough")):
            raise pytest.UsageError(f"{item.nodeid}: say why, as in thorough('repeats others')")
    if not THOROUGH and not any("::" in word for word in config.args):
        items[:] = [item for item in items if item not in set(later)]
        config.hook.pytest_deselected(items=later)
        if hasattr(config, "workeroutput"):
            config.workeroutput["later"] = len(later)
        _later[0] = len(later)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what the tests have in common, a tenth of their time."""
    gc.collect()
    gc.freeze()


_later = [0]  # tests that are left to a thorough run


def _rank(item: pytest.Item) -> int:
    place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    found = [rank for rank, start in enumerate(SLOW) if place.startswith(start)]
    return found[0] if found else len(SLOW)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _later[0] = max(_later[0], getattr(node, "workeroutput", {}).get("later", 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _later[0]:
        text = f"{_later[0]} more tests, and more examples of each property: make test ALL=1"
        terminalreporter.write_line(text)
    if torch.cuda.is_initialized():
        terminalreporter.write_line(f"on {torch.cuda.get_device_name()}, torch {torch.__version__}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    return _strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return _strict((yield))


def _strict(report: Any) -> Any:
    """Turn an unexpected skip into a failure where ``CI`` is set."""
    if not os.environ.get("CI") or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(allowed in reason for allowed in ALLOWED_SKIPS):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nA skip is a failure where CI is set (tests/helpers.py)."
    return report


@pytest.fixture(autouse=True)
def gpu_for_marked_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked ``gpu`` run on a pretend device where there is no GPU."""
    marked = request.node.get_closest_marker("gpu")
    with accelerator.plugged() if marked else nullcontext():
        yield


@pytest.fixture
def torch_threads() -> Iterator[Callable[[int], None]]:
    """``torch_threads(n)`` sets the number of threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
