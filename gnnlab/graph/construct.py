"""Constructors of graphs from edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange, whole_number
from gnnlab.graph.core import check_counts
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers
from gnnlab.graph.names import ONE_ETYPE, EdgeType
from gnnlab.graph.relation import Adjacency, Relation, checked_adjacency, narrow


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
    count = max(_least(kind, arrays))
    if num_nodes is not None:
        count = whole_number(num_nodes, "num_nodes")
    idtype = _idtype(idtype, kind, arrays)
    check_counts([count], idtype, "nodes")  # before arrays of this size are made
    relation = _relation(kind, arrays, count, count)
    made = Graph({"_N": count}, {ONE_ETYPE: relation}, idtype=idtype)
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
    counts = {t: whole_number(count, "num_nodes") for t, count in (num_nodes_dict or {}).items()}
    least: dict[str, int] = {}
    for etype, edges in read.items():
        for ntype, size in zip(etype[::2], _least(*edges), strict=True):
            if num_nodes_dict is not None and ntype not in counts:
                raise InvalidInput(f"num_nodes_dict lacks node type {ntype!r}, which edges use")
            least[ntype] = max(least.get(ntype, 0), size)
    counts = {**least, **counts}
    idtypes = {_idtype(idtype, *edges) for edges in read.values()} or {idtype or torch.int64}
    idtype = idtypes.pop() if len(idtypes) == 1 else torch.int64
    check_counts(counts.values(), idtype, "nodes")
    relations = {}
    for etype in sorted(read):
        try:
            relations[etype] = _relation(*read[etype], counts[etype[0]], counts[etype[2]])
        except (InvalidInput, OutOfRange) as error:
            raise type(error)(f"edge type {etype}: {error}", code=error.code) from None
    sizes = {ntype: counts[ntype] for ntype in sorted(counts)}
    made = Graph(sizes, relations, idtype=idtype)
    return made if device is None else made.to(device)


def rand_graph(
    num_nodes: int, num_edges: int, idtype: torch.dtype = torch.int64, device: Any = None
) -> Graph:
    """Make a graph of edges whose ends are drawn uniformly, by torch's generator."""
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


def _idtype(wanted: torch.dtype | None, kind: str, arrays: list[torch.Tensor]) -> torch.dtype:
    if wanted not in (torch.int64, torch.int32, None):
        raise InvalidInput(f"idtype must be torch.int64 or torch.int32; found {wanted}")
    return wanted or arrays[kind != "coo"].dtype


def _least(kind: str, arrays: list[torch.Tensor]) -> tuple[int, int]:
    """Return the numbers of sources and of destinations that the edges need."""
    above = [int(ids.max()) + 1 if len(ids) else 0 for ids in arrays[:2]]
    rows = len(arrays[0]) - 1
    return {"coo": (above[0], above[1]), "csr": (rows, above[1]), "csc": (above[1], rows)}[kind]


def _relation(kind: str, arrays: list[torch.Tensor], num_src: int, num_dst: int) -> Relation:
    if kind == "coo":
        return Relation.from_edges(arrays[0], arrays[1], num_src, num_dst)
    indptr, indices, eids = arrays
    groups, others = (num_src, num_dst) if kind == "csr" else (num_dst, num_src)
    if len(indptr) > groups + 1:
        raise InvalidInput(
            f"num_nodes is {groups}, but the {kind} arrays describe {len(indptr) - 1} nodes"
        )
    indptr = torch.cat([indptr, indptr[-1:].repeat(groups + 1 - len(indptr))]).long()
    checked_adjacency(groups, others, indptr, indices)
    adjacency = Adjacency(indptr, narrow(indices, others), _edge_order(eids, indices))
    made = {kind: adjacency}
    relation = Relation(num_src, num_dst, csc=made.get("csc"), csr=made.get("csr"))
    return relation if adjacency.ascends() else Relation(num_src, num_dst, relation.coo())


def _edge_order(eids: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    if len(eids) == 0:
        return None
    expected = torch.arange(len(indices), device=eids.device)
    if len(eids) != len(indices) or not torch.equal(torch.sort(eids).values.long(), expected):
        raise InvalidInput(f"edge IDs must be a permutation of 0 … {len(indices) - 1}, or empty")
    return narrow(eids, max(len(indices), 1))
