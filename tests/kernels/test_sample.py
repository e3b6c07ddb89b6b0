"""Choosing neighbors: what is chosen, how often, and that nothing but the name of the draw matters.

A row of the graph is a run of slots; unless a test says otherwise, slot k is edge k.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy
import torch

from gnnlab.errors import InvalidInput
from gnnlab.kernels import sample, sample_torch

KEYS = range(1, 4001)


def row_graph(*degrees: int) -> tuple[np.ndarray, np.ndarray]:
    """Node i has degrees[i] in-edges; sources are numbered through."""
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return indptr, np.arange(indptr[-1], dtype=np.int32)


def random_graph(
    seed: int = 0, nodes: int = 400, edges: int = 9000
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    degrees = np.bincount((rng.random(edges) ** 2 * nodes).astype(int), minlength=nodes)
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    return indptr, rng.integers(0, nodes, edges).astype(np.int32)


def slots_of(indptr, indices, seeds, fanout, key, **options):
    ptr, slots, sources = sample.sample_neighbors(
        indptr, indices, np.asarray(seeds), fanout, key, **options
    )
    assert np.array_equal(sources, indices[slots])
    return [slots[a:b].tolist() for a, b in pairwise(ptr)]


def counts(degree: int, fanout: int, **options: object) -> np.ndarray:
    """How often each slot of one row is taken, over all KEYS."""
    indptr, indices = row_graph(degree)
    taken = np.zeros(degree, int)
    for key in KEYS:
        (slots,) = slots_of(indptr, indices, [0], fanout, key, **options)
        np.add.at(taken, slots, 1)
    return taken


def test_fewer_neighbors_than_asked_for_are_all_taken():
    indptr, indices = row_graph(3, 0, 2)
    for fanout in (5, 3, -1):
        assert slots_of(indptr, indices, [2, 1, 0], fanout, 1) == [[3, 4], [], [0, 1, 2]]
    assert slots_of(indptr, indices, [0], 0, 1) == [[]]


@pytest.mark.parametrize(("degree", "fanout"), [(10, 1), (10, 3), (7, 6), (90, 40)])
def test_without_replacement_is_distinct_and_uniform(degree, fanout):
    indptr, indices = row_graph(degree)
    taken = np.zeros(degree, int)
    for key in KEYS:
        (slots,) = slots_of(indptr, indices, [0], fanout, key)
        assert len(set(slots)) == len(slots) == fanout
        taken[slots] += 1
    # k distinct of d: each count has variance n p (1 − p), and the counts sum to n k
    p = fanout / degree
    statistic = (
        ((taken - len(KEYS) * p) ** 2 / (len(KEYS) * p * (1 - p))).sum() * (degree - 1) / degree
    )
    assert 1e-4 < scipy.stats.chi2.cdf(statistic, degree - 1) < 1 - 1e-4


def test_pairs_are_uniform():
    """Of 5 neighbors, each of the 10 pairs comes equally often."""
    indptr, indices = row_graph(5)
    pairs: dict[tuple[int, ...], int] = {}
    for key in KEYS:
        (slots,) = slots_of(indptr, indices, [0], 2, key)
        pair = tuple(sorted(slots))
        pairs[pair] = pairs.get(pair, 0) + 1
    assert len(pairs) == 10
    assert scipy.stats.chisquare(list(pairs.values())).pvalue > 1e-4


def test_with_replacement_is_uniform_and_fills_the_fanout():
    indptr, indices = row_graph(3, 0)
    (slots, none) = slots_of(indptr, indices, [0, 1], 8, 5, replace=True)
    assert len(slots) == 8 and none == []
    assert scipy.stats.chisquare(counts(6, 4, replace=True)).pvalue > 1e-4


@pytest.mark.parametrize("replace", [False, True])
def test_weights_are_proportions(replace):
    """One draw takes slot i with probability w[i] / sum(w)."""
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    taken = counts(4, 1, weights=weights, replace=replace)
    assert taken[1] == 0
    expected = len(KEYS) * weights[weights > 0] / weights.sum()
    assert scipy.stats.chisquare(taken[weights > 0], expected).pvalue > 1e-4


def test_weighted_draws_follow_one_another():
    """Two of three by weights 1, 2, 3: P(leaving out i) = sum over orders of successive draws."""
    weights = np.array([1.0, 2.0, 3.0])
    indptr, indices = row_graph(3)
    left_out = np.zeros(3, int)
    for key in KEYS:
        (slots,) = slots_of(indptr, indices, [0], 2, key, weights=weights)
        left_out[3 - sum(slots)] += 1
    total = weights.sum()
    expected = np.zeros(3)
    for i, j, k in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        expected[k] += weights[i] / total * weights[j] / (total - weights[i])
    assert scipy.stats.chisquare(left_out, expected * len(KEYS)).pvalue > 1e-4


def test_weights_of_any_size():
    """Weights so small that a score underflows are taken all the same, and before weight 0."""
    weights = np.array([0.0, 5e-324, 0.0, 1e300, 5e-324])
    assert counts(5, 2, weights=weights)[[0, 2, 3]].tolist() == [0, 0, len(KEYS)]
    assert counts(5, 3, weights=weights).tolist() == [len(KEYS) * (w > 0) for w in weights]


def test_a_mask_and_edge_order():
    """Slots hold edges 4 3 2 1 0; only even edges may be taken."""
    indptr, indices = row_graph(5)
    eids = np.array([4, 3, 2, 1, 0], np.int32)
    mask = np.array([True, False, True, False, True])
    assert slots_of(indptr, indices, [0], -1, 1, weights=mask, eids=eids) == [[0, 2, 4]]
    assert slots_of(indptr, indices, [0], 3, 1, weights=mask, eids=eids) == [[0, 2, 4]]
    (two,) = slots_of(indptr, indices, [0], 2, 1, weights=mask, eids=eids)
    assert len(set(two)) == 2 and set(two) <= {0, 2, 4}


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
def test_weights_must_be_finite_and_not_negative(wrong):
    indptr, indices = row_graph(2, 2)
    weights = np.array([1.0, 1.0, 1.0, wrong])
    assert slots_of(indptr, indices, [0], 1, 1, weights=weights)
    with pytest.raises(InvalidInput, match="edge 3"):
        slots_of(indptr, indices, [1], 1, 1, weights=weights)
    tensors = torch.from_numpy(indptr), torch.from_numpy(indices), torch.tensor([1])
    with pytest.raises(InvalidInput, match="weights"):
        sample_torch.sample_neighbors(*tensors, 1, 1, weights=torch.from_numpy(weights))


@pytest.mark.parametrize("weights", [None, np.ones(10)])
def test_excluded_slots_are_never_taken_and_the_rest_is_uniform(weights):
    excluded = np.array([0, 4, 5, 9])
    taken = counts(10, 2, excluded=excluded, weights=weights)
    assert taken[excluded].sum() == 0
    rest = np.delete(taken, excluded)
    p = 2 / 6
    statistic = ((rest - len(KEYS) * p) ** 2 / (len(KEYS) * p * (1 - p))).sum() * 5 / 6
    assert scipy.stats.chi2.cdf(statistic, 5) < 1 - 1e-4
    assert counts(10, -1, excluded=excluded, weights=weights)[[1, 2, 3]].tolist() == [len(KEYS)] * 3


def test_slots_of_edges_are_found_by_search():
    """Rows [e1, e4, e7] and [e0, e9]: edges 9, 4 and 1 sit in slots 4, 1 and 0."""
    indptr, eids = np.array([0, 3, 5]), np.array([1, 4, 7, 0, 9])
    found = sample.edge_slots(indptr, eids, np.array([1, 0, 0]), np.array([9, 4, 1]))
    assert found.tolist() == [0, 1, 4]
    assert sample.edge_slots(indptr, None, np.array([1, 0]), np.array([3, 2])).tolist() == [2, 3]


@pytest.mark.parametrize("options", [{}, {"replace": True}, {"weights": np.linspace(0, 1, 9000)}])
@pytest.mark.parametrize("fanout", [3, 45])
def test_only_the_name_of_a_draw_matters(options, fanout, torch_threads):
    """Threads, order of the seeds and company change nothing; the key and the node do."""
    indptr, indices = random_graph()
    seeds = np.tile(np.arange(400), 25)  # enough for several chunks
    torch_threads(1)
    alone = slots_of(indptr, indices, seeds, fanout, 7, **options)
    torch_threads(2)
    assert slots_of(indptr, indices, seeds, fanout, 7, **options) == alone
    assert slots_of(indptr, indices, seeds[::-1], fanout, 7, **options) == alone[::-1]
    assert slots_of(indptr, indices, [3], fanout, 7, **options) == [alone[3]]
    assert slots_of(indptr, indices, seeds, fanout, 8, **options) != alone


def test_a_cut_graph_samples_alike():
    """A part that holds nodes 100 … 199 under new IDs, told the old names, picks the same edges."""
    indptr, indices = random_graph()
    whole = slots_of(indptr, indices, np.arange(100, 200), 5, 9)
    first = indptr[100]
    part = slots_of(
        indptr[100:201] - first,
        indices[first : indptr[200]],
        np.arange(100),
        5,
        9,
        names=np.arange(100, 200),
    )
    assert [[slot + first for slot in row] for row in part] == whole


@pytest.mark.parametrize("key", [1, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("fanout", [-1, 0, 1, 4, 32, 33, 60])
def test_torch_operators_pick_the_same(fanout, replace, key):
    """Without options, with weights and excluded edges, and with excluded edges alone."""
    indptr, indices = random_graph()
    rng = np.random.default_rng(1)
    weights = rng.random(9000) * (rng.random(9000) < 0.7)
    eids = rng.permutation(9000)
    excluded = np.sort(rng.permutation(9000)[:900])
    seeds = np.arange(0, 400, 3)
    for options in ({}, {"weights": weights, "eids": eids, "excluded": excluded}):
        expected = sample.sample_neighbors(
            indptr, indices, seeds, fanout, key, replace=replace, **options
        )
        tensors = [torch.from_numpy(x) for x in (indptr, indices, seeds)]
        given = {name: torch.from_numpy(value) for name, value in options.items()}
        *got, sizes = sample_torch.sample_neighbors(*tensors, fanout, key, replace=replace, **given)
        assert np.array_equal(sizes, np.diff(expected[0]))
        assert all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))
    uniform = sample_torch.sample_neighbors(*tensors, 3, 3, excluded=given["excluded"])
    assert not np.isin(uniform[1], excluded).any()
