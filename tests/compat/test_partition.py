"""``dgl.partition``: parts in memory, with and without their halo."""

from __future__ import annotations

import pytest
import torch

import gnnlab
from gnnlab import compat as dgl


def shown(part: gnnlab.Graph) -> tuple:
    nodes = dict(zip(part.ndata[dgl.NID].tolist(), part.ndata["inner_node"].tolist(), strict=True))
    edges = dict(zip(part.edata[dgl.EID].tolist(), part.edata["inner_edge"].tolist(), strict=True))
    return nodes, edges


def test_halos_are_those_of_dgl() -> None:
    """A ring of 6 nodes with 0 → 3 and 5 → 1; parts 0 1 2 and 3 4 5. Expected: DGL 2.1."""
    g = gnnlab.graph(([0, 1, 2, 3, 4, 5, 0, 5], [1, 2, 3, 4, 5, 0, 3, 1]))
    node_part = torch.tensor([0, 0, 0, 1, 1, 1])
    inner = {0: 1, 1: 1, 2: 1}
    expected = {
        0: (inner, {0: 1, 1: 1}),
        1: (inner | {5: 0, 3: 0}, {5: 1, 0: 1, 7: 1, 1: 1, 6: 0, 2: 0}),
        2: (inner | {5: 0, 4: 0, 3: 0}, {5: 1, 0: 1, 7: 1, 1: 1, 4: 0, 6: 0, 2: 0}),
    }
    for hops, (nodes, edges) in expected.items():
        parts, orig_nodes, orig_edges = dgl.partition_graph_with_halo(g, node_part, hops)
        assert shown(parts[0]) == (nodes, edges) and orig_nodes is None and orig_edges is None
        assert torch.equal(parts[0].ndata["part_id"], node_part[parts[0].ndata[dgl.NID]])
        src, dst = parts[0].edges()
        ids = parts[0].ndata[dgl.NID]
        assert torch.equal(
            torch.stack([ids[src], ids[dst]]), torch.stack(g.find_edges(parts[0].edata[dgl.EID]))
        )
    with pytest.raises(dgl.DGLError, match="node_part"):
        dgl.partition_graph_with_halo(g, [0, 1], 1)


def test_reshuffled_ids_are_ranges() -> None:
    g = gnnlab.graph(([0, 1, 2, 3, 0], [1, 2, 3, 0, 3])).int()
    parts, nodes, edges = dgl.partition_graph_with_halo(g, [1, 0, 1, 0], 1, reshuffle=True)
    assert nodes.tolist() == [1, 3, 0, 2] and edges.tolist() == [0, 2, 4, 1, 3]
    for each, (first, last) in {0: (0, 2), 1: (2, 4)}.items():
        part = parts[each]
        own = part.ndata["inner_node"].bool()
        assert part.ndata[dgl.NID][own].tolist() == list(range(first, last))
        assert part.ndata[dgl.NID].dtype == torch.int32
        assert torch.equal(part.ndata["orig_id"], nodes[part.ndata[dgl.NID].long()])
        ends = [part.ndata["orig_id"][end.long()] for end in part.edges()]
        assert torch.equal(
            torch.stack(ends).int(), torch.stack(g.find_edges(part.edata["orig_id"]))
        )


def test_metis_divides_communities() -> None:
    gnnlab.seed(0)
    two = gnnlab.batch([gnnlab.rand_graph(40, 300), gnnlab.rand_graph(40, 300)])
    parts = dgl.transforms.metis_partition(two, 2)
    assert sorted(parts) == [0, 1]
    nodes = torch.cat([part.ndata[dgl.NID] for part in parts.values()])
    assert nodes.sort().values.tolist() == list(range(80))
    assert sum(part.num_edges() for part in parts.values()) == 600  # none is cut
    assert dgl.metis_partition_assignment(two, 2).dtype == torch.int64
    with pytest.raises(dgl.DGLError, match="mode"):
        dgl.metis_partition(two, 2, mode="other")
