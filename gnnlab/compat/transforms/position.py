"""Encodings of a node's position in its graph: the spectrum, random walks, distances.

The functions compute an encoding, of one row for each node, from dense matrices of N² numbers; the
transforms write it as a feature of the graph that they are given. Laplacians are those of
undirected graphs, with each edge in both directions.

References
----------
Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023; "Graph Neural Networks with
Learnable Structural and Positional Representations", ICLR 2022; Hussain, Zaki and Subramanian,
"Global Self-Attention as a Replacement for Graph Convolution", KDD 2022; Zhang and Chen, "Link
Prediction Based on Graph Neural Networks", NeurIPS 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.compat.transforms.checks import one_node
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.batch import unbatch
from gnnlab.graph.graph import Graph
from gnnlab.transforms.base import BaseTransform


def _laplacian(g: Graph) -> np.ndarray:
    """Return I − D^(−1/2) A D^(−1/2) as a dense matrix, with in-degrees of at least 1."""
    scale = g.in_degrees().cpu().numpy().clip(1) ** -0.5
    adjacency = g.adj_external(scipy_fmt="csr").toarray()
    return np.eye(g.num_nodes()) - scale[:, None] * adjacency * scale


def _is_symmetric(matrix: np.ndarray) -> bool:
    return bool((matrix == matrix.T).all())


def laplacian_lambda_max(g: Graph) -> list[float]:
    """Return the largest eigenvalue of the normalized Laplacian, for each graph of a batch.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    >>> [round(value, 4) for value in dgl.laplacian_lambda_max(ring)]
    [2.0]
    """
    found = []
    for part in unbatch(g):
        matrix = _laplacian(part)
        values = (np.linalg.eigvalsh if _is_symmetric(matrix) else np.linalg.eigvals)(matrix)
        found.append(float(values[np.abs(values).argmax()].real) if len(values) else 0.0)
    return found


def lap_pe(g: Graph, k: int, padding: bool = False, return_eigval: bool = False) -> Any:
    """Return the k eigenvectors of the normalized Laplacian after the smallest eigenvalue, (N, k).

    ``k`` is below N, unless ``padding`` fills missing eigenvectors with 0 and eigenvalues with NaN.
    ``return_eigval`` returns the eigenvalues, too, (k,). Signs of eigenvectors mean nothing and are
    drawn at random (:func:`gnnlab.seed`).

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    >>> encoding, values = dgl.lap_pe(ring, 3, return_eigval=True)
    >>> encoding.shape, values.round(decimals=4)
    (torch.Size([4, 3]), tensor([1., 1., 2.]))
    """
    count, k = g.num_nodes(), whole_number(k, "k")
    if not padding and k >= count:
        raise InvalidInput(
            f"{count} nodes have {count - 1} eigenvectors after the first; found k={k}. Pass "
            "padding=True to fill up with 0"
        )
    matrix = _laplacian(g)
    if _is_symmetric(matrix):
        values, vectors = np.linalg.eigh(matrix)
    else:
        values, vectors = np.linalg.eig(matrix)
        order = np.argsort(values.real)
        values, vectors = values.real[order], vectors.real[:, order]
    taken = min(k, max(count - 1, 0))
    encoding = torch.zeros(count, k)
    encoding[:, :taken] = torch.from_numpy(vectors[:, 1 : taken + 1]).float()
    flips = torch.randint(2, (k,), generator=random.generator())
    encoding = (encoding * (2.0 * flips - 1)).to(g.device)
    if not return_eigval:
        return encoding
    eigenvalues = torch.full((k,), torch.nan)
    eigenvalues[:taken] = torch.from_numpy(values[1 : taken + 1]).float()
    return encoding, eigenvalues.to(g.device)


laplacian_pe = lap_pe  # its older name


def random_walk_pe(g: Graph, k: int, eweight_name: str | None = None) -> torch.Tensor:
    """Return the probabilities that a random walk is back at its start after 1, …, k steps, (N, k).

    That of a step is proportional to the edge feature ``eweight_name``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.random_walk_pe(dgl.graph(([0, 1, 1], [1, 1, 0])), 2)
    tensor([[0.0000, 0.5000],
            [0.5000, 0.7500]])
    """
    import scipy.sparse

    count, k = g.num_nodes(), whole_number(k, "k")
    weight = torch.ones(g.num_edges()) if eweight_name is None else g.edata[eweight_name]
    ends = tuple(end.cpu().numpy() for end in g.edges())
    values = weight.detach().cpu().double().reshape(-1).numpy()
    matrix = scipy.sparse.csr_matrix((values, ends), (count, count))
    total = np.asarray(matrix.sum(1)).reshape(-1)
    step = scipy.sparse.diags(np.divide(1.0, total, where=total > 0, out=np.zeros(count))) @ matrix
    walk, columns = scipy.sparse.eye(count, format="csr"), []
    for _ in range(k):
        walk = walk @ step
        columns.append(torch.from_numpy(walk.diagonal()))
    found = torch.stack(columns, 1) if columns else torch.zeros(count, 0)
    return found.to(g.device, torch.float32)


def svd_pe(g: Graph, k: int, padding: bool = False, random_flip: bool = True) -> torch.Tensor:
    """Return the k largest singular vectors of the adjacency matrix, times the roots of the values.

    Shape (N, 2·k), float32: U √S, then V √S; rows of the matrix are sources. ``k`` is at most N,
    unless ``padding`` fills up with 0. ``random_flip`` draws the sign of each pair of vectors at
    random; without, ``pe[:, :k] @ pe[:, k:].T`` is the best approximation of the matrix by rank k.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.svd_pe(dgl.graph(([0, 1], [1, 2])), 2).shape
    torch.Size([3, 4])
    """
    count, k = g.num_nodes(), whole_number(k, "k")
    if not padding and k > count:
        raise InvalidInput(
            f"{count} nodes have {count} singular vectors; found k={k}. Pass padding=True to fill "
            "up with 0"
        )
    matrix = torch.from_numpy(g.adj_external(scipy_fmt="csr").toarray()).double()
    left, values, right = torch.linalg.svd(matrix)
    taken = min(k, count)
    encoding = torch.zeros(2, count, k)
    encoding[0, :, :taken] = (left * values.sqrt()).float()[:, :taken]
    encoding[1, :, :taken] = (right.T * values.sqrt()).float()[:, :taken]
    if random_flip:
        encoding *= 2.0 * torch.randint(2, (k,), generator=random.generator()) - 1
    return torch.cat([encoding[0], encoding[1]], 1).to(g.device)


def double_radius_node_labeling(g: Graph, src: int, dst: int) -> torch.Tensor:
    """Return SEAL's label of each node, (N,), from its distances to the two nodes of a link.

    Distances to one end are taken without the other end. The label is 1 for both ends, 0 for nodes
    that do not reach both, and otherwise 1 + min(a, b) + ⌊d/2⌋ (⌊d/2⌋ + d mod 2 − 1), where a and b
    are the distances and d is their sum. Edges count in both directions.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 0, 1, 2, 3], [1, 2, 2, 3, 4]))
    >>> dgl.double_radius_node_labeling(g, 0, 1)
    tensor([ 1,  1,  2,  5, 10])
    """
    import scipy.sparse.csgraph

    count = g.num_nodes()
    first, second = (one_node(end, count, name) for end, name in ((src, "src"), (dst, "dst")))
    matrix = g.adj_external(scipy_fmt="csr")
    away = []
    for start, other in ((first, second), (second, first)):
        kept = torch.arange(count) != other
        part = matrix[kept.numpy()][:, kept.numpy()]
        place = start - (other < start)
        hops = scipy.sparse.csgraph.dijkstra(part, False, [place], unweighted=True)[0]
        found = torch.full((count,), torch.inf, dtype=torch.float64)
        found[kept] = torch.from_numpy(hops)
        away.append(found)
    total = away[0] + away[1]
    half = (total / 2).floor()
    labels = 1 + torch.minimum(*away) + half * (half + total % 2 - 1)
    labels = torch.where(total.isfinite(), labels, 0).long()
    labels[[first, second]] = 1
    return labels.to(g.device)


class RandomWalkPE(BaseTransform):
    """Write :func:`random_walk_pe` as the node feature ``feat_name``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.RandomWalkPE(k=2)(dgl.graph(([0, 1, 1], [1, 1, 0]))).ndata["PE"]
    tensor([[0.0000, 0.5000],
            [0.5000, 0.7500]])
    """

    def __init__(self, k: int, feat_name: str = "PE", eweight_name: str | None = None) -> None:
        self.k = k
        self.feat_name = feat_name
        self.eweight_name = eweight_name

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with the encoding."""
        g.ndata[self.feat_name] = random_walk_pe(g, self.k, self.eweight_name)
        return g


class LapPE(BaseTransform):
    """Write :func:`lap_pe` as the node feature ``feat_name``.

    With ``eigval_name``, the eigenvalues are a feature as well: the same k numbers for each node.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    >>> dgl.LapPE(k=3, eigval_name="values")(ring).ndata["values"][0].round(decimals=4)
    tensor([1., 1., 2.])
    """

    def __init__(
        self, k: int, feat_name: str = "PE", eigval_name: str | None = None, padding: bool = False
    ) -> None:
        self.k = k
        self.feat_name = feat_name
        self.eigval_name = eigval_name
        self.padding = padding

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with the encoding."""
        encoding, values = lap_pe(g, self.k, self.padding, return_eigval=True)
        g.ndata[self.feat_name] = encoding
        if self.eigval_name is not None:
            g.ndata[self.eigval_name] = values.repeat(g.num_nodes(), 1)
        return g


LaplacianPE = LapPE  # its older name


class SVDPE(BaseTransform):
    """Write :func:`svd_pe` as the node feature ``feat_name``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.SVDPE(k=1)(dgl.graph(([0, 1], [1, 2]))).ndata["svd_pe"].shape
    torch.Size([3, 2])
    """

    def __init__(
        self, k: int, feat_name: str = "svd_pe", padding: bool = False, random_flip: bool = True
    ) -> None:
        self.k = k
        self.feat_name = feat_name
        self.padding = padding
        self.random_flip = random_flip

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with the encoding."""
        g.ndata[self.feat_name] = svd_pe(g, self.k, self.padding, self.random_flip)
        return g
