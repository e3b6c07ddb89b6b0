"""Neighbor sampling for a project that has edges and no graph class.

A relation, which is two arrays, goes in; blocks that the layers of ``gnnlab.nn`` take come out.
With the files that this one imports, it is all that mini-batch training needs, and small enough to
copy (``gnnlab export sampler``). ``NeighborSampler`` makes the same blocks for a ``Graph``, with
types, weights, devices and features.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.relation import Adjacency, Relation
from gnnlab.kernels import relabel, sample
from gnnlab.random import fold

__all__ = ["ArrayBlock", "sample_blocks"]


@dataclass(frozen=True)
class ArrayBlock:
    """One layer of a mini-batch: messages go from source nodes to destination nodes.

    Attributes
    ----------
    edges : Relation
        Over local IDs. The destinations are the first of the sources.
    src_ids : torch.Tensor
        Shape (num_src,), int32 or int64: the node that each source is.
    slots : torch.Tensor
        Shape (E,), int32 or int64: where each edge stands in the CSC of the whole graph.
    """

    edges: Relation
    src_ids: torch.Tensor
    slots: torch.Tensor

    is_block = True

    def relation(self) -> Relation:
        """Return the edges, as layers ask for them."""
        return self.edges

    def num_src_nodes(self) -> int:
        """Return the number of source nodes."""
        return self.edges.num_src

    def num_dst_nodes(self) -> int:
        """Return the number of destination nodes."""
        return self.edges.num_dst

    def num_edges(self) -> int:
        """Return the number of edges."""
        return self.edges.num_edges


def sample_blocks(
    relation: Relation, seeds: torch.Tensor, fanouts: Sequence[int], key: int
) -> list[ArrayBlock]:
    """Sample neighbors of neighbors, a layer at a time.

    Parameters
    ----------
    relation : Relation
        The whole graph, on the CPU, with as many sources as destinations.
    seeds : torch.Tensor
        Shape (S,), int32 or int64, distinct: the nodes whose rows the last layer computes.
    fanouts : sequence of int
        In-edges per node, first layer first; −1 takes all.
    key : int
        Name of the batch's randomness, for instance ``fold(seed, epoch, batch)``. Within a stream
        of that name (:func:`gnnlab.random.stream`), ``NeighborSampler`` draws the same edges.

    Returns
    -------
    list of ArrayBlock
        First layer first. Its ``src_ids`` are the nodes whose features the model reads.

    Raises
    ------
    InvalidInput
        A seed stands twice, or sources and destinations differ in number.
    OutOfRange
        A seed does not exist.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.graph.relation import Relation
    >>> from gnnlab.sampling.arrays import sample_blocks
    >>> ends = torch.tensor([1, 2, 3, 4]), torch.tensor([0, 0, 0, 1])
    >>> blocks = sample_blocks(Relation.from_edges(*ends, 5, 5), torch.tensor([0]), [-1, 2], key=7)
    >>> [(block.num_src_nodes(), block.num_dst_nodes(), block.num_edges()) for block in blocks]
    [(5, 3, 4), (3, 1, 2)]
    """
    if relation.num_src != relation.num_dst:
        raise InvalidInput(
            f"the relation has {relation.num_src} sources and {relation.num_dst} destinations; "
            "neighbors of neighbors need one kind of nodes"
        )
    whole = relation.csc()
    indptr, indices = whole.indptr.numpy(), whole.indices.numpy()
    layers = []
    with relabel.NodeList(relation.num_dst) as nodes:
        nodes.start(seeds)
        for layer, fanout in enumerate(reversed(fanouts)):
            num_dst, layer_key = nodes.count, fold(fold(key, layer + 1), 0)
            found = sample.sample_neighbors(indptr, indices, nodes.ids.numpy(), fanout, layer_key)
            ptr, slots, sources = (torch.from_numpy(array) for array in found)
            local = Adjacency(ptr, nodes.add(sources, overwrite=True))
            layers.append((Relation(nodes.count, num_dst, csc=local), slots))
        ids = nodes.ids
    return [ArrayBlock(edges, ids[: edges.num_src], slots) for edges, slots in reversed(layers)]
