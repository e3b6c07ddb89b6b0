"""Graphs with fewer or otherwise numbered nodes.

A subgraph of a huge graph still has all of its nodes; :func:`compact_graphs` drops those without
edges. :func:`khop_in_subgraph` extracts all nodes and edges that can influence a node within k
layers. :func:`reorder_graph` gives neighbors close IDs, for better memory locality.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.core import GraphCore, GraphT, refuse_block
from gnnlab.graph.frame import Frame
from gnnlab.graph.ids import node_dict, read_ids, read_nodes
from gnnlab.graph.queries import adj_external, incident_slots
from gnnlab.graph.relation import Relation
from gnnlab.graph.subgraph import frame_of, keep_edges, node_subgraph, number_nodes


def compact_graphs(
    graphs: Any, always_preserve: Any = None, copy_ndata: bool = True, copy_edata: bool = True
) -> Any:
    """Drop the nodes that have no edge in any of several graphs on the same nodes.

    Parameters
    ----------
    graphs : Graph or sequence of Graph
        Nodes of the same type and ID are the same node; all graphs must have equal node counts.
    always_preserve : IDs or dict of IDs by node type, optional
        Nodes to keep in any case; they come first, in this order.
    copy_ndata, copy_edata : bool
        Whether the results have the node and edge features.

    Returns
    -------
    Graph or list of Graph
        As many as were given. Nodes are numbered in the order of their first appearance, the same
        in all results; ``ndata[dgl.NID]`` holds their old IDs.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.compact_graphs(dgl.graph(([5, 3], [3, 9])))
    >>> g.edges(), g.ndata[dgl.NID]
    ((tensor([0, 1]), tensor([1, 2])), tensor([5, 3, 9]))
    """
    many: list[GraphCore] = [graphs] if not isinstance(graphs, Sequence) else list(graphs)
    if not many:
        return []
    sizes = _common_sizes(many)
    preserved = {} if always_preserve is None else node_dict(many[0], always_preserve)
    kept: dict[str, torch.Tensor] = {}
    ends: dict[tuple[Any, ...], torch.Tensor] = {}
    for ntype, size in sizes.items():
        first = read_ids(preserved.get(ntype, []), size, "node", many[0].device)
        where = [
            (i, etype, side)
            for i, g in enumerate(many)
            for etype in g.canonical_etypes
            for side in (0, 1)
            if etype[2 * side] == ntype
        ]
        parts = [many[i].relations[etype].coo()[side] for i, etype, side in where]
        kept[ntype], (_, *local) = number_nodes([first, *parts], size)
        ends.update(zip(where, local, strict=True))
    results = []
    for i, g in enumerate(many):
        relations = {
            etype: Relation(
                len(kept[etype[0]]), len(kept[etype[2]]), (ends[i, etype, 0], ends[i, etype, 1])
            )
            for etype in g.canonical_etypes
        }
        sources = g.node_frames() if copy_ndata else {n: Frame(sizes[n]) for n in g.ntypes}
        results.append(
            g.derive(
                relations,
                {ntype: len(kept[ntype]) for ntype in g.ntypes},
                {ntype: frame_of(g, sources[ntype], kept[ntype]) for ntype in g.ntypes},
                {e: f.copy() for e, f in g.edge_frames.items()} if copy_edata else None,
            )
        )
    return results if isinstance(graphs, Sequence) else results[0]


def khop_in_subgraph(
    graph: GraphCore, nodes: Any, k: int, *, relabel_nodes: bool = True, store_ids: bool = True
) -> Any:
    """Return the graph of all nodes with a path of at most k edges to the given nodes.

    Parameters
    ----------
    nodes : IDs or dict of IDs by node type
    k : int
        Number of hops, equal to the number of layers of a network.
    relabel_nodes : bool
        Number the kept nodes from 0, in ascending order of their IDs. Without it all nodes stay.
    store_ids : bool
        Keep original IDs in ``ndata[dgl.NID]`` and ``edata[dgl.EID]``.

    Returns
    -------
    Graph, or tuple of Graph and IDs
        All edges between the kept nodes. With ``relabel_nodes`` also the new IDs of the given
        nodes, in the form in which they were given: a tensor, or a dict of tensors.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> path = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 4]))
    >>> part, new_ids = dgl.khop_in_subgraph(path, 3, k=2)
    >>> part.ndata[dgl.NID], new_ids
    (tensor([1, 2, 3]), tensor([2]))
    """
    return _khop(graph, nodes, k, relabel_nodes, store_ids, inward=True)


def khop_out_subgraph(
    graph: GraphCore, nodes: Any, k: int, *, relabel_nodes: bool = True, store_ids: bool = True
) -> Any:
    """Return the graph of all nodes that paths of at most k edges from the given nodes reach.

    Parameters and results as in :func:`khop_in_subgraph`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> path = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 4]))
    >>> dgl.khop_out_subgraph(path, 3, k=2)[0].ndata[dgl.NID]
    tensor([3, 4])
    """
    return _khop(graph, nodes, k, relabel_nodes, store_ids, inward=False)


def _khop(
    graph: GraphCore, nodes: Any, k: int, relabel_nodes: bool, store_ids: bool, inward: bool
) -> Any:
    refuse_block(graph, "k-hop subgraph")
    k = whole_number(k, "k, the number of hops,")
    given = read_nodes(graph, nodes)
    reached = {
        ntype: torch.zeros(graph.num_nodes(ntype), dtype=torch.bool, device=graph.device)
        for ntype in graph.ntypes
    }
    for ntype, ids in given.items():
        reached[ntype][ids.long()] = True
    frontier = {ntype: mask.nonzero().flatten() for ntype, mask in reached.items()}
    for _ in range(k):
        before = {ntype: mask.clone() for ntype, mask in reached.items()}
        for etype, relation in graph.relations.items():
            near, far = (etype[2], etype[0]) if inward else (etype[0], etype[2])
            adjacency = relation.csc() if inward else relation.csr()
            slots = incident_slots(adjacency, frontier[near])[1]
            reached[far][adjacency.indices[slots].long()] = True
        frontier = {n: (mask & ~before[n]).nonzero().flatten() for n, mask in reached.items()}
    part = node_subgraph(graph, reached, relabel_nodes=relabel_nodes, store_ids=store_ids)
    if not relabel_nodes:
        return part
    new = {
        n: graph.as_ids((torch.cumsum(reached[n], 0) - 1)[ids.long()]) for n, ids in given.items()
    }
    return part, new if isinstance(nodes, dict) else next(iter(new.values()))


def reorder_graph(
    g: GraphT,
    node_permute_algo: str | None = None,
    edge_permute_algo: str = "src",
    store_ids: bool = True,
    permute_config: dict[str, Any] | None = None,
) -> GraphT:
    """Renumber nodes and edges.

    Parameters
    ----------
    g : Graph
        With one node type and one edge type.
    node_permute_algo : {None, "rcmk", "custom"}
        Keep the nodes, order them by the reverse Cuthill–McKee algorithm, or as
        ``permute_config["nodes_perm"]`` says: old ID of each new node.
    edge_permute_algo : {"src", "dst", "custom"}
        Order the edges by source, by destination, or as ``permute_config["edges_perm"]`` says.
    store_ids : bool
        Keep the old IDs as ``ndata[dgl.NID]`` and ``edata[dgl.EID]``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.reorder_graph(dgl.graph(([2, 0], [1, 1]))).edges()
    (tensor([0, 2]), tensor([1, 1]))

    References
    ----------
    Cuthill and McKee (1969), "Reducing the Bandwidth of Sparse Symmetric Matrices".
    """
    refuse_block(g, "reorder_graph")
    if not g.is_homogeneous:
        raise InvalidInput(
            "reorder_graph needs one node type and one edge type; use to_homogeneous"
        )
    config = permute_config or {}
    if node_permute_algo is None:
        nodes = torch.arange(g.num_nodes(), device=g.device)
    elif node_permute_algo == "rcmk":
        nodes = _cuthill_mckee(g)
    elif node_permute_algo == "custom":
        nodes = _permutation(config, "nodes_perm", g.num_nodes(), g.device)
    else:
        raise InvalidInput(
            f"node_permute_algo must be None, 'rcmk' or 'custom'; found {node_permute_algo!r}"
        )
    part = node_subgraph(g, nodes, store_ids=store_ids)
    if edge_permute_algo == "src":
        edges = part.relation().csr().eids
    elif edge_permute_algo == "dst":
        edges = part.relation().csc().eids
    elif edge_permute_algo == "custom":
        edges = _permutation(config, "edges_perm", g.num_edges(), g.device)
    else:
        raise InvalidInput(
            f"edge_permute_algo must be 'src', 'dst' or 'custom'; found {edge_permute_algo!r}"
        )
    return keep_edges(part, {part.canonical_etypes[0]: edges}, None, store_ids=False)


def _common_sizes(graphs: list[GraphCore]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for g in graphs:
        refuse_block(g, "compact_graphs")
        for ntype in g.ntypes:
            size = sizes.setdefault(ntype, g.num_nodes(ntype))
            if size != g.num_nodes(ntype):
                raise InvalidInput(
                    "compact_graphs: the graphs must be on the same nodes, but there are "
                    f"{size} and {g.num_nodes(ntype)} of type {ntype!r}"
                )
    return sizes


def _permutation(
    config: dict[str, Any], name: str, size: int, device: torch.device
) -> torch.Tensor:
    if name not in config:
        raise InvalidInput(f"'custom' needs permute_config={{{name!r}: old ID of each new one}}")
    ids = read_ids(config[name], size, name.split("s_")[0], device)
    if len(ids) != size or len(torch.unique(ids)) != size:
        raise InvalidInput(f"permute_config[{name!r}] must hold each of 0 … {size - 1} once")
    return ids


def _cuthill_mckee(g: GraphCore) -> torch.Tensor:
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = adj_external(g, scipy_fmt="coo").tocsr()
    order = reverse_cuthill_mckee((matrix + matrix.T).tocsr(), symmetric_mode=True)
    return torch.from_numpy(order.copy()).to(g.device)
