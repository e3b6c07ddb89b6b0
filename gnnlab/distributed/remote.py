"""Asking servers: the transport of a job on many machines.

Rows of the own machine are read where they lie, through memory; reads of other machines' rows, and
all writes, go to servers over ZeroMQ. Requests to several servers leave at once, and what can be
done here is done while they are under way.

A server that dies closes its connections at once; one that is cut off misses its heartbeats. Either
way whoever waits for it learns within five seconds which server it was. After a short interruption
open requests are sent again under the same number: reads do no harm twice, and servers remember
the numbers of writes.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
import zmq
from zmq.utils.monitor import recv_monitor_message

from gnnlab import kernels
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import Job
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.server import digest, heartbeat, send
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.partition.book import PartitionPolicy
from gnnlab.partition.files import read_config
from gnnlab.partition.part import Part, open_part

__all__ = ["Remote", "ServerLost"]

_GRACE = 0.5  # seconds in which a broken connection may come back
_CONNECT = 5.0  # seconds to connect to a server that has been there before
_TICK = 100  # milliseconds
_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_DISCONNECTED
)


class ServerLost(GNNLabError, ConnectionError):
    """A server has ended, or cannot be reached any more."""


class Remote:
    """The servers of a job, as one trainer or sampler sees them.

    Parameters
    ----------
    job : Job

    Raises
    ------
    GNNLabError
        A server did not answer in time, or serves something else.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.num_parts, self.local_part = job.num_machines, job.machine
        config = read_config(job.part_config, num_parts=job.num_machines)
        part = open_part(config, job.machine, verify=False)
        self.graph_name = config.graph_name
        self.memory = Memory(job.id, job.machine, job.timeout)
        self.store = SharedStore(part, self.memory)
        self.traffic = {server: [0, 0, 0] for server in range(len(job.addresses))}
        self._numbers = itertools.count(1)
        self._turn = itertools.count(job.rank)
        self._num_meetings = 0
        self._shared: set[tuple[int, str]] = set()
        self._open()
        try:
            self._greet()
        except BaseException:
            self.memory.close()
            raise

    def _open(self) -> None:
        # A forked child cannot use its parent's sockets; it comes here again.
        self._pid = os.getpid()
        self._context: zmq.Context[Any] = zmq.Context()
        self._lines: deque[_Line] = deque()
        self.is_closed = False

    def _greet(self) -> None:
        """Wait for all servers, and see that they serve this job and this graph."""
        line = _Line(self.job, self._context, self.job.timeout)
        servers = range(len(self.job.addresses))
        deadline = time.monotonic() + self.job.timeout
        try:
            found = self._talk(line, [(server, wire.Hello()) for server in servers], deadline)
        except BaseException:
            line.close()
            raise
        mine = self.job.id, self.graph_name, digest(self.job.part_config)
        for server, welcome in zip(servers, found, strict=True):
            theirs = welcome.job, welcome.graph_name, welcome.digest
            if theirs != mine or welcome.server != server:
                raise GNNLabError(
                    f"{self.job.name_of(server)} serves {theirs[1]!r} in job {theirs[0]} as server "
                    f"{welcome.server}; expected {mine[1]!r} in job {mine[0]}, from the same JSON "
                    f"file (found {theirs[2][:8]}…, expected {mine[2][:8]}…). Stop old servers, "
                    "and copy the partition to all machines again"
                )
        self._lines.append(line)

    # ----------------------------------------------------------------- transport
    def exchange(self, requests: Sequence[tuple[int, m.Message]]) -> list[Any]:
        """Send each message to its part, all at once; return the replies in the same order."""
        if self.job.role != "trainer":  # what samplers let go of is not theirs
            requests = [(p, m.Describe() if isinstance(x, m.Delete) else x) for p, x in requests]
        routes = [self._route(part, message) for part, message in requests]
        far = [target for route in routes for target in route]
        here = [i for i, route in enumerate(routes) if not route]
        replies: list[Any] = [None] * len(requests)

        def meanwhile() -> None:
            for i in here:
                replies[i] = self.store.answer(requests[i][1])

        if not far:
            meanwhile()
            return replies
        came = iter(self.ask(far, meanwhile))
        for i, route in enumerate(routes):
            for _ in route:
                replies[i] = next(came)
        return replies

    def _route(self, part: int, message: m.Message) -> list[tuple[int, Any]]:
        """To which servers a message for a part goes; to none when it is answered here."""
        first, servers = part * self.job.num_servers, self.job.num_servers
        if isinstance(message, wire.READS):
            if part == self.local_part:
                return []
            return [(first + next(self._turn) % servers, message)]
        if isinstance(message, m.Push | m.Update):
            self._share(part, message)
            return self._to_owners(part, message)
        if isinstance(message, m.Delete):
            self._shared.discard((part, message.name))
            return [(first, wire.Release(message.name, self.job.rank, self.job.num_ranks))]
        return [(first, message)]

    def _share(self, part: int, message: Any) -> None:
        """Before a feature of the partition is first written to, move it to shared memory."""
        names = (message.name, *getattr(message, "states", ()))
        new = [name for name in names if (part, name) not in self._shared]
        if new:
            self.ask([(part * self.job.num_servers, wire.Share(name)) for name in new])
            self._shared.update((part, name) for name in new)

    def _to_owners(self, part: int, message: Any) -> list[tuple[int, Any]]:
        """Cut a write where the rows of one server end; all servers hear of an update."""
        servers, first = self.job.num_servers, part * self.job.num_servers
        if servers == 1:
            return [(first, message)]
        field = "values" if isinstance(message, m.Push) else "grads"
        values = getattr(message, field)
        borders = self._borders(part, message.name)
        pieces = {
            piece.part: (piece.rows + borders[piece.part], values[piece.places])
            for piece in kernels.route.split(message.rows, borders)
        }
        if isinstance(message, m.Update):
            nothing = message.rows[:0], values[:0]
            pieces = {owner: pieces.get(owner, nothing) for owner in range(servers)}
        return [
            (first + owner, dataclasses.replace(message, rows=rows, **{field: some}))
            for owner, (rows, some) in pieces.items()
        ]

    def _borders(self, part: int, name: str) -> Any:
        policy = PartitionPolicy(name.rpartition("~")[0], self.store.part.book)
        return owned_rows(int(policy.ranges[part + 1] - policy.ranges[part]), self.job.num_servers)

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of a tensor where they lie, for the part of this machine."""
        if part != self.local_part:
            return None
        self.store.refresh()
        return self.store.tensors.get(name)

    def part(self) -> Part:
        """Return the part of this machine."""
        return self.store.part

    def create(self, message: m.Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Make a tensor on all machines; all trainers call this with equal arguments.

        The first trainer of each machine makes the first values, in shared memory.
        """
        what = f"{message.name} {tuple(message.row_shape)} {message.dtype}"
        asked = self.meet(f"making of {message.name}", what)
        if len(set(asked)) > 1:
            raise InvalidInput(
                "all trainers must make a distributed tensor alike; asked for were "
                + ", ".join(f"{words} by rank {rank}" for rank, words in enumerate(asked))
            )
        mine: Exception | None = None
        is_new, server = False, self.local_part * self.job.num_servers
        if self.job.local_rank == 0:
            try:
                (is_new,) = self.ask([(server, message)])
                if is_new and first is not None:
                    values, table = (
                        first(self.local_part),
                        self.readable(self.local_part, message.name),
                    )
                    assert table is not None
                    table.copy_(values)
            except Exception as error:
                mine = error
        words = self.meet(f"first values of {message.name}", "" if mine is None else repr(mine))
        if any(words):
            if is_new:
                self.ask([(server, wire.Release(message.name, 0, 1))])
            rank, text = next((rank, text) for rank, text in enumerate(words) if text)
            raise mine or GNNLabError(f"rank {rank} could not make {message.name}: {text}")
        self._shared.update((part, message.name) for part in range(self.num_parts))

    def barrier(self) -> None:
        """Wait until all trainers have come here."""
        self.meet("barrier")

    def meet(self, place: str, words: str = "") -> tuple[str, ...]:
        """Wait for all trainers, and return the words of each."""
        if self.job.role != "trainer":
            raise GNNLabError(f"{place}: only trainers wait for each other, not samplers")
        self._num_meetings += 1
        message = wire.Meet(
            f"{place} (meeting {self._num_meetings})", self.job.rank, self.job.num_ranks, words
        )
        (found,) = self.ask([(0, message)], patience=10.0)
        return found

    def statistics(self) -> list[dict[str, wire.Traffic]]:
        """Return what each server has done: kind of message → :class:`Traffic`."""
        return self.ask([(s, wire.Statistics()) for s in range(len(self.job.addresses))])

    def close(self) -> None:
        """Say goodbye, and let go."""
        if self.is_closed or self._pid != os.getpid():
            return
        if self.job.role == "trainer":
            bye = wire.Bye(self.job.rank, self.job.num_ranks)
            with suppress(GNNLabError):
                self.ask([(s, bye) for s in range(len(self.job.addresses))], timeout=2.0)
        self.is_closed = True
        while self._lines:
            self._lines.pop().close()
        closer = threading.Thread(target=self._context.term, daemon=True)
        closer.start()
        closer.join(1.0)
        self.memory.close()

    # -------------------------------------------------------------------- asking
    def ask(
        self,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None] = lambda: None,
        patience: float = 0.0,
        timeout: float | None = None,
    ) -> list[Any]:
        """Send messages to servers, all at once, and return the replies in the same order."""
        if self._pid != os.getpid():
            self._open()
        if self.is_closed:
            raise GNNLabError("this process has left the job by exit_client()")
        try:
            line = self._lines.pop()
        except IndexError:
            line = _Line(self.job, self._context, _CONNECT)
        timeout = self.job.timeout if timeout is None else timeout
        try:
            replies = self._talk(line, targets, time.monotonic() + timeout + patience, meanwhile)
        except BaseException:
            line.close()  # replies may still be under way
            raise
        self._lines.append(line)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _talk(
        self,
        line: _Line,
        targets: Sequence[tuple[int, Any]],
        deadline: float,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        waiting: dict[int, tuple[int, int, list[Any]]] = {}
        kinds: dict[int, type] = {}
        for place, (server, message) in enumerate(targets):
            number = next(self._numbers)
            frames = wire.encode_request(number, message)
            waiting[number], kinds[number] = (place, server, frames), type(message)
            line.send(server, frames)
            self._count(server, frames, is_sent=True)
        meanwhile()
        replies: list[Any] = [None] * len(targets)
        while waiting:
            for server, frames in line.receive():
                number, reply = wire.decode_reply(frames, kinds)
                if number in waiting and waiting[number][1] == server:
                    self._count(server, frames, is_sent=False)
                    place, _, _ = waiting.pop(number)
                    replies[place] = reply
            for server in line.reconnected():
                for _, to, frames in waiting.values():
                    if to == server:
                        line.send(server, frames)
            if waiting and (time.monotonic() > deadline or line.lost() is not None):
                raise self._complaint(line, waiting, kinds)
        return replies

    def _count(self, server: int, frames: list[Any], is_sent: bool) -> None:
        counts = self.traffic[server]
        counts[0] += is_sent
        counts[1 if is_sent else 2] += sum(map(len, frames))

    def _complaint(self, line: _Line, waiting: Any, kinds: dict[int, type]) -> GNNLabError:
        number, (_, server, _) = next(iter(waiting.items()))
        lost = line.lost()
        if lost is None:
            return GNNLabError(
                f"{self.job.name_of(server)} did not answer a {kinds[number].__name__} within "
                f"{self.job.timeout:g} s (GNNLAB_TIMEOUT)"
            )
        server, why = lost
        return ServerLost(f"lost {self.job.name_of(server)}: {why}")


def owned_rows(num_rows: int, num_servers: int) -> Any:
    """Borders of the rows of a part that each of its servers owns; shape (servers + 1,)."""
    return np.arange(num_servers + 1) * num_rows // num_servers


class _Line:
    """Connections to the servers, used by one thread at a time.

    Parameters
    ----------
    job : Job
    context : zmq.Context
    patience : float
        Seconds that a connection may take to come about.
    """

    def __init__(self, job: Job, context: zmq.Context[Any], patience: float) -> None:
        self._job, self._context, self._patience = job, context, patience
        self._sockets: dict[int, zmq.Socket[bytes]] = {}
        self._known: dict[Any, tuple[int, bool]] = {}  # socket → server, whether a monitor
        self._poller = zmq.Poller()
        self._gone: dict[int, tuple[float, float]] = {}  # server → since when, for how long at most
        self._met: set[int] = set()
        self._back: list[int] = []
        self._refused: int | None = None

    def _connect(self, server: int) -> zmq.Socket[bytes]:
        host, port = self._job.addresses[server]
        socket = self._context.socket(zmq.DEALER)
        heartbeat(socket)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        socket.setsockopt(zmq.ROUTING_ID, uuid.uuid4().bytes)
        if self._job.keys:
            socket.curve_serverkey = self._job.keys.server_public.encode()
            socket.curve_publickey = self._job.keys.client_public.encode()
            socket.curve_secretkey = self._job.keys.client_secret.encode()
        monitor = socket.get_monitor_socket(_EVENTS)
        self._sockets[server] = socket
        for one, is_monitor in ((socket, False), (monitor, True)):
            self._known[one] = server, is_monitor
            self._poller.register(one, zmq.POLLIN)
        self._gone[server] = time.monotonic(), self._patience
        socket.connect(f"tcp://{f'[{host}]' if ':' in host else host}:{port}")
        return socket

    def send(self, server: int, frames: list[Any]) -> None:
        """Send frames to a server."""
        send(self._sockets.get(server) or self._connect(server), frames)

    def receive(self) -> list[tuple[int, list[Any]]]:
        """Return what has come, and from which server; wait a little when there is nothing."""
        found = []
        for socket, _ in self._poller.poll(_TICK):
            server, is_monitor = self._known[socket]
            with suppress(zmq.Again):
                while True:
                    if is_monitor:
                        self._note(server, recv_monitor_message(socket, zmq.NOBLOCK)["event"])
                    else:
                        found.append((server, socket.recv_multipart(zmq.NOBLOCK, copy=False)))
        return found

    def _note(self, server: int, event: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._gone.pop(server, None)
            if server in self._met:
                self._back.append(server)
            self._met.add(server)
        elif event == zmq.EVENT_DISCONNECTED:
            if server in self._met:
                self._gone.setdefault(server, (time.monotonic(), _GRACE))
        elif server not in self._met:
            self._refused = server

    def reconnected(self) -> list[int]:
        """Return the servers whose connections broke and have come back."""
        found, self._back = self._back, []
        return found

    def lost(self) -> tuple[int, str] | None:
        """Return a server that is gone for too long, and why."""
        if self._refused is not None:
            return self._refused, "it refused this process, whose keys are not those of its job"
        now = time.monotonic()
        for server, (since, patience) in self._gone.items():
            if now - since > patience:
                if server in self._met:
                    return server, "the process has ended, or its machine cannot be reached"
                return server, (
                    f"no connection within {patience:g} s. Is it running, and is its port open "
                    "between the machines? Look at what it printed"
                )
        return None

    def close(self) -> None:
        """Close all connections."""
        for socket in self._sockets.values():
            socket.disable_monitor()
            socket.close(0)
