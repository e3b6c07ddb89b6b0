"""Functions of graphs against dense matrices, networkx and loops over edges."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as core
import gnnlab.compat as dgl
from tests.graph.samples import ENDS, edge_lists, edges_of, same, toy, typed


def dense(g: core.Graph) -> torch.Tensor:
    """Number of edges from row to column."""
    src, dst = g.edges()
    matrix = torch.zeros(g.num_nodes(), g.num_nodes(), dtype=torch.float64)
    return matrix.index_put_((src.long(), dst.long()), torch.ones(len(src)).double(), True)


def multigraph(g: core.Graph) -> nx.MultiDiGraph:
    made = nx.MultiDiGraph()
    made.add_nodes_from(range(g.num_nodes()))
    for eid, (u, v) in enumerate(edges_of(g)):
        made.add_edge(u, v, key=eid)
    return made


def test_norm_by_dst_is_one_over_the_count() -> None:
    g = typed()
    for etype in g.canonical_etypes:
        ends = [v for _, v in edges_of(g, etype)]
        expected = torch.tensor([1 / ends.count(v) for v in ends])
        assert torch.equal(dgl.norm_by_dst(g, etype), expected)
    block = core.to_block(toy())
    assert dgl.norm_by_dst(block).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_metapath_reachable_graph_follows_paths() -> None:
    g = typed()
    path = ["follows", "plays", "made by", "plays"]
    reached = [{u} for u in range(3)]
    for etype in path:
        edges = edges_of(g, etype)
        reached = [{v for u, v in edges if u in ends} for ends in reached]
    found = dgl.metapath_reachable_graph(g, path)
    assert found.canonical_etypes == [("user", "_E", "game")]
    assert edges_of(found) == [(u, v) for u, ends in enumerate(reached) for v in sorted(ends)]
    assert found.nodes["game"].data["price"] is g.nodes["game"].data["price"]
    again = dgl.metapath_reachable_graph(g, ["plays", "made by"])
    assert again.canonical_etypes == [("user", "_E", "user")] and again.num_nodes() == 3
    with pytest.raises(core.InvalidInput, match="another node type"):
        dgl.metapath_reachable_graph(g, ["plays", "plays"])
    with pytest.raises(core.InvalidInput, match="empty"):
        dgl.metapath_reachable_graph(g, [])


def test_metapath_does_not_overflow() -> None:
    """Eight edges between each pair, 40 hops: 24⁴⁰ walks would be 0 as 64-bit integers."""
    ends = torch.cartesian_prod(torch.arange(3), torch.arange(3)).repeat(8, 1)
    g = core.graph((ends[:, 0], ends[:, 1]))
    found = dgl.metapath_reachable_graph(g, ["_E"] * 40)
    assert edges_of(found) == [(u, v) for u in range(3) for v in range(3)]


@given(edge_lists(), st.integers(0, 4))
def test_hops_are_powers_of_the_matrix(edges: tuple[int, list[int], list[int]], k: int) -> None:
    count, src, dst = edges
    g = core.graph((src, dst), num_nodes=count)
    g.ndata["x"] = torch.arange(count)
    expected = torch.linalg.matrix_power(dense(g), k) if count else torch.zeros(0, 0)
    assert torch.equal(dgl.khop_adj(g, k).double(), expected.double())
    made = dgl.khop_graph(g, k)
    assert torch.equal(dense(made), expected.double())
    assert torch.equal(made.ndata["x"], g.ndata["x"])
    assert "x" not in dgl.khop_graph(g, k, copy_ndata=False).ndata


@pytest.mark.parametrize("edges", [0, 5, 11, 12])
def test_rand_bipartite_has_distinct_edges(edges: int) -> None:
    g = dgl.rand_bipartite("u", "r", "v", 3, 4, edges, torch.int32)
    assert g.canonical_etypes == [("u", "r", "v")] and g.idtype is torch.int32
    assert (g.num_nodes("u"), g.num_nodes("v")) == (3, 4)
    assert len(set(edges_of(g))) == g.num_edges() == edges
    with pytest.raises(core.InvalidInput, match="12 pairs"):
        dgl.rand_bipartite("u", "r", "v", 3, 4, 13)


def test_rand_bipartite_is_seeded_and_uniform() -> None:
    core.seed(3)
    first = dgl.rand_bipartite("u", "r", "v", 100, 50, 300)
    core.seed(3)
    assert edges_of(first) == edges_of(dgl.rand_bipartite("u", "r", "v", 100, 50, 300))
    counts = torch.zeros(20)
    for _ in range(2000):
        src, dst = dgl.rand_bipartite("u", "r", "v", 4, 5, 4).edges()
        counts[src * 5 + dst] += 1
    assert counts.sum() == 8000 and (counts - 400).abs().max() < 5 * 18  # 5 standard deviations


@given(edge_lists())
def test_shortest_dist_is_networkx(edges: tuple[int, list[int], list[int]]) -> None:
    count, src, dst = edges
    g = core.graph((src, dst), num_nodes=count)
    lengths = dict(nx.all_pairs_shortest_path_length(multigraph(g)))
    dist, paths = dgl.shortest_dist(g, return_paths=True)
    assert dist.shape == (count, count)
    pairs = edges_of(g)
    for u in range(count):
        assert torch.equal(dgl.shortest_dist(g, root=u), dist[u])
        for v in range(count):
            assert int(dist[u, v]) == lengths[u].get(v, -1)
            here = u
            steps = [e for e in paths[u, v].tolist() if e >= 0]
            for eid in steps:
                assert pairs[eid][0] == here
                here = pairs[eid][1]
            assert len(steps) == max(int(dist[u, v]), 0) and here == (v if steps else u)


@given(edge_lists(), st.booleans())
def test_line_graph_is_a_loop_over_pairs(
    edges: tuple[int, list[int], list[int]], backtracking: bool
) -> None:
    count, src, dst = edges
    g = core.graph((src, dst), num_nodes=count)
    g.edata["w"] = torch.arange(len(src))
    pairs = edges_of(g)
    expected = [
        (i, j)
        for i, (u, v) in enumerate(pairs)
        for j, (s, t) in enumerate(pairs)
        if v == s and (backtracking or u != t)
    ]
    made = dgl.line_graph(g, backtracking, shared=True)
    assert edges_of(made) == expected and made.num_nodes() == len(pairs)
    assert torch.equal(made.ndata["w"], g.edata["w"])
    if backtracking:
        count_nx = nx.line_graph(multigraph(g)).number_of_edges()
        assert made.num_edges() == count_nx


def test_merge_writes_later_graphs_over_earlier() -> None:
    first, second = toy(), core.graph(([5, 0], [1, 0]))
    second.ndata["x"] = torch.arange(6.0) + 100
    second.edata["w"] = torch.tensor([7.0, 8.0])
    second.ndata["y"] = torch.ones(6, 2)
    made = dgl.merge([first, second])
    assert edges_of(made) == [*zip(*ENDS, strict=True), (5, 1), (0, 0)]
    assert made.ndata["x"].tolist() == [100, 101, 102, 103, 104, 105]
    assert made.edata["w"].tolist() == [0, 1, 2, 3, 4, 7, 8]
    assert made.edata["kind"][5:].tolist() == [[0, 0], [0, 0]]
    turned = dgl.merge([second, first])
    assert turned.ndata["x"].tolist() == [0, 1, 2, 3, 104, 105]
    assert same(dgl.merge([toy()]), toy())
    both = dgl.merge([typed(), typed()])
    for etype in both.canonical_etypes:
        assert edges_of(both, etype) == edges_of(typed(), etype) * 2
    assert both.edges["plays"].data["w"].tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(core.InvalidInput, match="feature 'x'"):
        second.ndata["x"] = torch.ones(6, 2)
        dgl.merge([first, second])
    with pytest.raises(core.InvalidInput, match="empty list"):
        dgl.merge([])


def test_create_block_and_back() -> None:
    block = dgl.create_block(([0, 1, 2], [1, 1, 0]), 4, 3, idtype=torch.int32)
    assert block.is_block and block.idtype is torch.int32
    assert (block.num_src_nodes(), block.num_dst_nodes()) == (4, 3)
    assert edges_of(block) == [(0, 1), (1, 1), (2, 0)]
    data = {("A", "ab", "B"): ([0, 1], [3, 0]), ("B", "ba", "A"): ([1, 2, 3], [3, 2, 1])}
    block = dgl.create_block(data, {"B": 6}, {"A": 5, "C": 2})
    assert (block.srctypes, block.dsttypes) == (["A", "B"], ["A", "B", "C"])
    assert [block.num_src_nodes(t) for t in "AB"] == [2, 6]
    assert [block.num_dst_nodes(t) for t in "ABC"] == [5, 4, 2]
    block.srcnodes["A"].data["x"] = torch.arange(2)
    block.dstnodes["A"].data["x"] = torch.arange(5)
    block.edges["ab"].data["w"] = torch.arange(2)
    g = dgl.block_to_graph(block)
    assert not g.is_block
    assert g.canonical_etypes == [("A_src", "ab", "B_dst"), ("B_src", "ba", "A_dst")]
    assert edges_of(g, "ba") == [(1, 3), (2, 2), (3, 1)]
    assert g.nodes["A_dst"].data["x"].tolist() == [0, 1, 2, 3, 4]
    assert g.edges["ab"].data["w"].tolist() == [0, 1]
    with pytest.raises(core.OutOfRange, match="num_src_nodes is 2"):
        dgl.create_block(([0, 1, 2], [1, 1, 0]), num_src_nodes=2)
    with pytest.raises(core.InvalidInput, match="takes a block"):
        dgl.block_to_graph(toy())


def test_a_block_from_edges_passes_messages() -> None:
    import gnnlab.function as fn

    block = dgl.create_block(([0, 1, 2], [1, 1, 0]))
    block.srcdata["h"] = torch.tensor([1.0, 2.0, 4.0])
    block.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert block.dstdata["h"].tolist() == [4, 3]


# ------------------------------------------------------------------ positions
def undirected(n: int = 20) -> core.Graph:
    return core.to_bidirected(core.from_networkx(nx.gnp_random_graph(n, 0.3, seed=2)))


def test_lambda_max_is_networkx() -> None:
    g = undirected()
    simple = nx.Graph(g.to_networkx())
    matrix = torch.from_numpy(nx.normalized_laplacian_matrix(simple, weight=None).toarray())
    values = torch.linalg.eigvalsh(matrix)
    small = core.to_bidirected(core.graph(([0], [1])))
    assert dgl.laplacian_lambda_max(core.batch([g, small])) == pytest.approx(
        [float(values[-1]), 2.0]
    )


# --------------------------------------------------------------------- points
@pytest.mark.parametrize("dist", ["euclidean", "cosine"])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_knn_graph_is_a_sort_of_all_distances(dist: str, exclude_self: bool) -> None:
    k = 4
    points = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = []
    for i in range(20):
        if dist == "euclidean":
            away = [float((points[i] - other).norm()) for other in points]
        else:
            away = [-float(torch.cosine_similarity(points[i], other, 0)) for other in points]
        order = sorted((j for j in range(20) if j != i), key=away.__getitem__)
        expected += [(j, i) for j in (order if exclude_self else [i, *order])[:k]]
    g = dgl.knn_graph(points, k, dist=dist, exclude_self=exclude_self)
    assert g.num_nodes() == 20 and edges_of(g) == expected


def test_knn_graph_of_several_sets() -> None:
    points = torch.rand(2, 5, 3, generator=torch.Generator().manual_seed(1))
    joined = dgl.knn_graph(points, 2)
    one, two = (dgl.knn_graph(part, 2) for part in points)
    assert edges_of(joined) == edges_of(one) + [(u + 5, v + 5) for u, v in edges_of(two)]
    twins = dgl.knn_graph(torch.zeros(3, 2), 1)
    assert edges_of(twins) == [(0, 0), (1, 1), (2, 2)]  # each its own nearest
    assert dgl.knn_graph(points, 9).num_edges() == 2 * 5 * 5  # at most all
    assert dgl.knn_graph(torch.zeros(0, 2), 1).num_nodes() == 0
    with pytest.raises(core.InvalidInput, match="'cosine'"):
        dgl.knn_graph(torch.zeros(3, 2), 1, dist="manhattan")


# ----------------------------------------------------------------- traversals
@given(edge_lists(), st.booleans(), st.data())
def test_breadth_first_is_distance(
    edges: tuple[int, list[int], list[int]], reverse: bool, data: st.DataObject
) -> None:
    count, src, dst = edges
    if not count:
        return
    g = core.graph((src, dst), num_nodes=count)
    node = st.integers(0, count - 1)
    sources = data.draw(st.lists(node, min_size=1, max_size=3, unique=True))
    seen = multigraph(g).reverse() if reverse else multigraph(g)
    away = nx.multi_source_dijkstra_path_length(seen, set(sources), weight=lambda *_: 1)
    frontiers = dgl.bfs_nodes_generator(g, sources, reverse)
    assert [sorted(f.tolist()) for f in frontiers] == [
        sorted(v for v, d in away.items() if d == distance)
        for distance in range(max(away.values()) + 1)
    ]


@given(edge_lists(), st.booleans())
def test_topological_order_is_networkx(
    edges: tuple[int, list[int], list[int]], reverse: bool
) -> None:
    count, src, dst = edges
    g = core.graph((src, dst), num_nodes=count)
    forward = multigraph(g).reverse() if reverse else multigraph(g)
    if nx.is_directed_acyclic_graph(forward):
        expected = [sorted(layer) for layer in nx.topological_generations(forward)]
        assert [f.tolist() for f in dgl.topological_nodes_generator(g, reverse)] == expected
    else:
        with pytest.raises(core.InvalidInput, match="cycle"):
            dgl.topological_nodes_generator(g, reverse)


def test_messages_follow_an_order() -> None:
    """Sums over a tree, from the leaves up: the root counts all leaves."""
    import gnnlab.function as fn

    tree = core.graph(([3, 4, 5, 6, 1, 2], [1, 1, 2, 2, 0, 0]))
    send = fn.copy_u("h", "m"), fn.sum("m", "h")

    def fresh() -> core.Graph:
        g = tree.local_var()
        g.ndata["h"] = torch.tensor([0.0, 0, 0, 1, 2, 3, 4])
        return g

    by_level = [[1, 2], [0]]
    g = fresh()
    dgl.prop_nodes(g, by_level, *send)
    assert g.ndata["h"].tolist() == [10, 3, 7, 1, 2, 3, 4]
    g = fresh()
    dgl.prop_edges(g, [[0, 1, 2, 3], [4, 5]], *send)
    assert g.ndata["h"].tolist() == [10, 3, 7, 1, 2, 3, 4]
    g = fresh()
    dgl.prop_nodes(g, by_level, *send, lambda nodes: {"h": nodes.data["h"] + 1})
    assert g.ndata["h"][:3].tolist() == [13, 4, 8]
    g = fresh()  # the first frontier is that of the leaves, to which nothing is sent
    dgl.prop_nodes_topo(g, *send, apply_node_func=lambda nodes: {"h": nodes.data["h"] + 1})
    assert g.ndata["h"].tolist() == [7, 3, 3, 1, 1, 1, 1]
