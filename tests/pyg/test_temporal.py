"""PyG's loaders with times: no edge is later than the seed of its tree."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")

from torch_geometric.data import Data, HeteroData

from gnnlab.errors import InvalidInput
from gnnlab.pyg import LinkNeighborLoader, NeighborLoader

NUM = 80


def edges(count: int = 900) -> dict[str, torch.Tensor]:
    return {"edge_index": torch.randint(NUM, (2, count)), "time": torch.randint(100, (count,))}


def limits(batch: Any, seed_time: torch.Tensor, time: torch.Tensor) -> int:
    """Check the times of a batch's edges; return how many there are."""
    tree = batch.batch[batch.edge_index[1]]
    assert torch.equal(tree, batch.batch[batch.edge_index[0]])
    assert bool((time[batch.e_id] <= seed_time[tree]).all())
    return len(tree)


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_edges_with_times(strategy: str) -> None:
    torch.manual_seed(0)
    data = Data(num_nodes=NUM, **edges())
    seeds, when = torch.arange(NUM).repeat(2), torch.randint(100, (2 * NUM,))
    loader = NeighborLoader(
        data, [3, 3], seeds, input_time=when, time_attr="time", temporal_strategy=strategy,
        batch_size=40, seed=1,
    )  # fmt: skip
    total = 0
    for number, batch in enumerate(loader):
        assert torch.equal(batch.n_id[:40], seeds[number * 40 :][:40])
        total += limits(batch, when[number * 40 :][:40], data.time)
    assert total > 1000


def test_nodes_with_times_and_links() -> None:
    torch.manual_seed(0)
    ends, times = torch.randint(NUM, (2, 900)), torch.randint(100, (NUM,))
    data = Data(edge_index=ends, time=times, num_nodes=NUM)
    (batch,) = NeighborLoader(data, [5, 5], torch.arange(NUM), time_attr="time", batch_size=NUM)
    assert limits(batch, data.time, data.time[data.edge_index[0]])
    for loader in (NeighborLoader(data, [4], torch.arange(9), time_attr="time", num_workers=1),):
        assert len(list(loader)) == 9
    links = torch.stack([torch.arange(30), torch.arange(30, 60)])
    when = torch.full((30,), 50)
    for batch in LinkNeighborLoader(
        data, [4], links, edge_label_time=when, time_attr="time", neg_sampling="binary",
        batch_size=30,
    ):  # fmt: skip
        used = batch.edge_index[0]
        assert bool((data.time[batch.n_id[used]] <= 50).all())
    with pytest.raises(InvalidInput, match="edge_label_time"):
        next(iter(LinkNeighborLoader(data, [4], links, time_attr="time")))


def test_types_with_times() -> None:
    torch.manual_seed(0)
    data = HeteroData()
    data["user"].num_nodes = data["item"].num_nodes = NUM
    for etype in (("user", "buys", "item"), ("item", "of", "user")):
        for name, value in edges().items():
            data[etype][name] = value
    when = torch.randint(100, (NUM,))
    loader = NeighborLoader(
        data, [3, 3], ("item", torch.arange(NUM)), input_time=when, time_attr="time",
        batch_size=NUM,
    )  # fmt: skip
    (batch,) = loader
    for etype in data.edge_types:
        tree = batch[etype[2]].batch[batch[etype].edge_index[1]]
        assert bool((data[etype].time[batch[etype].e_id] <= when[tree]).all()) and len(tree) > 100
