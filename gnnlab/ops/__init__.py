"""Differentiable operators of message passing.

``gspmm`` computes and reduces messages, ``gsddmm`` computes on edges; every combination also has a
name of its own, such as ``u_mul_e_sum(g, x, w)`` or ``u_dot_v(g, x, y)``. ``spmm`` and ``sddmm``
take a relation (the structure of one edge type) where the others take a graph.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from gnnlab.ops.activation import relu_dropout
from gnnlab.ops.edge_softmax import edge_softmax
from gnnlab.ops.named import NAMED
from gnnlab.ops.sddmm import gsddmm, sddmm
from gnnlab.ops.segment import segment_reduce
from gnnlab.ops.spmm import gspmm, spmm

__all__ = ["edge_softmax", "gsddmm", "gspmm", "relu_dropout", "sddmm", "segment_reduce", "spmm"]
__all__ += list(NAMED)
globals().update(NAMED)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., torch.Tensor]:
        """Declare the generated names for type checkers."""
