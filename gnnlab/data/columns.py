"""Tables as columns of arrays: whole, or files some rows at a time.

In a chunk of a file, a column may look different than in the whole: some rows of text are all
digits, and integers are float64 where a cell is empty. So columns that need one dtype are read
twice, first to find it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnlab.errors import InvalidInput, NotFound, reading
from gnnlab.graph.names import describe

Columns = Mapping[str, np.ndarray]
_FILES = (".csv", ".csv.gz", ".parquet")


def read_chunks(
    table: Any,
    what: Any,
    rows: int | None = None,
    names: Collection[str] = (),
    alike: Collection[str] = (),
) -> Iterator[Columns]:
    """Yield the columns of a data frame, a dict of arrays or a file.

    With ``rows``, only ``names`` are read from a file, or from the files in a list, that many rows
    at a time; those in ``alike`` get the dtype that they would have if all were read at once.
    """
    paths = table if isinstance(table, list) and table and rows else [table]
    if not all(isinstance(path, str | Path) for path in paths):
        yield _of_frame(table, what)
        return
    for path in paths:
        if not str(path).endswith(_FILES) or not Path(path).is_file():
            raise InvalidInput(f"{what}: no {' or '.join(_FILES)} file at {path}")
    dtypes, text = _dtypes(_frames(paths, rows, alike)) if rows and alike else ({}, set())
    frames = _frames(paths, rows, names, text)  # a loop would keep each while its arrays are used
    yield from map(lambda frame: _of_frame(frame.astype(dtypes), what), frames)  # noqa: C417


def check_columns(columns: Iterable[str], needed: Iterable[str], what: Any) -> None:
    """Raise NotFound unless a table has the columns that are needed."""
    for name in needed:
        if name not in columns:
            raise NotFound(f"{what} has no column {name!r}; there are {describe(columns)}")


def _of_frame(table: Any, what: Any) -> Columns:
    names = getattr(table, "column_names", None)  # of pyarrow
    names = getattr(table, "columns", None) if names is None else names
    if isinstance(table, Mapping):
        names = list(table)
    if names is None:
        raise InvalidInput(
            f"{what}: expected a data frame, a dict of arrays or a path; found "
            f"{type(table).__name__}"
        )
    found = {str(name): np.asarray(table[name]) for name in names}
    if len({len(values) for values in found.values()}) > 1:
        sizes = {name: len(values) for name, values in found.items()}
        raise InvalidInput(f"{what}: columns need the same number of rows; found {sizes}")
    return {name: v.astype(object) if v.dtype.kind in "UST" else v for name, v in found.items()}


def _frames(
    paths: Iterable[Any], rows: int | None, names: Collection[str], text: Iterable[str] = ()
) -> Iterator[Any]:
    """Read files as frames of pandas; one without rows is an empty frame. ``text`` stays text."""
    import pandas as pd

    for path in map(Path, paths):
        with reading(path, InvalidInput):
            options: Any = {"dtype": dict.fromkeys(text, str), "low_memory": False}
            if not rows:
                is_csv = path.suffix != ".parquet"
                yield pd.read_csv(path, **options) if is_csv else pd.read_parquet(path)
            elif path.suffix == ".parquet":
                from pyarrow.parquet import ParquetFile

                with ParquetFile(path) as file:
                    check_columns(file.schema_arrow.names, names, path)
                    batches = file.iter_batches(rows, columns=[*names])
                    for batch in batches if file.metadata.num_rows else [file.read([*names])]:
                        yield batch.to_pandas()
            else:
                check_columns(pd.read_csv(path, nrows=0), names, path)
                with pd.read_csv(path, usecols={*names}, chunksize=rows, **options) as frames:
                    yield from frames


def _dtypes(frames: Iterable[Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the dtype of each column in all frames, and the columns of text and other values."""
    import pandas as pd

    heads, kinds = [], defaultdict[str, set[str]](set)
    for frame in frames:
        heads.append(frame.head(1))
        for name, values in frame.items():
            kinds[name] |= {pd.api.types.infer_dtype(values)} if values.notna().any() else set()
    dtypes = dict(pd.concat([head for head in heads if len(head)] or heads).dtypes)
    return dtypes, {n for n, each in kinds.items() if len(each) > 1 and dtypes[n].kind == "O"}
