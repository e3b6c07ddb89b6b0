"""Read numbers from CSV files, fast and with a check of every cell.

pandas is fast but tolerant: a blank cell becomes NaN, ``True`` becomes 1. So the file is read by
pandas in chunks, and the dtypes and ranges of each chunk are checked. If a check fails, the file is
read again line by line to find the line and the reason. ``.gz`` files are decompressed while read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from gnnlab.errors import InvalidInput, check_file, reading
from gnnlab.system.bars import progress_bar

CHUNK_CELLS = 8_000_000

_INTEGER = re.compile(rb"[ \t]*[+-]?[0-9]+[ \t]*")
_NUMBER = re.compile(rb"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)


def read_integers(
    path: str | Path,
    columns: int = 1,
    *,
    below: int = 2**63 - 1,
    rows: int | None = None,
    rows_from: str = "the caller",
    header: bool = False,
    progress: bool = True,
) -> list[np.ndarray]:
    """Read a table of integers from 0 to ``below`` − 1, for instance node IDs.

    Of each column of a ``.csv`` or ``.csv.gz`` file, an array of shape (rows,) is returned; int32
    if ``below`` allows it, else int64. ``rows_from`` says who expects that number of rows.
    """
    path = Path(path)
    table = _Rows(path, np.int32 if below <= 2**31 else np.int64, "F", rows, rows_from)
    for values in integer_chunks(path, columns, below=below, header=header, progress=progress):
        table.add(values)
    return list(table.take(columns).T)


def integer_chunks(
    path: str | Path,
    columns: int = 1,
    *,
    below: int = 2**63 - 1,
    header: bool = False,
    progress: bool = True,
) -> Iterator[np.ndarray]:
    """Read a table of integers in chunks; arguments and errors as in :func:`read_integers`.

    Chunks have shape (rows, columns), int64: up to eight million cells.
    """
    path = Path(path)
    for line, frame in _chunks(path, columns, header, below, progress):
        values = frame.to_numpy()
        if (
            frame.shape[1] != columns
            or any(dtype.kind != "i" for dtype in frame.dtypes)
            or values.min() < 0
            or values.max() >= below
        ):
            raise _explain(path, line, columns, below)
        yield values


def read_floats(
    path: str | Path,
    columns: int | None = None,
    *,
    rows: int | None = None,
    rows_from: str = "the caller",
    progress: bool = True,
) -> np.ndarray:
    """Read a table of finite numbers: shape (rows, columns), float32.

    By default a line must hold as many numbers as the first one. There is no header; the other
    arguments are as for :func:`read_integers`.
    """
    path = Path(path)
    table = _Rows(path, np.float32, "C", rows, rows_from)
    for line, frame in _chunks(path, columns, False, None, progress):
        columns = columns or frame.shape[1]
        if frame.shape[1] != columns or any(dtype.kind not in "if" for dtype in frame.dtypes):
            raise _explain(path, line, columns, None)
        with np.errstate(over="ignore"):
            values = frame.to_numpy(np.float32)
        if not np.isfinite(values).all():
            raise _explain(path, line, columns, None)
        table.add(values)
    return table.take(columns or 0)


class _Rows:
    """Collects chunks of rows, in one preallocated array if their number is known."""

    def __init__(
        self, path: Path, dtype: Any, order: Any, rows: int | None, rows_from: str
    ) -> None:
        self.path, self.dtype, self.order = path, dtype, order
        self.rows, self.rows_from = rows, rows_from
        self.array: np.ndarray | None = None
        self.chunks: list[np.ndarray] = []
        self.count = 0

    def add(self, values: np.ndarray) -> None:
        start, self.count = self.count, self.count + len(values)
        if self.rows is None:
            self.chunks.append(values.astype(self.dtype, order=self.order))
            return
        if self.count > self.rows:
            raise self._wrong_count(f"more than {self.rows}")
        if self.array is None:
            self.array = np.empty((self.rows, values.shape[1]), self.dtype, order=self.order)
        self.array[start : self.count] = values

    def take(self, columns: int) -> np.ndarray:
        if self.rows is not None and self.count != self.rows:
            raise self._wrong_count(str(self.count))
        if self.array is not None:
            return self.array
        empty = np.empty((0, columns), self.dtype, order=self.order)
        return np.asarray(np.concatenate([empty, *self.chunks]), order=self.order)

    def _wrong_count(self, found: str) -> InvalidInput:
        return InvalidInput(f"{self.path}: found {found} lines; {self.rows_from} says {self.rows}")


def _chunks(
    path: Path, columns: int | None, header: bool, below: int | None, progress: bool
) -> Iterator[tuple[int, Any]]:
    """Yield the number of the first line and the pandas frame of each chunk."""
    import pandas as pd

    line = 1 + header
    start = _first_row(path, header)
    if not start:
        return
    width = columns or 1 + start.count(b",")
    with _opened(path, progress) as stream:
        try:
            reader = pd.read_csv(
                stream,
                header=None,
                skiprows=int(header),
                chunksize=max(1, CHUNK_CELLS // width),
                engine="c",
                index_col=False,
                na_filter=False,
                quoting=3,  # csv.QUOTE_NONE: a quotation mark is an error, not syntax
                skip_blank_lines=False,
                low_memory=False,
            )
            for frame in reader:
                yield line, frame
                line += len(frame)
        except _DAMAGED as error:
            raise _damaged(path, line, error) from error
        except InvalidInput:
            raise
        except (ValueError, OverflowError) as error:
            raise _explain(path, line, width, below) from error


@contextmanager
def _opened(path: Path, progress: bool) -> Iterator[IO[bytes]]:
    """Open a file, decompressed if it ends in .gz; the bar counts bytes read from the disk."""
    check_file(path)
    size = path.stat().st_size
    bar = progress_bar(None, progress, total=size, desc=path.name, unit="B", unit_scale=True)
    with reading(path, InvalidInput), bar, io.BufferedReader(_Measured(path, bar), 1 << 20) as raw:
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        if stream.peek(3).startswith(codecs.BOM_UTF8):
            stream.read(3)
        yield stream  # type: ignore[misc]


class _Measured(io.FileIO):
    """A file that updates a progress bar by the bytes read."""

    def __init__(self, path: Path, bar: Any) -> None:
        super().__init__(path)
        self._bar = bar

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._bar.update(count or 0)
        return count


def _first_row(path: Path, header: bool) -> bytes:
    try:
        with _opened(path, False) as stream:
            for _ in range(header):
                stream.readline()
            return stream.readline()
    except _DAMAGED as error:
        raise _damaged(path, 1, error) from error


def _explain(path: Path, start: int, columns: int, below: int | None) -> InvalidInput:
    """Describe the first wrong line from ``start`` on; ``below`` is None for floats."""
    number = start
    try:
        with _opened(path, False) as stream:
            for number, line in enumerate(stream, 1):
                fault = number >= start and _fault(line.rstrip(b"\r\n"), columns, below)
                if fault:
                    return InvalidInput(f"{path}, line {number}: {fault}")
    except _DAMAGED as error:
        return _damaged(path, number, error)
    return InvalidInput(f"{path}: not a table of {columns} numbers a line, from line {start} on")


def _fault(line: bytes, columns: int, below: int | None) -> str:
    """Return what is wrong with a line, or an empty string."""
    cells = line.split(b",")
    if len(cells) != columns:
        found = f"{len(cells)} columns" if line else "an empty line"
        return f"found {found}; expected {columns} columns"
    for column, cell in enumerate(cells, 1):
        text = cell.decode("utf8", "replace")
        if not cell.strip():
            return f"column {column} is empty; expected a number"
        if below is None:
            if not _NUMBER.fullmatch(cell) or not _fits(cell):
                return f"column {column} is {text!r}; expected a number that float32 can hold"
        elif not _INTEGER.fullmatch(cell):
            return f"column {column} is {text!r}; expected an integer"
        elif not 0 <= int(cell) < below:
            return f"column {column} is {text!r}; expected an ID of 0 … {below - 1}"
    return ""


def _fits(cell: bytes) -> bool:
    with np.errstate(over="ignore"):
        finite = bool(np.isfinite(np.float32(float(cell))))
    # pandas reads a number without a decimal point as a 64-bit integer.
    return finite and (not _INTEGER.fullmatch(cell) or -(2**63) <= int(cell) < 2**63)


def _damaged(path: Path, line: int, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{path}, after line {line - 1}: the compressed data is damaged or cut off ({error}); "
        "get the file again"
    )
