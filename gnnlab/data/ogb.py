"""Read an OGB node-property archive without the ``ogb`` package.

::

    raw/num-node-list.csv.gz    one line: N
    raw/num-edge-list.csv.gz    one line: E
    raw/edge.csv.gz             E lines: source,destination
    raw/node-feat.csv.gz        N lines of D numbers
    raw/node-label.csv.gz       N lines of one class
    split/NAME/{train,valid,test}.csv.gz    node IDs, one per line

References
----------
Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gnnlab.data.raw import RawDataset
from gnnlab.data.table import read_floats, read_integers
from gnnlab.errors import InvalidInput

_PARTS = ("train", "valid", "test")


def read_ogb(
    folder: str | Path, name: str | None = None, split: str | None = None, progress: bool = True
) -> RawDataset:
    """Read an unpacked OGB node-property archive.

    Parameters
    ----------
    folder : str or Path
        Holds ``raw`` and ``split``.
    name : str, optional
        Name of the data set; by default that of the folder.
    split : str, optional
        Folder below ``split``; needed only if there are several.
    progress : bool
        Whether to show a bar for files that take longer than a second.

    Returns
    -------
    RawDataset
        The edges of the file: OGB stores an undirected edge in one direction only.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> folder = dgl.data.digits_folder()
    >>> dgl.data.read_ogb(folder).num_edges
    9929
    """
    folder = Path(folder)
    raw = folder / "raw"
    num_nodes = _read_count(raw / "num-node-list.csv.gz")
    num_edges = _read_count(raw / "num-edge-list.csv.gz")
    if num_nodes == 0:
        raise InvalidInput(f"{raw / 'num-node-list.csv.gz'}, line 1: expected at least 1 node")
    src, dst = read_integers(
        raw / "edge.csv.gz",
        2,
        below=num_nodes,
        rows=num_edges,
        rows_from="num-edge-list.csv.gz",
        progress=progress,
    )
    feat = _read_rows(raw / "node-feat.csv.gz", None, num_nodes, progress)
    label = _read_labels(raw / "node-label.csv.gz", num_nodes, progress)
    train, val, test = _read_split(_split_folder(folder, split), num_nodes)
    classes = int(label.max()) + 1
    return RawDataset(name or folder.name, src, dst, feat, label, train, val, test, classes)


def _read_count(path: Path) -> int:
    counts = read_integers(path)[0]
    if len(counts) != 1:
        raise InvalidInput(
            f"{path}: found {len(counts)} lines; expected 1, for an archive of one graph"
        )
    return int(counts[0])


def _read_rows(path: Path, columns: int | None, num_nodes: int, progress: bool) -> np.ndarray:
    counted = "num-node-list.csv.gz"
    return read_floats(path, columns, rows=num_nodes, rows_from=counted, progress=progress)


def _read_labels(path: Path, num_nodes: int, progress: bool) -> np.ndarray:
    values = _read_rows(path, 1, num_nodes, progress)[:, 0]
    wrong = (values < 0) | (values != np.floor(values))
    if wrong.any():
        line = int(wrong.argmax())
        raise InvalidInput(f"{path}, line {line + 1}: {values[line]:g} is not a class 0, 1, 2 …")
    return values.astype(np.int64)


def _split_folder(folder: Path, split: str | None) -> Path:
    base = folder / "split"
    if split is not None:
        return base / split
    found = sorted(path for path in base.iterdir() if path.is_dir()) if base.is_dir() else []
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise InvalidInput(
            f"{base}: expected one folder; found {names}; choose one with "
            "gnnlab.data.read_ogb(folder, split=…)"
        )
    return found[0]


def _read_split(folder: Path, num_nodes: int) -> list[np.ndarray]:
    """Read the three lists of nodes and check that no node is listed twice."""
    parts = []
    subset = np.zeros(num_nodes, np.int8)  # 0, or 1 + the index in _PARTS of a node's set
    for number, part in enumerate(_PARTS, 1):
        path = folder / f"{part}.csv.gz"
        ids = read_integers(path, below=num_nodes)[0].astype(np.int64)
        first = np.unique(ids, return_index=True)[1]
        again = subset[ids] > 0
        again[np.setdiff1d(np.arange(len(ids)), first)] = True
        if again.any():
            line = int(again.argmax())
            other = _PARTS[(subset[ids[line]] or number) - 1]
            raise InvalidInput(
                f"{path}, line {line + 1}: node {ids[line]} is already in {other}.csv.gz; "
                "a node belongs to one set"
            )
        subset[ids] = number
        parts.append(ids)
    return parts
