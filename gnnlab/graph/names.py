"""Reserved feature names and the words for types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from gnnlab.errors import InvalidInput, NotFound

__all__ = [
    "ALL",
    "EID",
    "ETYPE",
    "NID",
    "NTYPE",
    "ONE_ETYPE",
    "EdgeType",
    "complete_etype",
    "complete_ntype",
    "describe",
    "is_all",
]

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


def complete_ntype(ntype: str | None, known: Collection[str], where: str = "the graph") -> str:
    """Check the name of a node type; None will do where there is one type."""
    if ntype in known:
        return ntype  # type: ignore[return-value]
    if ntype is not None:
        raise NotFound(f"no node type {ntype!r}; {where} has {describe(known)}")
    if len(known) == 1:
        return next(iter(known))
    raise InvalidInput(f"say which node type is meant (ntype=…): {describe(known)}")


def complete_etype(etype: str | EdgeType | None, known: Collection[EdgeType]) -> EdgeType:
    """Complete the name of an edge type to its triple; None will do where there is one type."""
    if etype is None:
        if len(known) == 1:
            return next(iter(known))
        raise InvalidInput(f"say which edge type is meant (etype=…): {describe(known)}")
    if isinstance(etype, tuple):
        found = [etype] if etype in known else []
    else:
        found = [each for each in known if each[1] == etype]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(
            f"edge type {etype!r} is ambiguous; use one of the triples {describe(found)}"
        )
    raise NotFound(f"no edge type {etype!r}; the graph has {describe(known)}")
