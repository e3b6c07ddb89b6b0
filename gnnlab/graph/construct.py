"""Constructors of graphs from edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers
from gnnlab.graph.names import ONE_ETYPE, EdgeType
from gnnlab.graph.relation import Adjacency, Relation, check_ids, narrow


def graph(
    data: Any,
    *,
    num_nodes: int | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph with one node type and one edge type.

    Parameters
    ----------
    data : tuple or list
        ``(sources, destinations)`` as tensors, numpy arrays or lists of shape (E,); or a list of
        edges, ``[(source, destination), …]`` or ``[[0, 1], [2, 3]]``; or
        ``("coo", (sources, destinations))``, ``("csr", (indptr, indices, edge IDs))``,
        ``("csc", (indptr, indices, edge IDs))``, where empty edge IDs stand for 0 … E−1.
    num_nodes : int, optional
        By default the largest ID plus one.
    idtype : torch.dtype, optional
        int64 or int32; by default int32 when the data is, else int64.
    device : torch.device, optional
        Device of the graph; by default that of the data.

    Returns
    -------
    Graph

    Raises
    ------
    OutOfRange
        An ID is negative or not below ``num_nodes``.
    InvalidInput
        Sources and destinations differ in length, or IDs are not integers.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]), num_nodes=4)
    >>> g.num_nodes(), g.num_edges()
    (4, 3)
    >>> dgl.graph([(0, 1), (1, 2), (2, 0)]).edges()
    (tensor([0, 1, 2]), tensor([1, 2, 0]))

    References
    ----------
    DGL user guide, chapter 1.2, "Graphs, Nodes, and Edges".
    """
    kind, arrays = _read(data)
    if kind in ("csr", "csc"):
        relation, ids_dtype = _from_compressed(kind, arrays, num_nodes)
    else:
        src, dst = arrays
        count = _count(num_nodes, src, dst)
        relation, ids_dtype = Relation.from_edges(src, dst, count, count), src.dtype
    sizes = {"_N": relation.num_src}
    made = Graph(sizes, {ONE_ETYPE: relation}, idtype=_idtype(idtype, ids_dtype))
    return made if device is None else made.to(device)


def heterograph(
    data_dict: Mapping[EdgeType, Any],
    num_nodes_dict: Mapping[str, int] | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph with typed nodes and edges.

    Parameters
    ----------
    data_dict : dict
        (source type, relation, destination type) → edges in the forms of :func:`graph`. Types are
        ordered by name, whatever the order of the dict.
    num_nodes_dict : dict, optional
        Node type → number of nodes; by default the largest ID of each type plus one.
    idtype, device
        As in :func:`graph`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.heterograph({("user", "plays", "game"): ([0, 1], [1, 0])})
    >>> g.ntypes, g.num_nodes("game")
    (['game', 'user'], 2)

    References
    ----------
    DGL user guide, chapter 1.5, "Heterogeneous Graphs".
    """
    for name, each in (("data_dict", data_dict), ("num_nodes_dict", num_nodes_dict or {})):
        if not isinstance(each, Mapping):
            raise InvalidInput(
                f"{name} is a dict by type, such as {{('user', 'plays', 'game'): (src, dst)}} or "
                f"{{'user': 5}}; found {type(each).__name__}"
            )
    read: dict[EdgeType, tuple[str, list[torch.Tensor]]] = {}
    for etype, data in data_dict.items():
        if not (
            isinstance(etype, tuple) and len(etype) == 3 and all(isinstance(n, str) for n in etype)
        ):
            raise InvalidInput(
                "an edge type is a triple of names (source type, relation, destination type); "
                f"found {etype!r}"
            )
        read[etype] = _read(data)
    counts = {ntype: _count(count) for ntype, count in (num_nodes_dict or {}).items()}
    for etype, (kind, arrays) in read.items():
        if kind in ("csr", "csc"):
            read[etype] = ("coo", _compressed_to_coo(kind, arrays))
    for ntype in {name for etype in read for name in (etype[0], etype[2])}:
        ends = [a[0] for e, (_, a) in read.items() if e[0] == ntype]
        ends += [a[1] for e, (_, a) in read.items() if e[2] == ntype]
        if ntype not in counts:
            if num_nodes_dict is not None:
                raise InvalidInput(f"num_nodes_dict lacks node type {ntype!r}, which edges use")
            counts[ntype] = _count(None, *ends)
    relations = {}
    for etype in sorted(read):
        src, dst = read[etype][1]
        try:
            relations[etype] = Relation.from_edges(src, dst, counts[etype[0]], counts[etype[2]])
        except (InvalidInput, OutOfRange) as error:
            raise type(error)(f"edge type {etype}: {error}", code=error.code) from None
    dtypes = {arrays[0].dtype for _, arrays in read.values()}
    given = dtypes.pop() if len(dtypes) == 1 else torch.int64
    sizes = {ntype: counts[ntype] for ntype in sorted(counts)}
    made = Graph(sizes, relations, idtype=_idtype(idtype, given))
    return made if device is None else made.to(device)


def rand_graph(
    num_nodes: int, num_edges: int, idtype: torch.dtype = torch.int64, device: Any = None
) -> Graph:
    """Make a graph of edges whose ends are drawn uniformly, by torch's generator.

    Parameters
    ----------
    num_nodes, num_edges : int

    Returns
    -------
    Graph
    """
    num_nodes = whole_number(num_nodes, "num_nodes")
    num_edges = whole_number(num_edges, "num_edges")
    if num_nodes < 1 and num_edges > 0:
        raise InvalidInput(f"{num_edges} edges need at least one node; found num_nodes={num_nodes}")
    ends = torch.randint(max(num_nodes, 1), (2, num_edges))
    return graph((ends[0], ends[1]), num_nodes=num_nodes, idtype=idtype, device=device)


def _read(data: Any) -> tuple[str, list[torch.Tensor]]:
    kind = "coo"
    if isinstance(data, list) and all(map(_is_pair, data)):
        data = tuple(zip(*data, strict=True)) or ([], [])
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str):
        kind, data = data
        if kind not in ("coo", "csr", "csc"):
            raise InvalidInput(f"sparse format must be 'coo', 'csr' or 'csc'; found {kind!r}")
    wanted = "two" if kind == "coo" else "three"
    if not isinstance(data, tuple | list) or len(data) != (2 if kind == "coo" else 3):
        raise InvalidInput(
            f"edges in {kind!r} form are {wanted} arrays of IDs; found {_found(data)}"
        )
    return kind, [_integers(part) for part in data]


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, tuple | list)
        and len(item) == 2
        and all(isinstance(end, int | np.integer) and not isinstance(end, bool) for end in item)
    )


def _found(data: Any) -> str:
    """Describe what was given instead of edges and how to convert it, for the error."""
    shape, kind = getattr(data, "shape", None), type(data).__name__
    if hasattr(data, "tocoo"):
        return f"{kind}: use gnnlab.from_scipy(matrix)"
    if hasattr(data, "adjacency"):
        return f"{kind}: use gnnlab.from_networkx(graph)"
    if hasattr(data, "iloc"):  # the table is of pandas or like it
        return f"{kind}: write gnnlab.graph((table.iloc[:, 0], table.iloc[:, 1]))"
    if shape is not None and len(shape) == 2 and shape[0] == shape[1] != 2:
        return (
            f"{kind} of shape {tuple(shape)}, which looks like an adjacency matrix A: write "
            "gnnlab.graph(A.nonzero(as_tuple=True), num_nodes=len(A)), or for an array of numpy "
            "gnnlab.graph(A.nonzero(), num_nodes=len(A))"
        )
    if shape is not None and len(shape) == 2 and shape[0] == 2:
        return f"{kind} of shape {tuple(shape)}: write gnnlab.graph((edges[0], edges[1]))"
    if shape is not None and len(shape) == 2 and shape[1] == 2:
        return f"{kind} of shape {tuple(shape)}: write gnnlab.graph((edges[:, 0], edges[:, 1]))"
    if isinstance(data, tuple | list):
        return (
            f"{kind} of {len(data)} items. Edges one by one are a list of pairs of integers, "
            "[(source, destination), …]"
        )
    return f"{kind}. For a scipy or networkx graph use gnnlab.from_scipy() or from_networkx()"


def _integers(part: Any) -> torch.Tensor:
    ids = as_integers(part, "node IDs")
    return ids if ids.dtype in (torch.int64, torch.int32) else ids.long()


def _idtype(wanted: torch.dtype | None, given: torch.dtype) -> torch.dtype:
    if wanted is None:
        return given
    if wanted not in (torch.int64, torch.int32):
        raise InvalidInput(f"idtype must be torch.int64 or torch.int32; found {wanted}")
    return wanted


def _count(num_nodes: int | None, *ends: torch.Tensor) -> int:
    if num_nodes is not None:
        return whole_number(num_nodes, "num_nodes")
    return max([int(ids.max()) + 1 for ids in ends if len(ids)], default=0)


def _from_compressed(
    kind: str, arrays: list[torch.Tensor], num_nodes: int | None
) -> tuple[Relation, torch.dtype]:
    indptr, indices, eids = arrays
    _check_indptr(kind, indptr, indices)
    count = max(len(indptr) - 1, _count(num_nodes, indices))
    if num_nodes is not None and count > num_nodes:
        raise InvalidInput(
            f"num_nodes is {num_nodes}, but the {kind} arrays describe {count} nodes"
        )
    check_ids(indices, count, "node")
    tail = indptr[-1:].expand(count - (len(indptr) - 1))
    adjacency = Adjacency(
        torch.cat([indptr, tail]).long(), narrow(indices, count), _edge_order(eids, indices)
    )
    named = {kind: adjacency}
    relation = Relation(count, count, csc=named.get("csc"), csr=named.get("csr"))
    if not adjacency.ascends():
        relation = Relation(count, count, relation.coo())
    return relation, indices.dtype


def _compressed_to_coo(kind: str, arrays: list[torch.Tensor]) -> list[torch.Tensor]:
    indptr, indices, eids = arrays
    _check_indptr(kind, indptr, indices)
    order = _edge_order(eids, indices)
    rows = torch.repeat_interleave(
        torch.arange(len(indptr) - 1, device=indptr.device), torch.diff(indptr)
    )
    if order is not None:
        place = torch.argsort(order)
        rows, indices = rows[place], indices[place]
    return [rows.to(indices.dtype), indices] if kind == "csr" else [indices, rows.to(indices.dtype)]


def _check_indptr(kind: str, indptr: torch.Tensor, indices: torch.Tensor) -> None:
    steps = torch.diff(indptr)
    if (
        len(indptr) == 0
        or int(indptr[0]) != 0
        or bool((steps < 0).any())
        or int(indptr[-1]) != len(indices)
    ):
        raise InvalidInput(
            f"{kind} indptr must start at 0, never fall and end at the number of indices, "
            f"{len(indices)}"
        )


def _edge_order(eids: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    if len(eids) == 0:
        return None
    expected = torch.arange(len(indices), device=eids.device)
    if len(eids) != len(indices) or not torch.equal(torch.sort(eids).values.long(), expected):
        raise InvalidInput(f"edge IDs must be a permutation of 0 … {len(indices) - 1}, or empty")
    return narrow(eids, max(len(indices), 1))
