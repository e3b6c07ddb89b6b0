"""Mini-batches from torch's own DataLoader: of whole graphs, and with DGL's older collators.

torch's loader selects items of a data set, and a *collate function* combines them. For data sets of
many small graphs that is :func:`collate_graphs`. The collators make the same mini-batches as the
loaders of this package, for programs that construct torch's DataLoader themselves.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler

from gnnlab import random
from gnnlab.dataloading.edges import EdgePredictionSampler
from gnnlab.dataloading.epochs import warn_of_ranks
from gnnlab.dataloading.executors import received
from gnnlab.dataloading.recipe import GraphRecipe
from gnnlab.dataloading.seeds import read_indices
from gnnlab.errors import InvalidInput, check_graph
from gnnlab.graph.batch import batch
from gnnlab.graph.graph import Graph
from gnnlab.multiprocessing import check_sockets, raise_file_limit
from gnnlab.system.ending import await_torch_at_exit


def collate_graphs(items: Sequence[Any]) -> Any:
    """Combine several items: graphs are batched, tensors and numbers stacked, tuples zipped.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab.dataloading.collate import collate_graphs
    >>> both, labels = collate_graphs([(dgl.graph(([0], [1])), 3), (dgl.graph(([1], [0])), 4)])
    >>> both.num_nodes(), labels
    (4, tensor([3, 4]))
    """
    first = items[0]
    if isinstance(first, Graph):
        return batch(items)
    if isinstance(first, Mapping):
        return {name: collate_graphs([item[name] for item in items]) for name in first}
    if isinstance(first, list | tuple):
        return tuple(collate_graphs(part) for part in zip(*items, strict=True))
    return torch.utils.data.default_collate(list(items))


class GraphDataLoader(torch.utils.data.DataLoader[Any]):
    """Iterate over a data set of many graphs, with several graphs per mini-batch.

    Parameters
    ----------
    dataset : sequence
        Graphs, or tuples of a graph and labels.
    collate_fn : callable, optional
        :func:`collate_graphs` by default.
    use_ddp : bool
        Split the data set among the ranks of ``torch.distributed``; without it, a warning.
    ddp_seed : int
        Seed of the shuffle, the same on all ranks.
    **kwargs
        ``batch_size``, ``shuffle``, ``drop_last``, … as for :class:`torch.utils.data.DataLoader`.
        Without ``generator``, shuffling depends on :func:`gnnlab.seed`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dataset = [(dgl.rand_graph(n, 10), n) for n in (3, 4, 5)]
    >>> for graphs, labels in dgl.dataloading.GraphDataLoader(dataset, batch_size=2):
    ...     print(graphs.num_nodes(), labels)
    7 tensor([3, 4])
    5 tensor([5])

    References
    ----------
    DGL user guide, chapter 5.4, "Graph Classification".
    """

    def __init__(
        self,
        dataset: Any,
        collate_fn: Any = None,
        use_ddp: bool = False,
        ddp_seed: int = 0,
        **kwargs: Any,
    ) -> None:
        if isinstance(dataset, Graph):
            raise InvalidInput(
                "GraphDataLoader takes a data set or a list of graphs; found one graph. For "
                "mini-batches of its nodes or edges use DataLoader"
            )
        self._key = random.next_key()
        if use_ddp:
            await_torch_at_exit()
            kwargs["sampler"] = DistributedSampler(
                dataset,
                shuffle=kwargs.pop("shuffle", False),
                seed=ddp_seed,
                drop_last=kwargs.get("drop_last", False),
            )
        if hasattr(dataset, "__len__") and not len(dataset):
            warnings.warn("the data set is empty, so the loader has no mini-batch", stacklevel=2)
            kwargs.pop("shuffle", None)  # torch refuses to shuffle nothing
        kwargs.setdefault("generator", torch.Generator().manual_seed(self._key >> 1))
        super().__init__(dataset, collate_fn=collate_fn or collate_graphs, **kwargs)
        if kwargs.get("drop_last") and len(dataset) and not len(self):
            warnings.warn(
                f"drop_last leaves out the only mini-batch, of {len(dataset)} graphs; take smaller "
                "batches, or do without it",
                stacklevel=2,
            )
        self._is_split = bool(use_ddp or kwargs.keys() & {"sampler", "batch_sampler"})
        self._iteration: Any = None  # a weak reference to that of the persistent workers
        if self.num_workers:
            check_sockets()
            raise_file_limit()  # each tensor of a batch is an open file

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        if not self._is_split:
            warn_of_ranks("use_ddp=True splits the data set")
        if not self.num_workers:
            return super().__iter__()
        other = self._iteration and self._iteration()
        if self.persistent_workers and other is not None and other.gi_frame is not None:
            return received(self._get_iterator())  # with workers of its own
        batches = received(super().__iter__())
        self._iteration = weakref.ref(batches)
        return batches

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iteration": None}

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, on which its shuffle depends."""
        if isinstance(self.sampler, DistributedSampler):
            self.sampler.set_epoch(epoch)
        else:
            self.generator.manual_seed(random.fold(self._key, epoch) >> 1)


class NodeCollator:
    """Make mini-batches of nodes in torch's DataLoader; :class:`DataLoader` is faster.

    Parameters
    ----------
    g : Graph or DistGraph
    nids : tensor, numpy array, list, or dict of them by node type
    graph_sampler : Sampler

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from torch.utils.data import DataLoader
    >>> g = dgl.rand_graph(10, 50)
    >>> nodes = dgl.dataloading.NodeCollator(g, range(10), dgl.dataloading.NeighborSampler([2]))
    >>> loader = DataLoader(nodes.dataset, batch_size=5, collate_fn=nodes.collate)
    >>> for input_nodes, output_nodes, blocks in loader:
    ...     print(output_nodes)
    tensor([0, 1, 2, 3, 4])
    tensor([5, 6, 7, 8, 9])
    """

    def __init__(self, g: Graph, nids: Any, graph_sampler: Any) -> None:
        check_graph(g, type(self).__name__)
        self.g, self.graph_sampler = g, graph_sampler
        self._recipe = GraphRecipe([g], graph_sampler, g.device)
        #: One item per seed: an ID, or (type, ID) if seeds are given by type.
        self.dataset: Any = read_indices(g, nids).items()

    def collate(self, items: Sequence[Any]) -> Any:
        """Make a mini-batch from items of :attr:`dataset`."""
        ids: Any
        if isinstance(items[0], tuple):
            ids = {}
            for name, i in items:
                ids.setdefault(name, []).append(i)
        else:
            ids = torch.as_tensor([int(i) for i in items])
        return self._recipe.complete(self.graph_sampler.sample(self.g, ids))


class EdgeCollator(NodeCollator):
    """Make mini-batches of edges in torch's DataLoader; :class:`EdgeDataLoader` is faster.

    Parameters
    ----------
    g : Graph
    eids : tensor, numpy array, list, or dict of them by edge type
    graph_sampler : Sampler
    g_sampling, exclude, reverse_eids, reverse_etypes, negative_sampler
        As for :class:`EdgeDataLoader`.
    """

    def __init__(
        self,
        g: Graph,
        eids: Any,
        graph_sampler: Any,
        g_sampling: Graph | None = None,
        exclude: Any = None,
        reverse_eids: Any = None,
        reverse_etypes: Any = None,
        negative_sampler: Any = None,
    ) -> None:
        sampler = EdgePredictionSampler(
            graph_sampler,
            exclude,
            reverse_eids,
            reverse_etypes,
            negative_sampler,
            g_sampling=None if g_sampling is g else g_sampling,
        )
        super().__init__(g, eids, sampler)
        if sampler.g_sampling is not None:
            self._recipe.graphs = [g, sampler.g_sampling]
