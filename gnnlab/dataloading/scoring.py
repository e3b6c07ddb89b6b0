"""Answer requests: the output of a trained model for some nodes, now.

All neighbors give the numbers of inference on the whole graph. A fanout bounds what a hub costs;
with the same seed, a node gets the same neighbors. If the outputs of the layer before are stored,
the last layer alone can answer, and reads one hop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from gnnlab.dataloading.features import attach_features
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import check_sampler
from gnnlab.errors import InvalidInput, NotFound, whole_number
from gnnlab.graph.frame import LazyTensor, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import edge_dict, node_dict, pair_up, read_ids
from gnnlab.graph.names import NID, EdgeType
from gnnlab.graph.neighbor import Picked, repeat, sample_layer
from gnnlab.random import stream

_SPARE = 1024  # so that requests with a few new nodes share the sampler's arrays


def score(
    g: Graph,
    model: Callable[[Any, Any], Any],
    nodes: Any,
    sampler: Any,
    inputs: Any,
    *,
    seed: int = 0,
    batch_size: int = 1024,
    new_edges: Any = None,
    new_inputs: Any = None,
) -> Any:
    """Compute the output of a model for some nodes, without gradients.

    Parameters
    ----------
    g : Graph or DistGraph
        On a DistGraph, one trainer may call this alone.
    model : callable
        ``model(blocks, x)`` takes rows of the first block's sources and returns those of the last
        one's destinations; with several node types, dicts. A module is in evaluation mode.
    nodes : IDs, or dict of IDs by node type
        May repeat.
    sampler : BlockSampler
        ``MultiLayerFullNeighborSampler(num_layers)`` takes all neighbors.
    inputs : str, tensor, DistTensor, or dict of tensors by node type
        Name of a node feature, or a row per node. With outputs of the layer before, the model is
        the last layer.
    seed : int
        The neighbors sampled for a node depend on the seed, the layer and its ID, so that its row,
        but for rounding, does not depend on other ``nodes``.
    batch_size : int
        Nodes per mini-batch.
    new_edges : (sources, destinations), or dict of such pairs by edge type, optional
        Edges that ``g`` lacks; all are taken, besides the fanout. Blocks have no features then.
    new_inputs : tensor, or dict of tensors by node type, optional
        Inputs of nodes that ``g`` lacks, whose IDs begin at ``g.num_nodes()``.

    Returns
    -------
    tensor, or dict of tensors by node type if ``nodes`` is one
        Rows in the order of ``nodes``.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g, x = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])), torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    >>> total = dgl.nn.GraphConv(1, 1, norm="none", weight=False, bias=False).eval()
    >>> how = lambda blocks, x: total(blocks[1], total(blocks[0], x)), [0, 3]
    >>> sampler = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    >>> dgl.dataloading.score(g, *how, sampler, x).flatten()
    tensor([3., 2.])
    >>> new = {"new_edges": ([4, 0], [3, 4]), "new_inputs": torch.tensor([[5.0]])}
    >>> dgl.dataloading.score(g, *how, sampler, x, **new).flatten()
    tensor([8., 3.])
    """
    check_sampler(sampler, "sampler", "sample(g, indices)")
    batch_size = whole_number(batch_size, "batch_size", 1)
    if getattr(model, "training", False):  # dropout would answer at random
        raise InvalidInput("model is in training mode; call model.eval()", code="training_mode")
    if not isinstance(inputs, str):
        x = node_dict(g, inputs)
    elif not (x := {t: f[inputs] for t, f in g.node_frames().items() if inputs in f}):
        raise NotFound(f"inputs: no node type has a feature {inputs!r}")
    for t, rows in x.items():
        if len(rows) != (count := g.num_nodes(t)):
            raise InvalidInput(
                f"inputs of {t!r} need {count} rows, one per node; found {len(rows)}"
            )
        x[t] = rows if hasattr(rows, "part_policy") else as_tensor(rows, "inputs")
    new = {} if new_inputs is None else node_dict(g, new_inputs)
    for t, given in new.items():
        rows = new[t] = as_tensor(given, "new_inputs")
        like = (*x[t].shape[1:], x[t].dtype) if t in x else "none of that type"
        if (found := (*rows.shape[1:], rows.dtype)) != like:
            raise InvalidInput(f"new_inputs of {t!r} must be like inputs, {like}; found {found}")
    near: Any = g
    if new_edges is not None or new:
        if isinstance(sampler, LaborSampler) or getattr(sampler, "time", "") is not None:
            raise InvalidInput("new edges and nodes need a NeighborSampler without time")
        near = _WithNewEdges(g, new_edges or {}, {t: len(rows) for t, rows in new.items()})
    answer = {}
    for ntype, given in node_dict(g, nodes).items():
        ids = read_ids(given, g.num_nodes(ntype) + len(new.get(ntype, ())), "node", g.device)
        distinct, places = torch.unique(ids, return_inverse=True)
        parts = []
        for seeds in distinct.split(batch_size):
            with stream(seed), torch.no_grad():
                blocks = sampler.sample(near, {ntype: seeds})[-1]
                if near is g:
                    attach_features(g, blocks)
                read = {t: _rows(g, t, blocks[0].src_frames[t][NID], x[t], new.get(t)) for t in x}
                out = model(blocks, read.popitem()[1] if g.is_homogeneous else read)
            parts.append(out[ntype] if isinstance(out, Mapping) else out)
        answer[ntype] = torch.cat(parts)[places]
    return answer if isinstance(nodes, dict) else answer.popitem()[1]


def _rows(g: Any, ntype: str, ids: torch.Tensor, x: Any, new: torch.Tensor | None) -> Any:
    if new is None:
        return x[ids]
    old = ids < (bound := g.num_nodes(ntype))
    order = torch.argsort(torch.cat([old.nonzero(), (~old).nonzero()]).flatten())
    return torch.cat([x[ids[old]], new[ids[~old] - bound]])[order]


class _WithNewEdges:
    """A graph with more edges and nodes, for a NeighborSampler; nothing of the graph is copied."""

    def __init__(self, g: Any, edges: Any, num_new: Mapping[str, int]) -> None:
        self.g, self.num_new, self.edges = g, num_new, {}
        for etype, ends in edge_dict(g, edges).items():
            if not isinstance(ends, list | tuple) or len(ends) != 2:
                raise InvalidInput(f"new_edges: a pair (sources, destinations); found {ends!r}")
            bounds = (g.num_nodes(t) + num_new.get(t, 0) for t in etype[::2])
            both = [read_ids(*end, "node", g.device) for end in zip(ends, bounds, strict=True)]
            self.edges[etype] = pair_up(*both)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.g, name)

    canonical_etypes = property(lambda self: self.g.canonical_etypes)

    def num_nodes(self, ntype: str) -> int:
        """Bound of the IDs."""
        return self.g.num_nodes(ntype) + -(-self.num_new.get(ntype, 0) // _SPARE) * _SPARE

    def pick_layer(self, seeds: Mapping[str, torch.Tensor], fanouts: Any, *how: Any) -> Any:
        """Sample edges of the graph, and take all new ones."""
        old = {t: ids < self.g.num_nodes(t) for t, ids in seeds.items()}
        picked = sample_layer(self.g, {t: seeds[t][old[t]] for t in seeds}, fanouts, *how)
        return {t: self._add(t, found, seeds, old, fanouts[t]) for t, found in picked.items()}

    def _add(self, etype: EdgeType, found: Picked, seeds: Any, old: Any, fanout: int) -> Picked:
        if not len(ids := seeds[etype[2]]):
            return found
        none = torch.empty(0, dtype=torch.int64, device=ids.device)
        src, dst = self.edges.get(etype, (none, none))
        order = torch.argsort(ids)
        rows = order[torch.searchsorted(ids[order], dst.to(ids.dtype)).clamp(max=len(ids) - 1)]
        eids = ((ids[rows] == dst) & (fanout != 0)).nonzero().flatten()
        known = repeat(old[etype[2]].nonzero().flatten(), found.ptr, len(found.sources))
        owners, by_owner = torch.sort(torch.cat([known, rows[eids]]), stable=True)
        ptr = torch.searchsorted(owners, torch.arange(len(ids) + 1, device=ids.device))
        sources = torch.cat([found.sources, src[eids].to(found.sources.dtype)])[by_owner]
        eids = self.g.num_edges(etype) + eids
        return Picked(ptr, LazyTensor(lambda: torch.cat([found.edges(), eids])[by_owner]), sources)
