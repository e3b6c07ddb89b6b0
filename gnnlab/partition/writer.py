"""Atomic writing of a partitioned graph.

A result is written to new folders, ``part0/`` … if these names are free, else ``part0-papers/``
… with the graph's name. The JSON file is written last; renaming it atomically replaces an older
result, whose folders are then removed. If that frees ``part0/`` …, the new files are linked there,
a second JSON file lists these folders, and the first ones are removed.

The staging folder ``.<graph_name>-….draft`` is locked while the writing process runs. It holds the
new JSON file and the list ``claims``: folders to be removed unless a JSON file lists them. The next
writer in the same folder removes those of killed processes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, PartitionError, writing
from gnnlab.graph.names import check_name
from gnnlab.kernels.dtypes import dtype_name, numpy_dtype, numpy_view
from gnnlab.partition.files import JSON_ENTRIES, ArrayInfo
from gnnlab.system.staging import locked, replacing, try_lock

_BLOCK = 1 << 24  # bytes that are gathered, hashed and written at a time
_PENDING = 1 << 29  # bytes that may wait for a writing thread
_WRITERS = 4  # each gathers with all threads that torch has
_DGL_FILES = ("graph.dgl", "node_feat.dgl", "edge_feat.dgl")
_PART = re.compile(r"part[0-9]+(-|$)")  # names of the folders of parts, ours and DGL's
_STAGING = ".draft"


class ArrayFile:
    """One ``.npy`` file that is written and hashed block by block.

    Values of dtypes that numpy lacks are stored as integers of the same width.
    """

    def __init__(self, file: BinaryIO, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.shape, self.dtype = shape, dtype
        kind = numpy_dtype(dtype)
        self._left = kind.itemsize * int(np.prod(shape, dtype=object))
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": kind.str, "fortran_order": False, "shape": shape}
        )
        self._put(header.getvalue())

    def _put(self, block: Any) -> None:
        self._file.write(block)
        self._hash.update(block)

    def write(self, rows: torch.Tensor) -> None:
        """Append rows of the declared dtype and width."""
        data = numpy_view(rows.detach().cpu().contiguous()).numpy().reshape(-1).view(np.uint8)
        for lo in range(0, len(data), _BLOCK):
            self._put(data[lo : lo + _BLOCK])
        self._left -= len(data)

    def finish(self) -> dict[str, Any]:
        """Flush the file to disk and return its entry for the JSON file."""
        if self._left:
            raise InvalidInput(f"{self._left} bytes are missing of an array of shape {self.shape}")
        self._file.flush()
        os.fsync(self._file.fileno())
        return {
            "dtype": dtype_name(self.dtype),
            "shape": list(self.shape),
            "bytes": self._file.tell(),
            "sha256": self._hash.hexdigest(),
        }


class PartitionWriter:
    """Write a partitioned graph atomically, to the folder of its JSON file, which is created.

    Threads hash and write arrays. Leaving the block without :meth:`commit` changes nothing.
    """

    def __init__(self, out_path: str | os.PathLike[str], graph_name: str, num_parts: int) -> None:
        self.folder, self.graph_name = Path(out_path), check_name(graph_name)
        self._num_parts = num_parts
        self._arrays: dict[str, dict[str, Any]] = {}
        self._waiting: deque[tuple[Future[None], int]] = deque()

    def __enter__(self) -> PartitionWriter:
        """Clean up after killed processes, and create the new folders."""
        with writing(self.folder, PartitionError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder):
                _clean_up_killed(self.folder)
                prefix = f".{self.graph_name}-"
                self.staging = Path(tempfile.mkdtemp(_STAGING, prefix, self.folder))
                self._lock = try_lock(self.staging)
                try:
                    self._folders = _free_names(self.folder, self.graph_name, self._num_parts)
                    _record_folders(self.staging, self._folders)
                    for name in self._folders:
                        (self.folder / name).mkdir()
                except BaseException:
                    self._remove_staging()
                    raise
        workers = min(torch.get_num_threads(), _WRITERS)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="partition")
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the staging folder, and the new folders unless they were committed."""
        self._pool.shutdown(cancel_futures=True)
        with suppress(OSError), locked(self.folder):
            self._remove_staging()

    def _remove_staging(self) -> None:
        try:
            _clean_up(self.staging)
        finally:
            if self._lock is not None:
                os.close(self._lock)

    @contextmanager
    def open(self, path: str, shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[ArrayFile]:
        """Open an array for writing block by block.

        ``path`` is that in the JSON file: ``part0/graph/…``, whatever the part's folder is called.
        """
        target = self._target(path)
        with writing(target, PartitionError):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "xb") as file:
                array = ArrayFile(file, shape, dtype)
                yield array
                self._arrays[path] = array.finish()

    def save(self, path: str, values: Any, rows: torch.Tensor | None = None) -> None:
        """Queue an array, or some rows of it, for writing; it must not change until commit."""
        values = values if isinstance(values, torch.Tensor) else torch.from_numpy(values)
        count = len(values) if rows is None else len(rows)
        step = max(_BLOCK // max(values[:1].nbytes, 1), 1)

        def write() -> None:
            with self.open(path, (count, *values.shape[1:]), values.dtype) as file:
                for lo in range(0, count, step):
                    block = slice(lo, lo + step)
                    file.write(
                        values[block]
                        if rows is None
                        else kernels.gather.rows(values.detach(), rows[block])
                    )

        size = values.nbytes if rows is None else rows.nbytes
        self._waiting.append((self._pool.submit(write), size))
        while sum(size for _, size in self._waiting) > _PENDING:
            self._waiting.popleft()[0].result()

    def link(self, path: str, info: ArrayInfo) -> None:
        """Take an array of an older result as it is, by a hard link where there are such."""
        target = self._target(path)
        with writing(target, PartitionError):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(info.file, target)
            except OSError:
                shutil.copyfile(info.file, target)
        self._arrays[path] = {
            "dtype": dtype_name(info.dtype),
            "shape": list(info.shape),
            "bytes": info.bytes,
            "sha256": info.sha256,
        }

    def _target(self, path: str) -> Path:
        part, _, rest = path.partition("/")
        return self.folder / self._folders[int(part.removeprefix("part"))] / rest

    def commit(self, config: Mapping[str, Any]) -> Path:
        """Publish the new result, replacing an older one; return the path of the JSON file.

        ``config`` is its content; the folders and the list of arrays are added here.
        """
        while self._waiting:
            self._waiting.popleft()[0].result()
        with writing(self.folder, PartitionError), locked(self.folder):
            self._publish(config, self._folders)
            names = _free_names(self.folder, self.graph_name, self._num_parts)
            if len(names[0]) < len(self._folders[0]):  # those of the older result are free now
                with suppress(OSError):  # a file system without hard links keeps the first names
                    _record_folders(self.staging, [*names, *self._folders])
                    for old, name in zip(self._folders, names, strict=True):
                        pair = self.folder / old, self.folder / name
                        shutil.copytree(*pair, copy_function=os.link)
                    self._publish(config, names)
            _clean_up(self.staging)
        return self.folder / f"{self.graph_name}.json"

    def _publish(self, config: Mapping[str, Any], folders: Iterable[str]) -> None:
        """Let the JSON file list these folders; remove those that only the older one listed."""
        content = dict(config)
        for i, name in enumerate(folders):
            content[f"part-{i}"] = {entry: f"{name}/{kind}" for kind, entry in JSON_ENTRIES.items()}
        content["arrays"] = {path: self._arrays[path] for path in sorted(self._arrays)}
        target, new = self.folder / f"{self.graph_name}.json", self.staging / "json"
        with open(new, "w", encoding="utf8") as file:
            file.write(_json(content))
            file.flush()
            os.fsync(file.fileno())
        _record_folders(self.staging, [*folders, *_folders_of(target)])
        os.replace(new, target)
        _remove_recorded(self.staging)


def rewrite_features(part_config: Path, prefix: str, arrays: Mapping[str, torch.Tensor]) -> None:
    """Replace the arrays of a written partition whose paths start with ``prefix``.

    Each file is replaced at once, the JSON file last. If the process is killed before that, a
    checksum differs, and opening the part says so. ``arrays`` are all that the partition has under
    the prefix, as "part0/node_data/", afterwards, by path; they may be mapped from the old files.
    """
    content = json.loads(part_config.read_text("utf-8-sig"))
    part, kind, _ = prefix.split("/")
    folder = content[part.replace("part", "part-")][JSON_ENTRIES[kind]]
    old = {path for path in content["arrays"] if path.startswith(prefix)}
    entries = {path: about for path, about in content["arrays"].items() if path not in old}
    for path, values in arrays.items():
        target = part_config.parent / folder / path.removeprefix(prefix)
        with writing(target.parent, PartitionError):
            target.parent.mkdir(parents=True, exist_ok=True)
        with writing(target, PartitionError), replacing(target) as file:
            array = ArrayFile(file, tuple(values.shape), values.dtype)
            array.write(values)
            entries[path] = array.finish()
    content["arrays"] = {path: entries[path] for path in sorted(entries)}
    with writing(part_config, PartitionError), replacing(part_config) as file:
        file.write(_json(content).encode())
    for path in old - set(arrays):
        (part_config.parent / folder / path.removeprefix(prefix)).unlink(missing_ok=True)


def _json(content: Mapping[str, Any]) -> str:
    """JSON text with one entry of a dictionary per line: short enough to read."""
    items = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, dict) and value:
            lines = (f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            text = "{\n" + ",\n".join(lines) + "\n }"
        items.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(items) + "\n}\n"


# -------------------------------------------------------------------- folders of a partition
def _free_names(folder: Path, graph_name: str, num_parts: int) -> list[str]:
    """Names for the folders of a new result, which neither exist nor are listed anywhere."""
    listed = _listed(folder)
    endings = (f"-{graph_name}" + (f"-{i}" if i > 1 else "") for i in count(1))
    for ending in chain([""], endings):
        names = [f"part{i}{ending}" for i in range(num_parts)]
        if not any(name in listed or os.path.lexists(folder / name) for name in names):
            return names
    raise AssertionError("endless")


def _listed(folder: Path) -> set[str]:
    """The part folders that JSON files list."""
    return set().union(*map(_folders_of, folder.glob("*.json")))


def _folders_of(path: Path) -> set[str]:
    """The part folders that a JSON file lists; none if it is of no partitioned graph."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
        entries = [content[key].values() for key in content if key.startswith("part-")]
        names = [PurePosixPath(path).parts[0] for paths in entries for path in paths]
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return set()
    return {name for name in names if _PART.match(name)}


def _record_folders(staging: Path, names: Iterable[str]) -> None:
    """Record the folders to be removed unless a JSON file lists them."""
    with open(staging / "claims.new", "w", encoding="utf8") as file:
        json.dump(sorted(set(names)), file)
    os.replace(staging / "claims.new", staging / "claims")


def _clean_up(staging: Path) -> None:
    """Remove the recorded folders that no JSON file lists, then the staging folder."""
    _remove_recorded(staging)
    shutil.rmtree(staging, ignore_errors=True)


def _remove_recorded(staging: Path) -> None:
    try:
        names = json.loads((staging / "claims").read_text("utf8"))
    except (OSError, ValueError):
        names = []
    listed = _listed(staging.parent) if names else ()
    for name in names:
        if name not in listed and _PART.match(name) and "/" not in name:
            _remove_part(staging.parent / name)


def _remove_part(folder: Path) -> None:
    """Remove the files of a partition, and the folder if nothing else is in it."""
    if folder.is_symlink():
        return
    for name in (*JSON_ENTRIES, *_DGL_FILES):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            shutil.rmtree(folder / name, ignore_errors=True)
        else:
            with suppress(OSError):
                (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


def _clean_up_killed(folder: Path) -> None:
    """Clean up after killed processes; running ones hold a lock on their staging folder."""
    for staging in folder.glob(f".*{_STAGING}"):
        if (descriptor := try_lock(staging)) is None:
            continue
        try:
            if (staging / "claims").exists():
                _clean_up(staging)
            else:  # killed early; or of another version, which may hold an older result
                (staging / "claims.new").unlink(missing_ok=True)
                with suppress(OSError):
                    staging.rmdir()
        finally:
            os.close(descriptor)
