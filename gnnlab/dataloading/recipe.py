"""Recipes: how a mini-batch is made from its task.

A *task* is the tuple (key of the epoch, number of the batch, seeds), all that a process needs to
sample this batch. A recipe has two steps. :meth:`Recipe.sample` can run in any process that has the
graph; :meth:`Recipe.complete` adds what only the process that trains can add, such as features on
its device. :mod:`gnnlab.dataloading.executors` decides where each step runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import torch

from gnnlab import random, trace
from gnnlab.dataloading.features import attach_features, fetch_ahead, graphs_in, renew
from gnnlab.dataloading.repeats import distinct, repeat
from gnnlab.dataloading.sampler import BlockSampler, check_ids_of, innermost, to_device
from gnnlab.dataloading.transfer import Transfer
from gnnlab.graph.graph import Graph

Task = tuple[int, int, Any]


class Recipe:
    """How mini-batches are made; a subclass defines :meth:`draw`, and more where it needs more."""

    graphs: Sequence[Any] = ()  # what the batches are sampled from
    transfer: Transfer | None = None  # the way to a GPU

    def draw(self, seeds: Any) -> Any:
        """Sample a batch; its random numbers are those of the task."""
        raise NotImplementedError

    def sample(self, task: Task) -> Any:
        """Sample the batch of a task."""
        key, number, seeds = task
        with trace.span("sample", number), random.stream(key, number):
            return self.draw(seeds)

    def complete(self, batch: Any) -> Any:
        """Return a sampled batch with all that the program expects."""
        return batch

    def __call__(self, task: Task) -> Any:
        """Make the whole batch of a task."""
        return self.complete(self.sample(task))

    def reads(self) -> list[torch.Tensor]:
        """Return the tensors that sampling reads; after a write to them it is done again."""
        return []

    def renew(self, batch: Any) -> None:
        """Add features that have changed since the batch was completed."""

    def on_cpu(self) -> Self:
        """Return the recipe for a process without the device."""
        return self


class GraphRecipe(Recipe):
    """Mini-batches of a sampler, with features, on a device.

    Of two graphs, the last part of a batch is sampled from the second one.
    """

    def __init__(
        self,
        graphs: Sequence[Any],
        sampler: Any,
        device: torch.device,
        transfer: Transfer | None = None,
        draws: bool = False,
    ) -> None:
        self.graphs, self.sampler, self.draws = graphs, sampler, draws
        self.device, self.transfer = device, transfer

    def draw(self, seeds: Any) -> Any:
        """Call the sampler, with distinct seeds if it makes blocks, and check IDs of its graphs."""
        found: dict[str, Any] = {}
        # On a GPU, the host would wait for each search; so only for seeds that a sampler draws.
        is_searched = self.draws or self.graphs[0].device.type == "cpu"
        if is_searched and isinstance(self.sampler, BlockSampler):
            seeds, found = distinct(seeds)
        batch = self.sampler.sample(self.graphs[0], seeds)
        batch = repeat(batch, found) if found else batch
        for part in graphs_in(batch):
            check_ids_of(self.graphs[0], part, "a graph of the mini-batch")
        return batch

    def complete(self, batch: Any) -> Any:
        """Move a batch to the device, add features, and fetch those that the sampler named."""
        moved, home, transfer = batch, self.graphs[0].device, None
        if self.device.type != "cpu" or home.type != "cpu":
            transfer = self.transfer
            with trace.span("copy"):
                if transfer is not None and home.type == "cpu":
                    moved = transfer.move(batch)
                else:
                    moved = to_device(batch, self.device)
        self._attach(moved, batch, transfer and transfer.rows)
        fetch_ahead(moved)
        return moved

    def _attach(self, batch: Any, sampled: Any, fetch: Any = None) -> None:
        if len(self.graphs) == 1:
            attach_features(self.graphs[0], batch, sampled, fetch)
        else:
            attach_features(self.graphs[0], batch[:-1], sampled[:-1], fetch)
            attach_features(self.graphs[1], batch[-1], sampled[-1], fetch)

    def reads(self) -> list[torch.Tensor]:
        """Return the weights and times of edges, and the times of nodes."""
        sampler = innermost(self.sampler)
        names = [getattr(sampler, "prob", None), getattr(sampler, "time", None)]
        return [
            frame[name]
            for graph in self.graphs
            if isinstance(graph, Graph)
            for name in names
            if isinstance(name, str)
            for frame in (*graph.edge_frames.values(), *graph.node_frames().values())
            if name in frame
        ]

    def renew(self, batch: Any) -> None:
        """Add new features, and fetch those again that have changed."""
        self._attach(batch, batch)
        renew(batch)

    def on_cpu(self) -> Self:
        """Return the recipe with the CPU as device."""
        there = copy(self)
        there.device, there.transfer = torch.device("cpu"), None
        return there
