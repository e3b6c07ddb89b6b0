"""Scores of node pairs from their embeddings, for link prediction."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.nn.base import check_count
from gnnlab.ops.checks import check_choice


class EdgePredictor(nn.Module):
    """Score pairs of nodes from their rows.

    Parameters
    ----------
    op : {"dot", "cos", "ele", "cat"}
        Dot product, cosine similarity, elementwise product, or the two rows side by side.
    in_feats, out_feats : int, optional
        Add a linear layer with ``out_feats`` outputs after the operation, for rows of this size.
    bias : bool, default False
        Give the linear layer a bias.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.nn import EdgePredictor
    >>> source, destination = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])
    >>> EdgePredictor("dot")(source, destination)
    tensor([[11.]])
    >>> EdgePredictor("cat", in_feats=2, out_feats=1)
    EdgePredictor(
      op=cat
      (linear): Linear(in_features=4, out_features=1, bias=False)
    )

    References
    ----------
    DGL User Guide, 6.3: Training GNN for link prediction with neighborhood sampling.
    """

    def __init__(
        self, op: str, in_feats: int | None = None, out_feats: int | None = None, bias: bool = False
    ) -> None:
        super().__init__()
        check_choice(op, ("dot", "cos", "ele", "cat"), "operation", NotFound)
        self.op = op
        if out_feats is None:
            self.linear = None
        elif in_feats is None:
            raise InvalidInput(
                "EdgePredictor has out_feats but no in_feats: give the size of the rows as well"
            )
        else:
            width = {"dot": 1, "cos": 1, "ele": in_feats, "cat": 2 * in_feats}[op]
            self.linear = nn.Linear(width, out_feats, bias=bias)

    def reset_parameters(self) -> None:
        """Initialize the weights of the linear layer."""
        if self.linear is not None:
            self.linear.reset_parameters()

    def forward(self, h_src: Tensor, h_dst: Tensor) -> Tensor:
        """Score pairs.

        Parameters
        ----------
        h_src, h_dst : Tensor of shape (E, in_feats)
            Rows of the two ends of each pair.

        Returns
        -------
        Tensor of shape (E, 1), (E, in_feats), (E, 2 · in_feats) or (E, out_feats)
            By operation: dot and cos, ele, cat; with a linear layer, its output.
        """
        check_count(h_dst, len(h_src) if h_src.dim() else 0, "h_dst")
        if self.op == "dot":
            score = (h_src * h_dst).sum(-1, keepdim=True)
        elif self.op == "cos":
            score = F.cosine_similarity(h_src, h_dst, dim=-1).unsqueeze(-1)
        elif self.op == "ele":
            score = h_src * h_dst
        else:
            score = torch.cat([h_src, h_dst], dim=-1)
        return score if self.linear is None else self.linear(score)

    def extra_repr(self) -> str:
        """Show the operation."""
        return f"op={self.op}"
