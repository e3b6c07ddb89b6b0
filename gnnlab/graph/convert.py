"""Graphs from and to other libraries: scipy's sparse matrices and networkx.

networkx is suited to graphs small enough to draw; its graphs are Python dictionaries, a thousand
times slower than arrays. It is imported only when one of these functions is called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph


# ----------------------------------------------------------------------------------- scipy
def from_scipy(
    sp_mat: Any,
    eweight_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph of a square sparse matrix: an entry in row u, column v is an edge u → v.

    Parameters
    ----------
    sp_mat : scipy.sparse matrix or array
        Shape (N, N), of any format. Edges are the stored entries, zeros included, in their order.
    eweight_name : str, optional
        Edge feature for the values, shape (E,), of the dtype of the matrix.
    idtype : torch.dtype, optional
        int64 or int32.

    Examples
    --------
    >>> import gnnlab as dgl, scipy.sparse
    >>> matrix = scipy.sparse.coo_array(([0.5, 2.0], ([0, 1], [1, 2])), shape=(3, 3))
    >>> g = dgl.from_scipy(matrix, eweight_name="w")
    >>> g.edges(), g.edata["w"]
    ((tensor([0, 1]), tensor([1, 2])), tensor([0.5000, 2.0000], dtype=torch.float64))
    """
    _check_sparse(sp_mat)
    if sp_mat.shape[0] != sp_mat.shape[1]:
        raise InvalidInput(
            f"the adjacency matrix of a graph is square; found shape {sp_mat.shape}. For edges "
            "between two types of nodes use bipartite_from_scipy"
        )
    if sp_mat.format in ("csr", "csc"):
        data: Any = (sp_mat.format, (sp_mat.indptr, sp_mat.indices, []))
    else:
        sp_mat = sp_mat.tocoo()
        data = ("coo", (sp_mat.row, sp_mat.col))
    g = graph(data, num_nodes=sp_mat.shape[0], idtype=idtype or torch.int64)
    return _with_weights(g, sp_mat, eweight_name, device)


def bipartite_from_scipy(
    sp_mat: Any,
    utype: str,
    etype: str,
    vtype: str,
    eweight_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph with one edge type (utype, etype, vtype) of a sparse matrix.

    Parameters
    ----------
    sp_mat : scipy.sparse matrix or array
        Shape (number of utype nodes, number of vtype nodes), of any format.
    utype, etype, vtype : str
        Two different node types, and the relation from the first to the second.
    eweight_name, idtype, device
        As in :func:`from_scipy`.

    Examples
    --------
    >>> import gnnlab as dgl, scipy.sparse
    >>> matrix = scipy.sparse.coo_array(([1, 1], ([0, 1], [2, 0])), shape=(2, 3))
    >>> dgl.bipartite_from_scipy(matrix, "user", "plays", "game").num_nodes("game")
    3
    """
    _check_sparse(sp_mat)
    _check_two_types(utype, vtype, "from_scipy")
    sp_mat = sp_mat.tocoo()
    sizes = dict(zip((utype, vtype), sp_mat.shape, strict=True))
    edges = {(utype, etype, vtype): (sp_mat.row, sp_mat.col)}
    g = heterograph(edges, sizes, idtype=idtype or torch.int64)
    return _with_weights(g, sp_mat, eweight_name, device)


def _check_sparse(matrix: Any) -> None:
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise InvalidInput(
            f"expected a scipy sparse matrix; found {type(matrix).__name__}. "
            "scipy.sparse.coo_array(x) makes one of a dense matrix"
        )


def _check_two_types(utype: str, vtype: str, other: str) -> None:
    if utype == vtype:
        raise InvalidInput(f"the two node types must differ; found {utype!r} twice. Use {other}")


def _with_weights(g: Graph, matrix: Any, name: str | None, device: Any) -> Graph:
    if name is not None:
        g.edata[name] = torch.from_numpy(np.array(matrix.data))
    return g if device is None else g.to(device)


# -------------------------------------------------------------------------------- networkx
def from_networkx(
    nx_graph: Any,
    node_attrs: Sequence[str] | None = None,
    edge_attrs: Sequence[str] | None = None,
    edge_id_attr_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph of a networkx graph.

    Parameters
    ----------
    nx_graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Nodes are numbered in ascending order of their labels, or in the order of the graph where
        labels cannot be compared. An undirected edge becomes one edge in each direction.
    node_attrs, edge_attrs : list of str, optional
        Attributes to keep as features, which each must have: numbers, or arrays of one shape.
    edge_id_attr_name : str, optional
        Attribute that holds the edge IDs, each of 0 … E−1 once, for a directed graph. By default
        edges are numbered as networkx iterates over them.
    idtype, device
        As in :func:`from_scipy`.

    Examples
    --------
    >>> import gnnlab as dgl, networkx as nx
    >>> dgl.from_networkx(nx.path_graph(3)).edges()
    (tensor([0, 1, 1, 2]), tensor([1, 0, 2, 1]))
    """
    number = _number_labels(nx_graph)
    src, dst, features = _nx_edges(nx_graph, number, number, edge_attrs, edge_id_attr_name)
    g = graph((src, dst), num_nodes=len(number), idtype=idtype or torch.int64)
    g.edata.update(features)
    g.ndata.update(_nx_nodes(nx_graph, number, node_attrs))
    return g if device is None else g.to(device)


def bipartite_from_networkx(
    nx_graph: Any,
    utype: str,
    etype: str,
    vtype: str,
    u_attrs: Sequence[str] | None = None,
    e_attrs: Sequence[str] | None = None,
    v_attrs: Sequence[str] | None = None,
    edge_id_attr_name: str | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Graph:
    """Make a graph with one edge type (utype, etype, vtype) of a bipartite networkx graph.

    Parameters
    ----------
    nx_graph : networkx.DiGraph or MultiDiGraph
        Node attribute ``bipartite`` is 0 for nodes of ``utype`` and 1 for nodes of ``vtype``; all
        edges lead from the former to the latter.
    u_attrs, e_attrs, v_attrs : list of str, optional
        Attributes of either side and of the edges to keep as features.
    edge_id_attr_name, idtype, device
        As in :func:`from_networkx`.
    """
    _check_two_types(utype, vtype, "from_networkx")
    if not nx_graph.is_directed():
        raise InvalidInput("expected a directed graph, with all edges from side 0 to side 1")
    side = {node: data.get("bipartite") for node, data in nx_graph.nodes(data=True)}
    if not set(side.values()) <= {0, 1}:
        raise InvalidInput("each node needs the attribute 'bipartite', 0 or 1")
    sides = [_number_labels(nx_graph.subgraph(n for n in side if side[n] == s)) for s in (0, 1)]
    for u, v in nx_graph.edges():
        if side[u] == 1 or side[v] == 0:
            raise InvalidInput(f"edge {(u, v)} does not lead from side 0 to side 1")
    src, dst, features = _nx_edges(nx_graph, sides[0], sides[1], e_attrs, edge_id_attr_name)
    g = heterograph(
        {(utype, etype, vtype): (src, dst)},
        {utype: len(sides[0]), vtype: len(sides[1])},
        idtype=idtype or torch.int64,
    )
    g.edata.update(features)
    g.nodes[utype].data.update(_nx_nodes(nx_graph, sides[0], u_attrs))
    g.nodes[vtype].data.update(_nx_nodes(nx_graph, sides[1], v_attrs))
    return g if device is None else g.to(device)


def _number_labels(nx_graph: Any) -> dict[Any, int]:
    labels = list(nx_graph.nodes())
    with contextlib.suppress(TypeError):  # labels of several kinds keep the order of the graph
        labels = sorted(labels)
    return {label: i for i, label in enumerate(labels)}


def _nx_nodes(
    nx_graph: Any, number: Mapping[Any, int], names: Sequence[str] | None
) -> dict[str, torch.Tensor]:
    rows = [nx_graph.nodes[label] for label in number]
    return {name: _column(rows, name, "node") for name in names or ()}


def _nx_edges(
    nx_graph: Any,
    number_src: Mapping[Any, int],
    number_dst: Mapping[Any, int],
    names: Sequence[str] | None,
    id_name: str | None,
) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    if not hasattr(nx_graph, "is_directed"):
        raise InvalidInput(f"expected a graph of networkx; found {type(nx_graph).__name__}")
    if id_name is not None and not nx_graph.is_directed():
        raise InvalidInput(
            "edge_id_attr_name needs a directed graph: an undirected edge becomes two edges, which "
            "cannot have one ID; use nx_graph.to_directed() and give both an ID"
        )
    directed = nx_graph if nx_graph.is_directed() else nx_graph.to_directed(as_view=True)
    edges = list(directed.edges(data=True))
    src = torch.tensor([number_src[u] for u, _, _ in edges], dtype=torch.int64)
    dst = torch.tensor([number_dst[v] for _, v, _ in edges], dtype=torch.int64)
    rows = [data for _, _, data in edges]
    features = {name: _column(rows, name, "edge") for name in names or ()}
    if id_name is None:
        return src, dst, features
    eids = _column(rows, id_name, "edge")
    if not torch.equal(eids.sort().values, torch.arange(len(edges))):
        raise InvalidInput(
            f"edge attribute {id_name!r} must hold each of 0 … {len(edges) - 1} once"
        )
    order = torch.argsort(eids)
    return src[order], dst[order], {name: value[order] for name, value in features.items()}


def _column(rows: Sequence[Mapping[str, Any]], name: str, what: str) -> torch.Tensor:
    missing = sum(name not in row for row in rows)
    if missing:
        raise NotFound(f"{missing} of {len(rows)} {what}s of the networkx graph lack {name!r}")
    values = [as_tensor(row[name], f"feature {name!r}") for row in rows]
    try:
        return torch.stack(values) if values else torch.empty(0)
    except RuntimeError as error:
        raise InvalidInput(
            f"attribute {name!r} differs in shape between {what}s: {error}"
        ) from None
