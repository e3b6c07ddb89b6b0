"""ZeroMQ sockets: connections of a client to servers, and the sockets on which a server listens.

If a server dies, its connections close at once; if it is cut off, heartbeats time out. In both
cases a waiting client raises an error within seven seconds, which names the server. After a short
interruption, pending requests are resent under the same number: reads are idempotent, and servers
remember the numbers of writes.

References
----------
ZeroMQ guide, chapters 2 and 3. ZeroMQ RFC 27, "Authentication".
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import zmq
import zmq.utils.z85
from zmq.utils.monitor import recv_monitor_message

from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings, Keys
from gnnlab.distributed.protocol import BadReply
from gnnlab.distributed.router import Answer, bad_reply
from gnnlab.errors import GNNLabError

__all__ = ["Connections", "Doorman", "Pool", "ServerLost", "listen", "raise_file_limit", "send"]

_GRACE = 0.5  # seconds in which a broken connection may be restored
_HELD = 2.0  # the same, if a process still accepts connections there: its machine may be busy
_CONNECT = 5.0  # seconds to connect to a server that was reached before
_TICK = 100  # milliseconds
_AT_ONCE = 64  # messages read from one server before the others and the deadline are checked
_LARGE = 1 << 14  # bytes from which a frame is not copied
_OVERHEAD = 256  # bytes that encryption may add to a frame
_HANDSHAKE = 5000  # milliseconds in which a new connection must authenticate
_QUEUED = 256  # messages of one peer that are read ahead; clients have a few in flight
_FILES = 1 << 20  # more open files than any job needs; some systems allow 2**63
_QUIET = 60.0  # seconds between two reports of refused peers at one address
_ADDRESSES = 256  # addresses of refused peers that are reported separately
_EVENTS = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_DISCONNECTED
)


class ServerLost(GNNLabError, ConnectionError):
    """A server has ended, or cannot be reached."""


def raise_file_limit() -> None:
    """Raise the limit of open files, hence connections, as far as the system permits."""
    import resource  # absent on Windows, which cannot run jobs

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems permit less than their hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def heartbeat(socket: zmq.Socket[bytes]) -> None:
    """Make a socket detect a lost peer within 4 seconds, and close without waiting."""
    socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, _QUEUED)
    socket.setsockopt(zmq.MAXMSGSIZE, wire.MAX_FRAME)
    socket.setsockopt(zmq.IPV6, 1)


def set_own_keys(socket: zmq.Socket[bytes], keys: Keys) -> None:
    """Set the key pair by which a process authenticates itself."""
    socket.curve_secretkey = keys.secret.encode()
    socket.curve_publickey = zmq.curve_public(keys.secret.encode())


def send(socket: zmq.Socket[bytes], frames: list[Any], flags: int = 0) -> None:
    """Send frames, the large ones without a copy: their memory must not change."""
    for frame in frames[:-1]:
        socket.send(frame, flags | zmq.SNDMORE, copy=_is_small(frame))
    socket.send(frames[-1], flags, copy=_is_small(frames[-1]))


def _is_small(frame: Any) -> bool:
    return not isinstance(frame, zmq.Frame) and len(frame) < _LARGE


def _address(job: JobSettings, server: int) -> str:
    host, port = job.addresses[server]
    return f"tcp://{f'[{host}]' if ':' in host else host}:{port}"


# ------------------------------------------------------------------------------ clients
class Pool:
    """Connections of one process to the servers: one set for each thread that waits for replies.

    Parameters
    ----------
    job : JobSettings
    """

    def __init__(self, job: JobSettings) -> None:
        self._job = job
        self.lost: set[int] = set()
        self._numbers = itertools.count(wire.FIRST_NUMBER)
        self._open(job.timeout)

    def _open(self, patience: float) -> None:
        # A forked child cannot use its parent's sockets; it calls this again.
        self.pid, self.is_closed = os.getpid(), False
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, self._context.get(zmq.SOCKET_LIMIT))
        self._idle: deque[Connections] = deque()
        self._patience = patience  # of the first connections

    def carry(
        self, targets: Sequence[tuple[int, Any]], meanwhile: Callable[[], None], seconds: float
    ) -> list[Answer]:
        """Send messages to servers, all at once; see :meth:`Carrier.carry`."""
        if self.pid != os.getpid():
            self._open(_CONNECT)
        if self.is_closed:
            raise GNNLabError("this process has left the job by exit_client()")
        try:
            connections = self._idle.pop()
        except IndexError:
            connections = Connections(self._job, self._context, self._patience)
            self._patience = _CONNECT
        try:
            answers = self._exchange(connections, targets, meanwhile, seconds)
        except BaseException:
            connections.close()  # replies may still arrive
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
        deadline = time.monotonic() + seconds
        waiting: dict[int, tuple[int, int, list[Any]]] = {}
        kinds: dict[int, type] = {}
        for place, (server, message) in enumerate(targets):
            number = next(self._numbers)
            frames = wire.encode_request(number, message)
            waiting[number], kinds[number] = (place, server, frames), type(message)
            connections.send(server, frames)
        meanwhile()
        answers: list[Any] = [None] * len(targets)
        while waiting:
            for server, frames in connections.receive():
                try:
                    if self._job.keys:
                        frames = wire.join(frames)
                    number, reply = wire.decode_reply(frames, kinds)
                except wire.BadFrame as error:
                    raise BadReply(bad_reply(self._job, server, "a request", error)) from None
                if number in waiting and waiting[number][1] == server:
                    place, _, sent = waiting.pop(number)
                    answers[place] = reply, sum(map(len, sent)), sum(map(len, frames))
            for server in connections.reconnected():
                for _, to, frames in waiting.values():
                    if to == server:
                        connections.send(server, frames)
            if waiting and (time.monotonic() > deadline or connections.lost() is not None):
                raise self._complaint(connections, waiting, kinds)
        return answers

    def _complaint(
        self, connections: Connections, waiting: Any, kinds: dict[int, type]
    ) -> GNNLabError:
        number, (_, server, _) = next(iter(waiting.items()))
        lost = connections.lost(overdue=server)
        if lost is None:
            return GNNLabError(
                f"{self._job.name_of(server)} did not answer a {kinds[number].__name__} within "
                f"{self._job.timeout:g} s (GNNLAB_TIMEOUT)"
            )
        server, why = lost
        self.lost.add(server)
        return ServerLost(f"lost {self._job.name_of(server)}: {why}")

    def close(self) -> None:
        """Close all connections."""
        self.is_closed = True
        while self._idle:
            self._idle.pop().close()
        closer = threading.Thread(target=self._context.term, daemon=True)
        closer.start()
        closer.join(1.0)

    def destroy(self) -> None:
        """Close all sockets at once, also those that an exception keeps alive."""
        self._context.destroy(0)


class Connections:
    """Connections to the servers, used by one thread at a time.

    Parameters
    ----------
    job : JobSettings
    context : zmq.Context
    patience : float
        Seconds in which a connection must be established.
    """

    def __init__(self, job: JobSettings, context: zmq.Context[Any], patience: float) -> None:
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
        heartbeat(socket)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        socket.setsockopt(zmq.ROUTING_ID, uuid.uuid4().bytes)
        if self._job.keys:
            machine = server // self._job.num_servers
            socket.curve_serverkey = self._job.keys.servers[machine].encode()
            set_own_keys(socket, self._job.keys)
        self._sockets[server] = socket
        for one, is_monitor in ((socket, False), (monitor, True)):
            self._known[one] = server, is_monitor
            self._poller.register(one, zmq.POLLIN)
        self._gone[server] = time.monotonic(), self._patience
        socket.connect(_address(self._job, server))
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
                    if not socket.get(zmq.EVENTS) & zmq.POLLIN:
                        break  # cheaper than an exception
        return found

    def _note(self, server: int, event: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._gone.pop(server, None)
            if server in self._met:
                self._back.append(server)
            self._met.add(server)
        elif event == zmq.EVENT_CONNECTED:
            if server in self._met and server in self._gone:
                self._gone[server] = self._gone[server][0], _HELD
        elif event == zmq.EVENT_DISCONNECTED:
            if server in self._met:
                self._gone.setdefault(server, (time.monotonic(), _GRACE))
        elif server not in self._met:
            self._refused = server

    def reconnected(self) -> list[int]:
        """Return the servers whose connections were restored since the last call."""
        found, self._back = self._back, []
        return found

    def lost(self, overdue: int = -1) -> tuple[int, str] | None:
        """Return a server that was unreachable for too long, and the reason.

        For ``overdue``, a server whose answer did not come in time, any time is too long.
        """
        if self._refused is not None:
            return self._refused, "it refused this process, whose keys are not those of its job"
        now = time.monotonic()
        for server, (since, patience) in self._gone.items():
            if now - since > patience or server == overdue:
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


# ------------------------------------------------------------------------------ servers
def listen(
    context: zmq.Context[Any], job: JobSettings
) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
    """Bind the sockets of a server: one for clients, one for the threads that answer them."""
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    heartbeat(front)
    # An unauthenticated peer may fill one frame, until the handshake times out.
    front.setsockopt(zmq.MAXMSGSIZE, wire.PIECE + _OVERHEAD)
    front.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE)
    front.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a peer that reconnects keeps its identity
    if job.keys:
        front.curve_server = True
        front.zap_domain = b"gnnlab"
        set_own_keys(front, job.keys)
    back.setsockopt(zmq.SNDHWM, 1)  # requests wait for an idle thread
    back.bind("inproc://work")
    try:
        front.bind(_address(job, job.server))
    except zmq.ZMQError as error:
        front.close()
        back.close()
        raise GNNLabError(
            f"{job.name_of(job.server)} cannot listen there: {error.strerror}. "
            "Another process uses the port, or the address is not of this machine: `gnnlab "
            "doctor` tells which"
        ) from None
    return front, back


class Doorman:
    """ZAP handler: admits peers with a client key of the job, and reports the others."""

    def __init__(self, context: zmq.Context[Any], clients: Iterable[str]) -> None:
        self._socket = context.socket(zmq.REP)
        self._socket.bind("inproc://zeromq.zap.01")
        self._admitted = {zmq.utils.z85.decode(key.encode()) for key in clients}
        self._refused: dict[str, tuple[float, int]] = {}  # address → last report, refused since

    def run(self) -> None:
        """Answer libzmq until the context is terminated."""
        with self._socket as socket:
            while True:
                _, request, _, address, _, mechanism, *credentials = socket.recv_multipart()
                key = credentials[0] if len(credentials) == 1 else b""
                fits = mechanism == b"CURVE" and key in self._admitted
                if not fits:
                    self._report(address.decode("ascii", "replace").removeprefix("::ffff:"))
                code, text = (b"200", b"OK") if fits else (b"400", b"no key of this job")
                socket.send_multipart([b"1.0", request, code, text, b"", b""])

    def _report(self, address: str) -> None:
        """Print a line about an address, at most one a minute whatever the number of attempts."""
        now = time.monotonic()
        if address not in self._refused and len(self._refused) >= _ADDRESSES:
            self._refused = {a: r for a, r in self._refused.items() if now - r[0] < _QUIET}
            if len(self._refused) >= _ADDRESSES:
                address = "further addresses"
        last, count = self._refused.get(address, (-_QUIET, 0))
        if now - last < _QUIET:
            self._refused[address] = last, count + 1
            return
        self._refused[address] = now, 0
        more = f" ({count:,} more attempts since the last report)" if count else ""
        print(f"refused a peer at {address}: it lacks this job's key{more}", file=sys.stderr)
