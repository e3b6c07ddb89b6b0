"""Graphs and matrices made from the structure of another graph: hops, paths, edges as nodes.

The names are those of ``dgl.transforms``, most of them also of ``dgl``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gnnlab.compat.transforms.checks import one_node
from gnnlab.errors import InvalidInput, list_of_graphs
from gnnlab.graph.batch import unbatch
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.core import refuse_block
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID, EdgeType
from gnnlab.graph.queries import incident_slots


def norm_by_dst(g: Graph, etype: str | EdgeType | None = None) -> torch.Tensor:
    """Return 1 / in-degree of its destination for each edge: weights that turn a sum into a mean.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.norm_by_dst(dgl.graph(([0, 1, 2], [2, 2, 0])))
    tensor([0.5000, 0.5000, 1.0000])
    """
    relation = g.relation(etype)
    return 1.0 / relation.in_degrees()[relation.coo()[1].long()].float()


def metapath_reachable_graph(g: Graph, metapath: Sequence[str | EdgeType]) -> Graph:
    """Return a graph with an edge (u, v) wherever a path of the given edge types leads from u to v.

    It has the first and the last node type with their features, and one edge type ``"_E"``: each
    reachable pair once, ordered by source and then destination.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.heterograph(
    ...     {
    ...         ("user", "follows", "user"): ([0, 1], [1, 2]),
    ...         ("user", "plays", "game"): ([1, 2, 2], [0, 0, 1]),
    ...     }
    ... )
    >>> dgl.metapath_reachable_graph(g, ["follows", "plays"]).edges()
    (tensor([0, 1, 1]), tensor([0, 0, 1]))
    """
    path = [g.to_canonical_etype(etype) for etype in metapath]
    if not path:
        raise InvalidInput("metapath is empty; give one edge type or more")
    reached: Any = None
    for i, etype in enumerate(path):
        if i and path[i - 1][2] != etype[0]:
            raise InvalidInput(
                f"the metapath has {etype} after {path[i - 1]}, which ends at another node type"
            )
        matrix = g.adj_external(scipy_fmt="csr", etype=etype)
        reached = matrix if reached is None else reached @ matrix
        reached.data[:] = 1  # the number of paths may overflow and does not matter
    reached.sum_duplicates()
    reached.sort_indices()
    pairs = reached.tocoo()
    start, end = path[0][0], path[-1][2]
    made = heterograph(
        {(start, "_E", end): (torch.from_numpy(pairs.row), torch.from_numpy(pairs.col))},
        {ntype: g.num_nodes(ntype) for ntype in (start, end)},
        idtype=g.idtype,
        device=g.device,
    )
    for ntype in {start, end}:
        made.node_frames()[ntype].update(g.node_frames()[ntype])
    return made


def _power(g: Graph, k: int, what: str) -> Any:
    refuse_block(g, what)
    if not g.is_homogeneous:
        raise InvalidInput(f"{what} needs one node type and one edge type; use to_homogeneous")
    if k < 0:
        raise InvalidInput(f"k is a number of hops, 0 or more; found {k}")
    import scipy.sparse

    matrix = g.adj_external(scipy_fmt="csr")
    found = scipy.sparse.eye(g.num_nodes(), dtype=matrix.dtype, format="csr")
    for _ in range(k):
        found = found @ matrix
    return found


def khop_adj(g: Graph, k: int) -> torch.Tensor:
    """Return the k-th power of the adjacency matrix, (N, N): the numbers of walks of k edges.

    Rows are sources, columns destinations.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.khop_adj(dgl.graph(([0, 1], [1, 2])), 2)
    tensor([[0., 0., 1.],
            [0., 0., 0.],
            [0., 0., 0.]])
    """
    found = _power(g, k, "khop_adj")
    return torch.from_numpy(found.toarray()).to(g.device, torch.float32)


def khop_graph(g: Graph, k: int, copy_ndata: bool = True) -> Graph:
    """Return a graph with an edge for every walk of k edges, so pairs may be joined repeatedly.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.khop_graph(dgl.graph(([0, 0, 1, 2], [1, 2, 3, 3])), 2).edges()
    (tensor([0, 0]), tensor([3, 3]))
    """
    walks = _power(g, k, "khop_graph").tocoo()
    times = torch.from_numpy(walks.data)
    ends = (torch.from_numpy(end).repeat_interleave(times) for end in (walks.row, walks.col))
    made = graph(tuple(ends), num_nodes=g.num_nodes(), idtype=g.idtype, device=g.device)
    if copy_ndata:
        made.ndata.update(g.ndata)
    return made


def line_graph(g: Graph, backtracking: bool = True, shared: bool = False) -> Graph:
    """Return the graph whose nodes are the edges: e → f where f begins at the end of e.

    Its edges are ordered by e, and then by f. A self-loop is not followed by itself. Without
    ``backtracking``, (u, v) → (v, u) is none; with ``shared``, nodes have the features of the
    edges.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.line_graph(dgl.graph(([0, 1, 2], [1, 2, 0]))).edges()
    (tensor([0, 1, 2]), tensor([1, 2, 0]))
    """
    refuse_block(g, "line_graph")
    if not g.is_homogeneous:
        raise InvalidInput("line_graph needs one node type and one edge type; use to_homogeneous")
    relation = g.relation()
    src, dst = relation.coo()
    csr = relation.csr()
    first, slots = incident_slots(csr, dst.long())
    second = csr.eids_at(slots).long()
    onward = first != second if backtracking else src[first] != dst[second]
    made = graph((first[onward], second[onward]), num_nodes=g.num_edges(), idtype=g.idtype)
    if shared:
        made.ndata.update(g.edata)
    return made


def shortest_dist(g: Graph, root: int | None = None, return_paths: bool = False) -> Any:
    """Return the numbers of edges of shortest paths, (N, N), or (N,) from ``root``; −1 for no path.

    With ``return_paths`` also the edges of one path each, (N, N, L) or (N, L), in their order,
    filled up with −1; L is the length of the longest one.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 3]))
    >>> dgl.shortest_dist(g, root=1, return_paths=True)
    (tensor([-1,  0,  1,  2]), tensor([[-1, -1],
            [-1, -1],
            [ 1, -1],
            [ 1,  2]]))
    """
    refuse_block(g, "shortest_dist")
    import scipy.sparse.csgraph

    count = g.num_nodes()
    starts = range(count) if root is None else [one_node(root, count, "root")]
    if not count or not g.num_edges():
        hops = torch.full((len(starts), count), -1)
        hops[range(len(starts)), list(starts)] = 0
        before = torch.full_like(hops, -1)
    else:
        matrix = g.adj_external(scipy_fmt="csr")
        found = scipy.sparse.csgraph.dijkstra(
            matrix, indices=list(starts), unweighted=True, return_predecessors=True
        )
        dist, predecessors = map(torch.from_numpy, found)
        hops = torch.where(dist.isinf(), -1, dist).long()
        before = predecessors.long()
    result = g.as_ids(hops.to(g.device))
    result = result[0] if root is not None else result
    if not return_paths:
        return result
    longest = max(int(hops.max()), 0) if hops.numel() else 0
    paths = torch.full((len(starts), count, longest), -1)
    row, node = (hops > 0).nonzero(as_tuple=True)
    step, here = hops[row, node], node
    while len(row):  # all paths at once, from their ends
        previous = before[row, here]
        paths[row, node, step - 1] = torch.as_tensor(g.edge_ids(previous, here)).cpu().long()
        onward = step > 1
        row, node, step, here = row[onward], node[onward], step[onward] - 1, previous[onward]
    found_paths = g.as_ids(paths.to(g.device))
    return result, found_paths[0] if root is not None else found_paths


def slice_batch(g: Graph, gid: int, store_ids: bool = False) -> Graph:
    """Return the graph with number ``gid`` of a batch.

    ``store_ids`` adds the IDs of nodes and edges in the batch as features ``NID`` and ``EID``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0, 1], [2, 2]))])
    >>> dgl.slice_batch(both, 1).num_edges()
    2
    """
    if not 0 <= gid < g.batch_size:
        raise InvalidInput(f"gid is 0 to {g.batch_size - 1} in this batch; found {gid}")
    part = unbatch(g)[gid]
    if store_ids:
        for ntype, frame in part.node_frames().items():
            first = int(g.batch_num_nodes(ntype)[:gid].sum())
            frame[NID] = g.as_ids(torch.arange(first, first + frame.num_rows, device=g.device))
        for etype, frame in part.edge_frames.items():
            first = int(g.batch_num_edges(etype)[:gid].sum())
            frame[EID] = g.as_ids(torch.arange(first, first + frame.num_rows, device=g.device))
    return part


def _summed(
    src: torch.Tensor,
    dst: torch.Tensor,
    weights: torch.Tensor,
    sizes: tuple[int, int],
    etype: EdgeType,
    weight_name: str,
    idtype: torch.dtype,
) -> Graph:
    """Return a graph with one edge for each pair of nodes, and the sum of the pair's weights."""
    width = max(sizes[1], 1)
    pairs, place = torch.unique(src.long() * width + dst, return_inverse=True)
    made = heterograph(
        {etype: (pairs // width, pairs % width)},
        {etype[0]: sizes[0], etype[2]: sizes[1]},
        idtype=idtype,
        device=pairs.device,
    )
    made.edata[weight_name] = weights.new_zeros(len(pairs)).index_add(0, place, weights)
    return made


def _sizes(g: Graph) -> tuple[int, int]:
    start, _, end = g.canonical_etypes[0]
    return g.num_nodes(start), g.num_nodes(end)


def adj_product_graph(A: Graph, B: Graph, weight_name: str, etype: str = "_E") -> Graph:
    """Return a graph with the product of two weighted adjacency matrices, rows being sources.

    Both have one edge type; B begins at the node type at which A ends. ``weight_name`` is an edge
    feature (E,) of both and of the result, through which gradients flow; ``etype`` is the result's.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.edata["w"] = torch.tensor([2.0, 3.0])
    >>> product = dgl.adj_product_graph(g, g, "w")
    >>> product.edges(), product.edata["w"]
    ((tensor([0]), tensor([2])), tensor([6.]))
    """
    (start, _, middle), (other, _, end) = A.canonical_etypes[0], B.canonical_etypes[0]
    if middle != other or A.num_nodes(middle) != B.num_nodes(other):
        raise InvalidInput(
            f"A ends at {A.num_nodes(middle)} nodes of type {middle!r}, B begins at "
            f"{B.num_nodes(other)} of type {other!r}; they must be the same"
        )
    if not isinstance(etype, str):
        raise InvalidInput(f"etype is the name of an edge type; found {etype!r}")
    src, via = A.edges()
    csr = B.relation().csr()
    first, slots = incident_slots(csr, via.long())
    second = csr.eids_at(slots).long()
    return _summed(
        src[first],
        B.edges()[1][second],
        A.edata[weight_name][first] * B.edata[weight_name][second],
        (_sizes(A)[0], _sizes(B)[1]),
        (start, etype, end),
        weight_name,
        A.idtype,
    )


def adj_sum_graph(graphs: Sequence[Graph], weight_name: str) -> Graph:
    """Return a graph with the sum of weighted adjacency matrices: one edge for each joined pair.

    The graphs have the same numbers of nodes and one edge type; ``weight_name`` is as for
    :func:`adj_product_graph`.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.edata["w"] = torch.tensor([2.0, 3.0])
    >>> dgl.adj_sum_graph([g, g], "w").edata["w"]
    tensor([4., 6.])
    """
    graphs = list_of_graphs(graphs, "adj_sum_graph")
    if not graphs:
        raise InvalidInput("adj_sum_graph needs one graph or more; found an empty list")
    sizes = {_sizes(g) for g in graphs}
    if len(sizes) > 1:
        raise InvalidInput(f"graphs must have the same numbers of nodes; found {sorted(sizes)}")
    return _summed(
        torch.cat([g.edges()[0] for g in graphs]),
        torch.cat([g.edges()[1] for g in graphs]),
        torch.cat([g.edata[weight_name] for g in graphs]),
        sizes.pop(),
        graphs[0].canonical_etypes[0],
        weight_name,
        graphs[0].idtype,
    )
