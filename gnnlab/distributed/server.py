"""A server: one process that answers for the rows of a machine.

Several servers of a machine share its part through memory. Each answers reads of any row and
applies the writes to the rows that it owns. Inside, ZeroMQ hands requests to a few threads, whose
kernels run beside each other; a request that waits for others, such as a barrier, occupies none.

Nothing that comes in is trusted: what is no message of this version is dropped and counted, what a
store refuses goes back as an error, and a peer without the keys of the job is not listened to.

References
----------
ZeroMQ guide, chapter 3, "Advanced Request-Reply Patterns". ZeroMQ RFC 27, "Authentication".
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
import traceback
from collections import OrderedDict, defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import zmq
import zmq.utils.z85

from gnnlab import trace
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import Job
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

__all__ = ["Server", "serve"]

_THREADS = 4
_REMEMBERED = 64  # replies to writes kept for each peer, in case one is asked for again
_PEERS = 4096
_TICK = 200  # milliseconds between two looks at those who wait
_LARGE = 1 << 14  # bytes from which a frame is not copied


def digest(part_config: str) -> str:
    """Identify a partitioned graph by its JSON file."""
    return hashlib.sha256(Path(part_config).read_bytes()).hexdigest()


def heartbeat(socket: zmq.Socket[bytes]) -> None:
    """Let a socket notice within 4 seconds that the other side is gone; never wait at closing."""
    socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, wire.MAX_FRAME)
    socket.setsockopt(zmq.IPV6, 1)


def send(socket: zmq.Socket[bytes], frames: list[Any], flags: int = 0) -> None:
    """Send frames, the large ones without a copy: their memory must stay as it is."""
    for frame in frames[:-1]:
        socket.send(frame, flags | zmq.SNDMORE, copy=_is_small(frame))
    socket.send(frames[-1], flags, copy=_is_small(frames[-1]))


def _is_small(frame: Any) -> bool:
    return not isinstance(frame, zmq.Frame) and len(frame) < _LARGE


def serve(job: Job) -> None:
    """Be a server until SIGTERM comes, then end the process with status 0."""
    torch.set_num_threads(1)  # there are several threads already, one for each request
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server, status = Server(job), 0
    try:
        server.start()
        _tell_ready()
        while not stop.wait(0.1) and not server.is_deserted:
            if server.failure:
                raise server.failure
    except BaseException:
        traceback.print_exc()
        status = 1
    server.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # at once: threads may still be at work, and nobody needs what they do


def _tell_ready() -> None:
    descriptor = os.environ.pop("GNNLAB_READY_FD", "")
    if descriptor:
        with os.fdopen(int(descriptor), "w") as line:
            line.write("ready\n")


class Server:
    """One of the servers of a machine.

    Parameters
    ----------
    job : Job
        ``job.server`` says which.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.failure: BaseException | None = None
        is_first = job.server % job.num_servers == 0
        self.memory = Memory(job.id, job.machine, None if is_first else job.timeout)
        try:
            config = read_config(job.part_config, num_parts=job.num_machines)
            # One server reads all files to compare checksums; it reports for the others.
            part = open_part(config, job.machine, verify=is_first)
            mark = digest(job.part_config)
        except BaseException:
            self.memory.close()
            raise
        self.welcome = wire.Welcome(job.id, job.server, config.graph_name, mark)
        self.store = SharedStore(part, self.memory)
        self.ends_when_deserted = "GNNLAB_READY_FD" not in os.environ
        self._context = zmq.Context()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._meetings: dict[str, _Meeting] = {}
        self._left: set[int] = set()
        self._num_ranks = 0
        self._replies: OrderedDict[bytes, OrderedDict[int, Any]] = OrderedDict()
        self._traffic: dict[str, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0])

    @property
    def is_deserted(self) -> bool:
        """Whether all trainers have said goodbye, and nobody else will end this process."""
        return self.ends_when_deserted and 0 < self._num_ranks <= len(self._left)

    # ------------------------------------------------------------- start and end
    def start(self) -> None:
        """Listen, in threads."""
        host, port = self.job.addresses[self.job.server]
        if self.job.keys:
            self._start(_Doorman(self._context, self.job.keys.client_public).run)
        front, back = self._context.socket(zmq.ROUTER), self._context.socket(zmq.DEALER)
        heartbeat(front)
        front.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a peer that comes back goes on under its name
        if self.job.keys:
            front.curve_server = True
            front.zap_domain = b"gnnlab"
            front.curve_publickey = self.job.keys.server_public.encode()
            front.curve_secretkey = self.job.keys.server_secret.encode()
        back.setsockopt(zmq.SNDHWM, 1)  # requests wait for whichever thread is free
        back.bind("inproc://work")
        try:
            front.bind(f"tcp://{f'[{host}]' if ':' in host else host}:{port}")
        except zmq.ZMQError as error:
            front.close()
            back.close()
            raise GNNLabError(
                f"{self.job.name_of(self.job.server)} cannot listen there: {error.strerror}. "
                "Another process uses the port, or the address is not of this machine: `gnnlab "
                "doctor` tells which"
            ) from None
        for number in range(_THREADS):
            self._start(self._work, name=f"thread {number}")
        self._start(lambda: zmq.proxy(front, back), front, back)

    def _start(self, work: Any, *sockets: zmq.Socket[bytes], name: str | None = None) -> None:
        def run() -> None:
            try:
                work()
            except zmq.ContextTerminated:
                pass
            except BaseException as error:
                self.failure = self.failure or error
            finally:
                for socket in sockets:
                    socket.close(0)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def close(self) -> None:
        """Stop listening and let go of the shared memory."""
        closer = threading.Thread(target=self._context.term, daemon=True)
        closer.start()  # every thread leaves when it next touches a socket
        closer.join(2.0)
        self.memory.close()

    # ----------------------------------------------------------------- requests
    def _work(self) -> None:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 1)
        socket.connect("inproc://work")
        with socket:
            while True:
                if not socket.poll(_TICK):
                    for peer, late in self._expired():
                        send(socket, [peer, *late])
                    continue
                frames: Any = socket.recv_multipart(copy=False)
                for to, reply in self._handle(frames[0].bytes, frames[1:]):
                    send(socket, [to, *reply])

    def _handle(self, peer: bytes, frames: list[zmq.Frame]) -> list[tuple[bytes, list[Any]]]:
        """Answer one request; return replies, perhaps to others, perhaps none yet."""
        start = time.perf_counter()
        try:
            number, message = wire.decode_request(frames)
        except wire.BadFrame:
            self._count("dropped", frames, [], start)
            return []
        is_write = not isinstance(message, (*wire.READS, wire.Hello, wire.Statistics))
        if is_write:
            again = self._again(peer, number)
            if again is not None:
                self._count("repeated", frames, again, start)
                return [(peer, again)] if again else []
        try:
            replies = self._answer(peer, number, message)
        except Exception as error:
            if not isinstance(error, GNNLabError):
                print(f"{self.job.name_of(self.job.server)}: {error!r}", file=sys.stderr)
            replies = [(peer, number, wire.encode_error(number, error))]
        if is_write:
            for to, of, reply in replies:
                self._remember(to, of, reply)
        name = type(message).__name__
        trace.record("serve", start, message=name)
        self._count(name, frames, [f for _, _, reply in replies for f in reply], start)
        return [(to, reply) for to, _, reply in replies]

    def _answer(self, peer: bytes, number: int, message: Any) -> list[tuple[bytes, int, list[Any]]]:
        reply: Any = None
        if isinstance(message, wire.Meet):
            return self._meet(peer, number, message)
        if isinstance(message, wire.Hello):
            reply = self.welcome
        elif isinstance(message, wire.Bye):
            with self._lock:
                self._num_ranks = message.num_ranks
                self._left.add(message.rank)
        elif isinstance(message, wire.Statistics):
            reply = self.traffic()
        else:
            self._check_owner(message)
            reply = self.store.answer(message)
        return [(peer, number, wire.encode_reply(number, reply))]

    def _check_owner(self, message: Any) -> None:
        """Refuse writes that another server of the machine has to apply."""
        mine, servers = self.job.server % self.job.num_servers, self.job.num_servers
        if isinstance(message, m.Create | m.Delete | wire.Share | wire.Release | wire.Freeze):
            if mine or isinstance(message, m.Delete):
                raise InvalidInput(
                    f"{type(message).__name__} goes to the first server of a machine"
                )
        elif isinstance(message, m.Push | m.Update) and message.rows.numel():
            rows = self.store.num_rows(message.name)
            low, high = (int(end) for end in message.rows.aminmax())
            if not rows * mine // servers <= low <= high < rows * (mine + 1) // servers:
                raise InvalidInput(
                    f"rows {low} to {high} of {message.name} are not all owned by "
                    f"{self.job.name_of(self.job.server)}"
                )

    # ------------------------------------------------------ writes that come twice
    def _again(self, peer: bytes, number: int) -> list[Any] | None:
        """Return the reply to a write that came before, empty while it is under way."""
        with self._lock:
            known = self._replies.setdefault(peer, OrderedDict())
            self._replies.move_to_end(peer)
            if len(self._replies) > _PEERS:
                self._replies.popitem(last=False)
            if number in known:
                return known[number]
            known[number] = []
            while len(known) > _REMEMBERED:
                known.popitem(last=False)
            return None

    def _remember(self, peer: bytes, number: int, reply: list[Any]) -> None:
        with self._lock:
            if number in self._replies.get(peer, ()):
                self._replies[peer][number] = reply

    # ----------------------------------------------------------------- meetings
    def _meet(
        self, peer: bytes, number: int, message: wire.Meet
    ) -> list[tuple[bytes, int, list[Any]]]:
        if not 0 <= message.rank < message.num_ranks:
            raise InvalidInput(f"rank {message.rank} of {message.num_ranks} cannot be")
        with self._lock:
            meeting = self._meetings.get(message.place)
            if meeting is None:
                deadline = time.monotonic() + self.job.timeout
                meeting = self._meetings[message.place] = _Meeting(message.num_ranks, deadline)
            if message.num_ranks != meeting.num_ranks:
                raise InvalidInput(f"{message.num_ranks} ranks at a place of {meeting.num_ranks}")
            meeting.came[message.rank] = (peer, number, message.words)
            if len(meeting.came) < meeting.num_ranks:
                return []
            del self._meetings[message.place]
        words = tuple(words for _, (_, _, words) in sorted(meeting.came.items()))
        return [(p, n, wire.encode_reply(n, words)) for p, n, _ in meeting.came.values()]

    def _expired(self) -> list[tuple[bytes, list[Any]]]:
        """Tell those who have waited for too long whom they waited for."""
        late = []
        with self._lock:
            for place, meeting in list(self._meetings.items()):
                if time.monotonic() > meeting.deadline:
                    late.append((place, self._meetings.pop(place)))
        replies = []
        for place, meeting in late:
            missing = (str(rank) for rank in range(meeting.num_ranks) if rank not in meeting.came)
            error = GNNLabError(
                f"{place}: ranks {', '.join(islice(missing, 20))} of {meeting.num_ranks} did "
                f"not come within {self.job.timeout:g} s. All trainers must call it, in the same "
                "order"
            )
            for peer, number, _ in meeting.came.values():
                replies.append((peer, wire.encode_error(number, error)))
        return replies

    # --------------------------------------------------------------- statistics
    def traffic(self) -> dict[str, wire.Traffic]:
        """Return what came, by kind of message; "dropped" for what was none."""
        with self._lock:
            return {kind: wire.Traffic(*counts) for kind, counts in self._traffic.items()}

    def _count(self, kind: str, came: list[zmq.Frame], sent: list[Any], start: float) -> None:
        values = (1, sum(map(len, came)), sum(map(len, sent)), time.perf_counter() - start)
        with self._lock:
            counts = self._traffic[kind]
            for i, value in enumerate(values):
                counts[i] += value


class _Meeting:
    """Those who have come to a place, and until when they wait for the others."""

    def __init__(self, num_ranks: int, deadline: float) -> None:
        self.num_ranks, self.deadline = num_ranks, deadline
        self.came: dict[int, tuple[bytes, int, str]] = {}


class _Doorman:
    """Lets in peers that prove to have the client key of the job, and says whom it turned away."""

    def __init__(self, context: zmq.Context[Any], client_public: str) -> None:
        self._socket = context.socket(zmq.REP)
        self._socket.bind("inproc://zeromq.zap.01")
        self._key = client_public.encode()

    def run(self) -> None:
        with self._socket as socket:
            while True:
                _, request, _, address, _, mechanism, *credentials = socket.recv_multipart()
                fits = mechanism == b"CURVE" and credentials == [zmq.utils.z85.decode(self._key)]
                if not fits:
                    who = address.decode("ascii", "replace").removeprefix("::ffff:")
                    print(f"refused a peer at {who}: it lacks this job's key", file=sys.stderr)
                code, text = (b"200", b"OK") if fits else (b"400", b"no key of this job")
                socket.send_multipart([b"1.0", request, code, text, b"", b""])
