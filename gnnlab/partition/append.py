"""Appending new nodes and edges to a partition on disk.

Old nodes keep their part and their original ID, that in the user's graph; new ones come to the part
with most of their neighbors and follow the old ones there. The result is, array for array, that of
``partition_graph`` with the larger graph and the same parts; but no part is chosen again, edges are
inserted, not sorted, and arrays that stay as they are become hard links. A part owns a range of new
IDs, so these move up behind new nodes and edges.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.data.from_tables import KEY, TableReport, decode_keys, pad_keys, read_new_tables
from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.graph.edit import extend, read_new_rows
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EdgeType
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.partition.build import Edges, IDMap, RenumberedGraph, assemble_part
from gnnlab.partition.files import (
    PartConfig,
    edge_folder,
    make_config,
    node_folder,
    open_arrays,
    read_config,
    unquote_name,
)
from gnnlab.partition.part import Part, open_part
from gnnlab.partition.partition import parts_progress
from gnnlab.partition.writer import PartitionWriter

_PASSES = 3  # over new nodes, whose neighbors may be new as well


class _Slots(NamedTuple):
    """Where new rows of one type go, sorted by new ID; each of shape (K,)."""

    at: np.ndarray  # the old ID before which the row is inserted
    order: np.ndarray  # its position among the new rows as they were given
    part: np.ndarray  # its part


def append_partition(
    part_config: str | os.PathLike[str],
    nodes: Any = None,
    edges: Any = None,
    *,
    fill: Mapping[Any, Any] | None = None,
    report: TableReport | None = None,
    duplicates: str = "error",
    unknown: str = "error",
) -> TableReport:
    """Append nodes and edges to a partition on disk, in place.

    If the process is killed, the partition is as it was. Memory holds the graph's structure, and
    the features of a part that has new rows.

    Parameters
    ----------
    part_config : path
        The JSON file.
    nodes, edges, fill
        As for :func:`gnnlab.append`, with original IDs: those of the graph that was partitioned,
        which new nodes continue. With ``report``, tables as for
        :func:`gnnlab.data.append_tables`.
    report : TableReport, optional
        Of the call that made the graph of tables, or of the last one that appended some.
    duplicates, unknown : str
        As for :func:`gnnlab.data.append_tables`.

    Returns
    -------
    TableReport
        Its counts also say how many nodes, edges and bytes were written and linked.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile
    >>> from gnnlab.partition import append_partition, load_partition, partition_graph
    >>> g, folder = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])), tempfile.mkdtemp()
    >>> partition_graph(g, "ring", 2, folder, part_method=lambda g, k: [0, 0, 1, 1])
    ... # doctest: +ELLIPSIS
    ring: ...
    >>> print(append_partition(f"{folder}/ring.json", 1, ([4, 4], [2, 3])))  # doctest: +ELLIPSIS
    _N: nodes appended: 1
    ...
    >>> load_partition(f"{folder}/ring.json", 1)[0].ndata["orig_id"]
    tensor([2, 3, 4, 0, 1])
    """
    config = read_config(part_config)
    before = config.path.read_bytes()
    parts = [open_part(config, part_id) for part_id in range(config.num_parts)]
    if report is not None:
        nodes, edges, report = _read_tables(parts, report, nodes, edges, duplicates, unknown)
    frames = {t: _no_rows(each.data, "node") for t, each in parts[0].nodes.items()}
    edge_frames = {t: _no_rows(each.data, "edge") for t, each in parts[0].edges.items()}
    if report is not None:
        for ntype, rows in nodes.items():  # whose keys may be longer than those that exist
            frames[ntype][KEY] = pad_keys(frames[ntype][KEY], rows[KEY].shape[1:])
    old = _whole_graph(parts)
    sizes = {ntype: len(each.old) for ntype, each in old.nodes.items()}
    new_nodes, new_edges = read_new_rows(frames, edge_frames, sizes, nodes, edges, fill or {})
    counts = {ntype: new_nodes[ntype][0] if ntype in new_nodes else 0 for ntype in sizes}
    ends = {t: (src.numpy(), dst.numpy()) for t, (src, dst, _) in new_edges.items()}
    graph, slots = _grow(old, _assign(old, counts, ends), ends)
    rows = {t: extend(frames[t], *new) for t, new in new_nodes.items()}
    rows |= {t: extend(edge_frames[t], len(src), data) for t, (src, _, data) in new_edges.items()}
    linked = 0
    with PartitionWriter(config.path.parent, config.graph_name, config.num_parts) as writer:
        for part_id in parts_progress(config.num_parts):
            for path, values in _arrays(config, part_id, old, graph, slots, rows).items():
                if values is None:
                    info = config.arrays[part_id][path]
                    writer.link(path, info)
                    linked += info.bytes
                else:
                    writer.save(path, values)
        if config.path.read_bytes() != before:
            raise PartitionError(f"{config.path} was written by another process; append again")
        writer.commit(
            make_config(config.graph_name, graph.book, config.part_method, config.halo_hops)
        )
    report = report or TableReport()
    for kind, each in slots.items():
        what = f"{kind}: nodes" if isinstance(kind, str) else f"{kind[1]}: edges"
        report.counts[f"{what} appended"] = len(each.at)
    totals = (info.bytes for each in read_config(config.path).arrays for info in each.values())
    report.counts |= {"bytes linked": linked, "bytes written": sum(totals) - linked}
    return report


def _read_tables(
    parts: list[Part], report: TableReport, nodes: Any, edges: Any, duplicates: str, unknown: str
) -> tuple[Any, Any, TableReport]:
    """Read tables as rows; the keys that exist are gathered from all parts."""
    known, widths = {}, {}
    for ntype in parts[0].nodes:
        here = [part.nodes[ntype] for part in parts]
        if KEY not in here[0].data:
            raise InvalidInput(
                f"nodes of type {ntype!r} have no keys: append rows, without report="
            )
        keys = torch.cat([each.data[KEY] for each in here])
        original = torch.cat([each.orig_ids[: each.num_inner] for each in here])
        known[ntype] = decode_keys(torch.empty_like(keys).index_copy_(0, original.long(), keys))
        widths[ntype] = keys.shape[1:]
    rows, ends, report = read_new_tables(known, report, nodes, edges, duplicates, unknown)
    for ntype, data in rows.items():
        data[KEY] = pad_keys(data[KEY], widths[ntype])
    return rows, ends, report


def _no_rows(data: Mapping[str, torch.Tensor], what: str) -> Frame:
    return Frame(0, {name: values[:0] for name, values in data.items()}, what=what)


def _whole_graph(parts: list[Part]) -> RenumberedGraph:
    """Join the structure of all parts."""
    nodes, edges = {}, {}
    for ntype, ranges in parts[0].book.node_ranges.items():
        here = [part.nodes[ntype] for part in parts]
        old = torch.cat([each.orig_ids[: each.num_inner] for each in here]).numpy()
        nodes[ntype] = _id_map(ranges, old.astype(ids_dtype(len(old))))
    for etype, ranges in parts[0].book.edge_ranges.items():
        own = [
            (part.new_nids(etype[0]), part.edges[etype], lo)
            for part, lo in zip(parts, ranges[:-1], strict=True)
        ]
        sizes = [part.nodes[etype[2]].num_inner for part in parts]
        indptr = [each.indptr[:n] + lo for (_, each, lo), n in zip(own, sizes, strict=True)]
        indices = [ids[each.indices[: each.num_inner]] for ids, each, _ in own]
        original = [each.orig_ids[: each.num_inner] for _, each, _ in own]
        dtype = nodes[etype[0]].old.dtype
        edges[etype] = Edges(
            np.append(torch.cat(indptr).numpy(), ranges[-1]),
            torch.cat(indices).numpy().astype(dtype),
            torch.cat(original).numpy().astype(ids_dtype(ranges[-1])),
        )
    return RenumberedGraph(nodes, edges)


def _id_map(ranges: np.ndarray, old: np.ndarray) -> IDMap:
    new = np.empty_like(old)
    new[old] = np.arange(len(old), dtype=old.dtype)
    return IDMap(ranges, new, old)


def _assign(
    graph: RenumberedGraph, counts: Mapping[str, int], ends: Mapping[EdgeType, Any]
) -> dict[str, np.ndarray]:
    """Choose the part of each new node, by type: that of most neighbors, else the emptiest."""
    first, part = {}, np.empty(0, np.int32)  # of all nodes by original ID, type after type
    for ntype, nodes in graph.nodes.items():
        first[ntype] = len(part)
        owners = graph.book.nid2partid(nodes.new, ntype).numpy().astype(np.int32)
        part = np.concatenate([part, owners, np.full(counts[ntype], -1, np.int32)])
    pairs = [(first[u] + src, first[v] + dst) for (u, _, v), (src, dst) in ends.items()]
    src, dst = np.concatenate([np.empty((2, 0), np.int64), *map(np.stack, pairs)], 1)
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    near, new = kernels.csc.group_by(*both, len(part)), np.flatnonzero(part < 0)
    load = np.diff(graph.book.ranges_of("node"))[:, None]
    weights, room = np.ones((len(part), 1), np.int64), np.array([1e6 * len(part)])
    for _ in range(_PASSES):  # with that much room, load settles ties only
        kernels.ldg.place(new, 0, (near,), weights, room, part, load)
    return {t: part[lo + len(graph.nodes[t].old) :][: counts[t]] for t, lo in first.items()}


def _grow(
    graph: RenumberedGraph, part_of: Mapping[str, np.ndarray], ends: Mapping[EdgeType, Any]
) -> tuple[RenumberedGraph, dict[Any, _Slots]]:
    """Insert new nodes behind the old ones of their part, and edges at their destination."""
    slots: dict[Any, _Slots] = {}
    nodes, edges = {}, {}
    for ntype, each in graph.nodes.items():
        order = np.argsort(part_of[ntype], kind="stable")
        part = part_of[ntype][order]
        slots[ntype] = at, _, _ = _Slots(each.ranges[part + 1], order, part)
        ids = ids_dtype(len(each.old) + len(order))
        old = _insert(each.old.astype(ids), at, len(each.old) + order).numpy()
        more = np.bincount(part, minlength=len(each.ranges) - 1)
        nodes[ntype] = _id_map(each.ranges + np.append(0, np.cumsum(more)), old)
    for etype, own in graph.edges.items():
        u, _, v = etype
        src, dst = ends.get(etype, (np.empty(0, np.int64),) * 2)
        src, dst = nodes[u].new[src], nodes[v].new[dst]
        order = np.argsort(dst, kind="stable")
        sizes = np.diff(own.indptr)
        sizes = _insert(sizes, slots[v].at, np.zeros(len(slots[v].at), np.int64)).numpy()
        indptr = np.append(0, np.cumsum(sizes))
        at = indptr[dst[order] + 1]
        part = np.searchsorted(nodes[v].ranges, dst[order], side="right") - 1
        slots[etype] = _Slots(at, order, part)
        moved = nodes[u].new[graph.nodes[u].old]
        ids = ids_dtype(len(own.old) + len(order))
        edges[etype] = Edges(
            np.append(0, np.cumsum(sizes + np.bincount(dst, minlength=len(sizes)))),
            _insert(moved[own.indices], at, src[order]).numpy(),
            _insert(own.old.astype(ids), at, len(own.old) + order).numpy(),
        )
    return RenumberedGraph(nodes, edges), slots


def _arrays(
    config: PartConfig,
    part_id: int,
    old: RenumberedGraph,
    graph: RenumberedGraph,
    slots: Mapping[Any, _Slots],
    rows: Mapping[Any, Frame],
) -> dict[str, torch.Tensor | None]:
    """Return the arrays of a part by path, None for those that stay as they are."""
    structure: dict[str, np.ndarray] = {}
    features: dict[str, tuple[Any, int]] = {}  # folder → type, and the old ID of its first row
    nodes, edges = assemble_part(graph, part_id, config.halo_hops)
    kinds: list[Any] = [
        (nodes, old.book.node_ranges, node_folder, "node_data"),
        (edges, old.book.edge_ranges, edge_folder, "edge_data"),
    ]
    for assembled, offsets, folder_of, data in kinds:
        for kind, arrays in assembled.items():
            folder = folder_of(part_id, "graph", kind)
            structure |= {f"{folder}/{name}.npy": array for name, array in arrays.items()}
            features[folder_of(part_id, data, kind)] = kind, offsets[kind][part_id]
    found: dict[str, torch.Tensor | None] = {}
    for path, values in open_arrays(config, part_id, lambda path: True, verify=False).items():
        folder, _, name = path.removesuffix(".npy").rpartition("/")
        new = values
        if path in structure:
            new = torch.from_numpy(structure[path])
            new = values if new.dtype == values.dtype and torch.equal(new, values) else new
        elif (kind := features[folder][0]) in rows:
            more, here = rows[kind][unquote_name(name)], slots[kind].part == part_id
            if values.shape[1:] != more.shape[1:]:
                new = pad_keys(values, more.shape[1:])
            if here.any():
                at = slots[kind].at[here] - features[folder][1]
                new = _insert(new, at, more[torch.from_numpy(slots[kind].order[here])])
        found[path] = None if new is values else new
    return found


def _insert(old: Any, at: np.ndarray, new: Any) -> torch.Tensor:
    """Insert rows of any dtype and shape, row j before the old row ``at[j]``."""
    old, new = map(torch.as_tensor, (old, new))
    out = old.new_empty((len(old) + len(new), *old.shape[1:]))
    kept, place = torch.ones(len(out), dtype=torch.bool), torch.from_numpy(at + np.arange(len(at)))
    kept[place] = False
    out[place], out[kept] = new.to(out.dtype), old
    return out
