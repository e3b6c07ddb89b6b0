"""Which rows a cache keeps: probabilities, fixed choices and Belady's optimum."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab import kernels
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.distributed.inclusion import inclusion_probabilities
from gnnlab.distributed.policies import POLICIES, EpochReads, Planned
from gnnlab.simulate import SimulationError, simulate
from tests.distributed.cut import at_random, write
from tests.distributed.test_cache import friends


@given(st.lists(st.integers(0, 2**16 - 1) | st.integers(0, 2)), st.integers(0, 70))
def test_the_highest_scores_are_found_without_sorting(scores: list[int], count: int) -> None:
    expected = sorted(sorted(range(len(scores)), key=lambda i: -scores[i])[:count])
    values, found, at = np.array(scores, np.uint16), [], 0
    least, left = kernels.cache.lowest_of(values, count)
    while at < len(values):
        places, at, left = kernels.cache.highest(values, at, least, left, 3)
        found += places.tolist()
    assert found == expected


# ------------------------------------------------------------------------- probabilities


def tree(branches: int, depth: int) -> dgl.Graph:
    """A tree whose edges lead to the root, node 0: one way from each node to it."""
    count = sum(branches**level for level in range(depth + 1))
    child = torch.arange(1, count)
    return dgl.graph((child, (child - 1) // branches), num_nodes=count)


def test_inclusion_is_exact_on_a_tree() -> None:
    """Hop 1 samples 2 of 5; hop 2 samples 3 of 5 anew, of the root too."""
    found = inclusion_probabilities(tree(5, 2), torch.tensor([0]), [3, 2], 1)
    first = 1 - (1 - 2 / 5) * (1 - 3 / 5)
    assert found.tolist() == pytest.approx([1.0] + [first] * 5 + [2 / 5 * 3 / 5] * 25)


def test_replacement_and_small_batches() -> None:
    g = dgl.graph(([1, 2, 3, 4], [0, 0, 0, 0]), num_nodes=5)
    found = inclusion_probabilities(g, torch.tensor([0, 4]), [2], 1, replace=True)
    leaf = 1 / 2 * (1 - (3 / 4) ** 2)
    assert found.tolist() == pytest.approx([1 / 2, leaf, leaf, leaf, 1 - (1 - leaf) / 2])


@pytest.mark.parametrize("parts", [2, 4])
def test_inclusion_of_parts_is_that_of_the_graph(tmp_path: Path, parts: int) -> None:
    """Each trainer ranks remote rows by the probabilities of the whole graph."""
    whole, fanouts = friends(), [3, 4]
    maps = dgl.distributed.partition_graph(
        whole, "g", parts, tmp_path, part_method=at_random, return_mapping=True
    )

    def best() -> Any:
        initialize()
        g = DistGraph("g", cache_bytes=10_000, cache_policy="vip")
        nodes = node_split(torch.ones(400, dtype=torch.bool), g.get_partition_book())
        loader = DistNodeDataLoader(g, nodes, NeighborSampler(fanouts), batch_size=7)
        next(iter(loader))
        return nodes, g.get_partition_book().node_ranges["_N"], g.client.cache.best["_N"]

    returned = simulate(tmp_path / "g.json").run(best).returned
    for rank, (nodes, ranges, rows) in enumerate(returned):
        probs = inclusion_probabilities(whole, maps[0][nodes], fanouts, 7)[maps[0]]
        low, high = ranges[rank : rank + 2]
        remote = torch.cat([probs[:low], probs[high:]])
        assert len(rows) == int((remote > 0).sum())
        assert torch.allclose(remote[rows], remote[remote > 0].sort(descending=True).values)


# ------------------------------------------------------------------------------ Belady
def misses(batches: list[list[int]], num_rows: int, slots: int) -> int:
    """Rows that the cache fetches for a sequence of batches."""
    cache = Planned(num_rows)
    cache.resize(slots * 5, row_bytes=1)
    cache.follow(EpochReads([np.array(batch, np.int64) for batch in batches], num_rows))
    content, fetched = np.full(cache.num_slots, -1), 0
    for batch in batches:
        rows = np.array(batch, np.int64)
        cache.expect(rows)
        found = cache.look_up(rows, 0)
        assert (content[found[found >= 0]] == rows[found >= 0]).all()
        new = rows[found < 0]
        fetched += len(new)
        if cache.num_slots:
            to = cache.admit(new, 0)
            content[to[to >= 0]] = new[to >= 0]
    return fetched


def fewest_misses(batches: list[list[int]], slots: int) -> int:
    """The least number of fetched rows, over all choices of what to hold after each batch."""
    costs = {frozenset[int](): 0}
    for batch in batches:
        after: dict[frozenset[int], int] = {}
        for held, cost in costs.items():
            now = cost + len(set(batch) - held)
            choices = held | set(batch)
            for kept in itertools.combinations(choices, min(slots, len(choices))):
                key = frozenset(kept)
                after[key] = min(now, after.get(key, now))
        costs = after
    return min(costs.values())


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True), max_size=7), st.integers(0, 4)
)
def test_belady_is_the_optimum(batches: list[list[int]], slots: int) -> None:
    assert misses(batches, 6, slots) == fewest_misses(batches, slots)


def test_reads_beside_the_plan_change_nothing() -> None:
    cache = Planned(6)
    cache.resize(100, row_bytes=1)
    cache.follow(EpochReads([np.array([0, 1]), np.array([0, 1])], 6))
    cache.expect(np.array([4, 5]))
    assert cache.look_up(np.array([4, 5]), 0).tolist() == [-1, -1]
    assert cache.admit(np.array([4, 5]), 0).tolist() == [-1, -1]
    cache.expect(np.array([0, 1]))
    assert cache.admit(np.array([0, 1]), 0).tolist() == [0, 1]


# ------------------------------------------------------------------------ on clusters
def epochs() -> tuple[list[float], int, int]:
    """Sums of the features of each batch of three epochs; hits and misses of the cache."""
    initialize()
    g = DistGraph("g")
    nodes = node_split(torch.arange(400), g.get_partition_book())
    sampler = NeighborSampler([4, 4], prefetch_node_feats=["x"])
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=9, shuffle=True, seed=1)
    batches = [batch for _ in range(3) for batch in loader]
    sums = [blocks[0].srcdata["x"].double().sum().item() for _, _, blocks in batches]
    return sums, g.cache_info().hits, g.cache_info().misses


def test_policies_give_equal_values_and_belady_fetches_least(tmp_path: Path) -> None:
    """With memory for the same number of rows (slots differ by a byte or so)."""
    config, fetched = write(friends(), 2, tmp_path), {}
    without = simulate(config).run(epochs).returned
    for policy in POLICIES:
        found = simulate(config, cache_bytes=1_200, cache_policy=policy).run(epochs).returned
        for (sums, hits, _), (expected, *_) in zip(found, without, strict=True):
            assert sums == expected and hits > 0
        fetched[policy] = sum(misses for *_, misses in found)
    assert fetched["belady"] < 0.95 * min(v for k, v in fetched.items() if k != "belady"), fetched


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    config = write(friends(), 2, tmp_path)

    def run(**options: Any) -> None:
        initialize()
        g = DistGraph("g", cache_bytes=1_000, **options)
        sampler = NeighborSampler([2], prob="w")
        next(iter(DistNodeDataLoader(g, range(9), sampler, batch_size=3)))

    with pytest.raises(SimulationError, match=r"'vip' .* prob"):
        simulate(config).run(run, cache_policy="vip")
    with pytest.raises(SimulationError, match="'belady'"):
        simulate(config, samplers_per_trainer=1).run(run, cache_policy="belady")
