"""Encodings of a node's position in its graph, from the spectrum and from random walks.

References
----------
Dwivedi et al., "Benchmarking Graph Neural Networks", JMLR 2023; "Graph Neural Networks with
Learnable Structural and Positional Representations", ICLR 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.errors import InvalidInput
from gnnlab.graph.batch import unbatch
from gnnlab.graph.graph import Graph

__all__ = ["lap_pe", "laplacian_lambda_max", "laplacian_pe", "random_walk_pe"]


def _laplacian(g: Graph) -> np.ndarray:
    """Return I − D^(−1/2) A D^(−1/2) as a dense matrix, with in-degrees of at least 1."""
    scale = g.in_degrees().cpu().numpy().clip(1) ** -0.5
    adjacency = g.adj_external(scipy_fmt="csr").toarray()
    return np.eye(g.num_nodes()) - scale[:, None] * adjacency * scale


def _is_symmetric(matrix: np.ndarray) -> bool:
    return bool((matrix == matrix.T).all())


def laplacian_lambda_max(g: Graph) -> list[float]:
    """Return the largest eigenvalue of the normalized Laplacian, for each graph of a batch.

    Parameters
    ----------
    g : Graph
        Undirected: each edge in both directions. Dense matrices are used, of N² numbers.

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
    """Return the k eigenvectors of the normalized Laplacian after the smallest eigenvalue.

    Parameters
    ----------
    g : Graph
        Undirected: each edge in both directions. Dense matrices are used, of N² numbers.
    k : int
        Below N, unless ``padding``.
    padding : bool
        Fill missing eigenvectors with 0 and missing eigenvalues with NaN.
    return_eigval : bool
        Return the eigenvalues, too, shape (k,), float32.

    Returns
    -------
    torch.Tensor or tuple
        Shape (N, k), float32. Signs of eigenvectors mean nothing and are drawn at random
        (:func:`gnnlab.seed`).

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> ring = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])))
    >>> encoding, values = dgl.lap_pe(ring, 3, return_eigval=True)
    >>> encoding.shape, values.round(decimals=4)
    (torch.Size([4, 3]), tensor([1., 1., 2.]))
    """
    count = g.num_nodes()
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
    """Return the probabilities that a random walk is back at its start after 1, …, k steps.

    Parameters
    ----------
    g : Graph
    k : int
    eweight_name : str, optional
        Edge feature that the probability of a step is proportional to.

    Returns
    -------
    torch.Tensor
        Shape (N, k), float32.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.random_walk_pe(dgl.graph(([0, 1, 1], [1, 1, 0])), 2)
    tensor([[0.0000, 0.5000],
            [0.5000, 0.7500]])
    """
    import scipy.sparse

    count = g.num_nodes()
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
