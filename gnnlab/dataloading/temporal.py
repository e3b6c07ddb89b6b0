"""Mini-batches that do not look ahead in time.

Each seed has a time, and no edge that leads to it, at any distance, is later. A node is in the
batch once for each time at which it is seen, so seeds with the same time share their neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.dataloading.seeds import Timed
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import node_dict, read_ids
from gnnlab.graph.names import NID, EdgeType
from gnnlab.graph.neighbor import Picked, repeat
from gnnlab.graph.relation import Relation
from gnnlab.graph.temporal import check_column, read_times

SEED_TIME = "seed_time"


class Nodes:
    """The nodes of a mini-batch by type, each with the time at which it is seen."""

    def __init__(self, g: Any, dtype: torch.dtype) -> None:
        self.lists = {
            t: kernels.temporal.timed_nodes(g.num_nodes(t), dtype, g.device) for t in g.ntypes
        }

    def counts(self) -> dict[str, int]:
        """Return the number of nodes of each type."""
        return {ntype: nodes.count for ntype, nodes in self.lists.items()}

    def ids(self) -> dict[str, torch.Tensor]:
        """Return the nodes of each type."""
        return {ntype: nodes.ids for ntype, nodes in self.lists.items()}

    def times(self) -> dict[str, torch.Tensor]:
        """Return the time of each node."""
        return {ntype: nodes.times for ntype, nodes in self.lists.items()}

    def add_sources(self, picked: Mapping[EdgeType, Picked]) -> dict[EdgeType, Picked]:
        """Add the sources of a layer with the times of its seeds; return local IDs as sources."""
        times, found = self.times(), {}  # before any is added
        for etype, each in picked.items():
            seen = repeat(times[etype[2]], each.ptr, len(each.sources))
            found[etype] = each._replace(sources=self.lists[etype[0]].add(each.sources, seen))
        return found


def open_nodes(g: Any, seeds: Any, column: str) -> tuple[Nodes, dict[str, torch.Tensor]]:
    """Begin the list of nodes with the seeds; also return the seeds by type."""
    check_column(g, column)
    times = None
    if isinstance(seeds, Timed):
        seeds, times = seeds
    given = {
        ntype: read_ids(ids, g.num_nodes(ntype), "node", g.device)
        for ntype, ids in node_dict(g, seeds).items()
    }
    by_type = _times_of(g, given, column) if times is None else _by_type(given, times)
    nodes = Nodes(g, _common(by_type))
    for ntype, ids in given.items():
        add_seeds = kernels.temporal.add_seeds
        add_seeds(nodes.lists[ntype], ids, by_type[ntype].to(_common(by_type)))
    return nodes, given


def _common(times: Mapping[Any, torch.Tensor]) -> torch.dtype:
    is_float = any(each.is_floating_point() for each in times.values())
    return torch.float64 if is_float else torch.int64


def _by_type(given: Mapping[str, torch.Tensor], times: Any) -> dict[str, torch.Tensor]:
    by_type = times if isinstance(times, Mapping) else dict.fromkeys(given, times)
    if set(by_type) != set(given):
        raise InvalidInput(f"seeds of types {list(given)} have times of types {list(by_type)}")
    return {
        ntype: read_times(by_type[ntype], len(ids), "times of seeds").to(ids.device)
        for ntype, ids in given.items()
    }


def _times_of(g: Any, given: Mapping[str, torch.Tensor], column: str) -> dict[str, torch.Tensor]:
    found = {}
    for ntype, ids in given.items():
        frame = g.node_frames()[ntype]
        if column not in frame:
            raise NotFound(
                f"seeds of type {ntype!r} have no time: nodes have no feature {column!r}. Give "
                "seed_times=… to the loader, or the sampler dgl.dataloading.Timed(ids, times)"
            )
        found[ntype] = read_times(frame[column][ids.long()], len(ids), "times of seeds")
    return found


def timed_pairs(
    g: Any, graphs: list[Graph], times: Mapping[EdgeType, torch.Tensor]
) -> tuple[list[Graph], Timed]:
    """Number the ends of edges by time: as ``compact_graphs``, but one node for each time.

    The graphs, on all nodes of ``g``, are the seed edges, then the negative pairs; ``times`` are
    those of the seed edges, and each edge's k pairs have the same. Returned are graphs on the pairs
    (node, time) that occur, with ``ndata[NID]`` and ``ndata["seed_time"]``, and these nodes.
    """
    nodes, ends = Nodes(g, _common(times)), []
    for graph in graphs:
        found = {}
        for etype, relation in graph.relations.items():
            each = times.get(etype, torch.empty(0, device=g.device)).to(_common(times))
            each = each.repeat_interleave(relation.num_edges // max(len(each), 1))
            src, dst = (
                nodes.lists[ntype].add(ids, each)
                for ntype, ids in zip(etype[::2], relation.coo(), strict=True)
            )
            found[etype] = src, dst
        ends.append(found)
    sizes, until = nodes.counts(), nodes.times()
    ids = {ntype: each.to(g.idtype) for ntype, each in nodes.ids().items()}
    made = []
    for graph, found in zip(graphs, ends, strict=True):
        relations = {e: Relation(sizes[e[0]], sizes[e[2]], both) for e, both in found.items()}
        made.append(graph.derive(relations, sizes))
        for ntype, frame in made[-1].node_frames().items():
            frame[NID], frame[SEED_TIME] = ids[ntype], until[ntype]
    some = [ntype for ntype, count in sizes.items() if count]
    return made, Timed({t: ids[t] for t in some}, {t: until[t] for t in some})
