"""Stages that sample: negative edges, the neighbors of each layer, and edges to be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils.data import functional_datapipe

from gnnlab import random
from gnnlab.compat.base import BadArgument
from gnnlab.compat.graphbolt.graph import TIME, FusedCSCSamplingGraph, subgraph_of_block
from gnnlab.compat.graphbolt.minibatch import (
    MiniBatch,
    add_reverse_edges,
    seed_type_str_to_ntypes,
    unique_and_compact,
)
from gnnlab.compat.graphbolt.pipes import Stage
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import NeighborSampler as NodeSampler
from gnnlab.dataloading.seeds import Timed
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import NID


class _Drawing(Stage):
    """A stage whose random numbers depend on the mini-batch's key and number alone."""

    _stream: tuple[int, ...] = ()

    def _change(self, minibatch: Any) -> Any:
        if getattr(minibatch, "seeds", None) is None:
            raise BadArgument(f"seeds are needed, in an ItemSet of this name; found {minibatch}")
        task = minibatch.task
        with nullcontext() if task is None else random.stream(*task, *self._stream):
            self._draw(minibatch)
        return minibatch

    def _draw(self, minibatch: Any) -> None:
        raise NotImplementedError


@functional_datapipe("sample_subgraph")
class SubgraphSampler(_Drawing):
    """Base of samplers: it turns seeds into nodes, and fills a mini-batch with what is sampled.

    A class of your own overrides :meth:`sample_subgraphs`. Seeds of shape (N, 2), or more columns,
    are edges: their distinct nodes are sampled for, and ``compacted_seeds`` says where these are.
    With ``timestamp``, a node is distinct for each time; negative pairs have that of their edge.
    """

    _is_timed = True

    def _draw(self, minibatch: MiniBatch) -> None:
        times = getattr(minibatch, "timestamp", None) if self._is_timed else None
        nodes, times, minibatch.compacted_seeds = _nodes_of(minibatch.seeds, times)
        minibatch.input_nodes, minibatch.sampled_subgraphs = self.sample_subgraphs(nodes, times)

    def sample_subgraphs(
        self, seeds: Any, seeds_timestamp: Any = None, seeds_pre_time_window: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the input nodes and the layers, for some nodes (a dict by type if typed)."""
        raise NotImplementedError


def _nodes_of(seeds: Any, times: Any) -> tuple[Any, Any, Any]:
    """Return the nodes of seeds, their times, and for edges where their nodes are among them."""
    is_typed = isinstance(seeds, dict)
    if all(each.dim() == 1 for each in (seeds.values() if is_typed else [seeds])):
        return seeds, times, None
    parts: dict[str, list[torch.Tensor]] = {}
    places: dict[str, list[tuple[str, int]]] = {}  # of each column of the seeds among the parts
    for name, each in (seeds if is_typed else {"": seeds}).items():
        ends = seed_type_str_to_ntypes(name, each.shape[1]) if is_typed else [""]
        for ntype, ids in zip(ends, each.T if is_typed else [each.flatten()], strict=True):
            if times is not None:
                own = times[name] if is_typed else times
                ratio = len(each) // max(len(own), 1)  # negative pairs have the time of their edge
                if len(own) * ratio != len(each):
                    raise BadArgument(f"found {len(own)} timestamps for {len(each)} seeds")
                own = torch.cat([own, own.repeat_interleave(max(ratio - 1, 0))])
                own = own.repeat_interleave(len(ids) // max(len(each), 1))
                ids = torch.stack([ids, own.to(ids.device)], 1)
            of_type = parts.setdefault(ntype, [])
            places.setdefault(name, []).append((ntype, len(of_type)))
            of_type.append(ids)
    nodes, at = unique_and_compact(parts)
    until = None
    if times is not None:
        nodes, until = ({n: x[:, i] for n, x in nodes.items()} for i in (0, 1))
        nodes = {ntype: ids.long() for ntype, ids in nodes.items()}
    if not is_typed:
        return nodes[""], None if until is None else until[""], at[""][0].view(seeds.shape)
    return (
        *(nodes, until),
        {name: torch.stack([at[n][i] for n, i in found], 1) for name, found in places.items()},
    )


@functional_datapipe("sample_neighbor")
class NeighborSampler(SubgraphSampler):
    """Sample neighbors of the seeds, of these neighbors, and so on.

    ``fanouts`` has a number for each layer, first layer first, or a tensor with one for each edge
    type; −1 takes all. ``prob_name`` is an edge attribute with weights. ``deduplicate``,
    ``overlap_fetch``, ``asynchronous`` and others have no effect.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> import gnnlab.compat.graphbolt as gb
    >>> graph = gb.from_dglgraph(dgl.graph(([0, 1, 2], [1, 2, 0])), is_homogeneous=True)
    >>> pipe = gb.ItemSampler(gb.ItemSet(3, names="seeds"), batch_size=2)
    >>> for minibatch in pipe.sample_neighbor(graph, [2, 2]):
    ...     print(minibatch.input_nodes, minibatch.blocks[1].num_edges())
    tensor([0, 1, 2]) 2
    tensor([2, 1, 0]) 1
    """

    is_pure, _is_timed = True, False
    kind: Any = NodeSampler

    def __init__(
        self,
        datapipe: Any,
        graph: FusedCSCSamplingGraph,
        fanouts: Sequence[Any],
        replace: bool = False,
        prob_name: str | None = None,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(datapipe)
        more = {"layer_dependency": layer_dependency, "batch_dependency": batch_dependency}
        self.sampler = graph.sampler(self.kind, fanouts, prob_name, replace, **more)
        self.graph, self.timed = graph, graph.graph()  # made now: workers share it

    def sample_subgraphs(
        self, seeds: Any, seeds_timestamp: Any = None, seeds_pre_time_window: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the input nodes and the layers."""
        g: Graph = self.graph.graph()
        if self._is_timed:
            if seeds_timestamp is None:
                raise BadArgument("each item needs a 'timestamp': name it so in the ItemSet")
            g, seeds = self.timed, Timed(seeds, seeds_timestamp)
        blocks = self.sampler.sample_blocks(g, seeds)[2]
        nodes = {ntype: frame[NID] for ntype, frame in blocks[0].src_frames.items()}
        if self.graph.edge_type_to_id is None:
            (nodes,) = nodes.values()
        return nodes, [subgraph_of_block(self.graph, block) for block in blocks]


@functional_datapipe("sample_layer_neighbor")
class LayerNeighborSampler(NeighborSampler):
    """As :class:`NeighborSampler`, with fewer distinct input nodes: :class:`LaborSampler`."""

    kind = LaborSampler


@functional_datapipe("sample_in_subgraph")
class InSubgraphSampler(NeighborSampler):
    """Take all in-edges of the seeds: one layer."""

    def __init__(self, datapipe: Any, graph: FusedCSCSamplingGraph) -> None:
        super().__init__(datapipe, graph, [-1])


class TemporalNeighborSampler(NeighborSampler):
    """Sample neighbors that are no later than their seed, whose time is in ``timestamp``.

    Times are an attribute of nodes, of edges, or one of each. A node is among the input nodes once
    for each time at which it is seen.
    """

    _is_timed = True

    def __init__(
        self,
        *args: Any,
        node_timestamp_attr_name: str | None = None,
        edge_timestamp_attr_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.timed = self.graph.timed(node_timestamp_attr_name, edge_timestamp_attr_name)
        self.sampler.time = TIME


functional_datapipe("temporal_sample_neighbor")(TemporalNeighborSampler)
functional_datapipe("temporal_sample_layer_neighbor")(TemporalNeighborSampler)


@functional_datapipe("sample_negative")
class NegativeSampler(_Drawing):
    """Base of negative sampling: seeds (N, 2) are followed by pairs that are no edges.

    The mini-batch gets ``labels``, True for edges, and ``indexes``: which edge a pair belongs to.
    A class of your own overrides ``_sample_with_etype``.
    """

    _stream = (1,)

    def __init__(self, datapipe: Any, negative_ratio: int) -> None:
        super().__init__(datapipe)
        if not isinstance(negative_ratio, int) or negative_ratio < 1:
            raise BadArgument(f"negative_ratio is at least 1; found {negative_ratio!r}")
        self.negative_ratio = negative_ratio

    def _draw(self, minibatch: MiniBatch) -> None:
        seeds = minibatch.seeds
        typed = seeds if isinstance(seeds, dict) else {None: seeds}
        found = {etype: self._with_negatives(etype, pairs) for etype, pairs in typed.items()}
        for i, name in enumerate(("seeds", "labels", "indexes")):
            values = {etype: each[i] for etype, each in found.items()}
            setattr(minibatch, name, values if isinstance(seeds, dict) else values[None])

    def _with_negatives(self, etype: Any, pairs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if pairs.dim() != 2 or pairs.shape[1] != 2:
            raise BadArgument(f"seeds are edges of shape (N, 2); found {tuple(pairs.shape)}")
        others = self._sample_with_etype(pairs, etype)
        own = torch.arange(len(pairs), device=pairs.device)
        of_others = torch.repeat_interleave(own, len(others) // max(len(pairs), 1))
        labels = torch.arange(len(pairs) + len(others), device=pairs.device) < len(pairs)
        return torch.cat([pairs, others]), labels, torch.cat([own, of_others])

    def _sample_with_etype(self, node_pairs: torch.Tensor, etype: Any = None) -> torch.Tensor:
        """Return ``negative_ratio`` pairs for each of ``node_pairs``, one after the other."""
        raise NotImplementedError


@functional_datapipe("sample_uniform_negative")
class UniformNegativeSampler(NegativeSampler):
    """Pairs of the source of each edge with targets at random."""

    is_pure = True

    def __init__(self, datapipe: Any, graph: FusedCSCSamplingGraph, negative_ratio: int) -> None:
        super().__init__(datapipe, negative_ratio)
        self.graph = graph

    def _sample_with_etype(self, node_pairs: torch.Tensor, etype: Any = None) -> torch.Tensor:
        return self.graph.sample_negative_edges_uniform(etype, node_pairs, self.negative_ratio)


def exclude_seed_edges(
    minibatch: MiniBatch,
    include_reverse_edges: bool = False,
    reverse_etypes_mapping: Mapping[str, str] | None = None,
    **options: Any,
) -> MiniBatch:
    """Leave the seeds, edges that the model has to predict, out of all sampled layers.

    With ``include_reverse_edges``, also the reverse edges, of the types that the mapping names.
    """
    edges = minibatch.seeds
    if include_reverse_edges:
        edges = add_reverse_edges(edges, reverse_etypes_mapping)
    layers = minibatch.sampled_subgraphs or []
    minibatch.sampled_subgraphs = [layer.exclude_edges(edges) for layer in layers]
    return minibatch


@functional_datapipe("exclude_seed_edges")
class SeedEdgesExcluder(Stage):
    """A stage of :func:`exclude_seed_edges`."""

    is_pure = True

    def __init__(self, datapipe: Any, *args: Any, **options: Any) -> None:
        super().__init__(datapipe)
        self.args, self.options = args, options

    def _change(self, minibatch: MiniBatch) -> MiniBatch:
        return exclude_seed_edges(minibatch, *self.args, **self.options)
