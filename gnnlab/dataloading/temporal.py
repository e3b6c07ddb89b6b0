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
from gnnlab.graph.neighbor import Picked
from gnnlab.graph.relation import Relation
from gnnlab.graph.temporal import check_column, read_times

SEED_TIME = "seed_time"


class Nodes:
    """The nodes of a mini-batch by type, each with the time at which it is seen."""

    def __init__(self, g: Any, times: Mapping[Any, torch.Tensor]) -> None:
        """Begin empty lists; ``times`` are all that nodes will have, int64 or float64."""
        is_float = any(each.is_floating_point() for each in times.values())
        dtype = torch.float64 if is_float else torch.int64
        bits = [each.to(dtype).view(torch.int64) for each in times.values()]
        known, places = torch.cat(bits or [torch.empty(0).long()]).unique(return_inverse=True)
        #: As ``times``: where each is among the distinct ones.
        self.places = dict(zip(times, places.int().split([len(b) for b in bits]), strict=True))
        of = known.view(dtype)
        self.lists = {t: kernels.temporal.timed_nodes(g.num_nodes(t), of) for t in g.ntypes}

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
        found, before = {}, {t: nodes.places for t, nodes in self.lists.items()}
        for etype, each in picked.items():
            new = each.sources, before[etype[2]], each.ptr
            found[etype] = each._replace(sources=self.lists[etype[0]].add(*new))
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
    nodes = Nodes(g, by_type)
    for ntype, ids in given.items():
        kernels.temporal.add_seeds(nodes.lists[ntype], ids, nodes.places[ntype])
    return nodes, given


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
    nodes, ends = Nodes(g, times), []
    none = torch.empty(0, dtype=torch.int32, device=g.device)
    for graph in graphs:
        found = {}
        for etype, relation in graph.relations.items():
            places = nodes.places.get(etype, none)
            each = relation.num_edges // max(len(places), 1)
            ptr = torch.arange(len(places) + 1, device=g.device) * each
            src, dst = (
                nodes.lists[ntype].add(ids, places, ptr)
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
