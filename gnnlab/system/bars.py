"""Progress bars: tqdm bars that appear after a second; ``TQDM_DISABLE=1`` turns all of them off."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any


def progress_bar(iterable: Iterable[Any] | None = None, show: bool = True, **options: Any) -> Any:
    """Return a tqdm bar, shown as a widget in a notebook and as text elsewhere.

    It draws nothing unless ``show``, with ``TQDM_DISABLE=1`` in the environment (tqdm's own bars in
    notebooks do not read that), within ``redirect_stdout(None)`` in a notebook, and in all ranks of
    a machine but the first. Options are those of tqdm; ``delay`` is 1 second by default.
    """
    from tqdm.auto import tqdm

    options.setdefault("delay", 1)
    hidden = is_kernel() and sys.stdout is None  # a kernel flushes it before it shows a widget
    rank = os.environ.get("LOCAL_RANK") or os.environ.get("RANK") or "0"  # as torchrun sets them
    if not show or hidden or rank != "0" or os.environ.get("TQDM_DISABLE"):
        options["disable"] = True
    return tqdm(iterable, **options)


def is_kernel() -> bool:
    """Return whether this process is the kernel of a notebook, or a fork of one."""
    kernelapp = sys.modules.get("ipykernel.kernelapp")
    return kernelapp is not None and bool(kernelapp.IPKernelApp.initialized())
