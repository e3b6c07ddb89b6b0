"""Estimates of the memory, disk space and time that partitioning needs.

The estimates follow from the sizes. The number of halo nodes depends on the share of cut edges,
which is assumed; times are those of a laptop. Only the order of magnitude is reliable.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from gnnlab.errors import InvalidInput, check_graph, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.launch.probe import free_memory
from gnnlab.partition.assign import THIN_FROM, THINNED_TO
from gnnlab.partition.metis import default_method

# For each edge: bytes of memory besides the graph, seconds, and the assumed share of cut edges.
_METHODS = {"metis": (105, 5e-7, 0.25), "ldg": (30, 3e-7, 0.25), "random": (22, 1e-7, 1.0)}
_BUILD_SECONDS = 2e-7  # an edge
_BYTES_PER_SECOND = 3e8  # hashed and written
_GIB = 2**30


@dataclass(frozen=True)
class Plan:
    """Predicted needs, in bytes and seconds.

    Attributes
    ----------
    memory, disk : int
        Peak of memory besides the graph itself; size of all files.
    seconds : float
    free_memory, free_disk : int or None
        Available now; None if unknown.
    num_parts : int
    part_method : str
    """

    memory: int
    disk: int
    seconds: float
    free_memory: int | None
    free_disk: int | None
    num_parts: int
    part_method: str

    @property
    def warnings(self) -> list[str]:
        """Resources that are short, and the remedies."""
        found = []
        if self.free_memory is not None and self.memory > self.free_memory:
            ldg = 'part_method="ldg" or ' if self.part_method == "metis" else ""
            found.append(
                f"memory is short: {_gib(self.memory)} needed, {_gib(self.free_memory)} free; use "
                f"{ldg}partition_files, which reads the graph from files in chunks"
            )
        if self.free_memory is not None and self.disk > self.free_memory:
            most = max(0, self.free_memory - 3 * 10**8) // 10**6  # beside code and batches
            found.append(
                f"one machine like this cannot hold all parts in memory: {_gib(self.disk)} needed, "
                f"{_gib(self.free_memory)} free; use several, or read features from the disk: "
                f"DistGraph(…, memory='{most}MB') at most"
            )
        if self.free_disk is not None and self.disk > self.free_disk:
            found.append(
                f"disk is short: {_gib(self.disk)} needed, {_gib(self.free_disk)} free; choose "
                "another out_path"
            )
        return found

    def __str__(self) -> str:
        """One line, and one more for each warning."""
        first = (
            f"{self.num_parts} parts ({self.part_method}): about {_gib(self.memory)} of memory "
            f"besides the graph, {_gib(self.disk)} on disk, {_duration(self.seconds)}"
        )
        return "\n".join([first, *(f"warning: {text}" for text in self.warnings)])


def plan(
    g: Graph | Mapping[str, int],
    num_parts: int,
    part_method: str | None = None,
    num_hops: int = 1,
    out_path: str | os.PathLike[str] = ".",
) -> Plan:
    """Estimate what ``partition_graph`` needs.

    Parameters
    ----------
    g : Graph or dict
        Without the graph, its sizes: "num_nodes", "num_edges" and the total bytes of features,
        "node_bytes" and "edge_bytes".
    num_parts, part_method, num_hops, out_path
        As for :func:`partition_graph`.

    Returns
    -------
    Plan
        Raises nothing if resources are short; see its ``warnings``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> sizes = {"num_nodes": 2_449_029, "num_edges": 123_718_280, "node_bytes": 979_611_600}
    >>> print(dgl.partition.plan(sizes, 4, "metis"))  # doctest: +ELLIPSIS
    4 parts (metis): about 6.7 GiB of memory besides the graph, ...
    """
    if not isinstance(g, Mapping):
        check_graph(g, "plan")
    sizes = g if isinstance(g, Mapping) else _sizes(g)
    if missing := {"num_nodes", "num_edges"} - set(sizes):
        raise InvalidInput(f"the sizes of a graph lack {', '.join(sorted(missing))}")
    num_parts = whole_number(num_parts, "num_parts", 1)
    part_method = default_method() if part_method is None else part_method
    sizes = {name: int(value) for name, value in sizes.items()}  # of numpy, they overflow
    num_nodes, num_edges = sizes["num_nodes"], sizes["num_edges"]
    features = sizes.get("node_bytes", 0) + sizes.get("edge_bytes", 0)
    per_edge, seconds, cut = _METHODS.get(part_method, _METHODS["random"])
    memory = per_edge * num_edges
    if part_method == "metis" and num_edges > THIN_FROM:
        memory = 22 * num_edges + 75 * min(num_edges, 2 * THINNED_TO * num_nodes)
    # Cut edges hit nodes of other parts at random; further hops multiply their number.
    between = num_edges * cut * (1 - 1 / num_parts) * num_hops
    others = max(num_nodes * (1 - 1 / num_parts), 1)
    halo = num_parts * others * (1 - exp(-2 * between / num_parts / others))
    node_id, edge_id = (4 if count < 2**31 else 8 for count in (num_nodes, num_edges))
    structure = 16 * num_nodes + 24 * halo + (node_id + edge_id) * num_edges
    structure += (8 + node_id + edge_id) * between
    disk = int(structure + features)
    return Plan(
        memory=int(memory + 40 * num_nodes),
        disk=disk,
        seconds=num_edges * (seconds + _BUILD_SECONDS) + disk / _BYTES_PER_SECOND,
        free_memory=free_memory(),
        free_disk=_free_disk(Path(out_path)),
        num_parts=num_parts,
        part_method=part_method,
    )


def _sizes(g: Graph) -> dict[str, int]:
    def size(frames: Any) -> int:
        return sum(frame[name].nbytes for frame in frames for name in frame)

    return {
        "num_nodes": sum(g.num_nodes(ntype) for ntype in g.ntypes),
        "num_edges": sum(g.num_edges(etype) for etype in g.canonical_etypes),
        "node_bytes": size(g.node_frames().values()),
        "edge_bytes": size(g.edge_frames.values()),
    }


def _free_disk(path: Path) -> int | None:
    path = path.absolute()
    with suppress(OSError):
        return shutil.disk_usage(next(p for p in (path, *path.parents) if p.exists())).free
    return None


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size / 2**20:.0f} MiB"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{max(seconds, 1):.0f} s"
