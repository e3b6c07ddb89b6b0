"""Random transforms: what they keep, how often they change something, and that seeds repeat it."""

from __future__ import annotations

import math

import pytest
import torch

import gnnlab as dgl
from gnnlab.compat import transforms
from tests.graph.samples import edges_of, same, toy, typed


def large(edges: int = 4000) -> dgl.Graph:
    g = dgl.rand_graph(1000, edges)
    g.ndata["x"], g.edata["w"] = torch.arange(1000), torch.arange(edges)
    return g


def is_near(found: int, count: int, p: float) -> bool:
    """Within five standard deviations of a binomial distribution."""
    return abs(found - count * p) < 5 * math.sqrt(count * p * (1 - p))


def test_shuffled_rows_stay_together() -> None:
    g = typed()
    g.nodes["game"].data["price"] = g.nodes["game"].data["x"] + 1
    moved = set()
    for _ in range(20):
        made = transforms.NodeShuffle()(g)
        x, price = (made.nodes["game"].data[name] for name in ("x", "price"))
        assert price.equal(x + 1) and sorted(x.tolist()) == [0, 10, 20, 30]
        assert edges_of(made, "plays") == edges_of(g, "plays")
        moved.add(tuple(x.tolist()))
    assert len(moved) > 5 and g.nodes["game"].data["x"].tolist() == [0, 10, 20, 30]


def test_dropped_nodes_take_their_edges() -> None:
    g = large()
    made = transforms.DropNode(p=0.3)(g)
    kept = made.ndata["x"]
    assert is_near(made.num_nodes(), 1000, 0.7) and g.num_nodes() == 1000
    pairs, left = edges_of(g), set(kept.tolist())
    expected = [e for e, pair in enumerate(pairs) if left.issuperset(pair)]
    assert made.edata["w"].tolist() == expected
    found = [(int(kept[u]), int(kept[v])) for u, v in edges_of(made)]
    assert found == [pairs[e] for e in expected]
    assert dgl.NID not in made.ndata and dgl.EID not in made.edata
    assert same(transforms.DropNode(p=0)(toy()), toy())
    assert transforms.DropNode(p=1)(typed()).num_nodes() == 0


def test_dropped_edges_leave_the_others() -> None:
    g = large()
    made = transforms.DropEdge(p=0.25)(g)
    assert is_near(made.num_edges(), 4000, 0.75) and made.num_nodes() == 1000
    pairs = edges_of(g)
    assert edges_of(made) == [pairs[e] for e in made.edata["w"].tolist()]
    assert transforms.DropEdge(p=1)(typed()).num_edges() == 0
    assert repr(transforms.DropEdge(p=0.25)) == "DropEdge(p=0.25)"


def test_added_edges_are_uniform() -> None:
    made = transforms.AddEdge(ratio=0.5)(large())
    assert made.num_edges() == 6000 and made.edata["w"][:4000].equal(torch.arange(4000))
    assert not made.edata["w"][4000:].any()
    src, dst = made.edges()
    for end in (src[4000:], dst[4000:]):
        assert is_near(int((end < 300).sum()), 2000, 0.3)
    new = transforms.AddEdge(ratio=0.5)(typed())
    assert {e: new.num_edges(e) for e in new.etypes} == {"follows": 3, "made by": 1, "plays": 4}
    assert edges_of(new, "plays")[:3] == edges_of(typed(), "plays")


def test_masked_columns() -> None:
    g = dgl.graph(([0, 1], [1, 0]))
    g.ndata["x"], g.edata["w"] = torch.ones(2, 4000), torch.ones(2, 3, 1000)
    g.ndata["other"] = torch.ones(2)
    made = transforms.FeatMask(0.4, ["x"], ["w"])(g)
    for value, size in ((made.ndata["x"], 4000), (made.edata["w"], 1000)):
        columns = value.reshape(-1, size)
        assert (columns == columns[0]).all()  # whole columns
        assert is_near(int((columns[0] == 0).sum()), size, 0.4)
    assert g.ndata["x"].all() and made.ndata["other"].all()
    with pytest.raises(dgl.InvalidInput, match=r"FeatMask.*'y'"):
        transforms.FeatMask(node_feat_names=["y"])(g)
    with pytest.raises(dgl.InvalidInput, match="probability"):
        transforms.FeatMask(p=2)


@pytest.mark.parametrize(
    "transform",
    [
        transforms.NodeShuffle(),
        transforms.DropNode(),
        transforms.DropEdge(),
        transforms.AddEdge(),
        transforms.FeatMask(0.5, ["x"]),
    ],
    ids=repr,
)
def test_seeds_repeat(transform: transforms.BaseTransform) -> None:
    g = large(50)
    g.ndata["x"] = torch.rand(1000, 20)
    made = []
    for seed in (1, 1, 2):
        dgl.seed(seed)
        made.append(transform(g))
    assert same(made[0], made[1]) and not same(made[0], made[2])
