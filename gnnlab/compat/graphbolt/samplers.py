"""Stages that sample: negative edges, the neighbors of each layer, and edges to be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils.data import functional_datapipe

from gnnlab import random
from gnnlab.compat.graphbolt.graph import FusedCSCSamplingGraph, subgraph_of_block
from gnnlab.compat.graphbolt.minibatch import (
    MiniBatch,
    add_reverse_edges,
    etype_str_to_tuple,
    unique_and_compact,
)
from gnnlab.compat.graphbolt.pipes import Stage
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import NeighborSampler as NodeSampler
from gnnlab.errors import InvalidInput, whole_number

__all__ = ["InSubgraphSampler", "LayerNeighborSampler", "NegativeSampler", "NeighborSampler"]
__all__ += ["SeedEdgesExcluder", "SubgraphSampler", "UniformNegativeSampler", "exclude_seed_edges"]


class _Drawing(Stage):
    """A stage whose random numbers depend on the mini-batch's key and number alone."""

    _part = 0

    def change(self, minibatch: Any) -> Any:
        task = getattr(minibatch, "_task", None)
        with nullcontext() if task is None else random.stream(*task, *self._stream):
            return self.draw(minibatch)

    _stream: tuple[int, ...] = ()

    def draw(self, minibatch: Any) -> Any:
        """Change the mini-batch; random numbers are those of its stream."""
        raise NotImplementedError


@functional_datapipe("sample_subgraph")
class SubgraphSampler(_Drawing):
    """Base of samplers: it turns seeds into nodes, and fills a mini-batch with what is sampled.

    A class of your own overrides :meth:`sample_subgraphs`. Seeds of shape (N, 2), or more columns,
    are edges: their distinct nodes are sampled for, and ``compacted_seeds`` says where these are.
    """

    def draw(self, minibatch: MiniBatch) -> MiniBatch:
        """Fill a mini-batch."""
        seeds, minibatch.compacted_seeds = _nodes_of(minibatch.seeds)
        times = getattr(minibatch, "timestamp", None)
        found = self.sample_subgraphs(seeds, times)
        minibatch.input_nodes, minibatch.sampled_subgraphs = found
        return minibatch

    def sample_subgraphs(
        self, seeds: Any, seeds_timestamp: Any = None, seeds_pre_time_window: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the input nodes and the layers, for some nodes (a dict by type if typed)."""
        raise NotImplementedError


def _nodes_of(seeds: Any) -> tuple[Any, Any]:
    """Return the distinct nodes of seeds; for edges, also where their nodes are among them."""
    if not isinstance(seeds, dict):
        if seeds.dim() == 1:
            return seeds, None
        nodes, (at,) = unique_and_compact([seeds.flatten()])
        return nodes, at.view(seeds.shape)
    if all(each.dim() == 1 for each in seeds.values()):
        return seeds, None
    parts: dict[str, list[torch.Tensor]] = {}
    places = {}  # of each column of the seeds among the parts
    for name, each in seeds.items():
        ends = _types_of_columns(name, each.shape[1])
        for column, ntype in enumerate(ends):
            places[name, column] = ntype, len(parts.setdefault(ntype, []))
            parts[ntype].append(each[:, column])
    nodes, numbers = unique_and_compact(parts)
    compacted = {}
    for name, each in seeds.items():
        columns = [places[name, column] for column in range(each.shape[1])]
        compacted[name] = torch.stack([numbers[ntype][at] for ntype, at in columns], 1)
    return nodes, compacted


def _types_of_columns(name: str, width: int) -> list[str]:
    if width == 2 and name.count(":") == 2:
        source, _, target = etype_str_to_tuple(name)
        return [source, target]
    names = name.split(":")
    if len(names) != width:
        raise InvalidInput(f"seeds of type {name!r} must have {len(names)} columns; found {width}")
    return names


class _LayerSampler(SubgraphSampler):
    """Samples with one of the library's samplers of blocks."""

    def __init__(self, datapipe: Any, graph: FusedCSCSamplingGraph, sampler: NodeSampler) -> None:
        super().__init__(datapipe)
        self.graph, self.sampler = graph, sampler
        graph.graph()  # made now: workers share it

    def sample_subgraphs(
        self, seeds: Any, seeds_timestamp: Any = None, seeds_pre_time_window: Any = None
    ) -> tuple[Any, list[Any]]:
        """Return the input nodes and the layers."""
        blocks = self.sampler.sample_blocks(self.graph.graph(), seeds)[2]
        layers = [subgraph_of_block(self.graph, block) for block in blocks]
        return layers[0].original_row_node_ids, layers


@functional_datapipe("sample_neighbor")
class NeighborSampler(_LayerSampler):
    """Sample neighbors of the seeds, of these neighbors, and so on.

    Parameters
    ----------
    datapipe : IterDataPipe
    graph : FusedCSCSamplingGraph
    fanouts : list of int or torch.Tensor
        For each layer, first layer first; a tensor has one for each edge type. −1 takes all.
    replace : bool
    prob_name : str, optional
        Edge attribute with weights.
    **options
        Accepted for DGL's signature: ``deduplicate``, ``overlap_fetch``, ``asynchronous``, ….

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

    def __init__(
        self,
        datapipe: Any,
        graph: FusedCSCSamplingGraph,
        fanouts: Sequence[Any],
        replace: bool = False,
        prob_name: str | None = None,
        **options: Any,
    ) -> None:
        layers = [graph.fanout(fanout) for fanout in fanouts]
        super().__init__(datapipe, graph, NodeSampler(layers, prob=prob_name, replace=replace))


@functional_datapipe("sample_layer_neighbor")
class LayerNeighborSampler(_LayerSampler):
    """As :class:`NeighborSampler`, with fewer distinct input nodes: LABOR.

    References
    ----------
    Balin and Çatalyürek, "Layer-Neighbor Sampling", NeurIPS 2023.
    """

    def __init__(
        self,
        datapipe: Any,
        graph: FusedCSCSamplingGraph,
        fanouts: Sequence[Any],
        replace: bool = False,
        prob_name: str | None = None,
        deduplicate: bool = True,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        **options: Any,
    ) -> None:
        if replace:
            raise InvalidInput("layer neighbors are drawn without replacement: replace=False")
        layers = [graph.fanout(fanout) for fanout in fanouts]
        sampler = LaborSampler(
            layers, prob=prob_name, layer_dependency=layer_dependency,
            batch_dependency=batch_dependency,
        )  # fmt: skip
        super().__init__(datapipe, graph, sampler)


@functional_datapipe("sample_in_subgraph")
class InSubgraphSampler(_LayerSampler):
    """Take all in-edges of the seeds: one layer."""

    def __init__(self, datapipe: Any, graph: FusedCSCSamplingGraph) -> None:
        super().__init__(datapipe, graph, NodeSampler([-1]))


@functional_datapipe("sample_negative")
class NegativeSampler(_Drawing):
    """Base of negative sampling: seeds (N, 2) are followed by pairs that are no edges.

    The mini-batch gets ``labels``, 1 for edges and 0 for other pairs, and ``indexes``: which edge a
    pair belongs to. A class of your own overrides ``_sample_with_etype``.
    """

    _stream = (1,)

    def __init__(self, datapipe: Any, negative_ratio: int) -> None:
        super().__init__(datapipe)
        self.negative_ratio = whole_number(negative_ratio, "negative_ratio", 1)

    def draw(self, minibatch: MiniBatch) -> MiniBatch:
        """Add pairs to a mini-batch."""
        seeds = minibatch.seeds
        typed = seeds if isinstance(seeds, dict) else {None: seeds}
        found = {etype: self._with_negatives(etype, pairs) for etype, pairs in typed.items()}
        for i, name in enumerate(("seeds", "labels", "indexes")):
            values = {etype: each[i] for etype, each in found.items()}
            setattr(minibatch, name, values if isinstance(seeds, dict) else values[None])
        return minibatch

    def _with_negatives(
        self, etype: Any, pairs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if pairs.dim() != 2 or pairs.shape[1] != 2:
            raise InvalidInput(f"seeds are edges of shape (N, 2); found {tuple(pairs.shape)}")
        others = self._sample_with_etype(pairs, etype)
        own = torch.arange(len(pairs), device=pairs.device)
        of_others = torch.repeat_interleave(own, len(others) // max(len(pairs), 1))
        labels = torch.cat([torch.ones(len(pairs)), torch.zeros(len(others))]).to(pairs.device)
        return torch.cat([pairs, others]), labels, torch.cat([own, of_others])

    def _sample_with_etype(self, node_pairs: torch.Tensor, etype: Any = None) -> torch.Tensor:
        """Return ``negative_ratio`` pairs for each of ``node_pairs``, one after the other."""
        raise NotImplementedError


@functional_datapipe("sample_uniform_negative")
class UniformNegativeSampler(NegativeSampler):
    """Pairs of the source of each edge with targets at random."""

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

    Parameters
    ----------
    minibatch : MiniBatch
    include_reverse_edges : bool
        Leave out the reverse edges, too.
    reverse_etypes_mapping : dict of str to str, optional
        Edge type -> type of its reverse edges; needed with edge types.
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

    def __init__(
        self,
        datapipe: Any,
        include_reverse_edges: bool = False,
        reverse_etypes_mapping: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(datapipe)
        self.options = include_reverse_edges, reverse_etypes_mapping

    def change(self, minibatch: MiniBatch) -> MiniBatch:
        """Leave the seeds out."""
        return exclude_seed_edges(minibatch, *self.options)
