"""Random numbers as functions of their names."""

import numpy as np
import scipy
import torch
from numba import njit

from gnnlab import random
from gnnlab.kernels import rng, rng_torch


@njit
def _draws(key, count, bound):
    whole = np.empty(count, np.int64)
    real = np.empty(count, np.float64)
    for i in range(count):
        whole[i] = rng.below(rng.draw(key, i), bound)
        real[i] = rng.uniform(rng.draw(key, i))
    return whole, real


def test_mix_is_the_finaliser_of_splitmix64():
    """The first outputs of splitmix64 seeded with 0, from its published reference."""

    @njit
    def draw(key, counter):
        return rng.draw(key, counter)

    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(draw(np.uint64(0), i)) for i in range(3)] == expected


def test_numbers_are_uniform_and_inside_their_range():
    whole, real = _draws(np.uint64(5), 100_000, 13)
    assert whole.min() == 0 and whole.max() == 12
    assert scipy.stats.chisquare(np.bincount(whole)).pvalue > 1e-4
    assert real.min() > 0 and real.max() < 1
    assert scipy.stats.kstest(real, "uniform").pvalue > 1e-4


def test_streams_of_neighboring_names_are_independent():
    one, two = (_draws(np.uint64(random.fold(0, name)), 50_000, 2)[0] for name in (1, 2))
    table = np.histogram2d(one, two, bins=2)[0]
    assert scipy.stats.chi2_contingency(table).pvalue > 1e-4


def test_the_torch_twin_draws_the_same_numbers():
    @njit
    def draws(key, name, count, bound):
        stream = rng.mix(key + np.uint64(name))
        whole = [rng.below(rng.draw(stream, i), bound) for i in range(count)]
        return whole, [rng.uniform(rng.draw(stream, i)) for i in range(count)]

    for key, name, bound in ((0, 0, 1), (2**64 - 1, 5, 1000), (random.fold(3), 2**40, 2**32 - 1)):
        stream = rng_torch.streams(key, torch.tensor([name]))
        bits = rng_torch.draw(stream, torch.arange(100))
        whole, real = draws(np.uint64(key), name, 100, bound)
        assert rng_torch.below(bits, bound).tolist() == whole
        assert rng_torch.uniform(bits).tolist() == real
