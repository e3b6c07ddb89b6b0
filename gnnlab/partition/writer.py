"""Writing a partitioned graph: all of it or nothing.

Nothing of an older result is touched until the new one is complete. It is written to a draft folder
beside it, ``.<graph_name>-….draft``; then the two are exchanged, the JSON file last. Whatever fails
on the way, a full disk for instance, leaves the older result as it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.kernels import threads
from gnnlab.partition.files import KINDS, carrier, check_graph_name

__all__ = ["ArrayFile", "PartitionWriter"]

_BLOCK = 1 << 24  # bytes that are gathered, hashed and written at a time
_PENDING = 1 << 29  # bytes that may wait for a writing thread
_WRITERS = 4  # each gathers with all threads that torch has
_DGL_FILES = {"graph.dgl", "node_feat.dgl", "edge_feat.dgl"}


class ArrayFile:
    """One ``.npy`` file that is written block by block, and hashed on the way.

    Parameters
    ----------
    file : binary file
    shape : tuple of int
        Of the whole array.
    dtype : torch.dtype
        Those that numpy lacks are stored as integers of the same width.
    """

    def __init__(self, file: BinaryIO, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.shape, self.dtype = shape, dtype
        kind = carrier(torch.empty(0, dtype=dtype)).numpy().dtype
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
        """Append rows, of the dtype and width that were announced."""
        flat = carrier(rows.detach().cpu().contiguous()).numpy().reshape(-1).view(np.uint8)
        for lo in range(0, len(flat), _BLOCK):
            self._put(flat[lo : lo + _BLOCK])
        self._left -= len(flat)

    def finish(self) -> dict[str, Any]:
        """Make the file durable and return what the JSON file says of it."""
        if self._left:
            raise InvalidInput(f"{self._left} bytes are missing of an array of shape {self.shape}")
        self._file.flush()
        os.fsync(self._file.fileno())
        return {
            "dtype": str(self.dtype).removeprefix("torch."),
            "shape": list(self.shape),
            "bytes": self._file.tell(),
            "sha256": self._hash.hexdigest(),
        }


class PartitionWriter:
    """Write a partitioned graph; it appears whole or not at all.

    Threads hash and write arrays while the next ones are made. Leaving the ``with`` block without
    :meth:`commit` leaves everything as it was.

    Parameters
    ----------
    out_path : path
        Folder of the JSON file; made where it does not exist.
    graph_name : str
    num_parts : int

    Raises
    ------
    InvalidInput
        The graph name is none, or the folder holds what must not be overwritten.
    PartitionError
        The disk is full, or the folder cannot be written.

    Examples
    --------
    >>> import tempfile, torch
    >>> from pathlib import Path
    >>> from gnnlab.partition.writer import PartitionWriter
    >>> folder = tempfile.mkdtemp()
    >>> with PartitionWriter(folder, "toy", 1) as writer:
    ...     writer.save("part0/graph/x.npy", torch.arange(3))
    ...     path = writer.commit({"graph_name": "toy", "num_parts": 1})
    >>> path.name, sorted(p.name for p in Path(folder).iterdir())
    ('toy.json', ['part0', 'toy.json'])
    """

    def __init__(self, out_path: str | os.PathLike[str], graph_name: str, num_parts: int) -> None:
        self.folder, self.graph_name = Path(out_path), check_graph_name(graph_name)
        self._new = [f"part{i}" for i in range(num_parts)]
        self._arrays: dict[str, dict[str, Any]] = {}
        self._waiting: deque[tuple[Future[None], int]] = deque()

    def __enter__(self) -> PartitionWriter:
        """Make the draft folder, and see that what is to be replaced may be."""
        with self._errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._old = _replaceable(self.folder, self.graph_name, self._new)
            prefix = f".{self.graph_name}-"
            self._draft = Path(tempfile.mkdtemp(".draft", prefix, self.folder))
        workers = min(threads.num_threads(), _WRITERS)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="partition")
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the draft."""
        self._pool.shutdown(cancel_futures=True)
        shutil.rmtree(self._draft, ignore_errors=True)

    @contextmanager
    def _errors(self, path: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PartitionError(
                f"cannot write {path or error.filename or self.folder}: {error.strerror}. What "
                f"{self.folder} held before is still there; free some space, or choose another "
                "out_path"
            ) from error

    @contextmanager
    def open(self, path: str, shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[ArrayFile]:
        """Open an array for writing block by block.

        Parameters
        ----------
        path : str
            Relative to the folder of the JSON file, with forward slashes.
        shape : tuple of int
        dtype : torch.dtype
        """
        target = self._draft / path
        with self._errors(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "xb") as file:
                array = ArrayFile(file, shape, dtype)
                yield array
                self._arrays[path] = array.finish()

    def save(self, path: str, values: Any, rows: torch.Tensor | None = None) -> None:
        """Queue an array, or some rows of it, for writing.

        Parameters
        ----------
        path : str
            As for :meth:`open`.
        values : torch.Tensor or numpy.ndarray
            Must not change until :meth:`commit`.
        rows : torch.Tensor, optional
            Shape (K,), int32 or int64: the rows to write; they are gathered block by block.
        """
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

    def commit(self, config: Mapping[str, Any]) -> Path:
        """Exchange the old result for the new one.

        Parameters
        ----------
        config : dict
            Content of the JSON file; the list of arrays is added here.

        Returns
        -------
        Path
            The JSON file.
        """
        while self._waiting:
            self._waiting.popleft()[0].result()
        arrays = {path: self._arrays[path] for path in sorted(self._arrays)}
        name = f"{self.graph_name}.json"
        moves = [(self.folder / part, self._draft / "old" / part) for part in self._old]
        moves += [(self._draft / part, self.folder / part) for part in self._new]
        moves += [(self._draft / name, self.folder / name)]
        with self._errors():
            for part in ("old", *self._new):
                (self._draft / part).mkdir(exist_ok=True)
            with open(self._draft / name, "w", encoding="utf8") as file:
                file.write(_json({**config, "arrays": arrays}))
                file.flush()
                os.fsync(file.fileno())
            try:
                for source, target in moves:
                    os.replace(source, target)
            except BaseException:
                if (self._draft / name).exists():  # else the JSON file is in place: it is done
                    for source, target in reversed(moves[:-1]):
                        if target.exists() and not source.exists():
                            os.replace(target, source)
                raise
        return self.folder / name


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


def _replaceable(folder: Path, graph_name: str, new: list[str]) -> list[str]:
    """Return the part folders that the new result replaces; raise where they are not its own."""
    own = folder / f"{graph_name}.json"
    claims = {path: _parts_of(path) for path in folder.glob("*.json")}
    wanted = sorted({*new, *claims.pop(own, ())})
    for part in wanted:
        for path in claims:
            if part in claims[path]:
                raise InvalidInput(
                    f"{folder / part} belongs to {path.name} and would be overwritten; choose "
                    f"another out_path, or delete {path.name} if nobody needs that graph"
                )
    found = [part for part in wanted if (folder / part).exists()]
    for part in found:
        strange = {entry.name for entry in (folder / part).iterdir()} - {*KINDS, *_DGL_FILES}
        if strange:
            raise InvalidInput(
                f"{folder / part} holds {min(strange)!r}, which no partition writes; choose "
                "another out_path, or move it away"
            )
    return found


def _parts_of(path: Path) -> set[str]:
    """The part folders that a JSON file claims, if it describes a partitioned graph at all."""
    try:
        return {f"part{i}" for i in range(int(json.loads(path.read_text("utf8"))["num_parts"]))}
    except (OSError, ValueError, TypeError, LookupError):
        return set()
