"""Scores of some nodes: those of inference on the whole graph, in one memory and in three parts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import LaborSampler, MultiLayerFullNeighborSampler, NeighborSampler, score
from tests.distributed import cut as cuts
from tests.distributed.test_inference import layers, typed_graph

HUB = 0  # of cuts.plain(): 300 in-edges


def chain(steps: list[Any]) -> Any:
    def model(blocks: Any, x: Any) -> Any:
        for layer, block in zip(steps, blocks, strict=True):
            x = layer(block, x)
        return x

    return model


def plain_graph() -> tuple[dgl.Graph, list[Any]]:
    g = cuts.plain()
    g.ndata["h"] = torch.randn(200, 6, generator=torch.Generator().manual_seed(3))
    first, second = dgl.nn.SAGEConv(6, 4, "mean"), dgl.nn.SAGEConv(4, 3, "mean")
    return g, [lambda g, x: first(g, x).relu(), second]


@pytest.fixture(scope="module", params=["plain", "typed"])
def case(request: Any, tmp_path_factory: Any) -> Any:
    """A graph and its parts, layers, nodes to score, one twice, and their rows by inference."""
    is_plain = request.param == "plain"
    g, steps = plain_graph() if is_plain else (typed_graph(), layers())
    h: Any = g.ndata["h"]
    for layer in steps:
        h = layer(g, h)
    whole = {"_N": h.detach()} if is_plain else {t: rows.detach() for t, rows in h.items()}
    nodes = {t: torch.tensor([3, HUB, 7, 3, len(rows) - 1]) for t, rows in whole.items()}
    c = cuts.cut(g, 3, tmp_path_factory.mktemp("cut"))
    return c, steps, nodes, {t: rows[nodes[t]] for t, rows in whole.items()}


def test_all_neighbors_and_stored_rows_give_the_numbers_of_inference(case: Any) -> None:
    c, steps, nodes, wanted = case
    one, two = MultiLayerFullNeighborSampler(1), MultiLayerFullNeighborSampler(2)
    for g, ids in (c.whole, nodes), (c.parts, {t: c.new(ids, t) for t, ids in nodes.items()}):
        before, everything = dgl.random.get_state(), {t: range(g.num_nodes(t)) for t in wanted}
        hidden = score(g, chain(steps[:1]), everything, one, "h", batch_size=17)
        inputs = {t: g.nodes[t].data["h"] for t in g.ntypes}
        torch.testing.assert_close(score(g, chain(steps), ids, two, "h"), wanted)
        torch.testing.assert_close(score(g, chain(steps), ids, two, inputs), wanted)
        torch.testing.assert_close(score(g, chain(steps[1:]), ids, one, hidden), wanted)
        assert dgl.random.get_state() == before, "takes no key of the process"


def test_a_sampled_score_depends_on_seed_and_node_alone(case: Any) -> None:
    c, steps, nodes, _ = case
    sampler, spare, answers = NeighborSampler([4, 3]), [], []

    def model(blocks: Any, x: Any) -> Any:  # at most 4 edges of each of 3 types
        spare.extend(12 * block.num_dst_nodes() - block.num_edges() for block in blocks)
        return chain(steps)(blocks, x)

    for g, ids in (c.whole, nodes), (c.parts, {t: c.new(ids, t) for t, ids in nodes.items()}):
        answers.append(score(g, model, ids, sampler, "h", seed=5))
        for t, rows in answers[-1].items():
            alone = [score(g, model, {t: [v]}, sampler, "h", seed=5)[t] for v in ids[t]]
            torch.testing.assert_close(torch.cat(alone), rows)
            assert not torch.equal(score(g, model, ids, sampler, "h", seed=6)[t], rows)
    torch.testing.assert_close(*answers)
    assert min(spare) >= 0


@pytest.mark.parametrize("fanouts", [[-1, -1], [4, 3]])
def test_new_edges_and_nodes_as_if_the_graph_had_them(case: Any, fanouts: list[int]) -> None:
    """Edges of an old node, twice, and of two new ones to a hub and another node."""
    c, steps, nodes, _ = case
    kind, _, to = etype = c.whole.canonical_etypes[0] if len(c.nodes) == 1 else cuts.PLAYS
    bound, rows, sampler = c.whole.num_nodes(kind), torch.randn(2, 6), NeighborSampler(fanouts)

    def ask(g: Any, move: Any) -> Any:
        ids = {t: move(each, t) for t, each in nodes.items()}
        ids[kind] = torch.cat([ids[kind], torch.tensor([bound + 1, bound])])
        src = torch.cat([torch.tensor([bound, bound + 1]), move(torch.tensor([5, 5]), kind)])
        ends = src, move(torch.tensor([HUB, 3, HUB, HUB]), to)
        if g is not None:
            new = {"new_edges": {etype: ends}, "new_inputs": {kind: rows}}
            return score(g, chain(steps), ids, sampler, "h", **new)
        rebuilt = dgl.add_nodes(c.whole, 2, {"h": rows}, ntype=kind)
        rebuilt = dgl.add_edges(rebuilt, *ends, etype=etype)
        return score(rebuilt, chain(steps), ids, sampler, "h")

    found = ask(c.whole, lambda ids, t: ids)
    torch.testing.assert_close(ask(c.parts, c.new), found)
    if fanouts == [-1, -1]:
        torch.testing.assert_close(ask(None, lambda ids, t: ids), found)


WRONG = [
    ({"nodes": [200]}, dgl.OutOfRange, "200"),
    ({"nodes": {"user": [0]}}, dgl.NotFound, "user"),
    ({"model": torch.nn.Linear(6, 3)}, dgl.InvalidInput, r"model\.eval\(\)"),
    ({"inputs": "y"}, dgl.NotFound, "'y'"),
    ({"inputs": torch.zeros(199, 6)}, dgl.InvalidInput, "inputs .* 200 .* 199"),
    ({"new_edges": [1, 2, 3]}, dgl.InvalidInput, "new_edges"),
    ({"new_edges": ([200], [0])}, dgl.OutOfRange, "200"),
    ({"new_edges": ([0], [1]), "sampler": LaborSampler([2])}, dgl.InvalidInput, "NeighborSampler"),
    ({"new_inputs": torch.zeros(1, 5)}, dgl.InvalidInput, "new_inputs"),
]


@pytest.mark.parametrize(("change", "kind", "named"), WRONG)
def test_wrong_arguments_are_named(change: Any, kind: Any, named: str) -> None:
    g, steps = plain_graph()
    right = {"model": chain(steps[:1]), "nodes": [], "sampler": NeighborSampler([2]), "inputs": "h"}
    assert score(g, **right).shape == (0, 4)
    with pytest.raises(kind, match=named):
        score(g, **{**right, **change})
