"""Mini-batches of whole graphs, for data sets of many small graphs.

torch's own loader selects items of a data set, and :func:`collate_graphs` combines them.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler

from gnnlab import random
from gnnlab.dataloading.epochs import warn_of_ranks
from gnnlab.dataloading.executors import received
from gnnlab.errors import InvalidInput
from gnnlab.graph.batch import batch
from gnnlab.graph.graph import Graph
from gnnlab.multiprocessing import check_sockets, raise_file_limit
from gnnlab.system.ending import await_torch_at_exit


def collate_graphs(items: Sequence[Any]) -> Any:
    """Combine several items: graphs are batched, tensors and numbers stacked, tuples zipped."""
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
    use_ddp, ddp_seed
        Split the data set among the ranks of ``torch.distributed``; without it, a warning. The seed
        of the shuffle is the same on all ranks.
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
            drop_last, shuffle = kwargs.get("drop_last", False), kwargs.pop("shuffle", False)
            how = {"shuffle": shuffle, "seed": ddp_seed, "drop_last": drop_last}
            kwargs["sampler"] = DistributedSampler(dataset, **how)
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
