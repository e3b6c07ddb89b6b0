"""A partitioned graph on disk: arrays that can be memory-mapped, and a JSON file that lists them.

``<graph_name>.json`` holds the ID ranges of the parts and lists every array with its size and
checksum; ``part0/``, ``part1/`` … hold one ``.npy`` file an array. Opening a part reads no data:
the system loads pages on access, and several processes share them.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange, PartitionError, check_file, file_error, reading
from gnnlab.graph.names import EdgeType, check_name
from gnnlab.kernels.dtypes import numpy_dtype, read_dtype
from gnnlab.partition.book import GraphPartitionBook

_LONGEST = 230  # bytes of a quoted name; a file's name has at most 255
_MOST_IDS = 1 << 56  # so that sums of sizes never overflow
_MOST_DIMENSIONS = 64  # numpy's limit
FORMAT, VERSION = "gnnlab-partition", 1
JSON_ENTRIES = {"graph": "part_graph", "node_data": "node_feats", "edge_data": "edge_feats"}


# ------------------------------------------------------------------------------------ names
def node_folder(part_id: int, kind: str, ntype: str) -> str:
    """Return the folder of a part for a node type; ``kind`` is graph or node_data."""
    return f"part{part_id}/{kind}/" + ("nodes/" if kind == "graph" else "") + file_name(ntype)


def edge_folder(part_id: int, kind: str, etype: EdgeType) -> str:
    """Return the folder of a part for an edge type; ``kind`` is graph or edge_data."""
    middle = "edges/" if kind == "graph" else ""
    return f"part{part_id}/{kind}/{middle}" + edge_type_name(etype)


def edge_type_name(etype: EdgeType) -> str:
    """Quote an edge type for use in a path; the type is never parsed back from it."""
    name = ":".join(etype)
    if len(quote(name)) > _LONGEST:  # each of the three names may be long
        name = f"{name[:12]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return file_name(name)


def file_name(name: str) -> str:
    """Quote a type or feature name for use in a path; the result cannot leave the folder."""
    quoted = quote(name, safe="").replace(".", "%2E") or "%"
    if len(quoted) > _LONGEST:  # keep letters of other scripts unquoted: 3 bytes, not 9
        quoted = "".join(c if ord(c) > 0xA0 else quote(c, safe=" +,;=@!$&'()[]{}") for c in name)
        quoted = quoted.replace(".", "%2E")
    if (size := len(quoted.encode())) > _LONGEST:
        raise InvalidInput(
            f"the name {name!r} takes {size} bytes as the name of a file; the limit is {_LONGEST}. "
            "Use a shorter name"
        )
    return quoted


def unquote_name(name: str) -> str:
    """Undo :func:`file_name`."""
    return "" if name == "%" else unquote(name)


# -------------------------------------------------------------------------------- JSON file
def make_config(
    graph_name: str, book: GraphPartitionBook, part_method: str, num_hops: int
) -> dict[str, Any]:
    """Return the content of the JSON file, without the parts' folders and the list of arrays."""
    nodes, edges = book.node_ranges, book.edge_ranges
    node_counts = {ntype: int(offsets[-1]) for ntype, offsets in nodes.items()}
    edge_counts = {":".join(etype): int(offsets[-1]) for etype, offsets in edges.items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph_name": graph_name,
        "num_nodes": sum(node_counts.values()),
        "num_edges": sum(edge_counts.values()),
        "part_method": part_method,
        "num_parts": book.num_partitions(),
        "halo_hops": num_hops,
        "node_map": book._nodes.map(),
        "edge_map": {":".join(etype): ranges for etype, ranges in book._edges.map().items()},
        "ntypes": {ntype: i for i, ntype in enumerate(nodes)},
        "etypes": {":".join(etype): i for i, etype in enumerate(edges)},
        "node_counts": node_counts,
        "edge_counts": edge_counts,
    }


@dataclass(frozen=True)
class ArrayInfo:
    """Entry of one array in the JSON file."""

    file: Path
    dtype: torch.dtype
    shape: tuple[int, ...]
    bytes: int
    sha256: str


@dataclass(frozen=True)
class PartConfig:
    """Parsed content of the JSON file."""

    path: Path
    graph_name: str
    part_method: str
    num_parts: int
    halo_hops: int
    node_ranges: dict[str, np.ndarray]  # as in GraphPartitionBook
    edge_ranges: dict[EdgeType, np.ndarray]
    arrays: list[dict[str, ArrayInfo]]  # of each part: path of an array in the JSON file → entry

    def book(self, part_id: int) -> GraphPartitionBook:
        """Return the partition book, read from one part."""
        return GraphPartitionBook(part_id, self.node_ranges, self.edge_ranges)


def read_config(
    part_config: str | os.PathLike[str], graph_name: str | None = None, num_parts: int | None = None
) -> PartConfig:
    """Read and check the JSON file of a partitioned graph, which must have this name and parts."""
    if not isinstance(part_config, str | os.PathLike):
        raise PartitionError(
            "expected the path of the JSON file that partition_graph wrote, graph_name.json; found "
            f"{part_config!r:.80}"
        )
    path = Path(part_config)
    try:
        if path.exists():
            check_file(path, "give the JSON file of a partitioned graph", PartitionError)
        content = json.loads(path.read_text("utf-8-sig"))
        if "format" not in content and "part_graph" in content.get("part-0", {}):
            raise PartitionError(
                f"{path} was written by DGL. Make a partition of gnnlab from it: gnnlab "
                f"convert_partition --part-config {path} --output FOLDER"
            )
        found = content.get("format"), content.get("version")
        if found != (FORMAT, VERSION):
            raise PartitionError(
                f"{path}: expected format {FORMAT!r}, version {VERSION}; found {found[0]!r}, "
                f"version {found[1]!r}. Partition the graph again with this gnnlab"
            )
        config = _parse(path, content)
    except PartitionError:
        raise
    except OSError as error:
        raise file_error(error, path, kind=PartitionError) from error
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        MemoryError,
        RecursionError,
    ) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise PartitionError(
            f"{path} is damaged ({what}); copy it again from where it was made"
        ) from error
    for what, wanted, has in (
        ("graph", graph_name, config.graph_name),
        ("number of parts", num_parts, config.num_parts),
    ):
        if wanted not in (None, has):
            raise PartitionError(f"{path}: expected {what} {wanted!r}, found {has!r}")
    return config


def _parse(path: Path, content: Mapping[str, Any]) -> PartConfig:
    num_parts = _integer(content["num_parts"], "num_parts", 1)
    listed = {key for key in content if key.startswith("part-")}
    if len(listed) != num_parts or listed != {f"part-{i}" for i in range(num_parts)}:
        found = ", ".join(sorted(listed)[:5]) or "none"
        raise ValueError(f"num_parts is {num_parts}, but the parts listed are {found}")
    folders = {
        (f"part{i}", kind): _relative(content[f"part-{i}"][entry])
        for i in range(num_parts)
        for kind, entry in JSON_ENTRIES.items()
    }
    arrays: list[dict[str, ArrayInfo]] = [{} for _ in range(num_parts)]
    files = set()
    for name, about in content["arrays"].items():
        part, kind, rest = name.split("/", 2)
        file = path.parent / folders[part, kind] / _relative(rest)
        if file.suffix != ".npy" or file in files:
            raise ValueError(f"array {name!r} is not a .npy file of its own")
        files.add(file)
        arrays[int(part.removeprefix("part"))][name] = ArrayInfo(
            file,
            read_dtype(about["dtype"]),
            _shape(about["shape"]),
            _integer(about["bytes"], "the size of an array"),
            str(about["sha256"]),
        )
    ntypes, etypes = sort_types(content["ntypes"]), sort_types(content["etypes"])
    triples = {name: tuple(name.split(":")) for name in etypes}
    for name, triple in triples.items():
        if len(triple) != 3 or not {triple[0], triple[2]} <= set(ntypes):
            raise ValueError(f"edge type {name!r} is not source:relation:destination of the graph")
    return PartConfig(
        path,
        check_name(content["graph_name"]),
        str(content["part_method"]),
        num_parts,
        _integer(content["halo_hops"], "halo_hops", 1),
        read_offsets(content, "node", {name: name for name in ntypes}),
        read_offsets(content, "edge", triples),
        arrays,
    )


def _integer(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 1 << 63:
        raise ValueError(f"{what} is {str(value)[:40]}")
    return value


def _shape(sizes: Any) -> tuple[int, ...]:
    if not isinstance(sizes, list) or len(sizes) > _MOST_DIMENSIONS:
        raise ValueError(f"the shape of an array is {str(sizes)[:40]}")
    return tuple(_integer(size, "a size of an array") for size in sizes)


def _relative(name: Any) -> PurePosixPath:
    """Return a path below the folder of the JSON file; symbolic links are not resolved."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in str(path):
        raise ValueError(f"{name!r} is not a path below the folder of the JSON file")
    return path


def check_inside(config: PartConfig, file: Path) -> None:
    """Refuse an array that a symbolic link takes out of the folder of the JSON file."""
    real = file.resolve()
    if not real.is_relative_to(config.path.parent.resolve()):
        raise PartitionError(
            f"{file} is a link to {real}, outside of the folder of {config.path}; copy the file "
            "into the folder, or partition the graph again"
        )


def sort_types(ids: Mapping[str, int]) -> list[str]:
    """Return type names, ordered by ID; other programs may have sorted the file."""
    if any(type(each) is not int for each in ids.values()) or (
        sorted(ids.values()) != list(range(len(ids)))
    ):
        raise ValueError(f"types are not numbered from 0: {str(ids)[:200]}")
    return sorted(ids, key=ids.__getitem__)


def read_offsets(content: Mapping[str, Any], what: str, kinds: Mapping[str, Any]) -> dict[Any, Any]:
    """Compute type-wise offsets from the homogeneous ranges, which must be contiguous."""
    given = content[f"{what}_map"]
    table = np.array([given[key] for key in kinds])
    if table.shape != (len(given), content["num_parts"], 2) or table.dtype.kind not in "iu":
        raise ValueError(f"{what}_map must have one ID range for each type and part")
    table = table.astype(np.int64)
    if (table < 0).any() or (table > _MOST_IDS).any():
        raise ValueError(f"{what}_map has IDs below 0 or above {_MOST_IDS}")
    sizes = table[:, :, 1] - table[:, :, 0]
    ends = np.cumsum(sizes.T).reshape(sizes.T.shape).T
    counts = content[f"{what}_counts"]
    if (sizes < 0).any() or (table[:, :, 1] != ends).any():
        raise ValueError(f"the ranges of {what}_map do not follow one another")
    if [counts[key] for key in kinds] != sizes.sum(1).tolist():
        raise ValueError(f"{what}_map and {what}_counts disagree")
    offsets = np.pad(np.cumsum(sizes, 1), ((0, 0), (1, 0)))
    return {kind: offsets[i] for i, kind in enumerate(kinds.values())}


# ------------------------------------------------------------------------------- the arrays
def open_arrays(
    config: PartConfig, part_id: int, wanted: Callable[[str], bool], verify: bool = True
) -> dict[str, torch.Tensor]:
    """Map the wanted arrays of one part into memory; with ``verify``, compare checksums.

    Writes to the tensors stay in memory and never reach the files.
    """
    if not hasattr(part_id, "__index__") or not 0 <= part_id < config.num_parts:
        raise OutOfRange(
            f"part {part_id!r} does not exist: {config.path} has parts 0 to {config.num_parts - 1}"
        )
    arrays = {path: info for path, info in config.arrays[part_id].items() if wanted(path)}
    for info in arrays.values():
        check_inside(config, info.file)
        size = info.file.stat().st_size if info.file.is_file() else None
        if size != info.bytes:
            state = "is missing" if size is None else f"has {size} bytes, expected {info.bytes}"
            raise PartitionError(
                f"{info.file} {state}; copy it again from where {config.path} was made"
            )
    if verify:
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            digests = pool.map(_digest, [info.file for info in arrays.values()])
            for info, digest in zip(arrays.values(), digests, strict=True):
                if digest != info.sha256:
                    raise PartitionError(
                        f"{info.file} is not the file that {config.path} describes (its checksum "
                        "differs); copy both again from one folder, or partition the graph again"
                    )
    return {path: _map(info) for path, info in arrays.items()}


def _digest(file: Path) -> str:
    with reading(file, PartitionError), open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _map(info: ArrayInfo) -> torch.Tensor:
    try:
        with open(info.file, "rb") as file:
            version = np.lib.format.read_magic(file)
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
            expected = numpy_dtype(info.dtype)
            if (version, shape, by_column, dtype) != ((1, 0), info.shape, False, expected):
                raise ValueError(f"found {dtype} of shape {shape}")
            if (size := info.bytes - file.tell()) != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"found {size} bytes after the header")
            array = np.ndarray(shape, dtype, _copy_on_write(file.fileno()), file.tell())
    except Exception as error:  # of any class: numpy evaluates the header as Python
        raise PartitionError(
            f"{info.file} does not hold {info.dtype} of shape {info.shape} ({error})"
        ) from error
    return torch.from_numpy(array).view(info.dtype)


def _copy_on_write(descriptor: int) -> mmap.mmap:
    if sys.platform != "linux":
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    # Without this flag Linux refuses to map a file that is larger than memory for writing.
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
    return mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE | no_reserve, mmap.PROT_READ | mmap.PROT_WRITE)
