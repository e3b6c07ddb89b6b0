"""The sampling kernels for GPUs, in Triton's interpreter.

The interpreter executes kernels with numpy; ``test_triton_compiles.py`` checks types.
"""

import importlib.util

import pytest

from tests.helpers import NO_TRITON, run_script

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=NO_TRITON)

# A graph with hubs among sources and destinations; from node n on, nodes have no edge.
COMMON = """
import torch
import gnnlab as dgl
from gnnlab import random
from gnnlab.dataloading import NeighborSampler
from gnnlab.helpers.block_sampler import fold, signed
from gnnlab.kernels import sample_triton

generator = torch.Generator().manual_seed(0)

def draw(n, size):
    ids = torch.randint(n, (size,), generator=generator)
    return torch.where(torch.rand(size, generator=generator) < 0.3, ids % 3, ids)

def make(n=150, m=2500, isolated=10, idtype=torch.int64):
    return dgl.graph((draw(n, m), draw(n, m)), num_nodes=n + isolated, idtype=idtype)

def keys(layers):
    return torch.tensor([signed(fold(random.next_key(), 0)) for _ in range(layers)])
"""


def interpret(script: str) -> None:
    run_script(COMMON + script, env={"TRITON_INTERPRET": "1"}, fresh=True)


def test_batches_equal_those_of_the_cpu() -> None:
    """Of any size in any order, where the table has entries of earlier batches."""
    interpret(
        """
def check(g, fanouts, replace, sizes, tag=None):
    csc, number_of_nodes = g.relation().csc(), g.num_nodes()
    workspace = sample_triton.Workspace(number_of_nodes, "cpu")
    if tag is not None:
        workspace.counters[0] = tag
    for number, size in enumerate(sizes):
        seeds = torch.randperm(number_of_nodes, generator=generator)[:size]
        with random.stream(number):
            inputs, _, blocks = NeighborSampler(fanouts, replace=replace).sample(g, seeds)
        batch = sample_triton.Batch(
            workspace, csc.indptr, csc.indices, fanouts[::-1], size, replace, g.idtype
        )
        with random.stream(number):
            batch.launch(seeds, keys(len(fanouts)))
        ids, layers = batch.result()
        assert ids.dtype == g.idtype and torch.equal(ids, inputs)
        for layer, block in zip(layers[::-1], blocks, strict=True):
            expected = block.relation().csc()
            counts = block.num_dst_nodes(), block.num_src_nodes()
            assert (layer.num_dst, layer.num_src) == counts
            assert torch.equal(layer.ptr, expected.indptr)
            assert torch.equal(layer.sizes, expected.sizes)
            assert torch.equal(layer.local, expected.indices)
            assert torch.equal(g.as_ids(csc.eids_at(layer.slots)), block.edata[dgl.EID])
    return workspace

check(make(), [4, 3], False, [5, 160, 0, 70])
check(make(idtype=torch.int32), [2, 5, 1], False, [60, 7])
check(make(), [6], True, [1, 160])
check(make(20, 800), [32], False, [25])
check(make(30, 0), [2, 2], False, [4])
# The last tags: after them, the table is emptied.
workspace = check(make(), [2], False, [9] * 4, tag=3 - 2**31)
assert workspace.counters[0] == 2**31 - 4

g = make()
csc = g.relation().csc()
workspace = sample_triton.Workspace(g.num_nodes(), "cpu")

def launch(seeds):
    batch = sample_triton.Batch(workspace, csc.indptr, csc.indices, [3, 4], len(seeds))
    batch.launch(torch.tensor(seeds), torch.tensor([1, 2]))
    return batch

seeds = [10, 11, 12, 13, 14, 15, 16, 17]
ids, layers = launch(seeds).result()
for wrong in ([4, 5, 4], [-1], [160]):
    try:
        launch(wrong).result()
    except dgl.InvalidInput:
        continue
    raise AssertionError(wrong)
assert torch.equal(launch(seeds).result()[0], ids)
"""
    )


def test_a_sampler_uses_them() -> None:
    interpret(
        """
import pickle
from gnnlab.system import accelerators

on = True
accelerators.runs_triton = lambda device: on

def sample(seeds, **options):
    with random.stream(7):
        return NeighborSampler([2, 3], **options).sample(g, seeds)

def equal(one, other):
    for a, b in zip(one[:2], other[:2], strict=True):
        assert type(a) is type(b) and (torch.equal(a, b) if torch.is_tensor(a) else a == b)
    for a, b in zip(one[2], other[2], strict=True):
        assert torch.equal(a.srcdata[dgl.NID], b.srcdata[dgl.NID])
        assert torch.equal(a.dstdata[dgl.NID], b.dstdata[dgl.NID])
        ours, theirs = (*a.edges(), a.edata[dgl.EID]), (*b.edges(), b.edata[dgl.EID])
        assert all(torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))

for idtype in (torch.int64, torch.int32):
    g = make(40, 300, idtype=idtype)
    space = g.relation().csc().workspaces
    g.edata["p"] = torch.rand(300)
    for seeds in ([3, 1, 7], torch.arange(50) < 5, torch.tensor([], dtype=torch.int32), {}):
        on = True
        made = sample(seeds)
        on = False
        equal(made, sample(seeds))

on = True
for seeds, error in ([1, 1], dgl.InvalidInput), ([50], dgl.OutOfRange), ([-1], dgl.OutOfRange):
    try:
        sample(seeds)
    except error:
        continue
    raise AssertionError(seeds)
sample([2, 1])
(one,) = space.values()
tag = int(one[0].counters[0])
# Not with these kernels: weights, excluded edges, other fanouts.
sample([1], prob="p")
NeighborSampler([2]).sample(g, [1], exclude_eids=torch.tensor([5]))
for fanouts in ([33], [-1], [0], [1] * 17):
    NeighborSampler(fanouts).sample(g, [1])
assert len(one) == 1 and one[0].counters[0] == tag
# A batch that begins while another one is not finished has a table of its own.
result = sample_triton.Batch.result

def interrupted(batch):
    sample_triton.Batch.result = result
    inner.append(sample([4, 5]))
    return result(batch)

inner, sample_triton.Batch.result = [], interrupted
outer, on = sample([6]), False
equal(outer, sample([6]))
equal(inner[0], sample([4, 5]))
assert len(one) == 2
# What kernels keep is not part of the graph.
assert g.local_var().relation().csc().workspaces is space
assert not pickle.loads(pickle.dumps(g)).relation().csc().workspaces
"""
    )
