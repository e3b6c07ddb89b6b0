"""Handwritten digits as a graph: small, real, and included in the package.

1,797 scanned digits of 8 × 8 pixels, from scikit-learn. A node is an image, its features are the 64
gray values; an edge joins two images if one is among the 8 nearest neighbors of the other. Like an
OGB archive, the file holds each edge once, from the lower to the higher ID; without reverse edges,
a node receives messages from half of its neighbors only. 10 % of the nodes are for training, 10 %
for validation, 80 % for testing, with the same fractions in every class. With so few labels the
result depends on the split: the same model's test accuracy over seeds 0 … 5 ranges from 0.935 to
0.981, median 0.964. The files use seed 3; ``tests/data/make_digits.py`` makes them.

References
----------
Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
1998.
"""

from __future__ import annotations

from pathlib import Path

from gnnlab.data.ogb import read_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput


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
        f"the digits are neither in {candidates[0]} nor in {candidates[1]}; install gnnlab again"
    )


def read_digits() -> RawDataset:
    """Read the files included in gnnlab: 1,797 nodes, 9,929 edges, 64 features, 10 classes."""
    return read_ogb(digits_folder(), "digits", progress=False)
