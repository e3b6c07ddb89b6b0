"""Methods that DGL's graphs have and gnnlab's lack, as functions of a graph.

:func:`bind` makes them methods when the ring is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnnlab.graph.graph import Graph

__all__ = ["bind"]

_METHODS: dict[str, Callable[..., Any] | property] = {}


def bind() -> None:
    """Set the methods on :class:`gnnlab.Graph`, without replacing any."""
    for name, method in _METHODS.items():
        if not hasattr(Graph, name):
            setattr(Graph, name, method)
