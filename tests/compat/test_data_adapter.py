"""Data sets made ready for a task: about nodes, about edges, about whole graphs."""

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.compat.data import AsGraphPredDataset, AsLinkPredDataset, AsNodePredDataset
from gnnlab.errors import OutOfRange


class OgbLike:
    """What OGB's own loader returns: a pair, and the split apart."""

    name = "ogb-like"

    def __getitem__(self, index):
        return dgl.graph(([0, 1], [1, 2]), num_nodes=4), torch.tensor([[0], [1], [2], [1]])

    def get_idx_split(self):
        return {"train": torch.tensor([2, 0]), "valid": np.array([1]), "test": torch.tensor([3])}


def test_as_node_pred_dataset():
    dataset = AsNodePredDataset(OgbLike())
    g = dataset[0]
    assert g.ndata["label"].tolist() == [0, 1, 2, 1]
    assert g.ndata["train_mask"].tolist() == [True, False, True, False]
    assert (dataset.num_classes, dataset.test_idx.tolist(), len(dataset)) == (3, [3], 1)
    again = AsNodePredDataset([g])
    assert (again.train_idx.tolist(), again.val_idx.tolist()) == ([0, 2], [1])
    drawn = AsNodePredDataset([g], split_ratio=(0.5, 0.25, 0.25))
    assert g.ndata["train_mask"].tolist() == [True, False, True, False]
    assert [len(ids) for ids in (drawn.train_idx, drawn.val_idx, drawn.test_idx)] == [2, 1, 1]
    with pytest.raises(OutOfRange):
        dataset[1]


# ------------------------------------------------------------------- edges


def pairs(ends):
    return list(zip(ends[0].tolist(), ends[1].tolist(), strict=True))


def test_every_edge_is_in_one_set_together_with_its_reverse():
    g = dgl.data.load("digits")[0]
    dataset = AsLinkPredDataset([g])
    train = pairs(dataset[0].edges())
    (val, no_val), (test, no_test) = (
        [pairs(ends) for ends in both] for both in (dataset.val_edges, dataset.test_edges)
    )
    assert sorted(train + val + test) == sorted(pairs(g.edges()))
    for part in (train, val, test):
        assert {(v, u) for u, v in part} == set(part)
    assert (len(train), len(val), len(test)) == (15886, 1986, 1986)
    assert (len(no_val), len(no_test)) == (3 * 1986, 3 * 1986)
    assert len({*no_val, *no_test}) == 6 * 1986
    assert not {*no_val, *no_test} & set(pairs(g.edges()))
    assert all(u != v for u, v in no_val + no_test)
    assert dataset[0].ndata["feat"] is g.ndata["feat"]
    assert dataset.num_classes is None
    with pytest.raises(OutOfRange):
        dataset[1]


def test_link_prediction_draws_the_same_whatever_the_base_seed():
    digits = dgl.data.load("digits")
    drawn = []
    for base, seed in ((1, 0), (2, 0), (2, 5)):
        dgl.seed(base)
        dataset = AsLinkPredDataset(digits, (0.5, 0.2, 0.3), neg_ratio=1, seed=seed)
        drawn.append((*dataset.val_edges, *dataset.test_edges))
        assert dataset.num_classes == 10
    first, again, other = ([pairs(ends) for ends in sets] for sets in drawn)
    assert first == again
    assert not any(one == two for one, two in zip(first, other, strict=True))


def test_link_prediction_keeps_directions_self_loops_and_features():
    """Of 20 edges one way, 10 are kept; both loops stay; edge features follow."""
    src, dst = torch.arange(20), torch.arange(1, 21)
    g = dgl.graph((torch.cat([src, src[:2]]), torch.cat([dst, src[:2]])), idtype=torch.int32)
    g.edata["name"] = torch.arange(22)
    dataset = AsLinkPredDataset([g], (0.5, 0.25, 0.25), neg_ratio=2, verbose=False)
    train = dataset[0]
    assert train.num_edges() == 12
    assert pairs(train.edges())[-2:] == [(0, 0), (1, 1)]
    assert [pairs(g.edges())[i] for i in train.edata["name"]] == pairs(train.edges())
    for (positive, negative), count in ((dataset.val_edges, 5), (dataset.test_edges, 5)):
        assert (len(positive[0]), len(negative[0])) == (count, 2 * count)
        assert positive[0].dtype == negative[1].dtype == torch.int32


def test_link_prediction_of_a_dense_graph_finds_what_there_is():
    """Four nodes have twelve pairs; ten are edges, of which eight are held out."""
    ends = torch.tensor([(u, v) for u in range(4) for v in range(4) if u != v][:10]).T
    dataset = AsLinkPredDataset([dgl.graph(tuple(ends))], (0.2, 0.4, 0.4))
    found = pairs(dataset.val_edges[1]) + pairs(dataset.test_edges[1])
    assert sorted(found) == [(3, 1), (3, 2)]
    nothing = AsLinkPredDataset([dgl.graph(tuple(ends))], (1, 0, 0))
    assert nothing[0].num_edges() == 10
    assert pairs(nothing.val_edges[1]) == pairs(nothing.test_edges[0]) == []


# ------------------------------------------------------------------- whole graphs


def test_as_graph_pred_dataset():
    graphs = [(dgl.rand_graph(3 + n, 5), torch.tensor(n % 3)) for n in range(20)]
    dataset = AsGraphPredDataset(graphs)
    parts = (dataset.train_idx, dataset.val_idx, dataset.test_idx)
    assert [len(ids) for ids in parts] == [16, 2, 2]
    assert sorted(torch.cat(parts).tolist()) == list(range(20))
    assert all(ids.dtype == torch.int64 for ids in parts)
    assert (len(dataset), dataset.num_classes, dataset.num_tasks) == (20, 3, 1)
    g, label = dataset[7]
    assert (g, label) == graphs[7]
    other = AsGraphPredDataset(graphs, (0.5, 0.25, 0.25), seed=1)
    assert [len(ids) for ids in (other.train_idx, other.val_idx, other.test_idx)] == [10, 5, 5]
    loader = dgl.dataloading.GraphDataLoader(
        dataset, sampler=torch.utils.data.SubsetRandomSampler(dataset.train_idx), batch_size=16
    )
    ((both, labels),) = loader
    assert (both.batch_size, len(labels)) == (16, 16)
