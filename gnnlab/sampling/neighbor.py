"""Neighbor sampling: a few in-edges of each seed node.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
DGL user guide, chapter 6.4, "Implementing Custom Graph Samplers".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import edge_dict, node_dict, read_ids
from gnnlab.graph.names import EID, EdgeType
from gnnlab.graph.relation import Adjacency, Relation
from gnnlab.graph.subgraph import frame_of
from gnnlab.kernels import gather
from gnnlab.random import fold, next_key

__all__ = ["pick", "read_excluded", "read_fanouts", "read_weights", "sample_neighbors"]


def sample_neighbors(
    g: Graph,
    nodes: Any,
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    replace: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    exclude_edges: Any = None,
    output_device: Any = None,
) -> Graph:
    """Sample ``fanout`` in-edges of each node and return them as a graph on all nodes.

    Parameters
    ----------
    g : Graph
    nodes : IDs, or dict of IDs by node type
        The seeds. A seed without in-edges gets none.
    fanout : int or dict
        Edges per seed and edge type; −1 or None takes all. A dict gives one by edge type; types
        that are left out are not sampled.
    edge_dir : {"in", "out"}
    prob : str or tensor or dict, optional
        Weights of the edges, unnormalised: the name of an edge feature, or values of shape (E,),
        float or bool. An edge of weight 0 is never taken.
    replace : bool
        Draw with replacement.
    copy_ndata, copy_edata : bool
        Whether features follow (when they are first read).
    exclude_edges : IDs or dict of IDs by edge type, optional
        Edges that must not be taken.
    output_device : torch.device, optional

    Returns
    -------
    Graph
        All nodes of ``g`` and the sampled edges, seed by seed; ``edata[EID]`` holds their original
        IDs. The result is a function of the seed set by :func:`gnnlab.seed`, of the number of
        sampling calls since, and of each node's ID: not of threads or of the order of the seeds.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 3, 0], [4, 4, 4, 4, 1]))
    >>> frontier = dgl.sampling.sample_neighbors(g, [4, 1], 2)
    >>> frontier.in_degrees([4, 1, 0])
    tensor([2, 1, 0])
    """
    if edge_dir not in ("in", "out"):
        raise InvalidInput(f"edge_dir must be 'in' or 'out'; found {edge_dir!r}")
    inward = edge_dir == "in"
    seeds = {
        ntype: read_ids(ids, g.num_nodes(ntype), "node", g.device)
        for ntype, ids in node_dict(g, nodes).items()
    }
    fanouts = read_fanouts(g, fanout)
    weights = read_weights(g, prob)
    excluded = {} if exclude_edges is None else edge_dict(g, exclude_edges)
    key = next_key()
    relations, edge_frames = {}, {}
    empty = torch.empty(0, dtype=torch.int64, device=g.device)
    for type_id, (etype, relation) in enumerate(g._relations.items()):
        directed = relation if inward else relation.reverse()
        at = etype[2] if inward else etype[0]
        ids = seeds.get(at, empty) if fanouts[etype] != 0 else empty
        adjacency = directed.csc()
        blocked = read_excluded(directed, excluded[etype]) if etype in excluded else None
        ptr, slots, sources = pick(
            adjacency, ids, fanouts[etype], fold(key, type_id), replace, weights.get(etype), blocked
        )
        centers = torch.repeat_interleave(
            ids.to(sources.dtype), torch.diff(ptr), output_size=len(sources)
        )
        coo = (sources, centers) if inward else (centers, sources)
        relations[etype] = Relation(relation.num_src, relation.num_dst, coo)
        edge_frames[etype] = _edge_frame(g, etype, adjacency, slots, copy_edata)
    node_frames = (
        {name: frame.copy() for name, frame in g._node_frames().items()} if copy_ndata else None
    )
    frontier = g.derive(relations, node_frames=node_frames, edge_frames=edge_frames)
    return frontier if output_device is None else frontier.to(output_device)


Graph.sample_neighbors = sample_neighbors  # the method form of the guide, chapter 6.4


def _edge_frame(
    g: Graph, etype: EdgeType, adjacency: Adjacency, slots: torch.Tensor, copy: bool
) -> Any:
    source = g._edge_frames[etype]
    eids = slots if adjacency.ordered else None
    if eids is None and not len(source):
        # Edge IDs cost a second look at memory: leave them until they are asked for.
        frame = frame_of(g, source, slots, store_ids=False)
        frame.defer(EID, lambda: g._ids(gather.rows(adjacency.eids, slots)))
        return frame
    frame = frame_of(g, source, gather.rows(adjacency.eids, slots) if eids is None else eids)
    if not copy:
        for name in [name for name in frame if name != EID]:
            del frame[name]
    return frame


def pick(
    adjacency: Adjacency,
    seeds: torch.Tensor,
    fanout: int,
    key: int,
    replace: bool = False,
    weights: torch.Tensor | None = None,
    excluded: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sample slots of the seeds' rows, on the CPU or the GPU.

    Returns
    -------
    ptr, slots, sources : torch.Tensor
        As in :func:`gnnlab.kernels.sample.sample_neighbors`.
    """
    eids = None if weights is None or adjacency.ordered else adjacency.eids
    arrays = (adjacency.indptr, adjacency.indices, seeds)
    optional = {"weights": weights, "eids": eids, "excluded": excluded}
    if adjacency.indices.is_cuda:
        return kernels.sample_torch.sample_neighbors(
            *arrays, fanout, key, replace=replace, **optional
        )
    given = {name: value.numpy() for name, value in optional.items() if value is not None}
    found = kernels.sample.sample_neighbors(
        *(array.numpy() for array in arrays), fanout, key, replace=replace, **given
    )
    return tuple(torch.from_numpy(array) for array in found)  # type: ignore[return-value]


def read_fanouts(g: Graph, fanout: Any) -> dict[EdgeType, int]:
    """Read a fanout as one number per edge type; −1 stands for all, 0 for none."""
    if isinstance(fanout, Mapping):
        given = {g.to_canonical_etype(etype): value for etype, value in fanout.items()}
        return {etype: _one_fanout(given.get(etype, 0)) for etype in g._relations}
    value = _one_fanout(fanout)
    return dict.fromkeys(g._relations, value)


def _one_fanout(value: Any) -> int:
    if value is None:
        return -1
    if isinstance(value, bool) or int(value) != value or value < -1:
        raise InvalidInput(
            f"a fanout is a number of neighbors, 0 or more, or −1 (None) for all; found {value!r}"
        )
    return int(value)


def read_weights(g: Graph, prob: Any) -> dict[EdgeType, torch.Tensor]:
    """Read edge weights: the name of a feature, a tensor, or a dict of either by edge type."""
    if prob is None:
        return {}
    if isinstance(prob, Mapping):
        given = {g.to_canonical_etype(etype): value for etype, value in prob.items()}
    else:
        given = dict.fromkeys(g._relations, prob)
    weights = {}
    for etype, value in given.items():
        frame = g._edge_frames[etype]
        if isinstance(value, str) and value not in frame and len(g._relations) > 1:
            continue  # only some edge types have weights
        weight = frame[value] if isinstance(value, str) else as_tensor(value)
        weight = weight.to(g.device)
        weights[etype] = _check_weights(weight, frame.num_rows, etype)
    return weights


def _check_weights(weight: torch.Tensor, num_edges: int, etype: EdgeType) -> torch.Tensor:
    weight = weight.squeeze(-1) if weight.ndim == 2 else weight
    if weight.shape != (num_edges,):
        raise InvalidInput(
            f"weights of edge type {etype} need shape ({num_edges},); found {tuple(weight.shape)}"
        )
    if weight.dtype is torch.uint8:
        weight = weight.bool()
    if weight.dtype is torch.bool:
        return weight.contiguous()
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.float()
    return weight.contiguous()


def read_excluded(relation: Relation, edges: Any) -> torch.Tensor | None:
    """Turn IDs of excluded edges into sorted slots of the relation's CSC."""
    ids = read_ids(edges, relation.num_edges, "edge", relation.device)
    if len(ids) == 0:
        return None
    adjacency = relation.csc()
    if adjacency.ordered:
        return torch.unique(ids.long())
    if ids.is_cuda:
        return torch.isin(adjacency.eids, ids).nonzero().flatten()
    dst = relation.coo()[1][ids.long()]
    slots = kernels.sample.edge_slots(
        adjacency.indptr.numpy(), adjacency.eids.numpy(), dst.numpy(), ids.numpy()
    )
    return torch.from_numpy(slots)
