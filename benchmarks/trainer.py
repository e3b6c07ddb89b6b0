"""Train as ``examples/train_dist.py`` does, and print seconds of epochs and bytes of servers.

    python benchmarks/trainer.py PART_CONFIG BATCH_SIZE EPOCHS

Runs as a trainer or server of a job, or in a simulation. An epoch is eight batches of BATCH_SIZE
nodes, divided among all trainers. With 0 epochs it measures its own work without a network: it
makes one epoch and prints "ready"; for each line on standard input, it works for some seconds and
prints processor seconds of a batch by kind of work.
"""

from __future__ import annotations

import itertools
import json
import runpy
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab.dataloading.executors import Executor, Inline, chosen_by
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.distributed import DistGraph, DistNodeDataLoader
from gnnlab.distributed.context import current
from gnnlab.distributed.sampler_processes import receive, send

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "train_dist.py"
FANOUTS, HIDDEN, STEPS, SECONDS, AHEAD = [5, 10], 64, 8, 6.0, 4


def main(part_config: str, batch_size: int, epochs: int, role: str = "both", line: int = 0) -> None:
    """Join the job and train; in a server, the first line does not return.

    Without epochs, ``role`` is "both", or "trainer" and "sampler" of a pair of processes, of which
    the trainer gets its batches from the sampler through the socket ``line``.
    """
    dgl.distributed.initialize()
    torch.distributed.init_process_group("gloo")
    g = DistGraph("g", part_config=part_config)
    torch.manual_seed(0)
    example = runpy.run_path(str(EXAMPLE), run_name="train_dist")
    classes = int(g.ndata["label"][:].max()) + 1
    sizes = [g.ndata["feat"].shape[1], *[HIDDEN] * (len(FANOUTS) - 1), classes]
    model = dgl.parallel.init_model(example["SAGE"](sizes), torch.device("cpu"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = dgl.dataloading.NeighborSampler(
        FANOUTS, prefetch_node_feats=["feat"], prefetch_labels=["label"]
    )
    train = g.ndata["train_mask"][:].nonzero().flatten()
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    train = train[order[: STEPS * batch_size]]
    each = -(-batch_size // torch.distributed.get_world_size())

    def load(number: int) -> Iterable[Any]:
        nodes = example["share"](train, batch_size, g, number)
        return DistNodeDataLoader(g, nodes, sampler, batch_size=each, seed=number)

    def epoch(batches: Iterable[Any]) -> None:
        total = 0.0
        for _, _, blocks in batches:
            scores = model(blocks, blocks[0].srcdata["feat"])
            loss = F.cross_entropy(scores, blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        dgl.parallel.global_mean(total, STEPS)

    found: dict[str, Any] = {"epochs": []}
    if not epochs:
        measured = _alone(load, epoch) if role == "both" else _in_pair(load, epoch, role, line)
        for found in measured:
            print("FOUND", json.dumps(found), flush=True)
    else:
        for number in range(epochs):
            begin = time.perf_counter()
            epoch(load(number))
            found["epochs"].append(time.perf_counter() - begin)
        g.barrier()
        if g.rank() == 0:
            servers = current().remote.statistics()
            found["servers"] = [
                {kind: list(of[:3]) for kind, of in sorted(server.items()) if kind in _COMPARED}
                for server in servers
            ]
            print("FOUND", json.dumps(found), flush=True)
        g.barrier()


_COMPARED = ("Sample", "Pull")  # messages that mini-batches need: count, bytes in, bytes out


def _alone(
    load: Callable[[int], Iterable[Any]], epoch: Callable[[Iterable[Any]], None]
) -> Iterator[dict[str, float]]:
    """Processor seconds of a batch in the main thread and in the prefetch thread."""
    spent = {"sample": 0.0, "waiting": 0.0}
    epoch(load(0))
    print("ready", flush=True)
    for _ in sys.stdin:
        spent.update(sample=0.0, waiting=0.0)
        with chosen_by(partial(_Timed, spent)):
            number, wall, used = _repeat(lambda number: epoch(load(number)))
        found = {"compute": used, "sample": spent["sample"], "wall": wall}
        found["busy"] = wall - spent["waiting"]  # with what it waits for the interpreter
        yield {kind: seconds / number / STEPS for kind, seconds in found.items()}


class _Timed:
    """A loader's own executor; measures how long batches take in its thread, and to wait for."""

    def __init__(self, spent: dict[str, float], own: Executor) -> None:
        self.spent, self.own = spent, own

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        timed: Any = _TimedRecipe(self.spent, recipe)
        batches = self.own.run(timed, tasks)
        for _ in tasks:
            begin = time.perf_counter()
            one = [next(batches)]
            self.spent["waiting"] += time.perf_counter() - begin
            yield one.pop()


class _TimedRecipe:
    def __init__(self, spent: dict[str, float], recipe: Recipe) -> None:
        self.spent, self.recipe = spent, recipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recipe, name)

    def __call__(self, task: Task) -> Any:
        begin = time.thread_time()
        try:
            return self.recipe(task)
        finally:
            self.spent["sample"] += time.thread_time() - begin


def _in_pair(
    load: Callable[[int], Iterable[Any]],
    epoch: Callable[[Iterable[Any]], None],
    role: str,
    line: int,
) -> Iterator[dict[str, float]]:
    """Processor seconds of a batch in a trainer, or in the sampler process from which it gets them.

    A byte orders a batch, or tells the sampler that the trainer's time is over. As in a loader, the
    trainer orders four batches ahead.
    """
    peer = socket.socket(fileno=line)

    def ordered() -> Iterator[Any]:
        peer.sendall(b"b" * AHEAD)
        for step in range(STEPS):
            one = [receive(peer)]
            if step + AHEAD < STEPS:
                peer.sendall(b"b")
            yield one.pop()

    if role == "trainer":
        epoch(load(0))
        print("ready", flush=True)
        for _ in sys.stdin:
            number, wall, used = _repeat(lambda _: epoch(ordered()))
            peer.sendall(b".")
            yield {"compute": used / number / STEPS, "wall": wall / number / STEPS}
        return

    def inline(number: int) -> Iterator[Any]:
        with chosen_by(lambda own: Inline()):
            return iter(load(number))

    batches = itertools.chain.from_iterable(map(inline, itertools.count()))
    next(batches)
    print("ready", flush=True)
    for _ in sys.stdin:
        begin, count = time.thread_time(), 0
        while peer.recv(1) == b"b":
            send(peer, next(batches))
            count += 1
        yield {"sample": (time.thread_time() - begin) / count}


def _repeat(work: Callable[[int], None]) -> tuple[int, float, float]:
    """Work for some seconds; return how often, and seconds of the clock and of this thread."""
    number, begin, used = 0, time.perf_counter(), time.thread_time()
    while time.perf_counter() - begin < SECONDS:
        number += 1
        work(number)
    return number, time.perf_counter() - begin, time.thread_time() - used


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    torch.distributed.destroy_process_group()
