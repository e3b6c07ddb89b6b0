"""``dgl.nn.pytorch.utils``: containers of layers, and label propagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab.compat.nn.checks import inverse_sqrt_degrees
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.nn.base import check_count
from gnnlab.nn.linear import INTEGERS
from gnnlab.nn.linear import WeightBasis as WeightBasis
from gnnlab.nn.utils import aggregate, per_row, run_lstm
from gnnlab.ops.checks import check_choice

Identity = nn.Identity


def matmul_maybe_select(A: Tensor, B: Tensor) -> Tensor:
    """Return A @ B; for integers A (N,), which stand for one-hot rows, the rows ``B[A]``.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.nn.utils import matmul_maybe_select
    >>> matmul_maybe_select(torch.tensor([1, 0]), torch.tensor([[5.0], [7.0]]))
    tensor([[7.],
            [5.]])
    """
    return B[A.long()] if A.dim() == 1 and A.dtype in INTEGERS else A @ B


def bmm_maybe_select(A: Tensor, B: Tensor, index: Tensor) -> Tensor:
    """Multiply row i of A (M, I), or the one-hot row of an integer, with ``B[index[i]]``, (I, O).

    ``B`` has shape (number of matrices, I, O); integers A have shape (M,). Returns (M, O).
    """
    if A.dim() == 1 and A.dtype in INTEGERS:
        return B[index.long(), A.long()]
    return torch.bmm(A.unsqueeze(1), B[index.long()]).squeeze(1)


class Sequential(nn.Sequential):
    """Layers one after the other, called as ``module(graph, *feats)``.

    A module's tuple is the next one's arguments.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> model = dgl.nn.Sequential(dgl.nn.SAGEConv(5, 4, "mean"), dgl.nn.SAGEConv(4, 2, "mean"))
    >>> model(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    def forward(self, graph: Graph | Sequence[Graph], *feats: Any) -> Any:  # type: ignore[override]
        """Run the modules on one graph, or each on its own graph of a list, such as blocks."""
        graphs = [graph] * len(self) if isinstance(graph, Graph) else graph
        if len(graphs) != len(self):
            raise InvalidInput(f"found {len(graphs)} graphs for {len(self)} modules: give one each")
        out: Any = feats
        for module, each in zip(self, graphs, strict=True):
            out = module(each, *(out if isinstance(out, tuple) else (out,)))
        return out


class JumpingKnowledge(nn.Module):
    """Combine the outputs of all layers of a model, so that each node chooses its range.

    Mode "cat" concatenates them; "max" takes the elementwise maximum; "lstm", which needs the size
    and the number of the outputs, sums them by attention from an LSTM over the layers. From Xu et
    al.: Representation Learning on Graphs with Jumping Knowledge Networks, ICML 2018.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.JumpingKnowledge("max")([torch.tensor([[1.0, 5.0]]), torch.tensor([[2.0, 3.0]])])
    tensor([[2., 5.]])
    """

    def __init__(
        self, mode: str = "cat", in_feats: int | None = None, num_layers: int | None = None
    ) -> None:
        super().__init__()
        check_choice(mode, ("cat", "max", "lstm"), "mode")
        self.mode = mode
        if mode == "lstm":
            if in_feats is None or num_layers is None:
                raise InvalidInput("mode='lstm' needs in_feats and num_layers")
            hidden = num_layers * in_feats // 2
            self.lstm = nn.LSTM(in_feats, hidden, bidirectional=True, batch_first=True)
            self.att = nn.Linear(2 * hidden, 1)

    def reset_parameters(self) -> None:
        """Initialize LSTM and attention as torch does."""
        if self.mode == "lstm":
            self.lstm.reset_parameters()
            self.att.reset_parameters()

    def forward(self, feat_list: Sequence[Tensor]) -> Tensor:
        """Combine tensors of shape (N, D) to (N, D), with ``"cat"`` to (N, number · D)."""
        if self.mode == "cat":
            return torch.cat(tuple(feat_list), dim=-1)
        stacked = torch.stack(tuple(feat_list), dim=1)  # (N, layers, D)
        if self.mode == "max":
            return stacked.amax(1)
        weights = self.att(run_lstm(self.lstm, stacked)[0]).softmax(1)
        return (stacked * weights).sum(1)


class LabelPropagation(nn.Module):
    r"""Spread known labels, ``k`` times :math:`Y \leftarrow \alpha \hat{A} Y + (1 - \alpha) Y_0`.

    ``norm_type`` "sym" divides by the square roots of both ends' degrees, "row" by the
    destination's. After each step, ``clamp`` clamps to 0 … 1, ``normalize`` makes rows sum to 1,
    ``reset`` puts the known labels back. From Zhu, Ghahramani: Learning from Labeled and Unlabeled
    Data with Label Propagation, 2002.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> mask = torch.tensor([True, False, False])
    >>> propagate = dgl.nn.LabelPropagation(k=2, alpha=0.5, norm_type="row")
    >>> propagate(graph, torch.tensor([1, 0, 0]), mask)
    tensor([[0.0000, 0.5000],
            [0.0000, 0.2500],
            [0.0000, 0.2500]])
    """

    def __init__(
        self,
        k: int,
        alpha: float,
        norm_type: str = "sym",
        clamp: bool = True,
        normalize: bool = False,
        reset: bool = False,
    ) -> None:
        super().__init__()
        check_choice(norm_type, ("sym", "row"), "norm")
        self.k, self.alpha, self.norm_type = k, alpha, norm_type
        self.clamp, self.normalize, self.reset = clamp, normalize, reset

    @torch.no_grad()
    def forward(self, g: Graph, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return soft labels of all nodes, (N, classes), of classes (N,) or of rows (N, classes).

        ``mask`` says whose labels are known: all by default.
        """
        check_count(labels, g.num_nodes(), "labels")
        if labels.dtype in INTEGERS:
            labels = F.one_hot(labels.flatten().long()).to(torch.get_default_dtype())
        elif not labels.is_floating_point():
            raise InvalidInput(f"labels are classes or rows of numbers; found {labels.dtype}")
        if mask is None:
            mask = torch.ones(len(labels), dtype=torch.bool, device=labels.device)
        known = per_row(mask, labels)
        start = out = labels * known
        relation = g.relation()
        after = inverse_sqrt_degrees(relation.in_degrees(), labels)
        before = inverse_sqrt_degrees(relation.out_degrees(), labels)
        if self.norm_type == "row":
            after, before = after.square(), torch.ones_like(before)
        for _ in range(self.k):
            out = self.alpha * aggregate(g, "sum", out * before) * after + (1 - self.alpha) * start
            if self.clamp:
                out = out.clamp(0, 1)
            if self.normalize:
                out = F.normalize(out, p=1)
            if self.reset:
                out = torch.where(known, labels, out)
        return out
