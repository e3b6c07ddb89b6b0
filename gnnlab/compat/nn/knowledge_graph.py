"""``dgl.nn.pytorch.link``: scores of (head, relation, tail) in a knowledge graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnlab.nn.base import check_count
from gnnlab.nn.linear import check_types
from gnnlab.nn.predictor import EdgePredictor as EdgePredictor


def _check(h_head: Tensor, h_tail: Tensor, rels: Tensor, relations: nn.Embedding) -> None:
    check_types(rels, len(rels) if rels.dim() else 1, relations.num_embeddings, "rels")
    for rows, name in (h_head, "h_head"), (h_tail, "h_tail"):
        check_count(rows, len(rels), name, relations.weight)


class TransE(nn.Module):
    r"""A relation is a translation: the score is :math:`-\lVert h + r - t \rVert_p`.

    From Bordes et al.: Translating Embeddings for Modeling Multi-relational Data, NeurIPS 2013.

    Rows have size ``feats``; ``num_rels`` is the number of relations.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.TransE(num_rels=4, feats=5)
    >>> layer(torch.ones(2, 5), torch.ones(2, 5), torch.tensor([3, 0])).shape
    torch.Size([2])
    """

    def __init__(self, num_rels: int, feats: int, p: int = 1) -> None:
        super().__init__()
        self.rel_emb = nn.Embedding(num_rels, feats)
        self.p = p

    def reset_parameters(self) -> None:
        """Initialize the relations: standard normal."""
        self.rel_emb.reset_parameters()

    def forward(self, h_head: Tensor, h_tail: Tensor, rels: Tensor) -> Tensor:
        """Return scores (E,) for rows of shape (E, feats) and relations (E,)."""
        _check(h_head, h_tail, rels, self.rel_emb)
        return -torch.norm(h_head + self.rel_emb(rels) - h_tail, p=self.p, dim=-1)


class TransR(nn.Module):
    r"""A relation is a translation in its own space: :math:`-\lVert h M_r + r - t M_r \rVert_p`.

    From Lin et al.: Learning Entity and Relation Embeddings for Knowledge Graph Completion, AAAI
    2015.

    Rows have size ``nfeats``, the spaces of the ``num_rels`` relations ``rfeats``.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.TransR(num_rels=4, rfeats=3, nfeats=5)
    >>> layer(torch.ones(2, 5), torch.ones(2, 5), torch.tensor([3, 0])).shape
    torch.Size([2])
    """

    def __init__(self, num_rels: int, rfeats: int, nfeats: int, p: int = 1) -> None:
        super().__init__()
        self.rel_emb = nn.Embedding(num_rels, rfeats)
        self.rel_project = nn.Embedding(num_rels, nfeats * rfeats)
        self.sizes = (nfeats, rfeats)
        self.p = p

    def reset_parameters(self) -> None:
        """Initialize relations and matrices: standard normal."""
        self.rel_emb.reset_parameters()
        self.rel_project.reset_parameters()

    def forward(self, h_head: Tensor, h_tail: Tensor, rels: Tensor) -> Tensor:
        """Return scores (E,) for rows of shape (E, nfeats) and relations (E,)."""
        _check(h_head, h_tail, rels, self.rel_emb)
        matrices = self.rel_project(rels).unflatten(-1, self.sizes)
        moved = torch.einsum("ei,eij->ej", h_head - h_tail, matrices)
        return -torch.norm(moved + self.rel_emb(rels), p=self.p, dim=-1)
