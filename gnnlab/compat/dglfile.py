"""The binary files of DGL: graphs of ``save_graphs``, tensors of ``save_tensors``.

All numbers are little-endian and 8 bytes wide unless stated otherwise; a list is a count and its
items, a string a count and UTF-8 text. Nearly every object begins with a magic number of its type,
by which a reader detects a damaged file::

    tensor       magic, 0, device type and number, dimensions (4 bytes each), dtype (kind and bits:
                 1 byte each; lanes: 2 bytes), shape, number of bytes, values
    dictionary   list of (string, tensor)
    tensors      magic, count, dictionary

    graphs       magic, version 2, kind 2, number of graphs, padding up to byte 4096,
                 position of the first graph, dictionary of labels, the graphs,
                 length of the index in bytes, list of positions of the graphs, that length again
    graph        magic, types, list of relations, list of node counts,
                 list of dictionaries of node features, of edge features,
                 list of names of node types, of edge types
    types        magic, CSR matrix: node types are rows and columns, edge types are entries
    relation     magic, format that is stored, formats that are allowed, types, the matrix
    CSR          magic, columns, rows, row pointers, columns of entries, edge IDs, 1 byte
    COO          magic, columns, rows, rows of entries, columns of entries, edge IDs, 2 bytes

A list of edge IDs that is empty stands for 0, 1, 2 …. CSC is stored as the CSR matrix of the
reversed relation.

Files are not trusted: a count is compared with the remaining length of the file before memory is
allocated, and indices are checked before a graph is made of them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import torch

from gnnlab.errors import InvalidInput, reading
from gnnlab.graph import io
from gnnlab.graph.graph import Graph
from gnnlab.graph.relation import Adjacency, Relation, check_integers, checked_adjacency, narrow

Item = TypeVar("Item")

GRAPHS_MAGIC = struct.pack("<Q", 0xDD2E4FF046B4A13F)
TENSORS_MAGIC = struct.pack("<Q", 0xDD5A9FBE3FA2443F)
_TENSOR, _GRAPH, _TYPES = 0xDD5E40F096B4A13F, 0xDD589FBE35224ABF, 0xDD3C5FFE20046ABF
_RELATION, _COO, _CSR = 0xDD2E60F0F6B4A127, 0xDD61FFD305DFF127, 0xDD6CD31205DFF127
_VERSION, _TYPED_GRAPHS, _HEADER_BYTES = 2, 2, 4096
_TENSOR_BYTES = 40  # of a tensor without dimensions and values
_DTYPES = {
    (0, 8): torch.int8,
    (0, 16): torch.int16,
    (0, 32): torch.int32,
    (0, 64): torch.int64,
    (1, 8): torch.uint8,
    (2, 16): torch.float16,
    (2, 32): torch.float32,
    (2, 64): torch.float64,
    (4, 16): torch.bfloat16,
}
# If the upper four bytes are 1, formats are a bit mask; older files store one format's number.
_BITS = {1: "coo", 2: "csr", 4: "csc"}
_NUMBERS = {1: "coo", 2: "csr", 3: "csc"}


def load_graphs(
    filename: str | os.PathLike[str], idx_list: int | Iterable[int] | None = None
) -> tuple[list[Graph], dict[str, torch.Tensor]]:
    """Read a file that ``save_graphs`` of gnnlab or of DGL 2 wrote; see :func:`gnnlab.load_graphs`.

    DGL stores booleans as uint8, so they are returned as uint8.
    """
    with reading(filename), open(filename, "rb") as opened:
        is_of_dgl = opened.read(8) == GRAPHS_MAGIC
    return (read_graphs if is_of_dgl else io.load_graphs)(Path(filename), idx_list)


def read_graphs(
    path: Path, idx_list: int | Iterable[int] | None = None
) -> tuple[list[Graph], dict[str, torch.Tensor]]:
    """Read a file of DGL's ``save_graphs``."""
    with open(path, "rb") as stream:
        file = _File(stream)
        with _as_invalid_input(path, "save_graphs"):
            file.expect(int.from_bytes(GRAPHS_MAGIC, "little"), "header")
            version, kind, count = file.numbers("3Q")
        if (version, kind) != (_VERSION, _TYPED_GRAPHS):
            raise InvalidInput(
                f"{path}: expected version {_VERSION}, kind {_TYPED_GRAPHS} of DGL's format; found "
                f"version {version}, kind {kind}. Load it with DGL 2 and save it again"
            )
        with _as_invalid_input(path, "save_graphs"):
            positions = _positions(file, count)
        wanted = io.read_wanted(idx_list, count, path)
        with _as_invalid_input(path, "save_graphs"):
            file.seek(_HEADER_BYTES + 8)
            labels = file.dictionary()
            graphs = []
            for i in wanted:
                file.seek(positions[i])
                graphs.append(_graph(file))
    return graphs, labels


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read a file of DGL's ``save_tensors``."""
    with open(path, "rb") as stream, _as_invalid_input(path, "save_tensors"):
        file = _File(stream)
        file.expect(int.from_bytes(TENSORS_MAGIC, "little"), "header")
        count, tensors = file.number(), file.dictionary()
        if len(tensors) != count:
            raise ValueError(f"{count} tensors are announced, {len(tensors)} are there")
    return tensors


@contextmanager
def _as_invalid_input(path: Path, writer: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, RuntimeError, OverflowError, MemoryError) as error:
        raise InvalidInput(
            f"{path} is damaged, or not a file that DGL's {writer} wrote; copy it again ({error})"
        ) from error


# ------------------------------------------------------------------- elements of the format
class _File:
    """Reader of the elements of the format; raises an error at the end of the file."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.size = os.fstat(stream.fileno()).st_size

    def seek(self, position: int) -> None:
        if not 0 <= position <= self.size:
            raise ValueError(f"it points to byte {position} of {self.size}")
        self._stream.seek(position)

    def _claim(self, size: int) -> int:
        """Return ``size`` if as many bytes remain; raise ValueError otherwise."""
        left = self.size - self._stream.tell()
        if not 0 <= size <= left:
            raise ValueError(f"{size} bytes should follow where {left} are left")
        return size

    def numbers(self, form: str) -> tuple[int, ...]:
        """Numbers in the notation of ``struct``."""
        return struct.unpack(
            "<" + form, self._stream.read(self._claim(struct.calcsize("<" + form)))
        )

    def number(self) -> int:
        return self.numbers("Q")[0]

    def expect(self, magic: int, what: str) -> None:
        place, found = self._stream.tell(), self.number()
        if found != magic:
            raise ValueError(f"byte {place} does not begin a {what}")

    def items(self, item: Callable[[], Item], least: int) -> list[Item]:
        """Read a list whose items have at least so many bytes each."""
        count = self.number()
        self._claim(count * least)
        return [item() for _ in range(count)]

    def text(self) -> str:
        return self._stream.read(self._claim(self.number())).decode("utf8")

    def tensor(self) -> torch.Tensor:
        self.expect(_TENSOR, "tensor")
        *_, dims, kind, bits, lanes = self.numbers("Q3I2BH")
        shape = self.numbers(f"{self._claim(dims * 8) // 8}q")
        size = self._claim(self.number())
        dtype = _DTYPES.get((kind, bits))
        if dtype is None or lanes != 1:
            raise ValueError(f"a tensor of kind {kind}, {bits} bits, {lanes} lanes is not read")
        items, rest = divmod(size, dtype.itemsize)
        values = torch.empty(items, dtype=dtype)
        if rest or min(shape, default=0) < 0:
            raise ValueError(f"a tensor of shape {shape} has {size} bytes")
        if self._stream.readinto(values.view(torch.uint8).numpy().data) != size:
            raise ValueError("the file became shorter while it was read")
        return values.reshape(shape)

    def dictionary(self) -> dict[str, torch.Tensor]:
        return dict(self.items(lambda: (self.text(), self.tensor()), 8 + _TENSOR_BYTES))


def _positions(file: _File, count: int) -> list[int]:
    """Return the position of each graph, from the index at the end: length, positions, length."""
    file.seek(max(file.size - 8, 0))
    length = file.number()
    file.seek(file.size - 16 - length)
    if file.number() != length or length != 8 + 8 * count:
        raise ValueError(f"it does not end in an index of {count} graphs")
    return file.items(file.number, 8)


def _csr(file: _File) -> tuple[Adjacency, int]:
    """Return an adjacency of rows, and the number of columns."""
    file.expect(_CSR, "CSR matrix")
    columns, rows = file.numbers("QQ")
    indptr, indices, eids = file.tensor(), file.tensor(), file.tensor()
    file.numbers("B")  # whether columns ascend
    given = eids if len(eids) else None
    return checked_adjacency(rows, columns, indptr.long(), indices, given), columns


def _types(file: _File) -> list[tuple[int, int]]:
    """Return source type and destination type of each edge type, as positions."""
    file.expect(_TYPES, "table of types")
    adjacency, columns = _csr(file)
    rows = len(adjacency.indptr) - 1
    src, dst = Relation(rows, columns, csr=adjacency).coo()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def _relation(file: _File) -> tuple[Relation, list[str] | None, torch.dtype]:
    """Return one relation, the formats that it may have (None: all), and the dtype of its IDs."""
    file.expect(_RELATION, "relation")
    (stored, is_new), (allowed, is_restricted) = file.numbers("2I"), file.numbers("2I")
    kind = (_BITS if is_new else _NUMBERS).get(stored)
    formats = [name for bit, name in _BITS.items() if allowed & bit] if is_restricted else None
    if kind is None or (formats is not None and kind not in formats):
        raise ValueError(f"unknown sparse format {stored} (allowed: {allowed})")
    _types(file)  # of this relation alone: one or two node types
    if kind == "coo":
        file.expect(_COO, "COO matrix")
        num_dst, num_src = file.numbers("QQ")
        src, dst, eids = file.tensor(), file.tensor(), file.tensor()
        file.numbers("BB")  # whether rows and columns ascend
        check_integers(src)
        check_integers(dst)
        if len(eids):
            raise ValueError("edges of a COO matrix that are out of order are not read")
        idtype = src.dtype
        relation = Relation.from_edges(src, dst, num_src, num_dst)
    else:
        adjacency, columns = _csr(file)
        idtype, rows = adjacency.indices.dtype, len(adjacency.indptr) - 1
        # Convert to an edge list: grouping it again sorts the edges of a row by ID.
        of_rows = Relation(rows, columns, csr=adjacency).coo()
        src, dst = (narrow(x, n) for x, n in zip(of_rows, (rows, columns), strict=True))
        relation = Relation(rows, columns, (src, dst))
        relation = relation if kind == "csr" else relation.reverse()
        if formats is not None and "coo" not in formats:
            relation = relation.only([kind])
    return relation, None if formats == list(_BITS.values()) else formats, idtype


def _graph(file: _File) -> Graph:
    file.expect(_GRAPH, "graph")
    ends = _types(file)
    found = file.items(lambda: _relation(file), 8)
    counts = file.items(file.number, 8)
    node_data, edge_data = (file.items(file.dictionary, 8) for _ in range(2))
    ntypes, names = (file.items(file.text, 8) for _ in range(2))
    sizes = dict(zip(ntypes, counts, strict=True))
    relations = {}
    for (src, dst), name, (relation, _, _) in zip(ends, names, found, strict=True):
        etype = ntypes[src], name, ntypes[dst]
        if (relation.num_src, relation.num_dst) != (counts[src], counts[dst]):
            raise ValueError(f"nodes of {etype} are counted in two ways")
        relations[etype] = relation
    if len(sizes) != len(ntypes) or len(relations) != len(names) or max(counts, default=0) >> 62:
        raise ValueError("types are named twice, or have too many nodes")
    _, formats, idtype = found[0] if found else (None, None, torch.int64)
    g = Graph(sizes, relations, idtype=idtype)
    for ntype, columns in zip(ntypes, node_data, strict=True):
        g.node_frames()[ntype].update(columns)
    for etype, columns in zip(relations, edge_data, strict=True):
        g.edge_frames[etype].update(columns)
    return g if formats is None else g.formats(formats)
