from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, same, same_structure, toy, typed, typed_graphs

# ---------------------------------------------------------------------------------- nodes


def test_subgraph_by_mask_and_without_relabeling() -> None:
    mask = torch.tensor([True, False, True, False])
    g = dgl.node_subgraph(toy(), mask)
    assert g.ndata[dgl.NID].tolist() == [0, 2]
    g = toy().subgraph([0, 2], relabel_nodes=False)
    assert g.num_nodes() == 4
    assert edges_of(g) == [(2, 2), (2, 0)]
    assert dgl.NID not in g.ndata
    assert g.edata[dgl.EID].tolist() == [3, 4]
    g = toy().subgraph([0, 2], store_ids=False)
    assert list(g.ndata) == ["x"]
    assert toy().subgraph([]).num_nodes() == 0
    assert toy().subgraph(1).num_nodes() == 1


def test_nodes_of_a_subgraph_are_distinct() -> None:
    large = dgl.rand_graph(100, 300)
    for g, nodes in (
        (toy(), [0, 2, 2]),
        (toy(), torch.tensor([1, 1], dtype=torch.int32)),
        (large, [7, 3, 7]),  # of few nodes, which takes another path
        (typed(), {"user": [2, 0, 2], "game": [0]}),
    ):
        for relabel in (True, False):
            with pytest.raises(dgl.InvalidInput, match="repeat"):
                dgl.node_subgraph(g, nodes, relabel_nodes=relabel)


@given(graphs(max_nodes=20), st.data())
def test_node_subgraph_against_networkx(g: dgl.Graph, data: st.DataObject) -> None:
    nodes = data.draw(st.lists(st.integers(0, max(g.num_nodes() - 1, 0)), unique=True, max_size=20))
    nodes = nodes if g.num_nodes() else []
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(g.num_nodes()))
    for e, (u, v) in enumerate(edges_of(g)):
        reference.add_edge(u, v, eid=e)
    kept = sorted(e for *_, e in reference.subgraph(nodes).edges(data="eid"))
    part = g.subgraph(nodes)
    assert part.edata[dgl.EID].tolist() == kept
    assert [(nodes[u], nodes[v]) for u, v in edges_of(part)] == [edges_of(g)[e] for e in kept]
    assert part.idtype == part.edata[dgl.EID].dtype == g.idtype
    for name in g.ndata:
        assert torch.equal(part.ndata[name], g.ndata[name][nodes])


# ---------------------------------------------------------------------------------- edges


def test_edge_subgraph_that_keeps_all_nodes_by_both_names() -> None:
    new = dgl.edge_subgraph(toy(), [3], relabel_nodes=False)
    old = dgl.edge_subgraph(toy(), [3], preserve_nodes=True)
    assert same(new, old)
    assert new.num_nodes() == 4
    assert edges_of(new) == [(2, 2)]
    assert dgl.NID not in new.ndata
    mask = torch.tensor([False, False, False, True, False])
    assert same(toy().edge_subgraph(mask), toy().edge_subgraph([3]))
    assert list(toy().edge_subgraph([3], store_ids=False).edata) == ["w", "kind"]
    assert toy().edge_subgraph([]).num_nodes() == 0


@given(typed_graphs(), st.data())
def test_edge_subgraph_against_lists(g: dgl.Graph, data: st.DataObject) -> None:
    wanted = {
        etype: data.draw(st.lists(st.integers(0, g.num_edges(etype) - 1), max_size=5))
        for etype in g.canonical_etypes
        if g.num_edges(etype)
    }
    part = g.edge_subgraph(wanted)
    nodes = {t: part.nodes[t].data[dgl.NID].tolist() for t in g.ntypes}
    used: dict[str, list[int]] = {t: [] for t in g.ntypes}
    for etype in g.canonical_etypes:
        chosen = [edges_of(g, etype)[e] for e in wanted.get(etype, [])]
        u, v = nodes[etype[0]], nodes[etype[2]]
        assert [(u[a], v[b]) for a, b in edges_of(part, etype)] == chosen
        assert part.edges[etype].data["w"].tolist() == wanted.get(etype, [])
        used[etype[0]] += [a for a, _ in chosen]
        used[etype[2]] += [b for _, b in chosen]
    assert nodes == {t: list(dict.fromkeys(ids)) for t, ids in used.items()}


# ------------------------------------------------------------------------- in- and out-edges


def test_in_subgraph_of_types() -> None:
    g = dgl.in_subgraph(typed(), {"game": [0]})
    assert edges_of(g, "plays") == [(0, 0), (0, 0)]
    assert g.num_edges("follows") == 0
    assert g.num_nodes("user") == 3
    g = dgl.out_subgraph(typed(), {"user": 1, "game": 0})
    assert [g.num_edges(e) for e in g.etypes] == [1, 1, 1]


@given(graphs(), st.data())
def test_incident_subgraphs_against_lists(g: dgl.Graph, data: st.DataObject) -> None:
    nodes = data.draw(st.lists(st.integers(0, max(g.num_nodes() - 1, 0)), unique=True))
    nodes = nodes if g.num_nodes() else []
    for cut, side in ((dgl.in_subgraph, 1), (dgl.out_subgraph, 0)):
        part = cut(g, nodes)
        eids = [e for v in nodes for e, edge in enumerate(edges_of(g)) if edge[side] == v]
        assert part.edata[dgl.EID].tolist() == eids
        assert edges_of(part) == [edges_of(g)[e] for e in eids]
        assert part.num_nodes() == g.num_nodes()


# ---------------------------------------------------------------------------------- types
def test_subgraphs_of_types_share_features() -> None:
    g = typed()
    part = dgl.node_type_subgraph(g, ["user"])
    assert part.ntypes == ["user"]
    assert part.canonical_etypes == [("user", "follows", "user")]
    assert part.ndata["x"] is g.nodes["user"].data["x"]
    part = g.edge_type_subgraph(["plays", ("game", "made by", "user")])
    assert part.etypes == ["made by", "plays"]
    assert part.ntypes == ["game", "user"]
    assert part.edges["plays"].data["w"] is g.edges["plays"].data["w"]
    part.nodes["user"].data["new"] = torch.ones(3)
    assert "new" not in g.nodes["user"].data
    assert dgl.edge_type_subgraph(g, ["follows"]).ntypes == ["user"]
    assert same_structure(g.node_type_subgraph(g.ntypes), g)
