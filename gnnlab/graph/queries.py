"""Queries of a graph's structure.

Functions of a graph; :class:`Graph` has each as a method. Node and edge IDs may be numbers, lists,
numpy arrays or tensors; for a single number the result is a single number where DGL does so.
"""

from __future__ import annotations

from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.core import GraphCore
from gnnlab.graph.ids import is_scalar, pair_up, read_ids
from gnnlab.graph.names import ALL, EdgeType, is_all
from gnnlab.graph.relation import Adjacency, Relation


def in_degrees(graph: GraphCore, v: Any = ALL, etype: str | EdgeType | None = None) -> Any:
    """Number of edges that point at each node.

    Parameters
    ----------
    v : int, sequence of int or tensor, optional
        Nodes; all by default.
    etype : str or tuple, optional
        Needed where there are several edge types.

    Returns
    -------
    int or torch.Tensor
        An int for a single node, else shape (len(v),) in the graph's ID dtype.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    >>> g.in_degrees(), g.in_degrees(2)
    (tensor([1, 0, 2]), 2)
    """
    relation = graph.relation(etype)
    return _degrees(graph, relation.in_degrees(), v, relation.num_dst)


def out_degrees(graph: GraphCore, u: Any = ALL, etype: str | EdgeType | None = None) -> Any:
    """Number of edges that leave each node; as :func:`in_degrees`."""
    relation = graph.relation(etype)
    return _degrees(graph, relation.out_degrees(), u, relation.num_src)


def _degrees(graph: GraphCore, degrees: torch.Tensor, nodes: Any, bound: int) -> Any:
    if is_all(nodes):
        return graph.as_ids(degrees)
    ids = read_ids(nodes, bound, "node", graph.device)
    if is_scalar(nodes):
        return int(degrees[ids[0]])
    return graph.as_ids(degrees[ids])


def find_edges(
    graph: GraphCore, eid: Any, etype: str | EdgeType | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Source and destination of edges.

    Parameters
    ----------
    eid : int, sequence of int or tensor
        Edge IDs.

    Returns
    -------
    tuple of torch.Tensor
        Sources and destinations, shapes (len(eid),).

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.graph(([0, 1, 2], [2, 2, 0])).find_edges([1])
    (tensor([1]), tensor([2]))
    """
    relation = graph.relation(etype)
    ids = read_ids(eid, relation.num_edges, "edge", graph.device)
    src, dst = relation.coo()
    return graph.as_ids(src[ids]), graph.as_ids(dst[ids])


def all_edges(
    graph: GraphCore,
    form: str = "uv",
    order: str | None = "eid",
    etype: str | EdgeType | None = None,
) -> Any:
    """All edges.

    Parameters
    ----------
    form : {"uv", "eid", "all"}
        Ends of the edges, their IDs, or both.
    order : {"eid", "srcdst"}
        By edge ID, or by source and then destination.

    Returns
    -------
    tuple of torch.Tensor or torch.Tensor
        (sources, destinations), edge IDs, or (sources, destinations, edge IDs); shapes (E,).
    """
    relation = graph.relation(etype)
    src, dst = relation.coo()
    eids = torch.arange(relation.num_edges, device=src.device)
    if order == "srcdst":
        keys = src.long() * max(relation.num_dst, 1) + dst
        eids = torch.argsort(keys, stable=True)
        src, dst = src[eids], dst[eids]
    elif order not in ("eid", None):
        raise InvalidInput(f"order must be 'eid' or 'srcdst'; found {order!r}")
    return _form(graph, src, dst, eids, form)


def _form(
    graph: GraphCore, src: torch.Tensor, dst: torch.Tensor, eids: torch.Tensor, form: str
) -> Any:
    if form == "eid":
        return graph.as_ids(eids)
    if form == "uv":
        return graph.as_ids(src), graph.as_ids(dst)
    if form == "all":
        return graph.as_ids(src), graph.as_ids(dst), graph.as_ids(eids)
    raise InvalidInput(f"form must be 'uv', 'eid' or 'all'; found {form!r}")


def in_edges(
    graph: GraphCore, v: Any, form: str = "uv", etype: str | EdgeType | None = None
) -> Any:
    """Edges that point at the given nodes, node by node; see :func:`all_edges` for ``form``."""
    relation = graph.relation(etype)
    ids = read_ids(v, relation.num_dst, "node", graph.device)
    nodes, sources, eids = _incident(relation.csc(), ids)
    return _form(graph, sources, nodes, eids, form)


def out_edges(
    graph: GraphCore, u: Any, form: str = "uv", etype: str | EdgeType | None = None
) -> Any:
    """Edges that leave the given nodes, node by node; see :func:`all_edges` for ``form``."""
    relation = graph.relation(etype)
    ids = read_ids(u, relation.num_src, "node", graph.device)
    nodes, destinations, eids = _incident(relation.csr(), ids)
    return _form(graph, nodes, destinations, eids, form)


def incident_slots(adjacency: Adjacency, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Slots of all edges of the given nodes: (position in ``nodes`` of each, slot of each)."""
    first = adjacency.indptr[nodes]
    count = adjacency.indptr[nodes + 1] - first
    which = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), count)
    before = torch.cumsum(count, 0) - count
    return which, torch.arange(len(which), device=nodes.device) + (first - before)[which]


def _incident(
    adjacency: Adjacency, nodes: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    which, slots = incident_slots(adjacency, nodes)
    return nodes[which], adjacency.indices[slots], adjacency.eids_at(slots)


def successors(graph: GraphCore, v: int, etype: str | EdgeType | None = None) -> torch.Tensor:
    """Distinct nodes that an edge from ``v`` points at, ascending."""
    ids = read_ids(v, graph.relation(etype).num_src, "node", graph.device, distinct=True)
    return torch.unique(out_edges(graph, ids, etype=etype)[1])


def predecessors(graph: GraphCore, v: int, etype: str | EdgeType | None = None) -> torch.Tensor:
    """Distinct nodes from which an edge points at ``v``, ascending."""
    ids = read_ids(v, graph.relation(etype).num_dst, "node", graph.device, distinct=True)
    return torch.unique(in_edges(graph, ids, etype=etype)[0])


def edge_ids(
    graph: GraphCore, u: Any, v: Any, return_uv: bool = False, etype: str | EdgeType | None = None
) -> Any:
    """IDs of the edges from ``u`` to ``v``, pair by pair.

    Parameters
    ----------
    u, v : int, sequence of int or tensor
        Sources and destinations; one of them may be single.
    return_uv : bool
        Return every edge of every pair, as (sources, destinations, IDs); without it the edge of
        smallest ID of each pair.

    Returns
    -------
    int, torch.Tensor or tuple

    Raises
    ------
    NotFound
        A pair has no edge and ``return_uv`` is False.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 0, 1], [1, 1, 2]))
    >>> g.edge_ids([0, 1], [1, 2])
    tensor([0, 2])
    >>> g.edge_ids([0], [1], return_uv=True)
    (tensor([0, 0]), tensor([1, 1]), tensor([0, 1]))
    """
    relation = graph.relation(etype)
    src, dst = _pairs(graph, relation, u, v)
    which, eids = _find(relation, src, dst)
    if return_uv:
        return graph.as_ids(src[which]), graph.as_ids(dst[which]), graph.as_ids(eids)
    found = torch.full_like(src, relation.num_edges).scatter_reduce_(0, which, eids, "amin")
    missing = (found == relation.num_edges).nonzero().flatten()
    if len(missing):
        pair = (int(src[missing[0]]), int(dst[missing[0]]))
        raise NotFound(
            f"there is no edge {pair}; g.has_edges_between(u, v) tells which pairs exist"
        )
    return int(found[0]) if is_scalar(u) and is_scalar(v) else graph.as_ids(found)


def has_edges_between(graph: GraphCore, u: Any, v: Any, etype: str | EdgeType | None = None) -> Any:
    """Whether an edge leads from ``u`` to ``v``: a bool for one pair, else shape (K,), bool."""
    relation = graph.relation(etype)
    src, dst = _pairs(graph, relation, u, v)
    found = has_edges(relation, src, dst)
    return bool(found[0]) if is_scalar(u) and is_scalar(v) else found


def has_nodes(graph: GraphCore, nodes: Any, ntype: str | None = None) -> Any:
    """Whether nodes exist: a bool for one ID, else shape (K,), bool."""
    bound = graph.num_nodes(graph.resolve_ntype(ntype))
    ids = read_ids(nodes, bound, "node", graph.device, check=False)
    found = (ids >= 0) & (ids < bound)
    return bool(found[0]) if is_scalar(nodes) else found


def _pairs(
    graph: GraphCore, relation: Relation, u: Any, v: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    src = read_ids(u, relation.num_src, "node", graph.device).long()
    dst = read_ids(v, relation.num_dst, "node", graph.device).long()
    src, dst = pair_up(src, dst)
    return src.contiguous(), dst.contiguous()


def has_edges(relation: Relation, src: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """Whether each pair of nodes has an edge, shape (K,), bool; IDs in range (not checked)."""
    if src.device.type != "cpu":
        found = torch.zeros(len(src), dtype=torch.bool, device=src.device)
        found[_find(relation, src, dst)[0]] = True
        return found
    adjacency = relation.csc()
    arrays = (adjacency.indptr, adjacency.indices, dst, src)
    return torch.from_numpy(kernels.csc.contains(*(array.numpy() for array in arrays)))


def _find(
    relation: Relation, src: torch.Tensor, dst: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """All edges of all pairs: (position of the pair, edge ID), by pair and then by edge ID."""
    adjacency = relation.csc()
    which, slots = incident_slots(adjacency, dst)
    match = adjacency.indices[slots] == src[which]
    return which[match], adjacency.eids_at(slots[match]).long()


def adj_tensors(
    graph: GraphCore, fmt: str, etype: str | EdgeType | None = None
) -> tuple[torch.Tensor, ...]:
    """The adjacency matrix as tensors.

    Parameters
    ----------
    fmt : {"coo", "csr", "csc"}

    Returns
    -------
    tuple of torch.Tensor
        (sources, destinations), or (indptr, indices, edge IDs).
    """
    relation = graph.relation(etype)
    if fmt == "coo":
        return all_edges(graph, etype=etype)  # type: ignore[no-any-return]
    if fmt not in ("csr", "csc"):
        raise InvalidInput(f"fmt must be 'coo', 'csr' or 'csc'; found {fmt!r}")
    adjacency = relation.csc() if fmt == "csc" else relation.csr()
    return tuple(graph.as_ids(x) for x in (adjacency.indptr, adjacency.indices, adjacency.eids))


def adj_external(
    graph: GraphCore,
    transpose: bool = False,
    ctx: Any = None,
    scipy_fmt: str | None = None,
    etype: str | EdgeType | None = None,
) -> Any:
    """The adjacency matrix, rows sources and columns destinations.

    Parameters
    ----------
    transpose : bool
        Rows destinations instead.
    ctx : torch.device, optional
        Device of the result.
    scipy_fmt : {"coo", "csr"}, optional
        Return a scipy matrix instead of a torch sparse tensor. Its values are ones, too.
    """
    if isinstance(transpose, str | tuple):
        raise InvalidInput(f"transpose is True or False; found {transpose!r}; a type is etype=…")
    relation = graph.relation(etype)
    src, dst = relation.coo()
    rows, columns, shape = src, dst, (relation.num_src, relation.num_dst)
    if transpose:
        rows, columns, shape = dst, src, shape[::-1]
    if scipy_fmt is None:
        index = torch.stack([rows.long(), columns.long()])
        ones = torch.ones(relation.num_edges, device=src.device)
        return torch.sparse_coo_tensor(index, ones, shape, check_invariants=False).to(ctx)
    import scipy.sparse

    values = torch.ones(relation.num_edges, dtype=torch.int64).numpy()
    if scipy_fmt == "coo":
        return scipy.sparse.coo_matrix((values, (rows.cpu().numpy(), columns.cpu().numpy())), shape)
    if scipy_fmt == "csr":
        by_row = relation.csc() if transpose else relation.csr()
        arrays = (values, by_row.indices.cpu().numpy(), by_row.indptr.cpu().numpy())
        return scipy.sparse.csr_matrix(arrays, shape)  # keeps doubled edges apart
    raise InvalidInput(f"scipy_fmt must be None, 'coo' or 'csr'; found {scipy_fmt!r}")
