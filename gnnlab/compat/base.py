"""``dgl.base``: reserved names, the error and warnings; and ``dgl.init``, which makes rows."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from gnnlab.errors import DGLError as DGLError
from gnnlab.errors import InvalidInput
from gnnlab.graph.names import ALL as ALL
from gnnlab.graph.names import EID as EID
from gnnlab.graph.names import ETYPE as ETYPE
from gnnlab.graph.names import NID, NTYPE
from gnnlab.graph.names import is_all as is_all

_RESERVED = {NID, NTYPE}  # EID and ETYPE are the same two texts


class DGLWarning(UserWarning):
    """Category of warnings that a program gives with :func:`dgl_warning`."""


def dgl_warning(message: str, category: type[Warning] = DGLWarning, stacklevel: int = 2) -> None:
    """Warn, as :func:`warnings.warn` does; by default of the line that called this function."""
    warnings.warn(message, category, stacklevel)


class BadArgument(InvalidInput, AssertionError, RuntimeError):
    """InvalidInput where DGL raises AssertionError, or from its C++ code RuntimeError."""


class BadType(InvalidInput, TypeError):
    """InvalidInput where DGL, as Python, raises TypeError."""


def is_internal_column(name: str) -> bool:
    """Whether a feature is one that the library sets itself, such as ``"_ID"``."""
    return name in _RESERVED


def zero_initializer(
    shape: tuple[int, ...], dtype: torch.dtype, ctx: Any, id_range: slice | None = None
) -> torch.Tensor:
    """Return zeros, for ``g.set_n_initializer(dgl.init.zero_initializer)``.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.init.zero_initializer((2,), torch.float32, "cpu", slice(3, 5))
    tensor([0., 0.])
    """
    return torch.zeros(shape, dtype=dtype, device=ctx)
