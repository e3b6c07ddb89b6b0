"""Blocks of all in-edges of a range of nodes."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import gnnlab as dgl
from tests.distributed.cut import typed as players_and_makers


def test_ranges_cover_the_graph_without_copying():
    """0→1, 1→1, 2→3, 3→0; ranges {0, 1, 2} and {3}."""
    g = dgl.graph(([0, 1, 2, 3], [1, 1, 3, 0]))
    g.ndata["x"] = torch.arange(4.0)
    (rows, first), (last_rows, last) = dgl.dataloading.full_neighbor_blocks(g, batch_size=3)
    assert (rows, last_rows) == (slice(0, 3), slice(3, 4))
    assert first.num_src_nodes() == 4 and first.num_dst_nodes() == 3
    assert [x.tolist() for x in first.edges()] == [[3, 0, 1], [0, 1, 1]]
    assert [x.tolist() for x in last.edges()] == [[2], [0]]
    whole = g.relation().csc().indices
    assert first.relation().csc().indices.data_ptr() == whole.data_ptr()
    assert first.srcdata["x"].tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: dgl.nn.SAGEConv(6, 3, "mean"),
        lambda: dgl.nn.SAGEConv(6, 3, "gcn"),
        lambda: dgl.nn.GraphConv(6, 3, "right"),
        lambda: dgl.nn.GATConv(6, 3, 2),
    ],
    ids=["SAGEConv", "gcn", "GraphConv", "GATConv"],
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_source_rows_are_multiplied_once_for_all_blocks(make, mode):
    """And again if the rows or the weights change, or in another pass."""
    g = dgl.add_self_loop(dgl.rand_graph(100, 900))
    conv, x, sizes = make().eval(), torch.randn(100, 6), []
    aten = torch.ops.aten
    weight = next(p for name, p in conv.named_parameters() if name[-6:] == "weight")

    class Products(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket in (aten.mm, aten.linear, aten.matmul):
                sizes.append(len(args[0]))
            return func(*args, **(kwargs or {}))

    def infer(change=lambda number: None):
        sizes.clear()
        parts = []
        for number, (rows, block) in enumerate(dgl.dataloading.full_neighbor_blocks(g, 10)):
            change(number)
            parts.append(conv(block, (x, x[rows])))
        return torch.cat(parts)

    with mode():
        torch.testing.assert_close(infer(), conv(g, x))
        with Products():
            infer()
        assert sizes.count(100) == 1
    with torch.no_grad(), Products():
        infer(lambda number: x.mul_(2) if number == 4 else None)
        assert sizes.count(100) == 2
        infer(lambda number: weight.mul_(2) if number == 9 else None)
        assert sizes.count(100) == 2
        torch.testing.assert_close(infer(), conv(g, x))
    assert infer().requires_grad


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_typed_layers_equal_the_whole_graph(batch_size):
    """Three edge types, two of which end at games; devs have no in-edges and no rows."""
    g, sizes, found = players_and_makers(), [], {"user": [], "game": []}
    x = {t: torch.randn(g.num_nodes(t), 6) for t in g.ntypes}
    sage = dgl.nn.SAGEConv(6, 3, "mean"), dgl.nn.SAGEConv(6, 3, "gcn")
    gcn = dgl.nn.GraphConv(6, 3, norm="right")
    conv = dgl.nn.HeteroGraphConv({"follows": sage[1], "plays": sage[0], "m": gcn})
    sage[0].fc_neigh.register_forward_hook(lambda *call: sizes.append(len(call[1][0])))
    with torch.no_grad():
        for rows, block in dgl.dataloading.full_neighbor_blocks(g, batch_size):
            own = {ntype: x[ntype][where] for ntype, where in rows.items()}
            for ntype, out in conv(block, (x, own)).items():
                found[ntype].append(out)
        assert sizes.count(60) == 1, "the rows of all users are multiplied once"
        for ntype, expected in conv(g, x).items():
            torch.testing.assert_close(torch.cat(found[ntype]), expected)
