"""Server: a process that answers requests for the rows of a machine.

The servers of a machine share its part in memory. Each answers reads of any row and applies writes
to the rows that it owns; :mod:`gnnlab.distributed.part_store` does both. Each connection has a
thread; a few process requests, while others wait for bytes or, in a barrier, for other ranks.

Input is not trusted: bytes that are no message of this version are dropped and counted, messages
that the store refuses are answered with an error, and peers without the job's keys are rejected.

References
----------
RFC 8446, "The Transport Layer Security Protocol Version 1.3".
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections import OrderedDict, defaultdict
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import Any

import torch

from gnnlab import trace
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.protocol import EXCHANGES, To
from gnnlab.distributed.stream import Refused, Stream, accept
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch import environment
from gnnlab.multiprocessing import raise_file_limit
from gnnlab.parallel.rendezvous import notify_agent
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

_AT_ONCE = 4  # requests
_REMEMBERED = 64  # replies to writes kept for each peer, in case a write is resent
_PEERS = 4096
_REPLIES = 1 << 26  # bytes of all replies that are kept
_MEETINGS = 1024  # places at which ranks may wait
_WAITING = 1 << 24  # bytes of the messages of waiting ranks
_TICK = 0.2  # seconds between two checks for gradients that wait too long
_HANDSHAKE = 5.0  # seconds in which a new connection must authenticate
_BACKLOG = 4096  # connections that the system accepts meanwhile
_QUIET = 60.0  # seconds between two reports of refused peers at one address
_ADDRESSES = 256  # addresses of refused peers that are reported separately
_MESSAGE = 1 << 10  # approximate bytes of a stored message beside its text

Frames = list[Any]


def _size(*replies: Future[Frames]) -> int:
    return sum(len(frame) for reply in replies if reply.done() for frame in reply.result())


def serve(job: JobSettings) -> None:
    """Run a server until SIGTERM, SIGINT or ``is_deserted``, then exit; status 1 after an error."""
    raise_file_limit()
    torch.set_num_threads(1)  # requests run in several threads already
    stop = Stop()
    server, status = Server(job), 0
    try:
        server.start()
        notify_agent("ready")
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


class Server:
    """One of the servers of a machine: number ``job.server`` of all."""

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
        self.ends_when_deserted = environment.OUTPUT not in os.environ
        self._tls = job.keys.context(is_server=True) if job.keys else None
        self._listener: socket.socket | None = None
        self._links: set[socket.socket] = set()
        self._refusals = Refusals()
        self._turns = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._meetings: dict[str, _Meeting] = {}
        self._left: set[int] = set()
        self._num_ranks = 0
        self._replies: OrderedDict[bytes, OrderedDict[int, Future[Frames]]] = OrderedDict()
        self._reply_bytes = 0
        self._traffic: dict[str, list[Any]] = defaultdict(lambda: [0, 0, 0, 0.0])

    @property
    def is_deserted(self) -> bool:
        """Whether all trainers have left the job, and no agent will end this process."""
        return self.ends_when_deserted and 0 < self._num_ranks <= len(self._left)

    # ------------------------------------------------------------- start and end
    def start(self) -> None:
        """Listen, and answer in threads."""
        listener = self._listener = _listen(self.job)
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._acceptor.start()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is not None:
            try:
                link, address = listener.accept()
                threading.Thread(target=self._attend, args=(link, address[0]), daemon=True).start()
            except TimeoutError:
                pass
            except (OSError, RuntimeError):  # too many open files or threads; some will end
                time.sleep(_TICK)
            self.store.drop_waiting(self.job.timeout)
        listener.close()

    def _attend(self, link: socket.socket, address: str) -> None:
        """Answer the requests of a connection until it ends."""
        try:
            try:
                stream = accept(link, self._tls, _HANDSHAKE)
            except Refused:
                self._refusals.report(address.removeprefix("::ffff:"))
                return
            with self._lock:
                self._links.add(stream.link)
            try:
                self._answer_all(stream)
            finally:
                with self._lock:
                    self._links.discard(stream.link)
                stream.close()
        except OSError:
            pass  # the peer connects again if it still needs an answer
        except BaseException as error:
            self.failure = self.failure or error

    def _answer_all(self, stream: Stream) -> None:
        while self._listener is not None:
            try:
                frames = stream.receive()
            except wire.BadFrame:
                self._count("dropped", [], [], time.perf_counter())
                return
            assert frames is not None  # the socket blocks
            reply = self._handle(stream.peer, frames)
            if reply:
                stream.send(reply)
            del frames, reply  # their memory, before the next request arrives

    def close(self) -> None:
        """Stop listening, end all connections and release the shared memory."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            self._acceptor.join(_TICK)
        with self._lock:
            waiting = [meeting.texts for meeting in self._meetings.values()]
            self._meetings.clear()
            for link in self._links:
                with suppress(OSError):
                    socket.socket.shutdown(link, socket.SHUT_RDWR)
        for texts in waiting:
            texts.set_exception(GNNLabError("the server ends"))
        self.memory.close()

    # ----------------------------------------------------------------- requests
    def _handle(self, peer: bytes, frames: Frames) -> Frames:
        """Process one request; return the frames of its reply, none if it is no request."""
        start = time.perf_counter()
        try:
            number, message = wire.decode_request(frames)
        except wire.BadFrame:
            self._count("dropped", frames, [], start)
            return []
        name = type(message).__name__
        if EXCHANGES[type(message)].is_repeatable:
            reply = self._answer(number, message)
        else:
            once, is_new = self._once(peer, number)
            if is_new:
                once.set_result(self._answer(number, message))
                self._remember(peer, number, once)
            else:
                name = "repeated"
            reply = once.result()
        trace.record("serve", start, message=name)
        self._count(name, frames, reply, start)
        return reply

    def _answer(self, number: int, message: Any) -> Frames:
        try:
            if isinstance(message, m.Meet):
                return wire.encode_reply(number, self._meet(message))
            with self._turns:
                return wire.encode_reply(number, self._reply(message))
        except Exception as error:
            if not isinstance(error, GNNLabError):
                print(f"{self.job.name_of(self.job.server)}: {error!r}", file=sys.stderr)
            return wire.encode_error(number, error)

    def _reply(self, message: Any) -> Any:
        if isinstance(message, m.Release | m.Bye):
            _check_rank(message)
        if isinstance(message, m.Hello):
            return self.welcome
        if isinstance(message, m.Bye):
            with self._lock:
                self._num_ranks = message.num_ranks
                self._left.add(message.rank)
            return None
        if isinstance(message, m.Statistics):
            return self.traffic()
        self._check_owner(message)
        return self.store.answer(message)

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
    def _once(self, peer: bytes, number: int) -> tuple[Future[Frames], bool]:
        """Return the reply to a write, perhaps a future one, and whether the write is new."""
        with self._lock:
            known = self._replies.setdefault(peer, OrderedDict())
            self._replies.move_to_end(peer)
            if number in known:
                return known[number], False
            reply: Future[Frames] = Future()
            known[number] = reply
            while len(known) > _REMEMBERED:
                self._reply_bytes -= _size(known.popitem(last=False)[1])
            while len(self._replies) > _PEERS:
                self._forget()
            return reply, True

    def _remember(self, peer: bytes, number: int, reply: Future[Frames]) -> None:
        with self._lock:
            if peer in self._replies and self._replies[peer].get(number) is reply:
                self._reply_bytes += _size(reply)
            while self._reply_bytes > _REPLIES and len(self._replies) > 1:
                self._forget()

    def _forget(self) -> None:
        """Drop the replies to the least recently active peer."""
        self._reply_bytes -= _size(*self._replies.popitem(last=False)[1].values())

    # ----------------------------------------------------------------- meetings
    def _meet(self, message: m.Meet) -> tuple[str, ...]:
        """Wait until all ranks are at a place; return the text of each."""
        _check_rank(message)
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
            meeting.came[message.rank] = message.words
            meeting.size += size
            if len(meeting.came) == meeting.num_ranks:
                del self._meetings[message.place]
                meeting.texts.set_result(tuple(text for _, text in sorted(meeting.came.items())))
            else:
                self._never_meet(meeting.num_ranks)
        with suppress(TimeoutError):
            return meeting.texts.result(max(0.0, meeting.deadline - time.monotonic()))
        with self._lock:
            if self._meetings.get(message.place) is meeting:
                del self._meetings[message.place]
                missing = (str(r) for r in range(meeting.num_ranks) if r not in meeting.came)
                meeting.texts.set_exception(
                    GNNLabError(
                        f"{message.place}: ranks {', '.join(islice(missing, 20))} of "
                        f"{meeting.num_ranks} did not come within {self.job.timeout:g} s. All "
                        "trainers must call it, in the same order"
                    )
                )
        return meeting.texts.result()

    def _never_meet(self, num_ranks: int) -> None:
        """End the wait of all ranks if each of them waits, but not at one place."""
        if len(self._meetings) < 2:
            return
        places = {p: each for p, each in self._meetings.items() if each.num_ranks == num_ranks}
        where = {rank: place for place, each in places.items() for rank in each.came}
        if len(where) < num_ranks:
            return
        listed = (f"rank {rank} at {place}" for rank, place in sorted(where.items()))
        error = GNNLabError(
            f"all trainers wait, at different places: {', '.join(islice(listed, 20))}. They must "
            "create tensors and call barriers in the same order; the order of a set differs "
            "between processes"
        )
        for place in places:
            self._meetings.pop(place).texts.set_exception(error)

    # --------------------------------------------------------------- statistics
    def traffic(self) -> dict[str, m.MessageStats]:
        """Return the traffic by kind of message; "dropped" counts invalid input."""
        with self._lock:
            return {kind: m.MessageStats(*counts) for kind, counts in self._traffic.items()}

    def _count(self, kind: str, came: Frames, sent: Frames, start: float) -> None:
        values = (1, sum(map(len, came)), sum(map(len, sent)), time.perf_counter() - start)
        with self._lock:
            counts = self._traffic[kind]
            for i, value in enumerate(values):
                counts[i] += value


class _Meeting:
    """The ranks that wait at a place, and their deadline."""

    def __init__(self, num_ranks: int, deadline: float) -> None:
        self.num_ranks, self.deadline = num_ranks, deadline
        self.came: dict[int, str] = {}
        self.texts: Future[tuple[str, ...]] = Future()  # those of all ranks
        self.size = 0  # bytes, approximately


class Refusals:
    """Reports peers that were refused, at most one line a minute for an address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, int]] = {}  # address → last report, refused since

    def report(self, address: str) -> None:
        """Print a line about an address, unless there was one within the last minute."""
        with self._lock:
            now = time.monotonic()
            if address not in self._known and len(self._known) >= _ADDRESSES:
                self._known = {a: r for a, r in self._known.items() if now - r[0] < _QUIET}
                if len(self._known) >= _ADDRESSES:
                    address = "further addresses"
            last, count = self._known.get(address, (-_QUIET, 0))
            if now - last < _QUIET:
                self._known[address] = last, count + 1
                return
            self._known[address] = now, 0
        more = f" ({count:,} more attempts since the last report)" if count else ""
        print(f"refused a peer at {address}: it lacks this job's key{more}", file=sys.stderr)


def _check_rank(message: m.Meet | m.Release | m.Bye) -> None:
    if not 0 <= message.rank < message.num_ranks:
        raise InvalidInput(f"rank {message.rank} of {message.num_ranks} ranks does not exist")


def _listen(job: JobSettings) -> socket.socket:
    host, port = job.addresses[job.server]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise GNNLabError(
            f"{job.name_of(job.server)} cannot listen there: {error.strerror}. "
            "Another process uses the port, or the address is not of this machine: `gnnlab "
            "doctor` tells which"
        ) from None
    listener.settimeout(_TICK)
    return listener
