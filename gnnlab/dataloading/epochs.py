"""Epochs: what all loaders share.

A loader takes a key for each epoch, shuffles the seeds with it and splits them into batches. An
executor makes them, each from its task: (key of the epoch, number of the batch, seeds).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import random, trace
from gnnlab.dataloading import executors
from gnnlab.dataloading.executors import Executor, Inline, Thread, Workers
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.ids import as_integers
from gnnlab.graph.relation import check_ids
from gnnlab.helpers.ddp_loader import rank_share, share_size
from gnnlab.system.ending import await_torch_at_exit

_has_warned = False  # of ranks with the same seeds


class Position:
    """The epoch of a loader, and how many of its batches have been returned.

    A batch is a function of (key of the epoch, number of the batch). So a loader that loads a
    position resumes in the middle of an epoch with the same batches.
    """

    def __init__(self) -> None:
        self._next: tuple[int, int, int | None] = (0, 0, None)  # epoch, batch, key
        self._current: list[int] | None = None  # the same of the epoch that is being iterated

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch; if that is the epoch to be resumed, resume it."""
        if epoch != self._next[0]:
            self._next = (epoch, 0, None)

    def begin(self, make_key: Callable[[int], int]) -> tuple[int, int]:
        """Begin or resume the next epoch; return its key and the number of its first batch."""
        epoch, first, key = self._next
        if key is None:
            key = make_key(epoch)
        self._next = (epoch + 1, 0, None)
        self._current = [epoch, first, key]
        return key, first

    def count(self, batches: Iterator[Any], number: int) -> Iterator[Any]:
        """Yield ``number`` batches; the epoch ends with them, or when the loop is left early."""
        return self._count(batches, number, self._current or [])

    def _count(self, batches: Iterator[Any], number: int, current: list[int]) -> Iterator[Any]:
        try:
            for _ in range(number):
                current[1] += 1
                yield next(batches)  # no variable: it would keep the batch alive
        finally:
            if self._current is current:
                self._current = None

    def state(self) -> dict[str, Any]:
        """Return the position as plain values."""
        return dict(zip(("epoch", "batch", "key"), self._current or self._next, strict=True))

    def load(self, state: Mapping[str, Any]) -> None:
        """Load the position of another loader; the next iteration yields the rest of its epoch."""
        try:
            epoch, batch, key = int(state["epoch"]), int(state["batch"]), state["key"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"not the state of a loader: {error!r} in {state!r}") from None
        self._next, self._current = (epoch, batch, key), None


class Loader:
    """Iterate over the mini-batches of an epoch; a subclass defines :meth:`recipe`.

    The arguments are those of :class:`gnnlab.dataloading.DataLoader`; ``indices`` are Seeds.
    """

    def __init__(
        self,
        indices: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = None,
        *,
        use_ddp: bool | tuple[int, int] = False,
        ddp_seed: int = 0,
        sampler: Any = None,
        workers: Workers | None = None,
        prefetch: int = 0,
    ) -> None:
        for name, switch in ("shuffle", shuffle), ("drop_last", drop_last):
            if not isinstance(switch, bool | int | np.bool_):
                raise InvalidInput(f"{name} must be True or False; found {switch!r}")
        self.indices, self.batch_size = indices, whole_number(batch_size, "batch_size", 1)
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.use_ddp, self.ddp_seed = use_ddp, ddp_seed
        drawn = all(hasattr(sampler, name) for name in ("__iter__", "__len__"))
        if sampler is not None and (shuffle or not drawn):
            raise InvalidInput(
                "sampler= draws positions of seeds and replaces shuffle, such as "
                f"torch.utils.data.WeightedRandomSampler; found {type(sampler).__name__} and "
                f"shuffle={shuffle}. What makes mini-batches of the seeds is graph_sampler"
            )
        self.sampler, self._num_seeds = sampler, len(indices if sampler is None else sampler)
        self.prefetch = whole_number(prefetch, "prefetch", 0)
        self._workers, self._position = workers, Position()
        if not len(indices):
            warnings.warn("there are no seeds, so the loader has no mini-batch", stacklevel=3)
        elif drop_last and self._num_seeds < self.batch_size:
            warnings.warn(
                f"drop_last leaves out the only mini-batch: there are {self._num_seeds} seeds and "
                f"batch_size is {batch_size}. Take smaller batches, or drop_last=False",
                stacklevel=3,
            )

    # ---------------------------------------------------- what subclasses define
    def recipe(self, tasks: Sequence[Task]) -> Recipe:
        """Return how the batches of an epoch are made."""
        raise NotImplementedError

    def executor(self) -> Executor:
        """Return what makes the batches."""
        if self._workers is not None:
            return self._workers
        return Thread(self.prefetch) if self.prefetch else Inline()

    def key_of_epoch(self, epoch: int) -> int:
        """Return the key from which all random numbers of an epoch are computed."""
        seed = self.ddp_seed if self.seed is None and self.use_ddp else self.seed
        return random.next_key() if seed is None else random.fold(seed, epoch)

    def seeds_of_batches(self, key: int) -> Iterator[Any]:
        """Split this rank's share of the (shuffled) seeds into batches."""
        count = self._num_seeds
        order = torch.arange(count) if self.sampler is None else self._draw(key)
        if self.shuffle:
            generator = torch.Generator().manual_seed(key & (2**63 - 1))
            order = torch.randperm(count, generator=generator)
        rank, ranks = self._rank()
        if ranks > 1:
            share = rank_share(count, rank, ranks, shuffle=False, drop_last=self.drop_last)
            order = order[share]
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            yield self.indices.take(order[start : start + self.batch_size])

    def _draw(self, key: int) -> torch.Tensor:
        """Return the positions that ``sampler`` draws with the key as the seed of torch."""
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(key & (2**63 - 1))
            drawn = as_integers(list(self.sampler), "positions from sampler=").long()
        if drawn.shape != (self._num_seeds,):
            raise InvalidInput(
                f"sampler= must yield len(sampler) = {self._num_seeds} positions; found shape "
                f"{tuple(drawn.shape)}"
            )
        check_ids(drawn, len(self.indices), "position from sampler=, of a seed,")
        return drawn

    # -------------------------------------------------------------- iteration
    def __iter__(self) -> Iterator[Any]:
        key, first = self._position.begin(self.key_of_epoch)
        seeds = enumerate(self.seeds_of_batches(key))
        tasks = [(key, number, some) for number, some in seeds][first:]
        batches = executors.choose(self.executor()).run(self.recipe(tasks), tasks)
        return trace.steps(self._position.count(batches, len(tasks)), first)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out epochs that have begun: another process has no use for them."""
        return {name: x for name, x in vars(self).items() if not isinstance(x, Generator)}

    def _rank(self) -> tuple[int, int]:
        """Return (rank, number of ranks)."""
        if not self.use_ddp:
            return 0, 1
        if isinstance(self.use_ddp, tuple):
            rank, ranks = self.use_ddp
            if not 0 <= rank < ranks:
                raise InvalidInput(f"expected 0 <= rank < number of ranks; found {rank}, {ranks}")
            return int(rank), int(ranks)
        if not torch.distributed.is_initialized():
            raise InvalidInput(
                "use_ddp=True needs torch.distributed.init_process_group() to be called before"
            )
        await_torch_at_exit()
        return torch.distributed.get_rank(), torch.distributed.get_world_size()

    def __len__(self) -> int:
        """Number of mini-batches of an epoch (on this rank)."""
        seeds = share_size(self._num_seeds, self._rank()[1], self.drop_last)
        return seeds // self.batch_size if self.drop_last else -(-seeds // self.batch_size)

    # --------------------------------------------------------------- position
    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; by default each iteration begins the next one."""
        self._position.set_epoch(int(epoch))

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader: the epoch, and how many of its batches are done.

        Examples
        --------
        >>> import gnnlab as dgl
        >>> g, sampler = dgl.rand_graph(20, 50), dgl.dataloading.NeighborSampler([2])
        >>> loader = dgl.dataloading.DataLoader(g, range(20), sampler, batch_size=5)
        >>> for number, batch in enumerate(loader):
        ...     if number == 1:
        ...         state = loader.state_dict()
        >>> state["epoch"], state["batch"]
        (0, 2)
        >>> loader.load_state_dict(state)
        >>> [output_nodes.tolist() for input_nodes, output_nodes, blocks in loader]
        [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]
        """
        return {**self._position.state(), "cut": self._batching()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume at the position of another loader of the same batches."""
        if state.get("cut") != self._batching():
            raise InvalidInput(
                f"the state is of a loader with {state.get('cut')}; this one has "
                f"{self._batching()}. Only the same batches can be continued"
            )
        self._position.load(state)

    def _batching(self) -> dict[str, int]:
        """Return the options that, with the key, decide which seeds are in which batch."""
        return {
            "seeds": self._num_seeds,
            "ranks": self._rank()[1],
            "batch_size": self.batch_size,
            "drop_last": int(self.drop_last),
            "shuffle": int(self.shuffle),
        }


def warn_of_ranks(remedy: str) -> None:
    """Warn, once per process, where several ranks would each train on all seeds."""
    global _has_warned
    group = torch.distributed
    if _has_warned or not (group.is_available() and group.is_initialized()):
        return
    if group.get_world_size() > 1 and torch.is_grad_enabled():  # off, it is an evaluation
        _has_warned = True
        warnings.warn(
            f"this process is one of {group.get_world_size()} ranks, and its loader iterates over "
            "all the seeds that it was given. If they are the same on each rank, all ranks train "
            f"on the same mini-batches: {remedy}. Seeds that differ by rank, and evaluation on "
            "each rank, need no change",
            stacklevel=3,
        )
