"""LABOR by the properties that its authors prove, and its probabilities by bisection."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import LaborSampler, NeighborSampler
from tests.distributed import cut as cuts
from tests.distributed.cut import FOLLOWS, MAKES, PLAYS

NUM_SEEDS, ROUNDS = 40, 400


@pytest.fixture(scope="module")
def graph() -> dgl.Graph:
    """40 seeds with 0 to 39 in-edges, from 100 sources, some of which are popular."""
    generator = torch.Generator().manual_seed(4)
    popular = torch.linspace(0.2, 3, 100).exp()
    src = torch.cat(
        [torch.multinomial(popular, d, generator=generator) for d in range(1, NUM_SEEDS)]
    )
    dst = torch.arange(NUM_SEEDS).repeat_interleave(torch.arange(NUM_SEEDS))
    order = torch.randperm(len(src), generator=generator)
    g = dgl.graph((src[order] + NUM_SEEDS, dst[order]), num_nodes=NUM_SEEDS + 100)
    g.ndata["x"] = torch.rand(g.num_nodes(), dtype=torch.float64, generator=generator)
    g.edata["w"] = torch.rand(g.num_edges(), dtype=torch.float64, generator=generator) + 0.01
    g.edata["w"][::7] = 0
    g.edata["m"] = g.edata["w"] > 0.3
    return g


@functools.cache
def many(g: dgl.Graph, fanout: int, **options: Any) -> list[dgl.Graph]:
    dgl.seed(1)
    return [
        dgl.sampling.sample_labors(g, range(NUM_SEEDS), fanout, **options)[0] for _ in range(ROUNDS)
    ]


def probabilities(g: dgl.Graph, frontiers: list[dgl.Graph]) -> torch.Tensor:
    """Probability of each edge, as the samples say it: the same each time. 0 if never taken."""
    p = torch.zeros(g.num_edges())
    for frontier in frontiers:
        ids = frontier.edata[dgl.EID]
        assert ((p[ids] == 0) | (p[ids] == frontier.edata["edge_probs"])).all()
        p[ids] = frontier.edata["edge_probs"]
    return p


def bisected(values: torch.Tensor, holds: Any) -> torch.Tensor:
    """min(1, c · values) with the smallest c for which ``holds`` is true."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if holds((middle * values).clamp(max=1)) else (middle, high)
    return (high * values).clamp(max=1)


CASES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "mask": {"prob": "m"},
    "weights": {"prob": "w"},
    "one round": {"importance_sampling": 1},
    "until settled": {"importance_sampling": -1},
}
BY_CASE = pytest.mark.parametrize("options", CASES.values(), ids=CASES.keys())


@BY_CASE
def test_edges_are_taken_with_their_probability(graph: dgl.Graph, options: dict) -> None:
    """The share of the rounds that took an edge is within five standard deviations of it."""
    frontiers = many(graph, 5, **options)
    p = probabilities(graph, frontiers)
    taken = torch.stack([torch.zeros(len(p)).index_fill(0, f.edata[dgl.EID], 1) for f in frontiers])
    spread = (p * (1 - p) / ROUNDS).sqrt()
    assert ((taken.mean(0) - p).abs() <= 5 * spread + 1e-6).all()
    if "prob" in options:
        assert not p[graph.edata[options["prob"]] == 0].any()


@pytest.mark.parametrize("name", [None, "m", "w"])
def test_a_seed_gets_the_fanout_on_average(graph: dgl.Graph, name: str | None) -> None:
    """Sum of p = min(fanout, number of edges that may be taken), and p is in proportion."""
    p = probabilities(graph, many(graph, 5, prob=name))
    weight = torch.ones(graph.num_edges()) if name is None else graph.edata[name].double()
    for seed in range(NUM_SEEDS):
        ids = graph.in_edges(seed, "eid")
        ids = ids[weight[ids] > 0]
        quota = min(5, len(ids))
        expected = bisected(weight[ids], lambda p, quota=quota: p.sum() >= quota - 1e-12)
        seen = p[ids] > 0  # an edge of small weight may not have been taken in any round
        assert torch.allclose(p[ids][seen].double(), expected.double()[seen], rtol=1e-5)


def test_all_edges_when_the_fanout_is_none_or_large(graph: dgl.Graph) -> None:
    for fanout in (-1, None, 39):
        frontier, (weights,) = dgl.sampling.sample_labors(graph, range(NUM_SEEDS), fanout)
        assert frontier.num_edges() == graph.num_edges() and (weights == 1).all()
    assert dgl.sampling.sample_labors(graph, range(NUM_SEEDS), 0)[0].num_edges() == 0


@BY_CASE
def test_weights_make_means_of_constants_exact(graph: dgl.Graph, options: dict) -> None:
    frontier, (weights,) = dgl.sampling.sample_labors(graph, range(NUM_SEEDS), 5, **options)
    counts = frontier.in_degrees()
    totals = torch.zeros(graph.num_nodes()).index_add_(0, frontier.edges()[1], weights)
    assert torch.allclose(totals, counts.float())
    share = torch.ones(len(weights)).double()
    if options.get("prob") == "w":
        share = frontier.edata["w"]
    ratio = weights.double() * frontier.edata["edge_probs"].double() / share
    for seed in range(NUM_SEEDS):  # in proportion to (weight) / p
        of_seed = ratio[frontier.edges()[1] == seed]
        assert torch.allclose(of_seed, of_seed[:1].expand_as(of_seed), rtol=1e-5)


def test_importance_keeps_the_variance(graph: dgl.Graph) -> None:
    """Σ 1 / p = degree² / min(fanout, degree): the variance of neighbor sampling (equation 11)."""
    for rounds in (1, 3, -1):
        frontiers = many(graph, 5, importance_sampling=rounds)
        p = probabilities(graph, frontiers).double()
        assert (p > 0).all()
        for seed in range(1, NUM_SEEDS):
            inverse = 1 / p[graph.in_edges(seed, "eid")]
            assert float(inverse.sum()) == pytest.approx(seed**2 / min(5, seed), rel=1e-4)


def test_fewer_nodes_than_neighbor_sampling() -> None:
    """Rounds of importance sampling need ever fewer sources; the sum of min(1, max p) says it."""
    g = dgl.rand_graph(2000, 100_000)
    seeds = range(200)

    def sources(sampler: Any) -> float:
        dgl.seed(2)
        return sum(len(sampler.sample(g, seeds)[0]) for _ in range(20)) / 20

    neighbor = sources(NeighborSampler([10]))
    labor = [sources(LaborSampler([10], importance_sampling=i)) for i in (0, 1, -1)]
    assert labor[0] < 0.75 * neighbor  # 1,250 and 590 of 2,000
    assert labor[0] > labor[1] >= labor[2] * 0.999
    edges = [LaborSampler([10]).sample(g, seeds)[2][0].num_edges() for _ in range(20)]
    assert sum(edges) / 20 == pytest.approx(2000, rel=0.02)


def test_a_source_has_one_number_for_all_seeds_and_types() -> None:
    """Two relations with the same ends and degrees take the same sources."""
    ends = torch.arange(30).repeat(5), torch.arange(5).repeat_interleave(30)
    g = dgl.heterograph({("u", "r", "v"): ends, ("u", "s", "v"): ends, ("v", "t", "v"): ends})
    frontier, _ = dgl.sampling.sample_labors(g, {"v": range(5)}, 6)
    taken = {
        (etype, v): tuple(frontier.in_edges(v, etype=etype)[0].tolist())
        for etype in g.etypes
        for v in range(5)
    }
    assert len({taken["r", v] for v in range(5)} | {taken["s", v] for v in range(5)}) == 1
    assert taken["t", 0] != taken["r", 0]  # nodes of another type have other numbers


def test_random_seed_and_layer_dependency_share_numbers() -> None:
    g = dgl.rand_graph(300, 9000)
    one, _ = dgl.sampling.sample_labors(g, [1, 2], 5, random_seed=3)
    two, _ = dgl.sampling.sample_labors(g, [2, 1], 5, random_seed=3)
    other, _ = dgl.sampling.sample_labors(g, [1, 2], 5, random_seed=4)
    ids = [set(f.edata[dgl.EID].tolist()) for f in (one, two, other)]
    assert ids[0] == ids[1] != ids[2]

    def sources(dependent: bool) -> int:
        dgl.seed(1)
        sampler = LaborSampler([4, 4], layer_dependency=dependent)
        return sum(len(sampler.sample(g, range(20))[0]) for _ in range(20))

    assert sources(True) < sources(False)


@pytest.mark.parametrize("options", [{}, {"prob": "w"}, {"prob": "m", "importance_sampling": 2}])
def test_out_edges_mirror_in_edges(graph: dgl.Graph, options: dict) -> None:
    turned = dgl.reverse(graph, copy_edata=True)
    nodes = range(NUM_SEEDS)
    inward, _ = dgl.sampling.sample_labors(graph, nodes, 5, random_seed=1, **options)
    outward, _ = dgl.sampling.sample_labors(turned, nodes, 5, "out", random_seed=1, **options)
    assert torch.equal(inward.edata[dgl.EID], outward.edata[dgl.EID])
    assert torch.equal(inward.edges()[0], outward.edges()[1])


def test_excluded_edges_do_not_count(graph: dgl.Graph) -> None:
    left_out = torch.arange(0, graph.num_edges(), 2)
    rest = dgl.remove_edges(graph, left_out)
    frontier, _ = dgl.sampling.sample_labors(
        graph, range(NUM_SEEDS), 5, exclude_edges=left_out, random_seed=1
    )
    expected, _ = dgl.sampling.sample_labors(rest, range(NUM_SEEDS), 5, random_seed=1)
    assert torch.equal(frontier.edata[dgl.EID], expected.edata[dgl.EID] * 2 + 1)
    assert torch.equal(frontier.edata["edge_probs"], expected.edata["edge_probs"])


# --------------------------------------------------------------------- blocks
def test_blocks_are_frontiers(graph: dgl.Graph) -> None:
    """Each block has the edges that the function samples with the same key."""
    g = dgl.rand_graph(300, 6000)
    g.edata["w"] = torch.rand(6000)
    sampler = LaborSampler([5, 4], prob="w")
    dgl.seed(6)
    input_nodes, output_nodes, blocks = sampler.sample(g, [3, 1, 2])
    assert output_nodes.tolist() == [3, 1, 2]
    dgl.seed(6)
    seeds = torch.tensor([3, 1, 2])
    for fanout, block in zip((4, 5), reversed(blocks), strict=True):
        frontier, (weights,) = dgl.sampling.sample_labors(g, seeds, fanout, prob="w")
        assert torch.equal(block.edata[dgl.EID], frontier.edata[dgl.EID])
        assert torch.equal(block.edata["edge_weights"], weights)
        assert torch.equal(block.edata["edge_probs"], frontier.edata["edge_probs"])
        assert torch.equal(block.dstdata[dgl.NID], seeds)
        seeds = dgl.to_block(frontier, seeds).srcdata[dgl.NID]
        assert torch.equal(block.srcdata[dgl.NID], seeds)
    assert torch.equal(input_nodes, seeds)


def test_on_parts_all_edges_are_compared(tmp_path: Any) -> None:
    """On a DistGraph: the sample of the whole graph under the IDs of the partition."""
    for whole, seeds, prob in (
        (cuts.plain(), {"_N": torch.arange(50)}, "w"),
        (cuts.typed(), {"user": torch.arange(20), "game": torch.arange(9)}, None),
        (cuts.plain(), {"_N": torch.arange(50)}, "m"),
    ):
        parts = cuts.cut(whole, 2, tmp_path / str(prob))
        sizes = {t: whole.num_nodes(t) for t in whole.ntypes}
        same = dgl.heterograph(
            {
                e: tuple(
                    parts.new(end, t) for end, t in zip(whole.edges(etype=e), e[::2], strict=True)
                )
                for e in whole.canonical_etypes
            },
            sizes,
        )
        order = {e: parts.edges[e] for e in whole.canonical_etypes}
        renumbered = dgl.heterograph({e: same.find_edges(order[e], e) for e in order}, sizes)
        if prob is not None:
            renumbered.edata[prob] = whole.edata[prob][order["_N", "_E", "_N"]]
        sampler = LaborSampler([4, 3], prob=prob)
        results = []
        for g in (renumbered, parts.parts):
            dgl.seed(8)
            results.append(sampler.sample(g, dict(seeds)))
        for ours, theirs in zip(results[0][2], results[1][2], strict=True):
            for etype in ours.canonical_etypes:
                for name in (dgl.EID, "edge_probs", "edge_weights"):
                    one, two = (b.edges[etype].data[name] for b in (ours, theirs))
                    assert torch.equal(one, two), (etype, name)


def test_typed_fanouts() -> None:
    g = cuts.typed()
    sampler = LaborSampler([{FOLLOWS: 2, PLAYS: 0, MAKES: -1}])
    block = sampler.sample(g, {"user": torch.arange(60), "game": torch.arange(25)})[2][0]
    assert block.num_edges(PLAYS) == 0
    assert block.num_edges(MAKES) == g.num_edges(MAKES)
    expected = float(g.in_degrees(etype=FOLLOWS).clamp(max=2).sum())
    assert block.num_edges(FOLLOWS) == pytest.approx(expected, rel=0.25)
