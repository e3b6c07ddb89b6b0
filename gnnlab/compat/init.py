"""``dgl.init``: functions that make the features of new nodes and edges."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["base_initializer", "zero_initializer"]


def zero_initializer(
    shape: tuple[int, ...], dtype: torch.dtype, ctx: Any, id_range: slice | None = None
) -> torch.Tensor:
    """Return zeros, for ``g.set_n_initializer(dgl.init.zero_initializer)``.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.init import zero_initializer
    >>> zero_initializer((2,), torch.float32, "cpu", slice(3, 5))
    tensor([0., 0.])
    """
    return torch.zeros(shape, dtype=dtype, device=ctx)


base_initializer = zero_initializer
