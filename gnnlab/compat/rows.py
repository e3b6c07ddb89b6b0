"""Features of some nodes or edges: ``g.nodes[[0, 2]].data["h"]``, to be read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch

from gnnlab.errors import NotFound
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.ids import read_ids
from gnnlab.graph.queries import edge_ids
from gnnlab.graph.views import EdgeView, Space

__all__ = ["Rows", "rows_view"]


class Rows(MutableMapping[str, torch.Tensor]):
    """Some rows, ``ids`` (K,), of the features of a type; features that are read have K rows."""

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


def rows_view(getitem: Callable[[Any, Any], Space]) -> Callable[[Any, Any], Space]:
    """Return ``__getitem__`` of a view that takes IDs as well as a type."""

    def wider(view: Any, key: Any) -> Space:
        if key is None or isinstance(key, str) or (isinstance(key, tuple) and _is_type(key)):
            return getitem(view, key)
        frame = _only(view)
        if isinstance(key, slice):
            key = range(*key.indices(frame.num_rows))
        elif isinstance(view, EdgeView) and isinstance(key, tuple):
            key = edge_ids(view._graph, *key)  # type: ignore[arg-type]
        return Space(Rows(frame, read_ids(key, frame.num_rows, frame.what, frame.device).long()))  # type: ignore[arg-type]

    return wider


def _is_type(key: tuple[Any, ...]) -> bool:
    return all(isinstance(part, str) for part in key)


def _only(view: Any) -> Frame:
    frames = view._graph.edge_frames if isinstance(view, EdgeView) else view._frames
    if len(frames) > 1:
        raise NotFound("name the type first: IDs alone are for graphs with one type")
    return next(iter(frames.values()))
