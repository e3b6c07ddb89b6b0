"""Samplers: make the blocks of a multi-layer model from seed nodes.

The output of L layers depends on nodes L steps away. A sampler goes backwards from the seeds: it
picks in-edges of the seeds for the last layer, then of all nodes found so far for the layer before
it, and so on. Each step makes a block; the model reads features of the first one's sources.

To add a sampler, subclass :class:`BlockSampler` and define ``sample_frontier`` or
``sample_blocks``, or subclass :class:`Sampler` for mini-batches of another form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.dataloading import temporal
from gnnlab.dataloading.features import (
    graphs_in,
    set_dst_lazy_features,
    set_edge_lazy_features,
    set_src_lazy_features,
)
from gnnlab.dataloading.seeds import Timed
from gnnlab.errors import InvalidInput, takes_graph, whole_number
from gnnlab.graph.block import Block, to_block
from gnnlab.graph.frame import Frame, copier
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import edge_dict, node_dict, read_ids, read_nodes
from gnnlab.graph.names import EID, NID, EdgeType
from gnnlab.graph.neighbor import (
    Picked,
    check_fanout,
    read_excluded,
    read_fanouts,
    sample_layer,
    sample_layers,
)
from gnnlab.graph.placement import copied
from gnnlab.graph.relation import Adjacency, Relation
from gnnlab.graph.temporal import Until
from gnnlab.system import accelerators


class Sampler(ABC):
    """Base class: ``sample(g, indices)`` makes one mini-batch from a batch of IDs.

    A sampler that draws random numbers takes them from :func:`gnnlab.random.generator`, inside
    ``sample``: its batches are then the same in the training process, in a thread and in workers,
    and in every epoch of the same seed. On a :class:`~gnnlab.distributed.DistGraph` it may call
    ``sample_neighbors``, ``subgraph``, ``in_subgraph``, ``out_subgraph``, ``edge_subgraph``,
    ``find_edges``, ``edge_ids``, ``has_edges_between``, ``in_degrees`` and ``out_degrees``.

    Cut subgraphs out of subgraphs with ``store_ids=False``: their ``ndata[NID]`` and ``edata[EID]``
    then are IDs in ``g``, by which features are looked up. A loader refuses others.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> class RandomPart(dgl.dataloading.Sampler):
    ...     def sample(self, g, indices):
    ...         others = torch.randint(g.num_nodes(), (4,), generator=dgl.random.generator())
    ...         return g.subgraph(torch.unique(torch.cat([indices, others])))
    >>> g = dgl.rand_graph(100, 1000)
    >>> def batches(**options):
    ...     loader = dgl.dataloading.DataLoader(
    ...         g, range(20), RandomPart(), batch_size=5, seed=0, **options
    ...     )
    ...     return [part.ndata[dgl.NID].tolist() for part in loader]
    >>> batches() == batches(prefetch=2)
    True
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("gnnlab."):  # those of users may take what they like
            cls.sample = takes_graph(cls.sample)  # type: ignore[method-assign]

    @abstractmethod
    def sample(self, g: Graph, indices: Any) -> Any:
        """Make a mini-batch of IDs, a tensor or a dict of tensors by type."""


class BlockSampler(Sampler):
    """Base class of samplers that make blocks; a subclass defines one of two methods.

    * ``sample_frontier(layer_id, g, seed_nodes)`` returns, for one layer, a graph on all nodes with
      the edges that carry messages to the seeds. It is called for the last layer first.
    * ``sample_blocks(g, seed_nodes, exclude_eids=None)`` returns all layers:
      ``(input_nodes, output_nodes, blocks)``, or only the list of blocks.

    Parameters
    ----------
    num_layers : int, optional
        Number of blocks, for samplers with ``sample_frontier``. May be the first argument.
    return_eids : bool
        Has no effect: ``block.edata[EID]`` always exists.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats : list of str or dict, optional
        Features that a loader prefetches: of the first block's sources, of the last block's
        destinations, of all edges.
    output_device : torch.device, optional
        Device of the blocks.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> class Everything(dgl.dataloading.BlockSampler):
    ...     def __init__(self, num_layers):
    ...         super().__init__(num_layers)
    ...
    ...     def sample_frontier(self, layer_id, g, seed_nodes):
    ...         return dgl.in_subgraph(g, seed_nodes)
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> input_nodes, output_nodes, blocks = Everything(2).sample(g, [0])
    >>> input_nodes, blocks
    (tensor([0, 2, 1]), [Block(num_src_nodes=3, num_dst_nodes=2, num_edges=2), \
Block(num_src_nodes=2, num_dst_nodes=1, num_edges=1)])
    """

    def __init__(
        self,
        num_layers: int | Any = None,
        return_eids: bool | Any = False,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        *,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
    ) -> None:
        if num_layers is not None and not isinstance(num_layers, int):
            # the newer form: (prefetch_node_feats, prefetch_labels, prefetch_edge_feats, …)
            prefetch_node_feats, num_layers = num_layers, None
        if not isinstance(return_eids, bool):
            prefetch_labels = return_eids
        self.num_layers = num_layers
        self.prefetch_node_feats = prefetch_node_feats or []
        self.prefetch_labels = prefetch_labels or []
        self.prefetch_edge_feats = prefetch_edge_feats or []
        self.output_device = output_device

    def sample_frontier(self, layer_id: int, g: Graph, seed_nodes: Any) -> Graph:
        """Return a graph on all nodes of ``g`` with the edges of one layer to the seeds."""
        raise InvalidInput(
            f"{type(self).__name__} defines neither sample_frontier(layer_id, g, seed_nodes) nor "
            "sample_blocks(g, seed_nodes, exclude_eids=None); define one of them"
        )

    def sample_blocks(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Make the blocks of a batch, layer by layer, with :meth:`sample_frontier`.

        Returns
        -------
        input_nodes : torch.Tensor or dict
            Sources of the first block, whose features the model reads.
        output_nodes : torch.Tensor or dict
            The seeds.
        blocks : list of Block
        """
        if self.num_layers is None:
            raise InvalidInput(
                f"{type(self).__name__} samples by frontier and so must call "
                "super().__init__(num_layers)"
            )
        seeds = output_nodes = read_seeds(g, seed_nodes)
        blocks: list[Block] = []
        for layer_id in reversed(range(self.num_layers)):
            frontier = self.sample_frontier(layer_id, g, seeds)
            check_ids_of(g, frontier, f"the frontier of layer {layer_id}")
            if exclude_eids is not None:
                frontier = _remove_excluded(g, frontier, exclude_eids)
            block = to_block(frontier, seeds)
            _restore_edge_ids(block, frontier)
            seeds = _sources(block)
            blocks.insert(0, block)
        return seeds, output_nodes, blocks

    def sample(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Return ``(input_nodes, output_nodes, blocks)``."""
        extra = () if exclude_eids is None else (exclude_eids,)
        result = self.sample_blocks(g, seed_nodes, *extra)
        if isinstance(result, list):
            outputs = simplify({t: f[NID] for t, f in result[-1].dst_frames.items()})
            result = _sources(result[0]), outputs, result
        self._name_features([part for part in graphs_in(result) if part.is_block])
        if self.output_device is None:
            return result
        return to_device(result, accelerators.read_device(self.output_device))

    def _name_features(self, blocks: list[Graph]) -> None:
        if blocks:
            set_src_lazy_features(blocks[0], self.prefetch_node_feats)
            set_dst_lazy_features(blocks[-1], self.prefetch_labels)
        for block in blocks:
            set_edge_lazy_features(block, self.prefetch_edge_feats)


def innermost(sampler: Any) -> Any:
    """Return the sampler of nodes behind one of edges."""
    return getattr(sampler, "sampler", sampler)


def is_pure(part: Any) -> bool:
    """Whether a loader may call a sampler in another thread: its class itself says ``pure = True``.

    Classes outside gnnlab do not inherit that, nor objects whose methods were replaced.
    """
    kind = type(part)
    own = kind.__module__.startswith("gnnlab.") or "pure" in vars(kind)
    replaced = [name for name, value in getattr(part, "__dict__", {}).items() if callable(value)]
    own = own and not any(hasattr(kind, name) for name in replaced)
    return own and bool(getattr(part, "pure", False))


def check_sampler(sampler: Any, argument: str, method: str) -> None:
    """Raise InvalidInput unless ``sampler`` is an object with the method ``sample``."""
    if isinstance(sampler, type):
        raise InvalidInput(
            f"{argument} is the class {sampler.__name__}; make a sampler of it, such as "
            "NeighborSampler([10, 10])"
        )
    if not hasattr(sampler, "sample"):
        raise InvalidInput(
            f"{argument} needs a method {method}; found {type(sampler).__name__}. "
            "Derive it from gnnlab.dataloading.BlockSampler, or use NeighborSampler"
        )


def check_ids_of(g: Any, part: Graph, what: str) -> None:
    """Raise InvalidInput if IDs in a graph cut out of ``g`` are those in a graph between the two.

    IDs of ``g`` get lost where a subgraph of a subgraph stores its own, which is the default.
    """
    if part.is_block:  # to_block numbers edges within the frontier; samplers restore their IDs
        return
    own = getattr(g, "relations", None)
    for side, frames in ("ndata[dgl.NID]", part.src_frames), ("edata[dgl.EID]", part.edge_frames):
        for kind, frame in frames.items():
            between = frame.ids_replaced_in()
            if between is not None and between is not own:
                raise InvalidInput(
                    f"{what} has in {side} of {kind!r} the positions in a graph that was cut out "
                    "of the sampled one, not IDs of that one: a subgraph of a subgraph replaced "
                    "them. Pass store_ids=False to the later call, as in "
                    "frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False), which "
                    "keeps the IDs of the first; or set the column yourself"
                )


def read_seeds(g: Graph, nodes: Any) -> Any:
    """Return seeds as a tensor, or as {type: tensor} if they are given by type."""
    read = {ntype: ids.to(g.idtype) for ntype, ids in read_nodes(g, nodes).items()}
    return read if isinstance(nodes, dict) else next(iter(read.values()))


def simplify(by_type: dict[str, torch.Tensor]) -> Any:
    """Return the tensor if there is one type, else {type: tensor} unchanged."""
    return next(iter(by_type.values())) if len(by_type) == 1 else by_type


def _sources(block: Block) -> Any:
    return simplify({ntype: frame[NID] for ntype, frame in block.src_frames.items()})


def to_device(
    value: Any, device: torch.device, copy: Callable[[torch.Tensor], torch.Tensor] | None = None
) -> Any:
    """Move the tensors and graphs of a mini-batch to a device; ``copy`` moves one tensor."""
    copy = copy or copier(device)
    if isinstance(value, torch.Tensor):
        return copy(value)
    if isinstance(value, Graph):
        return copied(value, device, copy)
    if isinstance(value, dict):
        return {key: to_device(part, device, copy) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [to_device(part, device, copy) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _remove_excluded(g: Graph, frontier: Graph, exclude_eids: Any) -> Graph:
    frontier = frontier.local_var()
    kept = {
        etype: torch.arange(frame.num_rows, device=frontier.device)
        for etype, frame in frontier.edge_frames.items()
    }
    for etype, edges in edge_dict(frontier, exclude_eids).items():
        frame = frontier.edge_frames[etype]
        if EID not in frame:
            if frame.num_rows not in (0, g.num_edges(etype)):
                raise InvalidInput(
                    f"a frontier of {frame.num_rows} edges of type {etype} has no edata[dgl.EID], "
                    f"so none of the graph's {g.num_edges(etype)} edges can be excluded from it; "
                    "set edata[dgl.EID] to their IDs"
                )
            frame[EID] = kept[etype]
        excluded = torch.as_tensor(edges, device=frontier.device)
        kept[etype] = kept[etype][~torch.isin(frame[EID], excluded)]
    return frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False)


def _restore_edge_ids(block: Block, frontier: Graph) -> None:
    for etype, frame in block.edge_frames.items():
        source = frontier.edge_frames[etype]
        if EID in source:
            frame.defer(EID, lambda source=source: source[EID])  # type: ignore[misc]


class NeighborSampler(BlockSampler):
    """Sample a fixed number of neighbors per node and layer.

    ``MultiLayerNeighborSampler`` is its old name.

    Parameters
    ----------
    fanouts : list of int, None or dict
        Neighbors per node, one entry per layer, first layer first; −1 or None takes all; a dict
        has one number per edge type, 0 to leave a type out.
    edge_dir : "in"
        Neighbors are the sources of in-edges. A bool here is the old position of ``replace``.
    prob, mask : str, optional
        Name of an edge feature with weights, or with True for the edges that may be drawn.
    replace : bool
        Draw with replacement.
    prefetch_node_feats, prefetch_labels, prefetch_edge_feats, output_device
        See :class:`BlockSampler`.
    time : str, optional
        Name of a feature of edges, of nodes, or of both, with times: whole numbers or floats. Then
        no edge is sampled that is later than the seed, at any distance from it, nor one whose
        source is. The time of a seed is that of its edge, its ``seed_times`` in the loader, or its
        node feature. A node that seeds with different times see is in the blocks once for each
        time, in ``ndata["seed_time"]``. Edge types without times have no limit. The graph keeps its
        edges sorted by time, 16 to 24 bytes per edge more, unless they are so already (then 8).
    strategy : {"uniform", "last"}
        With times: draw neighbors, or take the last ones.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([1, 2, 3, 4], [0, 0, 0, 1]))
    >>> input_nodes, output_nodes, blocks = dgl.dataloading.NeighborSampler([2, -1]).sample(g, [0])
    >>> blocks[1].srcdata[dgl.NID], blocks[0].dstdata[dgl.NID]
    (tensor([0, 1, 2, 3]), tensor([0, 1, 2, 3]))

    References
    ----------
    Hamilton, Ying and Leskovec, NeurIPS 2017.
    """

    #: Blocks depend on (key, number, seeds) of the batch alone: a loader may sample in a thread.
    #: A class outside gnnlab does not inherit this; it may declare it for itself.
    pure = True

    def __init__(
        self,
        fanouts: Sequence[Any],
        edge_dir: str | bool = "in",
        prob: Any = None,
        mask: Any = None,
        replace: bool = False,
        prefetch_node_feats: Any = None,
        prefetch_labels: Any = None,
        prefetch_edge_feats: Any = None,
        output_device: Any = None,
        *,
        time: str | None = None,
        strategy: str = "uniform",
    ) -> None:
        if strategy not in ("uniform", "last"):
            raise InvalidInput(f"strategy must be 'uniform' or 'last'; found {strategy!r}")
        if strategy == "last" and (time is None or replace or prob is not None or mask is not None):
            raise InvalidInput("strategy='last' needs time, and takes no prob, mask or replace")
        if isinstance(edge_dir, bool):  # the older form: (fanouts, replace, return_eids)
            replace, edge_dir = edge_dir, "in"
            prob = None if isinstance(prob, bool) else prob
        if edge_dir != "in":
            raise InvalidInput(
                "blocks carry messages along edges to the seeds, so edge_dir must be 'in'; to "
                "follow edges the other way, sample on gnnlab.reverse(g)"
            )
        if prob is not None and mask is not None:
            raise InvalidInput("give prob or mask, not both: a mask is a weight of 0 or 1")
        if isinstance(fanouts, int | Mapping):
            raise InvalidInput(f"fanouts is a list with one entry per layer; write [{fanouts}]")
        if isinstance(fanouts, str) or not isinstance(fanouts, Iterable):
            raise InvalidInput(
                f"fanouts is a list with one entry per layer, such as [10, 10]; found {fanouts!r}"
            )
        fanouts = list(fanouts)
        if not fanouts:
            raise InvalidInput("fanouts is empty; give one entry per layer, such as [10, 10]")
        for fanout in fanouts:
            for each in fanout.values() if isinstance(fanout, Mapping) else [fanout]:
                check_fanout(each)
        named = {"prefetch_node_feats": prefetch_node_feats, "prefetch_labels": prefetch_labels}
        super().__init__(len(fanouts), False, prefetch_edge_feats, output_device, **named)
        self.fanouts = fanouts
        self.prob = mask if prob is None else prob
        self.replace = replace
        self.time, self.strategy = time, strategy

    def sample_blocks(self, g: Graph, seed_nodes: Any, exclude_eids: Any = None) -> Any:
        """Make the blocks of a batch; see :meth:`BlockSampler.sample_blocks`."""
        if self.time is not None:
            return self._sample_timed(g, seed_nodes, exclude_eids)
        custom = type(self).sample_frontier is not BlockSampler.sample_frontier
        if not custom and self.prob is None and exclude_eids is None and isinstance(g, Graph):
            device = g.device
            if device.type == "cpu" and self.output_device is not None:
                device = accelerators.read_device(self.output_device)
            made = self._sample_at_once(g, seed_nodes, device)
            if made is not None:
                return made
        return self._sample_all(g, seed_nodes, exclude_eids, self._pick)

    def _sample_at_once(self, g: Graph, seed_nodes: Any, device: torch.device) -> Any:
        """Sample all layers with the kernels of a GPU, None if they do not cover the case."""
        if not accelerators.runs_triton(device) or not g.is_homogeneous:
            return None
        (ntype,), (etype,) = g.ntypes, g.canonical_etypes
        given = node_dict(g, seed_nodes)
        seeds = given.get(ntype, [])
        on_device = isinstance(seeds, torch.Tensor) and seeds.device == device
        if not (on_device and seeds.ndim == 1 and seeds.dtype in (torch.int32, torch.int64)):
            # Neither here nor there is a check: the kernels check all seeds.
            cpu = torch.device("cpu")
            seeds = read_ids(seeds, g.num_nodes(), "node", cpu, check=False, distinct=True)
        fanouts = [read_fanouts(g, fanout)[etype] for fanout in reversed(self.fanouts)]
        try:
            found = sample_layers(g, seeds, fanouts, self.replace, device)
        except InvalidInput:  # the other kernels say which seed is wrong
            return None
        if found is None:
            return None
        nodes, layers = {ntype: found[0]}, found[1]
        blocks = [
            _block(g, nodes, ({ntype: num_dst}, {ntype: num_src}, {etype: picked}, {}))
            for num_dst, num_src, picked in reversed(layers)
        ]
        output = {ntype: found[0][: len(seeds)] for ntype in given}
        return found[0], output if isinstance(seed_nodes, dict) else simplify(output), blocks

    def _pick(
        self,
        g: Graph,
        seeds: dict[str, torch.Tensor],
        fanouts: dict[EdgeType, int],
        excluded: dict[EdgeType, Any],
    ) -> tuple[dict[EdgeType, Picked], _Columns]:
        """Sample edges of a layer; return them and further columns of their features."""
        return sample_layer(g, seeds, fanouts, self.prob, self.replace, excluded), {}

    def _sample_all(self, g: Graph, seed_nodes: Any, exclude_eids: Any, pick: Any) -> Any:
        if type(self).sample_frontier is not BlockSampler.sample_frontier:  # a subclass says how
            self.num_layers = len(self.fanouts)
            return BlockSampler.sample_blocks(self, g, seed_nodes, exclude_eids)
        given = {
            ntype: read_ids(
                *(ids, g.num_nodes(ntype), "node"),
                torch.device("cpu"),  # the node list copies them to a GPU
                check=g.device.type != "cpu",  # on a CPU, the node list checks them
                distinct=True,
            )
            for ntype, ids in node_dict(g, seed_nodes).items()
        }
        excluded = read_excluded(g, exclude_eids)
        lists = _open_node_lists(g, given)
        layers: list[_Layer] = []
        try:
            for fanout in reversed(self.fanouts):
                layers.append(_sample_layer(g, lists, fanout, excluded, pick))
            nodes = {t: found.ids.to(g.idtype) for t, found in lists.items()}
        finally:
            for opened in lists.values():
                opened.close()
        blocks = [_block(g, nodes, layer) for layer in reversed(layers)]
        output = {ntype: nodes[ntype][: len(ids)] for ntype, ids in given.items()}
        return simplify(nodes), output if isinstance(seed_nodes, dict) else simplify(output), blocks

    def _sample_timed(self, g: Graph, seed_nodes: Any, exclude_eids: Any) -> Any:
        assert self.time is not None
        nodes, given = temporal.open_nodes(g, seed_nodes, self.time)
        excluded, last = read_excluded(g, exclude_eids), self.strategy == "last"
        layers: list[_Layer] = []
        for fanout in reversed(self.fanouts):
            num_dst, until = nodes.counts(), Until(nodes.times(), self.time, last)
            how = read_fanouts(g, fanout), self.prob, self.replace, excluded, True, until
            edges = nodes.add_sources(sample_layer(g, nodes.ids(), *how))
            layers.append((num_dst, nodes.counts(), edges, {}))
        ids = {ntype: each.to(g.idtype) for ntype, each in nodes.ids().items()}
        blocks, times = [_block(g, ids, layer) for layer in reversed(layers)], nodes.times()
        for frames in (f for block in blocks for f in (block.src_frames, block.dst_frames)):
            for ntype, frame in frames.items():
                frame[temporal.SEED_TIME] = times[ntype][: frame.num_rows]
        output = {ntype: ids[ntype][: len(found)] for ntype, found in given.items()}
        typed = isinstance(seed_nodes.ids if isinstance(seed_nodes, Timed) else seed_nodes, dict)
        return simplify(ids), output if typed else simplify(output), blocks


_Columns = dict[EdgeType, dict[str, torch.Tensor]]
_Layer = tuple[dict[str, int], dict[str, int], dict[EdgeType, Picked], _Columns]


def _sample_layer(
    g: Graph, lists: dict[str, Any], fanout: Any, excluded: dict[EdgeType, Any], pick: Any
) -> _Layer:
    seeds = {ntype: nodes.ids for ntype, nodes in lists.items()}
    num_dst = {ntype: nodes.count for ntype, nodes in lists.items()}
    picked, columns = pick(g, seeds, read_fanouts(g, fanout), excluded)
    edges = {
        etype: each._replace(sources=lists[etype[0]].add(each.sources, overwrite=True))
        for etype, each in picked.items()
    }
    return num_dst, {ntype: nodes.count for ntype, nodes in lists.items()}, edges, columns


def _block(g: Graph, nodes: dict[str, torch.Tensor], layer: _Layer) -> Block:
    num_dst, num_src, edges, columns = layer
    device = next(iter(nodes.values())).device
    relations, edge_frames = {}, {}
    for etype, (ptr, eids, sources, sizes) in edges.items():
        csc = Adjacency(ptr, sources, sizes=sizes)
        relation = relations[etype] = Relation(num_src[etype[0]], num_dst[etype[2]], csc=csc)
        named: dict[str, Any] = {EID: eids, **columns.get(etype, {})}
        edge_frames[etype] = Frame(relation.num_edges, named, device, "edge")
    src_frames, dst_frames = (
        {t: Frame(n, {NID: nodes[t][:n]}, device) for t, n in side.items()}
        for side in (num_src, num_dst)
    )
    frames = src_frames, dst_frames, edge_frames
    return Block(num_src, num_dst, relations, *frames, g.idtype, device)


def _open_node_lists(g: Graph, given: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Open a growing list of nodes per type, which begins with the seeds of that type."""
    empty = torch.empty(0, dtype=torch.int64)
    lists: dict[str, Any] = {}
    try:
        for ntype in g.ntypes:
            lists[ntype] = kernels.node_list(g.num_nodes(ntype), g.device)
            lists[ntype].start(given.get(ntype, empty))
    except BaseException:
        for opened in lists.values():
            opened.close()
        raise
    return lists


MultiLayerNeighborSampler = NeighborSampler


class MultiLayerFullNeighborSampler(NeighborSampler):
    """Take all neighbors in each layer; further arguments are those of :class:`NeighborSampler`."""

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__([-1] * whole_number(num_layers, "num_layers", 1), **kwargs)
