"""Layers of ``gnnlab.compat.nn`` written again, slowly: dense matrices and loops over edges.

Each function takes the layer (for its parameters), the graph and the inputs of ``forward``, and
computes what DGL documents, with torch's dense operators only. The first line of its docstring says
how; ``tests/compat/test_nn.py`` compares.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from numpy.polynomial import chebyshev
from torch import Tensor

import gnnlab as dgl
from tests.nn.toy import adjacency


def both(g, feat) -> tuple[Tensor, Tensor]:
    """Source rows and destination rows; on a block the destinations are the first sources."""
    return feat if isinstance(feat, tuple) else (feat, feat[: g.num_dst_nodes()])


def ends(g) -> tuple[Tensor, Tensor]:
    src, dst = g.edges()
    return src.long(), dst.long()


def parts(g, feat) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of both sides, and both ends of each edge."""
    return (*both(g, feat), *ends(g))


def normed(bn, rows: Tensor) -> Tensor:
    """Batch normalization by mean and variance."""
    spread = rows.var(0, unbiased=False) + bn.eps
    return (rows - rows.mean(0)) / spread.sqrt() * bn.weight + bn.bias


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


def normalized(g, edge_weight: Tensor | None = None, out_degrees: bool = False) -> Tensor:
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
    hs, hd, src, dst = parts(g, feat)
    hs_heads = F.linear(hs, layer.fc_src.weight, layer.fc_src.bias).view(-1, *layer.attn.shape[1:])
    hd_heads = F.linear(hd, layer.fc_dst.weight, layer.fc_dst.bias).view(-1, *layer.attn.shape[1:])
    hidden = F.leaky_relu(hs_heads[src] + hd_heads[dst], layer.leaky_relu.negative_slope)
    attention = softmax(g, torch.einsum("ehd,hd->eh", hidden, layer.attn[0]))[..., None]
    out = finish(layer, total(g, attention * hs_heads[src]), hd)
    return (out, attention) if get_attention else out


def edge_gat(layer, g, feat, edge_feat, get_attention=False):
    """scores and messages edge by edge, softmax node by node"""
    hs, hd, src, dst = parts(g, feat)
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
    hs, hd, src, dst = parts(g, feat)
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
    hs, hd, src, dst = parts(g, feat)
    cosines = F.cosine_similarity(hs[:, None], hd[None], dim=-1)[src, dst]
    return total(g, softmax(g, layer.beta * cosines)[:, None] * hs[src])


def egat(layer, g, nfeats, efeats, edge_weight=None, get_attention=False):
    """concatenated weights times concatenated rows, softmax node by node"""
    hs, hd, src, dst = parts(g, nfeats)
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
    """power of the dense normalized adjacency matrix"""
    power = torch.linalg.matrix_power(normalized(g, edge_weight), layer.k)
    rows = power @ feat if layer.norm is None else layer.norm(power @ feat)
    return F.linear(rows, layer.fc.weight, layer.fc.bias)


def appnp(layer, g, feat, edge_weight=None):
    """the geometric series of dense matrix powers, term by term"""
    step = (1 - layer.alpha) * normalized(g, edge_weight, out_degrees=True)
    powers = [torch.linalg.matrix_power(step, i) for i in range(layer.k + 1)]
    return (layer.alpha * sum(powers[:-1]) + powers[-1]) @ feat


def tag(layer, g, feat, edge_weight=None):
    """sum of dense matrix powers, each with its slice of the weight"""
    matrix, size = normalized(g, edge_weight), feat.shape[1]
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
    scaled = 2 * (identity - normalized(g)) / scale[:, None] - identity
    size, out = feat.shape[1], 0
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
        matrix = normalized(g)
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


# ----------------------------------------------------------------------- messages with edges
def nnconv(layer, g, feat, efeat):
    """a matrix and a product for each edge, in a loop"""
    hs, hd, src, _ = parts(g, feat)
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
    hs, hd, src, dst = parts(g, feat)
    messages = layer.theta(hd[dst] - hs[src]) + layer.phi(hd[dst])
    if layer.batch_norm:
        messages = normed(layer.bn, messages)
    return extreme(g, messages)


def gmm(layer, g, feat, pseudo):
    """Gaussian densities kernel by kernel, with torch.distributions"""
    hs, hd, src, _ = parts(g, feat)
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


def ssp(x):
    return torch.log(0.5 * torch.exp(x) + 0.5)  # SchNet's formula


def cf(layer, g, node_feats, edge_feats):
    """SchNet's formula ln(e^x / 2 + 1 / 2), filters edge by edge"""
    first, _, second, _ = layer.project_edge
    hs, _ = both(g, node_feats)
    filters = ssp(second(ssp(first(edge_feats))))
    return ssp(layer.project_out[0](total(g, layer.project_node(hs)[ends(g)[0]] * filters)))


def atomic(layer, g, feat, distances):
    """radial filters of each edge in Python, added up type by type"""
    pool, (src, dst) = layer.radial_pooling, ends(g)
    params = (pool.interaction_cutoffs, pool.rbf_kernel_means, pool.rbf_kernel_scaling)
    kinds = [None] if layer.features_to_use is None else list(layer.features_to_use)
    columns = feat.shape[1] if kinds == [None] else len(kinds)
    rows = [[[0.0] * len(params[0]) for _ in range(columns)] for _ in range(g.num_dst_nodes())]
    for u, v, r in zip(src.tolist(), dst.tolist(), distances.flatten(), strict=True):
        for k, (c, mu, gamma) in enumerate(zip(*(p.flatten() for p in params), strict=True)):
            if r < c:
                value = torch.exp(-gamma * (r - mu) ** 2) * 0.5 * (torch.cos(torch.pi * r / c) + 1)
                for t in range(columns):
                    scale = feat[u, t] if kinds == [None] else float(feat[u, 0] == kinds[t])
                    rows[v][t][k] = rows[v][t][k] + scale * value
    return torch.stack([torch.stack([torch.as_tensor(x) for t in row for x in t]) for row in rows])


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


def gated_gcn(layer, g, feat, edge_feat):
    """gates edge by edge, sums node by node; batch normalization by its formula"""
    src, dst = ends(g)
    edges = layer.D(feat)[src] + layer.E(feat)[dst] + layer.C(edge_feat)
    gates = 1 / (1 + torch.exp(-edges))
    shares = gates / (total(g, gates) + 1e-6)[dst]
    nodes = layer.A(feat) + total(g, shares * layer.B(feat)[src])
    out = []
    for rows, bn, before in ((nodes, layer.bn_node, feat), (edges, layer.bn_edge, edge_feat)):
        rows = normed(bn, rows) if layer.batch_norm else rows
        rows = rows if layer.activation is None else layer.activation(rows)
        out.append(rows + before if layer.residual else rows)
    return tuple(out)


def pna(layer, g, node_feat, edge_feat=None):
    """node by node over the list of its messages, with torch's statistics"""
    src, dst = ends(g)
    share = torch.cat([torch.ones(n, 1).double() / n**0.5 for n in g.batch_num_nodes().tolist()])
    width, outputs = node_feat.shape[1] // len(layer.towers), []
    for number, tower in enumerate(layer.towers):
        h = node_feat[:, number * width : (number + 1) * width]
        parts = [h[src], h[dst]] + ([] if edge_feat is None else [edge_feat])
        messages, rows = tower.M(torch.cat(parts, 1)), []
        for node in range(len(h)):
            own = messages[dst == node]
            if len(own) == 0:
                rows.append(h.new_zeros(width * len(tower.aggregators) * len(tower.scalers)))
                continue
            centered = own - own.mean(0)
            results = {
                "mean": own.mean(0),
                "max": own.amax(0),
                "min": own.amin(0),
                "sum": own.sum(0),
                "var": own.var(0, unbiased=False),
                "std": (own.var(0, unbiased=False) + 1e-30).sqrt(),
            }
            for order in (3, 4, 5):
                moment = (centered**order).mean(0)
                root = (moment.abs() + 1e-30) ** (1 / order)
                results[f"moment{order}"] = moment.sign() * root
            reduced = torch.cat([results[name] for name in tower.aggregators])
            factor = math.log(len(own) + 1) / tower.delta
            factors = {"identity": 1, "amplification": factor, "attenuation": 1 / factor}
            rows.append(torch.cat([reduced * factors[name] for name in tower.scalers]))
        out = tower.U(torch.cat([h, torch.stack(rows)], 1)) * share
        outputs.append(normed(tower.batchnorm, out))
    out = F.leaky_relu(layer.mixing_layer[0](torch.cat(outputs, 1)))
    return out + node_feat if layer.residual else out


def hgt(layer, g, x, ntype, etype):
    """edge by edge and head by head, with the matrix of each type"""
    heads, size = layer.heads
    hd = x[: g.num_dst_nodes()]

    def typed(linear, rows):
        weight = linear.get_weight()
        return torch.stack([r @ weight[t] for r, t in zip(rows, ntype.tolist(), strict=False)])

    k, v = typed(layer.linear_k, x), typed(layer.linear_v, x)
    q = typed(layer.linear_q, hd)
    scores, messages = [], []
    for edge, (a, b) in enumerate(zip(*(side.tolist() for side in ends(g)), strict=True)):
        kind = int(etype[edge])
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            changed = k[a, part] @ layer.relation_att[h].get_weight()[kind]
            scores.append(changed @ q[b, part] * layer.relation_pri[h][kind] / math.sqrt(size))
            messages.append(v[a, part] @ layer.relation_msg[h].get_weight()[kind])
    attention = softmax(g, torch.stack(scores).view(-1, heads))
    received = total(g, attention[..., None] * torch.stack(messages).view(-1, heads, size))
    out = typed(layer.linear_a, received.flatten(1))
    share = torch.sigmoid(layer.skip[ntype[: len(hd)]])[:, None]
    own = hd @ layer.residual_w if hasattr(layer, "residual_w") else hd
    out = share * out + (1 - share) * own
    return layer.norm(out) if layer.use_norm else out


# -------------------------------------------------------------------------- adjacency matrices
def dense_graph(layer, adj, feat):
    """sums in loops over the entries of the matrix"""
    inner, outer = adj.sum(1).clamp(min=1), adj.sum(0).clamp(min=1)
    rows = []
    for v in range(adj.shape[0]):
        row = feat.new_zeros(layer.weight.shape[1])
        for u in range(adj.shape[1]):
            factor = {"both": 1 / (inner[v] * outer[u]).sqrt(), "right": 1 / inner[v], "none": 1.0}[
                layer.norm
            ]
            row = row + adj[v, u] * factor * (feat[u] @ layer.weight)
        rows.append(row)
    out = torch.stack(rows)
    out = out if layer.bias is None else out + layer.bias
    return out if layer.activation is None else layer.activation(out)


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


def dense_cheb(layer, adj, feat, lambda_max=None):
    """eigenvectors of the Laplacian, polynomials as cosines"""
    factor = adj.sum(1).clamp(min=1) ** -0.5
    laplacian = torch.eye(len(adj)).double() - factor[:, None] * adj * factor[None]
    values, vectors = torch.linalg.eigh(laplacian)  # the matrix is symmetric
    largest = values.max() if lambda_max is None else lambda_max
    angles = torch.acos((2 * values / largest - 1).clamp(-1, 1))
    out = sum(
        vectors @ torch.diag(torch.cos(i * angles)) @ vectors.T @ feat @ layer.W[i]
        for i in range(layer.k)
    )
    return out if layer.bias is None else out + layer.bias


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
    return torch.cat([(linear(rows).sigmoid().T @ rows) for rows in per_graph(g, feat)])


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
def trans_e(layer, g, head, tail, rels):
    """the norm triple by triple"""
    table = layer.rel_emb.weight
    return -torch.stack(
        [
            (h + table[r] - t).abs().pow(layer.p).sum().pow(1 / layer.p)
            for h, t, r in zip(head, tail, rels.tolist(), strict=True)
        ]
    )


def trans_r(layer, g, head, tail, rels):
    """both ends projected, the norm triple by triple"""
    scores = []
    for h, t, r in zip(head, tail, rels.tolist(), strict=True):
        matrix = layer.rel_project.weight[r].reshape(len(h), -1)
        distance = h @ matrix + layer.rel_emb.weight[r] - t @ matrix
        scores.append(-distance.abs().pow(layer.p).sum().pow(1 / layer.p))
    return torch.stack(scores)


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
        matrix = normalized(g, out_degrees=True)
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


def egnn(layer, g, h, x, edge_feat=None):
    """messages edge by edge, sums and means node by node"""
    messages, moves = [], []
    for e, (u, v) in enumerate(zip(*(side.tolist() for side in ends(g)), strict=True)):
        away = x[u] - x[v]
        own = [] if edge_feat is None else [edge_feat[e]]
        m = layer.edge_mlp(torch.cat([h[u], h[v], (away**2).sum()[None], *own]))
        length = away.norm() if u != v else 1.0
        messages.append(m)
        moves.append(layer.coord_mlp(m) * away / length)
    received, moved = total(g, torch.stack(messages)), mean(g, torch.stack(moves))
    return layer.node_mlp(torch.cat([h, received], 1)), x + moved


def degree_encoder(layer, g, degrees):
    """rows of the tables, node by node"""
    tables = [layer.encoder1.weight]
    tables += [layer.encoder2.weight] if layer.direction == "both" else []
    parts = list(degrees) if len(tables) == 2 else [degrees]
    return sum(
        torch.stack([torch.stack([t[min(int(d), len(t) - 1)] for d in row]) for row in part])
        for t, part in zip(tables, parts, strict=True)
    )


def spatial_encoder(layer, g, dist):
    """one-hot vectors of the distances times the table"""
    table = layer.embedding_table.weight
    which = dist.clamp(max=layer.max_dist) + 1
    return F.one_hot(which, len(table)).to(table.dtype) @ table


def path_encoder(layer, g, dist, path_data):
    """products pair by pair, head by head and edge by edge"""
    table, out = layer.embedding_table.weight, path_data.new_zeros(*dist.shape, layer.num_heads)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in out.shape)).tolist():
        *pair, head = place
        rows = path_data[tuple(pair)]
        dots = [row @ table[i * layer.num_heads + head] for i, row in enumerate(rows)]
        out[tuple(place)] = sum(dots) / min(max(int(dist[tuple(pair)]), 1), layer.max_len)
    return out


def biased_mha(layer, g, ndata, attn_bias=None, attn_mask=None):
    """node by node and head by head, over the list of those attended to"""
    out = []
    heads, size = layer.heads
    for b, rows in enumerate(ndata):
        q, k, v = (linear(rows) for linear in (layer.q_proj, layer.k_proj, layer.v_proj))
        mixed = torch.zeros_like(rows)
        for x in range(len(rows)):
            seen = [y for y in range(len(rows)) if attn_mask is None or not attn_mask[b, x, y]]
            for h in range(heads if seen else 0):
                part = slice(h * size, (h + 1) * size)
                scores = torch.stack([q[x, part] @ k[y, part] / math.sqrt(size) for y in seen])
                if attn_bias is not None:
                    bias = attn_bias[b, x, seen, h]
                    scores = scores + bias if layer.attn_bias_type == "add" else scores * bias
                mixed[x, part] = scores.softmax(0) @ v[seen][:, part]
        out.append(layer.out_proj(mixed))
    return torch.stack(out)


def graphormer(layer, g, nfeat, attn_bias=None, attn_mask=None):
    """the published formula, normalization by mean and variance"""

    def norm(module, rows):
        spread = rows.var(-1, unbiased=False, keepdim=True) + module.eps
        return (rows - rows.mean(-1, keepdim=True)) / spread.sqrt() * module.weight + module.bias

    def feed(rows):
        return layer.ffn[3](layer.ffn[1](layer.ffn[0](rows)))

    first = norm(layer.attn_layer_norm, nfeat) if layer.norm_first else nfeat
    rows = nfeat + biased_mha(layer.attn, g, first, attn_bias, attn_mask)
    if layer.norm_first:
        return rows + feed(norm(layer.ffn_layer_norm, rows))
    rows = norm(layer.attn_layer_norm, rows)
    return norm(layer.ffn_layer_norm, rows + feed(rows))
