"""Read the TU collection: over a hundred data sets of small graphs in text files of one layout.

``NAME_A.txt`` has an edge a line, with nodes counted from 1 through all graphs;
``NAME_graph_indicator.txt`` the graph of each node; ``NAME_graph_labels.txt`` the class of each
graph. Further files have ``node_labels``, ``node_attributes``, ``edge_labels``, ``edge_attributes``
and ``graph_attributes``.

References
----------
Morris et al., "TUDataset: A collection of benchmark datasets for learning with graphs", 2020.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gnnlab.data.table import read_floats, read_integers
from gnnlab.errors import InvalidInput

__all__ = ["RawCollection", "read_tu"]


class RawCollection(NamedTuple):
    """G graphs with N nodes and E directed edges in all, as plain arrays."""

    num_nodes: np.ndarray  # (G,) int64
    num_edges: np.ndarray  # (G,) int64
    edges: np.ndarray  # (E, 2) int64, counted from 0 in each graph, graph after graph
    values: dict[str, np.ndarray]  # name of a further file → (G, N or E; columns)


def read_tu(folder: str | Path, name: str, progress: bool = True) -> RawCollection:
    """Read the files of one data set.

    Parameters
    ----------
    folder : str or Path
        Holds the files.
    name : str
        Name of the data set, with which all file names begin.
    progress : bool
        Whether to show a bar for files that take longer than a second.

    Returns
    -------
    RawCollection
        Labels are int64 and counted from 0, the smallest in the file; attributes are float32.

    Raises
    ------
    InvalidInput
        A file is missing or wrong; the message names the file, and the line if there is one.
    """
    path, where = Path(folder, f"{name}_A.txt"), Path(folder, f"{name}_graph_indicator.txt")
    member = read_integers(where, progress=progress)[0].astype(np.int64)
    edges = np.stack(read_integers(path, 2, progress=progress), 1).astype(np.int64)
    if (np.diff(member) < 0).any() or not len(member) or member[0] != 1:
        raise InvalidInput(f"{where}: nodes must be in the order of graphs 1, 2, 3 …")
    if not 1 <= edges.min(initial=1) <= edges.max(initial=1) <= len(member):
        raise InvalidInput(f"{path}: expected nodes 1 … {len(member)}; found {edges.max()}")
    member, edges = member - 1, edges - 1
    owner = member[edges[:, 0]]
    if (owner != member[edges[:, 1]]).any():
        line = int((owner != member[edges[:, 1]]).argmax()) + 1
        raise InvalidInput(f"{path}, line {line}: the two nodes belong to two graphs")
    sizes = np.bincount(member)
    order = np.argsort(owner, kind="stable")
    rows = {"graph": len(sizes), "node": len(member), "edge": len(edges)}
    values = {}
    for file in sorted(path.parent.glob(f"{name}_*.txt")):
        what = file.stem.removeprefix(f"{name}_")
        kind, _, sort = what.partition("_")
        if kind in rows and sort in ("labels", "attributes"):
            count = rows[kind]
            found = read_floats(file, rows=count, rows_from="this data set", progress=progress)
            found = found[order] if kind == "edge" else found
            values[what] = found if sort == "attributes" else (found - found.min()).astype(np.int64)
    if not {"graph_labels", "graph_attributes"} & set(values):
        raise InvalidInput(
            f"{path.parent}/{name}_graph_labels.txt: no such file, nor {name}_graph_attributes.txt"
        )
    local = (edges - (np.cumsum(sizes) - sizes)[owner][:, None])[order]
    return RawCollection(sizes, np.bincount(owner, minlength=len(sizes)), local, values)
