"""``dgl.utils`` and ``dgl.base``: the helpers that layers of programs use."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

import gnnlab
from gnnlab.compat import base, utils


def test_expand_as_pair() -> None:
    feat, other = torch.randn(3, 2), torch.randn(2, 2)
    assert utils.expand_as_pair(feat) == (feat, feat)
    assert utils.expand_as_pair((feat, other)) == (feat, other)
    g = gnnlab.graph(([0, 1, 2], [0, 0, 1]), num_nodes=3)
    assert utils.expand_as_pair(feat, g) == (feat, feat)
    block = gnnlab.to_block(g, torch.tensor([0, 1]))
    source, destination = utils.expand_as_pair(feat, block)
    assert source is feat and torch.equal(destination, feat[:2])
    typed = gnnlab.heterograph({("a", "r", "b"): ([0, 1], [0, 0]), ("b", "s", "b"): ([1], [0])})
    block = gnnlab.to_block(typed, {"b": torch.tensor([0])})
    feats = {ntype: torch.randn(block.num_src_nodes(ntype), 1) for ntype in ("a", "b")}
    source, destination = utils.expand_as_pair(feats, block)
    assert source is feats
    assert {k: tuple(v.shape) for k, v in destination.items()} == {"a": (0, 1), "b": (1, 1)}


def test_check_eq_shape() -> None:
    utils.check_eq_shape((torch.ones(3, 2), torch.ones(5, 2)))
    utils.check_eq_shape(torch.ones(3))
    with pytest.raises(base.DGLError, match=r"rows of shape \(2,\), .* \(3,\)"):
        utils.check_eq_shape((torch.ones(3, 2), torch.ones(5, 3)))


def test_recursive_apply() -> None:
    class Pair(NamedTuple):
        a: int
        b: list[int]

    nested = {"x": Pair(1, [2, 3]), "y": (4,), "z": torch.tensor([1])}
    found = utils.recursive_apply(nested, lambda v, k, plus=0: v * k + plus, 10, plus=1)
    assert found == {"x": Pair(11, [21, 31]), "y": (41,), "z": torch.tensor([11])}
    assert type(found["x"]) is Pair


def test_base() -> None:
    assert base.is_internal_column(base.EID) and not base.is_internal_column("h")
    with pytest.warns(base.DGLWarning, match="careful") as caught:
        base.dgl_warning("careful")
    assert caught[0].filename == __file__
