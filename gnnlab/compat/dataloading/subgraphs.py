"""Samplers of subgraphs: ShaDow, ClusterGCN, GraphSAINT.

A mini-batch is a small graph, on which all layers compute, instead of a block for each layer.
Features to prefetch are names, or names by type; ``output_device`` is where the graph goes.

References
----------
Zeng et al., "Decoupling the Depth and Scope of Graph Neural Networks", NeurIPS 2021 (ShaDow).
Chiang et al., "Cluster-GCN", KDD 2019. Zeng et al., "GraphSAINT", ICLR 2020.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gnnlab import random
from gnnlab.dataloading.features import set_edge_lazy_features, set_node_lazy_features
from gnnlab.dataloading.sampler import Sampler, read_seeds, simplify
from gnnlab.errors import InvalidInput, check_graph, writing
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import node_dict, read_edges
from gnnlab.graph.names import EID
from gnnlab.graph.neighbor import sample_neighbors
from gnnlab.partition.assign import assign
from gnnlab.sampling.walk import random_walk
from gnnlab.system.staging import replacing


def first_of_each(ids: torch.Tensor) -> torch.Tensor:
    """Return the distinct IDs in the order in which they first appear."""
    values, place = torch.unique(ids, return_inverse=True)
    first = torch.full((len(values),), len(ids), device=ids.device)
    first.scatter_reduce_(0, place, torch.arange(len(ids), device=ids.device), "amin")
    return ids[first.sort().values]


class _SubgraphSampler(Sampler):
    """Names features of a subgraph to prefetch, and moves it."""

    def __init__(self, node_feats: Any, edge_feats: Any, output_device: Any) -> None:
        self.prefetch_node_feats = node_feats or []
        self.prefetch_edge_feats = edge_feats or []
        self.output_device = output_device

    def _finish(self, part: Graph) -> Graph:
        set_node_lazy_features(part, self.prefetch_node_feats)
        set_edge_lazy_features(part, self.prefetch_edge_feats)
        return part if self.output_device is None else part.to(self.output_device)


class ShaDowKHopSampler(_SubgraphSampler):
    """Sample neighbors hop by hop, and return the graph of all nodes found and all edges between.

    ``fanouts``, ``replace`` and ``prob`` are those of :class:`NeighborSampler`.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([1, 2, 3, 4, 2], [0, 1, 2, 3, 0]))
    >>> sampler = dgl.dataloading.ShaDowKHopSampler([-1, -1])
    >>> input_nodes, output_nodes, part = sampler.sample(g, [0])
    >>> input_nodes, part.edata[dgl.EID]
    (tensor([0, 1, 2, 3]), tensor([0, 1, 2, 4]))
    """

    def __init__(
        self,
        fanouts: Sequence[Any],
        replace: bool = False,
        prob: Any = None,
        prefetch_node_feats: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
    ) -> None:
        super().__init__(prefetch_node_feats, prefetch_edge_feats, output_device)
        self.fanouts, self.replace, self.prob = list(fanouts), replace, prob

    def sample(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Return the nodes of the subgraph, the seeds first; the seeds; and the subgraph.

        Excluded edges are neither followed nor in the subgraph.
        """
        output_nodes = read_seeds(g, seed_nodes)
        nodes = {ntype: as_tensor(ids) for ntype, ids in node_dict(g, output_nodes).items()}
        for fanout in reversed(self.fanouts):
            frontier = sample_neighbors(
                *(g, nodes, fanout, "in", self.prob, self.replace),
                copy_ndata=False,
                copy_edata=False,
                exclude_edges=exclude_eids,
            )
            for etype in frontier.canonical_etypes:
                found = frontier.edges(etype=etype)[0]
                known = nodes.get(etype[0], found[:0])
                new = first_of_each(found[~torch.isin(found, known)])
                nodes[etype[0]] = torch.cat([known, new])
        part = g.subgraph(nodes)
        if exclude_eids is not None:
            left_out = read_edges(g, exclude_eids)
            kept = {
                etype: ~torch.isin(frame[EID], left_out.get(etype, frame[EID][:0]))
                for etype, frame in part.edge_frames.items()
            }
            part = part.edge_subgraph(kept, relabel_nodes=False, store_ids=False)
        nodes = {ntype: nodes.get(ntype, torch.empty(0, dtype=g.idtype)) for ntype in g.ntypes}
        return simplify(nodes), output_nodes, self._finish(part)


class ClusterGCNSampler(_SubgraphSampler):
    """Cut the graph into k parts; a mini-batch is the graph of the nodes of a few parts.

    A loader iterates over ``torch.arange(k)``. ``cache_path`` keeps the parts: if the file has
    those of a graph of this size, they are read; otherwise it is written. ``balance_…`` are those
    of :func:`gnnlab.distributed.partition_graph`; ``mode`` has no effect.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.rand_graph(100, 500)
    >>> sampler = dgl.dataloading.ClusterGCNSampler(g, 10, cache_path=None)
    >>> sum(sampler.sample(g, torch.tensor([i])).num_nodes() for i in range(10))
    100
    """

    def __init__(
        self,
        g: Graph,
        k: int,
        cache_path: str | Path | None = "cluster_gcn.pkl",
        balance_ntypes: Any = None,
        balance_edges: bool = False,
        mode: str = "k-way",
        prefetch_ndata: Any = None,
        prefetch_edata: Any = None,
        output_device: Any = None,
    ) -> None:
        super().__init__(prefetch_ndata, prefetch_edata, output_device)
        check_graph(g, "ClusterGCNSampler")
        sizes = [k, *(g.num_nodes(ntype) for ntype in g.ntypes), g.num_edges()]
        part_of = _read_parts(cache_path, sizes)
        if part_of is None:
            found, _ = assign(g, k, balance_ntypes=balance_ntypes, balance_edges=balance_edges)
            part_of = torch.from_numpy(found).long()
            if cache_path is not None:
                with writing(cache_path), replacing(Path(cache_path)) as file:
                    torch.save({"sizes": sizes, "part_of": part_of}, file)
        self.part_of = dict(zip(g.ntypes, part_of.split(sizes[1:-1]), strict=True))
        self.k = k

    def sample(self, g: Graph, partition_ids: torch.Tensor) -> Graph:
        """Return the graph of all nodes of some parts, in ascending order of their IDs."""
        ids = as_tensor(partition_ids).reshape(-1)
        nodes = {
            ntype: torch.isin(part_of, ids.cpu()).nonzero().flatten().to(g.device)
            for ntype, part_of in self.part_of.items()
        }
        return self._finish(g.subgraph(nodes))


def _read_parts(path: str | Path | None, sizes: list[int]) -> torch.Tensor | None:
    """Return the part of each node from a file, or None where it has none of such a graph."""
    if path is None or not os.path.exists(path):
        return None
    try:
        kept = torch.load(path, weights_only=True)
        if kept["sizes"] == sizes and len(kept["part_of"]) == sum(sizes[1:-1]):
            return kept["part_of"]
        reason = "of another graph, or of another number of them"
    except Exception:  # a file of DGL, or not of this sampler
        reason = "not written by gnnlab"
    warnings.warn(f"{path} has parts {reason}; it is written again", stacklevel=3)
    return None


class SAINTSampler(_SubgraphSampler):
    """Draw nodes, edges or walks at random; a mini-batch is the graph of the nodes found.

    ``mode`` "node" draws nodes in proportion to in-degree; "edge" edges (u, v) in proportion to
    1 / (in-degree of u) + 1 / (in-degree of v); "walk" starts of random walks uniformly. ``budget``
    is how many, drawn with replacement; for walks, their number and their length. A loader over
    ``torch.arange(n)`` makes n subgraphs. ``cache`` keeps the probabilities of a graph.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.rand_graph(1000, 5000)
    >>> sampler = dgl.dataloading.SAINTSampler(mode="walk", budget=(10, 4))
    >>> 10 <= sampler.sample(g, 0).num_nodes() <= 50
    True
    """

    def __init__(
        self,
        mode: str,
        budget: int | Sequence[int],
        cache: bool = True,
        prefetch_ndata: Any = None,
        prefetch_edata: Any = None,
        output_device: Any = None,
    ) -> None:
        super().__init__(prefetch_ndata, prefetch_edata, output_device)
        if mode not in ("node", "edge", "walk"):
            raise InvalidInput(f"mode must be 'node', 'edge' or 'walk'; found {mode!r}")
        numbers = [budget] if isinstance(budget, int) else list(budget)
        wanted = 2 if mode == "walk" else 1
        if len(numbers) != wanted or not all(isinstance(n, int) and n > 0 for n in numbers):
            raise InvalidInput(
                "budget is a number of nodes or edges, or for walks (number, length), above 0; "
                f"found {budget!r} for mode {mode!r}"
            )
        self.mode, self.budget, self.cache = mode, numbers, cache
        self._weights: tuple[Any, torch.Tensor] | None = None

    def sample(self, g: Graph, indices: Any) -> Graph:
        """Return the graph of the nodes drawn, in ascending order of their IDs."""
        if not g.is_homogeneous:
            raise InvalidInput(
                "SAINTSampler needs one node type and one edge type; use to_homogeneous"
            )
        if self.mode == "walk":
            starts, length = self.budget
            generator = random.generator(g.device)
            roots = torch.randint(g.num_nodes(), (starts,), generator=generator, device=g.device)
            traces = random_walk(g, roots, length=length)[0].flatten()
            return self._finish(g.subgraph(torch.unique(traces[traces >= 0])))
        drawn = torch.multinomial(
            self._probabilities(g), self.budget[0], True, generator=random.generator(g.device)
        )
        if self.mode == "edge":
            drawn = torch.cat(g.find_edges(drawn))
        return self._finish(g.subgraph(torch.unique(drawn)))

    def _probabilities(self, g: Graph) -> torch.Tensor:
        relation = g.relation()
        if self._weights is not None and self._weights[0] is relation:
            return self._weights[1]
        weights = relation.in_degrees().double()
        if self.mode == "edge":
            src, dst = relation.coo()
            inverse = 1 / weights.clamp(min=1)
            weights = inverse[src.long()] + inverse[dst.long()]
        if self.cache:
            self._weights = relation, weights
        return weights
