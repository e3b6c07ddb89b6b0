"""Splits: sizes, shares, no node twice, and the same nodes for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.data import per_class_split, random_split
from gnnlab.errors import InvalidInput
from tests.data.make_digits import stratified_split


@given(
    count=st.integers(0, 300),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 99),
)
def test_random_split_divides_all_nodes(count, cut, seed):
    low, high = sorted(cut)
    parts = random_split(count, (low, high - low, 1 - high), seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert all((np.diff(part) > 0).all() for part in parts)
    assert abs(len(parts[0]) - count * low) <= 1


@given(labels=st.lists(st.integers(0, 3), max_size=200))
def test_stratified_split_divides_every_class(labels):
    label = np.array(labels, int)
    parts = stratified_split(label, (0.5, 0.25, 0.25)) if labels else ()
    assert sorted(node for part in parts for node in part.tolist()) == list(range(len(label)))
    for value in set(labels):
        size = (label == value).sum()
        assert abs((label[parts[0]] == value).sum() - size / 2) <= 1


def test_the_nodes_of_a_seed_never_change():
    assert random_split(10, seed=1)[2].tolist() == [5]
    train, val, test = stratified_split(np.arange(20) % 2, (0.2, 0.2, 0.6), seed=1)
    assert (train.tolist(), val.tolist()) == ([4, 11, 18, 19], [1, 7, 8, 12])
    assert len(test) == 12


def test_per_class_split():
    label = np.arange(100) % 4
    train, val, test = per_class_split(label, 5, 30, 40)
    assert np.bincount(label[train]).tolist() == [5, 5, 5, 5]
    assert (len(val), len(test)) == (30, 40)
    assert len(np.unique(np.concatenate([train, val, test]))) == 90


@pytest.mark.parametrize("sizes", [(26, 0, 0), (20, 10, 11)])
def test_per_class_split_asks_for_too_much(sizes):
    with pytest.raises(InvalidInput, match="found 100, 25 in the smallest class"):
        per_class_split(np.arange(100) % 4, *sizes)


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.5, -0.5, 0), (np.nan, 0, 0)])
def test_wrong_fractions(fractions):
    with pytest.raises(InvalidInput, match="3 fractions of at least 0 that sum to 1"):
        random_split(10, fractions)
