"""The external sort against numpy's stable argsort."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.partition.external import ExternalSort


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 20), st.integers(1, 30))
def test_sorts_as_in_memory(keys, bucket_rows, chunk):
    """Ten keys, some without rows; columns of several dtypes and shapes; buckets of any size."""
    keys = np.array(keys, np.int64)
    order = np.argsort(keys, kind="stable")
    columns = {
        "number": np.arange(len(keys), dtype=np.int32),
        "pair": np.arange(2.0 * len(keys)).reshape(-1, 1, 2),
        "flag": keys % 2 == 0,
        "nothing": np.empty((len(keys), 0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        indptr = np.searchsorted(keys[order], np.arange(11))
        dtypes = {name: np.dtype((each.dtype, each.shape[1:])) for name, each in columns.items()}
        rows = ExternalSort(Path(folder, "sort"), indptr, dtypes, bucket_rows)
        for lo in range(0, len(keys), chunk):
            part = slice(lo, lo + chunk)
            rows.add(keys[part], **{name: each[part] for name, each in columns.items()})
        rows.sort()
        for name, each in columns.items():
            assert np.array_equal(rows.column(name), each[order])
        first, at = 0, 0
        for start, ends, values in rows.blocks("number"):
            assert start == first and np.array_equal(ends + at, indptr[start : start + len(ends)])
            assert np.array_equal(values, columns["number"][order][at : at + len(values)])
            first, at = start + len(ends) - 1, at + len(values)
        assert (first, at) == (10, len(keys))
        rows.remove()
        assert not list(Path(folder).iterdir())
