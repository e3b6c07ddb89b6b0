"""Edges and features in files.

Edges are given as ``.npy`` or CSV files. They are read once, validated, counted, and copied to raw
files of IDs, which later steps read chunk by chunk.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.data.table import integer_chunks
from gnnlab.errors import InvalidInput, NotFound, OutOfRange, check_file
from gnnlab.graph.names import EdgeType, describe
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.partition.external import write_rows
from gnnlab.partition.files import edge_type_name
from gnnlab.system.bars import progress_bar

StrPath = str | os.PathLike[str]


class EdgeFiles:
    """Validated edges in raw files, and the degree of each node.

    By node type, ``counts`` are the numbers of nodes, and ``first`` the homogeneous IDs of the
    first ones; by edge type, ``num_edges`` are the numbers of edges, and ``into`` the in-degrees,
    shape (N_dst,), int64. ``degrees`` counts in- and out-edges of all nodes, shape (N,).
    """

    def __init__(self, folder: Path, counts: dict[str, int], chunk: int, progress: bool) -> None:
        self.folder, self.counts, self.chunk, self.progress = folder, counts, chunk, progress
        # numpy integers of 64 bits: added to int32 IDs they give int64 ones.
        starts = np.cumsum([0, *counts.values()])
        self.first = dict(zip(counts, starts, strict=False))
        self.degrees = np.zeros(starts[-1], np.int64)
        self.num_edges: dict[EdgeType, int] = {}
        self.into: dict[EdgeType, np.ndarray] = {}

    def read(self, etype: EdgeType, source: Any) -> None:
        """Check the edges of one type and copy them."""
        ends = etype[0], etype[2]
        into = self.into[etype] = np.zeros(self.counts[ends[1]], np.int64)
        with ExitStack() as stack:
            files = [stack.enter_context(open(path, "wb")) for path in self._paths(etype)]
            for where, pair in _edge_chunks(
                source, self.chunk, max(self.counts.values()), self.progress
            ):
                np.add.at(into, self._checked(pair[1], ends[1], where), 1)
                for ids, ntype, file in zip(pair, ends, files, strict=True):
                    np.add.at(self.degrees, self._checked(ids, ntype, where) + self.first[ntype], 1)
                    write_rows(file, ids.astype(ids_dtype(self.counts[ntype])))
        self.num_edges[etype] = int(into.sum())

    def _paths(self, etype: EdgeType) -> list[Path]:
        name = edge_type_name(etype)
        return [self.folder / f"{name}.{end}" for end in ("src", "dst")]

    def _checked(self, ids: np.ndarray, ntype: str, where: str) -> np.ndarray:
        count = self.counts[ntype]
        wrong = ids[(ids < 0) | (ids >= count)]
        if len(wrong):
            raise OutOfRange(
                f"{where}: node {wrong[0]} does not exist: num_nodes says that type {ntype!r} has "
                f"nodes 0 to {count - 1}"
            )
        return ids

    def chunks(
        self, etype: EdgeType, rows: int, what: str
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield the ID of the first edge, the sources and the destinations of each chunk."""
        total = self.num_edges[etype]
        bar = progress_bar(None, self.progress, total=total, desc=what, unit_scale=True)
        with bar, ExitStack() as stack:
            files = [stack.enter_context(open(path, "rb")) for path in self._paths(etype)]
            dtypes = [ids_dtype(self.counts[ntype]) for ntype in (etype[0], etype[2])]
            for start in range(0, total, rows):
                src, dst = (np.fromfile(f, d, rows) for f, d in zip(files, dtypes, strict=True))
                yield start, src, dst
                bar.update(len(src))


def _edge_chunks(
    source: Any, rows: int, below: int, progress: bool
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Yield the name of the file, and sources and destinations of some edges."""
    if isinstance(source, list):
        for each in source:
            yield from _edge_chunks(each, rows, below, progress)
    elif isinstance(source, tuple):
        pair = [open_npy(path) for path in source]
        if len(pair) != 2 or pair[0].ndim != 1 or pair[0].shape != pair[1].shape:
            raise InvalidInput(
                f"{source}: found arrays of shapes {[a.shape for a in pair]}; expected two of "
                "shape (E,), sources and destinations"
            )
        yield from _integers(f"{source[0]} and {source[1]}", pair, rows)
    elif _path(source).suffix == ".npy":
        array = open_npy(source)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InvalidInput(f"{source}: found shape {array.shape}; expected (E, 2)")
        yield from _integers(str(source), [array[:, 0], array[:, 1]], rows)
    elif _path(source).suffix == ".parquet":
        raise InvalidInput(
            f"{source}: expected .npy files, or .csv files of two columns of integers. Tables with "
            "keys are read by gnnlab.partition.partition_tables"
        )
    else:
        for table in integer_chunks(source, 2, below=below, progress=progress):
            for start in range(0, len(table), rows):
                part = table[start : start + rows]
                yield str(source), (part[:, 0], part[:, 1])


def _integers(
    where: str, pair: Sequence[np.ndarray], rows: int
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    if any(array.dtype.kind not in "iu" for array in pair):
        raise InvalidInput(f"{where}: found {pair[0].dtype} and {pair[1].dtype}; expected integers")
    for start in range(0, len(pair[0]), rows):
        src, dst = (np.array(array[start : start + rows], np.int64) for array in pair)
        release(pair)
        yield where, (src, dst)


def open_npy(path: StrPath) -> np.ndarray:
    """Map a ``.npy`` file into memory, read only; raises InvalidInput if it is none."""
    file = _path(path)
    check_file(file, "give the path of a .npy file")
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
        if not isinstance(found, np.ndarray):
            raise ValueError("it is an archive of several arrays")
        return found
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"{path} is not a .npy file that can be read ({error})") from error


def _path(source: Any) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise InvalidInput(
            f"expected the path of a file; found {type(source).__name__}; use "
            "partition_graph for a graph in memory"
        )
    return Path(source)


def release(arrays: Iterable[np.ndarray]) -> None:
    """Release the memory of mapped files; pages are read again on the next access."""
    for array in arrays:
        while isinstance(array.base, np.ndarray):
            array = array.base
        if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            array.base.madvise(mmap.MADV_DONTNEED)


def open_features(
    given: Mapping[Any, Any] | None, counts: Mapping[Any, int], what: str
) -> dict[Any, dict[str, np.ndarray]]:
    """Map feature files into memory and check that each has a row for each node or edge."""
    found: dict[Any, dict[str, np.ndarray]] = {}
    for kind, files in (given or {}).items():
        if kind not in counts:
            raise NotFound(f"{what}_data names type {kind!r}; there are {describe(counts)}")
        found[kind] = {name: open_npy(path) for name, path in files.items()}
        for name, array in found[kind].items():
            if array.ndim == 0 or len(array) != counts[kind]:
                raise InvalidInput(
                    f"{files[name]}: found shape {array.shape}; expected a row for each of the "
                    f"{counts[kind]} {what}s of type {kind!r}"
                )
            try:
                torch.from_numpy(np.empty(0, array.dtype))
            except (TypeError, ValueError) as error:  # the latter: bytes in the other order
                raise InvalidInput(f"{files[name]}: {array.dtype} cannot be stored") from error
    return found
