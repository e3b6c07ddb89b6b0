"""The errors that gnnlab raises.

Each message says what was found, what was expected and what to do next. Every class is also the
Python built-in that fits, so ``except ValueError`` and ``except gnnlab.DGLError`` both work.
"""

from __future__ import annotations

import os

__all__ = [
    "DGLError",
    "GNNLabError",
    "InvalidInput",
    "NoAttribute",
    "NotFound",
    "OutOfRange",
    "PartitionError",
    "cannot_read",
    "no_such_file",
]


class GNNLabError(Exception):
    """Root of all errors that gnnlab raises on purpose.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> try:
    ...     dgl.graph(([0, 1], [1]))
    ... except dgl.DGLError as error:
    ...     print(type(error).__name__)
    InvalidInput
    """


class InvalidInput(GNNLabError, ValueError):
    """An argument has the wrong value, shape, type or device."""


class NotFound(GNNLabError, KeyError):
    """A name (feature, node type, edge type, aggregator) does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NoAttribute(GNNLabError, AttributeError):
    """An object lacks an attribute that a similar object, such as a tensor, has."""


class OutOfRange(GNNLabError, IndexError):
    """A node ID or an edge ID lies outside the graph."""


class PartitionError(GNNLabError, ValueError):
    """The files of a partitioned graph are missing, damaged, foreign or cannot be written."""


def no_such_file(path: str | os.PathLike[str]) -> str:
    """Return the message for a path that does not exist, with a similar name that does.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gnnlab.errors import no_such_file
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "data").mkdir()
    >>> no_such_file(folder / "dta" / "g.json").replace(str(folder), "")
    'no such file or folder: /dta/g.json (did you mean /data?)'
    """
    hint = _meant(path)
    return f"no such file or folder: {os.fspath(path)}" + (f" ({hint})" if hint else "")


def cannot_read(path: str | os.PathLike[str], error: OSError) -> str:
    """Return the message for a file that cannot be read, with a similar name that exists.

    Examples
    --------
    >>> from gnnlab.errors import cannot_read
    >>> cannot_read("/proc/1/mem", PermissionError(13, "Permission denied"))
    '/proc/1/mem cannot be read (Permission denied)'
    """
    hint = _meant(path) if isinstance(error, FileNotFoundError) else ""
    return f"{os.fspath(path)} cannot be read ({error.strerror}{'; ' if hint else ''}{hint})"


def _meant(path: str | os.PathLike[str]) -> str:
    """Suggest a similar name for the first component of a path that does not exist."""
    import difflib

    missing = os.path.abspath(path)
    while not os.path.isdir(folder := os.path.dirname(missing)):
        missing = folder
    try:
        names = difflib.get_close_matches(os.path.basename(missing), os.listdir(folder), 1)
    except OSError:  # no permission to list the folder
        names = []
    return f"did you mean {os.path.join(folder, names[0])}?" if names else ""


DGLError = GNNLabError
