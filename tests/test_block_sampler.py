"""The helper that samples with torch alone: it gives the blocks that the library gives.

The toy graph, edge IDs on the arrows::

    1 --0--> 0      3 --2--> 1      5 --4--> 2
    2 --1--> 0      4 --3--> 1
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab import random
from gnnlab.helpers import block_sampler as small
from tests.accelerator import GPU, no_waits
from tests.helpers import run_script

SRC, DST = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([0, 0, 1, 1, 2])


@pytest.fixture
def toy() -> small.Graph:
    return small.Graph(SRC, DST, num_nodes=6)


# ---------------------------------------------------------------------------------- graphs
def test_a_graph_is_made_from_edges_csc_arrays_edge_index_or_a_graph_of_the_library() -> None:
    src, dst = torch.tensor([2, 0, 1, 0]), torch.tensor([1, 2, 2, 1])
    library = dgl.graph((src, dst))
    for g in (
        small.Graph(src, dst),
        small.Graph(*torch.stack([src, dst])),
        small.Graph(*library.edges(), num_nodes=library.num_nodes()),
    ):
        assert (g.num_nodes(), g.num_edges()) == (3, 4)
        indptr, indices, eids = g.csc()
        assert indptr.tolist() == [0, 0, 2, 4]
        assert indices.tolist() == [2, 0, 0, 1]
        assert eids.tolist() == [0, 3, 1, 2]
        assert [ends.tolist() for ends in g.edges()] == [src.tolist(), dst.tolist()]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([0, 0], r"torch\.unique"),
        ([6], "allowed: 0 to 5"),
        (torch.ones(6, dtype=torch.bool), "nonzero"),
        (torch.tensor([[0]]), r"shape \(1, 1\)"),
        (None, "found None"),
    ],
)
def test_seeds_that_cannot_be_sampled_are_refused(toy, seeds, message) -> None:
    with pytest.raises(ValueError, match=message):
        small.NeighborSampler([2]).sample(toy, seeds)


def test_ids_may_be_integers_of_any_size(toy) -> None:
    expected = small.NeighborSampler([-1]).sample(toy, [0, 5])[0]
    for dtype in ("uint8", "uint16", "uint32", "int32"):
        ids = np.array([0, 5], dtype=dtype)
        assert torch.equal(small.NeighborSampler([-1]).sample(toy, ids)[0], expected)


# ---------------------------------------------------------------------------------- blocks


def test_the_adjacency_sums_or_averages_messages(toy) -> None:
    block = small.NeighborSampler([-1]).sample(toy, [0, 5, 1])[2][0]
    assert block.srcdata[small.NID].tolist() == [0, 5, 1, 2, 3, 4]
    h = torch.tensor([[0.0], [1], [2], [3], [4], [7]])
    assert (block.adjacency() @ h).flatten().tolist() == [2 + 3, 0, 4 + 7]
    assert (block.adjacency(mean=True) @ h).flatten().tolist() == [2.5, 0, 5.5]
    of_columns = block.adjacency(mean=True) @ h.double().expand(6, 2).reshape(6, 2, 1)
    assert of_columns.dtype == torch.float64
    assert of_columns.tolist() == [[[2.5]] * 2, [[0]] * 2, [[5.5]] * 2]
    x = h.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: block.adjacency(mean=True) @ x, x)


def test_a_sampler_of_ones_own(toy) -> None:
    class OldestEdge(small.BlockSampler):
        def sample_frontier(self, layer_id, g, seed_nodes):
            frontier = small.in_subgraph(g, seed_nodes)
            src, dst = frontier.edges()
            is_first = torch.ones(len(dst), dtype=torch.bool)
            is_first[1:] = dst[1:] != dst[:-1]
            oldest = small.Graph(src[is_first], dst[is_first], g.num_nodes())
            oldest.edata[small.EID] = frontier.edata[small.EID][is_first]
            return oldest

    input_nodes, _, blocks = OldestEdge(2).sample(toy, [0, 2])
    assert [block.edata[small.EID].tolist() for block in blocks] == [[0, 4, 2], [0, 4]]
    assert input_nodes.tolist() == [0, 2, 1, 5, 3]
    with pytest.raises(NotImplementedError, match="sample_frontier"):
        small.BlockSampler(1).sample(toy, [0])


# ------------------------------------------------------------------- equal to the library
@settings(deadline=None)
@given(data=st.data())
def test_blocks_equal_those_of_the_library(data) -> None:
    n = data.draw(st.integers(1, 30))
    ends = st.lists(st.integers(0, n - 1), max_size=120)
    src = data.draw(ends)
    dst = data.draw(st.lists(st.integers(0, n - 1), min_size=len(src), max_size=len(src)))
    seeds = data.draw(st.lists(st.integers(0, n - 1), unique=True, min_size=1))
    fanouts = data.draw(st.lists(st.integers(-1, 6), min_size=1, max_size=3))
    replace, key = data.draw(st.booleans()), data.draw(st.integers(0, 2**64 - 1))
    library = dgl.graph((src, dst), num_nodes=n)
    with random.stream(key, 3):
        expected = dgl.dataloading.NeighborSampler(fanouts, replace=replace).sample(library, seeds)
    sampler = small.NeighborSampler(fanouts, replace)
    found = sampler.sample(small.Graph(src, dst, n), seeds, key=small.fold(key, 3))
    check_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("seeds_there", [False, True])
@pytest.mark.parametrize("fanouts", [[-1], [2, 3], [9, -1, 1]])
def test_a_gpu_samples_the_same_blocks(fanouts, seeds_there, replace) -> None:
    src, dst = torch.arange(300) * 7 % 41, torch.arange(300) * 11 % 41
    src[::5], seeds = dst[::3][:60], torch.tensor([40, 3, 17, 0])
    sampler = small.NeighborSampler(fanouts, replace)
    expected = sampler.sample(small.Graph(src, dst, 41), seeds, key=5)
    there = small.Graph(src.to(GPU), dst.to(GPU), 41)
    found = sampler.sample(there, seeds.to(GPU) if seeds_there else seeds, key=5)
    assert all(ids.device.type == GPU for ids in found[:2])
    x = torch.arange(41.0)[:, None] / 41
    for mine, theirs in zip(found[2], expected[2], strict=True):
        assert mine.edges()[0].device.type == GPU
        for mean in (False, True):
            h = x[theirs.srcdata[small.NID]]
            here, there = h.clone().requires_grad_(), h.to(GPU).requires_grad_()
            with no_waits():
                out = mine.adjacency(mean) @ there
                out.sum().backward()
            same = theirs.adjacency(mean) @ here
            same.sum().backward()
            torch.testing.assert_close(out.cpu(), same)
            torch.testing.assert_close(there.grad.cpu(), here.grad)
    on_cpu = [block.to("cpu") for block in found[2]]
    check_equal((found[0].cpu(), found[1].cpu(), on_cpu), expected)


def test_calls_outside_a_stream_count_from_the_seed(toy) -> None:
    library = dgl.graph((SRC, DST), num_nodes=6)
    dgl.seed(11)
    small.seed(11)
    for _ in range(3):
        expected = dgl.dataloading.NeighborSampler([1, 1]).sample(library, [0, 1])
        check_equal(small.NeighborSampler([1, 1]).sample(toy, [0, 1]), expected)
        frontier = dgl.sampling.sample_neighbors(library, [0], 1)
        assert small.sample_neighbors(toy, [0], 1).edata[small.EID].tolist() == (
            frontier.edata[dgl.EID].tolist()
        )


def check_equal(found, expected) -> None:
    for mine, theirs in zip(found[:2], expected[:2], strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(found[2], expected[2], strict=True):
        assert mine.num_src_nodes() == theirs.num_src_nodes()
        assert mine.num_dst_nodes() == theirs.num_dst_nodes()
        for a, b in zip(mine.edges(), theirs.edges(), strict=True):
            assert torch.equal(a, b)
        assert torch.equal(mine.edata[small.EID], theirs.edata[dgl.EID])


@pytest.mark.parametrize("name", ["fork", "block_sampler", "ddp_loader", "dist_graph_simulator"])
def test_a_helper_needs_torch_alone_and_says_where_it_is_from(name) -> None:
    path = Path(small.__file__).with_name(f"{name}.py")
    tree = ast.parse(path.read_text("utf8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            assert {name.split(".")[0] for name in names} <= {
                *sys.stdlib_module_names,
                "torch",
                "block_sampler",
            }
    origin = (ast.get_docstring(tree) or "").splitlines()[2:5]
    assert origin == [
        f"Origin:  gnnlab/helpers/{name}.py",
        f"Version: gnnlab {dgl.__version__}",
        "License: Apache-2.0",
    ]


def test_importing_the_helpers_loads_none_of_them() -> None:
    printed = run_script(
        """
        import sys
        import gnnlab

        before = set(sys.modules)
        import gnnlab.helpers
        print(sorted(set(sys.modules) - before - {"gnnlab.helpers"}))
        from gnnlab.helpers import (
            BlockSampler, DDPLoader, DistGraphSimulator, block_sampler, fix_openmp, prepare_mp
        )
        print(BlockSampler is block_sampler.BlockSampler, gnnlab.helpers.prepare_mp is prepare_mp)
        """,
        fresh=True,
    )
    assert printed.splitlines() == ["[]", "True True"]
    with pytest.raises(AttributeError, match="no 'Sampler'; it has BlockSampler, DDPLoader"):
        _ = dgl.helpers.Sampler
    assert {"BlockSampler", "fork"} <= set(dir(dgl.helpers))


def test_source_shows_the_code_of_a_file_without_docstrings() -> None:
    shown = dgl.helpers.source(small.BlockSampler.sample_blocks, small.Block)
    first, second = shown.split("\n\n# ")
    assert first.splitlines()[0] == "# block_sampler.py: BlockSampler.sample_blocks"
    assert first.splitlines()[2].startswith("    seeds, blocks = seed_nodes")
    assert second.startswith("block_sampler.py: Block\nclass Block(_OnDevice):\n    def __init__")
    assert '"""' not in shown and "    # " not in first
    compile(shown, "shown", "exec")
    assert repr(shown) == shown
    assert shown._repr_markdown_() == f"```python\n{shown}\n```"
