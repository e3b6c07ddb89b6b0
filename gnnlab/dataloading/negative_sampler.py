"""Negative samplers: draw pairs of nodes without an edge, for link prediction.

A negative sampler is any callable that takes a graph and the edges of a mini-batch and returns
pairs of nodes. The samplers of this module draw ``k`` pairs per edge. Pairs are a function of the
seed, the epoch, the batch and the edge's ID, so an edge gets the same pairs in every thread, worker
and rank, whatever other edges are in the batch (but for :class:`InBatch`, which pairs them).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.dataloading.sampler import is_pure
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers, edge_dict, read_edges, read_ids
from gnnlab.graph.names import EdgeType, describe
from gnnlab.graph.relation import Relation, check_ids, narrow
from gnnlab.graph.temporal import as_limits, read_times
from gnnlab.random import fold, next_key
from gnnlab.sampling.negative import non_edges

__all__ = [
    "DegreePower",
    "Fixed",
    "GlobalUniform",
    "Hard",
    "InBatch",
    "NegativeSampler",
    "PerSourceUniform",
    "Uniform",
    "graph_of_pairs",
]

_Pairs = tuple[torch.Tensor, torch.Tensor]
_ATTEMPTS = 64


class NegativeSampler(ABC):
    """Base class of samplers that draw ``k`` pairs per edge; a subclass defines :meth:`draw`."""

    def __init__(self, k: int) -> None:
        self.k = whole_number(k, "k, the number of negative pairs per edge,", 1)

    def __call__(self, g: Graph, eids: Any) -> Any:
        """Draw pairs for B edges, given by IDs or by a dict of IDs by edge type.

        Returns ``(src, dst)``, tensors of shape (k · B,), edge by edge, in the graph's ID dtype; or
        a dict of such pairs by canonical edge type.
        """
        key = next_key()
        found = {}
        for etype, ids in read_edges(g, eids).items():
            src, dst = self.draw(g, etype, ids, fold(key, g.get_etype_id(etype)))
            found[etype] = src.to(g.idtype), dst.to(g.idtype)
        return found if isinstance(eids, dict) else next(iter(found.values()))

    @abstractmethod
    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type.

        The IDs have shape (B,) and are in range; ``key`` is the 64-bit seed of the random numbers.
        """


class _OfSource(NegativeSampler):
    """Keep the source of each edge; subclasses choose the destination by 64 random bits."""

    def __init__(self, k: int, exclude_positives: bool = False) -> None:
        super().__init__(k)
        self.exclude_positives = exclude_positives

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        rng, size = kernels.rng_torch, g.num_nodes(etype[2])
        ends = g.find_edges(eids, etype)
        choose = self._chooser(g, etype, ends[1], eids)
        row = torch.arange(len(eids), device=eids.device).repeat_interleave(self.k)
        src, streams = ends[0].long()[row], rng.streams(key, eids)[row]
        counter = torch.arange(self.k, device=eids.device).repeat(len(eids))
        dst = choose(rng.draw(streams, counter), row)
        if self.exclude_positives:
            known = known_pairs(g, ends[0], etype)
            again = torch.arange(len(dst), device=dst.device)
            for attempt in range(1, _ATTEMPTS + 1):
                again = again[torch.isin(src[again] * size + dst[again], known)]
                if not len(again):
                    break
                bits = rng.draw(streams[again], counter[again] + attempt * self.k)
                dst[again] = choose(bits, row[again])
        return src, dst

    @abstractmethod
    def _chooser(self, g: Graph, etype: EdgeType, ends: torch.Tensor, eids: torch.Tensor) -> Any:
        """Return a function of random bits and positions in ``ends``, the destinations of edges."""


class Uniform(_OfSource):
    """Keep the source of each edge and draw k destinations uniformly.

    A drawn pair can be an edge; in a large sparse graph that is rare and harmless.
    ``PerSourceUniform`` is another name of this class.

    Parameters
    ----------
    exclude_positives : bool
        Draw a pair that is an edge again, at most 64 times: where edges lead to a share p of what
        may be drawn, p ** 65 of the pairs remain edges. On a DistGraph, owners send out-edges.
    time : str, optional
        Name of the feature with the times of edges and of their destinations: draw only nodes that
        are not later than the edge. If there is none, the earliest node is drawn.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> src, dst = dgl.dataloading.negative_sampler.Uniform(2)(g, [2, 0])
    >>> src, dst.shape
    (tensor([2, 2, 0, 0]), torch.Size([4]))
    """

    pure = True

    def __init__(self, k: int, exclude_positives: bool = False, time: str | None = None) -> None:
        super().__init__(k, exclude_positives)
        self.time = time
        self._sorted: dict[EdgeType, tuple[Any, int, Any]] = {}

    def _chooser(self, g: Graph, etype: EdgeType, ends: torch.Tensor, eids: torch.Tensor) -> Any:
        below = kernels.rng_torch.below
        if self.time is None:
            return lambda bits, row: below(bits, g.num_nodes(etype[2]))
        given = g.node_frames()[etype[2]][self.time]
        version = getattr(given, "_version", 0)
        known = self._sorted.get(etype)
        if known is None or known[0] is not given or known[1] != version:
            times = read_times(given[:], g.num_nodes(etype[2]), "times of nodes")
            known = self._sorted[etype] = given, version, torch.sort(times, stable=True)
        times, order = known[2]
        until = g.edge_frames[etype][self.time][eids.long()]
        until = as_limits(read_times(until, len(eids), "times of edges"), times.dtype)
        count = torch.searchsorted(times, until, right=True).clamp(min=1)
        return lambda bits, row: order[below(bits, count[row])]


PerSourceUniform = Uniform


class DegreePower(_OfSource):
    """Keep the source of each edge and draw k destinations in proportion to in-degree ** power.

    Nodes with many edges should also appear in many negative pairs; otherwise a model learns that
    an edge to a popular node is always likely. A power below 1 weakens the effect of the degree.

    Parameters
    ----------
    power : float
        0 draws uniformly, 1 in proportion to in-degree.
    exclude_positives : bool
        As for :class:`Uniform`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 1, 0]))  # in-degrees 1, 2, 0
    >>> src, dst = dgl.dataloading.negative_sampler.DegreePower(100)(g, [0])
    >>> sorted(set(dst.tolist()))
    [0, 1]

    References
    ----------
    Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality",
    NeurIPS 2013, where the power 0.75 comes from.
    """

    pure = True

    def __init__(self, k: int, power: float = 0.75, exclude_positives: bool = False) -> None:
        super().__init__(k, exclude_positives)
        if power < 0:
            raise InvalidInput(
                f"power must not be negative (the weight of nodes without edges would be "
                f"infinite); found {power}"
            )
        self.power = power
        self._sums: dict[EdgeType, tuple[Any, torch.Tensor]] = {}

    def _chooser(self, g: Graph, etype: EdgeType, ends: torch.Tensor, eids: torch.Tensor) -> Any:
        sums = self._running_sums(g, etype)

        def choose(bits: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            point = kernels.rng_torch.uniform(bits) * sums[-1]
            return torch.searchsorted(sums, point, right=True).clamp_(max=len(sums) - 1)

        return choose

    def _running_sums(self, g: Graph, etype: EdgeType) -> torch.Tensor:
        """Return cumulative weights of the nodes, (N,), float64; cached for the last graph."""
        structure = g.relations[etype] if isinstance(g, Graph) else g
        known, sums = self._sums.get(etype, (None, None))
        if known is not structure or sums is None:
            sums = torch.cumsum(g.in_degrees(etype=etype).double() ** self.power, 0)
            self._sums[etype] = structure, sums
        return sums


class GlobalUniform(NegativeSampler):
    """Draw k pairs per edge from all pairs of nodes that are not joined by an edge.

    Fewer are returned if the graph is so dense or so small that not enough are found.

    With ``exclude_self_loops`` it never pairs a node with itself. Without ``replace``, a pair
    appears at most once in a batch, and the pairs of an edge depend on those of earlier edges.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> src, dst = dgl.dataloading.negative_sampler.GlobalUniform(1)(g, [0, 1, 2])
    >>> g.has_edges_between(src, dst)
    tensor([False, False, False])
    """

    pure = True

    def __init__(self, k: int, exclude_self_loops: bool = True, replace: bool = False) -> None:
        super().__init__(k)
        self.exclude_self_loops, self.replace = exclude_self_loops, replace

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        if not isinstance(g, Graph):
            raise InvalidInput(
                "GlobalUniform needs all edges to look pairs up, and no machine has them; on a "
                "DistGraph use Uniform or DegreePower"
            )
        no_loops = self.exclude_self_loops and etype[0] == etype[2]
        return non_edges(g.relations[etype], eids, self.k, key, no_loops, self.replace)


class InBatch(_OfSource):
    """Keep the source of each edge and draw k destinations of the batch's other edges.

    No more nodes need to be sampled or fetched, as in DGL-KE. A batch of one edge has no pairs.
    ``exclude_positives`` is as for :class:`Uniform`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [3, 4, 5]))
    >>> dgl.dataloading.negative_sampler.InBatch(2)(g, [0, 2])
    (tensor([0, 0, 2, 2]), tensor([5, 5, 3, 3]))
    """

    pure = True

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        return super().draw(g, etype, eids if len(eids) > 1 else eids[:0], key)

    def _chooser(self, g: Graph, etype: EdgeType, ends: torch.Tensor, eids: torch.Tensor) -> Any:
        below, batch = kernels.rng_torch.below, max(len(ends), 1)
        return lambda bits, row: ends[(row + 1 + below(bits, batch - 1)) % batch].long()


class Fixed(NegativeSampler):
    """Keep the source of each edge and take k destinations from a table.

    Parameters
    ----------
    k : int
        Pairs per edge: the first k columns.
    negatives : tensor or DistTensor of shape (E, M), str, or dict of them by edge type
        Destinations by edge ID, or the name of an edge feature; IDs of ``g``, on a DistGraph too.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> dgl.dataloading.negative_sampler.Fixed(2, [[2, 2], [0, 1], [1, 2]])(g, [2, 0])
    (tensor([2, 2, 0, 0]), tensor([1, 2, 2, 2]))
    """

    pure = True

    def __init__(self, k: int, negatives: Any) -> None:
        super().__init__(k)
        self.negatives = negatives

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Return the pairs of edges of one type."""
        dst = _rows_of(self.negatives, g, etype, eids, self.k)[:, : self.k].flatten()
        check_ids(dst, g.num_nodes(etype[2]), "negative")
        return g.find_edges(eids, etype)[0].repeat_interleave(self.k), dst


class Hard(NegativeSampler):
    """Replace some pairs of another sampler by pairs with hard negatives of the edge.

    Parameters
    ----------
    sampler : NegativeSampler
        Draws k pairs per edge.
    negatives : tensor or DistTensor of shape (E, M), str, or dict of them by edge type
        As for :class:`Fixed`; −1 for none.
    num_hard : int, optional
        Pairs to replace, k // 2 by default, by different entries of the edge's row. Where there are
        fewer, the sampler's pairs stay.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab.dataloading.negative_sampler import Hard, Uniform
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]), num_nodes=9)
    >>> src, dst = Hard(Uniform(4), [[7, 8], [6, -1], [-1, -1]])(g, [0, 1])
    >>> sorted(dst[:2].tolist()), int(dst[4])
    ([7, 8], 6)
    """

    def __init__(self, sampler: NegativeSampler, negatives: Any, num_hard: Any = None) -> None:
        super().__init__(sampler.k)
        self.sampler, self.negatives, self.pure = sampler, negatives, is_pure(sampler)
        self.num_hard = self.k // 2 if num_hard is None else whole_number(num_hard, "num_hard")

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        src, dst = (ends.long() for ends in self.sampler.draw(g, etype, eids, key))
        if len(dst) != self.k * len(eids) or self.num_hard > self.k:
            drawn = f"found {len(dst)} of {len(eids)} edges"
            raise InvalidInput(f"num_hard={self.num_hard} needs k={self.k} pairs per edge; {drawn}")
        rng, rows = kernels.rng_torch, _rows_of(self.negatives, g, etype, eids)
        check_ids(rows[rows != -1], g.num_nodes(etype[2]), "negative")
        columns = torch.arange(rows.shape[1], device=rows.device)
        bits = rng.draw(rng.streams(fold(key, 1), eids)[:, None], columns)
        bits[rows < 0] = torch.iinfo(torch.int64).max  # these come last
        hard = rows.gather(1, torch.sort(bits, stable=True)[1][:, : self.num_hard])
        place = torch.arange(len(dst), device=dst.device).view(-1, self.k)[:, : hard.shape[1]]
        own = g.find_edges(eids, etype)[0].long()[:, None].expand_as(hard)
        place, own, hard = (each[hard >= 0] for each in (place, own, hard))
        return src.index_copy(0, place, own), dst.index_copy(0, place, hard)


def _rows_of(
    tables: Any, g: Graph, etype: EdgeType, eids: torch.Tensor, least: int = 0
) -> torch.Tensor:
    """Return the rows of a table of negatives for some edges, shape (B, M), int64."""
    table = edge_dict(g, tables)[etype] if isinstance(tables, Mapping) else tables
    table = g.edges[etype].data[table] if isinstance(table, str) else table
    table = table if hasattr(table, "part_policy") else as_integers(table, "negatives")
    shape, num_edges = tuple(table.shape), g.num_edges(etype)
    if len(shape) != 2 or shape[0] != num_edges or shape[1] < least:
        raise InvalidInput(f"negatives of {etype}: ({num_edges}, ≥ {least}) rows; found {shape}")
    rows: torch.Tensor = table[eids.to(getattr(table, "device", eids.device)).long()]
    return rows.to(eids.device, torch.int64)


def known_pairs(g: Any, nodes: torch.Tensor, etype: EdgeType, inward: bool = False) -> torch.Tensor:
    """Return ``u * N + v`` of all edges from some nodes u to one of N nodes v, ascending, distinct.

    If ``inward``, of all edges to some nodes u from one of N nodes v. ``g`` may be a DistGraph.
    """
    cut = g.in_subgraph if inward else g.out_subgraph
    end, other = (2, 0) if inward else (0, 2)
    ends = cut({etype[end]: torch.unique(nodes)}).edges(etype=etype)
    return torch.unique(ends[end // 2].long() * g.num_nodes(etype[other]) + ends[other // 2])


def graph_of_pairs(g: Graph, pairs: Any, etypes: list[EdgeType]) -> Graph:
    """Make a graph on all nodes of ``g`` of a negative sampler's pairs for edges of some types."""
    if not isinstance(pairs, Mapping):
        if len(etypes) != 1:
            raise InvalidInput(
                "the mini-batch has edges of several types, so the negative sampler must return a "
                f"dict edge type → (src, dst), with {describe(etypes)}"
            )
        pairs = {etypes[0]: pairs}
    given = {g.to_canonical_etype(etype): both for etype, both in pairs.items()}
    relations = {}
    for etype in g.canonical_etypes:
        sizes = g.num_nodes(etype[0]), g.num_nodes(etype[2])
        endpoints = _read_pairs(given.get(etype, ([], [])), sizes, etype, g.device)
        relations[etype] = Relation(*sizes, endpoints)
    return g.derive(relations)


def _read_pairs(
    pairs: Any, sizes: tuple[int, int], etype: EdgeType, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    try:
        src, dst = pairs
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the negative sampler must return (src, dst) for edge type {etype}; found "
            f"{type(pairs).__name__}"
        ) from None
    src, dst = (
        narrow(read_ids(ids, bound, "node", device), bound)
        for ids, bound in zip((src, dst), sizes, strict=True)
    )
    if len(src) != len(dst):
        raise InvalidInput(
            f"the negative sampler returned {len(src)} sources and {len(dst)} destinations for "
            f"edge type {etype}; they must pair up"
        )
    return src, dst
