"""Graphs of any size like ogbn-products: a degree-corrected stochastic block model.

Every node has a community, which is its class, and a weight drawn from a power law. The first
endpoint of an edge is drawn in proportion to the weights; the second one too, with probability 0.8
from the community of the first. Features are the mean of the class plus strong noise, so that a
node's own features say little about its class and those of its neighbors together say much.

Random numbers are computed from (seed, number of the draw), without a state. Drawing an endpoint
takes a table look-up and one or two steps (Chen and Asau's guide table), not a binary search.

References
----------
Karrer and Newman, "Stochastic blockmodels and community structure in networks", Physical Review
E 83, 2011.
Chen and Asau, "On generating random variates from an empirical distribution", AIIE Trans. 6, 1974.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import below, draw, uniform
from gnnlab.random import fold
from gnnlab.system.bars import progress_bar

NUM_CLASSES = 47
INSIDE = 0.8  # probability that the second endpoint is drawn from the first one's community
EXPONENT = 2.5  # of the power law of degrees
LARGEST_WEIGHT = 3000.0
SIGNAL = 0.13  # standard deviation of the classes' mean features; that of the noise is 1
CHUNK = 1 << 21
ROUNDS = 100


class _Model(NamedTuple):
    """The distribution of endpoints; nodes are sorted by community, each of them one interval."""

    node: np.ndarray  # (N,) int32: node at each rank of the sorted order
    community: np.ndarray  # (N,) int64: its class
    mass: np.ndarray  # (N,) float64: sum of weights up to and including each rank
    low: np.ndarray  # (C,) float64: start of each community's interval of mass
    high: np.ndarray  # (C,) float64: its end
    guide: np.ndarray  # (N,) int32: rank at which the search starts, for N equal slices of mass


def generate(
    num_nodes: int = 100_000,
    num_edges: int = 2_500_000,
    seed: int = 0,
    num_features: int = 100,
    progress: bool = True,
) -> RawDataset:
    """Generate a data set; equal arguments give equal data.

    Parameters
    ----------
    num_nodes, num_features : int
        N, at least 2, and D.
    num_edges : int
        Number of directed edges after reverse edges are added: twice the number of pairs.

    Returns
    -------
    RawDataset
        ``num_edges // 2`` distinct edges u → v with u < v, in random order; 8 % of the nodes for
        training, 2 % for validation, 90 % for testing, like ogbn-products.

    Examples
    --------
    >>> from gnnlab.data.generate import generate
    >>> raw = generate(num_nodes=1000, num_edges=20_000)
    >>> raw.num_edges, raw.with_reverse_edges().num_edges
    (10000, 20000)
    """
    _check(num_nodes, num_edges, num_features)
    random = np.random.default_rng(seed)
    label = _draw_labels(num_nodes, random)
    weight = (1 - random.random(num_nodes)) ** (-1 / (EXPONENT - 1))
    model = _prepare(label, np.minimum(weight, LARGEST_WEIGHT))
    pairs = _draw_distinct(model, num_edges // 2, seed, progress)
    src, dst = (pairs >> 32).astype(np.int32), pairs.astype(np.int32)
    del pairs
    order = random.permutation(num_nodes)
    cuts = (round(0.08 * num_nodes), round(0.1 * num_nodes))
    train, val, test = (np.sort(part) for part in np.split(order, cuts))
    feat = _draw_features(label, num_features, random)
    return RawDataset("products-like", src, dst, feat, label, train, val, test, NUM_CLASSES)


def _check(num_nodes: int, num_edges: int, num_features: int) -> None:
    if not 2 <= num_nodes < 2**31 or num_features < 1:
        raise InvalidInput(
            f"expected 2 to {2**31 - 1} nodes and at least 1 feature; "
            f"found {num_nodes} and {num_features}"
        )
    most = num_nodes * (num_nodes - 1) // 10
    if not 0 <= num_edges <= most:
        raise InvalidInput(
            f"{num_nodes} nodes can have at most {most} directed edges, a tenth of all pairs; "
            f"found {num_edges}"
        )


def _draw_labels(num_nodes: int, random: np.random.Generator) -> np.ndarray:
    """Draw classes of unequal sizes; the largest is about ten times the smallest."""
    weight = (np.arange(NUM_CLASSES) + 3.0) ** -0.9
    share = np.cumsum(weight / weight.sum())
    label = np.searchsorted(share, random.random(num_nodes), side="right")
    return np.minimum(label, NUM_CLASSES - 1).astype(np.int64)


def _draw_features(label: np.ndarray, num_features: int, random: np.random.Generator) -> np.ndarray:
    mean = np.float32(SIGNAL) * random.standard_normal(
        (NUM_CLASSES, num_features), dtype=np.float32
    )
    feat = np.empty((len(label), num_features), np.float32)
    rows = max(1, CHUNK // num_features)
    for start in range(0, len(label), rows):
        part = feat[start : start + rows]
        random.standard_normal(dtype=np.float32, out=part)
        part += mean[label[start : start + rows]]
    return feat


def _prepare(label: np.ndarray, weight: np.ndarray) -> _Model:
    node = np.argsort(label, kind="stable").astype(np.int32)
    mass = np.cumsum(weight[node])
    ends = np.cumsum(np.bincount(label, minlength=NUM_CLASSES))
    bounds = np.concatenate([[0.0], mass])
    low, high = bounds[np.concatenate([[0], ends[:-1]])], bounds[ends]
    slices = np.arange(len(label)) * (mass[-1] / len(label))
    guide = np.searchsorted(mass, slices, side="right").astype(np.int32)
    return _Model(node, label[node], mass, low, high, guide)


def _draw_distinct(model: _Model, num_pairs: int, seed: int, progress: bool) -> np.ndarray:
    """Draw distinct pairs in random order: u in the upper 32 bits, v > u in the lower."""
    key, first = np.uint64(fold(seed, 1)), 0
    pairs = np.empty(0, np.int64)
    with progress_bar(None, progress, total=num_pairs, desc="edges", unit_scale=True) as bar:
        for round_ in range(ROUNDS):
            missing = num_pairs - len(pairs)
            # A few per cent of the first round are duplicates; later rounds replace them. Where
            # most likely pairs have been drawn, in small and dense graphs, few are new.
            extra = missing // 20 if len(pairs) == 0 else missing
            extra = extra if round_ < 10 else num_pairs
            drawn = np.empty(len(pairs) + missing + extra + 64 * (missing > 0), np.int64)
            drawn[: len(pairs)] = pairs
            for start in range(len(pairs), len(drawn), CHUNK):
                part = drawn[start : start + CHUNK]
                _draw_pairs(part, key, first, *model)
                first += len(part)
                bar.update(min(len(part), bar.total - bar.n))
            drawn.sort()
            pairs = drawn[: _drop_repeats(drawn)]
            if len(pairs) >= num_pairs:
                _shuffle(pairs, np.uint64(fold(seed, 2)))
                return pairs[:num_pairs]
    raise InvalidInput(
        f"only {len(pairs)} distinct pairs of {len(model.node)} nodes were drawn; expected "
        f"{num_pairs}; ask for fewer edges or more nodes"
    )


@njit(nogil=True, cache=True)
def _draw_pairs(out, key, first, node, community, mass, low, high, guide):  # type: ignore[no-untyped-def]
    """Fill ``out`` with pairs number ``first``, ``first`` + 1, …; −1 for a self-loop."""
    total = mass[-1]
    for i in range(len(out)):
        number = 3 * (first + i)
        rank = _rank(uniform(draw(key, number)) * total, mass, guide)
        start, end = 0.0, total
        if uniform(draw(key, number + 1)) < INSIDE:
            start, end = low[community[rank]], high[community[rank]]
        other = _rank(start + uniform(draw(key, number + 2)) * (end - start), mass, guide)
        u, v = np.int64(node[rank]), np.int64(node[other])
        out[i] = (min(u, v) << 32 | max(u, v)) if u != v else -1


@njit(nogil=True, cache=True)
def _rank(point, mass, guide):  # type: ignore[no-untyped-def]
    """Return the first rank whose mass exceeds ``point``."""
    last = len(mass) - 1
    rank = guide[min(np.int64(point / mass[last] * len(guide)), last)]
    while rank > 0 and mass[rank - 1] > point:
        rank -= 1
    while rank < last and mass[rank] <= point:
        rank += 1
    return rank


@njit(nogil=True, cache=True)
def _drop_repeats(keys):  # type: ignore[no-untyped-def]
    """Move the distinct keys of at least 0 of a sorted array to its front; return their number."""
    count = 0
    for key in keys:
        if key >= 0 and (count == 0 or keys[count - 1] != key):
            keys[count] = key
            count += 1
    return count


@njit(nogil=True, cache=True)
def _shuffle(values, key):  # type: ignore[no-untyped-def]
    """Put an array in random order, in place (Fisher and Yates)."""
    for i in range(len(values) - 1, 0, -1):
        j = below(draw(key, i), i + 1)
        values[i], values[j] = values[j], values[i]
