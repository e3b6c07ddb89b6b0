"""Sampling of in-edges that only DGL has: by edge types of a homogeneous graph, by weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.compat import lazy
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import Deferred, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_edges, read_nodes
from gnnlab.graph.names import EdgeType, is_all
from gnnlab.graph.queries import incident_slots
from gnnlab.random import next_key
from gnnlab.sampling.neighbor import (
    Picked,
    check_fanout,
    frontier_of,
    read_fanouts,
    read_weights,
)

__all__ = ["sample_etype_neighbors", "select_topk"]


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
    """Keep the k in-edges of each node with the largest weights.

    Parameters
    ----------
    g : Graph
    k : int or dict of int by edge type
        Edges per node and edge type; −1 keeps all.
    weight : str
        Name of an edge feature, one number per edge, of all edge types with a ``k`` other than 0.
    nodes : IDs, or dict of IDs by node type, optional
        All nodes by default.
    edge_dir : {"in", "out"}
    ascending : bool
        Keep those with the smallest weights.
    copy_ndata, copy_edata, output_device
        As for :func:`gnnlab.sample_neighbors`.

    Returns
    -------
    Graph
        All nodes of ``g``; the edges of each node by weight, of equal weights the smaller ID first.
        ``edata[dgl.EID]`` holds their IDs in ``g``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2, 0], [3, 3, 3, 1]))
    >>> g.edata["w"] = torch.tensor([0.1, 0.5, 0.3, 0.2])
    >>> dgl.sampling.select_topk(g, 2, "w").edata[dgl.EID]
    tensor([3, 1, 2])
    """
    inward = _read_direction(edge_dir)
    if is_all(nodes):
        nodes = {ntype: torch.arange(g.num_nodes(ntype), device=g.device) for ntype in g.ntypes}
    seeds, quotas = read_nodes(g, nodes), read_fanouts(g, k)
    picked = {}
    for etype, quota in quotas.items():
        row, eids, others, count = _around(g, seeds, etype, inward)
        if not quota:
            row, eids, others = row[:0], eids[:0], others[:0]
        score = g._edge_frames[etype][weight].reshape(-1)[eids]
        if len(score) != len(eids):
            raise InvalidInput(f"weight is one number per edge; {weight!r} of {etype} has more")
        order = torch.argsort(score, descending=not ascending, stable=True)
        kept = _first_of_groups(row, order, torch.full((count,), quota, device=row.device))
        picked[etype] = _pick(g, row[kept], eids[kept], others[kept], count)
    frontier = frontier_of(g, seeds, picked, inward, copy_ndata, copy_edata)
    return frontier if output_device is None else frontier.to(output_device)


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

    Parameters
    ----------
    g : Graph
        With one node type and one edge type; the edge IDs of each original type follow each other.
    nodes : IDs
    etype_offset : list of int
        First edge ID of each original type, and the number of edges.
    fanout : int or sequence of int
        Edges per node and type, −1 for all; one number for each type, or one for all.
    edge_dir : {"in", "out"}
    prob : str or tensor, optional
        Weights of the edges, as for :func:`gnnlab.sample_neighbors`.
    exclude_edges : IDs, optional
        A bool here is the older position of ``replace``.
    replace : bool
    copy_ndata, copy_edata, output_device
        As for :func:`gnnlab.sample_neighbors`.
    etype_sorted, _dist_training : bool
        Accepted for DGL's signature.

    Returns
    -------
    Graph
        All nodes of ``g`` and the sampled edges, by node and then by type.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2, 0, 1, 2], [3, 3, 3, 3, 3, 3]))
    >>> frontier = dgl.sampling.sample_etype_neighbors(g, [3], [0, 3, 6], [1, -1])
    >>> (frontier.edata[dgl.EID] >= 3).tolist()
    [False, True, True, True]
    """
    inward = _read_direction(edge_dir)
    if isinstance(exclude_edges, bool):
        exclude_edges, replace = None, exclude_edges
    if not g.is_homogeneous:
        raise InvalidInput(
            "sample_etype_neighbors takes a graph made by to_homogeneous; on a graph with several "
            "edge types, sample_neighbors samples each of them"
        )
    etype = g.canonical_etypes[0]
    starts = as_tensor(etype_offset).to(g.device).long()
    if len(starts) and int(starts[-1]) != g.num_edges():
        starts = torch.cat([starts, starts.new_tensor([g.num_edges()])])
    types = len(starts) - 1
    fanouts = as_tensor(fanout).reshape(-1).tolist() * (types if as_tensor(fanout).ndim == 0 else 1)
    if types < 0 or int(starts[0]) or bool((starts.diff() < 0).any()) or len(fanouts) != types:
        raise InvalidInput(
            "etype_offset rises from 0 to the number of edges, and fanout has one number per type; "
            f"found {starts.tolist()} and {fanouts}"
        )
    quota = torch.tensor([check_fanout(each) for each in fanouts], device=g.device)
    seeds = read_nodes(g, nodes)
    row, eids, others, count = _around(g, seeds, etype, inward)
    weights = read_weights(g, prob).get(etype)
    value = torch.ones(len(eids), device=eids.device) if weights is None else weights[eids].double()
    allowed = value > 0
    if exclude_edges is not None:
        allowed &= ~torch.isin(eids, read_edges(g, exclude_edges)[etype].long())
    row, eids, others, value = (part[allowed] for part in (row, eids, others, value))
    kind = torch.searchsorted(starts[1:], eids, right=True)
    group = row * types + kind
    quotas = quota.repeat(count)
    rng = kernels.rng_torch
    if replace:
        kept = _draw_from_groups(group, value, quotas, next_key())
    else:
        # Of all edges of a group, those with the largest log(u) / weight: in proportion to weight.
        draws = rng.uniform(rng.draw(rng.streams(next_key(), eids), 0))
        order = torch.argsort(draws.log() / value, descending=True, stable=True)
        kept = _first_of_groups(group, order, quotas)
    picked = {etype: _pick(g, row[kept], eids[kept], others[kept], count)}
    frontier = frontier_of(g, seeds, picked, inward, copy_ndata, copy_edata)
    return frontier if output_device is None else frontier.to(output_device)


def _read_direction(edge_dir: str) -> bool:
    if edge_dir not in ("in", "out"):
        raise InvalidInput(f"edge_dir must be 'in' or 'out'; found {edge_dir!r}")
    return edge_dir == "in"


def _around(
    g: Graph, seeds: Mapping[str, torch.Tensor], etype: EdgeType, inward: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Return all edges of the seeds: position of the seed, edge ID, other end; number of seeds."""
    relation = g._relations[etype]
    adjacency = relation.csc() if inward else relation.csr()
    empty = torch.empty(0, dtype=torch.int64, device=g.device)
    ids = seeds.get(etype[2] if inward else etype[0], empty)
    row, slots = incident_slots(adjacency, ids)
    return row, adjacency.eids_at(slots).long(), adjacency.indices[slots], len(ids)


def _first_of_groups(group: torch.Tensor, order: torch.Tensor, quota: torch.Tensor) -> torch.Tensor:
    """Return the first ``quota`` positions of each group in an order, by group; −1 for all."""
    by_group = order[torch.argsort(group[order], stable=True)]
    sizes = torch.bincount(group, minlength=len(quota))
    first = sizes.cumsum(0) - sizes
    rank = torch.arange(len(by_group), device=group.device) - first[group[by_group]]
    limit = torch.where(quota < 0, sizes, quota)[group[by_group]]
    return by_group[rank < limit]


def _draw_from_groups(
    group: torch.Tensor, value: torch.Tensor, quota: torch.Tensor, key: int
) -> torch.Tensor:
    """Draw ``quota`` positions of each group, in proportion to ``value``; −1 for all."""
    order = torch.argsort(group, stable=True)
    sizes = torch.bincount(group, minlength=len(quota))
    total = torch.nn.functional.pad(value[order].double().cumsum(0), (1, 0))
    last = sizes.cumsum(0)
    count = torch.where((sizes > 0) & (quota >= 0), quota, 0)
    which = torch.repeat_interleave(torch.arange(len(quota), device=group.device), count)
    place = torch.arange(len(which), device=group.device) - (count.cumsum(0) - count)[which]
    rng = kernels.rng_torch
    draws = rng.uniform(rng.draw(rng.streams(key, which), place))
    low, high = total[(last - sizes)[which]], total[last[which]]
    found = torch.searchsorted(total, low + draws * (high - low), right=True) - 1
    found = torch.minimum(torch.maximum(found, (last - sizes)[which]), last[which] - 1)
    every = order[(quota < 0)[group[order]]]
    kept = torch.cat([order[found], every])
    return kept[torch.argsort(group[kept], stable=True)]


def _pick(
    g: Graph, row: torch.Tensor, eids: torch.Tensor, others: torch.Tensor, count: int
) -> Picked:
    """Return edges, which are ordered by the position of their seed, as a sampler does."""
    ptr = torch.nn.functional.pad(torch.bincount(row, minlength=count).cumsum(0), (1, 0))
    ids = g._ids(eids)
    return Picked(ptr, Deferred(lambda: ids), others)


__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.sampling.neighbor")
