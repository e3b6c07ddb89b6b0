"""Structure queries on a partitioned graph.

They are methods of :class:`DistGraph`. Each owner gets one message with the rows that it owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.distributed.client import Client
from gnnlab.distributed.messages import Degrees, FindEdges, Message, Reverse
from gnnlab.distributed.schema import GraphSchema
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import edge_dict, is_scalar, read_ids
from gnnlab.graph.names import ALL, EID, EdgeType, is_all
from gnnlab.graph.relation import Relation, narrow


def in_degrees(g: GraphSchema, v: Any = ALL, etype: str | EdgeType | None = None) -> Any:
    """Number of in-edges of each node, int64; as :meth:`gnnlab.Graph.in_degrees`.

    If none of several edge types is named, IDs are homogeneous, and edges of all types count.
    """
    return _degrees(g, v, etype, inward=True)


def out_degrees(g: GraphSchema, u: Any = ALL, etype: str | EdgeType | None = None) -> Any:
    """Number of out-edges of each node; as :func:`in_degrees`."""
    return _degrees(g, u, etype, inward=False)


def _degrees(g: GraphSchema, nodes: Any, etype: str | EdgeType | None, inward: bool) -> Any:
    end = 2 if inward else 0
    name = g.to_canonical_etype(etype) if etype is not None or g.is_homogeneous else None
    bound = g.num_nodes(name[end] if name else None)
    ids = torch.arange(bound) if is_all(nodes) else read_ids(nodes, bound, "node")
    if name:
        found = _degrees_of(g, ids, name, inward)
    else:
        kinds, within = g.get_partition_book().map_to_per_ntype(ids)
        found = torch.zeros(len(ids), dtype=torch.int64)
        for each in g.canonical_etypes:
            place = kinds == g.get_ntype_id(each[end])
            found[place] += _degrees_of(g, within[place], each, inward)
    return int(found[0]) if is_scalar(nodes) else found


def _degrees_of(g: GraphSchema, ids: torch.Tensor, etype: EdgeType, inward: bool) -> torch.Tensor:
    offsets = g.get_partition_book().node_ranges[etype[2 if inward else 0]]
    number = g.get_etype_id(etype)
    found = torch.empty(len(ids), dtype=torch.int64)
    for positions, reply in _query_owners(
        g.client, ids, offsets, "node", lambda rows: Degrees(number, rows, inward)
    ):
        found[positions] = reply
    return found


def _query_owners(
    client: Client,
    ids: torch.Tensor,
    offsets: np.ndarray,
    what: str,
    message: Callable[[torch.Tensor], Message],
) -> list[tuple[Any, Any]]:
    """Query the owners of IDs; return the replies, each with the positions of its IDs."""
    shards = kernels.owners.split(ids, offsets, what)
    replies = client.ask({shard.part: message(shard.rows) for shard in shards})
    return list(zip((shard.positions for shard in shards), replies, strict=True))


def find_edges(
    g: GraphSchema, edges: Any, etype: str | EdgeType | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Source and destination of edges, int64; as :meth:`gnnlab.Graph.find_edges`.

    On a graph with several edge types of which none is named, all IDs are homogeneous.
    """
    if isinstance(g, Graph):
        raise InvalidInput(
            "find_edges of a graph in one process is its method: g.find_edges(edges)"
        )
    if etype is not None or g.is_homogeneous:
        name = g.to_canonical_etype(etype)
        return _ends_of(g, read_ids(edges, g.num_edges(name), "edge"), name)
    book = g.get_partition_book()
    kinds, within = book.map_to_per_etype(edges)
    src, dst = torch.empty_like(within), torch.empty_like(within)
    for number, each in enumerate(g.canonical_etypes):
        place = kinds == number
        ends = _ends_of(g, within[place], each)
        src[place], dst[place] = map(book.map_to_homo_nid, ends, each[::2])
    return src, dst


def _ends_of(
    g: GraphSchema, ids: torch.Tensor, etype: EdgeType
) -> tuple[torch.Tensor, torch.Tensor]:
    offsets = g.get_partition_book().edge_ranges[etype]
    number = g.get_etype_id(etype)
    src, dst = (torch.empty(len(ids), dtype=torch.int64) for _ in range(2))
    for positions, ends in _query_owners(
        g.client, ids, offsets, "edge", lambda rows: FindEdges(number, rows)
    ):
        src[positions], dst[positions] = ends
    return src, dst


def reverse_edges(
    g: GraphSchema, edges: Any, etype: str | EdgeType, reverse_etype: str | EdgeType
) -> torch.Tensor:
    """Return the reverse edges: those of another type with the same ID in the user's graph.

    Partitioning renumbers types separately; an edge and its reverse then have different IDs.

    Returns
    -------
    torch.Tensor
        IDs of the reverse edges, in no particular order, shape (K,), int64. InvalidInput is raised
        if an edge has none.
    """
    name = g.to_canonical_etype(etype)
    numbers = g.get_etype_id(name), g.get_etype_id(reverse_etype)
    ids = read_ids(edges, g.num_edges(name), "edge")
    offsets = g.get_partition_book().edge_ranges[name]
    answers = _query_owners(
        g.client, ids, offsets, "edge", lambda rows: Reverse(numbers[0], rows, numbers[1])
    )
    return torch.cat([torch.empty(0, dtype=torch.int64), *(reply for _, reply in answers)])


def edge_subgraph(
    g: GraphSchema,
    edges: Any,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    preserve_nodes: bool | None = None,
) -> Graph:
    """Return the subgraph of the given edges and their endpoints.

    As :meth:`gnnlab.Graph.edge_subgraph`; features are fetched when they are first read.
    """
    relabel = relabel_nodes if preserve_nodes is None else not preserve_nodes
    given = edge_dict(g, edges)  # type: ignore[arg-type]
    relations, frames = {}, {}
    for etype, features in g.edge_frames.items():
        ids = read_ids(given.get(etype, []), features.num_rows, "edge").long()
        src, dst = _ends_of(g, ids, etype)
        num_src, num_dst = g.num_nodes(etype[0]), g.num_nodes(etype[2])
        coo = narrow(src, num_src), narrow(dst, num_dst)
        relations[etype] = Relation(num_src, num_dst, coo)
        frames[etype] = Frame(len(ids), features.rows(ids), g.device, "edge")
        if store_ids:
            frames[etype][EID] = ids
    graph = g.derive(relations, edge_frames=frames)
    if not relabel:
        return graph
    everything = {etype: torch.arange(rel.num_edges) for etype, rel in relations.items()}
    small = graph.edge_subgraph(everything, store_ids=store_ids)
    sizes = {ntype: small.num_nodes(ntype) for ntype in small.ntypes}
    return small.derive(small.relations, sizes, small.node_frames(), frames)
