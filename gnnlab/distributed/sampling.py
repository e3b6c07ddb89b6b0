"""Neighbor sampling on a partitioned graph.

The owner of a node stores its in-edges. So each owner samples for its own nodes, and the client
merges the edges in the order of the seeds. Owners seed the random numbers of a node by its ID in
the user's graph; hence the sample is, edge for edge, that of the whole graph in one memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.distributed import queries
from gnnlab.distributed.client import Client
from gnnlab.distributed.messages import OutEdges, Sample, SampleUntil
from gnnlab.distributed.schema import GraphSchema
from gnnlab.distributed.tensor import DistFrame, DistTensor
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph import neighbor
from gnnlab.graph.frame import Frame, LazyTensor, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import is_scalar, pair_up, read_ids, read_nodes
from gnnlab.graph.names import EID, ETYPE, NID, EdgeType
from gnnlab.graph.neighbor import Picked
from gnnlab.graph.relation import Adjacency, Relation, narrow
from gnnlab.graph.temporal import Until
from gnnlab.kernels.dtypes import torch_ids_dtype

_ONE_TYPE = ("_N", "_E", "_N")


def sample_neighbors(
    g: GraphSchema,
    nodes: Any,
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    exclude_edges: Any = None,
    replace: bool = False,
    *,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    output_device: Any = None,
) -> Graph:
    """Sample ``fanout`` in-edges of each node and return them as a graph on all nodes.

    Arguments are those of :func:`gnnlab.sampling.sample_neighbors`, but for these:

    Parameters
    ----------
    nodes, exclude_edges : IDs, or dict of IDs by type
        Bare IDs of both on a graph with several types are homogeneous ones.
    edge_dir : "in"
    prob : str or DistTensor or dict, optional
        Name of the edge feature with weights: one number or bool per edge, 0 for never.
    copy_ndata : bool
        No effect: nodes of the result have no features. Read those by ID: ``g.ndata[name][ids]``.
    copy_edata : bool
        Whether the result has edge features (fetched on first read).

    Returns
    -------
    Graph
        All nodes of ``g`` and the sampled edges, seed by seed; ``edata[EID]`` holds edge IDs. For
        homogeneous seeds on a graph with several types it has one type, with homogeneous IDs, and
        ``edata[ETYPE]`` holds edge type IDs. A seed without in-edges gets none.
    """
    typed = isinstance(nodes, Mapping) or g.is_homogeneous
    if not typed:
        book = g.get_partition_book()
        nodes = _split(g.ntypes, *book.map_to_per_ntype(nodes))
        if exclude_edges is not None:
            exclude_edges = _split(g.canonical_etypes, *book.map_to_per_etype(exclude_edges))
    whole: Any = g  # which has what sampling needs of a Graph
    frontier = neighbor.sample_neighbors(
        *(whole, nodes, fanout, edge_dir, prob, replace),
        copy_edata=copy_edata and typed,
        exclude_edges=exclude_edges,
    )
    frontier = frontier if typed else _to_homogeneous(g, frontier)
    return frontier if output_device is None else frontier.to(output_device)


def sample_etype_neighbors(
    g: GraphSchema,
    nodes: Any,
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    replace: bool = False,
) -> Graph:
    """Sample ``fanout`` in-edges of each node and edge type; same as :func:`sample_neighbors`."""
    return sample_neighbors(g, nodes, fanout, edge_dir, prob, None, replace)


def in_subgraph(
    g: GraphSchema, nodes: Any, *, relabel_nodes: bool = False, store_ids: bool = True
) -> Graph:
    """Return all in-edges of nodes as a graph on all nodes; IDs as for :func:`sample_neighbors`.

    ``relabel_nodes`` and ``store_ids`` are as for :meth:`DistGraph.edge_subgraph`; without effect
    for homogeneous IDs on a graph with several types.
    """
    typed = isinstance(nodes, Mapping) or g.is_homogeneous
    if not typed:
        nodes = _split(g.ntypes, *g.get_partition_book().map_to_per_ntype(nodes))
    seeds = read_nodes(g, nodes)  # type: ignore[arg-type]
    picked = request_layer(g.client, seeds, dict.fromkeys(g.canonical_etypes, -1), key=0)
    edges = {etype: found.edges() for etype, found in picked.items()}
    if typed:
        return queries.edge_subgraph(g, edges, relabel_nodes, store_ids)
    return _to_homogeneous(g, queries.edge_subgraph(g, edges, relabel_nodes=False))


def subgraph(
    g: GraphSchema, nodes: Any, *, relabel_nodes: bool = True, store_ids: bool = True
) -> Graph:
    """Return the graph of the given nodes and of all edges between them.

    The owners send all in-edges of the nodes, and this process keeps those between them. Arguments,
    with type-wise IDs, are those of :meth:`gnnlab.Graph.subgraph`.

    Returns
    -------
    Graph
        Edges in ascending order of their IDs; features of edges, and of nodes if they are numbered
        from 0, are fetched on first read.
    """
    given = read_nodes(g, nodes)  # type: ignore[arg-type]
    kept = {ntype: given.get(ntype, torch.empty(0, dtype=torch.int64)).long() for ntype in g.ntypes}
    for ntype, ids in kept.items():
        if len(torch.unique(ids)) < len(ids):
            raise InvalidInput(f"nodes of type {ntype!r} repeat; give each once")
    ordered = {ntype: torch.sort(ids) for ntype, ids in kept.items()}
    picked = request_layer(g.client, kept, dict.fromkeys(g.canonical_etypes, -1), key=0)
    relations, frames = {}, {}
    for etype, (ptr, edges, sources, _) in picked.items():
        dst = torch.arange(len(kept[etype[2]])).repeat_interleave(torch.diff(ptr))
        values, order = ordered[etype[0]]
        place = torch.searchsorted(values, sources.long())
        inside = place < len(values)
        inside[inside.clone()] = values[place[inside]] == sources[inside]
        eids, by_id = torch.sort(edges()[inside])
        src, dst = order[place[inside]][by_id], dst[inside][by_id]
        if not relabel_nodes:
            src, dst = kept[etype[0]][src], kept[etype[2]][dst]
        num_src, num_dst = (
            len(kept[ntype]) if relabel_nodes else g.num_nodes(ntype) for ntype in etype[::2]
        )
        relations[etype] = Relation(num_src, num_dst, (narrow(src, num_src), narrow(dst, num_dst)))
        frames[etype] = Frame(len(eids), g.edge_frames[etype].rows(eids), g.device, "edge")
        if store_ids:
            frames[etype][EID] = eids
    if not relabel_nodes:
        return g.derive(relations, edge_frames=frames)
    sizes = {ntype: len(ids) for ntype, ids in kept.items()}
    node_frames = {}
    for ntype, ids in kept.items():
        node_frames[ntype] = Frame(len(ids), g._nodes[ntype].rows(ids), g.device)
        if store_ids:
            node_frames[ntype][NID] = ids
    return g.derive(relations, sizes, node_frames, frames)


def out_subgraph(
    g: GraphSchema, nodes: Any, *, relabel_nodes: bool = False, store_ids: bool = True
) -> Graph:
    """Return all out-edges of nodes, type-wise IDs, as a graph on all nodes.

    ``relabel_nodes`` and ``store_ids`` are as for :meth:`DistGraph.edge_subgraph`. Owners group
    their edges by source when they are first asked: 16 bytes of memory per edge.
    """
    given, none = read_nodes(g, nodes), torch.empty(0, dtype=torch.int64)  # type: ignore[arg-type]
    ranges, edges = g.get_partition_book().node_ranges, {}
    for number, etype in enumerate(g.canonical_etypes):
        ids = given.get(etype[0], none)
        pieces = kernels.owners.split(ids, ranges[etype[0]], "node")
        replies = g.client.ask({piece.part: OutEdges(number, piece.rows) for piece in pieces})
        ptrs, eids = zip(*replies, strict=True) if replies else ((), [none])
        edges[etype] = kernels.owners.Merge(pieces, ptrs, len(ids))(eids).long()
    return queries.edge_subgraph(g, edges, relabel_nodes, store_ids)


def has_edges_between(g: GraphSchema, u: Any, v: Any, etype: str | EdgeType | None = None) -> Any:
    """Whether an edge leads from ``u`` to ``v``: a bool for one pair, else shape (K,), bool.

    IDs are type-wise; the owners of ``v`` send all their in-edges.
    """
    small, src, dst, _ = _in_edges_of(g, u, v, etype)
    found = small.has_edges_between(src, dst)
    return bool(found[0]) if is_scalar(u) and is_scalar(v) else found


def edge_ids(
    g: GraphSchema, u: Any, v: Any, return_uv: bool = False, etype: str | EdgeType | None = None
) -> Any:
    """IDs of the edges from ``u`` to ``v``, as :meth:`gnnlab.Graph.edge_ids` gives them.

    IDs are type-wise; the owners of ``v`` send all their in-edges. With ``return_uv`` every edge of
    every pair is returned, as (sources, destinations, IDs).
    """
    small, src, dst, eids = _in_edges_of(g, u, v, etype)
    src, dst = pair_up(src, dst)
    if return_uv:
        places = small.edge_ids(src, dst, return_uv=True)[2]
        ends = small.relation().coo()
        names = torch.unique(as_tensor(v).reshape(-1).long())
        return ends[0][places].long(), names[ends[1][places].long()], eids[places]
    try:
        places = small.edge_ids(src, dst)
    except NotFound:
        missing = (~small.has_edges_between(src, dst)).nonzero().flatten()[0]
        names = torch.unique(as_tensor(v).reshape(-1).long())
        pair = int(src[missing]), int(names[dst[missing]])
        raise NotFound(
            f"there is no edge {pair}; g.has_edges_between(u, v) tells which pairs exist"
        ) from None
    found = eids[places]
    return int(found[0]) if is_scalar(u) and is_scalar(v) else found


def _in_edges_of(
    g: GraphSchema, u: Any, v: Any, etype: str | EdgeType | None
) -> tuple[Graph, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return all in-edges of ``v`` as a graph, ``u`` and the numbers of ``v`` in it; edge IDs."""
    name = g.to_canonical_etype(etype)
    src = read_ids(u, g.num_nodes(name[0]), "node").long()
    ends, dst = torch.unique(read_ids(v, g.num_nodes(name[2]), "node").long(), return_inverse=True)
    fanouts = {each: -1 if each == name else 0 for each in g.canonical_etypes}
    ptr, edges, sources, _ = request_layer(g.client, {name[2]: ends}, fanouts, key=0)[name]
    sizes = {"u": g.num_nodes(name[0]), "v": len(ends)}
    relation = Relation(g.num_nodes(name[0]), len(ends), csc=Adjacency(ptr, sources))
    return Graph(sizes, {("u", "e", "v"): relation}), src, dst, edges()


def _split(types: Any, kinds: torch.Tensor, within: torch.Tensor) -> dict[Any, torch.Tensor]:
    """Group type-wise IDs by type, for the types that occur; as ``map_to_per_ntype`` gives them."""
    found = {name: within[kinds == number] for number, name in enumerate(types)}
    return {name: ids for name, ids in found.items() if len(ids)}


def _to_homogeneous(g: GraphSchema, frontier: Graph) -> Graph:
    book, total = g.get_partition_book(), g.num_nodes()
    ends: list[list[torch.Tensor]] = [[], []]
    eids, kinds = [], []
    for number, (etype, relation) in enumerate(frontier.relations.items()):
        for side, (end, ntype) in enumerate(zip(relation.coo(), etype[::2], strict=True)):
            ends[side].append(book.map_to_homo_nid(end, ntype))
        eids.append(book.map_to_homo_eid(frontier.edge_frames[etype][EID], etype))
        kinds.append(torch.full((relation.num_edges,), number))
    src, dst = (torch.cat(parts).to(torch_ids_dtype(total)) for parts in ends)
    relation = Relation(total, total, (src, dst))
    columns = {EID: torch.cat(eids), ETYPE: torch.cat(kinds)}
    frame = Frame(len(src), columns, g.device, "edge")
    return Graph({"_N": total}, {_ONE_TYPE: relation}, None, {_ONE_TYPE: frame})


def weight_names(g: GraphSchema, prob: Any) -> tuple[str | None, ...]:
    """Return the full name of the weight tensor per edge type; empty without weights."""
    if prob is None:
        return ()
    by_type = dict.fromkeys(g.canonical_etypes, prob)
    if isinstance(prob, Mapping):
        by_type = {g.to_canonical_etype(etype): value for etype, value in prob.items()}
    some = isinstance(prob, str) and not g.is_homogeneous  # types may lack the feature
    names = tuple(
        _weight_name(frame, by_type.get(etype), some) for etype, frame in g.edge_frames.items()
    )
    if not any(names):
        raise NotFound(f"no edge type has a feature {prob!r} that could be a weight")
    return names


def time_names(g: GraphSchema, column: str) -> tuple[str | None, ...]:
    """Return the full name of the tensor with times per edge type; None for those without."""
    names = []
    for etype, frame in g.edge_frames.items():
        if column in g.node_frames()[etype[0]]:
            raise InvalidInput(
                f"nodes {etype[0]!r} have times {column!r}, and owners of edges {etype} do not "
                "know those of all sources. Before partition_graph, give each edge the later time "
                "of both (g.apply_edges), and take it from the nodes: "
                f"g.nodes[{etype[0]!r}].data.pop({column!r}). Times of seeds are then seed_times=…"
            )
        names.append(frame[column].name if column in frame else None)
    return tuple(names)


def _weight_name(frame: DistFrame, value: Any, optional: bool) -> str | None:
    if value is None or (optional and value not in frame):
        return None
    if isinstance(value, str):
        value = frame[value]
    if not isinstance(value, DistTensor) or value.part_policy != frame.policy:
        raise InvalidInput(
            "weights on a distributed graph lie with the edges: prob is the name of an edge "
            f"feature, or a DistTensor on {frame.policy.policy_str}; found {value!r}"
        )
    return value.name


def request_layer(
    client: Client,
    seeds: Mapping[str, torch.Tensor],
    fanouts: Mapping[EdgeType, int],
    key: int,
    replace: bool = False,
    weights: tuple[str | None, ...] = (),
    excluded: Mapping[EdgeType, torch.Tensor] | None = None,
    until: Until | None = None,
    times: tuple[str | None, ...] = (),
) -> dict[EdgeType, Picked]:
    """Ask the owners of seeds to sample in-edges of every type for one layer.

    Each gets one message. See :func:`gnnlab.graph.neighbor.sample_layer`.
    """
    book = client.book
    pieces = {
        ntype: kernels.owners.split(ids, book.node_ranges[ntype], "node")
        for ntype, ids in seeds.items()
    }
    asked: dict[int, dict[str, torch.Tensor]] = {}
    limits: dict[int, dict[str, torch.Tensor]] = {}
    for ntype, found in pieces.items():
        for part, rows, positions in found:
            asked.setdefault(part, {})[ntype] = rows
            if until is not None:
                limits.setdefault(part, {})[ntype] = until.times[ntype][positions]
    left_out: dict[int, dict[int, torch.Tensor]] = {part: {} for part in asked}
    for etype, ids in (excluded or {}).items():
        for part, rows, _ in kernels.owners.split(ids, book.edge_ranges[etype], "edge"):
            left_out.setdefault(part, {})[client.etype_ids[etype]] = rows
    numbers = tuple(fanouts[etype] for etype in client.etype_ids)
    messages: dict[int, Sample] = {}
    for part, by_type in asked.items():
        request = by_type, numbers, key, replace, weights, left_out[part]
        if until is None:
            messages[part] = Sample(*request)
        else:
            messages[part] = SampleUntil(*request, limits[part], times, until.last)
    replies = dict(zip(messages, client.ask(messages), strict=True))
    picked = {}
    for number, etype in enumerate(client.etype_ids):
        found = pieces.get(etype[2], [])
        none = torch.empty(0, dtype=torch_ids_dtype(int(book.node_ranges[etype[0]][-1])))
        answers = [replies[piece.part][number] for piece in found]
        ptrs, edges, sources = zip(*answers, strict=True) if answers else ((), [none], [none])
        merge = kernels.owners.Merge(found, ptrs, len(seeds.get(etype[2], none)))
        picked[etype] = Picked(
            merge.ptr, LazyTensor(partial(_edge_ids, merge, edges)), merge(sources)
        )
    return picked


def _edge_ids(merge: Any, edges: Sequence[torch.Tensor]) -> torch.Tensor:
    return merge(edges).long()
