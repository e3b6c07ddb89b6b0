"""``dgl.partition``: parts of a graph in memory; ``partition_graph`` writes them to files."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.compat import lazy
from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers
from gnnlab.graph.names import EID, NID
from gnnlab.ops.checks import check_choice
from gnnlab.partition.assign import assign


def metis_partition_assignment(
    g: Graph,
    k: int,
    balance_ntypes: Any = None,
    balance_edges: bool = False,
    mode: str = "k-way",
    objtype: str = "cut",
) -> torch.Tensor:
    """Return the part of each node, of k parts, chosen by METIS: shape (N,).

    The arguments are those of :func:`gnnlab.distributed.partition_graph`; ``mode``, "k-way" or
    "recursive", has no effect.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> two = dgl.batch([dgl.rand_graph(50, 400), dgl.rand_graph(50, 400)])
    >>> part = dgl.metis_partition_assignment(two, 2)
    >>> len(part[:50].unique()), len(part[50:].unique()), bool(part[0] == part[50])
    (1, 1, False)
    """
    check_choice(mode, ("k-way", "recursive"), "mode")
    part, _ = assign(
        *(g, k, "metis"),
        balance_ntypes=balance_ntypes,
        balance_edges=balance_edges,
        objtype=objtype,
    )
    return torch.from_numpy(part).long()


def partition_graph_with_halo(
    g: Graph, node_part: Any, extra_cached_hops: int, reshuffle: bool = False
) -> tuple[dict[int, Graph], torch.Tensor | None, torch.Tensor | None]:
    """Return {part: its graph}, and the old IDs of nodes and edges if ``reshuffle``.

    A part has its own nodes and, with ``extra_cached_hops``, all edges at them, the in-edges of
    their in-neighbors and so on, and the ends of these. Own nodes and their in-edges come first, in
    the order of IDs. ``reshuffle`` numbers the nodes of the graph by part, and edges by the part of
    their destination. Features: IDs in the graph (``dgl.NID``, ``dgl.EID``), ``"inner_node"`` and
    ``"inner_edge"`` (own or not), ``"part_id"``; with ``reshuffle`` also ``"orig_id"``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> parts, _, _ = dgl.partition_graph_with_halo(ring, [0, 0, 1, 1], 1)
    >>> parts[0].ndata[dgl.NID], parts[0].edata[dgl.EID]
    (tensor([0, 1, 2, 3]), tensor([0, 3, 1]))
    """
    src, dst = (end.long() for end in g.edges())
    part = as_integers(node_part, "node_part").to(g.device).long()
    if part.shape != (g.num_nodes(),) or (part < 0).any():
        raise InvalidInput(
            f"node_part has the part of each of {g.num_nodes()} nodes, from 0; found shape "
            f"{tuple(part.shape)}"
        )
    nodes = edges = None
    if reshuffle:
        nodes, edges = part.argsort(stable=True), part[dst].argsort(stable=True)
        new = torch.empty_like(nodes)
        new[nodes] = torch.arange(len(nodes), device=g.device)
        src, dst, part = new[src[edges]], new[dst[edges]], part[nodes]
    parts = {}
    for each in range(int(part.max()) + 1 if len(part) else 0):
        own = part == each
        taken = own[src] & own[dst] if extra_cached_hops < 1 else own[src] | own[dst]
        layer = own
        for _ in range(extra_cached_hops - 1):
            sources = torch.zeros_like(own)
            sources[src[layer[dst]]] = True
            layer = sources & ~own
            taken |= layer[dst]
        halo = torch.zeros_like(own)
        halo[src[taken]] = halo[dst[taken]] = True
        kept = torch.cat([x.nonzero().flatten() for x in (own, halo & ~own)])
        eids = torch.cat([x.nonzero().flatten() for x in (taken & own[dst], taken & ~own[dst])])
        place = torch.empty_like(part)
        place[kept] = torch.arange(len(kept), device=g.device)
        ends = place[src[eids]], place[dst[eids]]
        found = graph(ends, num_nodes=len(kept), idtype=g.idtype, device=g.device)
        inner = own[kept].int(), own[dst[eids]].to(torch.int8)
        found.ndata.update({NID: kept.to(g.idtype), "inner_node": inner[0], "part_id": part[kept]})
        found.edata.update({EID: eids.to(g.idtype), "inner_edge": inner[1]})
        if nodes is not None and edges is not None:
            found.ndata["orig_id"], found.edata["orig_id"] = nodes[kept], edges[eids]
        parts[each] = found
    return parts, nodes, edges


def metis_partition(
    g: Graph,
    k: int,
    extra_cached_hops: int = 0,
    reshuffle: bool = False,
    balance_ntypes: Any = None,
    balance_edges: bool = False,
    mode: str = "k-way",
) -> dict[int, Graph]:
    """Divide a graph into k parts by METIS: {part: its graph}.

    See :func:`metis_partition_assignment` and :func:`partition_graph_with_halo`.
    """
    part = metis_partition_assignment(g, k, balance_ntypes, balance_edges, mode)
    return partition_graph_with_halo(g, part, extra_cached_hops, reshuffle)[0]


__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.partition")
