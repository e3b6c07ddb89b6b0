"""Servers as objects of this process, and the requests to them.

A simulated trainer chooses servers as a real one does
(:mod:`gnnlab.distributed.server_transport`), but a request is a function call on the store of the
server. The sizes of its messages come from the encoding that real servers use; the time that the
store takes to answer is measured. Both are recorded in the trainer's op trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import SharedStore, SharedTensors
from gnnlab.distributed.protocol import kind_of, num_rows
from gnnlab.distributed.server_transport import ServerTransport
from gnnlab.errors import GNNLabError
from gnnlab.partition.files import PartConfig
from gnnlab.partition.part import Part
from gnnlab.simulate.design import Design
from gnnlab.simulate.optrace import Collective, Recorder, RoundTrip, Work
from gnnlab.simulate.scheduler import VirtualRank

_KIND_OF_WORK = {"structure": "sample", "control": "wait"}  # all others are "fetch"


class Cluster:
    """The stores of all servers in one run, ``num_servers`` per machine, and statistics of each."""

    def __init__(self, config: PartConfig, parts: Sequence[Part], num_servers: int) -> None:
        self.config = config
        memories = [SharedTensors() for _ in parts]
        # One store per server: a server waits for the gradients of the rows that it owns.
        self.stores = [
            SharedStore(part, memory)
            for part, memory in zip(parts, memories, strict=True)
            for _ in range(num_servers)
        ]
        self.work: list[dict[str, list[Any]]] = [
            defaultdict(lambda: [0, 0, 0, 0.0]) for _ in self.stores
        ]

    def count(
        self, server: int, message: Any, bytes_in: int, bytes_out: int, seconds: float
    ) -> None:
        """Add a request to the statistics of a server, as a real server does."""
        counts = self.work[server][type(message).__name__]
        for i, value in enumerate((1, bytes_in, bytes_out, seconds)):
            counts[i] += value


class SimulatedTransport(ServerTransport):
    """The servers of a simulated job, as one trainer or sampler sees them; records its op trace."""

    def __init__(
        self,
        job: JobSettings,
        cluster: Cluster,
        virtual_rank: VirtualRank,
        recorder: Recorder,
        design: Design | None = None,
    ) -> None:
        self._design = design or Design()
        super().__init__(job, cluster.stores[job.machine * job.num_servers])
        self.graph_name = cluster.config.graph_name
        self._cluster, self._virtual_rank, self._recorder = cluster, virtual_rank, recorder
        # A partition book of its own: contexts identify the trainer by it.
        self._part = replace(self.store.part, book=cluster.config.book(job.machine))
        self.is_closed = False
        # Of a macro-batch: its name, and the rows fetched so far by machine and feature.
        self._group: Any = None
        self._held: dict[tuple[int, str], torch.Tensor] = {}
        self._is_making = False
        welcomes = [(server, m.Hello()) for server in range(len(job.addresses))]
        self.request(welcomes)

    def part(self) -> Part:
        """Return the part of this machine."""
        return self._part

    def request(
        self,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None] = lambda: None,
        timeout: float | None = None,
    ) -> list[Any]:
        """Answer requests from the stores; record the bytes that they would send and the time."""
        if self.is_closed:
            raise GNNLabError("this process has left the job by exit_client()")
        self._virtual_rank.check()
        recorder = self._recorder
        with recorder.pause():
            if isinstance(targets[0][1], m.Meet):
                return [self._meet(targets[0][1])]
            kind = kind_of(targets[0][1], self.store.is_gdata)
            if self._design.is_local(targets[0][1], kind):
                replies, seconds = recorder.timed(lambda: self._local_replies(targets, meanwhile))
                recorder.add(Work(_KIND_OF_WORK.get(kind, "fetch"), seconds, recorder.step))
                return replies
            request = RoundTrip(_KIND_OF_WORK.get(kind, "fetch"), {}, {}, {}, step=recorder.step)
            replies = [self._answer(server, message, request) for server, message in targets]
            _, request.here = recorder.timed(meanwhile)
            if request.requests:
                recorder.add(request)
            else:  # an earlier batch of the macro-batch has fetched all rows
                recorder.add(Work(request.kind, request.here, recorder.step))
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _local_replies(
        self, targets: Sequence[tuple[int, Any]], meanwhile: Callable[[], None]
    ) -> list[Any]:
        """Answer requests for data that the design keeps on every machine."""
        meanwhile()
        return [self._reply(server, message) for server, message in targets]

    @contextmanager
    def making(self, key: int, number: int) -> Iterator[None]:
        """While a mini-batch of an epoch is made, do not fetch its macro-batch's rows again."""
        if self._design.macro_batches > 1:
            group = key, number // self._design.macro_batches
            if group != self._group:
                self._group, self._held = group, {}
            self._is_making = True
        try:
            yield
        finally:
            self._is_making = False

    def _only_new(self, machine: int, message: Any) -> torch.Tensor | None:
        """Return a mask of the rows that the macro-batch has not fetched; None for all."""
        if not (self._is_making and isinstance(message, m.Pull)):
            return None
        if kind_of(message, self.store.is_gdata) != "features":
            return None
        held = self._held.get((machine, message.name), message.rows[:0])
        new = ~torch.isin(message.rows, held)
        self._held[machine, message.name] = torch.cat([held, message.rows[new]])
        return new

    def split_first_layer(self, batch: Any) -> None:
        """Record the messages of a first layer whose features are split by column over machines."""
        sizes = self._design.first_layer_bytes(batch)
        if sizes is None or self.num_parts == 1:
            return
        recorder = self._recorder
        with recorder.pause():
            for kind, out, back in sizes:
                request = RoundTrip("fetch", {}, {}, {}, step=recorder.step)
                for machine in range(self.num_parts):
                    if machine != self.local_part:
                        self.count(machine * self.job.num_servers, kind, 0, out, back)
                        request.out[machine], request.back[machine] = out, back
                        request.requests += 1
                recorder.add(request)

    def _answer(self, server: int, message: Any, request: RoundTrip) -> Any:
        machine = server // self.job.num_servers

        def answer() -> Any:
            try:
                return self._reply(server, message)
            except Exception as error:  # a server replies with the error and continues
                return error

        reply, seconds = self._recorder.timed(answer)
        sent = reply
        new = None if isinstance(reply, Exception) else self._only_new(machine, message)
        if new is not None:
            if not bool(new.any()):
                return reply
            message, sent = replace(message, rows=message.rows[new]), reply[new]
            seconds *= len(sent) / len(reply)
        bytes_in = wire.request_size(message)
        bytes_out = (
            sum(map(len, wire.encode_error(wire.FIRST_NUMBER, sent)))
            if isinstance(sent, Exception)
            else wire.reply_size(sent)
        )
        kind = kind_of(message, self.store.is_gdata)
        self.count(server, kind, num_rows(message), bytes_in, bytes_out)
        self._cluster.count(server, message, bytes_in, bytes_out, seconds)
        request.out[machine] = request.out.get(machine, 0) + bytes_in
        request.back[machine] = request.back.get(machine, 0) + bytes_out
        request.serve[machine] = request.serve.get(machine, 0.0) + seconds
        request.requests += 1
        request.rows += num_rows(message)
        return reply

    def _reply(self, server: int, message: Any) -> Any:
        if isinstance(message, m.Hello):
            digest = "0" * 64  # as long as a real one
            return m.Welcome(self.job.id, server, self.graph_name, digest)
        if isinstance(message, m.Bye):
            return None
        if isinstance(message, m.Statistics):
            return {kind: m.MessageStats(*v) for kind, v in self._cluster.work[server].items()}
        return self._cluster.stores[server].answer(message)

    def _meet(self, message: m.Meet) -> tuple[str, ...]:
        number, words = self._virtual_rank.rendezvous(message.place, message.words)
        reply = tuple(words)
        bytes_in, bytes_out = wire.request_size(message), wire.reply_size(reply)
        self.count(0, kind_of(message, self.store.is_gdata), 0, bytes_in, bytes_out)
        self._cluster.count(0, message, bytes_in, bytes_out, 0.0)
        self._recorder.add(Collective("wait", number, step=self._recorder.step))
        return reply

    def close(self) -> None:
        """Tell the servers that this trainer has ended."""
        if not self.is_closed and self.job.role == "trainer":
            bye = m.Bye(self.job.rank, self.job.num_ranks)
            self.request([(server, bye) for server in range(len(self.job.addresses))])
        self.is_closed = True
