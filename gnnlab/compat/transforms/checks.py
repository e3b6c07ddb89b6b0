"""Checks of what transforms take: names of features, and IDs of single nodes."""

from __future__ import annotations

from collections.abc import Iterable

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import Frame
from gnnlab.graph.ids import read_ids


def frames_having(frames: Iterable[Frame], name: str, what: str, who: str) -> list[Frame]:
    """Return the frames that have a feature; raise InvalidInput if none has."""
    having = [frame for frame in frames if name in frame]
    if not having:
        raise InvalidInput(f"{who}: the graph has no {what} feature {name!r}")
    return having


def one_node(node: int, count: int, name: str) -> int:
    """Return the ID of one node; raise InvalidInput for none or several."""
    ids = read_ids(node, count, "node")
    if len(ids) != 1:
        raise InvalidInput(f"{name} is one node; found {len(ids)} IDs")
    return int(ids[0])
