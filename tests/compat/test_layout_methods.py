"""Methods that only DGL's graphs have, against dense matrices and loops over edges."""

from __future__ import annotations

import networkx
import pytest
import torch

import gnnlab
import gnnlab.compat as dgl
import gnnlab.compat.backend as F
from gnnlab.errors import InvalidInput, NotFound

fn = gnnlab.function
TYPES = {
    ("a", "r", "b"): [(0, 0), (1, 0), (2, 1)],
    ("b", "s", "b"): [(1, 0), (2, 2)],
    ("a", "t", "c"): [(2, 1)],
}


def typed() -> gnnlab.Graph:
    """Three relations; b's nodes receive by two of them, and b's node 1 by one only."""
    g = dgl.heterograph(TYPES)
    for seed, ntype in enumerate(g.ntypes):
        g.nodes[ntype].data["h"] = torch.randn(
            g.num_nodes(ntype), 2, generator=torch.Generator().manual_seed(seed)
        )
    return g


def pairs(g: gnnlab.Graph) -> list[tuple[int, int]]:
    return list(zip(*(end.tolist() for end in g.edges()), strict=True))


def messages_to(g: gnnlab.Graph, ntype: str, node: int) -> torch.Tensor:
    found = [
        g.nodes[etype[0]].data["h"][u]
        for etype, edges in TYPES.items()
        if etype[2] == ntype
        for u, v in edges
        if v == node
    ]
    return torch.stack(found) if found else torch.zeros(1, 2)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_update_all_over_all_edge_types(name: str) -> None:
    g = typed()
    g.update_all(fn.copy_u("h", "m"), getattr(fn, name)("m", "out"))
    reduce = {"max": torch.amax, "min": torch.amin}.get(name) or getattr(torch, name)
    for ntype in ("b", "c"):
        expected = [reduce(messages_to(g, ntype, v), 0) for v in range(g.num_nodes(ntype))]
        torch.testing.assert_close(g.nodes[ntype].data["out"], torch.stack(expected))
    assert "out" not in g.nodes["a"].data


def test_apply_edges_over_all_edge_types() -> None:
    g = typed()
    g.apply_edges(fn.u_dot_v("h", "h", "score"))
    for etype, edges in TYPES.items():
        for (u, v), score in zip(edges, g.edges[etype].data["score"], strict=True):
            expected = g.nodes[etype[0]].data["h"][u] @ g.nodes[etype[2]].data["h"][v]
            torch.testing.assert_close(score, expected[None])


def test_questions() -> None:
    g = dgl.graph([(0, 1), (1, 2)])
    assert not g.is_multigraph and dgl.graph([(0, 1), (1, 0), (0, 1)]).is_multigraph
    assert not g.is_unibipartite and not typed().is_unibipartite
    bipartite = dgl.heterograph({("a", "r", "b"): [(0, 0)], ("a", "s", "c"): [(0, 0)]})
    assert bipartite.is_unibipartite
    assert dgl.to_block(g).is_unibipartite
    assert not g.is_pinned() and g.unpin_memory_() is g and not g.is_readonly
    g.edata["w"] = torch.ones(2, 4, dtype=torch.int32)
    assert g.edge_attr_schemes() == {"w": ((4,), torch.int32)}
    assert g.edge_attr_schemes()["w"].dtype is torch.int32 and g.node_attr_schemes() == {}


def test_filters() -> None:
    g = dgl.graph([(0, 1), (1, 2), (2, 0)])
    g.ndata["h"] = torch.tensor([1, 2, 3])
    assert g.filter_nodes(lambda nodes: nodes.data["h"] > 1).tolist() == [1, 2]
    assert g.filter_nodes(lambda nodes: nodes.data["h"] > 1, [2, 0]).tolist() == [2]
    assert g.filter_edges(lambda edges: edges.src["h"] > edges.dst["h"]).tolist() == [2]
    assert g.filter_edges(lambda edges: edges.src["h"] > 0, ([2, 0], [0, 1])).tolist() == [2, 0]
    for wrong in (torch.ones(1), torch.ones(3, 1), [1, 0, 1]):
        for call in (g.filter_nodes, g.filter_edges):
            with pytest.raises(InvalidInput, match="shape"):
                call(lambda rows, wrong=wrong: wrong)
    g = typed()
    b = g.nodes["b"].data["h"][:, 0]
    found = g.filter_nodes(lambda nodes: nodes.data["h"][:, 0] > 0, ntype="b")
    assert found.tolist() == (b > 0).nonzero().flatten().tolist()
    assert g.filter_edges(lambda edges: edges.edges()[1] == 2, etype="s").tolist() == [1]


def test_incidence_and_adjacency() -> None:
    edges = [(0, 1), (0, 2), (2, 2), (0, 1)]
    g = dgl.graph(edges)
    dense = {kind: torch.zeros(3, 4) for kind in ("in", "out", "both")}
    for e, (u, v) in enumerate(edges):
        dense["in"][v, e] = dense["out"][u, e] = 1
        if u != v:
            dense["both"][v, e], dense["both"][u, e] = 1, -1
    for kind, expected in dense.items():
        assert torch.equal(g.inc(kind).to_dense(), expected)
    assert torch.equal(g.incidence_matrix("in").to_dense(), dense["in"])
    assert torch.equal(g.adjacency_matrix().to_dense(), dense["out"] @ dense["in"].T)
    with pytest.raises(InvalidInput, match="'up'"):
        g.inc("up")
    with pytest.raises(InvalidInput, match="'both'"):
        typed().inc("both", etype="r")


def test_features_of_some_rows() -> None:
    g = dgl.graph([(0, 1), (1, 2), (2, 0)])
    g.nodes[[0, 2]].data["h"] = torch.tensor([[1.0], [3.0]])
    assert g.ndata["h"].tolist() == [[1], [0], [3]]
    before = g.ndata["h"]
    g.nodes[torch.tensor([1])].data["h"] += 5
    assert g.nodes[1:].data["h"].tolist() == [[5], [3]] and before.tolist() == [[1], [0], [3]]
    assert g.nodes[2].data["h"].tolist() == [[3]]
    g.edges[[2, 0], [0, 1]].data["w"] = torch.tensor([8, 9])
    assert g.edata["w"].tolist() == [9, 0, 8] and g.edges[[2]].data["w"].tolist() == [8]
    assert dict(g.edges[[0]].data) == {"w": torch.tensor([9])}
    assert g.nodes["_N"].data["h"] is g.ndata["h"]
    with pytest.raises(NotFound):
        typed().nodes[[0]]


def test_slices_of_types() -> None:
    g = typed()
    assert g["a", "r", :].canonical_etypes == [("a", "r", "b")]
    assert g[:, "t", :].edges()[1].tolist() == [1]
    both = g["a", :, :]
    assert both.canonical_etypes == [("a", "r+t", "b+c")]
    assert both.num_nodes("b+c") == 5 and both.nodes["a"].data["h"].equal(g.nodes["a"].data["h"])
    stacked = torch.cat([g.nodes["b"].data["h"], g.nodes["c"].data["h"]])
    assert both.nodes["b+c"].data["h"].equal(stacked)
    frame = both.nodes["b+c"].data
    found = {  # in terms of the old types and IDs
        (u, g.ntypes[frame[dgl.NTYPE][v]], int(frame[dgl.NID][v]))
        for u, v in zip(*(end.tolist() for end in both.edges()), strict=True)
    }
    assert found == {(0, "b", 0), (1, "b", 0), (2, "b", 1), (2, "c", 1)}
    etypes = [g.canonical_etypes[i][1] for i in both.edata[dgl.ETYPE]]
    assert etypes == ["r", "r", "r", "t"] and both.edata[dgl.EID].tolist() == [0, 1, 2, 0]
    into_b = g[:, :, "b"]  # b is at both ends
    assert into_b.ntypes == ["a+b"] and into_b.num_edges() == 5
    with pytest.raises(NotFound):
        g["c", :, :]
    with pytest.raises(InvalidInput, match="`:` for any"):
        g["a", 1:, "b"]


def test_a_graph_made_by_its_class() -> None:
    g = dgl.DGLGraph()
    g.add_nodes(3)
    g.add_edges([0, 1], [1, 2])
    g.add_edge(2, 0)
    assert isinstance(g, dgl.DGLGraph) and pairs(g) == [(0, 1), (1, 2), (2, 0)]
    assert pairs(dgl.DGLGraph([(0, 1), (1, 2)], multigraph=True)) == [(0, 1), (1, 2)]
    assert pairs(dgl.DGLGraph(networkx.DiGraph([(0, 2)]))) == [(0, 1)]
    assert pairs(dgl.DGLGraph(g.adj_external(scipy_fmt="coo"))) == [(0, 1), (1, 2), (2, 0)]
    with pytest.raises(dgl.DGLError, match="clone"):
        dgl.DGLGraph(g)
    with pytest.raises(dgl.DGLError, match="found \\['num_node'\\]"):
        dgl.DGLGraph([(0, 1)], num_node=4)


def test_classes_derived_from_the_class_of_graphs() -> None:
    class Ring(dgl.DGLGraph):
        def __init__(self, size: int) -> None:
            super().__init__([(u, (u + 1) % size) for u in range(size)])

        def filter_nodes(self, *args):
            return super().filter_nodes(*args).tolist()

    ring, plain = Ring(3), dgl.DGLGraph([(0, 1)])
    assert type(plain) is gnnlab.Graph and isinstance(ring, Ring) and not isinstance(plain, Ring)
    assert issubclass(Ring, dgl.DGLGraph) and issubclass(gnnlab.Block, dgl.DGLGraph)
    assert not isinstance(3, dgl.DGLGraph) and not issubclass(gnnlab.Block, Ring)
    assert pairs(ring) == [(0, 1), (1, 2), (2, 0)] and type(ring.clone()) is Ring
    assert ring.filter_nodes(lambda nodes: nodes.nodes() > 0) == [1, 2]
    assert pairs(ring.line_graph()) == [(0, 1), (1, 2), (2, 0)]


def test_backend() -> None:
    x = F.tensor([[1.0, 2.0], [3.0, 4.0]], F.float32)
    assert F.shape(x) == (2, 2) and F.ndim(x) == 2 and F.dtype(x) is F.float32
    assert F.asnumpy(F.sum(x, 0)).tolist() == [4, 6] and F.mean(x, 1).tolist() == [1.5, 3.5]
    assert F.max(x, 0).tolist() == [3, 4] and F.as_scalar(F.reduce_sum(x)) == 10
    assert F.gather_row(x, F.tensor([1])).tolist() == [[3, 4]]
    assert F.scatter_row(x, F.tensor([0]), F.zeros((1, 2), F.float32)).tolist() == [[0, 0], [3, 4]]
    assert F.nonzero_1d(F.tensor([0, 2, 1])).tolist() == [1, 2]
    assert F.arange(1, 3, F.int32, F.cpu()).dtype is torch.int32
    assert F.astype(x, F.int64).dtype is torch.int64 and F.context(x) == F.cpu()
    y = F.attach_grad(F.copy_to(x, F.cpu()))
    with F.record_grad():
        F.backward(F.reduce_sum(y * y))
    assert F.array_equal(F.grad(y), 2 * x)
    assert F.stack([x, x], 0).shape == (2, 2, 2)
