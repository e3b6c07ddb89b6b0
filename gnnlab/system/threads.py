"""Threads for work that must not keep a process from ending, and the processors for threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def in_thread(work: Callable[..., Any], *args: Any, **options: Any) -> threading.Thread:
    """Call a function in a daemon thread."""
    thread = threading.Thread(target=work, args=args, kwargs=options, daemon=True)
    thread.start()
    return thread


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
