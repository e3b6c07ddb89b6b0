"""Seeds that a sampler draws, perhaps several times in a batch: a row for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, WeightedRandomSampler

import gnnlab as dgl
from gnnlab.dataloading import DataLoader, NeighborSampler
from gnnlab.errors import InvalidInput, OutOfRange
from tests.dataloading.samples import SAMPLERS, content, friends, players


def in_edges(block: dgl.Graph, ntype: str) -> list[Any]:
    """Node, source nodes and edges of each destination of a type, by original IDs."""
    found: list[Any] = [[node] for node in block.dst_frames[ntype][dgl.NID].tolist()]
    for etype in block.canonical_etypes:
        src, dst, edges = block.edges(form="all", etype=etype)
        names = block.src_frames[etype[0]][dgl.NID][src.long()].tolist()
        eids = block.edges[etype].data[dgl.EID][edges.long()].tolist()
        for v, *edge in zip(dst.tolist(), eids, names, strict=True) if etype[2] == ntype else ():
            found[v].append((etype, *edge))
    return found


@pytest.mark.parametrize("name", [*SAMPLERS, "typed"])
def test_a_row_for_each_seed(name: str) -> None:
    """That of the same batch with each seed once, in all layers; features go along."""
    g, ntype = (players(), "user") if name == "typed" else (friends(), "_N")
    drawn, seeds = [4, 7, 4, 4, 2, 7], torch.arange(10, 20)

    def batch(positions: list[int]) -> Any:
        sampler = SAMPLERS.get(name, SAMPLERS["some"])()
        options = {"batch_size": 6, "seed": 3, "sampler": positions}
        return next(iter(DataLoader(g, {ntype: seeds}, sampler, **options)))

    (_, outputs, blocks), (_, _, once) = batch(drawn), batch([2, 4, 7])
    assert outputs[ntype].tolist() == seeds[drawn].tolist()
    for ours, theirs in zip(blocks, once, strict=True):
        assert torch.equal(ours.dst_frames[ntype][dgl.NID][:6], seeds[drawn])
        for kind in theirs.dst_frames:
            expected, found = (
                {rows[0]: rows for rows in in_edges(b, kind)} for b in (theirs, ours)
            )
            assert found == expected
            assert in_edges(ours, kind) == [expected[rows[0]] for rows in in_edges(ours, kind)]
    assert blocks[0].num_dst_nodes() == blocks[1].num_src_nodes()
    frame = blocks[0].src_frames[ntype]
    assert torch.equal(frame["x"], g.nodes[ntype].data["x"][frame[dgl.NID]])


def test_drawn_by_the_key_of_the_epoch() -> None:
    """Equal for workers and after resuming; ranks share what one process draws, in equal steps."""
    g = friends()

    def loader(**options: Any) -> DataLoader:
        rare = WeightedRandomSampler(torch.arange(100) % 20 + 0.01, 90)
        sampler = NeighborSampler([3, 3])
        return DataLoader(g, range(100), sampler, batch_size=20, sampler=rare, seed=1, **options)

    expected = content(loader())
    assert content(loader(num_workers=2)) == expected
    ranks = [torch.cat([b[1] for b in loader(use_ddp=(rank, 2))]) for rank in (0, 1)]
    assert torch.equal(torch.stack(ranks, 1).flatten(), torch.cat([b[1] for b in loader()]))
    first = loader()
    states = [first.state_dict() for _ in first]
    again = loader()
    again.load_state_dict(states[1])
    assert content(again) == expected[2:]


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"sampler": NeighborSampler([2])}, InvalidInput, "NeighborSampler"),
        ({"sampler": range(3), "shuffle": True}, InvalidInput, "shuffle"),
        ({"sampler": [1, 10]}, OutOfRange, "10"),
        ({"sampler": BatchSampler(range(10), 2, False)}, InvalidInput, r"\(5, 2\)"),
    ],
)
def test_what_is_no_sampler_of_seeds(options: Any, error: Any, named: str) -> None:
    with pytest.raises(error, match=named):
        list(DataLoader(friends(), range(10), NeighborSampler([2]), **options))
