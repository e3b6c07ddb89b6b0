"""Splits: sizes, shares, no node twice, and the same nodes for ever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.data import per_class_split, random_split
from gnnlab.errors import InvalidInput


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


def test_the_nodes_of_a_seed_never_change():
    assert random_split(10, seed=1)[2].tolist() == [5]


def test_per_class_split():
    label = np.arange(100) % 4
    train, val, test = per_class_split(label, 5, 30, 40)
    assert np.bincount(label[train]).tolist() == [5, 5, 5, 5]
    assert (len(val), len(test)) == (30, 40)
    assert len(np.unique(np.concatenate([train, val, test]))) == 90


@pytest.mark.parametrize("sizes", [(26, 0, 0), (20, 10, 11)])
def test_per_class_split_asks_for_too_much(sizes):
    with pytest.raises(InvalidInput, match="100, 25"):
        per_class_split(np.arange(100) % 4, *sizes)


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.5, -0.5, 0), (np.nan, 0, 0)])
def test_wrong_fractions(fractions):
    with pytest.raises(InvalidInput, match="3 fractions"):
        random_split(10, fractions)
