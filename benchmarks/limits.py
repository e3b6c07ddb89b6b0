"""How near each task comes to what this machine could do at best.

``python -m benchmarks limits`` runs each task in turn with the least work that any program for it
must do, written as one plain loop or one call of a library: the bytes moved, the numbers read, the
matrices multiplied. The ratio is that time divided by the task's; 1 would be perfect.
"""

from __future__ import annotations

import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit

import gnnlab as dgl
from benchmarks import distributed
from benchmarks.tasks import BATCH, SAGE, Tasks, fanouts, seed_batches
from gnnlab import kernels
from gnnlab.launch.certificates import Authority, server_name

_BIG = "15,10,5"
_ROWS, _WIDTH = 30_000, 100  # of the remote read in benchmarks.distributed
_REPEATS = 10


class Row(NamedTuple):
    """A task and its limit, each a function that returns the milliseconds it took."""

    title: str
    ours: Callable[[], float]
    limit: Callable[[], float]
    between: str


def measure(folder: Path, size: str, rounds: int, remote: bool) -> list[list[str]]:
    """Run every task and its limit in turn; return a table with one row a task."""
    tasks = Tasks(folder, size)
    table = [["work", "ms", "limit ms", "limit / work", "range", "what lies between"]]
    with tempfile.TemporaryDirectory() as name:
        rows = [_build(tasks), *_samples(tasks), _gather(tasks), _step(tasks), _epoch(tasks)]
        if remote:
            part_config = distributed.cut(folder, Path(name))
            rows.append(_remote(part_config))
            rows.append(_encrypted(part_config))
        for row in rows:
            pairs = [(row.ours(), row.limit()) for _ in range(rounds + 1)][1:]  # the first warms up
            ours, limit = (statistics.median(times) for times in zip(*pairs, strict=True))
            ratios = sorted(limit / ours for ours, limit in pairs)
            middle, spread = statistics.median(ratios), f"{ratios[0]:.2f}–{ratios[-1]:.2f}"
            figures = [f"{ours:.2f}", f"{limit:.2f}", f"{middle:.2f}", spread]
            table.append([row.title, *figures, row.between])
    return table


def _timed(work: Callable[[int], object], repeats: int = _REPEATS) -> float:
    """Return the median time of ``work(i)`` in milliseconds."""
    times = []
    for i in range(repeats):
        began = time.perf_counter()
        work(i)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def _build(tasks: Tasks) -> Row:
    copies = [np.empty_like(ends) for ends in tasks.edges]

    def two_passes(_: int) -> None:
        for _ in range(2):
            for ends, copy in zip(tasks.edges, copies, strict=True):
                np.copyto(copy, ends)

    return Row(
        "COO → CSC",
        lambda: tasks.build()["ms"],
        lambda: _timed(two_passes, 3),
        "Two passes that copy all edges in order; sorting writes to 512 places at once, counts "
        "the keys and checks the IDs.",
    )


@njit(nogil=True, cache=True)
def _read(values, places):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(len(places)):
        total += values[places[i]]
    return total


def _samples(tasks: Tasks) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    indices = tasks.graph.adj_tensors("csc")[1].int().numpy()
    position = np.zeros(tasks.num_nodes, np.int32)
    seeds = seed_batches(tasks.train, _REPEATS)
    for fanout in ("4,4,4", "10,25", _BIG):
        sampler = dgl.dataloading.NeighborSampler(fanouts(fanout))
        blocks = sampler.sample_blocks(tasks.graph, seeds[0])[2]
        edges = sum(block.num_edges() for block in blocks)
        slots = [rng.integers(0, len(indices), edges).astype(np.uint32) for _ in range(_REPEATS)]
        nodes = [indices[at].astype(np.uint32) for at in slots]

        def sample(i: int, sampler: dgl.dataloading.NeighborSampler = sampler) -> None:
            sampler.sample_blocks(tasks.graph, seeds[i])

        def read(i: int, slots: list = slots, nodes: list = nodes) -> int:
            return _read(indices, slots[i]) + _read(position, nodes[i])

        yield Row(
            f"sample + blocks [{fanout}]",
            lambda sample=sample: _timed(sample),  # type: ignore[misc]
            lambda read=read: _timed(read),  # type: ignore[misc]
            "For each edge two random reads, of its source and of the source's local ID, known "
            "beforehand; sampling computes a random number, looks for repetitions and writes.",
        )


def _gather(tasks: Tasks) -> Row:
    inputs = [batch[0] for batch in tasks._sampled(_BIG)]
    feat = tasks.graph.ndata["feat"]

    def rows(i: int) -> torch.Tensor:
        return kernels.gather.rows(feat, inputs[i % len(inputs)])

    def copy(i: int) -> torch.Tensor:
        part = feat[: len(inputs[i % len(inputs)])]
        return kernels.gather.empty(part.shape).copy_(part)

    return Row(
        f"row gather [{_BIG}]",
        lambda: _timed(rows),
        lambda: _timed(copy),
        "As many rows copied in order, into new memory as well; rows in any order begin in the "
        "middle of a page and of a cache line.",
    )


def _step(tasks: Tasks) -> Row:
    batches = tasks._sampled(_BIG)
    model = SAGE(tasks.feat.shape[1], len(fanouts(_BIG)))
    products = [_products(model, batch[2]) for batch in batches]

    def multiply(i: int) -> None:
        for a, b in products[i % len(products)]:
            torch.mm(a, b)

    return Row(
        f"model step [{_BIG}]",
        lambda: tasks.step(_BIG, repeats=str(_REPEATS))["ms"],
        lambda: _timed(multiply),
        "The matrix products of forward and backward alone; aggregation reads a row for each "
        "edge twice, and relu, dropout and the loss pass over the activations.",
    )


def _products(model: SAGE, blocks: list) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the factors of all matrix products of a step, random numbers of the same shapes."""
    pairs = []
    layers: list[Any] = list(model.layers)
    for number, (layer, block) in enumerate(zip(layers, blocks, strict=True)):
        n, ins, outs = block.num_dst_nodes(), layer.in_feats, layer.out_feats
        # The neighbors' matrix comes before the aggregation where that makes rows shorter.
        for rows in (n, block.num_src_nodes() if ins > outs else n):
            sizes = (rows, ins), (rows, outs), (ins, outs)
            x, grad, weight = (torch.randn(size) for size in sizes)
            pairs += [(x, weight), (x.t(), grad)]
            pairs += [(grad, weight.t())] if number else []  # the input needs no gradient
    return pairs


def _epoch(tasks: Tasks) -> Row:
    g, batches = tasks.graph, tasks._sampled(_BIG)
    count = tasks.limit or -(-len(tasks.train) // BATCH)
    sampler = dgl.dataloading.NeighborSampler(fanouts(_BIG))
    seeds = seed_batches(tasks.train, _REPEATS)
    model = SAGE(tasks.feat.shape[1], len(fanouts(_BIG)))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    inputs = [tasks.feat[nodes] for nodes, _, _ in batches]

    def make(i: int) -> None:
        nodes, seeds_, _ = sampler.sample_blocks(g, seeds[i])
        kernels.gather.rows(tasks.feat, nodes), kernels.gather.rows(tasks.label, seeds_)

    def train(i: int) -> None:
        k = i % len(batches)
        loss = torch.nn.functional.cross_entropy(
            model(batches[k][2], inputs[k]), tasks.label[batches[k][1]]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Row(
        f"epoch [{_BIG}], prefetch thread",
        lambda: tasks.epoch("prefetch")["s"] * 1e3,
        lambda: count * max(_timed(make), _timed(train)),
        "The slower of making batches and training, alone; together they share memory bandwidth "
        "and the interpreter lock, and the first batch has nothing to overlap with.",
    )


def _remote_read(part_config: Path, security: str) -> float:
    answers = distributed.ours(part_config, security)
    return next(a["ms"] for a in answers if a["task"] == "disttensor_read30k remote")


def _remote(part_config: Path) -> Row:
    return Row(
        f"remote read, {_ROWS:,} rows of {_WIDTH} float32",
        lambda: _remote_read(part_config, "none"),
        _tcp,
        "The same bytes by one TCP connection from a thread that has them ready; a server also "
        "decodes the request and gathers the rows, and the client checks the reply.",
    )


def _encrypted(part_config: Path) -> Row:
    authority = Authority()
    return Row(
        "the same, encrypted",
        lambda: _remote_read(part_config, "tls"),
        lambda: _tcp(authority),
        "The same bytes by one connection with TLS 1.3; a server also decodes the request and "
        "gathers the rows.",
    )


def _tcp(authority: Authority | None = None) -> float:
    """Return how long a request of 8 bytes and a reply as large as the rows take, in ms."""

    def wrap(link: socket.socket, is_server: bool) -> socket.socket:
        if authority is None:
            return link
        context = authority.issue("server" if is_server else "client", 0).context(is_server)
        name = None if is_server else server_name(0)
        return context.wrap_socket(link, server_side=is_server, server_hostname=name)

    reply = np.ones((_ROWS, _WIDTH), np.float32)
    room = memoryview(bytearray(reply.nbytes))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with wrap(listener.accept()[0], True) as peer:
                while peer.recv(8):
                    peer.sendall(reply.data)

        server = threading.Thread(target=serve)
        server.start()
        address = listener.getsockname()
        with wrap(socket.create_connection(address), False) as link:

            def ask(_: int) -> None:
                link.sendall(bytes(8))
                got = 0
                while got < len(room):
                    got += link.recv_into(room[got:])

            took = _timed(ask, 20)
        server.join()
    return took
