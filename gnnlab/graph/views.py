"""The objects that ``g.ndata``, ``g.nodes`` and ``g.edges`` return."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from typing import Any

import torch

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.frame import Frame, as_tensor, no_feature_attribute
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import EdgeType, complete_etype, complete_ntype, describe


def frame_view(frames: Mapping[Any, Frame]) -> Frame | TypedFrames:
    """Return the features of one type, or of several together."""
    return next(iter(frames.values())) if len(frames) == 1 else TypedFrames(frames)


def two_sides(
    frames: dict[str, Frame], relations: Collection[EdgeType]
) -> tuple[dict[str, Frame], dict[str, Frame]]:
    """Features of the source and of the destination side.

    In a bipartite graph, where no type is at both ends of edges, the sides have types of their own;
    otherwise both have all of them. Types without edges count as sources.
    """
    targets = {etype[2] for etype in relations}
    if not relations or any(etype[0] in targets for etype in relations):
        return frames, frames
    sources = {ntype: frame for ntype, frame in frames.items() if ntype not in targets}
    return sources, {ntype: frame for ntype, frame in frames.items() if ntype in targets}


def by_side(sources: Mapping[str, Frame], targets: Mapping[str, Frame]) -> dict[str, Frame]:
    """Frames of a bipartite graph by names with a side, as in DGL: ``SRC/user``, ``DST/game``."""
    if sources is targets:
        return {}
    named = {f"SRC/{ntype}": frame for ntype, frame in sources.items()}
    return named | {f"DST/{ntype}": frame for ntype, frame in targets.items()}


class TypedFrames(MutableMapping[str, Any]):
    """Features of several types: name → {type: tensor}."""

    __slots__ = ("_frames",)

    def __init__(self, frames: Mapping[Any, Frame]) -> None:
        self._frames = frames

    def __getattr__(self, name: str) -> Any:
        raise no_feature_attribute(self, name)

    def __getitem__(self, name: str) -> dict[Any, torch.Tensor]:
        found = {kind: frame[name] for kind, frame in self._frames.items() if name in frame}
        if not found:
            raise NotFound(f"no type has a feature {name!r}; the features are: {describe(self)}")
        return found

    def __setitem__(self, name: str, values: Any) -> None:
        if not isinstance(values, Mapping):
            raise InvalidInput(
                f"the graph has several types; give feature {name!r} as {{type: tensor}} "
                f"with types of {describe(self._frames)}"
            )
        for kind, value in values.items():
            self._frame(kind)[name] = value

    def __delitem__(self, name: str) -> None:
        for kind in self[name]:
            del self._frames[kind][name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for frame in self._frames.values() for name in frame))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))

    def _frame(self, kind: Any) -> Frame:
        if kind in self._frames:
            return self._frames[kind]
        found = [known for known in self._frames if isinstance(known, tuple) and known[1] == kind]
        if len(found) != 1:
            raise NotFound(f"no type {kind!r}, or several; the types are {describe(self._frames)}")
        return self._frames[found[0]]


class Rows(MutableMapping[str, torch.Tensor]):
    """Some rows, ``ids`` (K,), of the features of a type; features that are read have K rows."""

    __slots__ = ("_frame", "_ids")

    def __init__(self, frame: Frame, ids: torch.Tensor) -> None:
        self._frame, self._ids = frame, ids

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._frame[name][self._ids]

    def __setitem__(self, name: str, value: Any) -> None:
        value = as_tensor(value)
        frame = self._frame
        column = frame[name] if name in frame else frame.initial(name, value)
        frame[name] = column.index_copy(0, self._ids, value.to(column.dtype))

    def __delitem__(self, name: str) -> None:
        raise NotFound(f"a feature cannot be deleted for some rows: del g.ndata[{name!r}]")

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame)

    def __len__(self) -> int:
        return len(self._frame)

    def __repr__(self) -> str:
        return repr(dict(self))


def _rows(frames: Mapping[Any, Any], ids: Any) -> Rows:
    """Return the rows of some IDs, which may be a slice, in a graph with one type."""
    if len(frames) != 1:
        raise NotFound(
            f"there is no type {ids!r}; there are {describe(frames)}. IDs alone are for graphs "
            "with one type: name the type first"
        )
    (frame,) = frames.values()
    if not isinstance(frame, Frame):
        raise InvalidInput("rows on other machines are read by feature: g.ndata[name][ids]")
    if isinstance(ids, slice):
        ids = range(*ids.indices(frame.num_rows))
    return Rows(frame, read_ids(ids, frame.num_rows, frame.what, frame.device).long())


def _is_type(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return key is None or all(isinstance(part, str) for part in parts)


class Space:
    """What ``g.nodes[ntype]`` and ``g.edges[etype]`` return; ``.data`` holds the features."""

    __slots__ = ("data",)

    def __init__(self, data: Frame | Rows) -> None:
        self.data = data


class NodeView:
    """``g.nodes``: call it for IDs, index it by node type, or by IDs, for features.

    In a block or a bipartite graph ``SRC/…`` and ``DST/…`` are types, too.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.nodes[[0, 2]].data["h"] = torch.tensor([5.0, 6.0])
    >>> g.ndata["h"], g.nodes[1:].data["h"]
    (tensor([5., 0., 6.]), tensor([0., 6.]))
    """

    __slots__ = ("_device", "_frames", "_idtype", "_sides")

    def __init__(
        self,
        frames: Mapping[str, Frame],
        idtype: torch.dtype,
        device: torch.device,
        sides: Callable[[], Mapping[str, Frame]] = dict,
    ) -> None:
        self._frames, self._idtype, self._device, self._sides = frames, idtype, device, sides

    def __call__(self, ntype: str | None = None) -> torch.Tensor:
        """Return the node IDs 0 … N−1 of a type, shape (N,)."""
        return torch.arange(self._frame(ntype).num_rows, dtype=self._idtype, device=self._device)

    def __getitem__(self, key: Any) -> Space:
        return Space(self._frame(key) if _is_type(key) else _rows(self._frames, key))

    def _frame(self, ntype: str | None) -> Frame:
        known = self._frames
        if isinstance(ntype, str) and ntype not in known and ntype in (sides := self._sides()):
            return sides[ntype]
        return known[complete_ntype(ntype, known, "this side of the graph")]


class EdgeView:
    """``g.edges``: call it for the ends of the edges, index it for features.

    The index is an edge type, or in a graph with one type IDs or (sources, destinations).
    """

    __slots__ = ("_graph",)

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __call__(
        self, form: str = "uv", order: str = "eid", etype: str | EdgeType | None = None
    ) -> Any:
        """Return sources, destinations and edge IDs; see :func:`gnnlab.graph.queries.all_edges`."""
        return self._graph.all_edges(form, order, etype)

    def __getitem__(self, key: Any) -> Space:
        frames = self._graph.edge_frames
        if _is_type(key):
            return Space(frames[complete_etype(key, frames)])
        if isinstance(key, tuple):
            if len(key) != 2:
                raise InvalidInput(
                    "g.edges[…] takes an edge type, IDs, or sources and destinations; found a "
                    f"tuple of {len(key)}"
                )
            key = self._graph.edge_ids(*key)
        return Space(_rows(frames, key))
