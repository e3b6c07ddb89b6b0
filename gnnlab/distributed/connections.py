"""A client's connections to the servers of a job.

Each connection carries one request at a time; further requests to the same server at the same time
have further connections, which are kept for later ones. If a server dies, its connections close at
once; if its host cannot be reached, the kernel notices within four seconds. In both cases a waiting
client raises an error within five seconds, which names the server. A server that keeps a request
waiting is greeted on another connection, and counts as lost if it does not answer for 15 seconds.
The client's process then fails, and :mod:`gnnlab.launch.job_supervisor` ends the job.

After a short interruption, a pending request is sent again on a new connection under the same
number: reads are idempotent, and servers remember the numbers of writes.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import select
import socket
import ssl
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.protocol import BadReply
from gnnlab.distributed.stream import Refused, Stream, greet
from gnnlab.errors import GNNLabError
from gnnlab.launch.certificates import server_name
from gnnlab.multiprocessing import open_files

_GRACE = 0.5  # seconds in which a broken connection may be restored
_HELD = 10.0  # the same, if the connection is accepted: the server may be busy
_SILENT = 5.0  # seconds of waiting for a reply after which the server is greeted again
_CONNECT = 5.0  # seconds to connect to a server that was reached before
_PAUSE = 0.05  # seconds between two attempts to connect
_TICK = 100  # milliseconds


class ServerLost(GNNLabError, ConnectionError):
    """A server has ended, or cannot be reached."""


Answer = tuple[Any, int, int]
"""A reply, or the exception of a refusal; bytes of the request; bytes of the reply."""


@dataclass(eq=False, slots=True)
class _Request:
    """A request that waits for its reply."""

    place: int  # among the requests that are sent at once
    server: int
    number: int
    kind: type
    frames: list[Any]
    since: float  # when it was sent, or the server was greeted last


class Pool:
    """Connections of one process to the servers: one set for each thread that waits for replies."""

    def __init__(self, job: JobSettings) -> None:
        self._job = job
        self.lost: set[int] = set()
        self._numbers = itertools.count(wire.FIRST_NUMBER)
        self._tls = job.keys.context(is_server=False) if job.keys else None
        self._open(job.timeout)

    def _open(self, patience: float) -> None:
        # A forked child cannot use its parent's connections; it calls this again.
        self.pid, self.is_closed = os.getpid(), False
        self._identity = uuid.uuid4().bytes
        self._idle: deque[Connections] = deque()
        self._patience = patience  # of the first connections

    def carry(
        self, targets: Sequence[tuple[int, Any]], meanwhile: Callable[[], None], seconds: float
    ) -> list[Answer]:
        """Send messages to servers, all at once; return the answers in the same order.

        ``meanwhile`` is called once, after the messages have been sent.
        """
        if self.pid != os.getpid():
            self._open(_CONNECT)
        if self.is_closed:
            raise GNNLabError("this process has left the job by exit_client()")
        try:
            connections = self._idle.pop()
        except IndexError:
            connections = Connections(self._job, self._tls, self._identity, self._patience)
            self._patience = _CONNECT
        try:
            answers = self._exchange(connections, targets, meanwhile, seconds)
        except BaseException:
            connections.close()  # replies may still arrive
            self.lost |= connections.lost
            raise
        self._idle.append(connections)
        return answers

    def _exchange(
        self,
        connections: Connections,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None],
        seconds: float,
    ) -> list[Answer]:
        deadline = connections.deadline = time.monotonic() + seconds
        for place, (server, message) in enumerate(targets):
            number = next(self._numbers)
            frames = wire.encode_request(number, message)
            since = time.monotonic()
            connections.send(_Request(place, server, number, type(message), frames, since))
        meanwhile()
        answers: list[Any] = [None] * len(targets)
        while connections.waiting:
            for place, answer in connections.receive():
                answers[place] = answer
            if time.monotonic() > deadline and connections.waiting:
                late = connections.waiting[0]
                raise GNNLabError(
                    f"{self._job.name_of(late.server)} did not answer a {late.kind.__name__} "
                    f"within {self._job.timeout:g} s (GNNLAB_TIMEOUT)"
                )
        return answers

    def close(self) -> None:
        """Close all connections."""
        self.is_closed = True
        while self._idle:
            self._idle.pop().close()


class Connections:
    """Connections to the servers, used by one thread at a time.

    ``identity`` is that of this process for the servers, which must accept a first connection
    within ``patience`` seconds; none is attempted after ``deadline``, a time of ``time.monotonic``.
    ``lost`` are the servers that could not be reached.
    """

    def __init__(
        self, job: JobSettings, tls: ssl.SSLContext | None, identity: bytes, patience: float
    ) -> None:
        self._job, self._tls, self._identity, self._patience = job, tls, identity, patience
        self._idle: dict[int, list[Stream]] = defaultdict(list)
        self._busy: dict[int, tuple[_Request, Stream]] = {}  # file descriptor →
        self._poll = select.poll()
        self._met: set[int] = set()
        self.lost: set[int] = set()
        self.deadline = math.inf

    @property
    def waiting(self) -> list[_Request]:
        """The requests without a reply."""
        return [request for request, _ in self._busy.values()]

    def send(self, request: _Request) -> None:
        """Send a request; raise ServerLost if the server is gone or refuses this process."""
        idle = self._idle[request.server]
        stream = idle.pop() if idle else self._connect(request.server)
        try:
            self._write(stream, request)
        except OSError:
            stream.close()
            self._send_again(request)

    def _write(self, stream: Stream, request: _Request) -> None:
        stream.link.settimeout(self._job.timeout)
        stream.send(request.frames)
        stream.link.setblocking(False)
        number = stream.link.fileno()
        self._busy[number] = request, stream
        self._poll.register(number, select.POLLIN)

    def _send_again(self, request: _Request) -> None:
        """Send a request whose connection broke on a new one; idle ones are broken as well."""
        while self._idle[request.server]:
            self._idle[request.server].pop().close()
        try:
            self._write(self._connect(request.server), request)
        except ServerLost:
            raise
        except OSError as error:
            raise self._lost(request.server, error.strerror or str(error)) from None

    def receive(self) -> list[tuple[int, Answer]]:
        """Return answers, with the places of their requests; if there are none, wait for a tick.

        Raises BadReply for what is no reply to its request, and ServerLost for a lost connection.
        """
        found = []
        for number, _ in self._poll.poll(_TICK):
            request, stream = self._busy[number]
            try:
                frames = stream.receive()
                if frames is None:
                    continue
                answers, reply = wire.decode_reply(frames, {request.number: request.kind})
            except OSError:
                self._forget(number).close()
                self._send_again(request)
            except wire.BadFrame as error:
                raise BadReply(bad_reply(self._job, request.server, "a request", error)) from None
            else:
                if answers == request.number:
                    self._idle[request.server].append(self._forget(number))
                    sizes = sum(map(len, request.frames)), sum(map(len, frames))
                    found.append((request.place, (reply, *sizes)))
        for request in self.waiting if not found else ():
            if time.monotonic() - request.since > _SILENT:
                self._connect(request.server).close()  # raises if the server is not alive
                request.since = time.monotonic()
        return found

    def _forget(self, number: int) -> Stream:
        self._poll.unregister(number)
        return self._busy.pop(number)[1]

    def _connect(self, server: int) -> Stream:
        is_known = server in self._met
        patience = _GRACE if is_known else self._patience
        patience = max(0.0, min(patience, self.deadline - time.monotonic()))
        deadline = time.monotonic() + patience
        name = server_name(server // self._job.num_servers)
        while True:
            left = max(_PAUSE, deadline - time.monotonic())
            try:
                link = socket.create_connection(self._job.addresses[server], left)
                stream = greet(link, self._identity, self._tls, name, max(left, _HELD))
            except Refused:
                raise self._lost(
                    server, "it refused this process, whose keys are not those of its job"
                ) from None
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise GNNLabError(
                        f"no further connection, to {self._job.name_of(server)}: {error.strerror}."
                        f" {open_files()}, or use fewer servers and samplers"
                    ) from None
                if time.monotonic() < deadline:
                    time.sleep(_PAUSE)
                    continue
                raise self._lost(
                    server,
                    "the process has ended, or its machine cannot be reached"
                    if is_known
                    else f"no connection within {patience:.3g} s. Is it running, and is its port "
                    "open between the machines? Look at what it printed",
                ) from None
            self._met.add(server)
            return stream

    def _lost(self, server: int, why: str) -> ServerLost:
        self.lost.add(server)
        return ServerLost(f"lost {self._job.name_of(server)}: {why}")

    def close(self) -> None:
        """Close all connections: an exception may keep this object alive."""
        streams = [stream for _, stream in self._busy.values()]
        for stream in itertools.chain(streams, *self._idle.values()):
            stream.close()
        self._busy.clear()
        self._idle.clear()


def bad_reply(job: JobSettings, server: int, what: str, error: Exception) -> str:
    """Return the text about an invalid reply of a server."""
    return (
        f"the reply of {job.name_of(server)} to {what} does not fit: {error}. All machines need "
        "the same version of gnnlab and the same partition files"
    )
