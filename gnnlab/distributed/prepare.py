"""Prepare the cache of a graph for an epoch of a loader: policies "vip" and "belady".

Both need what the loader knows: the seeds, the batch size and the fanouts, or all batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnnlab.dataloading.features import graphs_in
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.dataloading.sampler import NeighborSampler
from gnnlab.distributed import context
from gnnlab.distributed.cache import own_range, remote_numbers
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.inclusion import inclusion_of_parts
from gnnlab.distributed.policies import Plan, ranked
from gnnlab.distributed.transport import InProcess
from gnnlab.errors import InvalidInput
from gnnlab.graph.names import NID
from gnnlab.graph.neighbor import read_fanouts


def prepare(loader: Any, recipe: Recipe, tasks: Sequence[Task]) -> None:
    """Prepare the cache of the loader's graph, where it has one with such a policy.

    Parameters
    ----------
    loader : DataLoader
    recipe : Recipe
        How its batches are made.
    tasks : sequence of tuple
        The batches of the epoch.

    Raises
    ------
    InvalidInput
        The policy does not suit the loader.
    """
    if not isinstance(loader.graph, DistGraph):
        return
    cache = loader.graph.client.cache
    if not cache.num_bytes or type(cache.transport) is InProcess:
        return
    if cache.policy == "vip" and not cache.best:
        cache.prepare(_most_probable(loader))
    if cache.policy == "belady":
        if context.samplers() is not None:
            raise InvalidInput(
                "cache_policy='belady' plans the reads of one process, and sampler processes share "
                "the batches; start the job without them, or use cache_policy='vip'"
            )
        cache.follow(_plans(loader.graph, recipe, tasks))


def _most_probable(loader: Any) -> dict[str, np.ndarray]:
    """Return the remote rows by the probability that a batch needs them, of each node type."""
    g, sampler = loader.graph, loader.graph_sampler
    if not isinstance(sampler, NeighborSampler) or sampler.prob is not None:
        raise InvalidInput(
            "cache_policy='vip' computes probabilities for loaders of nodes with a NeighborSampler "
            f"without prob; found {type(sampler).__name__}. Use cache_policy='access'"
        )
    share = min(1.0, loader.batch_size / max(1, len(loader.indices)))
    probs = {ntype: np.zeros(g.num_nodes(ntype)) for ntype in g.ntypes}
    for name, ids in loader.indices.by_type.items():
        probs[name or g.ntypes[0]][ids.numpy()] = share
    client, fanouts = g.client, [read_fanouts(g, fanout) for fanout in sampler.fanouts]
    found = inclusion_of_parts(
        client.transport, g.canonical_etypes, probs, fanouts, sampler.replace
    )
    best = {}
    for ntype, values in found.items():
        low, high = _own(g, ntype)
        best[ntype] = ranked(np.delete(values, np.s_[low:high]))
    return best


def _plans(g: DistGraph, recipe: Recipe, tasks: Sequence[Task]) -> dict[str, Plan]:
    """Sample all batches; return the remote rows that they need of each node type."""
    needed: dict[str, list[np.ndarray]] = {ntype: [] for ntype in g.ntypes}
    for task in tasks:
        graphs = list(graphs_in(recipe.sample(task)))
        first = next((each for each in graphs if each.is_block), graphs[0] if graphs else None)
        for ntype, rows in needed.items():
            frame = None if first is None else first.src_frames.get(ntype)
            if frame is not None and NID in frame:
                rows.append(remote_numbers(frame[NID], _own(g, ntype)))
            else:
                rows.append(np.zeros(0, np.int64))
    return {
        ntype: Plan(rows, g.num_nodes(ntype) - int(np.subtract(*_own(g, ntype)[::-1])))
        for ntype, rows in needed.items()
    }


def _own(g: DistGraph, ntype: str) -> tuple[int, int]:
    """Return the first ID of the own part, and the one after its last."""
    return own_range(g.client.transport, g.get_partition_book().node_ranges[ntype])
