"""Generated graphs: sizes asked for, the shape of ogbn-products, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.data import generate as module
from gnnlab.data.generate import generate
from tests.data.samples import assert_same
from tests.helpers import examples


@pytest.fixture(scope="module")
def raw():
    return generate(num_nodes=20_000, num_edges=500_000, num_features=10)


def assert_simple(raw):
    """No self-loop, no pair twice, u before v."""
    assert (raw.src < raw.dst).all()
    keys = raw.src.astype(np.int64) * raw.num_nodes + raw.dst
    assert len(np.unique(keys)) == raw.num_edges


def test_sizes(raw):
    assert_simple(raw)
    assert (raw.num_nodes, raw.num_edges, raw.num_classes) == (20_000, 250_000, 47)
    assert raw.src.dtype == raw.dst.dtype == np.int32
    assert raw.feat.dtype == np.float32
    assert np.unique(raw.label).tolist() == list(range(47))
    parts = (raw.train_idx, raw.val_idx, raw.test_idx)
    assert [len(ids) for ids in parts] == [1600, 400, 18_000]
    assert len(np.unique(np.concatenate(parts))) == 20_000


def test_degrees_follow_a_power_law(raw):
    """The number of nodes above a degree falls by 2**1.5 when the degree doubles."""
    degree = np.bincount(raw.src, minlength=20_000) + np.bincount(raw.dst, minlength=20_000)
    above = [(degree > d).sum() for d in (20, 40, 80)]
    assert above[0] / above[1] == pytest.approx(2**1.5, rel=0.25)
    assert above[1] / above[2] == pytest.approx(2**1.5, rel=0.25)
    assert degree.max() > 20 * np.median(degree)


def test_edges_stay_in_their_community(raw):
    """0.8 are drawn inside; of the rest about 4 % fall inside, and repeats are drawn anew."""
    assert 0.74 < (raw.label[raw.src] == raw.label[raw.dst]).mean() < 0.82


def test_edges_are_in_random_order(raw):
    half = raw.num_edges // 2
    assert raw.src[:half].mean() == pytest.approx(raw.src[half:].mean(), rel=0.02)
    assert (np.diff(raw.src) > 0).mean() < 0.6


def test_neighbors_say_more_than_the_node_itself(raw):
    """The nearest class mean is rarely right for a node alone, and more often for its neighbors."""
    mean = np.stack([raw.feat[raw.label == c].mean(0) for c in range(47)])
    both = raw.with_reverse_edges()
    total = np.zeros_like(raw.feat)
    np.add.at(total, both.dst, raw.feat[both.src])
    degree = np.maximum(np.bincount(both.dst, minlength=raw.num_nodes), 1)
    busy = np.flatnonzero(degree > 100)

    def right(feat):
        distance = ((feat[busy, None] - mean) ** 2).sum(2)
        return (distance.argmin(1) == raw.label[busy]).mean()

    assert right(raw.feat) < 0.15
    assert right(total / degree[:, None]) > 2 * right(raw.feat)


def test_another_seed_makes_another_graph(raw):
    other = generate(num_nodes=20_000, num_edges=500_000, num_features=10, seed=1)
    assert (other.src != raw.src).any()
    assert (other.label != raw.label).any()


def test_a_seed_names_one_graph_whatever_the_chunks(raw, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 1000)
    again = generate(num_nodes=20_000, num_edges=500_000, num_features=10)
    assert_same(again, raw)


@examples(100)
@given(n=st.integers(40, 300), share=st.floats(0, 1), seed=st.integers(0, 2**70))
def test_small_and_dense(n, share, seed):
    most = n * (n - 1) // 10
    num_edges = int(share * most)
    raw = generate(n, num_edges, seed, num_features=1)
    assert raw.num_edges == num_edges // 2
    assert_simple(raw)
