"""Out-of-core partitioning, for graphs that are larger than memory.

Memory holds a few numbers a node and, at any time, one chunk of edges or the structure of one part;
all else is in files. Edges are read once and validated. LDG then makes several passes over the
nodes in random order, as in memory, and reads their neighbors from a sorted file. Once the parts
are known, edges are sorted by new destination in files, of which each part is a range. The result
is, array for array, that of ``partition_graph``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.data.from_tables import EdgeTable, NodeTable, TableReader, TableReport
from gnnlab.errors import InvalidInput, NotFound, PartitionError, whole_number, writing
from gnnlab.graph.names import ONE_ETYPE, EdgeType, check_name, describe
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.partition.assign import (
    assign_ldg,
    assign_randomly,
    check_assignment,
    classes_of,
    fill_empty,
    warn_of_empty,
    weights_of,
)
from gnnlab.partition.build import Edges, IDMap, RenumberedGraph, renumber_nodes
from gnnlab.partition.edgefiles import EdgeFiles, open_features, open_npy, release
from gnnlab.partition.external import ExternalSort, write_rows
from gnnlab.partition.files import edge_folder, edge_type_name, file_name, make_config, node_folder
from gnnlab.partition.partition import check_type_names, parts_progress, write_part
from gnnlab.partition.writer import PartitionWriter
from gnnlab.random import generator
from gnnlab.system.bars import progress_bar
from gnnlab.system.staging import staging_folder

_METHODS = ("ldg", "random")
_REMEDY = "pass scratch= with a folder on another disk"
StrPath = str | os.PathLike[str]


def partition_files(
    edges: Any,
    num_nodes: int | Mapping[str, int],
    graph_name: str,
    num_parts: int,
    out_path: StrPath,
    num_hops: int = 1,
    part_method: Any = "ldg",
    balance_ntypes: Any = None,
    balance_edges: bool = False,
    node_data: Mapping[str, Any] | None = None,
    edge_data: Mapping[Any, Any] | None = None,
    chunk_edges: int = 4_000_000,
    scratch: StrPath | None = None,
    progress: bool = True,
) -> Path:
    """Cut a graph in files into parts, in bounded memory.

    Needs about 60 bytes a node, 100 bytes times ``chunk_edges`` and 40 bytes for each edge that
    touches the largest part; and on disk, temporarily, 30 bytes an edge beside the result.

    Parameters
    ----------
    edges : path, pair, list or dict
        A ``.npy`` file of shape (E, 2), a pair of ``.npy`` files ``(sources, destinations)`` of
        shape (E,), or a ``.csv`` or ``.csv.gz`` file of two columns; or a list of these, which are
        read one after another. Edge IDs count the edges in that order. For a typed graph, a
        dictionary: (source type, relation, destination type) → any of these.
    num_nodes : int or dict
        Number of nodes; of each type for a typed graph.
    graph_name, num_parts, out_path, num_hops
        As for :func:`partition_graph`.
    part_method : {"ldg", "random"} or array, dict, path
        An array or ``.npy`` file is the part of each node, shape (N,), integers; or by type.
    balance_ntypes, balance_edges
        As for :func:`partition_graph`.
    node_data, edge_data : dict, optional
        Feature name → ``.npy`` file with a row for each node or edge; by type, if typed.
    chunk_edges : int
        How many edges are in memory at a time.
    scratch : path, optional
        Folder for temporary files; by default beside the result.
    progress : bool
        Whether to show progress bars for steps that take longer than a second.

    Returns
    -------
    Path
        The JSON file.

    Raises
    ------
    PartitionError
        The files cannot be written; an older result is kept.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from gnnlab.partition import load_partition, partition_files
    >>> folder = tempfile.mkdtemp()
    >>> np.save(f"{folder}/edges.npy", np.array([[0, 1], [1, 2], [2, 3], [3, 0]]))
    >>> parts = [0, 1, 0, 1]
    >>> path = partition_files(f"{folder}/edges.npy", 4, "ring", 2, folder, part_method=parts)
    >>> load_partition(path, 1)[0].ndata["orig_id"]
    tensor([1, 3, 0, 2])
    """
    counts = dict(num_nodes) if isinstance(num_nodes, Mapping) else {"_N": num_nodes}
    counts = {ntype: counts[ntype] for ntype in sorted(counts)}
    sources = dict(edges) if isinstance(edges, Mapping) else {ONE_ETYPE: edges}
    sizes = {"num_parts": num_parts, "num_hops": num_hops, "chunk_edges": chunk_edges}
    _check(counts, sources, part_method, **sizes)
    if not isinstance(edges, Mapping):
        node_data, edge_data = {"_N": node_data or {}}, {ONE_ETYPE: edge_data or {}}
    node_files = open_features(node_data, counts, "node")
    with (
        PartitionWriter(out_path, graph_name, num_parts) as writer,
        writing(scratch or out_path, PartitionError, _REMEDY),
    ):
        # In the staging folder by default, so that it is removed with it.
        work = writer.staging / "scratch" if scratch is None else Path(scratch)
        work.mkdir(exist_ok=True)
        with staging_folder(work, f".{graph_name}-", ".scratch") as temporary:
            graph = EdgeFiles(temporary, counts, chunk_edges, progress)
            for etype in sorted(sources):
                graph.read(etype, sources[etype])
            edge_files = open_features(edge_data, graph.num_edges, "edge")
            part = _assign(graph, part_method, num_parts, balance_ntypes, balance_edges)
            warn_of_empty(part, num_parts)
            parts = dict(zip(counts, np.split(part, list(graph.first.values())[1:]), strict=True))
            nodes = {ntype: renumber_nodes(each, num_parts) for ntype, each in parts.items()}
            made = {t: _sort_edges(graph, t, nodes, edge_files.get(t, {})) for t in graph.num_edges}
            structures = {etype: structure for etype, (structure, _) in made.items()}
            renumbered = RenumberedGraph(nodes, structures)
            for part_id in parts_progress(num_parts, progress):
                write_part(writer, ({}, {}), renumbered, part_id, num_hops)
                for etype, (structure, features) in made.items():
                    lo, hi = renumbered.book.edge_ranges[etype][part_id : part_id + 2]
                    folder = edge_folder(part_id, "edge_data", etype)
                    for name, rows in features.items():
                        _save_edges(writer, folder, name, rows[lo:hi], chunk_edges)
                    release([structure.indices, structure.old])
            for ntype, files in node_files.items():
                for name, array in files.items():
                    _save_nodes(writer, ntype, parts[ntype], num_parts, name, array, chunk_edges)
            method = part_method if isinstance(part_method, str) else "custom"
            return writer.commit(make_config(graph_name, renumbered.book, method, num_hops))


def partition_tables(
    nodes: Mapping[str, NodeTable],
    edges: Mapping[EdgeType, EdgeTable],
    graph_name: str,
    num_parts: int,
    out_path: StrPath,
    *,
    duplicates: str = "error",
    unknown: str = "error",
    empty: str = "error",
    chunk_rows: int = 1_000_000,
    scratch: StrPath | None = None,
    **options: Any,
) -> tuple[Path, TableReport]:
    """Cut the graph of tables into parts; of the edges, only a chunk is in memory.

    The parts are those of ``partition_graph`` for :func:`gnnlab.data.graph_from_tables`.

    Parameters
    ----------
    nodes, edges, duplicates, unknown, empty
        As for :func:`gnnlab.data.graph_from_tables`. Nodes are read into memory. A table of edges
        may also be a list of files, which are read one after another. A data frame is one chunk.
    graph_name, num_parts, out_path, **options
        As for :func:`partition_files`.
    chunk_rows : int
        How many rows of a file are in memory at a time.
    scratch : path, optional
        Folder for temporary files; by default beside the result.

    Returns
    -------
    path : Path
        The JSON file.
    report : TableReport
        For :func:`append_partition`.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from gnnlab.data import EdgeTable, NodeTable
    >>> from gnnlab.partition import load_partition, partition_tables
    >>> folder = tempfile.mkdtemp()
    >>> calls = pd.DataFrame({"from": ["Chi", "Ana", "Dan"], "to": ["Ana", "Bo", "Bo"]})
    >>> calls.to_csv(f"{folder}/calls.csv", index=False)
    >>> path, report = partition_tables(
    ...     {"person": NodeTable({"name": ["Ana", "Bo", "Chi"]}, "name")},
    ...     {("person", "calls", "person"): EdgeTable(f"{folder}/calls.csv", "from", "to")},
    ...     "calls", 2, folder, part_method=[0, 1, 0], unknown="drop",
    ... )
    >>> print(report)
    calls: edges dropped, whose ends are in no table: 1
    >>> load_partition(path, 0)[0].ndata["orig_id"]
    tensor([0, 2, 1])
    """
    inspect.signature(partition_files).bind({}, {}, graph_name, num_parts, out_path, **options)
    sizes = {"num_parts": num_parts, "chunk_rows": chunk_rows}
    _check(dict.fromkeys(nodes, 0), edges, options.get("part_method"), **sizes)
    folder, report = Path(out_path if scratch is None else scratch), TableReport(empty=empty)
    check_name(graph_name)
    numbers = count()
    with writing(scratch or out_path, PartitionError, _REMEDY):
        folder.mkdir(parents=True, exist_ok=True)
        with staging_folder(folder, f".{graph_name}-", ".tables") as work:
            reader = TableReader(
                report,
                duplicates,
                unknown,
                rows=chunk_rows,
                make=lambda: _Column(work / f"{next(numbers)}.npy", chunk_rows),
            )
            rows, ends = reader.read(nodes, edges)
            path = partition_files(
                {etype: (src, dst) for etype, (src, dst, _) in ends.items()},
                {ntype: number for ntype, (number, _) in rows.items()},
                graph_name,
                num_parts,
                out_path,
                node_data={ntype: data for ntype, (_, data) in rows.items()},
                edge_data={etype: data for etype, (_, _, data) in ends.items()},
                scratch=work / "parts",
                **options,
            )
    return path, report


def _check(
    counts: Mapping[str, int], sources: Mapping[Any, Any], method: Any, **numbers: int
) -> None:
    for name, value in (*counts.items(), *numbers.items()):
        is_count = name in counts
        whole_number(value, f"num_nodes of type {name!r}" if is_count else name, int(not is_count))
    if not sources:
        raise InvalidInput("edges must have at least one edge type; found an empty dictionary")
    for etype in sources:
        if not isinstance(etype, tuple) or len(etype) != 3:
            raise InvalidInput(
                f"an edge type is (source type, relation, destination type); found {etype!r}"
            )
        for ntype in (etype[0], etype[2]):
            if ntype not in counts:
                raise NotFound(f"nodes or num_nodes lacks type {ntype!r} of the edges {etype!r}")
    check_type_names([*counts, *(etype[1] for etype in sources)])
    if isinstance(method, str) and method not in _METHODS and not method.endswith(".npy"):
        raise InvalidInput(
            f"unknown part_method {method!r}; from files there are {describe(_METHODS)}, or pass "
            "the part of each node as an array (METIS needs the graph in memory: partition_graph)"
        )


def _assign(
    graph: EdgeFiles, method: Any, num_parts: int, balance_ntypes: Any, balance_edges: bool
) -> np.ndarray:
    """The part of each node, shape (N,), int32."""
    if isinstance(method, os.PathLike) or (isinstance(method, str) and method.endswith(".npy")):
        method = open_npy(method)
    if not isinstance(method, str):
        return check_assignment(method, graph.counts, num_parts)
    classes = classes_of(graph.counts, balance_ntypes)
    if method == "random":
        return assign_randomly(classes, num_parts)
    in_degrees = None
    if balance_edges:
        in_degrees = np.zeros(len(classes), np.int64)
        for (_, _, v), degrees in graph.into.items():
            in_degrees[graph.first[v] : graph.first[v] + len(degrees)] += degrees
    weights = weights_of(classes, num_parts, in_degrees)
    order = torch.randperm(len(classes), generator=generator()).numpy()
    neighbors = _sort_neighbors(graph, order)

    passes = progress_bar(None, graph.progress, desc="placing nodes", unit=" passes")

    def stream() -> Iterator[tuple[Any, ...]]:
        for first, indptr, near in neighbors.blocks("near"):
            yield np.arange(first, first + len(indptr) - 1), first, ((indptr, near),)
        passes.update()

    part = np.empty(len(order), np.int32)
    with passes:
        part[order] = assign_ldg(stream, weights[order], num_parts)
    neighbors.remove()
    fill_empty(part, num_parts)
    return part


def _sort_neighbors(graph: EdgeFiles, order: np.ndarray) -> ExternalSort:
    """Write the neighbors of each node to a file, nodes numbered by their position in ``order``."""
    rank = np.empty(len(order), ids_dtype(len(order)))
    rank[order] = np.arange(len(order))
    indptr = np.concatenate([[0], np.cumsum(graph.degrees[order])])
    rows = ExternalSort(graph.folder / "near", indptr, {"near": rank.dtype}, 2 * graph.chunk)
    for u, name, v in graph.num_edges:
        for _, src, dst in graph.chunks((u, name, v), graph.chunk, "sorting neighbors"):
            a, b = rank[src + graph.first[u]], rank[dst + graph.first[v]]
            rows.add(a, near=b)
            rows.add(b, near=a)
    rows.sort()
    return rows


def _sort_edges(
    graph: EdgeFiles,
    etype: EdgeType,
    nodes: Mapping[str, IDMap],
    features: Mapping[str, np.ndarray],
) -> tuple[Edges, dict[str, np.ndarray]]:
    """Sort edges, and their features, by new destination, all in files."""
    u, _, v = etype
    columns = {"src": nodes[u].new.dtype, "old": np.dtype(ids_dtype(graph.num_edges[etype]))}
    # Feature names may be invalid as file names.
    files = {f"feature{i}": array for i, array in enumerate(features.values())}
    columns |= {name: np.dtype((a.dtype, a.shape[1:])) for name, a in files.items()}
    width = sum(dtype.itemsize for dtype in columns.values())
    chunk = max(1, min(graph.chunk, 24 * graph.chunk // width))
    indptr = np.concatenate([[0], np.cumsum(graph.into[etype][nodes[v].old])])
    rows = ExternalSort(graph.folder / edge_type_name(etype), indptr, columns, chunk)
    for start, src, dst in graph.chunks(etype, chunk, "sorting edges"):
        stop = start + len(src)
        more = {name: np.array(array[start:stop]) for name, array in files.items()}
        rows.add(nodes[v].new[dst], src=nodes[u].new[src], old=np.arange(start, stop), **more)
        release(files.values())
    rows.sort()
    sorted_features = {name: rows.column(f) for name, f in zip(features, files, strict=True)}
    return Edges(indptr, rows.column("src"), rows.column("old")), sorted_features


def _save_nodes(
    writer: PartitionWriter,
    ntype: str,
    part: np.ndarray,
    num_parts: int,
    name: str,
    array: np.ndarray,
    block: int,
) -> None:
    """Read a feature once, front to back, and append each row to the file of its part."""
    dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
    sizes = np.bincount(part, minlength=num_parts)
    with ExitStack() as stack:
        files = []
        for part_id in range(num_parts):
            path = f"{node_folder(part_id, 'node_data', ntype)}/{file_name(name)}.npy"
            shape = (int(sizes[part_id]), *array.shape[1:])
            files.append(stack.enter_context(writer.open(path, shape, dtype)))
        step = max(1, 24 * block // max(array[:1].nbytes, 1))
        for start in range(0, len(array), step):
            ends, order = kernels.csc.group_by(part[start : start + step], None, num_parts)
            rows = torch.from_numpy(np.array(array[start : start + step])[order])
            release([array])
            for file, lo, hi in zip(files, ends[:-1], ends[1:], strict=True):
                file.write(rows[lo:hi])


def _save_edges(
    writer: PartitionWriter, folder: str, name: str, rows: np.ndarray, block: int
) -> None:
    """Copy consecutive rows of a sorted feature to the file of a part."""
    dtype = torch.from_numpy(np.empty(0, rows.dtype)).dtype
    with writer.open(f"{folder}/{file_name(name)}.npy", rows.shape, dtype) as file:
        step = max(1, 24 * block // max(rows[:1].nbytes, 1))
        for start in range(0, len(rows), step):
            file.write(torch.from_numpy(np.array(rows[start : start + step])))
            release([rows])


class _Column:
    """A ``.npy`` file that grows; its rows have one dtype."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.rows, self.count = path, rows, 0

    def append(self, values: np.ndarray) -> None:
        self.count, shape = self.count + len(values), values.shape[1:]
        self.cells = np.dtype((values.dtype, shape))
        header = {"descr": values.dtype.str, "fortran_order": False, "shape": (self.count, *shape)}
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)  # padded: its length stays
            self.start = file.tell()
            file.seek(0, os.SEEK_END)
            write_rows(file, values)

    def take(self, function: Callable[[np.ndarray], np.ndarray] | None = None) -> Path:
        with open(self.path, "r+b") as file:
            file.seek(self.start)
            while function and len(values := np.fromfile(file, self.cells, self.rows)):
                file.seek(-values.nbytes, os.SEEK_CUR)
                write_rows(file, function(values))
        return self.path
