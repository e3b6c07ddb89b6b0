"""Give each rank of a data parallel training its mini-batches, with torch alone.

Origin:  gnnlab/helpers/ddp_loader.py
Version: gnnlab 0.1.0
License: Apache-2.0
Needs:   Python 3.11 or newer, torch 2.8 or newer

DistributedDataParallel (DDP) averages the gradients of all ranks in every step. For k ranks with b
seeds each to do what one process with k·b seeds does, `DDPLoader` ensures three conditions:

* all ranks shuffle in the same order: that of an epoch is a function of (seed, epoch);
* shares are disjoint and of one size: rank r takes the seeds r, r + k, r + 2k, … of that order, so
  that step i of all ranks together has the seeds of step i of one process;
* all ranks make the same number of steps: a rank with one more would wait for ever for gradients
  of ranks that have finished. If the seeds cannot be shared evenly, the first are repeated, or the
  last are left out (``drop_last``).

A sampler is any object with ``sample(g, seeds)``. If `sample` has a parameter ``key``, it gets
``fold(fold(seed, epoch), batch)``, an integer below 2**64, where ``batch`` counts from 0 in each
epoch on every rank. Such a sampler is `BlockSampler` of block_sampler.py, the file beside this one.

>>> import torch
>>> class WithoutNeighbors:
...     def sample(self, g, seeds):
...         return seeds
>>> for rank in range(2):
...     loader = DDPLoader(None, torch.arange(10), WithoutNeighbors(), batch_size=3, shuffle=False,
...                        rank=rank, world_size=2)
...     print(len(loader), [batch.tolist() for batch in loader])
2 [[0, 2, 4], [6, 8]]
2 [[1, 3, 5], [7, 9]]

A whole run of two ranks on one machine. With GPUs: "nccl", and a model and batches on
``cuda:{rank}``. On Windows, which cannot fork, and with GPUs, write this into a file and use
``torch.multiprocessing.spawn``; on several machines, `torchrun` starts the ranks.

>>> def train(rank, world_size, file):
...     dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=world_size)
...     model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
...     for seeds in DDPLoader(None, torch.arange(10), WithoutNeighbors(), batch_size=3):
...         optimizer.zero_grad()
...         model(seeds[:, None].float()).mean().backward()  # averages gradients of all ranks
...         optimizer.step()
...     del model  # it holds the group; if the group ends before it, torch may wait for ever
...     dist.destroy_process_group()
>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> ranks = []
>>> if "fork" in torch.multiprocessing.get_all_start_methods():
...     start = torch.multiprocessing.get_context("fork").Process
...     ranks = [start(target=train, args=(rank, 2, f"{folder.name}/meeting"))
...              for rank in range(2)]
>>> for process in ranks:
...     process.start()
>>> for process in ranks:
...     process.join()
>>> all(process.exitcode == 0 for process in ranks)
True

References
----------
Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
"""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["DDPLoader", "RankSampler", "fold", "rank_share"]

_MASK, _GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


def fold(*parts: int) -> int:
    """Hash integers into one 64-bit integer; their order matters (splitmix64)."""
    z = 0
    for part in parts:
        z = (z + int(part) + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
    return z


def share_size(count: int, world_size: int, drop_last: bool) -> int:
    """Return how many of ``count`` seeds each rank gets: the same for all ranks."""
    return count // world_size if drop_last else -(-count // world_size)


def rank_share(
    count: int,
    rank: int,
    world_size: int,
    *,
    shuffle: bool = True,
    drop_last: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> torch.Tensor:
    """Return the positions of one rank's seeds in an epoch, in order.

    Parameters
    ----------
    count, rank, world_size, seed, epoch : int
        ``count`` is the number of seeds of all ranks.
    shuffle : bool
        Shuffle all seeds by (seed, epoch) before they are shared.
    drop_last : bool
        Leave out the last ``count % world_size`` seeds; by default the first ones are repeated, so
        that all shares have one size.

    Returns
    -------
    torch.Tensor
        Shape (count / world_size,), rounded up, or down with ``drop_last``; int64.

    Examples
    --------
    >>> [rank_share(5, rank, 2, shuffle=False).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """
    _check_rank(rank, world_size)
    order = torch.arange(count)
    if shuffle:
        generator = torch.Generator().manual_seed(fold(seed, epoch) & (2**63 - 1))
        order = torch.randperm(count, generator=generator)
    total = share_size(count, world_size, drop_last) * world_size
    return order[torch.arange(total)[rank::world_size] % max(count, 1)]


class RankSampler(torch.utils.data.Sampler[int]):
    """One rank's share of a data set, for torch's own DataLoader.

    ``data`` is anything with the length of the data set. Pass both ``rank`` and ``world_size``, or
    neither for those of the process group. The rest is as in :func:`rank_share`.

    Examples
    --------
    >>> data = torch.arange(100, 106)
    >>> sampler = RankSampler(data, rank=1, world_size=2, shuffle=False)
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(data, 2, sampler=sampler)]
    [[101, 103], [105]]
    """

    def __init__(
        self,
        data: Any,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        self.count, self.epoch = len(data), 0
        self.rank, self.world_size = _read_rank(rank, world_size)
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; without a call, each iteration adds 1 to it."""
        self.epoch = int(epoch)

    def positions(self) -> torch.Tensor:
        """Return this rank's positions in the epoch, shape (len(self),), int64."""
        return rank_share(
            *(self.count, self.rank, self.world_size),
            shuffle=self.shuffle,
            drop_last=self.drop_last,
            seed=self.seed,
            epoch=self.epoch,
        )

    def __iter__(self) -> Iterator[int]:
        positions = self.positions().tolist()
        self.epoch += 1
        return iter(positions)

    def __len__(self) -> int:
        return share_size(self.count, self.world_size, self.drop_last)


class DDPLoader:
    """Iterate over the mini-batches of one rank.

    Parameters
    ----------
    g : Any
        The graph that ``sampler.sample`` gets.
    indices : torch.Tensor
        Shape (N,), int64: seeds of all ranks, the same on each; distinct for BlockSampler.
    sampler : Any
        Has ``sample(g, seeds)`` or ``sample(g, seeds, key)``.
    batch_size : int
        Seeds per step and rank.
    rank, world_size : int, optional
        Pass both, or neither for those of the process group. In the latter case, all ranks must
        make the loader: they compare its arguments; with NCCL, after ``torch.cuda.set_device``.
    shuffle, drop_last, seed
        As in :func:`rank_share`. ``drop_last`` also leaves out a last batch that is not full.
    node_feats, labels : sequence of str
        Names of features that are put on the first block's ``srcdata`` and on the last block's
        ``dstdata``.
    features : mapping of str to torch.Tensor, optional
        Tables of ``node_feats`` and ``labels``, one row per node; by default ``g.ndata``.
    device : torch.device, optional
        To which mini-batches are moved.
    prefetch : int
        How many mini-batches a thread makes in advance; 0 for none, which repeatable runs need if
        the sampler has no ``key`` and draws from torch's global generator.

    Yields
    ------
    Any
        What the sampler returns. Features need ``(input_nodes, output_nodes, blocks)``.

    Raises
    ------
    ValueError
        The ranks do not agree, or an argument cannot be used; the message says how to go on.

    Examples
    --------
    A training loop, the same on every rank; ``torchrun --nproc_per_node 2 train.py`` starts two::

        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
        loader = DDPLoader(g, train_idx, NeighborSampler([10, 5]), batch_size=256,
                           node_feats=["feat"], labels=["label"])
        for epoch in range(10):
            loader.set_epoch(epoch)
            for input_nodes, output_nodes, blocks in loader:
                predicted = model(blocks, blocks[0].srcdata["feat"])
                loss = torch.nn.functional.cross_entropy(predicted, blocks[-1].dstdata["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    """

    def __init__(
        self,
        g: Any,
        indices: Any,
        sampler: Any,
        batch_size: int,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
        node_feats: Sequence[str] = (),
        labels: Sequence[str] = (),
        features: Mapping[str, torch.Tensor] | None = None,
        device: Any = None,
        prefetch: int = 2,
    ) -> None:
        self.g, self.sampler, self.prefetch = g, sampler, prefetch
        # Read here: in the thread that makes batches, "cuda" would be GPU 0.
        self.device = None if device is None else torch.empty(0, device=device).device
        self.indices, self.batch_size = torch.as_tensor(indices), batch_size
        self.features = getattr(g, "ndata", {}) if features is None else features
        self.node_feats, self.labels = node_feats, labels
        self._share = RankSampler(
            self.indices.ravel(), rank, world_size, shuffle=shuffle, drop_last=drop_last, seed=seed
        )
        problem = self._problem()
        if rank is None and self._share.world_size > 1:  # all raise, or else the others would hang
            ids = self.indices.cpu().long().flatten()
            checksum = int((ids * torch.arange(1, len(ids) + 1) ** 2).sum())
            numbers = (len(ids), checksum, batch_size, seed, shuffle, drop_last)
            problem = _first_problem(problem, numbers, self._share.world_size)
        if problem:
            raise ValueError(problem)
        self._takes_key = "key" in inspect.signature(sampler.sample).parameters

    def _problem(self) -> str | None:
        ids, size = self.indices, self.batch_size
        if ids.dtype is torch.bool:
            return "indices is a mask; pass IDs: mask.nonzero().flatten()"
        if ids.dim() != 1 or (ids.is_floating_point() and len(ids)):
            return f"indices must be integers of shape (N,); found {ids.dtype}, {tuple(ids.shape)}"
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            return f"batch_size must be an integer from 1; found {size!r}"
        if not isinstance(self.prefetch, int) or self.prefetch < 0:
            return f"prefetch must be an integer from 0; found {self.prefetch!r}"
        if isinstance(self.sampler, type) or not hasattr(self.sampler, "sample"):
            return f"sampler must be an object with sample(g, seeds); found {self.sampler!r}"
        if isinstance(self.node_feats, str) or isinstance(self.labels, str):
            return f"names come in lists; found {self.node_feats!r} and {self.labels!r}"
        missing = [n for n in (*self.node_feats, *self.labels) if n not in self.features]
        return f"no features {missing}, only {sorted(self.features)}" if missing else None

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration; without a call, each iteration adds 1 to it."""
        self._share.set_epoch(epoch)

    def __len__(self) -> int:
        """Number of mini-batches of an epoch, the same on every rank."""
        seeds = len(self._share)
        return seeds // self.batch_size if self._share.drop_last else -(-seeds // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        epoch_key = fold(self._share.seed, self._share.epoch)
        batches = self.indices[self._share.positions()].split(int(self.batch_size))[: len(self)]
        self._share.epoch += 1
        tasks = [(fold(epoch_key, number), seeds) for number, seeds in enumerate(batches)]
        return self._ahead(tasks) if self.prefetch else (self._make(*task) for task in tasks)

    def _make(self, key: int, seeds: torch.Tensor) -> Any:
        batch = self.sampler.sample(self.g, seeds, **({"key": key} if self._takes_key else {}))
        if self.node_feats or self.labels:
            input_nodes, output_nodes, blocks = batch
            for name in self.node_feats:
                blocks[0].srcdata[name] = self.features[name][input_nodes]
            for name in self.labels:
                blocks[-1].dstdata[name] = self.features[name][output_nodes]
        return batch if self.device is None else _moved(batch, self.device)

    def _ahead(self, tasks: list[Any]) -> Iterator[Any]:
        """Make batches in a thread: torch's operators release Python's global lock (the GIL)."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="ddp-loader")
        waiting: deque[Future[Any]] = deque()
        try:
            for number in range(len(tasks) + self.prefetch):
                if number < len(tasks):
                    waiting.append(thread.submit(self._make, *tasks[number]))
                if number >= self.prefetch:
                    yield waiting.popleft().result()
        finally:  # also when the caller's loop ends early; a thread cannot join itself
            wait = not threading.current_thread().name.startswith("ddp-loader")
            thread.shutdown(wait=wait, cancel_futures=True)


def _read_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if rank is None and world_size is None:
        if not dist.is_initialized():
            raise ValueError(
                "there is no process group: call torch.distributed.init_process_group() first, or "
                "pass rank and world_size (0 and 1 for a single process)"
            )
        rank, world_size = dist.get_rank(), dist.get_world_size()
    _check_rank(rank, world_size)
    return int(rank or 0), int(world_size or 1)


def _check_rank(rank: Any, world_size: Any) -> None:
    if not isinstance(rank, int) or not isinstance(world_size, int) or not 0 <= rank < world_size:
        raise ValueError(f"expected int, 0 <= rank < world_size; found {rank!r}, {world_size!r}")


def _first_problem(mine: str | None, numbers: Any, world_size: int) -> str | None:
    # Text as a tensor, since torch's all_gather_object needs numpy; of one length on all ranks.
    on = "cpu" if "cpu:" in dist.get_backend_config() else torch.accelerator.current_accelerator()
    said = bytearray((mine or str(numbers)).encode()[:2000].ljust(2000))
    received = [torch.empty(len(said), dtype=torch.uint8, device=on) for _ in range(world_size)]
    dist.all_gather(received, torch.frombuffer(said, dtype=torch.uint8).to(on))
    found = [bytes(text.tolist()).decode(errors="replace").strip() for text in received]
    if mine or len(set(found)) == 1:
        return mine
    names = "number of seeds, checksum of the seeds, batch_size, seed, shuffle, drop_last"
    each = "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(found))
    return f"the ranks would make different steps and hang; pass all the same ({names}): {each}"


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, dict):
        return {name: _moved(part, device) for name, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_moved(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch.to(device) if hasattr(batch, "to") else batch
