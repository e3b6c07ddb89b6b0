"""What a model is to predict is in none of the blocks that it predicts from."""

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import EdgeDataLoader, NeighborSampler, as_edge_prediction_sampler
from gnnlab.errors import InvalidInput
from tests.dataloading.samples import FOLLOWS, PLAYED, PLAYS, REVERSE, SAMPLERS


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("mode", ["self", "reverse_id", "callable"])
def test_excluded_edges_are_in_no_block(graph, name, mode):
    def with_reverse(eids):
        return torch.cat([eids, REVERSE[eids]])

    exclude = with_reverse if mode == "callable" else mode
    loader = EdgeDataLoader(
        graph, range(1500), SAMPLERS[name](), exclude=exclude, reverse_eids=REVERSE, batch_size=100
    )
    for _, pairs, blocks in loader:
        eids = pairs.edata[dgl.EID]
        forbidden = eids if mode == "self" else with_reverse(eids)
        for block in blocks:
            assert not torch.isin(block.edata[dgl.EID], forbidden).any()
        if name in ("all", "frontier"):  # and nothing else is missing
            nodes = blocks[-1].dstdata[dgl.NID]
            expected = graph.in_edges(nodes, form="eid")
            expected = expected[~torch.isin(expected, forbidden)]
            assert sorted(blocks[-1].edata[dgl.EID].tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("name", ["all", "frontier"])
def test_with_exclude_none_they_are_there(graph, name):
    for _, pairs, blocks in EdgeDataLoader(graph, range(1500), SAMPLERS[name](), batch_size=500):
        assert torch.isin(pairs.edata[dgl.EID], blocks[-1].edata[dgl.EID]).all()


TYPED_MODES = {
    "self": {"exclude": "self"},
    "reverse_id": {
        "exclude": "reverse_id",
        # each edge's neighbor in a list may stand for its reverse edge
        "reverse_eids": {"plays": torch.arange(400) ^ 1, FOLLOWS: np.arange(200) ^ 1},
    },
    "reverse_types": {
        "exclude": "reverse_types",
        "reverse_etypes": {"plays": "played-by", PLAYED: PLAYS},
    },
    "callable": {"exclude": lambda edges: {"played-by": edges[PLAYS], FOLLOWS: [0, 1]}},
}
FORBIDDEN = {
    "self": lambda plays, follows: {PLAYS: plays, FOLLOWS: follows},
    "reverse_id": lambda plays, follows: {
        PLAYS: torch.cat([plays, plays ^ 1]),
        FOLLOWS: torch.cat([follows, follows ^ 1]),
    },
    "reverse_types": lambda plays, follows: {PLAYS: plays, FOLLOWS: follows, PLAYED: plays},
    "callable": lambda plays, follows: {PLAYED: plays, FOLLOWS: torch.tensor([0, 1])},
}


@pytest.mark.parametrize("short", [True, False], ids=["short names", "canonical names"])
@pytest.mark.parametrize("mode", TYPED_MODES)
def test_excluded_edges_of_typed_graphs(typed, mode, short):
    sampler = as_edge_prediction_sampler(NeighborSampler([-1, -1]), **TYPED_MODES[mode])
    for at in range(0, 200, 50):
        plays, follows = torch.arange(at, at + 50), torch.arange(at, at + 20)
        names = ("plays", "follows") if short else (PLAYS, FOLLOWS)
        seeds = dict(zip(names, (plays, follows), strict=True))
        _, pairs, blocks = sampler.sample(typed, seeds)
        assert [pairs.num_edges(e) for e in (PLAYS, FOLLOWS, PLAYED)] == [50, 20, 0]
        nodes = {t: blocks[-1].dstnodes[t].data[dgl.NID] for t in typed.ntypes}
        forbidden = FORBIDDEN[mode](plays, follows)
        for etype in typed.canonical_etypes:
            expected = typed.in_edges(nodes[etype[2]], form="eid", etype=etype)
            if etype in forbidden:
                expected = expected[~torch.isin(expected, forbidden[etype])]
            found = blocks[-1].edges[etype].data[dgl.EID]
            assert sorted(found.tolist()) == sorted(expected.tolist())


def test_samplers_of_your_own(graph):
    class Triple(dgl.dataloading.Sampler):
        def sample(self, g, nodes, exclude_eids=None):
            assert exclude_eids.tolist() == [3, 4]
            return NeighborSampler([-1]).sample(g, nodes, exclude_eids)

    _, _, (block,) = as_edge_prediction_sampler(Triple(), "self").sample(graph, [3, 4])
    assert not torch.isin(block.edata[dgl.EID], torch.tensor([3, 4])).any()

    class Blind(dgl.dataloading.Sampler):
        def sample(self, g, nodes):
            return NeighborSampler([-1]).sample(g, nodes)

    with pytest.raises(TypeError, match=r"Blind.sample\(g, nodes\)") as caught:
        as_edge_prediction_sampler(Blind())
    assert isinstance(caught.value, InvalidInput)

    class HalfBlind(dgl.dataloading.BlockSampler):
        def sample_blocks(self, g, seed_nodes):
            return NeighborSampler([-1]).sample_blocks(g, seed_nodes)

    assert len(as_edge_prediction_sampler(HalfBlind()).sample(graph, [3])) == 3
    with pytest.raises(TypeError, match=r"HalfBlind.sample_blocks"):
        as_edge_prediction_sampler(HalfBlind(), exclude="self")


def test_reverse_ids_may_go_on_after_the_last_edge(graph):
    def blocks(reverse_eids):
        sampler = as_edge_prediction_sampler(
            NeighborSampler([-1]), "reverse_id", reverse_eids=reverse_eids
        )
        return sampler.sample(graph, [3])[-1][0].edata[dgl.EID].tolist()

    assert blocks(torch.cat([REVERSE, torch.tensor([9999])])) == blocks(REVERSE)
