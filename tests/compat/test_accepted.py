"""Parameters of DGL without a use here: adapters drop them, by name and by place."""

from __future__ import annotations

import importlib
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab
import gnnlab.compat as dgl
from gnnlab.compat.accepted import DROPPED, adapted, warn_of_graphbolt

ENTRIES = [
    (getattr(importlib.import_module(module), name), table)
    for module, names in DROPPED.items()
    for several, table in names.items()
    for name in several.split()
]


@pytest.mark.parametrize(("original", "table"), ENTRIES, ids=lambda x: getattr(x, "__name__", ""))
def test_entries_of_the_table(original: Any, table: str) -> None:
    """gnnlab has no such parameter; the adapter is where pickle looks for it, and found by DGL."""
    names = {entry.partition("@")[0].partition(">")[0] for entry in table.split()}
    assert names.isdisjoint(inspect.signature(original).parameters)
    made = adapted(original)
    assert made is not original and adapted(made) in (made, adapted(original))
    home = importlib.import_module(made.__module__)
    assert getattr(home, made.__name__) is made and pickle.loads(pickle.dumps(made)) is made


def graph() -> gnnlab.Graph:
    return dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]), row_sorted=True, col_sorted=False)


def test_by_name_and_by_place() -> None:
    g, sampler = graph(), dgl.dataloading.NeighborSampler([2], fused=False, return_eids=True)
    assert type(sampler) is gnnlab.dataloading.NeighborSampler
    # device, use_ddp, ddp_seed, batch_size, drop_last, shuffle, then three without a use, use_uva
    options = (None, False, 0, 2, False, False, True, None, False, False)
    loader = dgl.dataloading.DataLoader(g, [0, 1, 2], sampler, *options, pin_memory=True)
    assert len(loader) == 2 and type(loader) is gnnlab.dataloading.DataLoader
    assert len(dgl.dataloading.DataLoader(g, [1], block_sampler=sampler, batch_size=1)) == 1
    for kind in (dgl.dataloading.NodeDataLoader, dgl.dataloading.EdgeDataLoader):
        assert len(kind(g, [0, 1], sampler, use_prefetch_thread=True, pin_prefetcher=False)) == 2
    full = dgl.dataloading.MultiLayerFullNeighborSampler(2, True)
    assert full.fanouts == [-1, -1]
    pairs = dgl.sampling.global_uniform_negative_sampling(g, 2, True, False, None, 1.5)
    assert len(pairs[0]) == 2
    negative = dgl.dataloading.negative_sampler.GlobalUniform(2, True, False, 1.5)
    assert negative.k == 2 and not negative.replace
    part = dgl.node_subgraph(g, [0, 1], output_device="meta")
    hops, new_ids = dgl.khop_in_subgraph(g, [0], 1, output_device="meta")
    assert (part.device.type, hops.device.type, new_ids.tolist()) == ("meta", "meta", [0])
    with pytest.raises(TypeError, match="fussed"):
        dgl.dataloading.NeighborSampler([2], fussed=True)
    with pytest.raises(gnnlab.InvalidInput):
        dgl.sampling.global_uniform_negative_sampling(3, 2)


def test_partitions(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Of a format for GraphBolt, one warning says that there is no other."""
    warn_of_graphbolt.cache_clear()
    known = {"graph_formats": "csc", "use_graphbolt": True, "store_eids": False}
    known |= {"store_inner_node": True, "store_inner_edge": True}
    dgl.distributed.partition_graph(graph(), "g", 1, tmp_path, part_method="random", **known)
    assert not [each for each in recwarn if "no use for" in str(each.message)]
    part = dgl.distributed.load_partition(tmp_path / "g.json", 0, True, False)
    assert part[0].num_edges() == 4
    dgl.distributed.initialize()
    config = tmp_path / "g.json"
    g = dgl.distributed.DistGraph("g", part_config=config, use_graphbolt=True)
    assert g.num_edges() == 4
    assert len([each for each in recwarn if "use_graphbolt" in str(each.message)]) == 1


def test_classes_that_programs_derive() -> None:
    class Mine(dgl.dataloading.NeighborSampler):
        def __init__(self, fanouts: list[int]) -> None:
            super().__init__(fanouts, return_eids=True)

    mine, theirs = Mine([2]), gnnlab.dataloading.NeighborSampler([2])
    kind = dgl.dataloading.MultiLayerNeighborSampler
    assert isinstance(mine, Mine) and isinstance(mine, kind) and isinstance(theirs, kind)
    assert not isinstance(theirs, Mine) and issubclass(Mine, gnnlab.dataloading.BlockSampler)
    assert issubclass(gnnlab.dataloading.LaborSampler, kind)
    blocks = mine.sample(graph(), torch.tensor([0]))[2]
    assert blocks[0].num_edges() == 1
