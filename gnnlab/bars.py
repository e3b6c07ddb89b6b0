"""Progress bars: tqdm's, which come after a second and can be turned off for all of a process."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

__all__ = ["progress_bar"]


def progress_bar(iterable: Iterable[Any] | None = None, show: bool = True, **options: Any) -> Any:
    """Make a bar of tqdm, drawn as a widget in a notebook and as text elsewhere.

    Parameters
    ----------
    iterable
        What the bar counts; None if the caller counts by ``update``.
    show
        False makes a bar that draws nothing, as does ``TQDM_DISABLE=1`` in the environment. That
        variable is tqdm's, but tqdm's bars in notebooks do not read it.
    options
        What tqdm takes. ``delay`` is 1 second unless said otherwise: short work gets no bar.

    Returns
    -------
    tqdm.tqdm

    Examples
    --------
    >>> sum(progress_bar(range(4), desc="adding"))
    6
    """
    from tqdm.auto import tqdm

    options.setdefault("delay", 1)
    if not show or os.environ.get("TQDM_DISABLE"):
        options["disable"] = True
    return tqdm(iterable, **options)
