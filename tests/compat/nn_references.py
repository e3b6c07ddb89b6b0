"""Layers of ``gnnlab.compat.nn`` written again, slowly: dense matrices and loops over edges.

Each function takes the layer (for its parameters), the graph and the inputs of ``forward``, and
computes what DGL documents, with torch's dense operators only. The first line of its docstring says
how; ``tests/compat/test_nn.py`` compares.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

import gnnlab as dgl
from tests.nn.toy import adjacency


def both(g, feat) -> tuple[Tensor, Tensor]:
    """Source rows and destination rows; on a block the destinations are the first sources."""
    return feat if isinstance(feat, tuple) else (feat, feat[: g.num_dst_nodes()])


def ends(g) -> tuple[Tensor, Tensor]:
    src, dst = g.edges()
    return src.long(), dst.long()


def total(g, messages: Tensor) -> Tensor:
    """Add the message of each edge to its destination, one edge after the other."""
    out = messages.new_zeros(g.num_dst_nodes(), *messages.shape[1:])
    for edge, node in enumerate(ends(g)[1].tolist()):
        out[node] = out[node] + messages[edge]
    return out


def extreme(g, messages: Tensor) -> Tensor:
    """Elementwise maximum of the messages of each node; 0 without any."""
    dst = ends(g)[1]
    zero = messages.new_zeros(messages.shape[1:])
    nodes = range(g.num_dst_nodes())
    return torch.stack(
        [messages[dst == v].amax(0) if bool((dst == v).any()) else zero for v in nodes]
    )


def mean(g, messages: Tensor) -> Tensor:
    degrees = torch.bincount(ends(g)[1], minlength=g.num_dst_nodes()).clamp(min=1)
    return total(g, messages) / degrees.view(-1, *[1] * (messages.dim() - 1))


REDUCE = {"sum": total, "mean": mean, "max": extreme}


def softmax(g, logits: Tensor) -> Tensor:
    """Softmax over the in-edges of each node, node by node."""
    dst, out = ends(g)[1], torch.empty_like(logits)
    for node in dst.unique():
        out[dst == node] = logits[dst == node].softmax(0)
    return out


def normalised(g, edge_weight: Tensor | None = None, out_degrees: bool = False) -> Tensor:
    """The matrix D^-1/2 A D^-1/2, or that of the weights."""
    if edge_weight is not None:
        return adjacency(g, edge_weight)
    matrix = adjacency(g)
    inner = matrix.sum(1).clamp(min=1)
    outer = matrix.sum(0).clamp(min=1) if out_degrees else inner
    return matrix / inner.sqrt()[:, None] / outer.sqrt()[None, :]


def finish(layer, out: Tensor, dst: Tensor, bias: Tensor | None = None) -> Tensor:
    """Residual, bias and activation, as the layer has them."""
    if getattr(layer, "res_fc", None) is not None:
        out = out + layer.res_fc(dst).reshape(out.shape)
    if bias is not None:
        out = out + bias.reshape(out.shape[1:])
    return out if layer.activation is None else layer.activation(out)


# ---------------------------------------------------------------------------------- attention
def gatv2(layer, g, feat, get_attention=False):
    """scores edge by edge, softmax node by node"""
    hs, hd = both(g, feat)
    src, dst = ends(g)
    hs_heads = F.linear(hs, layer.fc_src.weight, layer.fc_src.bias).view(-1, *layer.attn.shape[1:])
    hd_heads = F.linear(hd, layer.fc_dst.weight, layer.fc_dst.bias).view(-1, *layer.attn.shape[1:])
    hidden = F.leaky_relu(hs_heads[src] + hd_heads[dst], layer.leaky_relu.negative_slope)
    attention = softmax(g, torch.einsum("ehd,hd->eh", hidden, layer.attn[0]))[..., None]
    out = finish(layer, total(g, attention * hs_heads[src]), hd)
    return (out, attention) if get_attention else out


def edge_gat(layer, g, feat, edge_feat, get_attention=False):
    """scores and messages edge by edge, softmax node by node"""
    hs, hd = both(g, feat)
    src, dst = ends(g)
    pair = isinstance(layer.in_feats, tuple)
    shape = layer.attn_l.shape[1:]
    ws = (hs @ (layer.fc_src if pair else layer.fc).weight.T).view(-1, *shape)
    wd = (hd @ (layer.fc_dst if pair else layer.fc).weight.T).view(-1, *shape)
    we = (edge_feat @ layer.fc_edge.weight.T).view(-1, *shape)
    stacked = torch.cat([ws[src], wd[dst], we], -1)
    vector = torch.cat([layer.attn_l, layer.attn_r, layer.attn_edge], -1)
    logits = F.leaky_relu((stacked * vector).sum(-1), layer.leaky_relu.negative_slope)
    attention = softmax(g, logits)[..., None]
    out = finish(layer, total(g, attention * (ws[src] + we)), hd, layer.bias)
    return (out, attention) if get_attention else out


def dot_gat(layer, g, feat, get_attention=False):
    """matrix of all scores, entries of the edges, softmax node by node"""
    hs, hd = both(g, feat)
    src, dst = ends(g)
    pair = isinstance(layer.in_feats, tuple)
    heads, size = layer.heads
    ws = (hs @ (layer.fc_src if pair else layer.fc).weight.T).view(-1, heads, size)
    wd = (hd @ (layer.fc_dst if pair else layer.fc).weight.T).view(-1, heads, size)
    scores = torch.einsum("uhd,vhd->uvh", ws, wd) / math.sqrt(size)
    attention = softmax(g, scores[src, dst])[..., None]
    out = total(g, attention * ws[src])
    return (out, attention) if get_attention else out


# -------------------------------------------------------------------------------- propagation
def sg(layer, g, feat, edge_weight=None):
    """power of the dense normalised adjacency matrix"""
    power = torch.linalg.matrix_power(normalised(g, edge_weight), layer.k)
    rows = power @ feat if layer.norm is None else layer.norm(power @ feat)
    return F.linear(rows, layer.fc.weight, layer.fc.bias)


def appnp(layer, g, feat, edge_weight=None):
    """the geometric series of dense matrix powers, term by term"""
    step = (1 - layer.alpha) * normalised(g, edge_weight, out_degrees=True)
    powers = [torch.linalg.matrix_power(step, i) for i in range(layer.k + 1)]
    return (layer.alpha * sum(powers[:-1]) + powers[-1]) @ feat


def tag(layer, g, feat, edge_weight=None):
    """sum of dense matrix powers, each with its slice of the weight"""
    matrix, size = normalised(g, edge_weight), feat.shape[1]
    out = sum(
        torch.linalg.matrix_power(matrix, i)
        @ feat
        @ layer.lin.weight[:, i * size : (i + 1) * size].T
        for i in range(layer.k + 1)
    )
    return out if layer.lin.bias is None else out + layer.lin.bias


def cheb(layer, g, feat, lambda_max):
    """polynomials of the dense scaled Laplacian, with numpy's coefficients"""
    sizes = g.batch_num_nodes()
    scale = torch.as_tensor(lambda_max, dtype=feat.dtype).repeat_interleave(sizes)
    identity = torch.eye(len(feat), dtype=feat.dtype)
    scaled = 2 * (identity - normalised(g)) / scale[:, None] - identity
    size, out = feat.shape[1], 0
    # Coefficients of T_i in powers of x, from numpy's basis conversion.
    from numpy.polynomial import chebyshev

    for i in range(layer.k):
        coefficients = chebyshev.cheb2poly([0] * i + [1])
        polynomial = sum(
            c * torch.linalg.matrix_power(scaled, p) for p, c in enumerate(coefficients)
        )
        out = out + polynomial @ feat @ layer.linear.weight[:, i * size : (i + 1) * size].T
    out = out + layer.linear.bias
    return out if layer.activation is None else layer.activation(out)


def edge_weight_norm(layer, g, edge_weight):
    """row and column sums of the dense matrix of weights"""
    src, dst = ends(g)
    matrix = adjacency(g, edge_weight)
    inner, outer = matrix.sum(1)[dst] + layer.eps, matrix.sum(0)[src] + layer.eps
    if layer.norm == "none":
        return edge_weight
    return edge_weight / (inner if layer.norm == "right" else (inner * outer) ** 0.5)


# ----------------------------------------------------------------------- messages with edges
def nnconv(layer, g, feat, efeat):
    """a matrix and a product for each edge, in a loop"""
    hs, hd = both(g, feat)
    src, _ = ends(g)
    size, out_size = layer.in_feats[0], layer.out_feats
    products = torch.stack(
        [
            hs[u][:, None] * layer.edge_func(efeat[e]).reshape(size, out_size)
            for e, u in enumerate(src.tolist())
        ]
    )
    out = REDUCE[layer.aggregator_type](g, products).sum(1)
    if layer.res_fc is not None:
        out = out + layer.res_fc(hd)
    return out if layer.bias is None else out + layer.bias


def edge_conv(layer, g, feat):
    """differences edge by edge, maxima node by node"""
    hs, hd = both(g, feat)
    src, dst = ends(g)
    messages = layer.theta(hd[dst] - hs[src]) + layer.phi(hd[dst])
    if layer.batch_norm:
        bn = layer.bn
        spread = messages.var(0, unbiased=False) + bn.eps
        messages = (messages - messages.mean(0)) / spread.sqrt() * bn.weight + bn.bias
    return extreme(g, messages)


def gmm(layer, g, feat, pseudo):
    """Gaussian densities kernel by kernel, with torch.distributions"""
    hs, hd = both(g, feat)
    src, _ = ends(g)
    kernels, size = layer.kernels
    out = 0
    for k in range(kernels):
        normal = torch.distributions.Normal(layer.mu[k], 1 / layer.inv_sigma[k].abs())
        weight = (normal.log_prob(pseudo) - normal.log_prob(layer.mu[k])).sum(1).exp()
        rows = hs @ layer.fc.weight[k * size : (k + 1) * size].T
        out = out + REDUCE[layer.aggregator_type](g, weight[:, None] * rows[src])
    if layer.res_fc is not None:
        out = out + layer.res_fc(hd)
    return out if layer.bias is None else out + layer.bias


def gated_graph(layer, g, feat, etypes=None):
    """an adjacency matrix per edge type, torch's GRU"""
    padding = feat.new_zeros(len(feat), layer.out_feats - feat.shape[1])
    rows = torch.cat([feat, padding], 1)
    types = torch.zeros(g.num_edges()) if etypes is None else etypes
    for _ in range(layer.n_steps):
        received = sum(
            adjacency(g, (types == t).double()) @ linear(rows)
            for t, linear in enumerate(layer.linears)
        )
        rows = layer.gru(received, rows)
    return rows


# -------------------------------------------------------------------------- adjacency matrices


def dense_sage(layer, adj, feat):
    """means in loops over the entries of the matrix"""
    src, dst = feat if isinstance(feat, tuple) else (feat, feat)
    rows = []
    for v in range(adj.shape[0]):
        row = dst[v] + sum(adj[v, u] * src[u] for u in range(adj.shape[1]))
        rows.append(layer.fc(row / (1 + adj[v].sum())))
    out = torch.stack(rows)
    out = out if layer.activation is None else layer.activation(out)
    return out if layer.norm is None else layer.norm(out)


# ------------------------------------------------------------------------------------ readout
def per_graph(g, feat) -> list[Tensor]:
    """Rows of each graph of a batch."""
    return list(feat.split(g.batch_num_nodes().tolist()))


def max_pooling(layer, g, feat):
    """graph by graph, torch's amax"""
    return torch.stack([rows.amax(0) for rows in per_graph(g, feat)])


def sort_pooling(layer, g, feat):
    """graph by graph, Python's sort of the rows"""
    out = []
    for rows in per_graph(g, feat):
        chosen = sorted((sorted(row) for row in rows.tolist()), key=lambda row: -row[-1])
        padding = [[0.0] * feat.shape[1]] * layer.k
        out.append((chosen + padding)[: layer.k])
    return torch.tensor(out, dtype=feat.dtype).flatten(1)


def attention_pooling(layer, g, feat, get_attention=False):
    """graph by graph, torch's softmax"""
    rows = feat if layer.feat_nn is None else layer.feat_nn(feat)
    weights = [scores.softmax(0) for scores in per_graph(g, layer.gate_nn(feat))]
    out = torch.cat([w.T @ r for w, r in zip(weights, per_graph(g, rows), strict=True)])
    return (out, torch.cat(weights)) if get_attention else out


def set2set(layer, g, feat):
    """graph by graph, each with an LSTM run of its own"""
    out = []
    for rows in per_graph(g, feat):
        read = rows.new_zeros(1, 1, 2 * layer.input_dim)
        state = None
        for _ in range(layer.n_iters):
            query, state = layer.lstm(read, state)
            weights = (rows @ query.flatten()).softmax(0)
            read = torch.cat([query, (weights @ rows).view(1, 1, -1)], -1)
        out.append(read.flatten())
    return torch.stack(out)


# --------------------------------------------------------------------------------- typed rows
def hetero_linear(layer, g, feat):
    """products with each type's weight"""
    return {
        key: rows @ layer.linears[str(key)].weight.T + layer.linears[str(key)].bias
        for key, rows in feat.items()
    }


def hetero_embedding(layer, g, ids):
    """one-hot matrices times the tables"""
    return {
        key: F.one_hot(rows, len(layer.weight[key])).to(layer.weight[key].dtype) @ layer.weight[key]
        for key, rows in ids.items()
    }


# ------------------------------------------------------------------------- triples, containers


def jumping(layer, g, feats):
    """node by node"""
    rows = []
    for node in range(len(feats[0])):
        own = torch.stack([feat[node] for feat in feats])
        if layer.mode == "cat":
            rows.append(own.flatten())
        elif layer.mode == "max":
            rows.append(own.max(0).values)
        else:
            rows.append(layer.att(layer.lstm(own[None])[0][0]).softmax(0).T[0] @ own)
    return torch.stack(rows)


def sequential(layer, g, feat):
    """the modules called by hand"""
    graphs = [g] * len(layer) if isinstance(g, dgl.Graph) else g
    for graph, module in zip(graphs, layer, strict=True):
        feat = module(graph, feat)
    return feat


def label_propagation(layer, g, labels, mask=None):
    """powers of the dense matrix in a loop"""
    if labels.dtype == torch.int64:
        labels = F.one_hot(labels, int(labels.max()) + 1).float()
    matrix = adjacency(g)
    if layer.norm_type == "row":
        matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    else:
        matrix = normalised(g, out_degrees=True)
    known = range(len(labels)) if mask is None else mask.nonzero().flatten().tolist()
    start = torch.zeros_like(labels)
    for node in known:
        start[node] = labels[node]
    out = start
    for _ in range(layer.k):
        out = layer.alpha * matrix.to(labels.dtype) @ out + (1 - layer.alpha) * start
        if layer.clamp:
            out = out.clamp(0.0, 1.0)
        if layer.normalize:
            out = out / out.abs().sum(1, keepdim=True).clamp(min=1e-12)
        if layer.reset:
            for node in known:
                out[node] = labels[node]
    return out
