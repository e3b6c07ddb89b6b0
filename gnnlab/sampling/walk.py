"""Random walks, and neighbors defined by them.

The neighbors of a node need not be adjacent to it. PinSAGE runs many short random walks from a node
and takes the nodes at which they end most often; the counts are weights. Between items that users
have bought, for instance, a walk goes from item to user to item.

References
----------
Ying et al., "Graph Convolutional Neural Networks for Web-Scale Recommender Systems", KDD 2018.
DGL user guide, chapter 6.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, check_graph, whole_number
from gnnlab.graph.construct import heterograph
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import EdgeType
from gnnlab.graph.neighbor import read_weights
from gnnlab.graph.relation import Adjacency
from gnnlab.random import next_key


def random_walk(
    g: Graph,
    nodes: Any,
    *,
    metapath: Sequence[Any] | None = None,
    length: int | None = None,
    prob: Any = None,
    restart_prob: Any = None,
    return_eids: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Walk from each node along its out-edges, each equally likely or by weight.

    Parameters
    ----------
    nodes : IDs
        Start nodes, one walk each; a node that occurs k times starts k walks.
    metapath : sequence of edge types, optional
        The edge type of each step. Each must start at the node type where the one before it ends.
    length : int, optional
        Number of steps, instead of a metapath, in a graph with one edge type.
    prob : str or tensor or dict, optional
        Weights of the edges, as for :func:`gnnlab.sampling.sample_neighbors`.
    restart_prob : float or torch.Tensor, optional
        Probability that a walk ends before a step: one value for all, or one for each step.
    return_eids : bool
        Also return the IDs of the edges of each walk.

    Returns
    -------
    traces : torch.Tensor
        Shape (walks, steps + 1): the nodes of each walk; −1 after a walk has ended early, for
        instance at a node without out-edges.
    eids : torch.Tensor
        Only with ``return_eids``. Shape (walks, steps); −1 as above.
    types : torch.Tensor
        Shape (steps + 1,): the node type of each column, by its number.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 3]))
    >>> traces, types = dgl.sampling.random_walk(g, [0, 2], length=2)
    >>> traces
    tensor([[ 0,  1,  2],
            [ 2,  3, -1]])
    """
    path = _read_path(g, metapath, length)
    stops = _read_stops(restart_prob, len(path), g.device)
    start = path[0][0] if path else g.ntypes[0]
    here = read_ids(nodes, g.num_nodes(start), "node", g.device).long()
    weights = read_weights(g, prob)
    totals = {etype: _running_sum(g.relations[etype].csr(), w) for etype, w in weights.items()}
    rng = kernels.rng_torch
    streams = rng.streams(next_key(), torch.arange(len(here), device=g.device))
    traces, taken = [here], []
    for step, etype in enumerate(path):
        alive = here >= 0
        if stops is not None:
            alive &= rng.uniform(rng.draw(streams, 2 * step)) >= stops[step]
        walks = alive.nonzero().flatten()
        adjacency, bits = g.relations[etype].csr(), rng.draw(streams[walks], 2 * step + 1)
        slots, can = _choose(adjacency, here[walks], bits, totals.get(etype))
        walks, slots = walks[can], slots[can]
        here = torch.full_like(here, -1)
        here[walks] = adjacency.indices[slots].long()
        traces.append(here)
        if return_eids:
            eids = torch.full_like(here, -1)
            eids[walks] = slots if adjacency.ordered else adjacency.eids[slots].long()
            taken.append(eids)
    names = [start, *(etype[2] for etype in path)]
    types = g.as_ids(torch.tensor([g.get_ntype_id(name) for name in names], device=g.device))
    found = g.as_ids(torch.stack(traces, 1))
    if not return_eids:
        return found, types
    none = torch.empty((len(here), 0), dtype=torch.int64, device=g.device)
    return found, g.as_ids(torch.stack(taken, 1) if taken else none), types


def _read_path(g: Graph, metapath: Sequence[Any] | None, length: int | None) -> list[EdgeType]:
    if (metapath is None) == (length is None):
        raise InvalidInput("pass either metapath=[…] or, in a graph with one edge type, length=…")
    if metapath is None:
        if not isinstance(length, int) or length < 0:
            raise InvalidInput(f"length must be an integer from 0; found {length!r}")
        return [g.to_canonical_etype(None)] * length
    path = [g.to_canonical_etype(etype) for etype in metapath]
    for before, after in pairwise(path):
        if before[2] != after[0]:
            raise InvalidInput(
                f"the metapath has {after} after {before}, which ends at another node type"
            )
    return path


def _read_stops(value: Any, steps: int, device: torch.device) -> torch.Tensor | None:
    if value is None:
        return None
    stops = as_tensor(value).to(device, torch.float64)
    if stops.ndim > 1 or (stops.ndim == 1 and len(stops) != steps):
        raise InvalidInput(
            f"restart_prob is one probability, or one for each of {steps} steps; found the shape "
            f"{tuple(stops.shape)}"
        )
    if not ((stops >= 0) & (stops <= 1)).all():
        raise InvalidInput(f"restart_prob must be from 0 to 1; found {stops.tolist()}")
    return stops.expand(steps)


def _running_sum(adjacency: Adjacency, weights: torch.Tensor) -> torch.Tensor:
    """Return the sum of the weights of all slots before each one; shape (E + 1,), float64."""
    weights = weights.double()
    if not ((weights >= 0) & weights.isfinite()).all():
        raise InvalidInput("weights must be finite and not negative; check them for NaN")
    ordered = weights if adjacency.ordered else weights[adjacency.eids.long()]
    return torch.cat([ordered.new_zeros(1), ordered.cumsum(0)])


def _choose(
    adjacency: Adjacency, nodes: torch.Tensor, bits: torch.Tensor, totals: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample a slot of each node's row; also return whether the row has one."""
    begin, end = adjacency.indptr[nodes], adjacency.indptr[nodes + 1]
    rng = kernels.rng_torch
    if totals is None:
        return begin + rng.below(bits, end - begin), end > begin
    low, high = totals[begin], totals[end]
    mark = low + rng.uniform(bits) * (high - low)
    mark = torch.minimum(mark, torch.nextafter(high, low))  # stay in the row despite rounding
    return torch.searchsorted(totals, mark, right=True) - 1, high > low


class RandomWalkNeighborSampler:
    """Sample the nodes at which short random walks from a seed end most often.

    Parameters
    ----------
    num_traversals : int
        Most traversals of the metapath in a walk.
    termination_prob : float
        Probability that a walk ends after each traversal.
    num_random_walks : int
        Walks from each seed.
    num_neighbors : int
        Most nodes that are kept for each seed; of equal counts, lower IDs first.
    metapath : sequence of edge types, optional
        Edge types of one traversal, ending at the node type of its start; by default the only type.
    weight_column : str
        Name of the edge feature that counts how many walks ended at the neighbor.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 2], [1, 2, 0, 0]))
    >>> sampler = dgl.sampling.RandomWalkNeighborSampler(g, 1, 0.5, 10, 2)
    >>> frontier = sampler([1])  # 2 is the only successor of 1
    >>> frontier.edges(), frontier.edata["weights"]
    ((tensor([2]), tensor([1])), tensor([10]))
    """

    def __init__(
        self,
        G: Graph,
        num_traversals: int,
        termination_prob: float,
        num_random_walks: int,
        num_neighbors: int,
        metapath: Sequence[Any] | None = None,
        weight_column: str = "weights",
    ) -> None:
        num_traversals = whole_number(num_traversals, "num_traversals", 1)
        if not 0 <= termination_prob <= 1:
            raise InvalidInput(f"termination_prob must be from 0 to 1; found {termination_prob!r}")
        check_graph(G, type(self).__name__)
        self.G, self.weight_column = G, weight_column
        self.num_random_walks = whole_number(num_random_walks, "num_random_walks", 1)
        self.num_neighbors = whole_number(num_neighbors, "num_neighbors", 1)
        path = _read_path(G, [None] if metapath is None else metapath, None)
        if not path or path[0][0] != path[-1][2]:
            raise InvalidInput(
                f"the metapath must end at the node type where it starts; found {path}"
            )
        self.ntype, self._hops = path[0][0], len(path)
        self.metapath = path * num_traversals
        self._stops = torch.zeros(len(self.metapath), dtype=torch.float64, device=G.device)
        self._stops[self._hops :: self._hops] = termination_prob

    def __call__(self, seed_nodes: Any) -> Graph:
        """Return a graph with an edge from each neighbor to its seed.

        It has one edge type, on all nodes of the seeds' type. A seed can be its own neighbor.
        """
        num_nodes = self.G.num_nodes(self.ntype)
        seeds = read_ids(seed_nodes, num_nodes, "node", self.G.device).long()
        starts = seeds.repeat_interleave(self.num_random_walks)
        traces, _ = random_walk(self.G, starts, metapath=self.metapath, restart_prob=self._stops)
        ends = traces[:, self._hops :: self._hops].long()
        pairs = (starts[:, None] * num_nodes + ends)[ends >= 0]
        pairs, counts = torch.unique(pairs, return_counts=True)
        seeds, met = pairs // max(num_nodes, 1), pairs % max(num_nodes, 1)
        order = torch.argsort(counts, descending=True, stable=True)
        order = order[torch.argsort(seeds[order], stable=True)]
        seeds, met, counts = seeds[order], met[order], counts[order]
        position = torch.arange(len(seeds), device=seeds.device) - torch.searchsorted(seeds, seeds)
        kept = position < self.num_neighbors
        edges = {(self.ntype, "_E", self.ntype): (met[kept], seeds[kept])}
        sizes, idtype = {self.ntype: num_nodes}, self.G.idtype
        frontier = heterograph(edges, sizes, idtype=idtype, device=self.G.device)
        frontier.edata[self.weight_column] = counts[kept]
        return frontier


class PinSAGESampler(RandomWalkNeighborSampler):
    """PinSAGE neighbors through another node type, such as items that the same users bought.

    Parameters
    ----------
    G : Graph
        Has one edge type from ``ntype`` to ``other_type`` and one back.
    ntype, other_type : str
    num_traversals, termination_prob, num_random_walks, num_neighbors, weight_column
        As for :class:`RandomWalkNeighborSampler`; one traversal goes to ``other_type`` and back.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> bought = ([0, 0, 1, 1, 2], [0, 1, 1, 2, 3])  # which user, which item
    >>> g = dgl.heterograph(
    ...     {("user", "buys", "item"): bought, ("item", "bought by", "user"): bought[::-1]}
    ... )
    >>> sampler = dgl.sampling.PinSAGESampler(g, "item", "user", 2, 0.5, 100, 3)
    >>> sorted(sampler([0]).edges()[0].tolist())  # item 3 shares no user with them
    [0, 1, 2]
    """

    def __init__(
        self,
        G: Graph,
        ntype: str,
        other_type: str,
        num_traversals: int,
        termination_prob: float,
        num_random_walks: int,
        num_neighbors: int,
        weight_column: str = "weights",
    ) -> None:
        there, back = _between(G, ntype, other_type), _between(G, other_type, ntype)
        how = num_traversals, termination_prob, num_random_walks, num_neighbors
        super().__init__(G, *how, [there, back], weight_column)


def _between(g: Graph, source: str, destination: str) -> EdgeType:
    check_graph(g, "PinSAGESampler")
    found = [e for e in g.canonical_etypes if e[0] == source and e[2] == destination]
    if len(found) != 1:
        raise InvalidInput(
            f"from {source!r} to {destination!r} one edge type is needed; found {found} among "
            f"{g.canonical_etypes}. RandomWalkNeighborSampler takes any metapath"
        )
    return found[0]
