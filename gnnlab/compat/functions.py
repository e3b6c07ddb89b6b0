"""Functions of graphs that DGL has under ``dgl.`` and gnnlab's core leaves out.

They make a graph, or a matrix, from the structure of another one: paths of given edge types, hops,
edges as nodes. Traversals are in ``traversal``, graphs of points in ``points``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.batch import unbatch
from gnnlab.graph.block import Block
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.derive import refuse_block
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import ONE_ETYPE, EdgeType
from gnnlab.graph.queries import incident_slots
from gnnlab.graph.relation import Relation

__all__ = [
    "block_to_graph",
    "create_block",
    "khop_adj",
    "khop_graph",
    "laplacian_lambda_max",
    "line_graph",
    "merge",
    "metapath_reachable_graph",
    "norm_by_dst",
    "rand_bipartite",
    "shortest_dist",
]


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
        made._node_frames()[ntype].update(g._node_frames()[ntype])
    return made


def rand_bipartite(
    utype: str,
    etype: str,
    vtype: str,
    num_src_nodes: int,
    num_dst_nodes: int,
    num_edges: int,
    idtype: torch.dtype = torch.int64,
    device: Any = None,
) -> Graph:
    """Make a graph of ``num_edges`` distinct random edges from ``utype`` to ``vtype``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.rand_bipartite("user", "buys", "item", 3, 4, 12)
    >>> g.num_edges(), g.in_degrees()
    (12, tensor([3, 3, 3, 3]))
    """
    pairs = num_src_nodes * num_dst_nodes
    if num_edges > pairs:
        raise InvalidInput(
            f"{num_src_nodes} sources and {num_dst_nodes} destinations have {pairs} pairs; found "
            f"num_edges={num_edges}"
        )
    numbers = np.random.default_rng(random.next_key() % 2**63)
    chosen = torch.from_numpy(numbers.choice(pairs, num_edges, replace=False))
    return heterograph(
        {(utype, etype, vtype): (chosen // max(num_dst_nodes, 1), chosen % max(num_dst_nodes, 1))},
        {utype: num_src_nodes, vtype: num_dst_nodes},
        idtype=idtype,
        device=device,
    )


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


def laplacian_lambda_max(g: Graph) -> list[float]:
    """Return the largest eigenvalue of the normalized Laplacian, for each graph of a batch.

    Graphs are undirected: they have each edge in both directions. The matrices are dense.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    >>> [round(value, 4) for value in dgl.laplacian_lambda_max(ring)]
    [2.0]
    """
    found = []
    for part in unbatch(g):
        scale = part.in_degrees().cpu().numpy().clip(1) ** -0.5
        adjacency = part.adj_external(scipy_fmt="csr").toarray()
        laplacian = np.eye(part.num_nodes()) - scale[:, None] * adjacency * scale
        is_symmetric = (laplacian == laplacian.T).all()
        values = (np.linalg.eigvalsh if is_symmetric else np.linalg.eigvals)(laplacian)
        found.append(float(values[np.abs(values).argmax()].real) if len(values) else 0.0)
    return found


def line_graph(g: Graph, backtracking: bool = True, shared: bool = False) -> Graph:
    """Return the graph whose nodes are the edges: e → f where f begins at the end of e.

    Its edges are ordered by e, and then by f. Without ``backtracking``, (u, v) → (v, u) is none;
    with ``shared``, nodes have the features of the edges.

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
    if not backtracking:
        onward = src[first] != dst[second]
        first, second = first[onward], second[onward]
    made = graph((first, second), num_nodes=g.num_edges(), idtype=g.idtype)
    if shared:
        made.ndata.update(g.edata)
    return made


def merge(graphs: Sequence[Graph]) -> Graph:
    """Join graphs on the same nodes: all edges of all graphs, one graph after the other.

    Node types have the largest number of nodes of any graph. Where several graphs have a feature of
    a node, the last one counts; features that a graph lacks are 0.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> both = dgl.merge([dgl.graph(([0], [1])), dgl.graph(([0, 2], [1, 1]))])
    >>> both.edges()
    (tensor([0, 0, 2]), tensor([1, 1, 1]))
    """
    if not graphs:
        raise InvalidInput("merge needs one graph or more; found an empty list")
    for g in graphs:
        refuse_block(g, "merge")
    etypes = sorted({etype for g in graphs for etype in g.canonical_etypes})
    sizes = {
        ntype: max(g.num_nodes(ntype) for g in graphs if ntype in g.ntypes)
        for ntype in sorted({ntype for g in graphs for ntype in g.ntypes})
    }
    relations, edge_frames = {}, {}
    for etype in etypes:
        parts = [g for g in graphs if etype in g.canonical_etypes]
        ends = zip(*(g.relation(etype).coo() for g in parts), strict=True)
        src, dst = (torch.cat([end.long() for end in column]) for column in ends)
        relations[etype] = Relation.from_edges(src, dst, sizes[etype[0]], sizes[etype[2]])
        frames = [g._edge_frames[etype] for g in parts]
        starts = [sum(frame.num_rows for frame in frames[:i]) for i in range(len(frames))]
        edge_frames[etype] = _overlay(frames, starts, len(src), graphs[0].device, "edge")
    node_frames = {}
    for ntype, size in sizes.items():
        frames = [g._node_frames()[ntype] for g in graphs if ntype in g.ntypes]
        node_frames[ntype] = _overlay(frames, [0] * len(frames), size, graphs[0].device, "node")
    first = graphs[0]
    return Graph(sizes, relations, node_frames, edge_frames, first.idtype, first.device)


def _overlay(
    frames: Sequence[Frame], starts: Sequence[int], size: int, device: torch.device, what: str
) -> Frame:
    """Write frames over each other, each from its first row; rows that none has are 0."""
    made = Frame(size, None, device, what)
    for frame, start in zip(frames, starts, strict=True):
        for name, value in frame.items():
            if name not in made:
                made[name] = value.new_zeros((size, *value.shape[1:]))
            if made[name].shape[1:] != value.shape[1:] or made[name].dtype != value.dtype:
                raise InvalidInput(
                    f"merge: the {what} feature {name!r} has rows of shape "
                    f"{tuple(made[name].shape[1:])} and {made[name].dtype} in one graph, "
                    f"{tuple(value.shape[1:])} and {value.dtype} in another"
                )
            made[name][start : start + len(value)] = value
    return made


def create_block(
    data_dict: Any,
    num_src_nodes: Any = None,
    num_dst_nodes: Any = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Block:
    """Make a block from edges in the forms of ``dgl.graph``, or from them by canonical edge type.

    Sizes of the sides are numbers, or numbers by node type; by default the largest ID plus one.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.create_block(([0, 1, 2], [1, 1, 0]), num_src_nodes=4)
    Block(num_src_nodes=4, num_dst_nodes=2, num_edges=3)
    """
    typed = data_dict if isinstance(data_dict, dict) else {ONE_ETYPE: data_dict}
    # Sides that are numbered apart are two node types of a graph.
    apart = heterograph(
        {(f"src {u}", r, f"dst {v}"): edges for (u, r, v), edges in typed.items()}, idtype=idtype
    )
    sizes = {}
    for side, given in ("src", num_src_nodes), ("dst", num_dst_nodes):
        found = {n[4:]: apart.num_nodes(n) for n in apart.ntypes if n[:4] == f"{side} "}
        if isinstance(given, int):
            given = dict.fromkeys(found, given)
        for ntype, size in found.items():
            if given and ntype in given and given[ntype] < size:
                raise OutOfRange(
                    f"num_{side}_nodes is {given[ntype]} for {ntype!r}, but an edge has node "
                    f"{size - 1}"
                )
        sizes[side] = dict(sorted({**found, **(given or {})}.items()))
    relations = {}
    for (source, name, end), relation in apart._relations.items():
        u, v = source[4:], end[4:]
        relations[u, name, v] = Relation(sizes["src"][u], sizes["dst"][v], relation.coo())
    block = Block(sizes["src"], sizes["dst"], relations, idtype=apart.idtype)
    return block if device is None else block.to(device)


def block_to_graph(block: Block) -> Graph:
    """Return a block as a graph whose node types are those of its sides, ``"…_src"``, ``"…_dst"``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.block_to_graph(dgl.create_block(([0, 1, 2], [1, 1, 0])))
    >>> g.canonical_etypes, g.num_nodes("_N_src"), g.num_nodes("_N_dst")
    ([('_N_src', '_E', '_N_dst')], 3, 2)
    """
    if not block.is_block:
        raise InvalidInput("block_to_graph takes a block; this is a graph")
    frames = {f"{ntype}_src": frame for ntype, frame in block._src_frames.items()}
    frames |= {f"{ntype}_dst": frame for ntype, frame in block._dst_frames.items()}
    names = {etype: (f"{etype[0]}_src", etype[1], f"{etype[2]}_dst") for etype in block._relations}
    return Graph(
        {ntype: frame.num_rows for ntype, frame in frames.items()},
        {names[etype]: relation for etype, relation in block._relations.items()},
        {ntype: frame.copy() for ntype, frame in frames.items()},
        {names[etype]: frame.copy() for etype, frame in block._edge_frames.items()},
        block.idtype,
        block.device,
    )


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
    starts = range(count) if root is None else read_ids(root, count, "node").tolist()
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
    result = g._ids(hops.to(g.device))
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
    found_paths = g._ids(paths.to(g.device))
    return result, found_paths[0] if root is not None else found_paths
