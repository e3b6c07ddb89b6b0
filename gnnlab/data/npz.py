"""Cora, Citeseer and Pubmed, in numpy's ``.npz`` files.

A file holds the arrays of two scipy CSR matrices, ``adj_*`` (row cites column) and ``attr_*``
(words of each paper), and ``labels``. A citation is one edge, from the citing paper.

References
----------
Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018 (the files).
McCallum et al., "Automating the Construction of Internet Portals with Machine Learning", 2000.
Sen et al., "Collective Classification in Network Data", AI Magazine 29(3), 2008.
Namata et al., "Query-driven Active Surveying for Collective Classification", MLG 2012.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gnnlab.data.raw import RawDataset
from gnnlab.data.split import per_class_split
from gnnlab.errors import InvalidInput, check_file

_PARTS = ("data", "indices", "indptr", "shape")
_NEEDED = [*(f"{name}_{part}" for name in ("adj", "attr") for part in _PARTS), "labels"]


def read_citations(
    folder: str | Path,
    name: str = "cora",
    train_per_class: int = 20,
    num_val: int = 500,
    num_test: int = 1000,
    seed: int = 0,
) -> RawDataset:
    """Read ``NAME.npz`` of a folder: ``cora``, ``citeseer`` or ``pubmed``.

    The sizes of the split are those of Planetoid, but the nodes are drawn here. ``feat`` has a row
    per paper and a column per word; Cora's holds 0 and 1.
    """
    src, dst, feat, label = read_matrices(Path(folder, f"{name}.npz").expanduser())
    split = per_class_split(label, train_per_class, num_val, num_test, seed)
    return RawDataset(name, src, dst, feat, label, *split, int(label.max()) + 1)


def read_matrices(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return source and destination of each edge, features (float32) and classes (int64)."""
    arrays = open_npz(path, _NEEDED)
    label = as_classes(path, "labels", arrays["labels"])
    src, dst, _, _ = _matrix(path, arrays, "adj", len(label), len(label))
    paper, word, value, words = _matrix(path, arrays, "attr", len(label), None)
    feat = np.zeros((len(label), words), np.float32)
    feat[paper, word] = value
    return src, dst, feat, label


def open_npz(path: Path, needed: Sequence[str]) -> dict[str, np.ndarray]:
    """Load some arrays of a file; arrays of pickled objects are an error."""
    check_file(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in needed if name not in archive.files]
            if missing:
                found = ", ".join(archive.files)
                raise InvalidInput(f"{path}: lacks {', '.join(missing)}; it has {found}")
            return {name: archive[name] for name in needed}
    except InvalidInput:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, TypeError, ValueError, OSError) as error:
        raise InvalidInput(
            f"{path}: not an intact .npz file ({error}); delete it and try again"
        ) from error


def as_classes(path: Path, name: str, label: np.ndarray) -> np.ndarray:
    """Return labels as int64; raise InvalidInput unless they are classes."""
    if label.dtype.kind not in "iu" or label.ndim != 1 or len(label) == 0 or label.min() < 0:
        raise InvalidInput(f"{path}: {name} must be one class 0, 1, 2 … a node")
    return label.astype(np.int64)


def _matrix(
    path: Path, arrays: Mapping[str, np.ndarray], name: str, rows: int, columns: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return (row, column, value) of each entry of a CSR matrix, and its number of columns."""
    data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in _PARTS)
    if shape.shape != (2,) or shape[0] != rows or columns not in (None, shape[1]):
        wanted = f"[{rows}, {columns or 'words'}]"
        raise InvalidInput(f"{path}: {name}_shape is {shape.tolist()}; expected {wanted}")
    for part, array in (("indices", indices), ("indptr", indptr)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise InvalidInput(f"{path}: {name}_{part} must be integers; found {array.dtype}")
    counts, entries = np.diff(indptr), len(indices)
    ends = (indptr[0], indptr[-1], len(data))
    if len(counts) != rows or counts.min() < 0 or ends != (0, entries, entries):
        raise InvalidInput(
            f"{path}: {name}_indptr does not divide {entries} entries into {rows} rows"
        )
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        found = f"{indices.min()} … {indices.max()}"
        raise InvalidInput(f"{path}: {name}_indices must be 0 … {shape[1] - 1}; found {found}")
    if not np.isfinite(data).all():
        raise InvalidInput(f"{path}: {name}_data holds NaN or infinity")
    row = np.repeat(np.arange(rows, dtype=np.int32), counts)
    return row, indices.astype(np.int32), data.astype(np.float32), int(shape[1])
