"""Seeds that stand in a batch several times, such as those that a sampler of rare labels draws.

Block samplers take distinct seeds. So each seed is sampled once; then it and its in-edges are
repeated in all blocks. The batch has a row for each seed drawn, in that order; those of a repeated
seed are equal, so that loss and gradient count it as often as it was drawn.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from gnnlab.dataloading.seeds import Timed
from gnnlab.graph.block import Block
from gnnlab.graph.frame import Frame
from gnnlab.graph.relation import Adjacency, Relation

# By type: which of the distinct seeds each seed is, and where each of these stands first.
_Repeats = dict[str, tuple[torch.Tensor, torch.Tensor]]


def distinct(seeds: Any) -> tuple[Any, _Repeats]:
    """Return the distinct seeds of a batch, and how they are repeated; {} if none is."""
    pair = seeds if isinstance(seeds, Timed) else (seeds,)
    given = [x if isinstance(x, dict) else {"": x} for x in pair]
    repeats: _Repeats = {}
    for ntype, codes in given[0].items():
        for times in given[1:]:  # a node may stand there with several times
            values, of = torch.unique(times[ntype], return_inverse=True)
            codes = codes.long() * len(values) + of
        found, which = torch.unique(codes, return_inverse=True)
        first = torch.full_like(which[: len(found)], len(codes))
        first.scatter_reduce_(0, which, torch.arange(len(codes), device=codes.device), "amin")
        repeats[ntype] = which, first
    if all(len(which) == len(first) for which, first in repeats.values()):
        return seeds, {}
    chosen = [{t: x[t][first] for t, (_, first) in repeats.items()} for x in given]
    parts = [x if isinstance(y, dict) else x[""] for x, y in zip(chosen, pair, strict=True)]
    return Timed(*parts) if isinstance(seeds, Timed) else parts[0], repeats


def repeat(batch: Any, repeats: _Repeats) -> Any:
    """Return ``(input_nodes, output_nodes, blocks)`` of distinct seeds with a row for each seed."""
    *nodes, blocks = batch
    return *(_nodes(ids, repeats) for ids in nodes), [_block(block, repeats) for block in blocks]


def _nodes(ids: Any, repeats: _Repeats) -> Any:
    if isinstance(ids, dict):
        return {t: some[_order(repeats, t, len(some))[0]] for t, some in ids.items()}
    return ids[_order(repeats, next(iter(repeats)), len(ids))[0]]


def _order(repeats: _Repeats, ntype: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the old node of each new one, and the first new one of each of ``count`` old ones."""
    none = next(iter(repeats.values()))[0][:0]
    which, first = repeats.get(ntype) or repeats.get("") or (none, none)
    rest = torch.arange(len(first), count, device=none.device)
    return torch.cat([which, rest]), torch.cat([first, rest + len(which) - len(first)])


def _block(block: Block, repeats: _Repeats) -> Block:
    sides = block.src_frames, block.dst_frames
    orders = [{t: _order(repeats, t, f.num_rows) for t, f in side.items()} for side in sides]
    src, dst = (
        {t: _rows(frame, order[t][0]) for t, frame in side.items()}
        for side, order in zip(sides, orders, strict=True)
    )
    num_src, num_dst = ({t: frame.num_rows for t, frame in side.items()} for side in (src, dst))
    relations, edge_frames = {}, {}
    for etype, relation in block.relations.items():
        csc, groups = relation.csc(), orders[1][etype[2]][0]
        sizes = csc.sizes[groups]
        indptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        slots = torch.repeat_interleave(csc.indptr[groups] - indptr[:-1], sizes)
        slots += torch.arange(len(slots), device=slots.device)
        sources = orders[0][etype[0]][1].to(csc.indices)[csc.indices[slots].long()]
        edges = Adjacency(indptr, sources, sizes=sizes)
        relations[etype] = Relation(num_src[etype[0]], num_dst[etype[2]], csc=edges)
        edge_frames[etype] = _rows(block.edge_frames[etype], csc.eids_at(slots).long())
    found = Block(num_src, num_dst, relations, src, dst, edge_frames, block.idtype, block.device)
    found.named_to_prefetch = block.named_to_prefetch
    return found


def _rows(frame: Frame, index: torch.Tensor) -> Frame:
    """Return some rows of a frame; its columns are gathered when they are first read."""
    found = Frame(len(index), None, frame.device, frame.what)
    for name in frame:
        found.defer(name, partial(lambda frame, name: frame[name][index], frame, name))
    return found
