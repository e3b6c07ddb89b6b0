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


def agnn(layer, g, feat):
    """matrix of cosines, entries of the edges, softmax node by node"""
    hs, hd = both(g, feat)
    src, dst = ends(g)
    cosines = F.cosine_similarity(hs[:, None], hd[None], dim=-1)[src, dst]
    return total(g, softmax(g, layer.beta * cosines)[:, None] * hs[src])


def egat(layer, g, nfeats, efeats, edge_weight=None, get_attention=False):
    """concatenated weights times concatenated rows, softmax node by node"""
    hs, hd = both(g, nfeats)
    src, dst = ends(g)
    weights = torch.cat([layer.fc_ni.weight, layer.fc_fij.weight, layer.fc_nj.weight], 1)
    edges = torch.cat([hs[src], efeats, hd[dst]], 1) @ weights.T
    if layer.bias is not None:
        edges = edges + layer.bias
    edges = F.leaky_relu(edges, 0.01).view(len(src), *layer.attn.shape[1:])
    attention = softmax(g, torch.einsum("ehd,hd->eh", edges, layer.attn[0]))[..., None]
    if edge_weight is not None:
        attention = attention * edge_weight[:, None, None]
    heads = layer.fc_node_src(hs).view(len(hs), layer.attn.shape[1], -1)
    out = total(g, attention * heads[src])
    return (out, edges, attention) if get_attention else (out, edges)


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
    """Chebyshev polynomials of the dense scaled Laplacian, by eigenvalues' powers"""
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


def gcn2(layer, g, feat, feat_0, edge_weight=None):
    """dense matrices; the weights mixed with the identity first"""
    if edge_weight is None:
        matrix = normalised(g)
    else:
        raw = adjacency(g, edge_weight)
        inner, outer = raw.sum(1, keepdim=True), raw.sum(0, keepdim=True)
        matrix = (raw / inner.sqrt() / outer.sqrt()).nan_to_num()
    identity = torch.eye(feat.shape[1], dtype=feat.dtype)
    mix1 = (1 - layer.beta) * identity + layer.beta * layer.weight1
    second = layer.weight1 if layer.weight2 is None else layer.weight2
    mix2 = (1 - layer.beta) * identity + layer.beta * second
    out = (1 - layer.alpha) * matrix @ feat @ mix1 + layer.alpha * feat_0 @ mix2
    return finish(layer, out, feat, layer.bias)


def edge_weight_norm(layer, g, edge_weight):
    """row and column sums of the dense matrix of weights"""
    src, dst = ends(g)
    matrix = adjacency(g, edge_weight)
    inner, outer = matrix.sum(1)[dst] + layer.eps, matrix.sum(0)[src] + layer.eps
    if layer.norm == "none":
        return edge_weight
    return edge_weight / (inner if layer.norm == "right" else (inner * outer) ** 0.5)


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


def weight_and_sum(layer, g, feat):
    """graph by graph, a product of vector and matrix"""
    linear = layer.atom_weighting[0]
    return torch.cat(
        [(linear(rows).sigmoid().T @ rows) for rows in per_graph(g, feat)],
    )


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


def _attend(mha, x, memory):
    """Multi-head attention of one graph without padding, head by head."""
    heads, size = mha.heads
    read = []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        q, k, v = (
            r @ p.weight[part].T
            for r, p in ((x, mha.proj_q), (memory, mha.proj_k), (memory, mha.proj_v))
        )
        read.append((q @ k.T / math.sqrt(size)).softmax(-1) @ v)
    x = x + mha.norm_in(torch.cat(read, 1) @ mha.proj_o.weight.T)
    return x + mha.norm_inter(mha.ffn(x))


def set_encoder(layer, g, feat):
    """graph by graph without padding, head by head"""
    out = []
    for rows in per_graph(g, feat):
        for block in layer.layers:
            if hasattr(block, "inducing_points"):
                points = _attend(block.mha[0], block.inducing_points, rows)
                rows = _attend(block.mha[1], rows, points)
            else:
                rows = _attend(block.mha, rows, rows)
        out.append(rows)
    return torch.cat(out)


def set_decoder(layer, g, feat):
    """graph by graph without padding, head by head"""
    out = []
    for rows in per_graph(g, feat):
        seeds = _attend(layer.pma.mha, layer.pma.seed_vectors, layer.pma.ffn(rows))
        for block in layer.layers:
            seeds = _attend(block.mha, seeds, seeds)
        out.append(seeds.flatten())
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
