"""Vertex inclusion probabilities (VIP): how probably a mini-batch needs each node.

A node is in the list of nodes after a hop if it was there before, or if a node of the list samples
it. These events count as independent: exact where no two ways lead from a node to the seeds, and
close to the truth elsewhere. So the probabilities follow from fanouts and degrees, one pass over
the edges per hop, without sampling. The number of edges into a part is a cruder measure.

References
----------
Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic Neighborhood
Expansion Analysis and Caching" (SALIENT++), MLSys 2023. There only the nodes of the last hop sample
the next one; here all nodes found so far do, as in the samplers of this package and of DGL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.distributed import messages as m
from gnnlab.distributed.transport import Transport
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.partition.book import PartitionPolicy
from gnnlab.partition.part import Part


def inclusion_probabilities(
    g: Graph, seeds: Any, fanouts: Sequence[int], batch_size: int, replace: bool = False
) -> torch.Tensor:
    """Return the probability of each node to be in a mini-batch (VIP).

    Parameters
    ----------
    g : Graph
        With one node type and one edge type.
    seeds : torch.Tensor
        Shape (T,): the IDs from which batches are drawn.
    fanouts : list of int
        As for :class:`~gnnlab.dataloading.NeighborSampler`; −1 for all.
    replace : bool
        Whether neighbors are drawn with replacement.

    Returns
    -------
    torch.Tensor
        Shape (N,), float64.

    Examples
    --------
    Node 2 samples one of its two in-neighbors in both hops; node 1, once found, samples node 0.

    >>> import gnnlab as dgl
    >>> from gnnlab.distributed.inclusion import inclusion_probabilities
    >>> g = dgl.graph(([0, 1, 3], [1, 2, 2]))
    >>> inclusion_probabilities(g, [2], fanouts=[1, 1], batch_size=1)
    tensor([0.5000, 0.7500, 1.0000, 0.7500], dtype=torch.float64)
    """
    csc = g.relation().csc()
    arrays = csc.indptr.numpy(), csc.indices.numpy()
    probs = np.zeros(g.num_nodes())
    ids = torch.as_tensor(seeds).numpy()
    probs[ids] = min(1.0, batch_size / max(1, len(ids)))
    for fanout in reversed(fanouts):
        logs, rows = np.zeros(len(probs)), np.flatnonzero(probs)
        kernels.cache.add_misses(*arrays, rows, probs[rows], fanout, replace, logs)
        probs = 1 - (1 - probs) * np.exp(logs)
    return torch.from_numpy(probs)


def inclusion_of_parts(
    transport: Transport,
    etypes: Sequence[EdgeType],
    probs: Mapping[str, np.ndarray],
    fanouts: Sequence[Mapping[EdgeType, int]],
    replace: bool = False,
) -> dict[str, np.ndarray]:
    """Compute :func:`inclusion_probabilities` on a graph in parts.

    Every owner computes what its nodes sample; two numbers per node and hop cross the network.
    ``probs`` are the probabilities of each node to be a seed, shape (N,), float64, by node type;
    ``fanouts`` are by edge type, first layer first. The result is as ``probs``.
    """
    ranges = transport.part().book.node_ranges
    for fanout in reversed(fanouts):
        asked = []
        for number, etype in enumerate(etypes):
            reached = torch.from_numpy(np.flatnonzero(probs[etype[2]] if fanout[etype] else ()))
            for part, rows, positions in kernels.owners.split(reached, ranges[etype[2]]):
                some = torch.from_numpy(probs[etype[2]])[reached[positions]]
                asked.append((part, m.Inclusion(number, rows, some, fanout[etype], replace)))
        logs = {ntype: np.zeros(len(values)) for ntype, values in probs.items()}
        replies = transport.exchange(asked)
        for (_, message), (nodes, values) in zip(asked, replies, strict=True):
            logs[etypes[message.etype][0]][nodes.numpy()] += values.numpy()
        probs = {ntype: 1 - (1 - p) * np.exp(logs[ntype]) for ntype, p in probs.items()}
    return dict(probs)


def edges_into(part: Part, policy: PartitionPolicy) -> np.ndarray:
    """Count the edges from each row of another part into a part: shape (remote rows,), float32."""
    low, high = policy.ranges[part.part_id : part.part_id + 2].tolist()
    found = np.zeros(policy.get_size() - (high - low), np.float32)
    if policy.is_node:
        nodes = part.nodes[str(policy.type_name)]
        numbers = nodes.halo.numpy() - np.where(nodes.halo.numpy() < low, 0, high - low)
        for etype, edges in part.edges.items():
            if etype[0] == policy.type_name:
                sources = edges.indices[: edges.num_inner]
                counts = torch.bincount(sources, minlength=nodes.num_inner + len(numbers))
                found[numbers] += counts[nodes.num_inner :].numpy()
    return found
