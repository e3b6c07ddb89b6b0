"""Grouping edges by an end equals a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.kernels import csc
from tests.helpers import examples


def reference(
    keys: np.ndarray, values: np.ndarray, num_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(keys, kind="stable")
    counts = np.bincount(keys, minlength=num_groups)
    return np.concatenate([[0], np.cumsum(counts)]), values[order]


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 10**6)), max_size=60),
    st.sampled_from([np.int32, np.int64]),
)
def test_equals_a_stable_sort(pairs, dtype):
    keys = np.array([k for k, _ in pairs], dtype)
    values = np.array([v for _, v in pairs], dtype)
    indptr, grouped = csc.group_by(keys, values, 20)
    expected_indptr, expected = reference(keys.astype(np.int64), values, 20)
    assert indptr.tolist() == expected_indptr.tolist()
    assert grouped.dtype == dtype and grouped.tolist() == expected.tolist()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("num_groups", [512, 1000, 70_001, 1_000_000])
def test_two_pass_sort_of_many_edges(num_groups, threads, torch_threads, monkeypatch):
    """Above 2**17 edges the two-pass sort works; more than 65,536 groups a bucket need 32 bits."""
    torch_threads(threads)
    if num_groups == 1_000_000:
        monkeypatch.setattr(csc, "_BUCKETS", 2)
    rng = np.random.default_rng(num_groups)
    keys = (rng.random(200_000) ** 3 * num_groups).astype(np.int32)
    values = rng.integers(0, 10**6, len(keys)).astype(np.int32)
    indptr, grouped = csc.group_by(keys, values, num_groups)
    expected_indptr, expected = reference(keys, values, num_groups)
    assert np.array_equal(indptr, expected_indptr)
    assert np.array_equal(grouped, expected)
    positions = csc.group_by(keys, None, num_groups)[1]
    assert np.array_equal(positions, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("threads_used", [1, 2])
def test_contains_agrees_with_a_set_of_pairs(torch_threads, threads_used):
    torch_threads(threads_used)
    rng = np.random.default_rng(0)
    groups, values = rng.integers(0, 40, (2, 300))
    indptr, indices = csc.group_by(groups, values, 40)
    asked_groups, asked_values = rng.integers(0, 40, (2, 9000))
    pairs = set(zip(groups.tolist(), values.tolist(), strict=True))
    expected = [p in pairs for p in zip(asked_groups.tolist(), asked_values.tolist(), strict=True)]
    assert csc.contains(indptr, indices, asked_groups, asked_values).tolist() == expected
    assert csc.contains(indptr, indices, asked_groups[:0], asked_values[:0]).tolist() == []
