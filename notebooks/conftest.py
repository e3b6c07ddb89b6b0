"""What a tested lesson's kernel needs to leave nothing behind, and to print the same each time.

nbval kills kernels, and a killed process removes nothing: a kernel is asked to end by itself. And
progress bars come where something takes long, which on a busy computer may be anything.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests.lesson_kernels import forked


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """A notebook's kernel starts here and inherits the environment; other tests do not."""
    before = os.environ.get("TQDM_DISABLE")
    os.environ["TQDM_DISABLE"] = "1"
    try:
        with forked():
            return (yield)
    finally:
        if before is None:
            del os.environ["TQDM_DISABLE"]
        else:
            os.environ["TQDM_DISABLE"] = before


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the last cell of a notebook, ask its kernel to end; nbval then finds it gone."""
    book: Any = item.parent
    kernel = getattr(book, "kernel", None)
    if kernel is not None and (nextitem is None or nextitem.parent is not book):
        kernel.km.shutdown_wait_time = 60.0  # a busy computer: no SIGTERM while it removes folders
        kernel.km.shutdown_kernel()
