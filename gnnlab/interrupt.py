"""Ctrl-C in the command ``gnnlab``: one line instead of a traceback, also while torch is loading.

The signal handler is installed only if this process is the command, ``gnnlab …`` or
``python -m gnnlab…``. A program that imports gnnlab keeps its own handler.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["STATUS", "as_exception", "is_command"]

STATUS = 128 + signal.SIGINT


def _is_command() -> bool:
    name = getattr(sys, "argv", [""])[:1]
    if name == ["-m"]:  # Python is loading the packages above the module that it will run
        words = iter(sys.orig_argv[1:])
        option = next((word for word in words if word.startswith("-") and word.endswith("m")), "")
        return bool(option) and next(words, "").partition(".")[0] == "gnnlab"
    return bool(name) and os.path.basename(name[0]) == "gnnlab"


def _stop(*_: Any) -> None:
    # Some of the modules that are being imported would catch an exception.
    os.write(2, b"gnnlab: interrupted\n")
    os._exit(STATUS)


#: Whether this process is the command.
is_command = (
    _is_command()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if SIGINT is ignored
)
if is_command:
    signal.signal(signal.SIGINT, _stop)


@contextmanager
def as_exception() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, for code that must clean up.

    Examples
    --------
    >>> from gnnlab.interrupt import as_exception
    >>> with as_exception():
    ...     pass  # the work of the command
    """
    try:
        if is_command:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        if is_command:
            signal.signal(signal.SIGINT, _stop)
