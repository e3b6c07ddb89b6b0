"""Make the files of ``data/digits`` from scikit-learn's images.

``python -m tests.data.make_digits FOLDER`` writes them to a folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from gnnlab.data import RawDataset
from gnnlab.data.split import Split, split_points
from tests.data.samples import write_ogb

NEIGHBORS = 8
FRACTIONS = (0.1, 0.1, 0.8)
SPLIT_SEED = 3


def make_digits() -> RawDataset:
    """Make the data set from scikit-learn's images.

    It is equal on every machine: distances are integers, and of equal ones the lower ID counts.
    """
    from sklearn.datasets import load_digits

    pixels, label = load_digits(return_X_y=True)
    pixels, label = pixels.astype(np.int64), label.astype(np.int64)
    pairs = _neighbor_pairs(pixels)
    train, val, test = stratified_split(label, FRACTIONS, SPLIT_SEED)
    feat = (pixels / 16).astype(np.float32)
    return RawDataset("digits", pairs[:, 0], pairs[:, 1], feat, label, train, val, test, 10)


def stratified_split(label: np.ndarray, fractions: Sequence[float], seed: int = 0) -> Split:
    """Split nodes at random with the same fractions in every class; sorted IDs."""
    random = np.random.RandomState(seed)
    parts: list[list[np.ndarray]] = [[], [], []]
    for value in np.unique(label):
        members = random.permutation(np.flatnonzero(label == value)).astype(np.int64)
        for part, piece in zip(
            parts, np.split(members, split_points(len(members), fractions)), strict=True
        ):
            part.append(piece)
    train, val, test = (np.sort(np.concatenate(part)) for part in parts)
    return train, val, test


def _neighbor_pairs(points: np.ndarray) -> np.ndarray:
    """Return pairs (u, v), u < v, of which one is among the other's nearest; shape (E, 2)."""
    squares = (points**2).sum(1)
    distance = squares[:, None] + squares - 2 * points @ points.T
    np.fill_diagonal(distance, np.iinfo(np.int64).max)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBORS]
    ends = np.stack([np.repeat(np.arange(len(points)), NEIGHBORS), nearest.ravel()], axis=1)
    return np.unique(np.sort(ends, axis=1), axis=0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.data.make_digits FOLDER")
    write_ogb(make_digits(), sys.argv[1], split="stratified")
