"""``dgl.nn.MetaPath2Vec``: pairs of walks, negatives, and the loss."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from gnnlab.compat.nn import MetaPath2Vec


def star() -> dgl.Graph:
    """users 0, 1 and 2 buy item 0 only; user 3 buys nothing; item 1 is bought by no one."""
    buys = ([0, 1, 2], [0, 0, 0])
    return dgl.heterograph(
        {("user", "buys", "item"): buys, ("item", "by", "user"): buys[::-1]}, {"user": 4, "item": 2}
    )


def test_pairs_are_steps_of_walks() -> None:
    model = MetaPath2Vec(star(), ["buys", "by"], window_size=1, emb_dim=4, negative_size=3)
    assert model.local_to_global_nid == {"item": [0, 1], "user": [2, 3, 4, 5]}
    u, v, negative = model.sample([torch.tensor(0), torch.tensor(3)])
    assert u[0] == 2 and v[0] == 0 and len(u) == 4  # the walk of user 3 ends at once
    assert sorted(zip(u.tolist(), v.tolist(), strict=True)) == sorted(
        zip(v.tolist(), u.tolist(), strict=True)
    )
    assert all((a == 0) != (b == 0) for a, b in zip(u.tolist(), v.tolist(), strict=True))
    assert negative.shape == (4, 3) and 1 not in negative  # item 1 is in no walk
    empty = model.sample(torch.tensor([3]))
    assert [tuple(ids.shape) for ids in empty] == [(0,), (0,), (0, 3)]
    assert model(*empty).item() == 0
    wide = MetaPath2Vec(star(), ["buys", "by"], window_size=2)
    u, v, _ = wide.sample([0])
    assert len(u) == 6 and (u[4] >= 2) and (v[4] >= 2)  # from user to user


def test_loss_and_training() -> None:
    dgl.seed(0)
    torch.manual_seed(0)
    model = MetaPath2Vec(star(), ["buys", "by"], 1, emb_dim=4, negative_size=2)
    assert model.node_embed.weight.abs().max() <= 0.25
    batch = model.sample([0, 1, 2])
    loss = model(*batch)
    torch.testing.assert_close(loss, 3 * torch.tensor(2.0).log())  # contexts are zeros
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        model(*batch).backward()
        optimizer.step()
    assert model(*batch) < loss
    dgl.seed(0)
    again = MetaPath2Vec(star(), ["buys", "by"], 1, emb_dim=4, negative_size=2).sample([0, 1, 2])
    assert all(torch.equal(x, y) for x, y in zip(again, batch, strict=True))
    with pytest.raises(dgl.DGLError, match="window_size"):
        MetaPath2Vec(star(), ["buys", "by"], window_size=3)
