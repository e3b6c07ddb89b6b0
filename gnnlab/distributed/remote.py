"""Transport of a job on many machines: requests to servers over ZeroMQ.

Rows of the own machine are read from shared memory; reads of other machines' rows, and all writes,
go to servers. Requests to several servers are sent at once, and local requests are answered while
those are in flight.

If a server dies, its connections close at once; if it is cut off, heartbeats time out. In both
cases a waiting client raises an error within five seconds, which names the server. After a short
interruption, pending requests are resent under the same number: reads are idempotent, and servers
remember the numbers of writes.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from gnnlab.distributed import replies as checks
from gnnlab.distributed import wire
from gnnlab.distributed.job import Job
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.routes import Routes
from gnnlab.distributed.server import digest, heartbeat, raise_file_limit, send
from gnnlab.errors import GNNLabError
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

__all__ = ["Remote", "ServerLost"]

_GRACE = 0.5  # seconds in which a broken connection may be restored
_CONNECT = 5.0  # seconds to connect to a server that was reached before
_TICK = 100  # milliseconds
_AT_ONCE = 64  # messages read from one server before the others and the deadline are checked
_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_DISCONNECTED
)


class ServerLost(GNNLabError, ConnectionError):
    """A server has ended, or cannot be reached."""


class Remote(Routes):
    """Connections of one trainer or sampler to the servers of a job.

    Parameters
    ----------
    job : Job

    Raises
    ------
    GNNLabError
        A server did not answer in time, or serves another job or graph.
    """

    def __init__(self, job: Job) -> None:
        raise_file_limit()
        config = read_config(job.part_config, num_parts=job.num_machines)
        part = open_part(config, job.machine, verify=False)
        self.graph_name = config.graph_name
        self.memory = Memory(job.id, job.machine, job.timeout)
        super().__init__(job, SharedStore(part, self.memory))
        self._lost: set[int] = set()
        self._numbers = itertools.count(wire.FIRST_NUMBER)
        self._open()
        try:
            self._greet()
        except BaseException:
            self._context.destroy(0)
            self.memory.close()
            raise

    def _open(self) -> None:
        # A forked child cannot use its parent's sockets; it calls this again.
        self._pid = os.getpid()
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, self._context.get(zmq.SOCKET_LIMIT))
        self._lines: deque[_Line] = deque()
        self.is_closed = False

    def _greet(self) -> None:
        """Wait for all servers, and check that they serve this job and this graph."""
        line = _Line(self.job, self._context, self.job.timeout)
        servers = range(len(self.job.addresses))
        deadline = time.monotonic() + self.job.timeout
        found = self._talk(line, [(server, wire.Hello()) for server in servers], deadline)
        mine = self.job.id, self.graph_name, digest(self.job.part_config)
        for server, welcome in zip(servers, found, strict=True):
            theirs = welcome.job, welcome.graph_name, welcome.digest
            if theirs != mine or welcome.server != server:
                raise GNNLabError(
                    f"{self.job.name_of(server)} serves {theirs[1][:80]!r} in job "
                    f"{theirs[0][:80]} as server {welcome.server}; expected {mine[1]!r} in job "
                    f"{mine[0]}, from the same JSON file (found "
                    f"{theirs[2][:8]}…, expected {mine[2][:8]}…). Stop old servers, "
                    "and copy the partition to all machines again"
                )
        self._lines.append(line)

    def close(self) -> None:
        """Leave the job: notify the servers, and close all connections."""
        if self.is_closed or self._pid != os.getpid():
            return
        if self.job.role == "trainer":
            bye = wire.Bye(self.job.rank, self.job.num_ranks)
            there = set(range(len(self.job.addresses))) - self._lost  # skip lost servers
            with suppress(GNNLabError):
                self.ask([(server, bye) for server in there], timeout=1.0)
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
            line.close()  # replies may still arrive
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
        meanwhile()
        replies: list[Any] = [None] * len(targets)
        while waiting:
            for server, frames in line.receive():
                number, reply = self._read(server, frames, kinds)
                if number in waiting and waiting[number][1] == server:
                    place, _, sent = waiting.pop(number)
                    self._check(server, targets[place][1], reply)
                    self.count(server, targets[place][1], _size(sent), _size(frames))
                    replies[place] = reply
            for server in line.reconnected():
                for _, to, frames in waiting.values():
                    if to == server:
                        line.send(server, frames)
            if waiting and (time.monotonic() > deadline or line.lost() is not None):
                raise self._complaint(line, waiting, kinds)
        return replies

    def _read(self, server: int, frames: list[Any], kinds: dict[int, type]) -> tuple[int, Any]:
        try:
            return wire.decode_reply(frames, kinds)
        except wire.BadFrame as error:
            raise self._bad_reply(server, "a request", error) from None

    def _check(self, server: int, message: Any, reply: Any) -> None:
        if isinstance(reply, Exception):
            return
        if isinstance(message, wire.READS):
            self.store.refresh()
        try:
            checks.check(self.store, message, reply)
        except checks.BadReply as error:
            raise self._bad_reply(server, type(message).__name__, error) from None

    def _bad_reply(self, server: int, what: str, error: GNNLabError) -> GNNLabError:
        return checks.BadReply(
            f"the reply of {self.job.name_of(server)} to {what} does not fit: {error}. All "
            "machines need the same version of gnnlab and the same partition files"
        )

    def _complaint(self, line: _Line, waiting: Any, kinds: dict[int, type]) -> GNNLabError:
        number, (_, server, _) = next(iter(waiting.items()))
        lost = line.lost()
        if lost is None:
            return GNNLabError(
                f"{self.job.name_of(server)} did not answer a {kinds[number].__name__} within "
                f"{self.job.timeout:g} s (GNNLAB_TIMEOUT)"
            )
        server, why = lost
        self._lost.add(server)
        return ServerLost(f"lost {self.job.name_of(server)}: {why}")


def _size(frames: list[Any]) -> int:
    return sum(map(len, frames))


class _Line:
    """Connections to the servers, used by one thread at a time.

    Parameters
    ----------
    job : Job
    context : zmq.Context
    patience : float
        Seconds in which a connection must be established.
    """

    def __init__(self, job: Job, context: zmq.Context[Any], patience: float) -> None:
        self._job, self._context, self._patience = job, context, patience
        self._sockets: dict[int, zmq.Socket[bytes]] = {}
        self._known: dict[Any, tuple[int, bool]] = {}  # socket → server, whether a monitor
        self._poller = zmq.Poller()
        self._gone: dict[int, tuple[float, float]] = {}  # server → since when, seconds allowed
        self._met: set[int] = set()
        self._back: list[int] = []
        self._refused: int | None = None

    def _connect(self, server: int) -> zmq.Socket[bytes]:
        socket = None
        try:
            socket = self._context.socket(zmq.DEALER)
            monitor = socket.get_monitor_socket(_EVENTS)
        except zmq.ZMQError as error:
            if socket is not None:
                socket.close(0)
            import resource  # absent on Windows, which cannot run jobs

            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            raise GNNLabError(
                f"no further connection, to {self._job.name_of(server)}: {error.strerror}. This "
                f"process may open {soft} files; raise the limit of the system ({hard}: `ulimit "
                "-Hn`), or use fewer servers and samplers"
            ) from None
        host, port = self._job.addresses[server]
        heartbeat(socket)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        socket.setsockopt(zmq.ROUTING_ID, uuid.uuid4().bytes)
        if self._job.keys:
            socket.curve_serverkey = self._job.keys.server_public.encode()
            socket.curve_publickey = self._job.keys.client_public.encode()
            socket.curve_secretkey = self._job.keys.client_secret.encode()
        self._sockets[server] = socket
        for one, is_monitor in ((socket, False), (monitor, True)):
            self._known[one] = server, is_monitor
            self._poller.register(one, zmq.POLLIN)
        self._gone[server] = time.monotonic(), self._patience
        socket.connect(f"tcp://{f'[{host}]' if ':' in host else host}:{port}")
        return socket

    def send(self, server: int, frames: list[Any]) -> None:
        """Send frames to a server without blocking.

        A refused connection never accepts frames, so a blocking send would hang. The frames are
        dropped, and ``lost`` returns the reason.
        """
        with suppress(zmq.Again):
            socket = self._sockets.get(server) or self._connect(server)
            send(socket, wire.cut(frames), zmq.NOBLOCK)

    def receive(self) -> list[tuple[int, list[Any]]]:
        """Return received messages with their servers; if there are none, wait up to a tick."""
        found = []
        for socket, _ in self._poller.poll(_TICK):
            server, is_monitor = self._known[socket]
            with suppress(zmq.Again):
                for _ in range(_AT_ONCE):  # no server may starve the others
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
        """Return the servers whose connections were restored since the last call."""
        found, self._back = self._back, []
        return found

    def lost(self) -> tuple[int, str] | None:
        """Return a server that was unreachable for too long, and the reason."""
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
        """Close all sockets and their monitors: an exception may keep this object alive."""
        for socket in self._sockets.values():
            socket.disable_monitor()
        for socket in self._known:
            socket.close(0)
