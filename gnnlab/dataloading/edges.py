"""Mini-batches of edges, for edge classification and link prediction.

The seeds are edges. A mini-batch holds a small graph of these edges, for link prediction another
one of negative pairs on the same nodes, and the blocks that compute those nodes. A model computes
node representations from the blocks and scores both graphs with ``apply_edges``.

Representations must not be computed from the edge that is to be predicted, nor from its reverse
edge. ``exclude`` selects the edges that the blocks leave out.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.dataloading.exclude import Exclusion
from gnnlab.dataloading.features import set_edge_lazy_features
from gnnlab.dataloading.loader import DataLoader
from gnnlab.dataloading.negative_sampler import graph_of_pairs
from gnnlab.dataloading.sampler import (
    BlockSampler,
    Sampler,
    check_sampler,
    is_pure,
    simplify,
    to_device,
)
from gnnlab.dataloading.temporal import timed_pairs
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.compact import compact_graphs
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_edges
from gnnlab.graph.names import EID, NID, EdgeType
from gnnlab.graph.temporal import read_times
from gnnlab.system import accelerators


class CannotExclude(InvalidInput, TypeError):
    """A sampler of nodes has no argument for the edges to leave out."""


class EdgePredictionSampler(Sampler):
    """Make mini-batches of edges with a sampler of nodes; see :func:`as_edge_prediction_sampler`.

    Parameters
    ----------
    g_sampling : Graph, optional
        Sample the blocks on this graph, which has the same nodes but edges (and edge IDs) of its
        own, for instance the training edges alone.
    """

    def __init__(
        self,
        sampler: Any,
        exclude: Any = None,
        reverse_eids: Any = None,
        reverse_etypes: Any = None,
        negative_sampler: Any = None,
        prefetch_labels: Any = None,
        *,
        g_sampling: Graph | None = None,
    ) -> None:
        _check_sampler(sampler, exclude)
        if isinstance(negative_sampler, type) or not (
            negative_sampler is None or callable(negative_sampler)
        ):
            raise InvalidInput(
                "negative_sampler must be callable as negative_sampler(g, eids), for instance "
                f"gnnlab.dataloading.negative_sampler.Uniform(5); found {negative_sampler!r}"
            )
        if g_sampling is not None and isinstance(exclude, str):
            raise InvalidInput(
                f"exclude={exclude!r} names edges of g, but blocks are sampled on g_sampling, "
                "whose edges have other IDs; build g_sampling without the seed edges, or leave it "
                "out"
            )
        self.sampler = sampler
        self.exclusion = Exclusion(exclude, reverse_eids, reverse_etypes)
        self.negative_sampler, self.g_sampling = negative_sampler, g_sampling
        self.prefetch_labels = prefetch_labels or []

    @property
    def pure(self) -> bool:
        """Whether a loader may sample ahead in another thread: no part is the user's code."""
        parts = [self.sampler, *filter(None, [self.negative_sampler])]
        return not callable(self.exclusion.mode) and all(map(is_pure, parts))

    def sample(self, g: Graph, seed_edges: Any) -> Any:
        """Make a mini-batch of edges, IDs or a dict of IDs by edge type.

        Returns
        -------
        input_nodes : torch.Tensor or dict
            Sources of the first block, whose features the model reads.
        pair_graph : Graph
            The seed edges in the order given, and their endpoints. ``edata[EID]`` and
            ``ndata[NID]`` hold original IDs; its nodes are the last block's destinations.
        neg_graph : Graph
            The negative pairs, on the same nodes. Only with a negative sampler.
        blocks : list of Block
        """
        seeds = read_edges(g, seed_edges, distinct=True)
        given = seeds if isinstance(seed_edges, dict) else simplify(seeds)
        graphs = [g.edge_subgraph(seeds, relabel_nodes=False)]
        if self.negative_sampler is not None:
            graphs.append(graph_of_pairs(g, self.negative_sampler(g, given), list(seeds)))
        time = getattr(self.sampler, "time", None)
        if time is None:
            # Without features: a loader attaches them by ID.
            graphs = compact_graphs(graphs, copy_ndata=False, copy_edata=False)
            nodes: Any = simplify({t: f[NID] for t, f in graphs[0].node_frames().items()})
        else:
            graphs, nodes = timed_pairs(g, graphs, _edge_times(g, seeds, time))
        pair_graph = graphs[0]
        for etype, frame in pair_graph.edge_frames.items():
            frame[EID] = seeds.get(etype, torch.empty(0, device=g.device)).to(g.idtype)
        set_edge_lazy_features(pair_graph, self.prefetch_labels)
        excluded = self.exclusion(g, given)
        extra = () if excluded is None else (excluded,)
        sampled = self.sampler.sample(self.g_sampling or g, nodes, *extra)
        device = getattr(self.sampler, "output_device", None)
        if device is not None:
            graphs = to_device(graphs, accelerators.read_device(device))
        return sampled[0], *graphs, sampled[-1]


def as_edge_prediction_sampler(
    sampler: Any,
    exclude: Any = None,
    reverse_eids: Any = None,
    reverse_etypes: Any = None,
    negative_sampler: Any = None,
    prefetch_labels: Any = None,
) -> EdgePredictionSampler:
    """Make a sampler of edges from one of nodes, for a :class:`DataLoader` over edge IDs.

    Parameters
    ----------
    sampler : Sampler
        Samples the blocks for the endpoints of the edges, for instance a :class:`NeighborSampler`.
    exclude : {None, "self", "reverse_id", "reverse_types"} or callable
        Which edges the blocks leave out:

        * None: none;
        * "self": the edges of the mini-batch;
        * "reverse_id": these and their reverse edges, where edge ``e`` has the reverse edge
          ``reverse_eids[e]`` of the same type (a tensor, or a dict of tensors by edge type);
        * "reverse_types": these and their reverse edges, where edge ``e`` of type ``t`` has the
          reverse edge ``e`` of type ``reverse_etypes[t]`` (types that are no key have none);
        * a callable takes the mini-batch's edges (a tensor, or a dict of tensors by canonical edge
          type) and returns all edges to leave out, in the same form.
    negative_sampler : callable, optional
        ``negative_sampler(g, eids)`` returns pairs (src, dst), or a dict of them by edge type; see
        :mod:`gnnlab.dataloading.negative_sampler`. Without one there is no ``neg_graph``.
    prefetch_labels : list of str or dict, optional
        Features of the mini-batch's edges that a loader fetches ahead.

    Returns
    -------
    EdgePredictionSampler
        Mini-batches ``(input_nodes, pair_graph, neg_graph, blocks)``, or without a negative sampler
        ``(input_nodes, pair_graph, blocks)``.

    Raises
    ------
    TypeError
        ``exclude`` is given and ``sampler.sample`` has no third argument.

    Examples
    --------
    Edges 0 to 3 form a ring; edge e + 4 is the reverse of edge e.

    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]))
    >>> sampler = dgl.dataloading.as_edge_prediction_sampler(
    ...     dgl.dataloading.NeighborSampler([-1]),
    ...     exclude="reverse_id",
    ...     reverse_eids=(torch.arange(8) + 4) % 8,
    ...     negative_sampler=dgl.dataloading.negative_sampler.Uniform(2),
    ... )
    >>> input_nodes, pair_graph, neg_graph, blocks = sampler.sample(g, [0])
    >>> pair_graph.num_edges(), neg_graph.num_edges()
    (1, 2)
    >>> 0 in blocks[0].edata[dgl.EID], 4 in blocks[0].edata[dgl.EID]
    (False, False)
    """
    return EdgePredictionSampler(
        sampler, exclude, reverse_eids, reverse_etypes, negative_sampler, prefetch_labels
    )


class EdgeDataLoader(DataLoader):
    """:class:`DataLoader` over edges, with the older order of arguments.

    Parameters
    ----------
    eids : tensor, numpy array, list, or dict of them by edge type
        Seed edges.
    block_sampler : Sampler
        Samples the blocks for the endpoints of the edges. ``graph_sampler`` is its newer name.
    g_sampling : Graph, optional
        Sample the blocks on this graph instead of ``g``: the same nodes, edges of its own.
    exclude, reverse_eids, reverse_etypes, negative_sampler
        As for :func:`as_edge_prediction_sampler`.
    device, **kwargs
        As for :class:`DataLoader`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g, sampler = dgl.rand_graph(100, 1000), dgl.dataloading.MultiLayerNeighborSampler([4, 4])
    >>> draw = dgl.dataloading.negative_sampler.Uniform(5)
    >>> loader = dgl.dataloading.EdgeDataLoader(
    ...     g, range(1000), sampler, exclude="self", negative_sampler=draw, batch_size=500
    ... )
    >>> for input_nodes, pair_graph, neg_graph, blocks in loader:
    ...     print(pair_graph.num_edges(), neg_graph.num_edges())
    500 2500
    500 2500
    """

    def __init__(
        self,
        g: Graph,
        eids: Any,
        block_sampler: Any = None,
        device: Any = None,
        g_sampling: Graph | None = None,
        exclude: Any = None,
        reverse_eids: Any = None,
        reverse_etypes: Any = None,
        negative_sampler: Any = None,
        *,
        graph_sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        self.g_sampling = g if g_sampling is None else g_sampling
        blocks = block_sampler if graph_sampler is None else graph_sampler
        how = exclude, reverse_eids, reverse_etypes, negative_sampler
        apart = None if g_sampling is g else g_sampling
        sampler = EdgePredictionSampler(blocks, *how, g_sampling=apart)
        super().__init__(g, eids, sampler, device, **kwargs)

    def _sources(self) -> list[Any]:
        """Return the graph of the seeds, and the one of the blocks if it is another."""
        return [self.graph, *([] if self.g_sampling is self.graph else [self.g_sampling])]


def _edge_times(g: Any, seeds: Mapping[EdgeType, torch.Tensor], time: str) -> dict[EdgeType, Any]:
    for etype in seeds:
        if time not in g.edge_frames[etype]:
            raise NotFound(f"edges {etype} have no feature {time!r}, the time of a pair")
    return {
        etype: read_times(g.edge_frames[etype][time][ids.long()], len(ids), "times of edges")
        for etype, ids in seeds.items()
    }


def _check_sampler(sampler: Any, exclude: Any) -> None:
    check_sampler(sampler, "sampler", "sample(g, nodes, exclude_eids=None)")
    methods = [sampler.sample]
    if exclude is not None and isinstance(sampler, BlockSampler):
        methods.append(sampler.sample_blocks)
    for method in methods:
        try:
            inspect.signature(method).bind("g", "nodes", "edges")
        except TypeError:
            raise CannotExclude(
                f"{type(sampler).__name__}.{method.__name__}{inspect.signature(method)} cannot "
                "leave out the edges that are to be predicted; give it a third argument "
                "exclude_eids=None and leave those edges out"
            ) from None
