"""Stateless (counter-based) random numbers.

An ordinary generator changes its state with every draw, so its results depend on the order of the
draws: on threads, workers, machines. Here a number is a *function of its name*, a hash of the seed,
the epoch, the batch, the layer, the node and the position of the draw: the same name gives the same
number in any thread, process and order. The hash is the finaliser of splitmix64. Keys, made from
the seed, come from :mod:`gnnlab.random`.

References
----------
Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011 (counter-based generators).
"""

import numpy as np

from gnnlab.kernels.jit import njit


@njit(inline="always")
def mix(z):  # type: ignore[no-untyped-def]
    """Scramble 64 bits: a one-to-one map whose output bits each depend on all input bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def draw(key, counter):  # type: ignore[no-untyped-def]
    """Return the ``counter``-th 64 random bits of the stream ``key`` (both uint64)."""
    return mix(key + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@njit(inline="always")
def below(bits, bound):  # type: ignore[no-untyped-def]
    """Turn 64 random bits into an integer of ``range(bound)``, for ``bound`` below 2**32.

    The upper half times ``bound`` replaces a slow division; the bias is at most ``bound / 2**32``.
    """
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit(inline="always")
def uniform(bits):  # type: ignore[no-untyped-def]
    """Turn 64 random bits into a float64 of the open interval (0, 1)."""
    return (np.float64(bits >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)
