"""``dgl.utils`` and ``dgl.base``: the helpers that layers of programs use."""

import gc
from typing import NamedTuple

import pytest
import torch

import gnnlab
from gnnlab.compat import backend, base, frame, utils
from gnnlab.compat.nn.utils import bmm_maybe_select, matmul_maybe_select
from tests.helpers import run_script


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


def test_recursive_apply() -> None:
    class Pair(NamedTuple):
        a: int
        b: list[int]

    nested = {"x": Pair(1, [2, 3]), "y": (4,), "z": torch.tensor([1])}
    found = utils.recursive_apply(nested, lambda v, k, plus=0: v * k + plus, 10, plus=1)
    assert found == {"x": Pair(11, [21, 31]), "y": (41,), "z": torch.tensor([11])}
    assert type(found["x"]) is Pair


def test_frames_of_types() -> None:
    g = gnnlab.heterograph({("a", "r", "b"): ([0, 1], [0, 0])}, {"a": 3, "b": 1})
    g.nodes["a"].data["h"], g.edata["w"] = torch.tensor([5, 6, 7]), torch.tensor([1.0, 2.0])
    first, second = utils.extract_node_subframes(g, [torch.tensor([2, 0]), torch.tensor([0])])
    assert first["h"].tolist() == [7, 5] and first[base.NID].tolist() == [2, 0]
    assert list(second) == [base.NID]
    (edges,) = utils.extract_edge_subframes(g, [torch.tensor([1])], store_ids=False)
    assert dict(edges)["w"].tolist() == [2.0] and list(edges) == ["w"]
    whole = utils.extract_node_subframes(g, None)
    del whole[0]["h"]
    assert "h" in g.nodes["a"].data
    utils.set_new_frames(g, node_frames=whole, edge_frames=utils.extract_edge_subframes(g, "cpu"))
    assert "h" not in g.nodes["a"].data and g.edata["w"].tolist() == [1.0, 2.0]
    block = gnnlab.to_block(gnnlab.graph(([1, 2], [0, 0])), [0])
    assert [f.num_rows for f in utils.extract_node_subframes(block)] == [3, 1]
    with pytest.raises(base.DGLError):
        utils.set_new_frames(g, node_frames=[first, second])
    with pytest.raises(base.DGLError):
        utils.extract_node_subframes(g, [torch.tensor([0])])


def test_shared_memory_by_name() -> None:
    made = utils.create_shared_mem_array("test-names", (2, 3), torch.int32)
    run_script(
        """
        import gnnlab.compat.as_dgl, torch
        from dgl.utils.shared_mem import get_shared_mem_array
        get_shared_mem_array("test-names", (2, 3), torch.int32)[1] = 7
        """
    )
    assert made.tolist() == [[0, 0, 0], [7, 7, 7]]
    opened = utils.get_shared_mem_array("test-names", (2, 3), torch.int32)
    with pytest.raises(base.DGLError, match="bytes"):
        utils.get_shared_mem_array("test-names", (2, 3), torch.int64)
    del made
    gc.collect()
    with pytest.raises(KeyError, match="test-names"):
        utils.get_shared_mem_array("test-names", (2, 3), torch.int32)
    assert opened[1, 0] == 7
    with pytest.raises(base.DGLError, match="slashes"):
        utils.create_shared_mem_array("../x", (1,), torch.int32)


def test_names_of_torch() -> None:
    assert backend.repeat(torch.tensor([[1, 2]]), torch.tensor([1, 2]), 1).tolist() == [[1, 2, 2]]
    drawn = backend.uniform((50, 2), torch.float64, "cpu", -3.0, -2.0)
    assert drawn.shape == (50, 2) and drawn.min() >= -3 and drawn.max() < -2
    assert frame.zero_initializer((2,), torch.int64, "cpu").tolist() == [0, 0]
    matrix, ids = torch.arange(6.0).view(3, 2), torch.tensor([2, 0], dtype=torch.int32)
    one_hot = torch.tensor([[0.0, 0, 1], [1, 0, 0]])
    assert torch.equal(matmul_maybe_select(ids, matrix), one_hot @ matrix)
    assert torch.equal(matmul_maybe_select(one_hot, matrix), one_hot @ matrix)
    several, index = torch.stack([matrix, matrix + 10]), torch.tensor([1, 0])
    expected = torch.tensor([[14.0, 15.0], [0.0, 1.0]])
    assert torch.equal(bmm_maybe_select(ids, several, index), expected)
    assert torch.equal(bmm_maybe_select(one_hot, several, index), expected)
