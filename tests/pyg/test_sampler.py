"""The sampler keeps what PyG promises of a mini-batch, and picks fairly."""

from typing import Any

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NegativeSampling, NodeSamplerInput
from torch_geometric.utils import trim_to_layer

import gnnlab as dgl
from gnnlab.pyg import LinkNeighborLoader, NeighborLoader, NeighborSampler, from_pyg
from tests.helpers import examples
from tests.pyg import graphs
from tests.pyg.graphs import CITES, OWNS, WRITES, check_hops

FANOUTS = st.lists(st.integers(-1, 4), min_size=1, max_size=3)


def one_batch(data: Any, fanouts: Any, seeds: Any, **options: Any) -> Any:
    count = len(seeds[1] if isinstance(seeds, tuple) else seeds)
    return next(iter(NeighborLoader(data, fanouts, seeds, batch_size=count, **options)))


@examples(50)
@given(st.integers(0, 10**6), FANOUTS, st.booleans(), st.integers(1, 20))
def test_hops(seed: int, fanouts: list[int], replace: bool, count: int) -> None:
    data = graphs.plain(seed % 5)
    seeds = torch.randperm(60, generator=torch.Generator().manual_seed(seed))[:count]
    batch = one_batch(data, fanouts, seeds, seed=seed, replace=replace)
    assert torch.equal(batch.n_id[:count], seeds) and batch.batch_size == count
    assert len(batch.n_id.unique()) == len(batch.n_id)
    check_hops(data, batch, fanouts, replace)
    assert torch.equal(batch.x, data.x[batch.n_id])
    assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])


@examples(30)
@given(st.integers(0, 10**6), st.lists(st.integers(-1, 3), min_size=2, max_size=2), st.booleans())
def test_hops_of_a_typed_graph(seed: int, fanouts: list[int], by_type: bool) -> None:
    data = graphs.typed(seed % 5)
    wanted: Any = fanouts
    if by_type:
        wanted = {CITES: fanouts, WRITES: fanouts[::-1], OWNS: [0, 2]}
    seeds = torch.arange(seed % 20, seed % 20 + 10)
    batch = one_batch(data, wanted, ("paper", seeds), seed=seed)
    assert torch.equal(batch["paper"].n_id[:10], seeds) and batch["paper"].batch_size == 10
    check_hops(data, batch, wanted)
    for etype in data.edge_types:
        assert torch.equal(batch[etype].edge_attr, data[etype].edge_attr[batch[etype].e_id])


def test_all_neighbors_are_what_pyg_returns() -> None:
    """Without chance, every array is that of PyG 2.8.1 with torch-sparse 0.6.18."""
    edges = torch.tensor([[1, 2, 3, 4, 2, 5, 0, 3], [0, 0, 1, 1, 5, 2, 3, 4]])
    out = NeighborSampler(Data(edge_index=edges, num_nodes=6), [-1, -1]).sample_from_nodes(
        NodeSamplerInput(None, torch.tensor([0, 5]))
    )
    assert out.node.tolist() == [0, 5, 1, 2, 3, 4]
    assert out.row.tolist() == [2, 3, 3, 4, 5, 1]
    assert out.col.tolist() == [0, 0, 1, 2, 2, 3]
    assert out.edge.tolist() == [0, 1, 4, 2, 3, 5]
    assert out.num_sampled_nodes == [2, 2, 2] and out.num_sampled_edges == [3, 3]


def test_first_hop_picks_what_gnnlabs_own_loader_picks() -> None:
    data = graphs.plain()
    g, seeds = from_pyg(data), torch.arange(20)
    batch = one_batch(data, [3], seeds, seed=5)
    loader = dgl.dataloading.DataLoader(
        g, seeds, dgl.dataloading.NeighborSampler([3]), batch_size=20, seed=5
    )
    ((_, _, (block,)),) = loader
    assert torch.equal(block.edata[dgl.EID], batch.e_id)


def test_picks_are_fair_and_weights_are_probabilities() -> None:
    """12 in-edges, 4 picked, or one by weight: chi-square of how often each is picked."""
    weight = torch.arange(12.0)
    edges = torch.stack([torch.arange(1, 13), torch.zeros(12).long()])
    data = Data(edge_index=edges, num_nodes=13, weight=weight)
    for fanout, law, options in (
        (4, torch.ones(12), {}),
        (4, torch.ones(12), {"replace": True}),
        (1, weight, {"weight_attr": "weight"}),
    ):
        sampler, found = NeighborSampler(data, [fanout], **options), torch.zeros(12)
        for seed in range(1000):
            with dgl.random.stream(seed):
                out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([0])))
            found += torch.bincount(out.edge, minlength=12)
        assert found.sum() == 1000 * fanout and found[law == 0].sum() == 0
        expected = (law / law.sum() * found.sum())[law > 0]
        assert stats.chisquare(found[law > 0].numpy(), expected.numpy()).pvalue > 0.001


@examples(30)
@given(st.integers(0, 10**6), FANOUTS)
def test_disjoint_trees(seed: int, fanouts: list[int]) -> None:
    data = graphs.plain(seed % 5)
    seeds = torch.tensor([3, 4, 3, 58])  # one seed twice: two trees
    batch = one_batch(data, fanouts, seeds, seed=seed, disjoint=True)
    check_hops(data, batch, fanouts)
    assert torch.equal(batch.batch[:4], torch.arange(4))
    row, col = batch.edge_index
    assert torch.equal(batch.batch[row], batch.batch[col])
    named = batch.batch * 60 + batch.n_id
    assert len(named.unique()) == len(named)  # once in each tree


def test_disjoint_trees_of_a_typed_graph() -> None:
    data = graphs.typed()
    batch = one_batch(data, [3, 2], ("paper", torch.arange(6)), disjoint=True)
    check_hops(data, batch, [3, 2])
    for etype in data.edge_types:
        row, col = batch[etype].edge_index
        assert torch.equal(batch[etype[0]].batch[row], batch[etype[2]].batch[col])


def test_seeds_that_repeat_keep_their_places() -> None:
    data = graphs.plain()
    seeds = torch.tensor([7, 2, 7, 7, 5, 2])
    batch = one_batch(data, [2, 2], seeds, seed=0)
    assert torch.equal(batch.n_id[:6], seeds)
    assert len(batch.n_id[6:].unique()) == len(batch.n_id[6:])
    assert not set(batch.n_id[6:].tolist()) & {7, 2, 5}
    row, col = batch.edge_index
    ends = torch.stack([batch.n_id[row], batch.n_id[col]])
    assert torch.equal(data.edge_index[:, batch.e_id], ends)
    assert not {2, 3, 5} & set(row.tolist())  # edges leave the first place of a node
    assert [int((col == place).sum()) for place in range(6)] == [2] * 6


@pytest.mark.parametrize("seeds", [torch.arange(8), torch.tensor([1, 1, 4])])
def test_induced_takes_all_edges_between_the_nodes(seeds: torch.Tensor) -> None:
    data = graphs.plain()
    batch = one_batch(data, [2, 2], seeds, seed=3, subgraph_type="induced")
    inside = torch.isin(data.edge_index, batch.n_id).all(0)
    assert set(batch.e_id.tolist()) == set(inside.nonzero().flatten().tolist())
    row, col = batch.edge_index
    assert torch.equal(
        data.edge_index[:, batch.e_id], torch.stack([batch.n_id[row], batch.n_id[col]])
    )


def test_bidirectional_has_both_directions() -> None:
    batch = one_batch(graphs.plain(), [2, 2], torch.arange(8), subgraph_type="bidirectional")
    pairs = set(map(tuple, batch.edge_index.t().tolist()))
    assert pairs == {(b, a) for a, b in pairs}


def test_layers_may_be_trimmed() -> None:
    """trim_to_layer with the counts of nodes and edges changes no output of the seeds."""
    data = graphs.plain()
    batch = one_batch(data, [4, 3, 2], torch.arange(10))
    torch.manual_seed(0)
    layers = [SAGEConv(4, 4) for _ in range(3)]
    full = x = batch.x
    edges = batch.edge_index
    for number, layer in enumerate(layers):
        full = layer(full, batch.edge_index)
        x, edges, _ = trim_to_layer(
            number, batch.num_sampled_nodes, batch.num_sampled_edges, x, edges
        )
        x = layer(x, edges)
    torch.testing.assert_close(x[:10], full[:10])


@pytest.mark.parametrize("disjoint", [False, True])
def test_negatives(disjoint: bool) -> None:
    data, typed = graphs.plain(), graphs.typed()
    options = {"batch_size": 16, "disjoint": disjoint}
    binary = NegativeSampling("binary", 2)
    for number, batch in enumerate(
        LinkNeighborLoader(data, [3, 2], neg_sampling=binary, **options)
    ):
        ids = torch.arange(number * 16, number * 16 + 16)
        assert torch.equal(batch.input_id, ids)
        src, dst = batch.n_id[batch.edge_label_index]
        assert torch.equal(torch.stack([src, dst])[:, :16], data.edge_index[:, ids])
        assert batch.edge_label.tolist() == [1.0] * 16 + [0.0] * 32
        assert batch.edge_label_index.max() < batch.num_sampled_nodes[0]
        check_hops(data, batch, [3, 2])
        if disjoint:
            tree = batch.batch[batch.edge_label_index]
            assert torch.equal(tree[0], tree[1])
    triplet, ends = NegativeSampling("triplet", 3), typed[WRITES].edge_index
    batch = next(
        iter(LinkNeighborLoader(typed, [2, 2], (WRITES, ends), neg_sampling=triplet, **options))
    )
    assert torch.equal(batch["author"].n_id[batch["author"].src_index], ends[0, :16])
    assert torch.equal(batch["paper"].n_id[batch["paper"].dst_pos_index], ends[1, :16])
    assert batch["paper"].dst_neg_index.shape == (16, 3)
    check_hops(typed, batch, [2, 2])


def test_negatives_follow_their_weights() -> None:
    data, weight = graphs.plain(), torch.zeros(60)
    weight[[4, 9]] = torch.tensor([1.0, 3.0])
    negatives = NegativeSampling("triplet", 4, dst_weight=weight)
    found = torch.zeros(60)
    for batch in LinkNeighborLoader(data, [1], neg_sampling=negatives, batch_size=50, seed=2):
        found += torch.bincount(batch.n_id[batch.dst_neg_index.flatten()], minlength=60)
    assert found[[4, 9]].sum() == found.sum() == 1600
    assert stats.chisquare(found[[4, 9]].numpy(), [400, 1200]).pvalue > 0.001


def test_pyg_loaders_take_the_sampler() -> None:
    data = graphs.plain()
    sampler = NeighborSampler(data, [3, 2])
    for batch in NodeLoader(data, sampler, torch.arange(30), batch_size=10):
        check_hops(data, batch, [3, 2])
    for batch in LinkLoader(data, sampler, data.edge_index, batch_size=100, neg_sampling="binary"):
        check_hops(data, batch, [3, 2])
        assert len(batch.edge_label) == 200
