from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, toy, typed, typed_graphs


def test_compact_several_graphs_alike() -> None:
    a, b = dgl.graph(([5, 3], [4, 1]), num_nodes=7), dgl.graph(([6], [0]), num_nodes=7)
    results = dgl.compact_graphs([a, b])
    assert isinstance(results, list)
    assert [g.ndata[dgl.NID].tolist() for g in results] == [[5, 3, 4, 1, 6, 0]] * 2
    assert edges_of(results[1]) == [(4, 5)]
    assert dgl.compact_graphs([]) == []


def test_compact_keeps_what_must_be_preserved_first() -> None:
    g = dgl.compact_graphs(toy(), always_preserve=torch.tensor([3, 3]))
    assert g.ndata[dgl.NID].tolist() == [3, 0, 1, 2]
    assert g.edata["w"].tolist() == [0, 1, 2, 3, 4]
    g = dgl.compact_graphs(typed(), always_preserve={"game": [3]})
    assert g.nodes["game"].data[dgl.NID].tolist() == [3, 0, 2]
    assert g.nodes["user"].data[dgl.NID].tolist() == [1, 0]
    assert edges_of(g, "plays") == [(1, 1), (1, 1), (0, 2)]


@given(typed_graphs())
def test_compact_against_dicts(g: dgl.Graph) -> None:
    compact = dgl.compact_graphs(g)
    old = {t: compact.nodes[t].data[dgl.NID].tolist() for t in g.ntypes}
    used: dict[str, list[int]] = {t: [] for t in g.ntypes}
    for etype in g.canonical_etypes:
        for side in (0, 1):
            used[etype[2 * side]] += [edge[side] for edge in edges_of(g, etype)]
        restored = [(old[etype[0]][u], old[etype[2]][v]) for u, v in edges_of(compact, etype)]
        assert restored == edges_of(g, etype)
    assert old == {t: list(dict.fromkeys(ids)) for t, ids in used.items()}
    for t in g.ntypes:
        assert compact.nodes[t].data["x"].tolist() == [i + 0.5 for i in old[t]]
    assert compact.idtype == g.idtype


def test_khop_of_types_answers_in_the_form_asked() -> None:
    part, new = dgl.khop_in_subgraph(typed(), {"user": [1]}, k=1)
    assert {k: v.tolist() for k, v in new.items()} == {"user": [1]}
    assert part.nodes["game"].data[dgl.NID].tolist() == [0]
    assert part.nodes["user"].data[dgl.NID].tolist() == [0, 1]
    assert edges_of(part, "plays") == [(0, 0), (0, 0)]
    with pytest.raises(dgl.DGLError, match="at least 0"):
        dgl.khop_in_subgraph(toy(), 1, k=-1)


@given(graphs(), st.integers(0, 3), st.data())
def test_khop_against_networkx(g: dgl.Graph, k: int, data: st.DataObject) -> None:
    if g.num_nodes() == 0:
        return
    # As many IDs as nodes, all of them 0 or 1, would be refused: they look like a mask.
    most = 2 if g.num_nodes() == 3 else 3
    seeds = data.draw(st.lists(st.integers(0, g.num_nodes() - 1), min_size=1, max_size=most))
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(g.num_nodes()))
    reference.add_edges_from(edges_of(g))
    for khop, way in (
        (dgl.khop_in_subgraph, reference.reverse()),
        (dgl.khop_out_subgraph, reference),
    ):
        near = set()
        for seed in seeds:
            near |= set(nx.single_source_shortest_path_length(way, seed, cutoff=k))
        part, new = khop(g, seeds, k)
        assert part.ndata[dgl.NID].tolist() == sorted(near)
        assert part.ndata[dgl.NID][new.long()].tolist() == seeds
        assert part.num_edges() == reference.subgraph(near).number_of_edges()


@pytest.mark.parametrize("nodes", [None, "rcmk", "custom"])
@pytest.mark.parametrize("edges", ["src", "dst", "custom"])
def test_reorder_keeps_the_graph(nodes: Any, edges: str) -> None:
    config = {"nodes_perm": [3, 1, 0, 2], "edges_perm": [4, 2, 0, 1, 3]}
    g = dgl.reorder_graph(toy(), nodes, edges, permute_config=config)
    old = g.ndata[dgl.NID].tolist()
    eids = g.edata[dgl.EID].tolist()
    assert sorted(old) == [0, 1, 2, 3]
    assert [(old[u], old[v]) for u, v in edges_of(g)] == [edges_of(toy())[i] for i in eids]
    assert g.ndata["x"].tolist() == old
    assert g.edata["w"].tolist() == eids
    if nodes == "custom":
        assert old == config["nodes_perm"]
    if edges == "custom":
        assert eids == config["edges_perm"]
    else:
        side = 0 if edges == "src" else 1
        assert [e[side] for e in edges_of(g)] == sorted(e[side] for e in edges_of(g))
