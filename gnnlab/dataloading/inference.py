"""Blocks with all neighbors of all nodes, for exact offline inference.

Without sampling, the in-edges of nodes ``lo`` to ``hi`` are one slice of the graph's CSC arrays.
The sources of such a block are *all* nodes, with their own IDs, so no edge is copied and no feature
row is gathered. :func:`gnnlab.distributed.full_neighbor_inference` does it on a partitioned graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.block import Block
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.relation import Adjacency, Relation


def full_neighbor_blocks(g: Graph, batch_size: int = 1024) -> Iterator[tuple[Any, Block]]:
    """Iterate over a graph's nodes in order, ``batch_size`` per block, with all their in-edges.

    Yields
    ------
    rows : slice, or dict of slice by node type
        The destinations: nodes ``rows.start`` to ``rows.stop - 1``. On a graph with several types
        a dict with one of them; the types come one after the other.
    block : Block
        Edges of all types from all nodes of ``g`` to these; source i is node i. Layers take a pair
        of features, ``layer(block, (x, x[rows]))``, or with several types ``layer(block, (x,
        {ntype: x[ntype][rows[ntype]]}))``. Without gradients, SAGEConv, GraphConv and GATConv
        multiply the rows of ``x`` once for all blocks, not once for each. Out-degrees are those in
        the block, so GraphConv needs ``norm="right"``.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 1, 3, 0]))
    >>> for rows, block in dgl.dataloading.full_neighbor_blocks(g, batch_size=3):
    ...     print(rows, block.in_degrees())
    slice(0, 3, None) tensor([1, 2, 0])
    slice(3, 4, None) tensor([1])
    """
    if g.is_block:
        raise InvalidInput("full_neighbor_blocks() needs a graph; found a block", code="is_block")
    batch_size = whole_number(batch_size, "batch_size", 1)
    sizes = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    kept: dict[Any, Any] = {}
    for ntype, num_nodes in sizes.items():
        starts = range(0, num_nodes, batch_size)
        into = {t: g.relation(t).csc() for t in g.canonical_etypes if t[2] == ntype}
        # at once: a GPU waits for each look
        ends = {t: csc.indptr[[*starts, num_nodes]].tolist() for t, csc in into.items()}
        for i, lo in enumerate(starts):
            hi, relations = min(lo + batch_size, num_nodes), {}
            for etype, csc in into.items():
                first, last = ends[etype][i : i + 2]
                adjacency = Adjacency(csc.indptr[lo : hi + 1] - first, csc.indices[first:last])
                relations[etype] = Relation(sizes[etype[0]], hi - lo, csc=adjacency)
            frames = g.node_frames(), {ntype: Frame(hi - lo, None, g.device)}, None
            block = Block(sizes, {ntype: hi - lo}, relations, *frames, g.idtype, g.device)
            block.kept_results = kept
            rows = slice(lo, hi)
            yield rows if g.is_homogeneous else {ntype: rows}, block
