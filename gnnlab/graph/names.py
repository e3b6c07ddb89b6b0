"""Reserved feature names, and checks and messages for names of types."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

from gnnlab.errors import InvalidInput, NotFound

EdgeType = tuple[str, str, str]
_WIDTH = 100  # columns of a repr
_FEW = 3  # items that always stand on one line, as in DGL
_SHOWN = 8  # items that a repr lists when they do not fit on one line

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


_UNSAFE = {"Cc", "Cs", "Zl", "Zp"}  # control, half of a pair, separators of lines
_LONGEST = 100  # bytes: with what is put around a name, below the 255 of a file's name


def check_name(name: Any, what: str = "graph name") -> str:
    """Return a name that becomes part of file names, or raise InvalidInput.

    Safe are letters of any script, digits, ``_ - .``, spaces and so on.
    """
    problem = ""
    if not isinstance(name, str):
        problem = f"is a {type(name).__name__}"
    elif not name:
        problem = "is empty"
    elif name.startswith("."):
        problem = "starts with a dot"
    elif bad := [c for c in name if c in "/\\" or unicodedata.category(c) in _UNSAFE]:
        problem = f"holds {bad[0]!r}"
    elif (size := len(name.encode())) > _LONGEST:
        problem = f"takes {size} bytes in UTF-8"
    if problem:
        raise InvalidInput(
            f"{what} {name!r} {problem}; it becomes part of file names: use 1 to {_LONGEST} bytes "
            "of letters, digits, '_', '-', '.' and the like, with no '/', no backslash and no "
            "control character, and not starting with a dot"
        )
    return name


def is_all(value: Any) -> bool:
    """Whether an argument stands for all nodes or edges."""
    return value is None or (isinstance(value, str) and value == ALL)


def describe(names: Iterable[Any]) -> str:
    """List names for a message."""
    return ", ".join(repr(name) for name in names) or "none"


def listing(items: Iterable[str], indent: int, brackets: str = "{}") -> str:
    """Write items in brackets for a ``repr``: on one line if few or short, else one per line.

    The opening bracket stands in column ``indent``.
    """
    items = list(items)
    line = ", ".join(items)
    if len(items) > _FEW and indent + len(line) + 2 > _WIDTH:
        shown = items[:_SHOWN] if len(items) > _SHOWN + 1 else items
        if len(shown) < len(items):
            shown.append(f"… and {len(items) - len(shown)} more")
        line = f",\n{' ' * (indent + 1)}".join(shown)
    return f"{brackets[0]}{line}{brackets[1]}"


def complete_ntype(ntype: str | None, known: Collection[str], where: str = "the graph") -> str:
    """Check the name of a node type; None is allowed if there is only one."""
    if isinstance(ntype, str) and ntype in known:
        return ntype
    if ntype is not None:
        raise NotFound(
            f"no node type {ntype!r}; {where} has {describe(known)}{_hint(ntype, known)}"
        )
    if len(known) == 1:
        return next(iter(known))
    how = "by ntype=… or a dict by node type, whichever the function takes"
    raise InvalidInput(f"say which node type is meant ({how}): {describe(known)}")


def complete_etype(etype: str | EdgeType | None, known: Collection[EdgeType]) -> EdgeType:
    """Complete an edge type name to its triple; None is allowed if there is only one type."""
    if etype is None:
        if len(known) == 1:
            return next(iter(known))
        how = "by etype=…, g[etype] or a dict by edge type, whichever the function takes"
        raise InvalidInput(f"say which edge type is meant ({how}): {describe(known)}")
    if isinstance(etype, tuple) and all(isinstance(part, str) for part in etype):
        found = [etype] if etype in known else []
    else:
        found = [each for each in known if each[1] == etype]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(
            f"edge type {etype!r} is ambiguous; use one of the triples {describe(found)}"
        )
    hint = _hint(etype, known if isinstance(etype, tuple) else {each[1] for each in known})
    if isinstance(etype, int):
        hint = "; was one graph or block given where a list of them is expected?"
    raise NotFound(f"no edge type {etype!r}; the graph has {describe(known)}{hint}")


def _hint(found: Any, known: Iterable[Any]) -> str:
    """Suggest a similar existing name, for an error."""
    import difflib

    names = {str(name): name for name in known}
    close = difflib.get_close_matches(str(found), names, 1)
    return f". Did you mean {names[close[0]]!r}?" if close else ""
