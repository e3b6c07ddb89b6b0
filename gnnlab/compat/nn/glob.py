"""Readout layers: reduce node rows to one row per graph, for graph-level tasks.

All take a graph or a batch of graphs, and node rows of shape (N, D), graph after graph.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.readout import segment_softmax
from gnnlab.nn.base import check_count
from gnnlab.nn.pooling import AvgPooling as AvgPooling
from gnnlab.nn.pooling import SumPooling as SumPooling
from gnnlab.nn.utils import run_lstm
from gnnlab.ops.spmm import check_number


class MaxPooling(nn.Module):
    """Take the elementwise maximum of the rows of each graph's nodes."""

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Reduce ``feat``, shape (N, …), to shape (number of graphs, …)."""
        check_count(feat, graph.num_nodes(), "feat")
        return ops.segment_reduce(graph.batch_num_nodes().to(feat.device), feat, "max")


class SortPooling(nn.Module):
    """Sort each row, then the nodes of each graph by their last column, and keep the top ``k``.

    Missing ones are rows of zeros. From Zhang et al.: An End-to-End Deep Learning Architecture for
    Graph Classification, AAAI 2018.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> rows = torch.tensor([[3.0, 1.0], [0.0, 5.0], [4.0, 2.0]])
    >>> dgl.nn.SortPooling(k=2)(dgl.graph(([0, 1], [1, 2])), rows)
    tensor([[0., 5., 2., 4.]])
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Reduce ``feat``, shape (N, D), to shape (number of graphs, k · D)."""
        check_count(feat, graph.num_nodes(), "feat")
        check_number("max", feat)
        feat = feat.sort(dim=-1).values
        sizes = graph.batch_num_nodes().to(feat.device)
        by_key = feat[:, -1].argsort(descending=True, stable=True)
        graphs = torch.arange(len(sizes), device=feat.device).repeat_interleave(sizes)
        order = by_key[graphs[by_key].argsort(stable=True)]  # by graph, then by key
        starts = sizes.cumsum(0) - sizes
        place = torch.arange(len(feat), device=feat.device) - starts.repeat_interleave(sizes)
        kept = place < self.k
        slots = (graphs * self.k + place)[kept]
        out = feat.new_zeros(len(sizes) * self.k, feat.shape[-1])
        return out.index_copy(0, slots, feat[order[kept]]).view(len(sizes), -1)


class GlobalAttentionPooling(nn.Module):
    """Sum each graph's rows, after ``feat_nn``, weighted by a softmax of the scores of ``gate_nn``.

    From Li et al.: Gated Graph Sequence Neural Networks, ICLR 2016.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.GlobalAttentionPooling(torch.nn.Linear(5, 1))
    >>> layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5))
    tensor([[1., 1., 1., 1., 1.]], grad_fn=<ViewBackward0>)
    """

    def __init__(self, gate_nn: nn.Module, feat_nn: nn.Module | None = None) -> None:
        super().__init__()
        self.gate_nn, self.feat_nn = gate_nn, feat_nn

    def forward(
        self, graph: Graph, feat: Tensor, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return (graphs, D); with ``get_attention`` also each node's weight, (N, 1)."""
        check_count(feat, graph.num_nodes(), "feat", next(self.gate_nn.parameters(), None))
        scores = self.gate_nn(feat)
        if scores.shape[-1] != 1:
            raise InvalidInput(
                f"gate_nn gave {scores.shape[-1]} numbers per node; expected one score: let its "
                "last layer have one output"
            )
        sizes = graph.batch_num_nodes().to(feat.device)
        weights = segment_softmax(sizes, scores)
        rows = feat if self.feat_nn is None else self.feat_nn(feat)
        out = ops.segment_reduce(sizes, rows * weights)
        return (out, weights) if get_attention else out


class Set2Set(nn.Module):
    """Read the nodes of each graph ``n_iters`` times by attention, guided by an LSTM.

    From Vinyals, Bengio, Kudlur: Order Matters: Sequence to Sequence for Sets, ICLR 2016.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> dgl.nn.Set2Set(5, n_iters=2, n_layers=1)(graph, torch.ones(3, 5)).shape
    torch.Size([1, 10])
    """

    def __init__(self, input_dim: int, n_iters: int, n_layers: int) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.output_dim = 2 * input_dim
        self.n_iters, self.n_layers = n_iters, n_layers
        self.lstm = nn.LSTM(self.output_dim, input_dim, n_layers)

    def reset_parameters(self) -> None:
        """Initialize the LSTM as torch does."""
        self.lstm.reset_parameters()

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Reduce ``feat``, shape (N, D), to shape (number of graphs, 2 · D)."""
        check_count(feat, graph.num_nodes(), "feat", next(self.lstm.parameters()))
        sizes = graph.batch_num_nodes().to(feat.device)
        zeros = feat.new_zeros(self.n_layers, len(sizes), self.input_dim)
        state = (zeros, zeros)
        out = feat.new_zeros(len(sizes), self.output_dim)
        for _ in range(self.n_iters):
            query, state = run_lstm(self.lstm, out.unsqueeze(0), state)
            query = query.squeeze(0)
            scores = (feat * query.repeat_interleave(sizes, 0)).sum(-1, keepdim=True)
            read = ops.segment_reduce(sizes, feat * segment_softmax(sizes, scores))
            out = torch.cat([query, read], dim=-1)
        return out


class WeightAndSum(nn.Module):
    """Sum the rows of each graph's nodes with learned weights between 0 and 1.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.WeightAndSum(5)(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5)).shape
    torch.Size([1, 5])
    """

    def __init__(self, in_feats: int) -> None:
        super().__init__()
        self.in_feats = in_feats
        self.atom_weighting = nn.Sequential(nn.Linear(in_feats, 1), nn.Sigmoid())

    def forward(self, g: Graph, feats: Tensor) -> Tensor:
        """Reduce ``feats``, shape (N, in_feats), to shape (number of graphs, in_feats)."""
        check_whole(g, feats, self.in_feats, next(self.parameters()))
        weighted = feats * self.atom_weighting(feats)
        return ops.segment_reduce(g.batch_num_nodes().to(feats.device), weighted)
