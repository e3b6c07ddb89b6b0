"""Server: a process that answers requests for the rows of a machine.

The servers of a machine share its part in memory. Each answers reads of any row and applies writes
to the rows that it owns. ZeroMQ distributes requests to a few threads, whose kernels run in
parallel; a request that waits for other ranks, such as a barrier, occupies no thread.

Input is not trusted: bytes that are no message of this version are dropped and counted, messages
that the store refuses are answered with an error, and peers without the job's keys are rejected.

References
----------
ZeroMQ guide, chapter 3, "Advanced Request-Reply Patterns". ZeroMQ RFC 27, "Authentication".
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
import traceback
from collections import OrderedDict, defaultdict
from contextlib import suppress
from itertools import islice
from typing import Any

import torch
import zmq

from gnnlab import environment, trace
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.protocol import EXCHANGES, To
from gnnlab.distributed.sockets import Doorman, listen, raise_file_limit, send
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

__all__ = ["Server", "serve"]

_THREADS = 4
_REMEMBERED = 64  # replies to writes kept for each peer, in case a write is resent
_PEERS = 4096
_REPLIES = 1 << 26  # bytes of all replies that are kept
_MEETINGS = 1024  # places at which ranks may wait
_WAITING = 1 << 24  # bytes of the messages of waiting ranks
_TICK = 200  # milliseconds between two checks for expired waits
_MESSAGE = 1 << 10  # approximate bytes of a stored message beside its text


def _size(frames: list[Any]) -> int:
    return sum(map(len, frames))


def serve(job: JobSettings) -> None:
    """Run a server until SIGTERM, SIGINT or ``is_deserted``, then exit; status 1 after an error."""
    raise_file_limit()
    torch.set_num_threads(1)  # requests run in several threads already
    stop = Stop()
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
    os._exit(status)  # at once: threads may still run, and their results are not needed


class Stop:
    """Records SIGTERM and SIGINT, which then have no other effect.

    The handler writes to a pipe and takes no lock: Python runs it in the main thread, perhaps while
    that thread is inside ``threading.Event.wait`` and holds the lock that ``Event.set`` needs.
    """

    def __init__(self) -> None:
        self._noted, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: Any) -> None:
        with suppress(BlockingIOError):  # the pipe is full, so a signal is recorded already
            os.write(self._tell, b".")

    def wait(self, seconds: float) -> bool:
        """Wait for a signal; return whether one was recorded since construction."""
        poll = select.poll()  # select() supports no descriptor above 1023
        poll.register(self._noted, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


def _tell_ready() -> None:
    descriptor = os.environ.pop(environment.READY, "")
    if descriptor:
        with os.fdopen(int(descriptor), "w") as line:
            line.write("ready\n")


class Server:
    """One of the servers of a machine.

    Parameters
    ----------
    job : JobSettings
        ``job.server`` is its index.
    """

    def __init__(self, job: JobSettings) -> None:
        self.job = job
        self.failure: BaseException | None = None
        is_first = job.server % job.num_servers == 0
        self.memory = Memory(job.id, job.machine, None if is_first else job.timeout)
        try:
            config = read_config(job.part_config, num_parts=job.num_machines)
            # The first server compares the checksums of all files, on behalf of the others.
            part = open_part(config, job.machine, verify=is_first)
            mark = job.digest()
        except BaseException:
            self.memory.close()
            raise
        self.welcome = m.Welcome(job.id, job.server, config.graph_name, mark)
        self.store = SharedStore(part, self.memory)
        self.store.is_limited = True
        self.ends_when_deserted = environment.READY not in os.environ
        self._context = zmq.Context()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._meetings: dict[str, _Meeting] = {}
        self._left: set[int] = set()
        self._num_ranks = 0
        self._replies: OrderedDict[bytes, OrderedDict[int, Any]] = OrderedDict()
        self._reply_bytes = 0
        self._traffic: dict[str, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0])

    @property
    def is_deserted(self) -> bool:
        """Whether all trainers have left the job, and no agent will end this process."""
        return self.ends_when_deserted and 0 < self._num_ranks <= len(self._left)

    # ------------------------------------------------------------- start and end
    def start(self) -> None:
        """Bind the socket and start the threads."""
        if self.job.keys:
            self._start(Doorman(self._context, self.job.keys.clients).run)
        front, back = listen(self._context, self.job)
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
        """Stop listening and release the shared memory."""
        closer = threading.Thread(target=self._context.term, daemon=True)
        closer.start()  # every thread exits at its next socket call
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
                    self.store.drop_waiting(self.job.timeout)
                    for peer, late in self._expired():
                        send(socket, [peer, *late])
                    continue
                frames: Any = socket.recv_multipart(copy=False)
                for to, reply in self._handle(frames[0].bytes, frames[1:]):
                    # ZeroMQ decrypts whole frames only: pieces are decrypted as they arrive.
                    send(socket, [to, *(wire.cut(reply) if self.job.keys else reply)])

    def _handle(self, peer: bytes, frames: list[zmq.Frame]) -> list[tuple[bytes, list[Any]]]:
        """Process one request; return replies, perhaps to several peers, perhaps none yet."""
        start = time.perf_counter()
        try:
            number, message = wire.decode_request(wire.join(frames))
        except wire.BadFrame:
            self._count("dropped", frames, [], start)
            return []
        is_write = not EXCHANGES[type(message)].is_repeatable
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
        speaks_for_a_rank = isinstance(message, m.Meet | m.Release | m.Bye)
        if speaks_for_a_rank and not 0 <= message.rank < message.num_ranks:
            raise InvalidInput(f"rank {message.rank} of {message.num_ranks} ranks does not exist")
        if isinstance(message, m.Meet):
            return self._meet(peer, number, message)
        if isinstance(message, m.Hello):
            reply = self.welcome
        elif isinstance(message, m.Bye):
            with self._lock:
                self._num_ranks = message.num_ranks
                self._left.add(message.rank)
        elif isinstance(message, m.Statistics):
            reply = self.traffic()
        else:
            self._check_owner(message)
            reply = self.store.answer(message)
        return [(peer, number, wire.encode_reply(number, reply))]

    def _check_owner(self, message: Any) -> None:
        """Raise InvalidInput for writes that another server of the machine has to apply."""
        mine, servers = self.job.server % self.job.num_servers, self.job.num_servers
        to = EXCHANGES[type(message)].to
        if to is To.NONE or (to is To.FIRST and mine):
            raise InvalidInput(f"{type(message).__name__} goes to the first server of a machine")
        if to in (To.OWNERS, To.ALL_OWNERS) and message.rows.numel():
            rows = self.store.num_rows(message.name)
            low, high = (int(end) for end in message.rows.aminmax())
            if not rows * mine // servers <= low <= high < rows * (mine + 1) // servers:
                raise InvalidInput(
                    f"rows {low} to {high} of {message.name} are not all owned by "
                    f"{self.job.name_of(self.job.server)}"
                )

    # --------------------------------------------------------------- resent writes
    def _again(self, peer: bytes, number: int) -> list[Any] | None:
        """Return the reply to a resent write, empty while it is in progress; None if new."""
        with self._lock:
            known = self._replies.setdefault(peer, OrderedDict())
            self._replies.move_to_end(peer)
            if number in known:
                return known[number]
            known[number] = []
            while len(known) > _REMEMBERED:
                self._reply_bytes -= _size(known.popitem(last=False)[1])
            while len(self._replies) > _PEERS:
                self._forget()
            return None

    def _remember(self, peer: bytes, number: int, reply: list[Any]) -> None:
        with self._lock:
            if number in self._replies.get(peer, ()):
                self._replies[peer][number] = reply
                self._reply_bytes += _size(reply)
            while self._reply_bytes > _REPLIES and len(self._replies) > 1:
                self._forget()

    def _forget(self) -> None:
        """Drop the replies to the least recently active peer."""
        _, known = self._replies.popitem(last=False)
        self._reply_bytes -= sum(map(_size, known.values()))

    # ----------------------------------------------------------------- meetings
    def _meet(
        self, peer: bytes, number: int, message: m.Meet
    ) -> list[tuple[bytes, int, list[Any]]]:
        size = len(message.place) + len(message.words) + _MESSAGE
        with self._lock:
            meeting = self._meetings.get(message.place)
            total = size + sum(each.size for each in self._meetings.values())
            if total > _WAITING or (meeting is None and len(self._meetings) >= _MEETINGS):
                raise InvalidInput(
                    f"too many ranks wait for others: at {len(self._meetings):,} places, with "
                    f"{total:,} bytes; {_MEETINGS:,} places and {_WAITING:,} bytes are allowed"
                )
            if meeting is None:
                deadline = time.monotonic() + self.job.timeout
                meeting = self._meetings[message.place] = _Meeting(message.num_ranks, deadline)
            if message.num_ranks != meeting.num_ranks:
                raise InvalidInput(
                    f"{message.place}: rank {message.rank} waits for {message.num_ranks} ranks, "
                    f"others for {meeting.num_ranks}"
                )
            meeting.came[message.rank] = (peer, number, message.words)
            meeting.size += size
            if len(meeting.came) < meeting.num_ranks:
                return self._never_meet(meeting.num_ranks)
            del self._meetings[message.place]
        texts = tuple(text for _, (_, _, text) in sorted(meeting.came.items()))
        return [(p, n, wire.encode_reply(n, texts)) for p, n, _ in meeting.came.values()]

    def _never_meet(self, num_ranks: int) -> list[tuple[bytes, int, list[Any]]]:
        """Return errors for all ranks if each of them waits, but not at one place."""
        if len(self._meetings) < 2:
            return []
        places = {p: each for p, each in self._meetings.items() if each.num_ranks == num_ranks}
        where = {rank: place for place, each in places.items() for rank in each.came}
        if len(where) < num_ranks:
            return []
        listed = (f"rank {rank} at {place}" for rank, place in sorted(where.items()))
        error = GNNLabError(
            f"all trainers wait, at different places: {', '.join(islice(listed, 20))}. They must "
            "create tensors and call barriers in the same order; the order of a set differs "
            "between processes"
        )
        for place in places:
            del self._meetings[place]
        came = [each for meeting in places.values() for each in meeting.came.values()]
        return [(peer, number, wire.encode_error(number, error)) for peer, number, _ in came]

    def _expired(self) -> list[tuple[bytes, list[Any]]]:
        """Return errors for ranks whose wait timed out; they name the missing ranks."""
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
    def traffic(self) -> dict[str, m.MessageStats]:
        """Return the traffic by kind of message; "dropped" counts invalid input."""
        with self._lock:
            return {kind: m.MessageStats(*counts) for kind, counts in self._traffic.items()}

    def _count(self, kind: str, came: list[zmq.Frame], sent: list[Any], start: float) -> None:
        values = (1, sum(map(len, came)), sum(map(len, sent)), time.perf_counter() - start)
        with self._lock:
            counts = self._traffic[kind]
            for i, value in enumerate(values):
                counts[i] += value


class _Meeting:
    """The ranks that wait at a place, and their deadline."""

    def __init__(self, num_ranks: int, deadline: float) -> None:
        self.num_ranks, self.deadline = num_ranks, deadline
        self.came: dict[int, tuple[bytes, int, str]] = {}
        self.size = 0  # bytes, approximately
