r"""GraphSAGE: a node's new row depends on its own row and a reduction of its in-neighbors' rows.

.. math::

    h_v' = W_{self}\, h_v + W_{neigh} \operatorname{aggregate}(\{h_u : u \to v\}) + b

Since a node's own row has a weight separate from its neighbors', the layer works on nodes whose
neighbors were sampled, on nodes without neighbors, and on nodes that are not in the training graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.nn.utils import (
    Activation,
    Features,
    aggregate,
    check_activation,
    check_arguments,
    check_edge_weight,
    expand_as_pair,
    from_sources,
    keeps,
    map_features,
    pair_of_sizes,
    per_row,
    run_lstm,
)
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class SAGEConv(nn.Module):
    """GraphSAGE layer.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    out_feats : int
        Size of the output rows.
    aggregator_type : {"mean", "gcn", "pool", "lstm"}
        How the in-neighbors' rows are reduced: their mean; the mean of them and the node's own row,
        with one weight for both; the maximum after a linear layer with ReLU; the last state of an
        LSTM that reads them in edge-ID order.
    feat_drop : float, default 0
        Dropout on the input rows.
    bias : bool, default True
        Add a learned vector to the output.
    norm : callable, optional
        Applied to the output, after the activation.
    activation : callable, optional
        Applied to the output.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import SAGEConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = SAGEConv(5, 2, "mean")
    >>> layer(graph, torch.ones(3, 5)).shape
    torch.Size([3, 2])
    >>> block = dgl.to_block(dgl.in_subgraph(graph, [1]), [1])
    >>> layer(block, torch.ones(2, 5)).shape
    torch.Size([1, 2])

    References
    ----------
    Hamilton, Ying, Leskovec: Inductive Representation Learning on Large Graphs, NeurIPS 2017.
    """

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        aggregator_type: str,
        feat_drop: float = 0.0,
        bias: bool = True,
        norm: Activation | None = None,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        check_choice(aggregator_type, ("mean", "gcn", "pool", "lstm"), "aggregator", NotFound)
        src_feats, dst_feats = pair_of_sizes(in_feats)
        if aggregator_type == "gcn" and src_feats != dst_feats:
            raise InvalidInput(
                f"the 'gcn' aggregator averages source and destination rows, but their sizes are "
                f"{src_feats} and {dst_feats}: make them equal, or use 'mean'"
            )
        self.in_feats = in_feats
        self.out_feats = out_feats
        self.aggregator_type = aggregator_type
        # W(mean of h) = mean of (W h): aggregate whichever of the two rows is smaller.
        self.multiply_first = aggregator_type in ("mean", "gcn") and src_feats > out_feats
        self.norm = norm
        self.activation = check_activation(activation)
        self.feat_drop = nn.Dropout(feat_drop)
        if aggregator_type == "pool":
            self.fc_pool = nn.Linear(src_feats, src_feats)
        if aggregator_type == "lstm":
            self.lstm = nn.LSTM(src_feats, src_feats, batch_first=True)
        self.fc_neigh = nn.Linear(src_feats, out_feats, bias=False)
        if aggregator_type != "gcn":
            self.fc_self = nn.Linear(dst_feats, out_feats, bias=bias)
        elif bias:
            self.bias = nn.Parameter(torch.zeros(out_feats))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights: Glorot uniform, for ReLU."""
        gain = nn.init.calculate_gain("relu")
        if self.aggregator_type == "pool":
            nn.init.xavier_uniform_(self.fc_pool.weight, gain)
        if self.aggregator_type == "lstm":
            self.lstm.reset_parameters()
        if self.aggregator_type != "gcn":
            nn.init.xavier_uniform_(self.fc_self.weight, gain)
        nn.init.xavier_uniform_(self.fc_neigh.weight, gain)

    def forward(self, graph: Graph, feat: Features, edge_weight: Tensor | None = None) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, …, in_feats), or a pair (source rows, destination rows)
            On a block, the destinations are the first rows of a single tensor.
        edge_weight : Tensor of shape (E,) or (E, 1), optional
            Multiplies the message of each edge; the mean still divides by the number of edges.

        Returns
        -------
        Tensor of shape (num_dst, …, out_feats)
        """
        check_arguments(graph, feat)
        feat = map_features(self.feat_drop, feat)
        dtype = self.fc_neigh.weight.dtype
        src, dst = expand_as_pair(feat, graph, pair_of_sizes(self.in_feats), dtype)
        if self.aggregator_type == "gcn":
            out = self._gcn(graph, src, dst, edge_weight)
        else:
            # In place: the backward pass of a linear layer does not need its output.
            out = self.fc_self(dst).add_(self._neighbors(graph, src, edge_weight))
        if self.activation is not None:
            out = self.activation(out)
        return out if self.norm is None else self.norm(out)

    def _neighbors(self, graph: Graph, src: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Return the weighted reduction of the in-neighbors, shape (num_dst, …, out_feats)."""
        if self.aggregator_type == "pool":
            return self.fc_neigh(aggregate(graph, "max", self.fc_pool(src).relu(), edge_weight))
        if self.aggregator_type == "lstm":
            return self.fc_neigh(self._lstm(graph, src, edge_weight))
        # With fewer edges than source nodes, aggregating first multiplies fewer rows.
        if self.multiply_first and (graph.num_src_nodes() <= graph.num_edges() or keeps(graph)):
            rows = from_sources(graph, src, self.fc_neigh.weight, lambda: self.fc_neigh(src))
            return aggregate(graph, "mean", rows, edge_weight)
        return self.fc_neigh(aggregate(graph, "mean", src, edge_weight))

    def _gcn(self, graph: Graph, src: Tensor, dst: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Average the node's own row with those of its in-neighbors, then multiply."""
        if self.multiply_first:
            dst = self.fc_neigh(dst)
            src = from_sources(graph, src, self.fc_neigh.weight, lambda: self.fc_neigh(src))
        total = aggregate(graph, "sum", src, edge_weight) + dst
        out = total / per_row(graph.relation().in_degrees().to(total.dtype) + 1, total)
        if not self.multiply_first:
            out = self.fc_neigh(out)
        return out if self.bias is None else out + self.bias

    def _lstm(self, graph: Graph, src: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Run the LSTM over each node's in-neighbors: nodes of one degree form one batch."""
        if edge_weight is not None:
            check_edge_weight(graph, src, edge_weight)
        adjacency = graph.relation().csc()
        degrees = adjacency.indptr.diff()
        out = src.new_zeros(len(degrees), src.shape[-1])
        for degree in degrees.unique().tolist():
            if degree == 0:
                continue
            nodes = (degrees == degree).nonzero().squeeze(1)
            slots = adjacency.indptr[nodes, None] + torch.arange(degree, device=src.device)
            sequences = src[adjacency.indices[slots]]  # (nodes, degree, in_feats)
            if edge_weight is not None:
                weights = edge_weight[adjacency.eids[slots]]
                sequences = sequences * per_row(weights, sequences)
            _, (hidden, _) = run_lstm(self.lstm, sequences)
            out[nodes] = hidden[-1].to(out.dtype)
        return out

    def extra_repr(self) -> str:
        """Show the sizes and the aggregator."""
        return f"in={self.in_feats}, out={self.out_feats}, aggregator={self.aggregator_type}"
