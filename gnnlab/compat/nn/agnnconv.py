"""Attention by the similarity of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.nn.base import ZeroInDegree
from gnnlab.nn.utils import Features, aggregate, check_dtype, expand_as_pair

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["AGNNConv"]


class AGNNConv(ZeroInDegree):
    r"""Attention by cosine similarity: scores :math:`\beta \cos(h_u, h_v)`, no other weights.

    From Thekumparampil et al.: Attention-based Graph Neural Network for Semi-supervised Learning,
    2018.

    Parameters
    ----------
    init_beta : float, default 1
    learn_beta : bool, default True
    allow_zero_in_degree : bool, default False

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> dgl.nn.AGNNConv(allow_zero_in_degree=True)(graph, torch.eye(3)).detach()[2]
    tensor([0.5000, 0.5000, 0.0000])
    """

    beta: Tensor

    def __init__(
        self, init_beta: float = 1.0, learn_beta: bool = True, allow_zero_in_degree: bool = False
    ) -> None:
        super().__init__(allow_zero_in_degree)
        beta = torch.tensor([float(init_beta)])
        if learn_beta:
            self.beta = nn.Parameter(beta)
        else:
            self.register_buffer("beta", beta)

    def forward(self, graph: Graph, feat: Features) -> Tensor:
        """Return (num_dst, D) for ``feat`` of shape (num_src, D), or a pair."""
        self.check(graph, feat)
        src, dst = expand_as_pair(feat, graph)
        if not src.is_floating_point():
            check_dtype(src, self.beta.dtype, "source")
        cosine = ops.sddmm(
            graph.relation(), "dot", F.normalize(src, dim=-1), F.normalize(dst, dim=-1)
        )
        return aggregate(graph, "sum", src, ops.edge_softmax(graph, self.beta * cosine))
