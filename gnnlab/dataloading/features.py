"""Features follow the IDs: what a loader puts on the graphs of a mini-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from gnnlab.graph.block import Block
from gnnlab.graph.frame import Deferred, Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID

__all__ = ["attach_features", "fetch_ahead"]


def graphs_in(batch: Any) -> Iterator[Graph]:
    """All graphs and blocks of a mini-batch, however it is nested."""
    if isinstance(batch, Graph):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from graphs_in(part)
    elif isinstance(batch, list | tuple):
        for part in batch:
            yield from graphs_in(part)


def attach_features(graph: Graph, batch: Any) -> None:
    """Give each graph of a mini-batch the features of its nodes and edges, fetched when first read.

    Parameters
    ----------
    graph : Graph
        Where the features are.
    batch : nested tuples, lists and dicts
        What a sampler made; graphs are found by their original IDs, and features that a sampler
        has set stay as they are.
    """
    sources = graph._node_frames()
    for part in graphs_in(batch):
        sides = [part._src_frames]
        if part._dst_frames is not part._src_frames:
            sides.append(part._dst_frames)
        for frames in sides:
            for ntype, frame in frames.items():
                if ntype in sources:
                    _follow(sources[ntype], frame, NID)
        for etype, frame in part._edge_frames.items():
            if etype in graph._edge_frames:
                _follow(graph._edge_frames[etype], frame, EID)


def _follow(source: Frame, frame: Frame, id_name: str) -> None:
    if id_name not in frame:
        return
    ids = frame.column(id_name)  # not the frame itself: a frame that holds itself is freed late
    for name in source:
        if name not in frame:
            frame.defer(name, partial(_rows, source, name, ids))


def _rows(source: Frame, name: str, ids: torch.Tensor | Deferred) -> torch.Tensor:
    return source.gather(name, ids() if isinstance(ids, Deferred) else ids)


def fetch_ahead(sampler: Any, batch: Any) -> None:
    """Read the features that a sampler names now, rather than when the model asks."""
    node, label, edge = (
        getattr(sampler, f"prefetch_{kind}", None) or []
        for kind in ("node_feats", "labels", "edge_feats")
    )
    if not (node or label or edge):
        return
    blocks = [part for part in graphs_in(batch) if isinstance(part, Block)]
    if blocks:
        _read(blocks[0]._src_frames, node)
        _read(blocks[-1]._dst_frames, label)
    for block in blocks:
        _read(block._edge_frames, edge)


def _read(frames: Mapping[Any, Frame], names: Iterable[str] | Mapping[Any, Iterable[str]]) -> None:
    for kind, frame in frames.items():
        if isinstance(names, Mapping):
            wanted = names.get(kind, names.get(kind[1], []) if isinstance(kind, tuple) else [])
        else:
            wanted = names
        for name in [wanted] if isinstance(wanted, str) else wanted:
            if name in frame or len(frames) == 1:
                _ = frame[name]
