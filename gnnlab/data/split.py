"""Split nodes into training, validation and test sets.

numpy guarantees the streams of ``RandomState``: a seed gives the same split with every version.

References
----------
NumPy Enhancement Proposal 19, "Random Number Generator Policy".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnnlab.errors import InvalidInput

Split = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_split(
    num_nodes: int, fractions: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0
) -> Split:
    """Split the nodes 0 … N−1 at random.

    Parameters
    ----------
    fractions : sequence of three floats
        Fractions of training, validation and test nodes; they sum to 1.

    Returns
    -------
    tuple of numpy.ndarray
        Sorted node IDs of the three sets, int64.

    Examples
    --------
    >>> from gnnlab.data import random_split
    >>> [len(ids) for ids in random_split(1000)]
    [800, 100, 100]
    """
    check_fractions(fractions, 3)
    order = np.random.RandomState(seed).permutation(num_nodes).astype(np.int64)
    train, val, test = np.split(order, split_points(num_nodes, fractions))
    return np.sort(train), np.sort(val), np.sort(test)


def per_class_split(
    label: np.ndarray,
    train_per_class: int = 20,
    num_val: int = 500,
    num_test: int = 1000,
    seed: int = 0,
) -> Split:
    """Draw a fixed number of training nodes per class, as in citation benchmarks.

    Parameters
    ----------
    label : numpy.ndarray
        Shape (N,), integers.
    train_per_class, num_val, num_test : int
        The remaining nodes belong to no set.

    Returns
    -------
    tuple of numpy.ndarray
        Sorted node IDs of the three sets, int64.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.data import per_class_split
    >>> train, val, test = per_class_split(np.arange(3000) % 7)
    >>> len(train), len(val), len(test)
    (140, 500, 1000)

    References
    ----------
    Yang, Cohen and Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph Embeddings",
    ICML 2016 (these sizes). Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018
    (why to draw the split rather than to reuse one).
    """
    counts = np.unique(label, return_counts=True)[1]
    needed = train_per_class * len(counts) + num_val + num_test
    if counts.min(initial=len(label)) < train_per_class or needed > len(label):
        raise InvalidInput(
            f"{train_per_class} training nodes in each of {len(counts)} classes, {num_val} for "
            f"validation and {num_test} for testing need {needed} nodes; found {len(label)}, "
            f"{counts.min(initial=len(label))} in the smallest class; ask for fewer"
        )
    order = np.random.RandomState(seed).permutation(len(label)).astype(np.int64)
    train = np.concatenate(
        [order[label[order] == value][:train_per_class] for value in np.unique(label)]
    )
    rest = order[~np.isin(order, train)]
    val, test = rest[:num_val], rest[num_val : num_val + num_test]
    return np.sort(train), np.sort(val), np.sort(test)


def check_fractions(fractions: Sequence[float], count: int) -> None:
    """Raise InvalidInput unless they are ``count`` fractions that sum to 1."""
    found = [float(fraction) for fraction in fractions]
    if len(found) != count or not (min(found) >= 0 and abs(sum(found) - 1) <= 1e-6):
        raise InvalidInput(
            f"a split needs {count} fractions of at least 0 that sum to 1; found {found}"
        )


def split_points(count: int, fractions: Sequence[float]) -> np.ndarray:
    """Return the split points of ``count`` items; the last part gets the rounding error."""
    return np.minimum(np.cumsum([round(count * fraction) for fraction in fractions[:-1]]), count)
