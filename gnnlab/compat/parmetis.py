"""Conversion of the text files of ParMETIS, for graphs too large for METIS on one machine.

ParMETIS runs on many machines (DGL's program for it is ``pm_dglpart``) and writes two files for
each part; fields are separated by blanks, and each line may end in attributes::

    p<i>-xxx_nodes.txt   new_node_id node_type weight … type_node_id
    p<i>-xxx_edges.txt   new_src new_dst src dst type_edge_id edge_type

``src`` and ``dst`` are homogeneous IDs, type IDs count from 0. ParMETIS takes neither self-loops
nor repeated edges; they are kept in a file of lines ``src dst type_edge_id edge_type``. A schema,
``xxx.json``, holds the range of homogeneous IDs of each type, in the order of type IDs:
``{"nid": {"author": [0, 9], …}, "eid": {"author:writes:paper": [0, 20], …}}``.

``gnnlab convert_partition`` is the command line of :func:`convert_partition`.

References
----------
DGL user guide, section 7.1, "Preprocessing for Distributed Training".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, file_error
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.partition.partition import partition_graph

StrPath = str | os.PathLike[str]
_LINES = 1_000_000  # read at a time


def convert_partition(
    input_dir: StrPath,
    graph_name: str,
    schema: StrPath,
    num_parts: int,
    num_node_weights: int,
    output: StrPath,
    node_attr_dtype: Any = None,
    edge_attr_dtype: Any = None,
    removed_edges: StrPath | None = None,
    num_hops: int = 1,
) -> None:
    """Convert the output of ParMETIS to a partitioned graph, as ``partition_graph`` writes it.

    Parameters
    ----------
    input_dir : path
        Folder of ``p<i>-<graph_name>_nodes.txt`` and ``_edges.txt``; i may have leading zeros.
    graph_name : str
    schema : path
        JSON file; see above. An edge type may be given by its relation alone, if it has edges.
    num_parts, num_node_weights : int
    output : path
        Folder for the partitioned graph.
    node_attr_dtype, edge_attr_dtype : str or dtype, optional
        Of the feature "feat" that attributes become; by default they are left out.
    removed_edges : path, optional
        File of the edges that were left out for ParMETIS.
    num_hops : int
        As for :func:`partition_graph`.

    Raises
    ------
    InvalidInput
        A file is not in the format above, or a node or edge is missing or repeated.
    """
    graph = _LineReader(Path(schema), node_attr_dtype, edge_attr_dtype)
    for part_id in range(num_parts):
        nodes, edges = (_find(input_dir, part_id, graph_name, w) for w in ("nodes", "edges"))
        graph.read_nodes(nodes, num_node_weights, part_id)
        graph.read_edges(edges, 2)
    if removed_edges is not None:
        graph.read_edges(Path(removed_edges), 0)
    partition_graph(
        graph.graph(), graph_name, num_parts, output, num_hops, lambda g, k: graph.parts()
    )


def _find(folder: StrPath, part_id: int, graph_name: str, what: str) -> Path:
    names = [f"p{number}-{graph_name}_{what}.txt" for number in (part_id, f"{part_id:03}")]
    for name in names:
        if Path(folder, name).is_file():
            return Path(folder, name)
    raise InvalidInput(f"{folder} has neither {names[0]} nor {names[1]}; is num_parts right?")


class _LineReader:
    """Reads lines in any order into arrays indexed by homogeneous ID."""

    def __init__(self, schema: Path, node_dtype: Any, edge_dtype: Any) -> None:
        self._dtypes = {"nid": node_dtype, "eid": edge_dtype}
        self._names: dict[str, list[str]] = {}
        self._offsets: dict[str, np.ndarray] = {}
        self._features: dict[str, np.ndarray] = {}
        try:
            content = json.loads(schema.read_text("utf-8-sig"))
            for kind in ("nid", "eid"):
                self._names[kind] = list(content[kind])
                ranges = np.array(list(content[kind].values()), np.int64).reshape(-1, 2)
                self._offsets[kind] = np.concatenate([[0], ranges[:, 1]])
                if (ranges[:, 0] != self._offsets[kind][:-1]).any() or (np.diff(ranges) < 0).any():
                    raise ValueError(f"the ranges of {kind} do not follow one another")
        except OSError as error:
            raise file_error(error, schema, kind=InvalidInput) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f'{schema}: expected {{"nid": {{type: [first, last + 1], …}}, "eid": {{…}}}} '
                f"({error!r})"
            ) from error
        # −1 until the line has been read.
        self._part = np.full(self._offsets["nid"][-1], -1, np.int32)
        dtype = ids_dtype(len(self._part))
        self._src, self._dst = (np.full(self._offsets["eid"][-1], -1, dtype) for _ in range(2))

    def read_nodes(self, path: Path, num_weights: int, part_id: int) -> None:
        """Read the nodes of one part; the new ID, the first field, is ignored."""
        for table, attributes in _tables(path, num_weights + 3, self._dtypes["nid"]):
            ids = self._homogeneous_ids(path, "nid", table[:, 1], table[:, -1], self._part)
            self._part[ids] = part_id
            self._store(path, "nid", ids, attributes)

    def read_edges(self, path: Path, skip: int) -> None:
        """Read edges; the first ``skip`` fields are ignored."""
        for table, attributes in _tables(path, skip + 4, self._dtypes["eid"]):
            src, dst, within, types = table[:, skip:].T
            ids = self._homogeneous_ids(path, "eid", types, within, self._src)
            if table[:, skip : skip + 2].min() < 0 or max(src.max(), dst.max()) >= len(self._part):
                raise InvalidInput(f"{path}: an edge ends at a node that is not in the schema")
            self._src[ids], self._dst[ids] = src, dst
            self._store(path, "eid", ids, attributes)

    def _homogeneous_ids(
        self, path: Path, kind: str, types: np.ndarray, within: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        """Return the homogeneous IDs of lines; each ID may occur only once."""
        offsets = self._offsets[kind]
        sizes = np.append(np.diff(offsets), 0)
        # Unknown types have size 0.
        size = sizes[np.where((types >= 0) & (types < len(sizes)), types, -1)]
        wrong = (within < 0) | (within >= size)
        if wrong.any():
            raise InvalidInput(
                f"{path}: ID {within[wrong][0]} of type {types[wrong][0]}; the schema has "
                f"{sizes[:-1].tolist()} of each type"
            )
        ids = offsets[types] + within
        if (seen[ids] >= 0).any() or len(np.unique(ids)) < len(ids):
            raise InvalidInput(f"{path}: an ID occurs twice, here or here and before")
        return ids

    def _store(self, path: Path, kind: str, ids: np.ndarray, attributes: np.ndarray) -> None:
        shape = (int(self._offsets[kind][-1]), attributes.shape[1])
        stored = self._features.setdefault(kind, np.zeros(shape, attributes.dtype))
        if stored.shape != shape:
            raise InvalidInput(f"{path}: {shape[1]} attributes a line; before, {stored.shape[1]}")
        stored[ids] = attributes

    def _features_of(self, kind: str, types: list[Any]) -> Iterable[tuple[Any, torch.Tensor]]:
        if kind not in self._features or not self._features[kind].shape[1]:
            return []
        rows = map(torch.from_numpy, self._by_type(kind, self._features[kind]))
        return zip(types, rows, strict=True)

    def _by_type(self, kind: str, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self._offsets[kind][1:-1])

    def parts(self) -> dict[str, np.ndarray]:
        """Return the part of each node, by type."""
        return dict(zip(self._names["nid"], self._by_type("nid", self._part), strict=True))

    def graph(self) -> Graph:
        """Build the graph; raises InvalidInput if a node or edge is missing."""
        for what, seen in (("node", self._part), ("edge", self._src)):
            if (seen < 0).any():
                raise InvalidInput(
                    f"no file has {what} {int((seen < 0).argmax())} (homogeneous ID). Edges that "
                    "were left out for ParMETIS are in another file: pass it as removed_edges= "
                    "(--removed-edges)"
                )
        first = dict(zip(self._names["nid"], self._offsets["nid"].tolist(), strict=False))
        etypes, ends = [], {}
        pairs = zip(self._by_type("eid", self._src), self._by_type("eid", self._dst), strict=True)
        for name, (src, dst) in zip(self._names["eid"], pairs, strict=True):
            etypes.append(self._etype(name, src, dst))
            ends[etypes[-1]] = (src - first[etypes[-1][0]], dst - first[etypes[-1][2]])
        g = heterograph(ends, {ntype: len(part) for ntype, part in self.parts().items()})
        for ntype, rows in self._features_of("nid", self._names["nid"]):
            g.nodes[ntype].data["feat"] = rows
        for etype, rows in self._features_of("eid", etypes):
            g.edges[etype].data["feat"] = rows
        return g

    def _etype(self, name: str, src: np.ndarray, dst: np.ndarray) -> EdgeType:
        """The canonical type; a relation alone is completed by the endpoints of its first edge."""
        triple = name.split(":")
        if len(triple) == 1 and len(src):
            u, v = np.searchsorted(self._offsets["nid"], [src[0], dst[0]], side="right") - 1
            triple = [self._names["nid"][u], name, self._names["nid"][v]]
        if len(triple) != 3:
            raise InvalidInput(
                f"edge type {name!r} of the schema: expected source:relation:destination, or a "
                "relation that has edges"
            )
        return triple[0], triple[1], triple[2]


def _tables(
    path: Path, num_integers: int, attribute_dtype: Any = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read a file in chunks: its integers, shape (L, num_integers), and attributes, (L, A)."""
    import pandas as pd

    try:
        if not path.stat().st_size:
            return
        for table in pd.read_csv(
            path, sep=r"\s+", header=None, chunksize=_LINES, na_filter=False, quoting=3
        ):
            wanted = table if attribute_dtype is not None else table.iloc[:, :num_integers]
            kinds = "".join(dtype.kind for dtype in wanted.dtypes)
            if not re.fullmatch(f"i{{{num_integers}}}[if]*", kinds):
                raise ValueError(
                    f"expected {num_integers} integers a line, then attributes: numbers, equally "
                    "many on each line"
                )
            integers, attributes = wanted.iloc[:, :num_integers], wanted.iloc[:, num_integers:]
            yield integers.to_numpy(np.int64), attributes.to_numpy(attribute_dtype)
    except OSError as error:
        raise file_error(error, path, kind=InvalidInput) from error
    except ValueError as error:
        raise InvalidInput(f"{path}: {str(error).strip()}") from error
