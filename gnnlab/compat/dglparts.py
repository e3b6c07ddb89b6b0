"""Conversion of partitions written by DGL's ``partition_graph``, without DGL.

DGL writes a JSON file and, for each part, a graph with homogeneous IDs (``graph.dgl``) and the
features of its own nodes and edges (``node_feat.dgl``, ``edge_feat.dgl``). It does not store the
IDs from before partitioning, so here DGL's IDs are the original ones.

Nodes keep their IDs, hence also their parts, and data saved under DGL's node IDs stays valid. Edges
get new IDs within their part, because gnnlab sorts them by destination; "orig_id" holds DGL's.

References
----------
DGL user guide, chapter 7.1, "Preprocessing for Distributed Training".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.compat.dglfile import read_graphs, read_tensors
from gnnlab.errors import PartitionError, file_error
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID
from gnnlab.graph.relation import Relation
from gnnlab.partition.book import GraphPartitionBook
from gnnlab.partition.files import read_offsets, sort_types
from gnnlab.partition.partition import partition_graph

_ENTRIES = "part_graph", "node_feats", "edge_feats"
StrPath = str | os.PathLike[str]


def convert_dgl_partition(
    part_config: StrPath, output: StrPath, graph_name: str | None = None
) -> None:
    """Convert a partition written by DGL to one of gnnlab; the whole graph must fit into memory.

    ``part_config`` is DGL's JSON file. If ``output`` is DGL's own folder, DGL's files are replaced.

    Examples
    --------
    >>> from gnnlab.compat.dglparts import convert_dgl_partition
    >>> convert_dgl_partition("dgl/papers.json", "papers")  # doctest: +SKIP
    """
    g, book, name, num_hops = _read(Path(part_config))
    num_parts = book.num_partitions()
    part = {t: np.repeat(np.arange(num_parts), np.diff(o)) for t, o in book.node_ranges.items()}
    partition_graph(g, graph_name or name, num_parts, output, num_hops, lambda g, k: part)


def read_dgl_partition(part_config: StrPath) -> tuple[Graph, GraphPartitionBook]:
    """Read a partition, DGL's JSON file, and reassemble the graph, under DGL's type-wise IDs.

    The book has the owners in DGL's partition.

    Examples
    --------
    >>> from gnnlab.compat.dglparts import read_dgl_partition
    >>> g, book = read_dgl_partition("dgl/papers.json")  # doctest: +SKIP
    """
    return _read(Path(part_config))[:2]


@contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    """Turn errors about the content of a file into one that names the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        what = f"{error.args[0]!r} is missing" if type(error) is KeyError else error
        raise PartitionError(
            f"{file} is not what DGL's partition_graph writes, or does not fit the files beside it "
            f"({what}); copy the partition again from where it was made"
        ) from error


def _read(path: Path) -> tuple[Graph, GraphPartitionBook, str, int]:
    """Return the graph, its book, its name and the reach of the halo."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise file_error(error, path, kind=PartitionError) from error
    with _file_errors(path):
        content = json.loads(text)
        if "format" in content:
            raise ValueError("it is a partition of gnnlab, which needs no conversion")
        parts = [content[f"part-{i}"] for i in range(int(content["num_parts"]))]
        files = [[path.parent / part[entry] for entry in _ENTRIES] for part in parts]
    missing = [file for part in files for file in part if not file.is_file()]
    if missing:
        raise PartitionError(f"{missing[0]} is missing, which {path} lists; copy it too")
    with _file_errors(path):
        name, num_hops = str(content["graph_name"]), int(content["halo_hops"])
        merged = _MergedGraph(content, sum(graph.stat().st_size for graph, *_ in files))
    for part_id, (graph, node_feats, edge_feats) in enumerate(files):
        graphs, _ = read_graphs(graph)
        with _file_errors(graph):
            merged.add_edges(*graphs)
        for file, rows in ((node_feats, merged.nodes), (edge_feats, merged.edges)):
            columns = read_tensors(file)
            with _file_errors(file):
                _add_rows(rows, part_id, columns)
    with _file_errors(path):
        return (*merged.finish(), name, num_hops)


class _Rows:
    """Features of one type from all parts; ``offsets`` are those of the parts."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets
        self.features: dict[str, dict[int, torch.Tensor]] = {}

    def frame(self, what: str) -> Frame:
        """Return the rows of all parts, concatenated."""
        columns = {}
        for name, found in self.features.items():
            nothing = next(iter(found.values()))[:0]  # of a part without rows, which may lack it
            parts = range(len(self.offsets) - 1)
            columns[name] = torch.cat([found.get(part, nothing) for part in parts])
        return Frame(int(self.offsets[-1]), columns, what=what)


class _Edges(_Rows):
    """Edges of one type; older versions name the relation alone, so edges show its node types."""

    def __init__(self, name: str, offsets: np.ndarray) -> None:
        super().__init__(offsets)
        source, self.relation, target = name.split(":") if ":" in name else ("", name, "")
        self.types = [source, target]
        self.ids = [torch.full((int(offsets[-1]),), -1) for _ in range(2)]

    def add(self, side: int, rows: torch.Tensor, ntypes: Sequence[str], ids: torch.Tensor) -> None:
        """Set sources (side 0) or destinations (side 1) of some edges, all of one type."""
        self.types[side] = self.types[side] or ntypes[0]
        if set(ntypes) != {self.types[side]}:
            raise ValueError(
                f"edges of {self.relation!r} end at nodes of {sorted({*ntypes, self.types[side]})}"
            )
        self.ids[side][rows] = ids


class _MergedGraph:
    """The whole graph, to which parts are added one by one."""

    def __init__(self, content: Mapping[str, Any], num_bytes: int) -> None:
        sizes = {
            f"{what}_counts": {
                t: sum(b - a for a, b in r) for t, r in content[f"{what}_map"].items()
            }
            for what in ("node", "edge")
        }
        ntypes, names = sort_types(content["ntypes"]), sort_types(content["etypes"])
        nodes = read_offsets({**content, **sizes}, "node", {t: t for t in ntypes})
        edges = read_offsets({**content, **sizes}, "edge", {name: ("", name, "") for name in names})
        self.book = GraphPartitionBook(0, nodes, edges)
        for rows in (*nodes.values(), *edges.values()):
            if int(rows[-1]) * 8 > num_bytes:  # each has an ID of 8 bytes in some file
                raise ValueError(f"{rows[-1]} nodes or edges are more than the files can hold")
        self.nodes = {t: _Rows(offsets) for t, offsets in nodes.items()}
        self.edges = {t[1]: _Edges(t[1], offsets) for t, offsets in edges.items()}

    def add_edges(self, g: Graph) -> None:
        """Add all edges of a part; those of its halo repeat those of their owner."""
        homogeneous = g.ndata[NID]
        kinds, rows = self.book.map_to_per_etype(g.edata[EID])
        ends = [self.book.map_to_per_ntype(homogeneous[end]) for end in g.edges(order="eid")]
        ntypes = list(self.nodes)
        for kind, edges in enumerate(self.edges.values()):
            mask = kinds == kind
            for side, (types, ids) in enumerate(ends):
                found = [ntypes[t] for t in types[mask].unique().tolist()]
                if found:
                    edges.add(side, rows[mask], found, ids[mask])

    def finish(self) -> tuple[Graph, GraphPartitionBook]:
        """Return the graph and the book."""
        sizes = {ntype: int(rows.offsets[-1]) for ntype, rows in self.nodes.items()}
        relations, frames, offsets = {}, {}, {}
        for name, edges in self.edges.items():
            if len(sizes) == 1:
                edges.types = [*sizes, *sizes]
            if "" in edges.types:
                raise ValueError(f"edge type {name!r} has no edges that would show its ends")
            if any(bool((ids < 0).any()) for ids in edges.ids):
                raise ValueError(f"no part has some of the edges of {name!r}")
            (src, dst), (u, v) = edges.ids, edges.types
            etype = u, edges.relation, v
            relations[etype] = Relation.from_edges(src, dst, sizes[u], sizes[v])
            frames[etype], offsets[etype] = edges.frame("edge"), edges.offsets
        node_frames = {ntype: rows.frame("node") for ntype, rows in self.nodes.items()}
        g = Graph(sizes, relations, node_frames, frames)
        return g, GraphPartitionBook(0, self.book.node_ranges, offsets)


def _add_rows(
    types: Mapping[str, _Rows], part_id: int, columns: Mapping[str, torch.Tensor]
) -> None:
    for key, values in columns.items():
        name, _, feature = key.partition("/")
        owned = int(np.diff(types[name].offsets)[part_id])
        if len(values) != owned:
            raise ValueError(f"feature {key!r} has {len(values)} rows; the part owns {owned}")
        types[name].features.setdefault(feature, {})[part_id] = values
