"""External sort, for more rows than fit in memory.

The number of rows of each key is known beforehand, and hence the position of each key's rows in the
sorted file. Incoming rows are appended to *buckets*, ranges of neighboring keys; at the end each
bucket is sorted in memory. So every row is written twice and read once, in long runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gnnlab import kernels
from gnnlab.kernels.dtypes import ids_dtype


def write_rows(file: BinaryIO, values: np.ndarray) -> None:
    """Write an array; a full disk is an error, which numpy's ``tofile`` may hide."""
    file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


class ExternalSort:
    """Group rows by key, stably, in files of a new folder.

    Rows of key k end up at ``indptr[k]`` to ``indptr[k + 1] - 1``. ``columns`` are dtypes by name,
    perhaps with a shape, as ``np.dtype(("f4", (3,)))``. Memory holds about ``bucket_rows``.
    """

    def __init__(
        self, folder: Path, indptr: np.ndarray, columns: Mapping[str, Any], bucket_rows: int
    ) -> None:
        folder.mkdir()
        self._folder, self._indptr = folder, indptr
        self._dtypes = {name: np.dtype(dtype) for name, dtype in columns.items()}
        self._dtypes["_key"] = np.dtype(ids_dtype(len(indptr)))
        cuts = np.searchsorted(indptr, np.arange(bucket_rows, indptr[-1], bucket_rows))
        self._bounds = np.unique([0, *cuts, len(indptr) - 1])
        self._free = indptr[self._bounds[:-1]].copy()
        buckets = np.arange(len(self._free), dtype=np.int32)
        self._bucket_of = np.repeat(buckets, np.diff(self._bounds))
        self._files = {name: open(folder / name, "wb+") for name in self._dtypes}  # noqa: SIM115

    def add(self, keys: np.ndarray, **columns: np.ndarray) -> None:
        """Append rows to their buckets; shape (R,) each, and a column's own shape after that."""
        starts, order = kernels.csc.group_by(self._bucket_of[keys], None, len(self._free))
        for name, values in (("_key", keys), *columns.items()):
            values = values.astype(self._dtypes[name].base, copy=False)[order]
            for bucket, (lo, hi) in enumerate(pairwise(starts.tolist())):
                if lo < hi:
                    self._write(name, int(self._free[bucket]), values[lo:hi])
        self._free += np.diff(starts)

    def sort(self) -> None:
        """Sort the buckets; afterwards columns can be read."""
        names = [name for name in self._dtypes if name != "_key"]
        for first, last in pairwise(self._bounds.tolist()):
            lo, hi = self._indptr[first], self._indptr[last]
            keys = self._read("_key", lo, hi) - first
            order = kernels.csc.group_by(keys, None, last - first)[1]
            for name in names:
                self._write(name, lo, self._read(name, lo, hi)[order])
        for file in self._files.values():
            file.close()
        (self._folder / "_key").unlink()

    def _write(self, name: str, row: int, values: np.ndarray) -> None:
        file = self._files[name]
        file.seek(row * self._dtypes[name].itemsize)
        write_rows(file, values)

    def _read(self, name: str, lo: int, hi: int) -> np.ndarray:
        dtype = self._dtypes[name]
        values = np.empty((hi - lo, *dtype.shape), dtype.base)
        self._files[name].seek(lo * dtype.itemsize)
        self._files[name].readinto(values.reshape(-1).view(np.uint8).data)
        return values

    def column(self, name: str) -> np.ndarray:
        """Map a sorted column into memory, read only."""
        dtype, count = self._dtypes[name], int(self._indptr[-1])
        if not count * dtype.itemsize:  # an empty file cannot be mapped
            return np.empty((count, *dtype.shape), dtype.base)
        return np.memmap(self._folder / name, dtype.base, "r", shape=(count, *dtype.shape))

    def blocks(self, name: str) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Read a sorted column bucket by bucket: first key, ``indptr`` of its keys, values."""
        dtype = self._dtypes[name]
        with open(self._folder / name, "rb") as file:
            for first, last in pairwise(self._bounds.tolist()):
                indptr = self._indptr[first : last + 1] - self._indptr[first]
                values = np.fromfile(file, dtype, int(indptr[-1]))
                yield first, indptr, values

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._folder)
