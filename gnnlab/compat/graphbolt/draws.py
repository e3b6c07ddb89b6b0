"""Layer sampling with replacement: each source is a Poisson process that all its seeds see.

An edge sees the events of its source at the rate of its weight. A seed takes the first ``fanout``
events of all its edges: these are draws with replacement, in proportion to the weights.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import BlockSampler
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID
from gnnlab.kernels import rng_torch
from gnnlab.random import fold, next_key


class LayerDraws(LaborSampler):
    """A sampler of blocks, whose arguments are those of :class:`LaborSampler`."""

    _key: int | None = None  # of all layers

    def sample_blocks(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Make the blocks of a batch."""
        own = copy.copy(self)
        own._key = next_key() if self.layer_dependency else None
        return BlockSampler.sample_blocks(own, g, seed_nodes, exclude_eids)

    def sample_frontier(self, layer_id: int, g: Graph, seed_nodes: Any) -> Graph:
        """Draw the edges of a layer."""
        key = next_key() if self._key is None else self._key
        seeds = seed_nodes if isinstance(seed_nodes, dict) else {g.ntypes[0]: seed_nodes}
        edges, drawn = {}, {}
        for etype in g.canonical_etypes:
            fanout = self.fanouts[layer_id]
            fanout = fanout[etype] if isinstance(fanout, dict) else fanout
            src, dst, eids = g.in_edges(seeds.get(etype[2], []), "all", etype)
            if fanout >= 0:
                rate = g.edges[etype].data[self.prob][eids.long()] if self.prob else eids + 1 > 0
                sources = rng_torch.streams(fold(key, g.get_ntype_id(etype[0])), src)
                kept = first_events(dst, sources, rate.double(), fanout)
                src, dst, eids = src[kept], dst[kept], eids[kept]
            edges[etype], drawn[etype] = (src, dst), eids
        frontier = heterograph(edges, {ntype: g.num_nodes(ntype) for ntype in g.ntypes}, g.idtype)
        for etype, eids in drawn.items():
            frontier.edges[etype].data[EID] = eids
        return frontier


def first_events(
    rows: torch.Tensor, streams: torch.Tensor, rates: torch.Tensor, count: int
) -> torch.Tensor:
    """Return the edges of the first events in each row, as positions, ascending.

    ``streams`` are keys of the sources of the edges; edges of the rate 0 have no events.
    """
    taken = open_edges = rates.nonzero().flatten()  # the next event of an open edge may be taken
    clock = at = rates.new_zeros(len(taken))
    taken, at = taken[:0], at[:0]
    for number in range(count):
        waits = -rng_torch.uniform(rng_torch.draw(streams[open_edges], number)).log()
        clock = clock + waits / rates[open_edges]
        before = len(taken)
        taken, at = torch.cat([taken, open_edges]), torch.cat([at, clock])
        order = torch.argsort(at)
        order = order[torch.argsort(rows[taken[order]], stable=True)]
        row = rows[taken[order]]
        place = torch.arange(len(row), device=row.device) - torch.searchsorted(row, row)
        kept = order[place < count]
        new = kept[kept >= before]
        open_edges, clock, taken, at = taken[new], at[new], taken[kept], at[kept]
        if not len(open_edges):
            break
    return taken.sort().values
