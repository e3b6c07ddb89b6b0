"""Reserved feature names and the words for types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["ALL", "EID", "ETYPE", "NID", "NTYPE", "ONE_ETYPE", "EdgeType", "describe", "is_all"]

EdgeType = tuple[str, str, str]
ONE_ETYPE = ("_N", "_E", "_N")  # of a graph with one node type and one edge type

NID = "_ID"
"""Feature that holds the original node IDs in a graph cut out of another."""
EID = "_ID"
"""Feature that holds the original edge IDs in a graph cut out of another."""
NTYPE = "_TYPE"
"""Feature that holds the node type ID in a graph made homogeneous."""
ETYPE = "_TYPE"
"""Feature that holds the edge type ID in a graph made homogeneous."""
ALL = "__ALL__"
"""Stands for all nodes or all edges."""


def is_all(value: Any) -> bool:
    """Whether an argument stands for all nodes or edges."""
    return value is None or (isinstance(value, str) and value == ALL)


def describe(names: Iterable[Any]) -> str:
    """List names for a message."""
    return ", ".join(repr(name) for name in names) or "none"
