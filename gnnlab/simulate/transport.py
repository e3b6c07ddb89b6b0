"""Servers that are objects of this process, and what is asked of them.

A simulated trainer asks as a real one does, through :class:`~gnnlab.distributed.routes.Routes`.
Here the question is a function call on the store of the machine that is asked. What the messages
would weigh on a network is computed from the same encoding that real servers use; how long stores
take to answer is measured. Both go on the trainer's tape.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import Job
from gnnlab.distributed.memory import Entry, Memory, SharedStore
from gnnlab.distributed.routes import Routes
from gnnlab.distributed.traffic import kind_of, num_rows
from gnnlab.errors import GNNLabError
from gnnlab.helpers.fork import Lock
from gnnlab.partition.files import PartConfig
from gnnlab.partition.part import Part
from gnnlab.simulate.stage import Player
from gnnlab.simulate.tape import Ask, Meet, Recorder

__all__ = ["Cluster", "MachineMemory", "MachineStore", "Simulated"]

_KINDS = {"structure": "sample", "control": "wait"}  # all others are "fetch"


class MachineMemory(Memory):
    """The shared memory of a simulated machine: this process has it alone, and makes no files."""

    def __init__(self) -> None:
        self._prefix = "gnnlab-simulated-"
        self.entries: dict[str, Entry] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self._mapped: dict[str, torch.Tensor] = {}
        self._lock = Lock()
        self._names = (f"{self._prefix}{number}" for number in itertools.count())

    def refresh(self) -> bool:
        """Nothing changes behind our back."""
        return False

    def create(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        is_gdata: bool = True,
        values: torch.Tensor | None = None,
    ) -> None:
        """Make a tensor, of zeros or of some values."""
        tensor = torch.zeros(shape, dtype=dtype)
        if values is not None:
            tensor.copy_(values)
        file = next(self._names)
        with self._lock:
            self._mapped[file] = tensor
            self._publish({name: Entry(file, tuple(shape), m.dtype_name(dtype), is_gdata)})

    def _publish(self, changed: Mapping[str, Entry | None]) -> None:
        entries = {n: e for n, e in {**self.entries, **changed}.items() if e is not None}
        self._attach(entries)

    def close(self) -> None:
        """Nothing is left behind."""


class MachineStore(SharedStore):
    """The rows of a simulated machine, as one of its servers sees them."""

    def _pull(self, message: m.Pull) -> torch.Tensor:
        table = self._rows(message.name, message.rows)
        if len(table) and table.stride(0) == 0:  # all rows are one: nothing need be moved
            return table[:1].expand(len(message.rows), *table.shape[1:])
        return super()._pull(message)


class Cluster:
    """The stores of all machines in one run, and what each server did.

    Parameters
    ----------
    config : PartConfig
    parts : sequence of Part
    num_servers : int
        Per machine.
    """

    def __init__(self, config: PartConfig, parts: Sequence[Part], num_servers: int) -> None:
        self.config = config
        memories = [MachineMemory() for _ in parts]
        # A store for each server: each waits for the gradients of the rows that it owns.
        self.stores = [
            MachineStore(part, memory)
            for part, memory in zip(parts, memories, strict=True)
            for _ in range(num_servers)
        ]
        self.work: list[dict[str, list[Any]]] = [
            defaultdict(lambda: [0, 0, 0, 0.0]) for _ in self.stores
        ]

    def count(self, server: int, message: Any, came: int, sent: int, seconds: float) -> None:
        """Count what a server did, as a real one does."""
        counts = self.work[server][type(message).__name__]
        for i, value in enumerate((1, came, sent, seconds)):
            counts[i] += value


class Simulated(Routes):
    """The servers of a simulated job, as one trainer or sampler sees them.

    Parameters
    ----------
    job : Job
    cluster : Cluster
    player : Player
        The thread that plays the trainer.
    recorder : Recorder
        Its tapes.
    """

    def __init__(self, job: Job, cluster: Cluster, player: Player, recorder: Recorder) -> None:
        super().__init__(job, cluster.stores[job.machine * job.num_servers])
        self.graph_name = cluster.config.graph_name
        self._cluster, self._player, self._recorder = cluster, player, recorder
        # A book of one's own: contexts tell trainers apart by it.
        self._part = replace(self.store.part, book=cluster.config.book(job.machine))
        self.is_closed = False
        welcomes = [(server, wire.Hello()) for server in range(len(job.addresses))]
        self.ask(welcomes)

    def part(self) -> Part:
        """Return the part of this machine."""
        return self._part

    def ask(
        self,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None] = lambda: None,
        patience: float = 0.0,
        timeout: float | None = None,
    ) -> list[Any]:
        """Let the stores answer, and write down what that would move over the network."""
        if self.is_closed:
            raise GNNLabError("this process has left the job by exit_client()")
        if self._player.stage.is_over:
            self._player.check()
        recorder = self._recorder
        with recorder.pause():
            if isinstance(targets[0][1], wire.Meet):
                return [self._meet(targets[0][1])]
            kind = kind_of(targets[0][1], self.store.is_gdata)
            entry = Ask(_KINDS.get(kind, "fetch"), {}, {}, {}, step=recorder.step)
            replies = [self._answer(server, message, entry) for server, message in targets]
            _, entry.here = recorder.seconds(meanwhile)
            recorder.add(entry)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _answer(self, server: int, message: Any, entry: Ask) -> Any:
        machine = server // self.job.num_servers

        def work() -> Any:
            try:
                return self._reply(server, message)
            except Exception as error:  # as a server does, which goes on
                return error

        reply, seconds = self._recorder.seconds(work)
        came = wire.request_size(message)
        sent = (
            sum(map(len, wire.encode_error(wire.FIRST_NUMBER, reply)))
            if isinstance(reply, Exception)
            else wire.reply_size(reply)
        )
        self.count(server, message, came, sent)
        self._cluster.count(server, message, came, sent, seconds)
        entry.out[machine] = entry.out.get(machine, 0) + came
        entry.back[machine] = entry.back.get(machine, 0) + sent
        entry.serve[machine] = entry.serve.get(machine, 0.0) + seconds
        entry.requests += 1
        entry.rows += num_rows(message)
        return reply

    def _reply(self, server: int, message: Any) -> Any:
        if isinstance(message, wire.Hello):
            digest = "0" * 64  # of the length that a real one has
            return wire.Welcome(self.job.id, server, self.graph_name, digest)
        if isinstance(message, wire.Bye):
            return None
        if isinstance(message, wire.Statistics):
            return {kind: wire.Traffic(*v) for kind, v in self._cluster.work[server].items()}
        return self._cluster.stores[server].answer(message)

    def _meet(self, message: wire.Meet) -> tuple[str, ...]:
        number, words = self._player.meet(message.place, message.words)
        reply = tuple(words)
        came, sent = wire.request_size(message), wire.reply_size(reply)
        self.count(0, message, came, sent)
        self._cluster.count(0, message, came, sent, 0.0)
        self._recorder.add(Meet("wait", number, step=self._recorder.step))
        return reply

    def close(self) -> None:
        """Say goodbye."""
        if not self.is_closed and self.job.role == "trainer":
            bye = wire.Bye(self.job.rank, self.job.num_ranks)
            self.ask([(server, bye) for server in range(len(self.job.addresses))])
        self.is_closed = True
