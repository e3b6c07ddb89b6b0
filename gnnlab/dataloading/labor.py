"""A sampler of blocks that need fewer nodes: LABOR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from gnnlab.dataloading.sampler import NeighborSampler
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.neighbor import Picked
from gnnlab.random import next_key
from gnnlab.sampling.labor import PROBABILITIES, WEIGHTS, check_importance, take_layer


class LaborSampler(NeighborSampler):
    """Sample about as many neighbors as :class:`NeighborSampler`, of fewer distinct nodes.

    Each node draws one random number for all seeds that it is a neighbor of, see
    :mod:`gnnlab.sampling.labor`. So the features of fewer nodes are read for the same fanouts.

    Parameters
    ----------
    fanouts : list of int, None or dict
        As for :class:`NeighborSampler`: a node gets min(fanout, degree) neighbors on average.
    importance_sampling : int
        0 is LABOR-0 of the paper, i is LABOR-i and −1 ``LABOR-*``: rounds in which neighbors of
        many seeds are made more likely, for even fewer nodes and more edges.
    layer_dependency : bool
        Use the same random numbers in all layers, so that they share more nodes.
    batch_dependency : 1
        Batches are independent: other values raise InvalidInput.
    edge_dir, prob, prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        As for :class:`NeighborSampler`.

    Notes
    -----
    Blocks have two more edge features. ``edata["edge_weights"]``, shape (K,), is for layers that
    take a mean, as ``SAGEConv(…, "mean")(block, h, edge_weight=block.edata["edge_weights"])``.
    ``edata["edge_probs"]`` is the probability with which each edge was taken: a sum of
    ``message / edge_probs`` estimates the sum over all neighbors without bias. With
    ``importance_sampling=0`` and without ``prob`` the weights are 1 and need not be used.

    On a DistGraph all in-edges of the seeds come to the process that samples, and the sample
    depends on the partition, as random numbers are drawn by the IDs of the partitioned graph.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.rand_graph(500, 25_000)
    >>> for sampler in dgl.dataloading.NeighborSampler, dgl.dataloading.LaborSampler:
    ...     input_nodes, _, blocks = sampler([10]).sample(g, range(50))
    ...     print(len(input_nodes) > 250, 400 < blocks[0].num_edges() < 600)
    True True
    False True
    """

    def __init__(
        self,
        fanouts: Sequence[Any],
        edge_dir: str = "in",
        prob: Any = None,
        importance_sampling: int = 0,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
    ) -> None:
        named = prefetch_node_feats, prefetch_labels, prefetch_edge_feats
        super().__init__(fanouts, edge_dir, prob, None, False, *named, output_device)
        if batch_dependency != 1:
            raise InvalidInput(
                "batch_dependency other than 1 makes batches depend on each other, which gnnlab's "
                f"loaders do not: they sample batches in any order; found {batch_dependency!r}"
            )
        self.importance_sampling = check_importance(importance_sampling)
        self.layer_dependency = layer_dependency

    def sample_blocks(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Make the blocks of a batch; see :meth:`BlockSampler.sample_blocks`."""
        key = next_key() if self.layer_dependency else None
        return self._sample_all(g, seed_nodes, exclude_eids, partial(self._take, key))

    def _take(
        self,
        key: int | None,
        g: Graph,
        seeds: dict[str, torch.Tensor],
        fanouts: dict[EdgeType, int],
        excluded: dict[EdgeType, Any],
    ) -> tuple[dict[EdgeType, Picked], dict[EdgeType, dict[str, torch.Tensor]]]:
        key = next_key() if key is None else key
        taken = take_layer(g, seeds, fanouts, key, self.prob, self.importance_sampling, excluded)
        columns = {
            etype: {WEIGHTS: found.weights, PROBABILITIES: found.probs}
            for etype, found in taken.items()
        }
        return {etype: found.picked for etype, found in taken.items()}, columns
