"""Appending new nodes and edges to a partition on disk.

Old nodes keep their part and their original ID, that in the user's graph; new ones come to the part
with most of their neighbors. The result is, array for array, that of ``partition_graph`` with the
larger graph and the same parts, but no part is chosen again, and arrays that stay as they are
become hard links: those of parts and types without new rows. A part owns a range of new IDs, so
these move up behind new nodes and edges.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.data.from_tables import KEY, TableReport, decode_keys, pad_keys, read_new_tables
from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.graph.edit import append, extend, read_new_rows
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation
from gnnlab.partition.build import RenumberedGraph, assemble_part, renumber_graph
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
    the features of one part at a time.

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
    g, part_of = _whole_graph(parts)
    sizes = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    firsts = sizes | {etype: g.num_edges(etype) for etype in g.canonical_etypes}
    new_nodes, new_edges = read_new_rows(frames, edge_frames, sizes, nodes, edges, fill or {})
    g = append(
        g,
        {ntype: count for ntype, (count, _) in new_nodes.items()},
        {etype: (src, dst) for etype, (src, dst, _) in new_edges.items()},
    )
    part_of = _assign(
        g, part_of, {t: (src, dst) for t, (src, dst, _) in new_edges.items()}, config.num_parts
    )
    rows = {t: extend(frames[t], *new) for t, new in new_nodes.items()}
    rows |= {t: extend(edge_frames[t], len(src), data) for t, (src, _, data) in new_edges.items()}
    graph = renumber_graph(g, np.concatenate([*part_of.values()]), config.num_parts)
    linked = 0
    with PartitionWriter(config.path.parent, config.graph_name, config.num_parts) as writer:
        for part_id in parts_progress(config.num_parts):
            part = parts[part_id]
            for path, values in _arrays(config, part, graph, firsts, rows).items():
                if values is None:
                    info = config.arrays[part.part_id][path]
                    writer.link(path, info)
                    linked += info.bytes
                else:
                    writer.save(path, values)
        if config.path.read_bytes() != before:
            raise PartitionError(f"{config.path} was written by another process; append again")
        method, hops = config.part_method, config.halo_hops
        writer.commit(make_config(config.graph_name, graph.book, method, hops))
    report = report or TableReport()
    for kind, first in firsts.items():
        what = f"{kind}: nodes" if isinstance(kind, str) else f"{kind[1]}: edges"
        total = g.num_nodes(kind) if isinstance(kind, str) else g.num_edges(kind)
        report.counts[f"{what} appended"] = total - first
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


def _whole_graph(parts: list[Part]) -> tuple[Graph, dict[str, np.ndarray]]:
    """Return the graph under original IDs, without features, and the part of each node."""
    book = parts[0].book
    counts = {ntype: int(ranges[-1]) for ntype, ranges in book.node_ranges.items()}
    part_of = {ntype: np.empty(count, np.int32) for ntype, count in counts.items()}
    relations = {}
    for ntype, owners in part_of.items():
        for part in parts:
            owners[part.nodes[ntype].orig_ids[: part.nodes[ntype].num_inner]] = part.part_id
    for etype, ranges in book.edge_ranges.items():
        ends = [torch.empty(int(ranges[-1]), dtype=torch.int64) for _ in range(2)]
        for part in parts:
            own = slice(part.edges[etype].num_inner)
            ids = part.edges[etype].orig_ids[own].long()
            for side, local, n in zip(ends, part.relation(etype).coo(), etype[::2], strict=True):
                side[ids] = part.nodes[n].orig_ids[local[own].long()]
        sizes = counts[etype[0]], counts[etype[2]]
        relations[etype] = Relation.from_edges(ends[0], ends[1], *sizes)
    return Graph(counts, relations), part_of


def _assign(
    g: Graph, part_of: Mapping[str, np.ndarray], ends: Mapping[EdgeType, Any], num_parts: int
) -> dict[str, np.ndarray]:
    """Choose the part of each new node: that of most neighbors, else the emptiest."""
    more = {n: np.full(g.num_nodes(n) - len(old), -1, np.int32) for n, old in part_of.items()}
    parts = [np.append(old, more[ntype]) for ntype, old in part_of.items()]
    bounds = np.cumsum([0, *map(len, parts)])
    first, part = dict(zip(part_of, bounds, strict=False)), np.concatenate(parts)
    pairs = [
        (first[u] + src.numpy(), first[v] + dst.numpy()) for (u, _, v), (src, dst) in ends.items()
    ]
    src, dst = np.concatenate([np.empty((2, 0), np.int64), *map(np.stack, pairs)], 1)
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    near, new = kernels.csc.group_by(*both, len(part)), np.flatnonzero(part < 0)
    load = np.bincount(part[part >= 0], minlength=num_parts).astype(np.int64)[:, None]
    weights, room = np.ones((len(part), 1), np.int64), np.array([1e6 * len(part)])
    for _ in range(_PASSES):  # with that much room, load settles ties only
        kernels.ldg.place(new, 0, (near,), weights, room, part, load)
    return dict(zip(part_of, np.split(part, bounds[1:-1]), strict=True))


def _arrays(
    config: PartConfig,
    part: Part,
    graph: RenumberedGraph,
    firsts: Mapping[Any, int],
    rows: Mapping[Any, Frame],
) -> dict[str, torch.Tensor | None]:
    """Return the arrays of a part by path, None for those that stay as they are.

    ``firsts`` has the original ID of the first new row of each type.
    """
    structure: dict[str, np.ndarray] = {}
    features: dict[str, tuple[Any, torch.Tensor, torch.Tensor]] = {}  # type, IDs now and before
    here, book = part.part_id, graph.book.node_ranges
    nodes, edges = assemble_part(graph, here, config.halo_hops)
    for ntype, each in part.nodes.items():
        folder, (lo, hi) = node_folder(here, "graph", ntype), book[ntype][here : here + 2]
        structure |= {f"{folder}/{name}.npy": array for name, array in nodes[ntype].items()}
        ids = torch.from_numpy(graph.nodes[ntype].old[lo:hi]).long()
        folder, before = node_folder(here, "node_data", ntype), each.orig_ids[: each.num_inner]
        features[folder] = ntype, ids, before.long()
    for etype, own in part.edges.items():
        folder = edge_folder(here, "graph", etype)
        structure |= {f"{folder}/{name}.npy": array for name, array in edges[etype].items()}
        ids = torch.from_numpy(graph.owned_edges(etype, here).old).long()
        folder, before = edge_folder(here, "edge_data", etype), own.orig_ids[: own.num_inner]
        features[folder] = etype, ids, before.long()
    found: dict[str, torch.Tensor | None] = {}
    for path, old in open_arrays(config, here, lambda path: True, verify=False).items():
        folder, _, name = path.removesuffix(".npy").rpartition("/")
        if path in structure:
            new = torch.from_numpy(structure[path])
            is_same = new.dtype == old.dtype and torch.equal(new, old)
        else:
            kind, ids, before = features[folder]
            more = rows[kind][unquote_name(name)] if kind in rows else old[:0]
            is_same = torch.equal(ids, before) and old.shape[1:] == more.shape[1:]
            new = old if is_same else _rows(old, before, more, ids, firsts[kind])
        found[path] = None if is_same else new
    return found


def _rows(
    old: torch.Tensor, before: torch.Tensor, more: torch.Tensor, ids: torch.Tensor, first: int
) -> torch.Tensor:
    """Return rows by original ID: of ``old``, which has ``before``, and of ``more``."""
    old = old if old.shape[1:] == more.shape[1:] else pad_keys(old, more.shape[1:])
    place, is_new = torch.empty(first, dtype=torch.int64), ids >= first
    place[before] = torch.arange(len(before))
    found = old.new_empty((len(ids), *old.shape[1:]))
    found[~is_new], found[is_new] = old[place[ids[~is_new]]], more[ids[is_new] - first]
    return found
