"""Threads for work that must not keep a process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def in_thread(work: Callable[..., Any], *args: Any, **options: Any) -> threading.Thread:
    """Call a function in a daemon thread.

    Examples
    --------
    >>> from gnnlab.system.threads import in_thread
    >>> in_thread(print, "done").join()
    done
    """
    thread = threading.Thread(target=work, args=args, kwargs=options, daemon=True)
    thread.start()
    return thread
