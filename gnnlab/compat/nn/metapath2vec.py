"""metapath2vec: embeddings of typed nodes from random walks along a metapath."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.random import generator
from gnnlab.sampling import random_walk


class MetaPath2Vec(nn.Module):
    """Skip-gram embeddings: nodes that are near in walks along a metapath become similar.

    ``metapath`` has edge types; nodes up to ``window_size`` steps apart in a walk are a pair, which
    gets ``negative_size`` nodes drawn by their frequency in walks to the power of 3/4. With
    ``sparse``, gradients are sparse: train with ``torch.optim.SparseAdam``. ``node_embed`` is the
    table of all nodes, type after type; ``local_to_global_nid`` gives the rows of each type.
    From Dong et al.: metapath2vec, KDD 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> edges = torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1])
    >>> g = dgl.heterograph({("user", "buys", "item"): edges, ("item", "by", "user"): edges[::-1]})
    >>> model = dgl.nn.MetaPath2Vec(g, ["buys", "by"], window_size=1, emb_dim=4)
    >>> pairs = model.sample(torch.tensor([0, 1, 2]))  # collate_fn of a loader of start nodes
    >>> [tuple(ids.shape) for ids in pairs], model(*pairs).shape
    ([(12,), (12,), (12, 5)], torch.Size([]))
    >>> model.node_embed(torch.tensor(model.local_to_global_nid["user"])).shape
    torch.Size([3, 4])
    """

    def __init__(
        self,
        g: Graph,
        metapath: Sequence[Any],
        window_size: int,
        emb_dim: int = 128,
        negative_size: int = 5,
        sparse: bool = True,
    ) -> None:
        super().__init__()
        if not 1 <= window_size <= len(metapath):
            raise InvalidInput(
                f"window_size is from 1 to the {len(metapath)} steps of the metapath; found "
                f"{window_size}"
            )
        self.hg, self.metapath, self.window_size = g, list(metapath), window_size
        self.emb_dim, self.negative_size = emb_dim, negative_size
        path = [g.to_canonical_etype(etype) for etype in metapath]
        self.node_metapath = [path[0][0], *(etype[2] for etype in path)]
        starts = [0]
        for ntype in g.ntypes:
            starts.append(starts[-1] + g.num_nodes(ntype))
        self._starts = dict(zip(g.ntypes, starts, strict=False))
        self.local_to_global_nid = {
            ntype: list(range(start, start + g.num_nodes(ntype)))
            for ntype, start in self._starts.items()
        }
        self.node_embed = nn.Embedding(starts[-1], emb_dim, sparse=sparse)
        self.context_embed = nn.Embedding(starts[-1], emb_dim, sparse=sparse)
        walks = self._walk(g.nodes(self.node_metapath[0]))
        seen = torch.bincount(walks[walks >= 0].cpu(), minlength=starts[-1])
        self.neg_prob = seen.double() ** 0.75  # up to a factor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the nodes' rows, uniform below 1 / emb_dim, and the contexts' to zero."""
        nn.init.uniform_(self.node_embed.weight, -1 / self.emb_dim, 1 / self.emb_dim)
        nn.init.zeros_(self.context_embed.weight)

    def _walk(self, nodes: Tensor) -> Tensor:
        """Return the walks from some nodes, (walks, steps + 1), as rows of the tables or −1."""
        traces = random_walk(self.hg, nodes, metapath=self.metapath)[0].long()
        starts = [self._starts[ntype] for ntype in self.node_metapath]
        return torch.where(traces < 0, -1, traces + traces.new_tensor(starts))

    def sample(self, indices: Sequence[Any] | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return center and context rows of the pairs of walks from some nodes, and negatives.

        Shapes (P,), (P,) and (P, negative_size). Use it as the ``collate_fn`` of a loader.
        """
        walks = self._walk(torch.as_tensor(indices, device=self.hg.device))
        pairs = []
        for step in range(1, self.window_size + 1):
            u, v = walks[:, :-step].flatten(), walks[:, step:].flatten()
            both = torch.stack([u, v])[:, (u >= 0) & (v >= 0)]
            pairs += [both, both.flip(0)]
        pos_u, pos_v = torch.cat(pairs, 1)
        sums = self.neg_prob.cumsum(0)
        marks = torch.rand(
            (len(pos_u), self.negative_size), dtype=sums.dtype, generator=generator()
        )
        drawn = torch.searchsorted(sums, marks * sums[-1], right=True)
        return pos_u, pos_v, drawn.to(pos_u.device)

    def forward(self, pos_u: Tensor, pos_v: Tensor, neg_v: Tensor) -> Tensor:
        """Return the loss of pairs and negatives: a mean over pairs of logistic losses."""
        center = self.node_embed(pos_u)
        near = (center * self.context_embed(pos_v)).sum(-1)
        far = (center.unsqueeze(1) * self.context_embed(neg_v)).sum(-1)
        losses = F.softplus(-near) + F.softplus(far).sum(-1)
        return losses.sum() / max(len(losses), 1)  # walks that end at once give no pairs
