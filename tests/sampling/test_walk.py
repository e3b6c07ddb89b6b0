"""Random walks, and the neighbors that they find."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput, OutOfRange

BOUGHT = ("user", "buys", "item")
BACK = ("item", "bought by", "user")


def shop(num_users: int = 30, num_items: int = 20, num_edges: int = 120) -> dgl.DGLGraph:
    generator = torch.Generator().manual_seed(3)
    users, items = (
        torch.randint(n, (num_edges,), generator=generator) for n in (num_users, num_items)
    )
    return dgl.heterograph(
        {BOUGHT: (users, items), BACK: (items, users)}, {"user": num_users, "item": num_items}
    )


@pytest.mark.parametrize("idtype", [torch.int32, torch.int64])
def test_a_walk_follows_edges(idtype: torch.dtype) -> None:
    g = dgl.rand_graph(50, 120, idtype=idtype)
    traces, eids, types = dgl.sampling.random_walk(g, g.nodes(), length=6, return_eids=True)
    assert traces.shape == (50, 7) and eids.shape == (50, 6) and traces.dtype is idtype
    assert types.tolist() == [0] * 7 and torch.equal(traces[:, 0], g.nodes())
    src, dst = g.edges()
    for trace, taken in zip(traces.tolist(), eids.tolist(), strict=True):
        for here, there, edge in zip(trace, trace[1:], taken, strict=False):
            if edge < 0:
                assert there == -1 and (here == -1 or g.out_degrees(here) == 0)
            else:
                assert (src[edge], dst[edge]) == (here, there)


def test_every_way_is_as_likely_as_its_weight() -> None:
    g = dgl.graph(([0, 0, 0, 0, 1], [4, 1, 2, 3, 0]))
    starts, w = torch.zeros(40_000, dtype=torch.int64), torch.tensor([4.0, 0, 1, 3, 0])
    plain = dgl.sampling.random_walk(g, starts, length=1)[0][:, 1].bincount(minlength=5) / 4e4
    assert torch.allclose(plain, torch.tensor([0, 0.25, 0.25, 0.25, 0.25]), atol=0.01)
    traces = dgl.sampling.random_walk(g, starts, length=1, prob=w)[0]
    weighted = traces[:, 1].bincount(minlength=5) / 4e4
    assert weighted[1] == 0
    assert torch.allclose(weighted, torch.tensor([0, 0, 0.125, 0.375, 0.5]), atol=0.01)
    nowhere = dgl.sampling.random_walk(g, [1, 4], length=2, prob=w)[0]
    assert nowhere.tolist() == [[1, -1, -1], [4, -1, -1]]


def test_walks_end_by_chance() -> None:
    g = dgl.graph(([0, 1], [1, 0]))
    starts = torch.zeros(20_000, dtype=torch.int64)
    traces, _ = dgl.sampling.random_walk(g, starts, length=3, restart_prob=0.5)
    shares = (traces >= 0).double().mean(0)
    expected = torch.tensor([1, 0.5, 0.25, 0.125], dtype=torch.float64)
    assert torch.allclose(shares, expected, atol=0.015)
    stops = torch.tensor([0.0, 1.0])
    traces, _ = dgl.sampling.random_walk(g, [0, 1], length=2, restart_prob=stops)
    assert traces.tolist() == [[0, 1, -1], [1, 0, -1]]


def test_a_metapath_says_which_edges() -> None:
    g = shop()
    traces, types = dgl.sampling.random_walk(g, [0, 1, 2], metapath=["bought by", "buys"] * 2)
    assert [g.ntypes[t] for t in types.tolist()] == ["item", "user", "item", "user", "item"]
    for item, user, *_ in traces.tolist():
        assert user == -1 or g.has_edges_between(item, user, etype="bought by")
    empty = dgl.heterograph(
        {("a", "to", "b"): ([], []), ("b", "on", "a"): ([], [])}, {"a": 2, "b": 0}
    )
    assert dgl.sampling.random_walk(empty, [1], metapath=["to", "on"])[0].tolist() == [[1, -1, -1]]


def test_the_seed_decides(torch_threads) -> None:
    g = dgl.rand_graph(1000, 5000)
    found = []
    for threads in (1, 2):
        torch_threads(threads)
        dgl.seed(8)
        found.append(dgl.sampling.random_walk(g, g.nodes(), length=10)[0])
    assert torch.equal(*found)
    assert not torch.equal(dgl.sampling.random_walk(g, g.nodes(), length=10)[0], found[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "pass either metapath"),
        ({"length": 2, "metapath": ["buys"]}, "pass either metapath"),
        ({"length": 2}, "say which edge type"),
        ({"metapath": ["buys", "buys"]}, "after .* which ends at another node type"),
        ({"metapath": ["buys"], "restart_prob": 1.5}, "restart_prob must be from 0 to 1"),
        ({"metapath": ["buys"], "restart_prob": [0.1, 0.2]}, r"found the shape \(2,\)"),
        ({"metapath": ["buys"], "prob": torch.full((120,), -1.0)}, "finite and not negative"),
    ],
)
def test_bad_walks_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        dgl.sampling.random_walk(shop(), [0], **arguments)


def test_neighbors_are_those_met_most_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same walks, counted by hand."""
    g, seeds, hops = shop(), [5, 0, 7], 2
    sampler = dgl.sampling.PinSAGESampler(g, "item", "user", 3, 0.4, 25, 4, "visits")
    dgl.seed(2)
    frontier = sampler(seeds)
    dgl.seed(2)
    starts = torch.tensor(seeds).repeat_interleave(25)
    traces, _ = dgl.sampling.random_walk(
        g, starts, metapath=[BACK, BOUGHT] * 3, restart_prob=[0, 0, 0.4, 0, 0.4, 0]
    )
    met = {seed: Counter() for seed in seeds}
    for trace in traces.tolist():
        met[trace[0]].update(node for node in trace[hops::hops] if node >= 0)
    for seed in seeds:
        src, _, eids = frontier.in_edges(seed, form="all")
        found = list(zip(src.tolist(), frontier.edata["visits"][eids].tolist(), strict=True))
        assert found == sorted(met[seed].items(), key=lambda pair: (-pair[1], pair[0]))[:4]
    assert frontier.num_nodes() == g.num_nodes("item")
    assert sum(frontier.in_degrees().tolist()) == frontier.num_edges() <= 12
    block = dgl.to_block(frontier, seeds)
    assert block.dstdata[dgl.NID].tolist() == seeds


def test_bad_samplers_are_refused() -> None:
    g = shop()
    sampler = dgl.sampling.RandomWalkNeighborSampler
    with pytest.raises(InvalidInput, match="metapath"):
        sampler(g, 1, 0.5, 10, 3, metapath=["buys"])
    with pytest.raises(InvalidInput, match="num_random_walks"):
        sampler(g, 1, 0.5, 0, 3, metapath=["buys", "bought by"])
    with pytest.raises(InvalidInput, match=r"termination_prob.*2"):
        sampler(g, 1, 2, 10, 3, metapath=["buys", "bought by"])
    with pytest.raises(InvalidInput, match="'item'"):
        dgl.sampling.PinSAGESampler(g, "item", "item", 1, 0.5, 10, 3)
    with pytest.raises(OutOfRange):
        dgl.sampling.PinSAGESampler(g, "item", "user", 1, 0.5, 10, 3)([99])
