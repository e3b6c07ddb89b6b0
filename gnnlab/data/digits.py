"""Handwritten digits as a graph: small, real, and included in the package.

1,797 scanned digits of 8 × 8 pixels, from scikit-learn. A node is an image, its features are the
64 gray values; an edge joins two images if one is among the 8 nearest neighbors of the other. Like
an OGB archive, the file holds each edge once, from the lower to the higher ID; without reverse
edges, a node receives messages from half of its neighbors only. 10 % of the nodes are for training,
10 % for validation, 80 % for testing, with the same fractions in every class. With so few labels
the result depends on the split: the same model's test accuracy over seeds 0 … 5 ranges from 0.935
to 0.981, median 0.964. The files use seed 3.

``python -m gnnlab.data.digits FOLDER`` makes the files again; it needs scikit-learn.

References
----------
Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
1998.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from gnnlab.data.ogb import read_ogb, write_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.data.split import stratified_split
from gnnlab.errors import InvalidInput

__all__ = ["digits_folder", "make_digits", "read_digits"]

NEIGHBORS = 8
FRACTIONS = (0.1, 0.1, 0.8)
SPLIT_SEED = 3


def digits_folder() -> Path:
    """Return the folder of the files, in the installed package or in the source checkout.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> sorted(path.name for path in dgl.data.digits_folder().iterdir())
    ['raw', 'split']
    """
    package = Path(__file__).resolve().parent
    candidates = (package / "_digits", package.parents[1] / "data" / "digits")
    for folder in candidates:
        if (folder / "raw").is_dir():
            return folder
    raise InvalidInput(
        f"the digits data set is neither in {candidates[0]} nor in {candidates[1]}; install gnnlab "
        f"again, or make it: python -m gnnlab.data.digits {candidates[0]}"
    )


def read_digits() -> RawDataset:
    """Read the files included in gnnlab.

    Returns
    -------
    RawDataset
        1,797 nodes, 9,929 edges, 64 features, 10 classes.

    Examples
    --------
    >>> from gnnlab.data.digits import read_digits
    >>> bool((read_digits().src < read_digits().dst).all())
    True
    """
    return read_ogb(digits_folder(), "digits", progress=False)


def make_digits() -> RawDataset:
    """Make the data set from scikit-learn's images.

    Returns
    -------
    RawDataset
        Equal on every machine: distances are integers, and of equal ones the lower ID counts.

    Examples
    --------
    >>> from gnnlab.data.digits import make_digits
    >>> make_digits().num_edges
    9929
    """
    from sklearn.datasets import load_digits

    pixels, label = load_digits(return_X_y=True)
    pixels, label = pixels.astype(np.int64), label.astype(np.int64)
    pairs = _neighbor_pairs(pixels)
    train, val, test = stratified_split(label, FRACTIONS, SPLIT_SEED)
    feat = (pixels / 16).astype(np.float32)
    return RawDataset("digits", pairs[:, 0], pairs[:, 1], feat, label, train, val, test, 10)


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
        sys.exit("usage: python -m gnnlab.data.digits FOLDER")
    write_ogb(make_digits(), sys.argv[1], split="stratified")
