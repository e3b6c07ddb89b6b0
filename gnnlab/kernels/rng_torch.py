"""Stateless random numbers with torch operators, on any device.

The functions of ``rng``, on whole tensors. torch has no unsigned 64-bit arithmetic, but sums and
products in two's complement have the same bits, so the numbers equal those of ``rng`` bit for bit.
"""

from __future__ import annotations

import torch

from gnnlab.helpers.block_sampler import mix, shift, signed

_GOLDEN = signed(0x9E3779B97F4A7C15)


def streams(key: int, names: torch.Tensor) -> torch.Tensor:
    """Return the key for :func:`draw`, int64, of one stream per name, for instance per node ID."""
    return mix(signed(key) + names.long())


def draw(key: torch.Tensor, counter: torch.Tensor | int) -> torch.Tensor:
    """Return the ``counter``-th 64 random bits of each stream."""
    step = (counter + 1) * _GOLDEN
    return mix(key + (signed(step) if isinstance(step, int) else step))


def below(bits: torch.Tensor, bound: torch.Tensor | int) -> torch.Tensor:
    """Turn 64 random bits into an integer of ``range(bound)``, for ``bound`` below 2**32."""
    return shift(shift(bits, 32) * bound, 32)


def uniform(bits: torch.Tensor) -> torch.Tensor:
    """Turn 64 random bits into a float64 of the open interval (0, 1)."""
    return (shift(bits, 11).double() + 0.5) / float(1 << 53)
