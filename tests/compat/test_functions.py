"""Functions of graphs against dense matrices, networkx and loops over edges."""

from __future__ import annotations

import networkx as nx
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as core
import gnnlab.compat as dgl
import gnnlab.function as fn
from gnnlab.compat.geometry import farthest_point_sampler, neighbor_matching
from tests.graph.samples import ENDS, edge_lists, edges_of, same, toy, typed
from tests.test_wrong_inputs import functions_of_graphs, refuse

GRAPHS = edge_lists().map(lambda e: core.graph((e[1], e[2]), num_nodes=e[0]))


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
    with pytest.raises(core.InvalidInput, match="plays"):
        dgl.metapath_reachable_graph(g, ["plays", "plays"])
    with pytest.raises(core.InvalidInput):
        dgl.metapath_reachable_graph(g, [])


def test_metapath_does_not_overflow() -> None:
    """Eight edges between each pair, 40 hops: 24⁴⁰ walks would be 0 as 64-bit integers."""
    ends = torch.cartesian_prod(torch.arange(3), torch.arange(3)).repeat(8, 1)
    g = core.graph((ends[:, 0], ends[:, 1]))
    found = dgl.metapath_reachable_graph(g, ["_E"] * 40)
    assert edges_of(found) == [(u, v) for u in range(3) for v in range(3)]


@given(GRAPHS, st.integers(0, 4))
def test_hops_are_powers_of_the_matrix(g: core.Graph, k: int) -> None:
    count = g.num_nodes()
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
    drawn = dgl.rand_graph(100, 900, torch.int32)
    core.seed(3)
    assert edges_of(first) == edges_of(dgl.rand_bipartite("u", "r", "v", 100, 50, 300))
    assert edges_of(drawn) == edges_of(dgl.rand_graph(100, 900)) and drawn.idtype is torch.int32
    assert not drawn.is_multigraph and drawn.num_nodes() == 100
    for wrong in (-1, 9), ("a", 9), (3, -1), (3, 1.5), (3, 10):
        with pytest.raises(core.InvalidInput):
            dgl.rand_graph(*wrong)
    counts = torch.zeros(20)
    for _ in range(500):
        src, dst = dgl.rand_bipartite("u", "r", "v", 4, 5, 4).edges()
        counts[src * 5 + dst] += 1
    assert counts.sum() == 2000 and (counts - 100).abs().max() < 5 * 9  # 5 standard deviations


@given(GRAPHS)
def test_shortest_dist_is_networkx(g: core.Graph) -> None:
    count = g.num_nodes()
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


@given(GRAPHS, st.booleans())
def test_line_graph_is_a_loop_over_pairs(g: core.Graph, backtracking: bool) -> None:
    pairs = edges_of(g)
    g.edata["w"] = torch.arange(len(pairs))
    expected = [
        (i, j)
        for i, (u, v) in enumerate(pairs)
        for j, (s, t) in enumerate(pairs)
        if v == s and (i != j if backtracking else u != t)
    ]
    made = dgl.line_graph(g, backtracking, shared=True)
    assert edges_of(made) == expected and made.num_nodes() == len(pairs)
    assert torch.equal(made.ndata["w"], g.edata["w"])
    if backtracking:
        count_nx = nx.line_graph(multigraph(g)).number_of_edges()
        assert made.num_edges() == count_nx - sum(u == v for u, v in pairs)


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
    with pytest.raises(core.InvalidInput):
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
    with pytest.raises(core.InvalidInput):
        dgl.block_to_graph(toy())


# --------------------------------------------------------------------- points
@pytest.mark.parametrize("dist", ["euclidean", "cosine"])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_knn_graph_is_a_sort_of_all_distances(dist: str, exclude_self: bool) -> None:
    sizes, k = [7, 3, 20], 4
    points = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected, first = [], 0
    for size in sizes:
        part = points[first : first + size]
        for i in range(size):
            if dist == "euclidean":
                away = [float((part[i] - part[j]).norm()) for j in range(size)]
            else:
                away = [-float(torch.cosine_similarity(part[i], part[j], 0)) for j in range(size)]
            order = sorted((j for j in range(size) if j != i), key=away.__getitem__)
            order = order[:k] if exclude_self else [i, *order][:k]
            expected += [(first + j, first + i) for j in order]
        first += size
    g = dgl.segmented_knn_graph(points, k, sizes, dist=dist, exclude_self=exclude_self)
    assert g.num_nodes() == 30 and edges_of(g) == expected


def test_knn_graph_of_several_sets() -> None:
    points = torch.rand(2, 5, 3, generator=torch.Generator().manual_seed(1))
    joined = dgl.knn_graph(points, 2)
    one, two = (dgl.knn_graph(part, 2) for part in points)
    assert edges_of(joined) == edges_of(one) + [(u + 5, v + 5) for u, v in edges_of(two)]
    twins = dgl.knn_graph(torch.zeros(3, 2), 1)
    assert edges_of(twins) == [(0, 0), (1, 1), (2, 2)]  # each its own nearest
    with pytest.raises(core.InvalidInput, match="segs"):
        dgl.segmented_knn_graph(torch.zeros(3, 2), 1, [2])
    with pytest.raises(core.InvalidInput, match="'cosine'"):
        dgl.knn_graph(torch.zeros(3, 2), 1, dist="manhattan")


# ----------------------------------------------------------------- traversals
@given(GRAPHS, st.booleans(), st.data())
def test_breadth_first_is_distance(g: core.Graph, reverse: bool, data: st.DataObject) -> None:
    count = g.num_nodes()
    if not count:
        return
    node = st.integers(0, count - 1)
    sources = data.draw(st.lists(node, min_size=1, max_size=3, unique=True))
    seen = multigraph(g).reverse() if reverse else multigraph(g)
    away = nx.multi_source_dijkstra_path_length(seen, set(sources), weight=lambda *_: 1)
    frontiers = dgl.bfs_nodes_generator(g, sources, reverse)
    assert [sorted(f.tolist()) for f in frontiers] == [
        sorted(v for v, d in away.items() if d == distance)
        for distance in range(max(away.values()) + 1)
    ]
    by_edge = dgl.bfs_edges_generator(g, sources, reverse)
    assert len(by_edge) == len(frontiers) - 1
    begin, end = (g.edges()[1], g.edges()[0]) if reverse else g.edges()
    for before, eids, after in zip(frontiers, by_edge, frontiers[1:], strict=False):
        assert end[eids].tolist() == after.tolist()  # one edge to each node
        assert set(begin[eids].tolist()) <= set(before.tolist())


@given(GRAPHS, st.booleans())
def test_topological_order_is_networkx(g: core.Graph, reverse: bool) -> None:
    forward = multigraph(g).reverse() if reverse else multigraph(g)
    if nx.is_directed_acyclic_graph(forward):
        expected = [sorted(layer) for layer in nx.topological_generations(forward)]
        assert [f.tolist() for f in dgl.topological_nodes_generator(g, reverse)] == expected
    else:
        with pytest.raises(core.InvalidInput, match="cycle"):
            dgl.topological_nodes_generator(g, reverse)


def test_messages_follow_an_order() -> None:
    """Sums over a tree, from the leaves up: the root counts all leaves."""
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
    g = fresh()
    dgl.prop_nodes_bfs(g, [0], *send, reverse=True)  # from the root: the leaves are still full
    assert g.ndata["h"].tolist() == [0, 3, 7, 0, 0, 0, 0]
    g = fresh()
    dgl.prop_edges_dfs(g, [3], *send)  # 3 → 1 → 0 alone
    assert g.ndata["h"].tolist() == [1, 1, 0, 1, 2, 3, 4]


# ------------------------------------------------------- batches and weighted matrices
def test_slice_batch_is_unbatch() -> None:
    parts = [toy(), core.graph(([0], [0])), toy()]
    parts[1].ndata["x"], parts[1].edata["w"] = torch.zeros(1), torch.zeros(1)
    parts[1].edata["kind"] = torch.zeros(1, 2).long()
    joined = core.batch(parts)
    for number, part in enumerate(parts):
        assert same(dgl.slice_batch(joined, number), part)
    last = dgl.slice_batch(joined, 2, store_ids=True)
    assert last.ndata[dgl.NID].tolist() == [5, 6, 7, 8]
    assert last.edata[dgl.EID].tolist() == [6, 7, 8, 9, 10]
    with pytest.raises(core.InvalidInput, match="0 to 2"):
        dgl.slice_batch(joined, 3)


def weighted(src_type: str, dst_type: str, rows: int, columns: int, seed: int) -> core.Graph:
    generator = torch.Generator().manual_seed(seed)
    ends = (torch.randint(n, (12,), generator=generator) for n in (rows, columns))
    g = core.heterograph(
        {(src_type, "r", dst_type): tuple(ends)}, {src_type: rows, dst_type: columns}
    )
    g.edata["w"] = torch.rand(12, generator=generator, dtype=torch.float64, requires_grad=False)
    return g


def matrix(g: core.Graph, weight: torch.Tensor) -> torch.Tensor:
    start, _, end = g.canonical_etypes[0]
    empty = torch.zeros(g.num_nodes(start), g.num_nodes(end), dtype=torch.float64)
    return empty.index_put(g.edges(), weight, True)


def test_products_and_sums_of_matrices_have_gradients() -> None:
    a, b, c = weighted("A", "B", 5, 4, 1), weighted("B", "C", 4, 6, 2), weighted("A", "B", 5, 4, 3)
    for made, dense_of, parts in (
        (lambda: dgl.adj_product_graph(a, b, "w", "ab"), lambda x, y: x @ y, (a, b)),
        (lambda: dgl.adj_sum_graph([a, c], "w"), lambda x, y: x + y, (a, c)),
    ):
        for part in parts:
            part.edata["w"] = part.edata["w"].detach().requires_grad_()
        weights = [part.edata["w"] for part in parts]
        g = made()
        expected = dense_of(*(matrix(p, w) for p, w in zip(parts, weights, strict=True)))
        torch.testing.assert_close(matrix(g, g.edata["w"]), expected)
        assert len(set(edges_of(g))) == g.num_edges()
        factor = torch.rand(expected.shape, dtype=torch.float64)
        found = torch.autograd.grad((matrix(g, g.edata["w"]) * factor).sum(), weights)
        torch.testing.assert_close(found, torch.autograd.grad((expected * factor).sum(), weights))
    assert dgl.adj_product_graph(a, b, "w", "ab").canonical_etypes == [("A", "ab", "C")]
    with pytest.raises(core.InvalidInput):
        dgl.adj_product_graph(a, c, "w")
    with pytest.raises(core.InvalidInput):
        dgl.adj_sum_graph([a, b], "w")


# ------------------------------------------------------------------- geometry
def test_farthest_points_are_a_loop() -> None:
    points = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(1))
    found = farthest_point_sampler(points, 6, start_idx=4)
    for rows, chosen in zip(points, found.tolist(), strict=True):
        expected = [4]
        while len(expected) < 6:
            away = [min(float((p - rows[i]).norm()) for i in expected) for p in rows]
            expected.append(away.index(max(away)))
        assert chosen == expected
    firsts = {int(farthest_point_sampler(points[:1], 1)) for _ in range(60)}
    assert len(firsts) > 10 and firsts <= set(range(20))
    with pytest.raises(core.InvalidInput, match="npoints"):
        farthest_point_sampler(points, 21)


@given(GRAPHS, st.booleans(), st.booleans())
def test_matching_is_maximal(g: core.Graph, heavy: bool, relabel: bool) -> None:
    weights = torch.rand(g.num_edges()) if heavy else None
    found = neighbor_matching(g, weights, relabel).tolist()
    pairs = {frozenset(pair) for pair in edges_of(g)}
    members: dict[int, list[int]] = {}
    for node, cluster in enumerate(found):
        members.setdefault(cluster, []).append(node)
    assert all(len(m) == 1 or frozenset(m) in pairs for m in members.values())
    alone = [m[0] for m in members.values() if len(m) == 1]
    assert not any(frozenset((u, v)) in pairs for u in alone for v in alone if u != v)
    if relabel:
        assert sorted(members) == list(range(len(members)))
    else:
        assert all(cluster == min(m) for cluster, m in members.items())


def test_matching_prefers_heavy_edges() -> None:
    ring = core.to_bidirected(core.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    heavy = [
        float({int(u), int(v)} in ({0, 1}, {2, 3})) for u, v in zip(*ring.edges(), strict=True)
    ]
    for _ in range(10):
        assert neighbor_matching(ring, torch.tensor(heavy)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("p", [1, 2])
def test_radius_graph_is_a_loop_over_pairs(p: int) -> None:
    points = torch.rand(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    away = {(i, j): float((points[i] - points[j]).norm(p)) for i in range(30) for j in range(30)}
    g, found = dgl.radius_graph(points, 0.3, p, get_distances=True)
    assert edges_of(g) == [(i, j) for (i, j), d in away.items() if d <= 0.3 and i != j]
    assert found.flatten().tolist() == pytest.approx([away[pair] for pair in edges_of(g)])
    loops = dgl.radius_graph(points, 0.3, p, self_loop=True)
    assert loops.num_edges() == g.num_edges() + 30


@given(GRAPHS, st.booleans())
def test_depth_first_is_networkx(g: core.Graph, reverse: bool) -> None:
    """networkx's labeled search says "nontree" and "reverse"; the first edge of a pair is taken."""
    count = g.num_nodes()
    if not count:
        return
    pairs = sorted(set(edges_of(g)))  # networkx gives no keys of parallel edges
    g = core.graph(pairs or ([], []), num_nodes=count)
    seen = nx.DiGraph()
    seen.add_nodes_from(range(count))
    seen.add_edges_from((v, u) if reverse else (u, v) for u, v in pairs)
    number = {"forward": 0, "reverse": 1, "nontree": 2}
    expected = []
    for u, v, label in nx.dfs_labeled_edges(seen, 0):
        if label != "reverse-depth_limit" and (u != v or label == "nontree"):
            edge = (v, u) if reverse else (u, v)
            expected.append((pairs.index(edge), number[label]))
    found, labels = dgl.dfs_labeled_edges_generator(g, 0, reverse, True, True)
    flat = [(int(e), int(k)) for e, k in zip(found, labels, strict=True)]
    assert flat == expected
    assert [int(e) for e in dgl.dfs_edges_generator(g, 0, reverse)] == [
        e for e, label in expected if label == 0
    ]


def test_searches_from_several_sources_go_side_by_side() -> None:
    g = core.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    assert [f.tolist() for f in dgl.dfs_edges_generator(g, [0, 2])] == [[0, 2], [1, 3], [2, 0]]


def test_graphs_of_old_constructors() -> None:
    pairs = dgl.bipartite([(0, 1), (2, 0)], "user", "buys", "item", card=(3, 4))
    assert pairs.num_nodes("item") == 4 and edges_of(pairs) == [(0, 1), (2, 0)]
    matrix = scipy.sparse.coo_matrix(([1, 1], ([0, 1], [2, 0])), shape=(2, 5))
    found = dgl.bipartite(matrix, index_dtype="int32")
    assert (found.num_nodes("_U"), found.num_nodes("_V")) == (2, 5) and found.idtype == torch.int32
    knows = core.heterograph({("user", "knows", "user"): ([0], [4])})
    knows.edata["w"] = torch.tensor([3])
    both = dgl.hetero_from_relations([pairs, knows], {"user": 6, "item": 4})
    assert both.num_nodes("user") == 6 and both.edges["knows"].data["w"].tolist() == [3]
    for wrong in (
        lambda: dgl.hetero_from_relations([knows, knows]),
        lambda: dgl.hetero_from_relations([knows], {"user": 2}),
        lambda: dgl.bipartite(([0], [1]), "a", "r", "a"),
        lambda: dgl.bipartite(([0], [1]), nodes=3),
    ):
        with pytest.raises(core.DGLError):
            wrong()


@pytest.mark.parametrize("wrong", [None, "g", torch.ones(2), core.DGLGraph, 3], ids=str)
def test_functions_of_graphs_refuse_anything_else(wrong: object) -> None:
    offered = {name: getattr(dgl.transforms, name) for name in dir(dgl.transforms)}
    functions = functions_of_graphs(offered)
    assert len(functions) > 45
    refuse(functions, wrong)
