"""``dgl.sampling``: by edge types of a homogeneous graph, by weight; and what gnnlab has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gnnlab.compat import lazy
from gnnlab.errors import InvalidInput
from gnnlab.graph.core import refuse_block
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_edges, read_nodes
from gnnlab.graph.names import EID, EdgeType, is_all
from gnnlab.graph.neighbor import read_fanouts, sample_neighbors
from gnnlab.graph.subgraph import keep_edges


def select_topk(
    g: Graph,
    k: int | Mapping[Any, int],
    weight: str,
    nodes: Any = None,
    edge_dir: str = "in",
    ascending: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    output_device: Any = None,
) -> Graph:
    """Keep the k in-edges of each node, and of each edge type, with the largest weights.

    ``k`` may differ by edge type; −1 keeps all. ``weight`` names a feature of one number per edge.
    The edges of each node are ordered by weight; of equal weights the smaller ID is first.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2, 0], [3, 3, 3, 1]))
    >>> g.edata["w"] = torch.tensor([0.1, 0.5, 0.3, 0.2])
    >>> dgl.sampling.select_topk(g, 2, "w", [3]).edata[dgl.EID]
    tensor([1, 2])
    """
    refuse_block(g, "select_topk")
    if is_all(nodes):
        nodes = {ntype: range(g.num_nodes(ntype)) for ntype in g.ntypes}
    around, end, kept = _around(g, nodes, edge_dir), edge_dir == "in", {}
    for etype, count in read_fanouts(g, k).items():
        frame = around.edge_frames[etype]
        score, ends = frame[weight], around.edges(etype=etype)[end]
        if score.numel() != len(ends):
            raise InvalidInput(f"weight is one number per edge; {weight!r} of {etype} has more")
        order = score.reshape(-1).argsort(descending=not ascending, stable=True)
        order = order[ends[order].argsort(stable=True)]  # by node, and then by weight
        sizes = torch.unique_consecutive(ends[order], return_counts=True)[1]
        rank = torch.arange(len(order), device=g.device)
        rank -= (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
        kept[etype] = frame[EID][order if count < 0 else order[rank < count]]
    return _frontier(g, kept, copy_ndata, copy_edata, output_device)


def sample_etype_neighbors(
    g: Graph,
    nodes: Any,
    etype_offset: Sequence[int],
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    exclude_edges: Any = None,
    replace: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    etype_sorted: bool = False,
    _dist_training: bool = False,
    output_device: Any = None,
) -> Graph:
    """Sample in-edges of each node and edge type of a graph made homogeneous.

    ``etype_offset`` has the first edge ID of each original type, and the number of edges;
    ``fanout`` one number for each type, or one for all; further numbers are ignored. The others are
    those of :func:`gnnlab.sample_neighbors`; a bool as ``exclude_edges`` is the older place of
    ``replace``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2, 0, 1, 2], [3, 3, 3, 3, 3, 3]))
    >>> frontier = dgl.sampling.sample_etype_neighbors(g, [3], [0, 3, 6], [1, -1])
    >>> (frontier.edata[dgl.EID] >= 3).tolist()
    [False, True, True, True]
    """
    if isinstance(exclude_edges, bool):
        exclude_edges, replace = None, exclude_edges
    if not g.is_homogeneous:
        raise InvalidInput(
            "sample_etype_neighbors takes a graph made by to_homogeneous; on a graph with several "
            "edge types, sample_neighbors samples each of them"
        )
    etype = g.canonical_etypes[0]
    starts = as_tensor(etype_offset).tolist()
    starts += [g.num_edges()] if starts and starts[-1] != g.num_edges() else []
    types = len(starts) - 1
    fanouts = as_tensor(fanout).reshape(-1).tolist() * (types if as_tensor(fanout).ndim == 0 else 1)
    if types < 0 or starts[0] or starts != sorted(starts) or len(fanouts) < types:
        raise InvalidInput(
            "etype_offset rises from 0 to the number of edges, and fanout has one number per type; "
            f"found {starts} and {fanouts}"
        )
    around = _around(g, nodes, edge_dir)
    if prob is not None and not isinstance(prob, str):
        if as_tensor(prob, "prob").shape[:1] != (g.num_edges(),):
            raise InvalidInput(f"prob is one number per edge, {g.num_edges()}; found {prob!r}")
        prob = as_tensor(prob)[around.edata[EID].to(as_tensor(prob).device)]
    eids, picked = around.edata.pop(EID), []
    allowed = torch.ones(len(eids), dtype=torch.bool, device=g.device)
    if exclude_edges is not None:
        allowed = ~torch.isin(eids, read_edges(g, exclude_edges, distinct=True)[etype])
    for first, last, count in zip(starts, starts[1:], fanouts, strict=False):
        of_type = (allowed & (eids >= first) & (eids < last)).nonzero().flatten()
        part = keep_edges(around, {etype: of_type}, None, False)
        weights = prob if prob is None or isinstance(prob, str) else prob[of_type]
        found = sample_neighbors(part, nodes, count, edge_dir, weights, replace)
        picked.append(eids[of_type[found.edata[EID].long()]])
    every = torch.cat([eids[:0], *picked])
    ends = g.find_edges(every)[edge_dir == "in"]
    kept = {etype: every[ends.argsort(stable=True)]}
    return _frontier(g, kept, copy_ndata, copy_edata, output_device)


def _around(g: Graph, nodes: Any, edge_dir: str) -> Graph:
    """Return the graph of all edges into, or out of, the nodes, each edge once."""
    if edge_dir not in ("in", "out"):
        raise InvalidInput(f"edge_dir must be 'in' or 'out'; found {edge_dir!r}")
    nodes = {ntype: torch.unique(ids) for ntype, ids in read_nodes(g, nodes).items()}
    return g.in_subgraph(nodes) if edge_dir == "in" else g.out_subgraph(nodes)


def _frontier(
    g: Graph, eids: dict[EdgeType, torch.Tensor], ndata: bool, edata: bool, device: Any
) -> Graph:
    """Return the graph of all nodes and of some edges, which may be repeated."""
    found = keep_edges(g, eids, None, True)
    for frame in found.node_frames().values() if not ndata else ():
        frame.clear()
    for frame in found.edge_frames.values() if not edata else ():
        ids = frame[EID]
        frame.clear()
        frame[EID] = ids
    return found if device is None else found.to(device)


__getattr__, __dir__ = lazy.attributes(
    __name__, "gnnlab.sampling", {"gnnlab.compat.node2vec": "node2vec_random_walk pack_traces"}
)
