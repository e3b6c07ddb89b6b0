"""DGL's sampling functions and samplers of subgraphs, against loops and published properties."""

from __future__ import annotations

import ast
import os
import re
import threading
import warnings
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
import torch

import gnnlab as core
import gnnlab.compat as dgl
from gnnlab.dataloading.affinity import choose_cores, compute_on
from gnnlab.dataloading.sampler import is_pure
from tests.graph.samples import edges_of, toy, typed
from tests.helpers import ROOT


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs/dgl_layers.md").read_text("utf8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 10
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text("utf8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, name


@pytest.fixture
def graph() -> core.Graph:
    g = core.rand_graph(120, 1500)
    g.ndata["x"] = torch.rand(120, 2)
    g.edata["w"] = torch.rand(1500) + 0.01
    g.edata["w"][::9] = 0
    return g


def grouped(g: core.Graph, inward: bool = True, etype: Any = None) -> dict[int, list[int]]:
    """Node → IDs of its in-edges, or out-edges."""
    found: dict[int, list[int]] = {}
    for eid, (u, v) in enumerate(edges_of(g, etype)):
        found.setdefault(v if inward else u, []).append(eid)
    return found


# ------------------------------------------------------------------ functions
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("edge_dir", ["in", "out"])
def test_select_topk_is_a_sort(graph: core.Graph, edge_dir: str, ascending: bool) -> None:
    weight = graph.edata["w"].tolist()
    around = grouped(graph, edge_dir == "in")
    nodes = [3, 5, 77]
    expected = [
        eid
        for node in nodes
        for eid in sorted(around[node], key=lambda e: (weight[e] * (1 if ascending else -1), e))[:4]
    ]
    found = dgl.sampling.select_topk(graph, 4, "w", nodes, edge_dir, ascending)
    assert found.edata[dgl.EID].tolist() == expected
    assert edges_of(found) == [edges_of(graph)[eid] for eid in expected]
    assert torch.equal(found.edata["w"], graph.edata["w"][expected])
    everywhere = dgl.sampling.select_topk(graph, -1, "w", edge_dir=edge_dir)
    assert sorted(everywhere.edata[dgl.EID].tolist()) == list(range(1500))


def test_select_topk_on_types() -> None:
    g = typed()
    for etype in g.canonical_etypes:
        g.edges[etype].data["w"] = torch.arange(g.num_edges(etype)).float()
    k = dict.fromkeys(g.canonical_etypes, 1)
    found = dgl.sampling.select_topk(g, k, "w", {"game": [0, 2], "user": [1]})
    assert edges_of(found, "plays") == [(0, 0), (1, 2)]
    assert found.edges["plays"].data[dgl.EID].tolist() == [1, 2]
    assert found.edges["follows"].data[dgl.EID].tolist() == [1]
    none = dgl.sampling.select_topk(g, {**k, ("user", "plays", "game"): 0}, "w", {"game": [0]})
    assert none.num_edges("plays") == 0


OFFSETS = [0, 400, 400, 900, 1500]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("edge_dir", ["in", "out"])
def test_sample_etype_neighbors_counts(
    graph: core.Graph, edge_dir: str, prob: str | None, replace: bool
) -> None:
    """Every type gets its own fanout at every node; no edge twice, none of weight 0."""
    fanouts = [2, 3, -1, 1]
    around = grouped(graph, edge_dir == "in")
    left_out = list(range(0, 1500, 5))
    frontier = dgl.sampling.sample_etype_neighbors(
        graph, range(40), OFFSETS, torch.tensor(fanouts), edge_dir, prob, left_out, replace
    )
    ids = frontier.edata[dgl.EID].tolist()
    assert edges_of(frontier) == [edges_of(graph)[eid] for eid in ids]
    taken = grouped(frontier, edge_dir == "in")
    for node in range(40):
        mine = [ids[place] for place in taken.get(node, [])]
        assert mine == sorted(mine, key=lambda e: sum(e >= first for first in OFFSETS))
        for kind, (start, stop) in enumerate(pairwise(OFFSETS)):
            can = {e for e in around[node] if start <= e < stop and e % 5}
            if prob:
                can = {e for e in can if graph.edata["w"][e] > 0}
            of_kind = [e for e in mine if start <= e < stop]
            assert set(of_kind) <= can
            quota = len(can) if fanouts[kind] < 0 else fanouts[kind]
            if not replace or fanouts[kind] < 0:
                assert len(of_kind) == len(set(of_kind)) == min(quota, len(can))
            else:
                assert len(of_kind) == (quota if can else 0)


@pytest.mark.parametrize("replace", [False, True])
def test_sample_etype_neighbors_is_fair(replace: bool) -> None:
    """One draw of four edges with the weights 1, 2, 3, 4: within five standard deviations."""
    g = core.graph(([0, 1, 2, 3, 4], [5, 5, 5, 5, 5]))
    g.edata["w"] = torch.tensor([1.0, 2, 3, 4, 9])
    counts = torch.zeros(5)
    core.seed(1)
    for _ in range(200):
        found = dgl.sampling.sample_etype_neighbors(g, [5], [0, 4, 5], [1, 1], "in", "w", replace)
        counts[found.edata[dgl.EID]] += 1
    share = torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert counts[4] == 200
    assert ((counts[:4] - 200 * share).abs() < 5 * (200 * share * (1 - share)).sqrt()).all()


def test_pack_traces_is_a_loop() -> None:
    g = core.graph(([0, 1, 2, 4], [1, 2, 3, 4]))
    traces, types = core.sampling.random_walk(g, [0, 3, 4, 2], length=4)
    nodes, kinds, lengths, offsets = dgl.sampling.pack_traces(traces, types)
    walks = [[node for node in walk if node >= 0] for walk in traces.tolist()]
    assert lengths.tolist() == [len(walk) for walk in walks]
    assert nodes.tolist() == [node for walk in walks for node in walk]
    assert kinds.tolist() == [0] * len(nodes)
    assert [nodes[o : o + n].tolist() for o, n in zip(offsets, lengths, strict=True)] == walks


@pytest.mark.parametrize("prob", [None, "w"])
def test_node2vec_steps_have_their_probability(prob: str | None) -> None:
    """All walks of two steps from one node of a small graph: counts within five deviations."""
    p, q, count = 0.5, 3.0, 20_000
    nodes = nx.Graph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4)])
    g = core.from_networkx(nodes.to_directed())
    g.edata["w"] = torch.arange(g.num_edges()) + 1.0
    pairs = edges_of(g)
    weight = dict(zip(pairs, g.edata["w"].tolist(), strict=True))

    def step(before: int | None, here: int) -> dict[int, float]:
        bias = {}
        for x in sorted(nodes[here]):
            near = 1.0 if before is None or x in nodes[before] else 1 / q
            near = 1 / p if x == before else near
            bias[x] = near * (weight[here, x] if prob else 1)
        return {x: value / sum(bias.values()) for x, value in bias.items()}

    expected = {
        (0, x, y): first * second
        for x, first in step(None, 0).items()
        for y, second in step(0, x).items()
    }
    core.seed(2)
    traces, eids = dgl.sampling.node2vec_random_walk(g, [0] * count, p, q, 2, prob, True)
    for walk, edges in zip(traces[:100].tolist(), eids[:100].tolist(), strict=True):
        assert [pairs[e] for e in edges] == list(pairwise(walk))
    counts = dict.fromkeys(expected, 0)
    for walk in traces.tolist():
        counts[tuple(walk)] += 1
    for walk, share in expected.items():
        assert abs(counts[walk] - count * share) < 5 * (count * share * (1 - share)) ** 0.5


def test_node2vec_stops_at_dead_ends() -> None:
    g = core.graph(([0, 1], [1, 2]), num_nodes=4)
    traces = dgl.sampling.node2vec_random_walk(g, [0, 2, 3], 1, 1, 3)
    assert traces.tolist() == [[0, 1, 2, -1], [2, -1, -1, -1], [3, -1, -1, -1]]
    assert dgl.sampling.node2vec_random_walk(g, [1], 1, 1, 0).tolist() == [[1]]
    with pytest.raises(core.InvalidInput, match="above 0"):
        dgl.sampling.node2vec_random_walk(g, [1], 0, 1, 1)


# --------------------------------------------------------------------- ShaDow
def induced(g: core.Graph, nodes: list[int]) -> list[tuple[int, int]]:
    inside = set(nodes)
    return [(u, v) for u, v in edges_of(g) if u in inside and v in inside]


def back(part: core.Graph) -> list[tuple[int, int]]:
    ids = part.ndata[dgl.NID]
    return [(int(ids[u]), int(ids[v])) for u, v in edges_of(part)]


def test_shadow_with_all_neighbors_is_a_breadth_first_search(graph: core.Graph) -> None:
    sparse = core.remove_edges(graph, range(200, 1500))
    seen = nx.MultiDiGraph(edges_of(sparse))
    seen.add_nodes_from(range(120))
    sampler = dgl.dataloading.ShaDowKHopSampler([-1, -1])
    nodes, seeds, part = sampler.sample(sparse, [7, 50])
    around = nx.multi_source_dijkstra_path_length(seen.reverse(), {7, 50}, 2, lambda *_: 1)
    assert seeds.tolist() == [7, 50] == nodes[:2].tolist()
    assert sorted(nodes.tolist()) == sorted(around)
    assert torch.equal(part.ndata[dgl.NID], nodes)
    assert sorted(back(part)) == sorted(induced(sparse, nodes.tolist()))


def test_shadow_takes_fanouts_in_order_and_leaves_edges_out(graph: core.Graph) -> None:
    """The last fanout is that of the seeds; blocks of a NeighborSampler find the same nodes."""
    sampler = dgl.dataloading.ShaDowKHopSampler([2, 4], prob="w")
    core.seed(4)
    nodes, _, part = sampler.sample(graph, [1, 2, 3])
    core.seed(4)
    expected = core.dataloading.NeighborSampler([2, 4], prob="w").sample(graph, [1, 2, 3])[0]
    assert torch.equal(nodes, expected)
    left_out = torch.arange(0, 1500, 2)
    nodes, _, part = sampler.sample(graph, [1, 2, 3], left_out)
    pairs = edges_of(graph)
    ids = part.edata[dgl.EID].tolist()
    inside = set(nodes.tolist())
    assert ids == [e for e, (u, v) in enumerate(pairs) if e % 2 and u in inside and v in inside]
    assert back(part) == [pairs[e] for e in ids]


def test_shadow_on_types_and_in_loaders() -> None:
    g = typed()
    sampler = dgl.dataloading.ShaDowKHopSampler([-1], prefetch_node_feats={"user": ["x"]})
    nodes, seeds, part = sampler.sample(g, {"game": [2, 0]})
    assert {t: ids.tolist() for t, ids in nodes.items()} == {"game": [2, 0], "user": [1, 0]}
    assert seeds.keys() == {"game"}
    assert part.edges["plays"].data[dgl.EID].tolist() == [0, 1, 2]
    assert edges_of(part, "plays") == [(1, 1), (1, 1), (0, 0)]
    loader = core.dataloading.DataLoader(g, {"game": [2, 0, 1]}, sampler, batch_size=2)
    for nodes, _, part in loader:
        assert torch.equal(part.nodes["user"].data["x"], nodes["user"].float())
    with pytest.raises(dgl.DGLError, match="'user'"):
        next(iter(core.dataloading.DataLoader(toy(), [0], sampler)))
    sampler = dgl.dataloading.ShaDowKHopSampler([-1])
    pairs = core.dataloading.as_edge_prediction_sampler(sampler, exclude="self")
    g = toy()
    loader = core.dataloading.DataLoader(g, [0, 4], pairs, batch_size=2)
    for _, pair_graph, part in loader:
        assert pair_graph.edata[dgl.EID].tolist() == [0, 4]
        assert not {0, 4} & set(part.edata[dgl.EID].tolist())


# ---------------------------------------------------------- clusters and SAINT
def test_clusters_partition_the_graph(graph: core.Graph, tmp_path: Any) -> None:
    path = tmp_path / "parts.pkl"
    sampler = dgl.dataloading.ClusterGCNSampler(graph, 6, path, prefetch_ndata=["x"])
    seen = torch.cat([sampler.sample(graph, torch.tensor([i])).ndata[dgl.NID] for i in range(6)])
    assert sorted(seen.tolist()) == list(range(120))
    loader = core.dataloading.DataLoader(graph, torch.arange(6), sampler, batch_size=2)
    for part in loader:
        nodes = part.ndata[dgl.NID].tolist()
        assert nodes == sorted(nodes) and back(part) == induced(graph, nodes)
        assert torch.equal(part.ndata["x"], graph.ndata["x"][nodes])
    again = dgl.dataloading.ClusterGCNSampler(graph, 6, path)
    assert torch.equal(again.part_of["_N"], sampler.part_of["_N"])
    with pytest.warns(UserWarning, match="parts.pkl"):  # not the stale parts of six
        assert dgl.dataloading.ClusterGCNSampler(graph, 3, path).part_of["_N"].max() == 2
    path.write_bytes(b"\x80\x02K\x01.")  # a pickle
    with pytest.warns(UserWarning, match="parts.pkl"):
        dgl.dataloading.ClusterGCNSampler(graph, 3, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dgl.dataloading.ClusterGCNSampler(graph, 3, path)


@pytest.mark.parametrize("mode", ["node", "edge", "walk"])
def test_saint_draws_as_often_as_it_should(graph: core.Graph, mode: str) -> None:
    """How often a node is in the subgraph, from the exact probability of one draw."""
    degree = graph.in_degrees().double()
    src, dst = graph.edges()
    budget, rounds = (6, 3) if mode == "walk" else 20, 500
    if mode == "node":
        expected = 1 - (1 - degree / degree.sum()) ** 20
    elif mode == "edge":
        inverse = 1 / degree.clamp(min=1)
        weight = inverse[src] + inverse[dst]
        touched = torch.zeros(120).double().index_add_(0, src, weight)
        loops = src == dst
        touched.index_add_(0, dst[~loops], weight[~loops])
        expected = 1 - (1 - touched / weight.sum()) ** 20
    else:  # the chance that a walk of three steps from a random start avoids a node
        step = torch.zeros(120, 120).double().index_put_((src, dst), torch.ones(1).double(), True)
        step /= step.sum(1, keepdim=True)
        expected = torch.empty(120).double()
        for node in range(120):
            alive = torch.full((120,), 1 / 120).double()
            alive[node] = 0
            for _ in range(3):
                alive = alive @ step
                alive[node] = 0
            expected[node] = 1 - alive.sum() ** 6
    sampler = dgl.dataloading.SAINTSampler(mode, budget)
    core.seed(5)
    counts = torch.zeros(120)
    for i in range(rounds):
        part = sampler.sample(graph, i)
        nodes = part.ndata[dgl.NID]
        counts[nodes] += 1
        if not i:
            assert nodes.tolist() == sorted(nodes.tolist())
            assert back(part) == induced(graph, nodes.tolist())
    spread = (rounds * expected * (1 - expected)).sqrt()
    assert ((counts - rounds * expected).abs() <= 5 * spread + 1e-9).all()


def test_saint_batches_are_seeded_and_carry_features(graph: core.Graph) -> None:
    sampler = dgl.dataloading.SAINTSampler("walk", (5, 2), prefetch_ndata=["x"])

    def batches(**options: Any) -> list[Any]:
        loader = core.dataloading.DataLoader(
            graph, torch.arange(6), sampler, batch_size=1, seed=1, **options
        )
        return [(p.ndata[dgl.NID].tolist(), p.ndata["x"].tolist()) for p in loader]

    first = batches()
    assert first == batches(num_workers=2) == batches(prefetch=2)
    assert len({str(nodes) for nodes, _ in first}) > 1
    for wrong in (("node", (1, 2)), ("walk", 3), ("edge", 0)):
        with pytest.raises(core.InvalidInput, match="budget"):
            dgl.dataloading.SAINTSampler(*wrong)
    with pytest.raises(core.InvalidInput, match="'walk'"):
        dgl.dataloading.SAINTSampler("nodes", 3)


# ----------------------------------------------------------- negative samplers
def test_negative_samplers_may_be_derived_from(graph: core.Graph) -> None:
    from gnnlab.compat.dataloading import negative_sampler

    class Next(negative_sampler._BaseNegativeSampler):
        def _generate(self, g: Any, eids: Any, canonical_etype: Any) -> Any:
            src, dst = g.find_edges(eids, canonical_etype)
            return src, (dst + 1) % g.num_nodes(canonical_etype[2])

    class Twice(negative_sampler.Uniform):
        def _generate(self, g: Any, eids: Any, canonical_etype: Any) -> Any:
            src, dst = super()._generate(g, eids, canonical_etype)
            return src.repeat(2), dst.repeat(2)

    src, _ = Next()(graph, torch.tensor([3, 1]))
    assert src.tolist() == [edges_of(graph)[e][0] for e in (3, 1)]
    pairs = Next()(typed(), {"plays": torch.tensor([0])})
    assert {e: [x.tolist() for x in ends] for e, ends in pairs.items()} == {
        ("user", "plays", "game"): [[0], [1]]
    }
    assert len(Twice(3)(graph, torch.tensor([3, 1]))[0]) == 12
    sampler = core.dataloading.as_edge_prediction_sampler(
        core.dataloading.NeighborSampler([2]), negative_sampler=Twice(3)
    )
    assert not sampler.pure
    assert sampler.sample(graph, torch.tensor([3, 1]))[2].num_edges() == 12
    core.seed(1)
    ours = negative_sampler.Uniform(3)(graph, torch.tensor([3, 1]))
    core.seed(1)
    theirs = core.dataloading.negative_sampler.Uniform(3)(graph, torch.tensor([3, 1]))
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert is_pure(negative_sampler.Uniform(3)) and negative_sampler.DegreePower
    with pytest.raises(NotImplementedError, match="_generate"):
        negative_sampler._BaseNegativeSampler()(graph, [1])


# -------------------------------------------------------------------- affinity
class Where(core.dataloading.Sampler):
    """A mini-batch is the cores that the sampling process may use."""

    def sample(self, g: core.Graph, indices: Any) -> Any:
        return sorted(os.sched_getaffinity(0)), indices


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_affinity_moves_workers_and_comes_back(graph: core.Graph) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two cores")
    threads = torch.get_num_threads()
    loader = core.dataloading.DataLoader(graph, range(4), Where(), batch_size=1, num_workers=1)
    with loader.enable_cpu_affinity(verbose=False):
        assert torch.get_num_threads() == len(allowed) - 1
        assert sorted(os.sched_getaffinity(0)) == allowed[1:]
        assert [cores for cores, _ in loader] == [allowed[:1]] * 4
    assert torch.get_num_threads() == threads and sorted(os.sched_getaffinity(0)) == allowed
    assert [cores for cores, _ in loader] == [allowed] * 4
    with loader.enable_cpu_affinity(allowed[1:2], allowed[:1], verbose=False):
        assert [cores for cores, _ in loader] == [allowed[1:2]] * 4
    with pytest.raises(core.InvalidInput, match="num_workers=1"):
        single = core.dataloading.DataLoader(graph, range(4), Where())
        single.enable_cpu_affinity().__enter__()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_affinity_while_threads_begin_and_end() -> None:
    allowed, ended = sorted(os.sched_getaffinity(0)), threading.Event()

    def begin_and_end() -> None:
        while not ended.is_set():
            short = [threading.Thread(target=ended.is_set) for _ in range(8)]
            for thread in short:
                thread.start()
            for thread in short:
                thread.join()

    restless = threading.Thread(target=begin_and_end)
    restless.start()
    try:
        for _ in range(200):
            with compute_on(allowed[:1]):
                assert sorted(os.sched_getaffinity(0)) == allowed[:1]
    finally:
        ended.set()
        restless.join()
    assert sorted(os.sched_getaffinity(0)) == allowed


def test_affinity_chooses_cores() -> None:
    assert choose_cores(1, range(3), None, [0]) == ([1], [0])
    for arguments in (
        (3, range(3), None, None),  # fewer cores than workers and one more
        (1, range(3), [0, 1], None),
        (1, range(3), [7], None),
        (1, range(3), [0], []),
    ):
        with pytest.raises(core.InvalidInput):
            choose_cores(*arguments)


def test_nodes_given_twice_lose_no_edge() -> None:
    g = dgl.graph(([0, 1, 2, 3], [4, 4, 4, 4]))
    g.edata["w"] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert dgl.sampling.select_topk(g, 2, "w", [4, 4]).edata[dgl.EID].tolist() == [3, 2]
    found = dgl.sampling.sample_etype_neighbors(g, [4, 4], [0, 2, 4], [-1, 1]).edata[dgl.EID]
    assert torch.bincount(found).tolist() in ([2, 2, 2], [2, 2, 0, 2])  # each copy has its edges
    with pytest.raises(dgl.DGLError, match="repeat"):
        dgl.dataloading.ShaDowKHopSampler([2]).sample(g, [4, 0, 4])
