"""A sampler of the user's gives on a graph in parts what it gives on the graph in one memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.compat.dataloading.subgraphs import ShaDowKHopSampler
from gnnlab.dataloading import BlockSampler, DataLoader, Sampler
from gnnlab.distributed import DistNodeDataLoader
from tests.distributed import cut as cuts
from tests.distributed.cut import Cut
from tests.graph.samples import same
from tests.helpers import let_go


@pytest.mark.parametrize("relabel", [True, False])
@pytest.mark.parametrize("store_ids", [True, False])
def test_subgraph(plain: Cut, typed: Cut, relabel: bool, store_ids: bool) -> None:
    mask = torch.rand(200, generator=torch.Generator().manual_seed(3)) < 0.3
    how = {"relabel_nodes": relabel, "store_ids": store_ids}
    for c, choices in (
        (plain, [torch.randperm(200)[:60], [0, 5, 199], mask, []]),
        (typed, [{"user": [3, 1, 40], "game": torch.arange(25)}, {"user": range(60)}]),
    ):
        whole = cuts.renumbered(c)
        for nodes in choices:
            expected, found = whole.subgraph(nodes, **how), c.parts.subgraph(nodes, **how)
            if not relabel:  # node features are not fetched for all nodes of all machines
                for ntype in expected.ntypes:
                    expected.nodes[ntype].data.clear()
            for kind in ("nodes", "edges"):  # columns in the order of the other graph
                names = expected.ntypes if kind == "nodes" else expected.canonical_etypes
                for name in names:
                    ours = getattr(found, kind)[name].data
                    theirs = getattr(expected, kind)[name].data
                    for column in theirs:
                        ours[column] = ours.pop(column)
            assert same(found, expected)
            by_function = dgl.node_subgraph(c.parts, nodes, **how)
            for etype in expected.canonical_etypes:
                for one, two in zip(
                    by_function.edges(etype=etype), expected.edges(etype=etype), strict=True
                ):
                    assert torch.equal(one, two)
    with pytest.raises(dgl.InvalidInput, match="repeat"):
        plain.parts.subgraph([1, 2, 1])
    with pytest.raises(dgl.InvalidInput, match="node type"):
        typed.parts.subgraph([1])
    with pytest.raises(dgl.OutOfRange):
        plain.parts.subgraph([200])


@pytest.mark.parametrize("relabel", [True, False])
def test_out_subgraph(plain: Cut, typed: Cut, relabel: bool) -> None:
    """All out-edges, into other parts too, node by node and in the order of the user's graph."""
    for c, named in (
        (plain, {"_N": torch.randperm(200)[:60]}),
        (plain, {"_N": torch.tensor([5])}),
        (plain, {"_N": torch.empty(0, dtype=torch.int64)}),
        (typed, {"user": torch.tensor([3, 1, 40]), "dev": torch.arange(7)}),
    ):
        new = {ntype: c.new(ids, ntype) for ntype, ids in named.items()}
        expected = dgl.out_subgraph(c.whole, named, relabel_nodes=relabel)
        found = dgl.out_subgraph(c.parts, new, relabel_nodes=relabel)
        for etype in expected.canonical_etypes:
            eids = found.edges[etype].data[dgl.EID]
            assert torch.equal(c.edges[etype][eids], expected.edges[etype].data[dgl.EID])
            ends = c.parts.find_edges(eids, etype)
            for end, other, ntype in zip(found.edges(etype=etype), ends, etype[::2], strict=True):
                names = found.nodes[ntype].data[dgl.NID] if relabel else c.parts.nodes(ntype)
                assert torch.equal(names[end], other)


class Everything(BlockSampler):
    """Asks a graph all that a sampler may ask, and draws with keyed numbers."""

    def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        generator = dgl.random.generator()
        first = g.in_subgraph(seed_nodes)
        src, dst = first.edges()
        wanted = 1 / (g.out_degrees(src) + g.in_degrees(dst)).double()
        kept = torch.multinomial(wanted, min(12, len(src)), generator=generator)
        frontier = first.edge_subgraph(kept, relabel_nodes=False, store_ids=False)
        ends = g.find_edges(frontier.edata[dgl.EID])
        assert torch.equal(torch.stack(ends), torch.stack(frontier.edges()))
        assert g.has_edges_between(*ends).all()
        block = dgl.to_block(frontier, seed_nodes)
        block.edata[dgl.EID] = frontier.edata[dgl.EID]
        inner = block.srcdata[dgl.NID]
        second = dgl.edge_subgraph(g, g.edge_ids(*ends), relabel_nodes=False)
        assert second.num_edges() == len(kept)
        within = g.subgraph(inner, relabel_nodes=False)
        other = dgl.to_block(dgl.in_subgraph(within, inner, store_ids=False), inner)
        return inner, seed_nodes, [other, block]


def content(batch: Any) -> list[Any]:
    inner, seeds, parts = batch
    found: list[Any] = [inner.tolist(), seeds.tolist()]
    for part in [parts] if isinstance(parts, dgl.Graph) else parts:
        found += [end.tolist() for end in part.edges()]
        found += [part.srcdata["x"].tolist(), part.edata["w"].tolist()]
        found += [part.srcdata[dgl.NID].tolist()]
    return found


@pytest.mark.parametrize(
    "sampler",
    [Everything(), ShaDowKHopSampler([-1]), ShaDowKHopSampler([-1, -1], prefetch_node_feats=["x"])],
    ids=["everything", "shadow", "shadow of two hops"],
)
def test_batches_are_equal(plain: Cut, sampler: Sampler) -> None:
    seeds = torch.randperm(190, generator=torch.Generator().manual_seed(1))[:40]
    options: dict[str, Any] = {"batch_size": 10, "shuffle": True, "seed": 4}
    whole = DataLoader(cuts.renumbered(plain), seeds, sampler, **options)
    expected = [content(batch) for batch in whole]
    for kind in DataLoader, DistNodeDataLoader:
        parts = kind(plain.parts, seeds, sampler, **options)
        assert [content(batch) for batch in parts] == expected


# -------------------------------------------------------------------- lost IDs
class Forgetful(BlockSampler):
    def __init__(self, **how: Any) -> None:
        super().__init__(1)
        self.how = how

    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        frontier = g.sample_neighbors(seed_nodes, 8)
        kept = torch.arange(frontier.num_edges()) % 2 == 0
        return frontier.edge_subgraph(kept, relabel_nodes=False, **self.how)


class ForgetfulPart(Sampler):
    def __init__(self, **how: Any) -> None:
        self.how = how

    def sample(self, g: Any, indices: Any) -> Any:
        around = g.subgraph(torch.arange(50))
        return around.subgraph(torch.arange(10, 30), **self.how)


@pytest.mark.parametrize("sampler", [Forgetful, ForgetfulPart])
def test_ids_that_were_replaced_are_an_error(plain: Cut, sampler: Any) -> None:
    own = plain.whole.subgraph(torch.arange(100))  # a graph to train on may be a part itself
    for g in (plain.whole, plain.parts, own, own.formats("csc")):
        for options in {}, {"prefetch": 2}:
            with pytest.raises(dgl.InvalidInput, match="store_ids=False"):
                list(DataLoader(g, range(20), sampler(), batch_size=10, **options))
            list(DataLoader(g, range(20), sampler(store_ids=False), batch_size=10, **options))
    with pytest.raises(dgl.InvalidInput, match="store_ids=False") as caught:
        list(DataLoader(plain.whole, range(20), sampler(), batch_size=10, num_workers=1))
    let_go(caught)
