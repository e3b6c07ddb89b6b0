"""Shared fixtures, and the rule that a test may not skip itself quietly.

Everything passes without a GPU. With ``CI`` set, a skip counts as a failure unless its reason
is one of ``helpers.ALLOWED_SKIPS``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.helpers import ALLOWED_SKIPS, NO_GPU

# The first example may compile a kernel; how long one takes is no matter of correctness.
settings.register_profile("gnnlab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gnnlab")

# A shell ignores Ctrl-C for what it starts in the background, and all children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests download from themselves; a proxy would not find them.
for name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=NO_GPU))


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


@pytest.fixture
def torch_threads() -> Iterator[Callable[[int], None]]:
    """``torch_threads(n)`` sets the number of threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
