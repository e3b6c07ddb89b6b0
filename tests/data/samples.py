"""Small data sets that tests write."""

from __future__ import annotations

import numpy as np

from gnnlab.data.raw import RawDataset


def square(name: str = "square") -> RawDataset:
    """A square with a diagonal, and node 4 alone; two classes.

    ::

        0 → 1
        ↓ ↘ ↓        4
        2 → 3
    """
    return RawDataset(
        name,
        src=np.array([0, 0, 0, 1, 2]),
        dst=np.array([1, 2, 3, 3, 3]),
        feat=np.array([[0, 1], [0.5, -1], [2e-3, 0], [1, 1], [0, 0]], np.float32),
        label=np.array([0, 1, 0, 1, 1]),
        train_idx=np.array([0, 3]),
        val_idx=np.array([4]),
        test_idx=np.array([2, 1]),
        num_classes=2,
    )


def assert_same(found: RawDataset, expected: RawDataset) -> None:
    for name in ("src", "dst", "feat", "label", "train_idx", "val_idx", "test_idx"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert (found.name, found.num_classes) == (expected.name, expected.num_classes)
