"""Mini-batches of whole graphs."""

from itertools import chain

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import GraphDataLoader


@pytest.fixture
def dataset():
    """Ten rings of 3 to 12 nodes; the label is the size."""
    rings = []
    for n in range(3, 13):
        g = dgl.graph((torch.arange(n), torch.arange(1, n + 1) % n))
        g.ndata["x"] = torch.full((n, 2), float(n))
        rings.append((g, n))
    return rings


def sizes(loader):
    return [labels.tolist() for _, labels in loader]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_graphs_are_batched_and_labels_stacked(dataset, num_workers):
    seen = []
    for graphs, labels in GraphDataLoader(dataset, batch_size=4, num_workers=num_workers):
        assert graphs.batch_num_nodes().tolist() == labels.tolist()
        assert torch.equal(graphs.ndata["x"][:, 0], labels.repeat_interleave(labels).float())
        seen += labels.tolist()
    assert seen == list(range(3, 13))


def test_items_of_other_forms(dataset):
    (graphs,) = GraphDataLoader([g for g, _ in dataset], batch_size=10)
    assert graphs.batch_size == 10
    items = [{"graph": g, "pair": (n, torch.tensor([n]))} for g, n in dataset]
    (batch,) = GraphDataLoader(items, batch_size=10)
    assert batch["graph"].batch_size == 10
    assert [part.shape for part in batch["pair"]] == [(10,), (10, 1)]
    (count,) = GraphDataLoader(dataset, batch_size=10, collate_fn=len)
    assert count == 10


def test_the_seed_decides_the_order(dataset):
    def epochs():
        loader = GraphDataLoader(dataset, batch_size=5, shuffle=True)
        return loader, [sizes(loader), sizes(loader)]

    dgl.seed(3)
    loader, first = epochs()
    dgl.seed(3)
    assert epochs()[1] == first and first[0] != first[1]
    loader.set_epoch(1)
    again = sizes(loader)
    loader.set_epoch(1)
    assert sizes(loader) == again


def test_each_rank_gets_its_share(dataset, monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    shares = []
    for rank in (0, 1):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        loader = GraphDataLoader(dataset, use_ddp=True, ddp_seed=5, shuffle=True, batch_size=2)
        loader.set_epoch(1)
        assert len(loader) == 3
        shares += sizes(loader)
    assert sorted(chain(*shares)) == list(range(3, 13))


def test_an_empty_data_set_has_no_batch():
    with pytest.warns(UserWarning, match="empty"):
        loader = GraphDataLoader([], shuffle=True, batch_size=2)
    assert list(loader) == []


def test_two_iterations_with_the_same_workers(dataset):
    loader = GraphDataLoader(dataset, batch_size=4, num_workers=1, persistent_workers=True)
    expected = [[3, 4, 5, 6], [7, 8, 9, 10], [11, 12]]
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        (each, each) for each in expected
    ]
    for _ in loader:
        break
    assert sizes(loader) == expected


def test_a_last_batch_that_is_left_out_warns():
    with pytest.warns(UserWarning, match="drop_last"):
        assert not list(GraphDataLoader([dgl.rand_graph(2, 3)] * 3, batch_size=4, drop_last=True))
