"""Blocks with all neighbors of all nodes, for exact offline inference.

Without sampling, the in-edges of nodes ``lo`` to ``hi`` are one slice of the graph's CSC arrays.
The sources of such a block are *all* nodes, with their own IDs, so no edge is copied and no feature
row is gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.block import Block
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.relation import Adjacency, Relation


def full_neighbor_blocks(g: Graph, batch_size: int = 1024) -> Iterator[tuple[slice, Block]]:
    """Iterate over the nodes of a graph in order, with all their in-edges.

    Parameters
    ----------
    g : Graph
        With one node type and one edge type.
    batch_size : int
        Destination nodes per block.

    Yields
    ------
    rows : slice
        The destinations: nodes ``rows.start`` to ``rows.stop - 1``.
    block : Block
        Edges from all N nodes of ``g`` to these; source i is node i. Layers take a pair of
        features, ``layer(block, (x, x[rows]))``. Without gradients, SAGEConv and GATConv multiply
        the rows of ``x`` once for all blocks, not once for each.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 1, 3, 0]))
    >>> for rows, block in dgl.dataloading.full_neighbor_blocks(g, batch_size=3):
    ...     print(rows, block.in_degrees())
    slice(0, 3, None) tensor([1, 2, 0])
    slice(3, 4, None) tensor([1])

    References
    ----------
    DGL user guide, chapter 6.6, "Exact Offline Inference on Large Graphs".
    """
    if not g.is_homogeneous or g.is_block:
        raise InvalidInput(
            "full_neighbor_blocks() needs a graph with one node type and one edge type"
        )
    batch_size = whole_number(batch_size, "batch_size", 1)
    (ntype,), (etype,) = g.ntypes, g.canonical_etypes
    csc, num_nodes = g.relation().csc(), g.num_nodes()
    starts = range(0, num_nodes, batch_size)
    ends = csc.indptr[[*starts, num_nodes]].tolist()  # at once: a GPU waits for each look
    kept: dict[Any, Any] = {}
    for lo, (first, last) in zip(starts, pairwise(ends), strict=True):
        hi = min(lo + batch_size, num_nodes)
        adjacency = Adjacency(csc.indptr[lo : hi + 1] - first, csc.indices[first:last])
        block = Block(
            {ntype: num_nodes},
            {ntype: hi - lo},
            {etype: Relation(num_nodes, hi - lo, csc=adjacency)},
            src_frames=g.node_frames(),
            dst_frames={ntype: Frame(hi - lo, None, g.device)},
            idtype=g.idtype,
            device=g.device,
        )
        block.kept_results = kept
        yield slice(lo, hi), block
