"""Negative samplers: draw pairs of nodes without an edge, for link prediction.

A negative sampler is any callable that takes a graph and the edges of a mini-batch and returns
pairs of nodes. The samplers of this module draw ``k`` pairs per edge. Pairs are a function of the
seed, the epoch, the batch and the edge's ID, so an edge gets the same pairs in every thread, worker
and rank, whatever other edges are in the batch.

References
----------
DGL user guide, chapter 6.3, "Training GNN for Link Prediction with Neighborhood Sampling".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_edges, read_ids
from gnnlab.graph.names import EdgeType, describe
from gnnlab.graph.relation import Relation, narrow
from gnnlab.random import fold, next_key
from gnnlab.sampling.negative import non_edges

__all__ = [
    "DegreePower",
    "GlobalUniform",
    "NegativeSampler",
    "PerSourceUniform",
    "Uniform",
    "graph_of_pairs",
]

_Pairs = tuple[torch.Tensor, torch.Tensor]


class NegativeSampler(ABC):
    """Base class of samplers that draw ``k`` pairs per edge; a subclass defines :meth:`draw`.

    Parameters
    ----------
    k : int
        Pairs per edge.
    """

    def __init__(self, k: int) -> None:
        self.k = whole_number(k, "k, the number of negative pairs per edge,", 1)

    def __call__(self, g: Graph, eids: Any) -> Any:
        """Draw pairs for edges.

        Parameters
        ----------
        g : Graph
        eids : IDs, or dict of IDs by edge type
            The edges, shape (B,).

        Returns
        -------
        (src, dst) or dict of (src, dst) by canonical edge type
            Tensors of shape (k · B,), edge by edge, in the graph's ID dtype.
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

        Parameters
        ----------
        g : Graph
        etype : tuple of str
        eids : torch.Tensor
            Shape (B,), in range.
        key : int
            64-bit seed of all random numbers of this call.
        """

    def _repeat_sources(self, g: Graph, etype: EdgeType, eids: torch.Tensor) -> torch.Tensor:
        return g.find_edges(eids, etype)[0].repeat_interleave(self.k)

    def _bits(self, eids: torch.Tensor, key: int) -> torch.Tensor:
        """64 random bits for each pair, shape (k · B,), int64."""
        rng = kernels.rng_torch
        counter = torch.arange(self.k, device=eids.device).repeat(len(eids))
        return rng.draw(rng.streams(key, eids).repeat_interleave(self.k), counter)


class Uniform(NegativeSampler):
    """Keep the source of each edge and draw k destinations uniformly.

    A drawn pair can be an edge; in a large sparse graph that is rare and harmless.
    ``PerSourceUniform`` is another name of this class.

    Parameters
    ----------
    k : int
        Pairs per edge.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> src, dst = dgl.dataloading.negative_sampler.Uniform(2)(g, [2, 0])
    >>> src, dst.shape
    (tensor([2, 2, 0, 0]), torch.Size([4]))
    """

    pure = True

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        dst = kernels.rng_torch.below(self._bits(eids, key), g.num_nodes(etype[2]))
        return self._repeat_sources(g, etype, eids), dst


PerSourceUniform = Uniform


class DegreePower(NegativeSampler):
    """Keep the source of each edge and draw k destinations in proportion to in-degree ** power.

    Nodes with many edges should also appear in many negative pairs; otherwise a model learns that
    an edge to a popular node is always likely. A power below 1 weakens the effect of the degree.

    Parameters
    ----------
    k : int
        Pairs per edge.
    power : float
        0 draws uniformly, 1 in proportion to in-degree.

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

    def __init__(self, k: int, power: float = 0.75) -> None:
        super().__init__(k)
        if power < 0:
            raise InvalidInput(
                f"power must not be negative (the weight of nodes without edges would be "
                f"infinite); found {power}"
            )
        self.power = power
        self._sums: dict[EdgeType, tuple[Any, torch.Tensor]] = {}

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        sums = self._running_sums(g, etype)
        point = kernels.rng_torch.uniform(self._bits(eids, key)) * sums[-1]
        dst = torch.searchsorted(sums, point, right=True).clamp_(max=len(sums) - 1)
        return self._repeat_sources(g, etype, eids), dst

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

    Parameters
    ----------
    k : int
        Pairs per edge.
    exclude_self_loops : bool
        Never pair a node with itself.
    replace : bool
        Whether a pair may appear more than once in a batch. If not, the pairs of an edge depend on
        those of earlier edges of the batch.

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
        self.exclude_self_loops = exclude_self_loops
        self.replace = replace

    def draw(self, g: Graph, etype: EdgeType, eids: torch.Tensor, key: int) -> _Pairs:
        """Draw pairs for edges of one type."""
        if not isinstance(g, Graph):
            raise InvalidInput(
                "GlobalUniform needs all edges to look pairs up, and no machine has them; on a "
                "DistGraph use Uniform or DegreePower"
            )
        no_loops = self.exclude_self_loops and etype[0] == etype[2]
        return non_edges(g.relations[etype], eids, self.k, key, no_loops, self.replace)


def graph_of_pairs(g: Graph, pairs: Any, etypes: list[EdgeType]) -> Graph:
    """Make a graph on all nodes of ``g`` whose edges are the pairs of a negative sampler.

    ``etypes`` are the edge types of the mini-batch.
    """
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
