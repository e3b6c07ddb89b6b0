"""Sampling that does not look ahead: no edge later than the seed's time, at any distance.

The rows of a CSC are sorted by time once. Then the edges that a seed may see are a prefix of its
row, and the sampler for all edges serves, on the prefix instead of the row.

References
----------
Rossi et al., "Temporal Graph Networks for Deep Learning on Dynamic Graphs", 2020, where the last
neighbors are taken. Xu et al., "Inductive Representation Learning on Temporal Graphs", ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.core import GraphCore
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Adjacency
from gnnlab.helpers.block_sampler import signed

_GOLDEN = signed(0x9E3779B97F4A7C15)


class Until(NamedTuple):
    """What a layer may see."""

    times: Mapping[str, torch.Tensor]  # by node type: of each seed, int64 or float64
    column: str  # name of the feature of edges, or of their sources, with times
    last: bool  # take the last edges, not random ones


class ByTime(NamedTuple):
    """Edges of one type, grouped by destination, each group sorted by time."""

    edges: Adjacency
    times: torch.Tensor  # of each slot, (E,), int64 or float64


def read_times(values: Any, count: int, what: str) -> torch.Tensor:
    """Read times as int64, or float64 if they are not whole; one for each of ``count``."""
    times = as_tensor(values, what).detach()
    times = times.squeeze(-1) if times.ndim == 2 else times
    if times.shape != (count,) or times.dtype is torch.bool or times.is_complex():
        raise InvalidInput(
            f"{what} need one number for each of {count}; found shape {tuple(times.shape)}, "
            f"{times.dtype}"
        )
    if not times.is_floating_point():
        return times.long()
    if bool(times.isnan().any()):
        raise InvalidInput(
            f"{what} have NaN in {int(times.isnan().sum())} places; give each a time"
        )
    return times.double()


def by_time(g: GraphCore, etype: EdgeType, column: str) -> ByTime | None:
    """Return the edges of a type sorted by time, None if they have none; made once.

    The time of an edge is the later one of its own and that of its source.
    """
    csc = g.relations[etype].csc()
    frames = g.edge_frames[etype], g.src_frames[etype[0]]
    of_edges, of_sources = (f[column] if column in f else None for f in frames)  # noqa: SIM401
    if of_edges is None and of_sources is None:
        return None
    columns = of_edges, of_sources  # kept, so that no other tensor gets the ID of one of them
    version = [(id(values), getattr(values, "_version", 0)) for values in columns]
    kept = csc.workspaces.get(column)
    if kept is None or kept[0] != version:
        made = _sorted(csc, of_edges, of_sources, f"times {column!r} of {etype}")
        kept = csc.workspaces[column] = [version, columns, made]
    return kept[2]


def _sorted(
    csc: Adjacency, of_edges: torch.Tensor | None, of_sources: torch.Tensor | None, what: str
) -> ByTime:
    found = []
    if of_edges is not None:
        times = read_times(of_edges, len(csc.indices), what)
        found.append(times if csc.ordered else times[csc.eids.long()])
    if of_sources is not None:
        found.append(read_times(of_sources, len(of_sources), what)[csc.indices.long()])
    times = found[0] if len(found) == 1 else torch.maximum(*torch.broadcast_tensors(*found))
    return sort_rows(csc, times)


def sort_rows(csc: Adjacency, times: torch.Tensor) -> ByTime:
    """Sort each group of edges by the times of the slots."""
    order = kernels.temporal.row_order(csc.indptr, times)
    if order is None:
        return ByTime(csc, times)
    eids = csc.eids_at(order)
    return ByTime(Adjacency(csc.indptr, csc.indices[order], eids), times[order])


def sort_by_time(g: Any, column: str) -> None:
    """Sort the edges of a graph in this process now, not when they are first sampled."""
    for etype in g.canonical_etypes if isinstance(g, GraphCore) else []:
        by_time(g, etype, column)


def check_column(g: Any, column: str) -> None:
    """Raise NotFound unless some edges or nodes have times."""
    frames = [*g.edge_frames.values(), *g.node_frames().values()]
    if not any(column in frame for frame in frames):
        raise NotFound(
            f"no edge and no node has the feature {column!r} with times; set g.edata[{column!r}]"
        )


def as_limits(until: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert limits to float64, or int64 if the times of ``dtype`` that they bound are whole."""
    if dtype.is_floating_point:
        return until.double()
    return until.floor().clamp(-(2**62), 2**62).long() if until.is_floating_point() else until


def spans(
    rows: ByTime,
    seeds: torch.Tensor,
    until: torch.Tensor,
    fanout: int,
    last: bool,
    excluded: torch.Tensor | None,
) -> tuple[torch.Tensor, int]:
    """Return the slots that each seed may see, as an ``indptr`` whose row 2 i is that of seed i.

    Also returned is the fanout for these rows: all, if the last are taken. Which those are is known
    unless slots are excluded; then :func:`keep_last` follows.
    """
    limits = as_limits(until, rows.times.dtype)
    most = fanout if last and excluded is None else -1
    indptr = kernels.temporal.spans(rows.edges.indptr, rows.times, seeds, limits, most)
    return indptr, -1 if last else fanout


def keep_last(
    ptr: torch.Tensor, slots: torch.Tensor, sources: torch.Tensor, fanout: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cut each row of picked edges to its last ones."""
    sizes = torch.diff(ptr)
    place = torch.arange(len(slots), device=slots.device)
    kept = ptr[1:].repeat_interleave(sizes, output_size=len(slots)) - place <= fanout
    sizes = sizes.clamp(max=fanout)
    ptr = torch.nn.functional.pad(torch.cumsum(sizes, 0), (1, 0))
    return ptr, slots[kept], sources[kept], sizes


def stream_names(names: torch.Tensor, until: torch.Tensor) -> torch.Tensor:
    """Name the random stream of each pair (node, time)."""
    bits = until.view(torch.int64) if until.is_floating_point() else until
    return torch.add(names, bits, alpha=_GOLDEN)
