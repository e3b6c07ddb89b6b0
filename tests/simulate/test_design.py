"""Designs other than the ordinary one: their traffic, held by counts made elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.distributed.traffic import Count
from gnnlab.errors import InvalidInput
from gnnlab.simulate import simulate
from tests.distributed.cut import plain, typed


def epoch() -> Any:
    """Return sums of the features, and the sizes of the first block of each batch."""
    initialize()
    g = DistGraph("graph")
    ntype = g.ntypes[0] if g.is_homogeneous else "user"
    nodes = node_split(torch.arange(g.num_nodes(ntype)), g.get_partition_book(), ntype)
    nodes = nodes if g.is_homogeneous else {ntype: nodes}
    sampler = dgl.dataloading.NeighborSampler([3, 4], prefetch_node_feats=["x"])
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=20, shuffle=True, seed=1)
    sums, sizes = [], []
    for _, _, blocks in loader:
        x = blocks[0].srcdata["x"]
        sums.append(sum(v.double().sum().item() for v in (x.values() if ntype == "user" else [x])))
        block = blocks[0]
        sizes.append(
            (
                sum(block.num_src_nodes(t) for t in block.srctypes),
                sum(block.num_dst_nodes(t) for t in block.dsttypes),
                sum(block.num_edges(t) for t in block.canonical_etypes),
                len(block.canonical_etypes),
            )
        )
    return sums, sizes


def halves(g: dgl.Graph, count: int) -> Any:
    if g.is_homogeneous:
        return torch.arange(g.num_nodes()) * count // g.num_nodes()
    return {t: torch.arange(g.num_nodes(t)) * count // g.num_nodes(t) for t in g.ntypes}


@pytest.mark.parametrize("graph", [plain, typed])
@pytest.mark.parametrize("samplers", [0, 1])
def test_replicated_structure_sends_features_alone(graph: Any, samplers: int) -> None:
    options = {"part_method": halves, "samplers_per_trainer": samplers}
    ordinary = simulate(graph(), 3, **options).run(epoch)
    found = simulate(graph(), 3, **options, replicates_structure=True).run(epoch)
    assert found.returned == ordinary.returned
    assert ordinary.traffic.total("structure").requests > 0
    assert found.traffic.total("structure") == Count()
    for kind in ("features", "control"):
        assert found.traffic.total(kind) == ordinary.traffic.total(kind)
    rounds = [sum(type(op).__name__ == "RoundTrip" for t in run.lanes for op in t.ops)
              for run in (ordinary, found)]  # fmt: skip
    assert rounds[0] > rounds[1] > 0


@pytest.mark.parametrize("graph", [plain, typed])
@pytest.mark.parametrize(("machines", "samplers"), [(2, 0), (3, 1)])
def test_a_split_first_layer_moves_activations(graph: Any, machines: int, samplers: int) -> None:
    """Each of the other machines gets the first block, replies partial activations of its
    destinations, and gets their gradients; the trainers count the blocks themselves."""
    options = {"part_method": halves, "samplers_per_trainer": samplers}
    ordinary = simulate(graph(), machines, **options).run(epoch)
    found = simulate(graph(), machines, **options, first_layer=16).run(epoch)
    assert found.returned == ordinary.returned
    others = machines - 1
    sizes = [size for _, of_rank in found.returned for size in of_rank]
    out = sum(4 * src + 4 * edges + 8 * (dst + types) for src, dst, edges, types in sizes)
    rows = sum(4 * 16 * dst for _, dst, _, _ in sizes)
    features, gradients = (found.traffic.total(kind) for kind in ("features", "gradients"))
    assert features == Count(len(sizes) * others, 0, out * others, rows * others)
    assert gradients == Count(len(sizes) * others, 0, rows * others, 0)
    assert found.traffic.total("structure") == ordinary.traffic.total("structure")


def needed() -> Any:
    """Return the input nodes of each batch of two epochs, of other machines alone."""
    initialize()
    g = DistGraph("graph")
    book = g.get_partition_book()
    nodes = node_split(torch.arange(g.num_nodes()), book)
    sampler = dgl.dataloading.NeighborSampler([3, 4], prefetch_node_feats=["x"])
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=4, shuffle=True, seed=1)
    found = []
    for _ in range(2):
        batches = []
        for inputs, _, blocks in loader:
            assert torch.equal(blocks[0].srcdata["x"], g.ndata["x"][inputs])  # counted as well
            batches.append(inputs[book.nid2partid(inputs) != g.rank()].tolist())
        found.append(batches)
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_a_macro_batch_fetches_each_row_once(count: int) -> None:
    """Its rows are the union of those of its batches; reads outside a loader are all counted."""
    found = simulate(plain(), 3, part_method=halves, macro_batches=count).run(needed)
    epochs = [epoch for of_rank in found.returned for epoch in of_rank]
    again = sum(len(batch) for epoch in epochs for batch in epoch)
    unions = sum(
        len(set().union(*epoch[i : i + count]))
        for epoch in epochs
        for i in range(0, len(epoch), count)
    )
    assert min(map(len, epochs)) > 3 and (unions < again) == (count > 1)
    features = found.traffic.total("features")
    assert features.rows == again + unions
    ordinary = simulate(plain(), 3, part_method=halves).run(needed)
    assert ordinary.returned == found.returned
    assert found.traffic.total("structure") == ordinary.traffic.total("structure")
    row = plain().ndata["x"][0].numel() * plain().ndata["x"].element_size()
    saved = ordinary.traffic.total("features")
    fewer = saved.requests - features.requests
    payload = (again - unions) * (8 + row)
    headers = saved.bytes_in + saved.bytes_out - features.bytes_in - features.bytes_out - payload
    assert (headers > 0) == (fewer > 0)


def test_macro_batches_are_of_one_loader() -> None:
    with pytest.raises(InvalidInput, match="macro_batches needs samplers_per_trainer=0"):
        simulate(plain(), 2, part_method=halves, macro_batches=2, samplers_per_trainer=1)
