"""Features of mini-batches: lazy columns that are gathered by original ID when first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from gnnlab.errors import NotFound
from gnnlab.graph.frame import Frame, LazyTensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID, describe
from gnnlab.ops.checks import AT_ONCE, warn_unless_finite


def graphs_in(batch: Any) -> Iterator[Graph]:
    """Yield all graphs and blocks of a mini-batch of nested tuples, lists and dicts."""
    if isinstance(batch, Graph):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from graphs_in(part)
    elif isinstance(batch, list | tuple):
        for part in batch:
            yield from graphs_in(part)


def attach_features(
    graph: Graph, batch: Any, sampled: Any = None, fetch: Callable[..., Any] | None = None
) -> None:
    """Set the features of ``graph`` on each graph of a mini-batch, as lazy columns.

    Only graphs with original IDs get features; those that the sampler has set stay. ``sampled`` is
    the batch before its move to a device, where ``fetch(frame, name, ids)`` returns rows.
    """
    sources = graph.node_frames()
    before = batch if sampled is None else sampled
    for part, there in zip(graphs_in(before), graphs_in(batch), strict=True):
        sides = [(part.src_frames, there.src_frames)]
        if there.dst_frames is not there.src_frames:
            sides.append((part.dst_frames, there.dst_frames))
        for frames, moved in sides:
            for ntype, frame in frames.items():
                if ntype in sources:
                    _attach(sources[ntype], frame, moved[ntype], NID, fetch)
        for etype, frame in part.edge_frames.items():
            if etype in graph.edge_frames:
                _attach(graph.edge_frames[etype], frame, there.edge_frames[etype], EID, fetch)


def _attach(source: Frame, frame: Frame, moved: Frame, id_name: str, fetch: Any) -> None:
    if id_name not in frame:
        return
    ids = frame.column(id_name)  # holding the frame itself would be a reference cycle
    for name in source:
        if name not in moved:
            current = partial(source.__getitem__, name) if isinstance(source, Frame) else None
            moved.defer(name, partial(_rows, source, name, ids, fetch), current)


def _rows(
    source: Frame, name: str, ids: torch.Tensor | LazyTensor, fetch: Any = None
) -> torch.Tensor:
    ids = ids() if isinstance(ids, LazyTensor) else ids
    rows = source.gather(name, ids) if fetch is None else fetch(source, name, ids)
    whole = source.column(name) if isinstance(source, Frame) else None
    if isinstance(whole, torch.Tensor) and whole.numel() <= AT_ONCE:
        warn_unless_finite(whole, f"values of the {source.what} feature {name!r}")
    else:  # too large to check as a whole, or on other machines
        warn_unless_finite(rows, f"values of the {source.what} feature {name!r}", ids)
    return rows


def set_src_lazy_features(g: Graph, feature_names: Any) -> None:
    """Name features of source nodes that a loader prefetches; for custom samplers.

    Every feature of a mini-batch is gathered when it is first read. A loader that samples in a
    thread gathers the named ones there, so that the model does not wait for them. The graph or
    block has original IDs; the names are a list, or a dict of lists by type.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> class Parts(dgl.dataloading.Sampler):
    ...     def sample(self, g, indices):
    ...         part = g.subgraph(indices)
    ...         dgl.set_node_lazy_features(part, ["x"])
    ...         return part
    >>> g = dgl.rand_graph(10, 30)
    >>> g.ndata["x"] = torch.arange(10)
    >>> next(iter(dgl.dataloading.DataLoader(g, [4, 2], Parts(), batch_size=2))).ndata["x"]
    tensor([4, 2])
    """
    _add_names(g, feature_names, "src_frames")


def set_dst_lazy_features(g: Graph, feature_names: Any) -> None:
    """Name features of destination nodes to prefetch; see :func:`set_src_lazy_features`."""
    _add_names(g, feature_names, "dst_frames")


def set_edge_lazy_features(g: Graph, feature_names: Any) -> None:
    """Name features of edges to prefetch; see :func:`set_src_lazy_features`."""
    _add_names(g, feature_names, "edge_frames")


def set_node_lazy_features(g: Graph, feature_names: Any) -> None:
    """Name features of nodes to prefetch; see :func:`set_src_lazy_features`."""
    _add_names(g, feature_names, "src_frames", "dst_frames")


def _add_names(g: Graph, feature_names: Any, *sides: str) -> None:
    g.named_to_prefetch = (*g.named_to_prefetch, (sides, feature_names))


def fetch_ahead(batch: Any) -> None:
    """Fetch the features that the sampler named for prefetching, before the model reads them."""
    for part in graphs_in(batch):
        named, part.named_to_prefetch = part.named_to_prefetch, ()
        for sides, names in named:
            _read([pair for side in sides for pair in getattr(part, side).items()], names)


def _read(frames: list[tuple[Any, Frame]], names: Any) -> None:
    if isinstance(names, Mapping):
        for kind, wanted in names.items():
            chosen = [(k, f) for k, f in frames if kind == k or (kind,) == k[1:2]]
            if not chosen:
                types = describe(dict(frames))
                raise NotFound(f"no type {kind!r} to prefetch features of; the types are {types}")
            _read(chosen, wanted)
        return
    is_one = isinstance(names, str) or not isinstance(names, Iterable)
    for name in [names] if is_one else names:
        having = [frame for _, frame in frames if name in frame]
        if not having:
            known = describe(dict.fromkeys(each for _, frame in frames for each in frame))
            raise NotFound(f"no feature {name!r} to prefetch; the features are: {known}")
        for frame in having:
            if isinstance(column := frame.column(name), LazyTensor):
                column()  # and stays lazy, so that renew() finds it


def renew(batch: Any) -> None:
    """Fetch features again that have changed since :func:`fetch_ahead`."""
    for part in graphs_in(batch):
        for frames in part.src_frames, part.dst_frames, part.edge_frames:
            for frame in frames.values():
                frame.renew()
