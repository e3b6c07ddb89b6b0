"""``dgl.DGLGraph``: the class of graphs as DGL has it, with methods that gnnlab's graphs lack.

Every graph of gnnlab is an instance of it. Its methods and properties are entered into
:data:`gnnlab.graph.core.METHODS`, where all graphs find them: no class of gnnlab changes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from gnnlab.compat.accepted import StandIn
from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph as new_graph
from gnnlab.graph.convert import from_networkx, from_scipy
from gnnlab.graph.core import METHODS
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.message_passing import EdgeBatch, NodeBatch
from gnnlab.graph.names import ALL, EdgeType, is_all
from gnnlab.graph.relation import Relation
from gnnlab.system import accelerators


class Scheme(NamedTuple):
    """Shape of one row and dtype of a feature."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def _schemes(frame: Frame) -> dict[str, Scheme]:
    return {name: Scheme(tuple(col.shape[1:]), col.dtype) for name, col in frame.items()}


def _has_doubles(relation: Relation) -> bool:
    src, dst = relation.coo()
    return len(torch.unique(src.long() * relation.num_dst + dst)) < len(src)


def _mask(predicate: Callable[[Any], torch.Tensor], batch: NodeBatch | EdgeBatch) -> torch.Tensor:
    found = predicate(batch)
    if not isinstance(found, torch.Tensor) or found.shape != (len(batch),):
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise InvalidInput(
            f"the predicate must return a tensor of shape {(len(batch),)}; found {shape}"
        )
    return found.bool()


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a method that imports its module when it is first called."""

    def method(self: Graph, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See :func:`{module}.{name}`."
    return method


class DGLGraph(Graph, metaclass=StandIn):
    """A graph: ``DGLGraph()``, or ``DGLGraph(data)`` of edges or a graph of networkx or scipy.

    Programs may derive classes from it.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.DGLGraph([(0, 1), (1, 2)])
    >>> g.add_edge(2, 0)
    >>> g.num_edges(), isinstance(dgl.rand_graph(3, 4), dgl.DGLGraph)
    (3, True)
    """

    _stands_for = Graph

    def __init__(self, data: Any = (), relations: Any = None, *args: Any, **more: Any) -> None:
        if relations is not None:  # as gnnlab makes graphs from a graph
            Graph.__init__(self, data, relations, *args, **more)
            return
        if more.keys() - {"multigraph", "readonly"}:  # which had a use before DGL 0.5
            raise InvalidInput(f"DGLGraph takes edges; found {sorted(more)}. Use dgl.graph")
        if isinstance(data, Graph):
            raise InvalidInput("DGLGraph(…) of a graph: use the graph, or graph.clone()")
        if hasattr(data, "tocoo"):
            made = from_scipy(data)
        elif hasattr(data, "adj"):
            made = from_networkx(data)
        else:
            made = new_graph(([], []) if data is None or not len(data) else data)
        vars(self).update(vars(made))

    # ------------------------------------------------------------------------------- questions
    @property
    def is_multigraph(self) -> bool:
        """Whether two edges of one type have the same source and destination."""
        return any(map(_has_doubles, self.relations.values()))

    @property
    def is_unibipartite(self) -> bool:
        """Whether no node type is at both ends of edges; always so for a block."""
        sources, targets = ({etype[end] for etype in self.relations} for end in (0, 2))
        return self.is_block or not sources & targets

    @property
    def is_readonly(self) -> bool:
        """Whether the structure cannot change: it always can."""
        return False

    def is_pinned(self) -> bool:
        """Whether the structure is in pinned memory."""
        if accelerators.kind() is None:
            return False
        return all(end.is_pinned() for r in self.relations.values() for end in r.coo())

    def unpin_memory_(self) -> Graph:
        """Move structure and features out of pinned memory, and return the graph."""
        from gnnlab.graph.placement import change_tensors

        return change_tensors(self, lambda t: t.clone() if t.is_pinned() else t)

    def node_attr_schemes(self, ntype: str | None = None) -> dict[str, Scheme]:
        """Return shape and dtype of each node feature."""
        return _schemes(self.nodes[ntype].data)  # type: ignore[arg-type]

    def edge_attr_schemes(self, etype: str | EdgeType | None = None) -> dict[str, Scheme]:
        """Return shape and dtype of each edge feature."""
        return _schemes(self.edge_frames[self.to_canonical_etype(etype)])

    # ------------------------------------------------------------------------------- edges
    def add_edge(self, u: Any, v: Any, data: Any = None, etype: Any = None) -> None:
        """Add an edge: see ``add_edges``."""
        self.add_edges(u, v, data, etype)

    adjacency_matrix = Graph.adj_external

    def filter_nodes(
        self, predicate: Callable[[NodeBatch], torch.Tensor], nodes: Any = ALL, ntype: Any = None
    ) -> torch.Tensor:
        """Return the IDs of the nodes for which ``predicate(NodeBatch)`` is true.

        ``nodes`` are the IDs to choose from; all by default.

        Examples
        --------
        >>> import gnnlab.compat as dgl, torch
        >>> g = dgl.graph([(0, 1), (1, 2)])
        >>> g.ndata["h"] = torch.tensor([1.0, -1.0, 1.0])
        >>> g.filter_nodes(lambda nodes: nodes.data["h"] > 0)
        tensor([0, 2])
        """
        name = self.resolve_ntype(ntype)
        frame = self.node_frames()[name]
        ids = read_ids(range(frame.num_rows) if is_all(nodes) else nodes, frame.num_rows, "node")
        ids = ids.to(self.device)
        return self.as_ids(ids[_mask(predicate, NodeBatch(frame, ids, {}, name))])

    def filter_edges(
        self, predicate: Callable[[EdgeBatch], torch.Tensor], edges: Any = ALL, etype: Any = None
    ) -> torch.Tensor:
        """Return the IDs of the edges for which ``predicate(EdgeBatch)`` is true.

        ``edges`` are IDs, or sources and destinations; all by default.
        """
        name = self.to_canonical_etype(etype)
        count = self.num_edges(name)
        if isinstance(edges, tuple):
            edges = self.edge_ids(edges[0], edges[1], etype=name)
        ids = read_ids(range(count) if is_all(edges) else edges, count, "edge").to(self.device)
        batch = EdgeBatch(self, name, self.relations[name], ids)
        return self.as_ids(ids[_mask(predicate, batch)])

    def inc(self, typestr: str, ctx: Any = None, etype: Any = None) -> torch.Tensor:
        """Return the incidence matrix: rows nodes, columns edges; sparse, (N, E), float32.

        ``typestr`` "in" has 1 where the node is the destination, "out" where it is the source;
        "both" has 1 for the destination, −1 for the source, 0 for an edge from a node to itself.

        Examples
        --------
        >>> import gnnlab.compat as dgl
        >>> dgl.graph([(0, 1), (2, 0)]).inc("both").to_dense()
        tensor([[-1.,  1.],
                [ 1.,  0.],
                [ 0., -1.]])
        """
        name = self.to_canonical_etype(etype)
        relation = self.relations[name]
        src, dst = (end.long() for end in relation.coo())
        edges = torch.arange(len(src), device=src.device)
        ones = torch.ones(len(src), device=src.device)
        if typestr == "in":
            rows, columns, values, num = dst, edges, ones, relation.num_dst
        elif typestr == "out":
            rows, columns, values, num = src, edges, ones, relation.num_src
        elif typestr == "both" and name[0] == name[2]:
            kept = src != dst
            rows = torch.cat([dst[kept], src[kept]])
            columns, num = edges[kept].repeat(2), relation.num_dst
            values = torch.cat([ones[kept], -ones[kept]])
        else:
            raise InvalidInput(
                "typestr must be 'in', 'out', or between nodes of one type 'both'; found "
                f"{typestr!r}"
            )
        index = torch.stack([rows, columns])
        made = torch.sparse_coo_tensor(index, values, (num, len(src)), check_invariants=False)
        return made.to(ctx).coalesce()

    incidence_matrix = inc

    # ---------------------------------------------------------------- functions of a graph
    khop_adj = _later("gnnlab.compat.transforms", "khop_adj")
    khop_graph = _later("gnnlab.compat.transforms", "khop_graph")
    line_graph = _later("gnnlab.compat.transforms", "line_graph")
    prop_edges = _later("gnnlab.compat.transforms", "prop_edges")
    prop_nodes = _later("gnnlab.compat.transforms", "prop_nodes")
    global_uniform_negative_sampling = _later(
        "gnnlab.compat.sampling", "global_uniform_negative_sampling"
    )
    sample_etype_neighbors = _later("gnnlab.compat.sampling", "sample_etype_neighbors")
    sample_labors = _later("gnnlab.compat.sampling", "sample_labors")
    select_topk = _later("gnnlab.compat.sampling", "select_topk")


METHODS.update((name, each) for name, each in vars(DGLGraph).items() if not name.startswith("_"))
