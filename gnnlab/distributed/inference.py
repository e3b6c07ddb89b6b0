"""Exact inference on a partitioned graph, layer by layer.

Each trainer computes a layer for the nodes of its part, batch by batch: it reads the rows of their
in-neighbors and writes the results to a DistTensor, the input of the next layer (DGL user guide,
chapter 6.6). So each row is computed once, and not again for each batch that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from gnnlab.dataloading.sampler import MultiLayerFullNeighborSampler
from gnnlab.distributed import context
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.split import edge_split, node_split
from gnnlab.distributed.tensor import DistTensor, original_ids
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.names import NID
from gnnlab.partition.book import PartitionPolicy
from gnnlab.random import stream

ROWS = 1 << 16  # to copy at once


def full_neighbor_inference(
    g: DistGraph, layers: Iterable[Callable[..., Any]], inputs: Any, batch_size: int = 1024
) -> Any:
    """Apply layers to all nodes, with all neighbors and without gradients; all trainers must call.

    Parameters
    ----------
    layers : iterable of callable
        ``layer(block, x)`` takes the rows of the block's sources, its destinations first, and
        returns those of its destinations; on a graph with several types dicts by node type. Only
        in-degrees are those of ``g``: GraphConv needs ``norm="right"``.
    inputs : DistTensor, or dict of DistTensor by node type
        Features of the nodes, such as ``g.ndata["x"]``.
    batch_size : int
        Destination nodes per block.

    Returns
    -------
    DistTensor or dict of DistTensor by node type
        Rows of the last layer, by the IDs of ``g``; :func:`original_order` reorders them.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> g.ndata["x"] = torch.arange(4.0).unsqueeze(1)
    >>> dgl.distributed.partition_graph(g, "ring", 2, folder, part_method=lambda g, k: [0, 1, 0, 1])
    ring: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("ring", part_config=f"{folder}/ring.json")
    >>> layer = dgl.nn.GraphConv(1, 1, norm="right", weight=False, bias=False)
    >>> y = dgl.distributed.full_neighbor_inference(g, [layer, layer], g.ndata["x"])
    >>> dgl.distributed.original_order(y)[:].flatten()
    tensor([2., 3., 0., 1.])
    """
    batch_size, frames = whole_number(batch_size, "batch_size", 1), g.node_frames()
    x = dict(inputs) if isinstance(inputs, Mapping) else {g.resolve_ntype(None): inputs}
    for ntype, tensor in x.items():
        if getattr(tensor, "part_policy", None) != frames[g.resolve_ntype(ntype)].policy:
            raise InvalidInput(f"inputs of {ntype!r}: a DistTensor on its nodes, not {tensor!r}")
    for layer in layers:
        x = _one_layer(g, layer, x, batch_size)
        g.barrier()
    return next(iter(x.values())) if g.is_homogeneous else x


def _one_layer(g: Any, layer: Callable[..., Any], x: dict[str, Any], batch_size: int) -> Any:
    out: dict[str, DistTensor] = {}
    sampler = MultiLayerFullNeighborSampler(1)
    for ntype in filter(g.num_nodes, g.ntypes):
        policy = g.get_node_partition_policy(ntype)
        mine = own_ids(policy)
        # Without nodes of its own, a trainer computes one to learn the shape of the rows.
        for seeds in (mine if len(mine) else torch.tensor([0])).split(batch_size):
            with stream(0), torch.no_grad():  # takes no key of the process
                (block,) = sampler.sample_blocks(g, {ntype: seeds})[-1]
                sources = {name: frame[NID] for name, frame in block.src_frames.items()}
                wanted = [(t.part_policy, t.name, sources[name]) for name, t in x.items()]
                rows = dict(zip(x, g.client.pull_many(wanted), strict=True))
                found = layer(block, rows[ntype] if g.is_homogeneous else rows)
            found = {ntype: found} if g.is_homogeneous else found
            if ntype in found and ntype not in out:
                shape = (policy.get_size(), *found[ntype].shape[1:])
                out[ntype] = DistTensor(shape, found[ntype].dtype, part_policy=policy)
            if ntype in found and len(mine):
                out[ntype][seeds] = found[ntype]
    return out


def original_order(tensor: DistTensor) -> DistTensor:
    """Return a tensor with its rows in the order of IDs of the graph before it was partitioned.

    All trainers must call this; each moves rows of its part.

    Parameters
    ----------
    tensor : DistTensor
        A row for each node, or edge, of a type.
        :func:`full_neighbor_inference` has an example.
    """
    policy, originals = tensor.part_policy, original_ids(tensor)
    out = DistTensor(tuple(tensor.shape), tensor.dtype, part_policy=policy)
    for ids in own_ids(policy).split(ROWS):
        out[originals[ids]] = tensor[ids]
    tensor.client.barrier()
    return out


def own_ids(policy: PartitionPolicy) -> torch.Tensor:
    """Return the IDs of this trainer's share of its part; in standalone mode, of all parts."""
    ids = torch.arange(policy.get_size())
    if context.current().remote is None:
        return ids
    split: Any = node_split if policy.is_node else edge_split
    return split(ids, policy.partition_book, policy.type_name, force_even=False)  # type: ignore[no-any-return]
