"""A sampler of PyG's kind whose neighbors gnnlab picks.

PyG's mini-batch is one subgraph: first the seeds, then hop by hop the nodes that are new, and in
each hop the edges into the nodes that were new in the hop before. (A block of gnnlab has edges into
all nodes found so far.) The picks come from the same kernels as all of gnnlab's: they are a
function of the seed, the epoch, the batch, the hop, the edge type and the node.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, cast

import torch
import torch_geometric.sampler as pyg
from torch_geometric.data import GraphStore as AnyGraphStore
from torch_geometric.sampler.base import NumNeighbors, SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from gnnlab import kernels
from gnnlab.distributed.graph import DistGraph
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.neighbor import check_fanout, sample_layer
from gnnlab.graph.temporal import Until, check_column, read_times
from gnnlab.pyg.convert import from_pyg, is_pyg
from gnnlab.pyg.stores import GraphStore, graph_of_stores, is_typed
from gnnlab.random import generator


def graph_of(
    data: Any, weight_attr: str | None = None, time_attr: str | None = None
) -> Graph | DistGraph:
    """Return the graph that a loader's ``data`` stands for; of PyG's data only the structure."""
    if isinstance(data, Graph | DistGraph):
        return data
    if is_pyg(data):
        return from_pyg(data, only=filter(None, [weight_attr, time_attr])).cpu()
    if isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[1], AnyGraphStore):
        features, edges = data
        own = isinstance(edges, GraphStore)
        if time_attr is not None and not own:
            raise InvalidInput(
                f"time_attr={time_attr!r} is read from a Data, a HeteroData or a graph of gnnlab; "
                f"found {type(features).__name__}"
            )
        return edges.graph if own else graph_of_stores(features, edges, weight_attr)
    raise InvalidInput(
        "data is a Data, a HeteroData, a Graph, a DistGraph, or a pair (feature store, graph "
        f"store); found {type(data).__name__}"
    )


class NeighborSampler(pyg.BaseSampler):
    """Sample the neighborhoods of nodes or edges, hop by hop.

    The parameters are those of PyG's class of this name. It serves PyG's own ``NodeLoader`` and
    ``LinkLoader`` too; the loaders of :mod:`gnnlab.pyg` add the seed and sampling ahead.

    Parameters
    ----------
    data : Data, HeteroData, Graph, DistGraph, or (FeatureStore, GraphStore) of gnnlab.pyg or others
    num_neighbors : list of int, or dict of lists by edge type
        Edges for each node and hop, the seeds' hop first; −1 takes all.
    subgraph_type : "directional", "bidirectional" or "induced"
        "induced" returns all edges between the nodes that were found.
    replace, disjoint : bool
        Draw with replacement; one tree for each seed. A node that several trees have at a hop has
        the same picks in each.
    weight_attr : str, optional
        Edge feature with unnormalized weights; an edge of weight 0 is never picked.
    time_attr : str, optional
        Attribute of nodes, of edges, or of both, with times: no edge is picked that is later than
        the seed of its tree, nor one whose source is. Trees are disjoint then. The time of a seed
        is ``input_time``, ``edge_label_time``, or for nodes their attribute.
    temporal_strategy : "uniform" or "last"
        With times: draw edges, or take the last ones.
    is_sorted, share_memory, directed, sample_direction
        Accepted as PyG's; only "forward" is supported.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from torch_geometric.sampler import NodeSamplerInput
    >>> from gnnlab.pyg import NeighborSampler
    >>> g = dgl.graph(([1, 2, 3], [0, 0, 1]))
    >>> sampler = NeighborSampler(g, [2, 2])
    >>> out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([0])))
    >>> out.node, torch.stack([out.row, out.col])
    (tensor([0, 1, 2, 3]), tensor([[1, 2, 3],
            [0, 0, 1]]))
    >>> out.num_sampled_nodes, out.num_sampled_edges
    ([1, 2, 1], [2, 1])
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Any,
        subgraph_type: SubgraphType | str = "directional",
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        share_memory: bool = False,
        directed: bool = True,
        sample_direction: str = "forward",
    ) -> None:
        if temporal_strategy not in ("uniform", "last"):
            raise InvalidInput(
                f"temporal_strategy is 'uniform' or 'last'; found {temporal_strategy!r}"
            )
        if sample_direction != "forward":
            raise InvalidInput(
                f"sample_direction must be 'forward'; found {sample_direction!r}. To follow edges "
                "the other way, reverse them: gnnlab.reverse(g), or data.edge_index.flip(0)"
            )
        if not directed:
            warnings.warn("directed=False: write subgraph_type='induced'", stacklevel=2)
            subgraph_type = "induced"
        self.graph = graph_of(data, weight_attr, time_attr)
        self.time_attr, self._last = time_attr, temporal_strategy == "last"
        if time_attr is not None:
            check_column(self.graph, time_attr)
            disjoint = True
        self.is_hetero, self.keep_orig_edges = is_typed(self.graph), False
        self.num_neighbors = num_neighbors
        self.subgraph_type = SubgraphType(subgraph_type)
        self.replace, self.disjoint, self.weight_attr = replace, disjoint, weight_attr
        if disjoint and self.subgraph_type == SubgraphType.induced:
            raise InvalidInput("disjoint=True and subgraph_type='induced' exclude each other")
        sizes = {ntype: self.graph.num_nodes(ntype) for ntype in self.graph.ntypes}
        self.num_nodes = sizes if self.is_hetero else next(iter(sizes.values()))

    @property
    def num_neighbors(self) -> NumNeighbors:
        """Edges for each node and hop, as given."""
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, given: Any) -> None:
        given = given if isinstance(given, NumNeighbors) else NumNeighbors(given)
        etypes = self.graph.canonical_etypes
        if isinstance(given.values, dict) and not self.is_hetero:
            raise InvalidInput("num_neighbors is a list where the graph has no types")
        by_type = given.get_values(etypes) if self.is_hetero else {etypes[0]: given.values}
        self._hops = [
            {etype: check_fanout(hops[hop]) for etype, hops in by_type.items()}
            for hop in range(given.num_hops)
        ]
        self._num_neighbors = given

    def sample_from_nodes(
        self, inputs: pyg.NodeSamplerInput
    ) -> pyg.SamplerOutput | pyg.HeteroSamplerOutput:
        """Sample from the nodes of a mini-batch; see PyG's ``BaseSampler``."""
        self._check_time(inputs.time, "input_time")
        ntype = inputs.input_type if self.is_hetero else self.graph.ntypes[0]
        distinct, time = self.time_attr is None, inputs.time
        nodes = read_ids(inputs.node, self.graph.num_nodes(ntype), "node", distinct=distinct)
        if self.time_attr is not None and time is None:
            frame = self.graph.node_frames()[ntype]
            if self.time_attr not in frame:
                raise InvalidInput(f"nodes {ntype!r} have no {self.time_attr!r}: give input_time")
            time = frame[self.time_attr][nodes.long()]
        known = nodes if inputs.input_id is None else inputs.input_id
        inputs = pyg.NodeSamplerInput(known, nodes, time, inputs.input_type)
        return self._finish(node_sample(inputs, self._sample))

    def sample_from_edges(
        self, inputs: pyg.EdgeSamplerInput, neg_sampling: pyg.NegativeSampling | None = None
    ) -> pyg.SamplerOutput | pyg.HeteroSamplerOutput:
        """Sample from the ends of the edges of a mini-batch, and of negative pairs."""
        self._check_time(inputs.time, "edge_label_time")
        if self.time_attr is not None and inputs.time is None:
            raise InvalidInput(f"time_attr={self.time_attr!r} needs edge_label_time")
        negatives = neg_sampling and _Negatives(neg_sampling)
        out = edge_sample(inputs, self._sample, self.num_nodes, self.disjoint, None, negatives)
        return self._finish(out)

    def _check_time(self, time: Any, name: str) -> None:
        if time is not None and self.time_attr is None:
            raise InvalidInput(f"{name} needs time_attr, the name of the attribute with times")

    def _finish(self, out: Any) -> Any:
        if self.subgraph_type == SubgraphType.bidirectional:
            return out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
        return out

    def _sample(self, seed: Any, seed_time: Any = None) -> Any:
        g = self.graph
        seeds = seed if self.is_hetero else {g.ntypes[0]: seed}
        times = seed_time if self.is_hetero or seed_time is None else {g.ntypes[0]: seed_time}
        limits = []  # of the trees, in their order
        total = sum(len(ids) for ids in seeds.values())
        extra, kind = ((total,), _Trees) if self.disjoint else ((), _Shared)
        lists: dict[str, Any] = {t: kind(g.num_nodes(t), *extra) for t in g.ntypes}
        try:
            trees, none = 0, torch.empty(0, dtype=torch.int64)
            for ntype in [*seeds, *(lists.keys() - seeds.keys())]:
                ids = read_ids(seeds.get(ntype, none), g.num_nodes(ntype), "node").long()
                lists[ntype].start(ids, trees)
                trees += len(ids)
                if times is not None and len(ids):
                    limits.append(read_times(times[ntype], len(ids), "times of seeds"))
            limit = torch.cat(limits) if limits else None
            hops = [self._hop(lists, fanouts, limit) for fanouts in self._hops]
            if self.subgraph_type == SubgraphType.induced:
                hops = [self._induced(lists)]
            return self._output(lists, hops)
        finally:
            for each in lists.values():
                each.close()

    def _hop(
        self, lists: dict[str, Any], fanouts: dict[Any, int], limit: torch.Tensor | None
    ) -> dict[Any, Any]:
        """Pick in-edges of the nodes that the hop before has found: (row, col, edge) by type."""
        begins = {ntype: nodes.advance() for ntype, nodes in lists.items()}
        frontier = {ntype: nodes.ids()[begins[ntype] :] for ntype, nodes in lists.items()}
        until = None
        if limit is not None and self.time_attr is not None:
            of_nodes = {t: limit[nodes.trees[begins[t] :]] for t, nodes in lists.items()}
            until = Until(of_nodes, self.time_attr, self._last)
        how = self.weight_attr, self.replace, None, True, until
        picked = sample_layer(self.graph, frontier, fanouts, *how)
        found = {}
        for etype, (ptr, edges, sources, _) in picked.items():
            col = begins[etype[2]] + torch.repeat_interleave(torch.diff(ptr))
            row = lists[etype[0]].add(sources, lists[etype[2]], col)
            found[etype] = row, col, edges().long()
        return found

    def _induced(self, lists: dict[str, Any]) -> dict[Any, Any]:
        nodes = {ntype: each.ids() for ntype, each in lists.items()}
        found = {}
        fanouts = dict.fromkeys(self.graph.canonical_etypes, -1)
        for etype, (ptr, edges, sources, _) in sample_layer(self.graph, nodes, fanouts).items():
            row, col = lists[etype[0]].find(sources), torch.repeat_interleave(torch.diff(ptr))
            inside = row >= 0
            found[etype] = row[inside], col[inside], edges().long()[inside]
        return found

    def _output(self, lists: dict[str, Any], hops: list[dict[Any, Any]]) -> Any:
        node = {ntype: each.ids() for ntype, each in lists.items()}
        none = [torch.empty(0, dtype=torch.int64)] * 3
        of_hops = {
            etype: [none, *(hop[etype] for hop in hops)] for etype in self.graph.canonical_etypes
        }
        parts = [
            {etype: torch.cat([hop[k] for hop in found]) for etype, found in of_hops.items()}
            for k in range(3)
        ]
        batch = {ntype: each.trees for ntype, each in lists.items()} if self.disjoint else None
        counts: list[Any] = [None, None]
        if self.subgraph_type != SubgraphType.induced:
            edges = {etype: [len(hop[0]) for hop in found[1:]] for etype, found in of_hops.items()}
            counts = [{ntype: each.counts() for ntype, each in lists.items()}, edges]
        values = [node, *parts, batch, *counts]
        names = ("node", "row", "col", "edge", "batch", "num_sampled_nodes", "num_sampled_edges")
        if self.is_hetero:
            return pyg.HeteroSamplerOutput(**dict(zip(names, values, strict=True)))
        only = [each and next(iter(each.values())) for each in values]
        return pyg.SamplerOutput(**dict(zip(names, only, strict=True)))


class _Nodes(ABC):
    """The nodes of one type in a mini-batch, in the order in which they are found."""

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes, self._ends = num_nodes, [0]

    def advance(self) -> int:
        """Begin a hop; return where the nodes start that were new in the hop before."""
        self._ends.append(len(self.ids()))
        return self._ends[-2]

    def counts(self) -> list[int]:
        """Return the number of new nodes: of the seeds, and of each hop."""
        return [b - a for a, b in pairwise([*self._ends, len(self.ids())])]

    @abstractmethod
    def ids(self) -> torch.Tensor: ...

    def close(self) -> None:  # noqa: B027 – an optional hook
        """Return what was borrowed."""


class _Shared(_Nodes):
    """Each node once; seeds that repeat keep their places."""

    def __init__(self, num_nodes: int) -> None:
        super().__init__(num_nodes)
        self._list = kernels.node_list(num_nodes, "cpu")
        self._seeds = torch.empty(0, dtype=torch.int64)
        self._places: torch.Tensor | None = None  # of the distinct seeds, if some repeat

    def start(self, seeds: torch.Tensor, first_tree: int) -> None:
        self._seeds = seeds
        if len(seeds) > 1 and len(torch.unique(seeds)) < len(seeds):
            distinct, inverse = torch.unique(seeds, return_inverse=True)
            first = torch.full_like(distinct, len(seeds))
            first.scatter_reduce_(0, inverse, torch.arange(len(seeds)), "amin")
            self._places = first.sort().values
            seeds = seeds[self._places]
        self._list.start(seeds.contiguous())

    def ids(self) -> torch.Tensor:
        if self._places is None:
            return cast(torch.Tensor, self._list.ids.long())
        return torch.cat([self._seeds, self._list.ids[len(self._places) :].long()])

    def add(self, sources: torch.Tensor, centers: Any, col: torch.Tensor) -> torch.Tensor:
        return self._outward(self._list.add(sources).long())

    def close(self) -> None:
        self._list.close()

    def find(self, ids: torch.Tensor) -> torch.Tensor:
        return self._outward(self._list.find(ids).long())

    def _outward(self, local: torch.Tensor) -> torch.Tensor:
        if self._places is None:
            return local
        distinct = len(self._places)
        is_seed = (local >= 0) & (local < distinct)
        shifted = local + (local >= distinct) * (len(self._seeds) - distinct)
        return torch.where(is_seed, self._places[local.clamp(0, distinct - 1)], shifted)


class _Trees(_Nodes):
    """Each node once in each tree; for disjoint mini-batches."""

    def __init__(self, num_nodes: int, num_trees: int) -> None:
        super().__init__(num_nodes)
        self._list = kernels.temporal.timed_nodes(num_nodes, torch.arange(num_trees))

    def start(self, seeds: torch.Tensor, first_tree: int) -> None:
        trees = torch.arange(first_tree, first_tree + len(seeds), dtype=torch.int32)
        self._list.add(seeds, trees, torch.arange(len(seeds) + 1))

    def ids(self) -> torch.Tensor:
        return cast(torch.Tensor, self._list.ids.long())

    @property
    def trees(self) -> torch.Tensor:
        return cast(torch.Tensor, self._list.times)

    def add(self, sources: torch.Tensor, centers: _Trees, col: torch.Tensor) -> torch.Tensor:
        runs = torch.arange(len(sources) + 1)
        return cast(torch.Tensor, self._list.add(sources, centers._list.places[col], runs).long())


class _Negatives(pyg.NegativeSampling):
    """Negative sampling whose draws are a function of the batch, in any thread or process."""

    def __init__(self, given: pyg.NegativeSampling) -> None:
        self.__dict__.update(vars(given))

    def sample(self, num_samples: int, endpoint: str, num_nodes: Any = None) -> torch.Tensor:
        weight: Any = self.src_weight if endpoint == "src" else self.dst_weight
        if weight is None:
            return torch.randint(num_nodes, (num_samples,), generator=generator())
        if num_nodes is not None and len(weight) != num_nodes:
            raise InvalidInput(
                f"{endpoint}_weight needs one number for each of {num_nodes} nodes; found "
                f"{len(weight)}"
            )
        return torch.multinomial(weight, num_samples, replacement=True, generator=generator())
