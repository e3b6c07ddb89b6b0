"""A graph as a graph of networkx, for drawing and for algorithms on small graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gnnlab.graph.core import GraphCore
from gnnlab.graph.frame import Frame
from gnnlab.graph.homogeneous import to_homogeneous
from gnnlab.graph.placement import cpu
from gnnlab.graph.queries import all_edges


def to_networkx(
    g: GraphCore,
    node_attrs: Iterable[str] | None = None,
    edge_attrs: Iterable[str] | None = None,
    ntype_attr: str = "ntype",
    etype_attr: str = "etype",
    eid_attr: str = "id",
) -> Any:
    """Return a networkx graph with the same nodes and edges.

    Parameters
    ----------
    g : Graph
        With several types, nodes and edges are numbered as :func:`to_homogeneous` does.
    node_attrs, edge_attrs : list of str, optional
        Features to keep as attributes, one tensor per node or edge.
    ntype_attr, etype_attr : str
        Attributes for the type of a node and the triple of an edge, where there are several types.
    eid_attr : str
        Attribute for the edge ID.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.to_networkx(dgl.graph(([0, 1], [1, 2]))).edges(data=True)
    OutMultiEdgeDataView([(0, 1, {'id': 0}), (1, 2, {'id': 1})])
    """
    import networkx

    g = cpu(g)
    flat = to_homogeneous(g, store_type=False)
    nodes: list[dict[str, Any]] = []
    for ntype in g.ntypes:
        fixed: dict[str, Any] = {} if g.is_homogeneous else {ntype_attr: ntype}
        nodes += _attributes(g.node_frames()[ntype], node_attrs, g.node_frames(), fixed)
    edges: list[dict[str, Any]] = []
    for etype in g.canonical_etypes:
        fixed = {} if g.is_homogeneous else {etype_attr: etype}
        edges += _attributes(g.edge_frames[etype], edge_attrs, g.edge_frames, fixed)
    result = networkx.MultiDiGraph()
    result.add_nodes_from(enumerate(nodes))
    src, dst = (end.tolist() for end in all_edges(flat))
    for eid, (u, v, data) in enumerate(zip(src, dst, edges, strict=True)):
        result.add_edge(u, v, **{eid_attr: eid, **data})
    return result


def _attributes(
    frame: Frame, names: Iterable[str] | None, frames: Mapping[Any, Frame], fixed: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return one dictionary per row; a feature that this type lacks must exist in another."""
    columns = {}
    for name in names or ():
        if name in frame or not any(name in other for other in frames.values()):
            columns[name] = frame[name]
    rows = range(frame.num_rows)
    return [{**fixed, **{name: column[i] for name, column in columns.items()}} for i in rows]
