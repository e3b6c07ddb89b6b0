"""Sparse optimizers of one machine against torch's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

import gnnlab as core
import gnnlab.compat as dgl
from tests.helpers import run_ranks

ROWS, WIDTH = 12, 3


def ids_of(step: int, every_row: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(step)
    some = torch.randint(ROWS, (7,), generator=generator)
    return torch.cat([torch.arange(ROWS), some]) if every_row else some


def target(ids: torch.Tensor) -> torch.Tensor:
    return (ids[:, None] + torch.arange(WIDTH)).sin()


def trained(kind: str, every_row: bool, steps: int = 30) -> torch.Tensor:
    """Rows after some steps with gnnlab's optimizer."""
    emb = dgl.nn.NodeEmbedding(ROWS, WIDTH, "x", init_func=first_rows)
    optimizer = getattr(dgl.optim, kind)([emb], lr=0.1)
    for step in range(steps):
        ids = ids_of(step, every_row)
        half = len(ids) // 2  # two lookups, as of two blocks
        loss = (emb(ids[:half]) - target(ids[:half])).square().sum()
        loss = loss + (emb(ids[half:]) - target(ids[half:])).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return emb.weight


def first_rows(rows: torch.Tensor) -> torch.Tensor:
    return rows.copy_(torch.arange(ROWS * WIDTH).reshape(ROWS, WIDTH) / 10)


def with_torch(make: Any, every_row: bool, sparse: bool, steps: int = 30) -> torch.Tensor:
    layer = torch.nn.Embedding(ROWS, WIDTH, sparse=sparse)
    with torch.no_grad():
        first_rows(layer.weight)
    optimizer = make(layer.parameters())
    for step in range(steps):
        ids = ids_of(step, every_row)
        optimizer.zero_grad()
        (layer(ids) - target(ids)).square().sum().backward()
        optimizer.step()
    return layer.weight.detach()


@pytest.mark.parametrize("every_row", [False, True])
def test_adagrad_is_dense_adagrad(every_row: bool) -> None:
    """A row without a gradient does not move under Adagrad, so all rows agree."""
    dense = with_torch(lambda p: torch.optim.Adagrad(p, 0.1, eps=1e-10), every_row, sparse=False)
    assert torch.allclose(trained("SparseAdagrad", every_row), dense, atol=1e-5)


def test_adam_is_dense_adam_where_all_rows_are_read() -> None:
    dense = with_torch(lambda p: torch.optim.Adam(p, 0.1), True, sparse=False)
    assert torch.allclose(trained("SparseAdam", True), dense, atol=1e-5)


def test_adam_is_torchs_sparse_adam_where_some_are() -> None:
    sparse = with_torch(lambda p: torch.optim.SparseAdam(list(p), 0.1), False, sparse=True)
    assert torch.allclose(trained("SparseAdam", False), sparse, atol=1e-5)
    dense = with_torch(lambda p: torch.optim.Adam(p, 0.1), False, sparse=False)
    assert not torch.allclose(trained("SparseAdam", False), dense, atol=1e-2)


@pytest.mark.parametrize("kind", ["SparseAdam", "SparseAdagrad"])
def test_state_continues(kind: str) -> None:
    def steps(emb: Any, optimizer: Any, numbers: range) -> None:
        for step in numbers:
            ids = ids_of(step, False)
            (emb(ids) - target(ids)).square().sum().backward()
            optimizer.step()

    one = dgl.nn.NodeEmbedding(ROWS, WIDTH, init_func=first_rows)
    optimizer = getattr(dgl.optim, kind)([one], lr=0.1)
    steps(one, optimizer, range(5))
    two = dgl.nn.NodeEmbedding(ROWS, WIDTH)
    other = getattr(dgl.optim, kind)([two], lr=0.9)
    two.load_state_dict({"weight": one.state_dict()["weight"].clone()})
    other.load_state_dict(optimizer.state_dict())
    assert other.lr == pytest.approx(0.1)
    for emb, each in (one, optimizer), (two, other):
        steps(emb, each, range(5, 10))
    assert torch.equal(one.weight, two.weight) and not torch.equal(one.weight, torch.zeros(1))
    with pytest.raises(core.InvalidInput, match="of 1 embeddings"):
        other.load_state_dict({"rule": "sgd", "states": []})


def test_lookups() -> None:
    emb = dgl.nn.NodeEmbedding(4, 2, "u", init_func=torch.nn.init.ones_)
    optimizer = dgl.optim.SparseAdagrad([emb], lr=1.0)
    with torch.no_grad():
        assert not emb(torch.tensor([1])).requires_grad
    emb(torch.tensor([0])).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    assert (emb.weight == 1).all()  # the gradient was discarded
    emb(torch.tensor([0]))  # no loss depends on it
    emb([2]).sum().backward()
    optimizer.step()
    assert emb.weight.tolist() == [[1, 1], [1, 1], [0, 0], [1, 1]]
    assert emb.optm_state[0].tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]
    assert torch.equal(emb.all_get_embedding(), emb.weight)
    emb.all_set_embedding(torch.zeros(4, 2))
    assert not emb.weight.any()
    with pytest.raises(core.OutOfRange):
        emb([4])
    with pytest.raises(core.InvalidInput, match="expected shape"):
        emb.all_set_embedding(torch.zeros(3, 2))
    with pytest.raises(core.InvalidInput, match="init_func"):
        dgl.nn.NodeEmbedding(4, 2, init_func=lambda rows: rows[:1])


def rank_job(rank: int, world: int) -> list[list[float]]:
    """Two ranks with a share of the batch each; the mean of their losses."""
    torch.distributed.init_process_group("gloo")
    emb = dgl.nn.NodeEmbedding(ROWS, WIDTH, init_func=lambda rows: rows.fill_(rank + 1.0))
    optimizer = dgl.optim.SparseAdagrad([emb], lr=0.1)
    for step in range(4):
        ids = ids_of(step, True)[rank::world]
        if step == 2 and rank == 1:
            ids = ids[:0]  # a rank whose batch reads none
        if len(ids):
            (emb(ids) - target(ids)).square().sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
    return emb.weight.tolist()


RANK = """
import json, os
from tests.compat.test_optim import rank_job
print(json.dumps(rank_job(int(os.environ["RANK"]), 2)))
"""


def test_ranks_average_and_agree() -> None:
    found = [json.loads(printed) for printed in run_ranks(RANK, 2)]
    assert found[0] == found[1]
    weight = torch.ones(ROWS, WIDTH, requires_grad=True)
    optimizer = torch.optim.Adagrad([weight], 0.1, eps=1e-10)
    for step in range(4):
        ids = ids_of(step, True)[:: 2 if step == 2 else 1]
        optimizer.zero_grad()
        ((weight[ids] - target(ids)).square().sum() / 2).backward()
        optimizer.step()
    assert torch.allclose(torch.tensor(found[0]), weight, atol=1e-5)
