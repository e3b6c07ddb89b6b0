"""PyG's loaders with gnnlab's sampling: only the import changes.

The mini-batches are PyG's. They are a function of (seed, epoch, number of the batch), so a prefetch
thread, worker processes and sampler processes make the same ones.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
import torch_geometric.loader as pyg
from torch_geometric.data import TensorAttr

from gnnlab.dataloading.epochs import Loader, warn_of_ranks
from gnnlab.dataloading.executors import Executor, Workers
from gnnlab.dataloading.loader import WORKER_OPTIONS
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.dataloading.seeds import Seeds
from gnnlab.distributed import context
from gnnlab.distributed.dataloader import executor_of_job
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.split import edge_split, node_split
from gnnlab.distributed.tensor import DistTensor
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import ONE_ETYPE
from gnnlab.pyg.convert import is_pyg
from gnnlab.pyg.sampler import NeighborSampler
from gnnlab.pyg.stores import FeatureStore, GraphStore, is_typed
from gnnlab.random import fold
from gnnlab.system import accelerators

_OF_SAMPLER = ["replace", "subgraph_type", "disjoint", "temporal_strategy", "time_attr"]
_OF_SAMPLER += ["weight_attr", "is_sorted", "directed"]
_PREFETCH = 2  # as in gnnlab's other loaders


class _Loader(torch.utils.data.DataLoader[Any]):
    """What both loaders share: arguments, which batches, and who makes them."""

    _like: Any  # the class of PyG whose arguments these are
    _seeds: str  # the argument that holds the seeds
    _sampler: str  # the argument of the sampler in PyG's base class

    def __init__(
        self, *args: Any, seed: int | None = None, prefetch: int | None = None, **kwargs: Any
    ) -> None:
        bound = inspect.signature(self._like.__init__).bind(self, *args, **kwargs)
        bound.apply_defaults()
        options = {**bound.arguments, **bound.arguments["kwargs"]}
        _, _, data, num_neighbors = map(options.pop, ("self", "kwargs", "data", "num_neighbors"))
        of_sampler = {name: options.pop(name) for name in _OF_SAMPLER if name in options}
        if (sampler := options.pop("neighbor_sampler")) is None:
            sampler = NeighborSampler(data, num_neighbors, **of_sampler)
        if not isinstance(sampler, NeighborSampler):
            raise InvalidInput(
                "neighbor_sampler is a gnnlab.pyg.NeighborSampler; found "
                f"{type(sampler).__name__}, which torch_geometric.loader takes"
            )
        g, after = sampler.graph, options["transform"]
        if isinstance(g, DistGraph):
            _leave_out_workers(options)
        if data is g:
            data = FeatureStore(g), GraphStore(g)
        if not is_pyg(data) and isinstance(data[0], FeatureStore):
            options["transform"] = _Completed(data[0], after)
        kind, seeds = self._read_seeds(g, options[self._seeds])
        # a loader of PyG takes seeds without a type alone, but ends of edges with two stores
        alone = kind is None and (is_pyg(data) or seeds.ndim == 1)
        options[self._seeds] = seeds if alone else (kind, seeds)
        if not (seeds.any() if seeds.dtype is torch.bool else seeds.numel()):
            options.pop("shuffle", None)  # torch refuses to shuffle nothing
        self._is_split = bool(options.keys() & {"sampler", "batch_sampler"})
        self._draws = options.get("generator")  # None: torch.manual_seed decides, as in PyG
        options["generator"] = self._draws or torch.Generator()
        options |= {"filter_per_worker": True, self._sampler: sampler}
        cast(Any, super()).__init__(data=data, **options)
        if prefetch is None:  # a user's functions may not be thread-safe
            parts = [self, sampler, *(data if isinstance(data, tuple | list) else [data])]
            own = after or options["transform_sampler_output"] or not all(map(_is_library, parts))
            prefetch = 0 if own else _PREFETCH
        self._engine = _Engine(self, g, seed, prefetch)

    @classmethod
    def _read_seeds(cls, g: Graph | DistGraph, given: Any) -> tuple[Any, torch.Tensor]:
        """Return type, or None, and the seeds: IDs or a mask of nodes, or both ends of edges."""
        raise NotImplementedError

    @classmethod
    def _of_type(cls, g: Graph | DistGraph, kind: Any, seeds: Any, count: Any, split: Any) -> Any:
        """Return seeds of a type as a tensor: by default all, or this trainer's share of them."""
        if is_typed(g) != (kind is not None):
            raise InvalidInput(
                f"{cls._seeds} is a type, or (type, seeds), where the graph has types, and seeds "
                f"alone where it has none; the types are {g.ntypes} and {g.canonical_etypes}"
            )
        given, seeds = seeds, torch.arange(count(kind)) if seeds is None else seeds
        if isinstance(g, DistGraph) and (given is None or isinstance(given, DistTensor)):
            seeds = split(seeds, g.get_partition_book(), *filter(None, [kind]))
        return as_tensor(seeds, cls._seeds)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        if not self._is_split and isinstance(self._engine.graph, Graph):
            warn_of_ranks(f"take a share of {self._seeds} on each, ids[rank::ranks]")
        batches = iter(self._engine)
        if self.pin_memory and accelerators.kind() is not None:
            return (batch.pin_memory() for batch in batches)
        return batches

    def __getstate__(self) -> dict[str, Any]:
        # What another process needs to make a batch of given seeds.
        left_out = ("_engine", "_draws", "generator", "sampler", "batch_sampler")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}


class _Engine(Loader):
    """gnnlab's loader, which has batches made in threads and processes; the batches are PyG's."""

    def __init__(self, loader: Any, graph: Any, seed: int | None, prefetch: int) -> None:
        how = {name: getattr(loader, name) for name in WORKER_OPTIONS}
        workers = Workers(loader.num_workers, how) if loader.num_workers else None
        positions = Seeds({"": torch.arange(len(loader.dataset))}, typed=False)
        super().__init__(positions, seed=seed, workers=workers, prefetch=prefetch)
        self.loader, self.graph = loader, graph

    def recipe(self, tasks: Sequence[Task]) -> Recipe:
        """Return how the batches of an epoch are made."""
        return _OfPyG(self.loader, self.graph)

    def executor(self) -> Executor:
        """Return what makes the batches."""
        return executor_of_job(super().executor())

    def key_of_epoch(self, epoch: int) -> int:
        """Return a key from ``seed``, or from the generator that decides in PyG."""
        if self.seed is not None:
            return fold(self.seed, epoch)
        return int(torch.empty((), dtype=torch.int64).random_(generator=self.loader._draws))

    def seeds_of_batches(self, key: int) -> Iterator[Any]:
        """Yield what PyG's samplers choose."""
        loader = self.loader
        if loader._draws is None or self.seed is not None:
            loader.generator.manual_seed(key & (2**63 - 1))
        single = loader.batch_sampler is None
        yield from ([each] for each in loader.sampler) if single else loader.batch_sampler


class _OfPyG(Recipe):
    """The mini-batch of some positions in the seeds of a loader, made by that loader."""

    def __init__(self, loader: Any, graph: Any) -> None:
        self.loader, self.graphs = loader, [graph]

    def draw(self, seeds: Any) -> Any:
        """Have the loader make a batch."""
        return self.loader(seeds)

    def reads(self) -> list[torch.Tensor]:
        """Return all tensors of the data."""
        data = self.loader.data
        if is_pyg(data):
            return [x for store in data.stores for x in store.values() if torch.is_tensor(x)]
        return data[0].tensors() if isinstance(data[0], FeatureStore) else []  # else unknown


class _Completed:
    """Adds what PyG leaves out with a feature store: counts of nodes, and edge features."""

    def __init__(self, store: FeatureStore, after: Any) -> None:
        self.store, self.after = store, after

    def __call__(self, data: Any) -> Any:
        g, typed, wanted = self.store.graph, is_typed(self.store.graph), []
        for ntype in g.ntypes:
            nodes = data[ntype] if typed else data
            nodes.num_nodes = len(nodes.n_id)
        for etype, frame in g.edge_frames.items():
            edges = data[etype] if typed else data
            if "e_id" in edges:
                group = etype if typed else ONE_ETYPE
                wanted += [(edges, TensorAttr(group, name, edges.e_id)) for name in frame]
        values = self.store.multi_get_tensor([attr for _, attr in wanted])
        for (edges, attr), value in zip(wanted, values, strict=True):
            edges[attr.attr_name] = value
        return data if self.after is None else self.after(data)


def _is_library(part: Any) -> bool:
    own = type(part).__module__.startswith(("gnnlab.", "torch_geometric."))
    return own or vars(type(part)).get("pure", False)


def _leave_out_workers(options: dict[str, Any]) -> None:
    if options.get("num_workers") and context.samplers() is None:
        warnings.warn(
            "worker processes cannot share the connections of a DistGraph: num_workers="
            f"{options['num_workers']} has no effect. gnnlab launch --num_samplers N starts "
            "processes that sample ahead, with the same batches",
            stacklevel=3,
        )
    for name in ("num_workers", *WORKER_OPTIONS):
        options.pop(name, None)


class NeighborLoader(_Loader, pyg.NodeLoader):
    """PyG's ``NeighborLoader`` with gnnlab's sampling; the arguments are PyG's, and two more.

    Parameters
    ----------
    input_nodes : tensor, mask, node type, or (node type, tensor or mask), optional
        The seeds; by default all nodes. A mask has dtype bool. On a DistGraph, a mask of its
        features (``g.ndata["train_mask"]``) or no seeds at all mean this trainer's share, of the
        same size for all (:func:`gnnlab.distributed.node_split`); IDs are used as they are.
    seed : int, optional
        Seed of shuffling and sampling: epoch k of two loaders with one seed is the same. By default
        ``torch.manual_seed`` (PyG's ``seed_everything``) decides.
    prefetch : int, optional
        Mini-batches that a thread makes ahead where there are no workers; by default 2, and 0 with
        a transform, or with a loader, sampler, store or data class that is not PyG's or gnnlab's. A
        batch is made again if torch, in this process, has written to ``data`` in the meantime.
    **kwargs
        As PyG's: ``replace``, ``subgraph_type``, ``disjoint``, ``weight_attr``, … of
        :class:`NeighborSampler`, ``transform``, ``batch_size``, ``shuffle``, ``num_workers``, ….
        On a DistGraph, sampler processes of the job take the place of workers.

    Yields
    ------
    Data or HeteroData
        As PyG's: seeds first, then hop by hop; ``n_id``, ``e_id``, ``input_id``, ``batch_size``,
        ``num_sampled_nodes``, ``num_sampled_edges``, and the rows of all features.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from gnnlab.pyg import NeighborLoader
    >>> edges = torch.tensor([[1, 2, 3, 0], [0, 0, 1, 3]])
    >>> data = Data(x=torch.eye(4), edge_index=edges)
    >>> loader = NeighborLoader(data, num_neighbors=[2, 2], input_nodes=[0, 1], batch_size=2)
    >>> batch = next(iter(loader))
    >>> batch.n_id, batch.x.shape, batch.num_sampled_nodes
    (tensor([0, 1, 2, 3]), torch.Size([4, 4]), [2, 2, 0])
    """

    _like, _seeds, _sampler = pyg.NeighborLoader, "input_nodes", "node_sampler"

    @classmethod
    def _read_seeds(cls, g: Graph | DistGraph, given: Any) -> tuple[Any, torch.Tensor]:
        ntype, nodes = (given, None) if isinstance(given, str) else (None, given)
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
            ntype, nodes = given
        nodes = cls._of_type(g, ntype, nodes, g.num_nodes, node_split)
        ids = read_ids(nodes, g.num_nodes(ntype), "node", distinct=True)
        return ntype, nodes if nodes.dtype is torch.bool else ids  # a mask decides input_id


class LinkNeighborLoader(_Loader, pyg.LinkLoader):
    """PyG's ``LinkNeighborLoader`` with gnnlab's sampling; the arguments are PyG's, and two more.

    Parameters
    ----------
    data, num_neighbors, seed, prefetch, **kwargs
        As for :class:`NeighborLoader`, and ``edge_label``, ``neg_sampling``, … as PyG's. Negative
        pairs are drawn from all nodes and may be edges.
    edge_label_index : tensor, edge type, or (edge type, tensor), optional
        The ends of the seed edges, shape (2, B); by default all edges. Also edge IDs, shape (B,),
        or a mask of edges; on a DistGraph, a mask of its features or no edges at all mean this
        trainer's share, of the same size for all trainers.
    """

    _like, _seeds, _sampler = pyg.LinkNeighborLoader, "edge_label_index", "link_sampler"

    @classmethod
    def _read_seeds(cls, g: Graph | DistGraph, given: Any) -> tuple[Any, torch.Tensor]:
        etype, edges = None, given
        if isinstance(given, tuple | list) and given:
            if isinstance(given[0], str):
                etype, edges = tuple(given), None
            elif given[0] is None:
                edges = given[1]
            elif isinstance(given[0], tuple | list) and isinstance((*given[0], 0)[0], str):
                etype, edges = tuple(given[0]), given[1]
        if etype and len(etype) == 2:  # PyG also takes (source type, destination type)
            found = [each for each in g.canonical_etypes if each[::2] == etype]
            etype = found[0] if len(found) == 1 else etype
        name: Any = etype and g.to_canonical_etype(etype)
        if isinstance(edges, tuple | list) and all(map(torch.is_tensor, edges)) and edges:
            edges = torch.stack(tuple(edges))
        ends = cls._of_type(g, name, edges, g.num_edges, edge_split)
        if ends.ndim == 1:
            ids = read_ids(ends, g.num_edges(name), "edge", distinct=True)
            ends = torch.stack(g.find_edges(ids, etype=name))
        if ends.ndim != 2 or len(ends) != 2 or ends.dtype is torch.bool:
            raise InvalidInput(
                "edge_label_index has the two ends of each edge, shape (2, B), edge IDs, or a mask "
                f"of edges; found {ends.dtype} of shape {tuple(ends.shape)}"
            )
        ntypes = (name or g.canonical_etypes[0])[::2]
        read = [read_ids(e, g.num_nodes(t), "node") for e, t in zip(ends, ntypes, strict=True)]
        return name, torch.stack(read).long()
