"""The errors that gnnlab raises.

Each message says what was found, what was expected and what to do next. Every class is also the
Python built-in that fits, so ``except ValueError`` and ``except gnnlab.DGLError`` both work.
"""

from __future__ import annotations

__all__ = [
    "DGLError",
    "GNNLabError",
    "InvalidInput",
    "NotFound",
    "OutOfRange",
    "PartitionError",
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


class OutOfRange(GNNLabError, IndexError):
    """A node ID or an edge ID lies outside the graph."""


class PartitionError(GNNLabError, ValueError):
    """The files of a partitioned graph are missing, damaged, foreign or cannot be written."""


DGLError = GNNLabError
