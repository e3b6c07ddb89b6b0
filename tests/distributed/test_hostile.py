"""What peers may cost a server: memory, connections and log lines stay bounded."""

from __future__ import annotations

import math
import os
import pickle
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import memory, part_store, stream, wire
from gnnlab.distributed import messages as m
from gnnlab.distributed import server as server_module
from gnnlab.distributed.connections import Pool
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.protocol import BadReply
from gnnlab.distributed.server import _ADDRESSES, Refusals
from gnnlab.distributed.server_transport import RemoteTransport
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.multiprocessing import raise_file_limit
from tests.distributed.live import connected, launched, make_job, serving
from tests.distributed.peer import Peer, mutated
from tests.helpers import THOROUGH, wait_until

X = "node~_N~x"
MIB = 1 << 20
RECORD = 1 << 14  # bytes of TLS


@pytest.fixture(scope="module")
def config(tmp_path_factory: Any) -> Path:
    """A star with a ring: node 0 has 3,000 in-edges, the 1,000 other nodes one each."""
    folder = tmp_path_factory.mktemp("star")
    ring = torch.arange(1, 1001)
    src = torch.cat([ring.repeat(3), ring])
    dst = torch.cat([torch.zeros(3000, dtype=torch.int64), ring.roll(1)])
    g = dgl.graph((src, dst))
    g.ndata["x"] = torch.arange(1001.0)
    g.edata["w"] = torch.ones(4000)
    dgl.distributed.partition_graph(g, "star", 1, str(folder), part_method="random")
    return folder / "star.json"


@pytest.fixture(scope="module")
def attacked(config: Path) -> Iterator[tuple[JobSettings, psutil.Process]]:
    """A job of one server with keys, in a process whose memory can be read."""
    job = make_job(config, machines=1, tls=True)
    with launched(job) as server:
        yield job, server


@pytest.fixture
def trainer(attacked: tuple[JobSettings, psutil.Process]) -> Iterator[RemoteTransport]:
    with connected(attacked[0]) as trainer:
        trainer.local_part = -1  # ask the server for everything
        yield trainer


def peak(server: psutil.Process) -> int:
    """Most bytes of memory that a process had since this was last called."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def serves(trainer: RemoteTransport) -> bool:
    """Whether the server answers with what the graph has."""
    found = trainer.exchange([(0, m.Pull(X, torch.arange(1001)))])[0]
    return sorted(found.tolist()) == list(range(1001))


# ------------------------------------------------------------------------ without the key
def client_hello() -> bytes:
    """The first bytes of a connection with TLS."""
    came, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(came, sent, server_hostname="server-0").do_handshake()
    return sent.read()


def strangers(job: JobSettings, number: int, size: int, given: int) -> list[socket.socket]:
    """Connections that announce a long message of the handshake and send the start of it."""
    found = []
    for _ in range(number):
        raw = socket.create_connection(job.addresses[0])
        found.append(raw)
        record = b"\x16\3\1" + struct.pack(">H", RECORD)
        with suppress(OSError):
            raw.sendall(record + b"\1" + size.to_bytes(3, "big") + bytes(RECORD - 4))
            for _ in range(given // RECORD):
                raw.sendall(record + bytes(RECORD))
    return found


@pytest.mark.parametrize(("size", "given"), [((1 << 24) - 1, 8 * MIB), (RECORD, RECORD)])
def test_strangers_cannot_fill_memory(
    attacked: tuple[JobSettings, psutil.Process], trainer: RemoteTransport, size: int, given: int
) -> None:
    job, server = attacked
    assert serves(trainer)
    before = server.memory_info().rss
    peak(server)
    opened = strangers(job, 100, size, given)
    assert serves(trainer)
    assert peak(server) - before < 50 * MIB
    for raw in opened:
        raw.close()


def test_a_greeting_with_any_byte_changed(
    attacked: tuple[JobSettings, psutil.Process], trainer: RemoteTransport
) -> None:
    job, server = attacked
    chance = random.Random(3)
    serves(trainer)
    before = server.memory_info().rss
    whole = client_hello()
    for at in range(len(whole)):
        greeting = bytearray(whole)
        greeting[at] ^= chance.choice([1, 0x80, 0xFF])
        with socket.create_connection(job.addresses[0]) as raw, suppress(OSError):
            raw.sendall(greeting + chance.randbytes(chance.randrange(300)))
    for size in range(300):  # what a client sends where servers have no keys, or nearly
        hello = (stream._HELLO + chance.randbytes(300))[:size]
        with socket.create_connection(job.addresses[0]) as raw, suppress(OSError):
            raw.sendall(hello)
    assert serves(trainer)
    assert server.memory_info().rss - before < 50 * MIB


def test_idle_connections_keep_nobody_out(config: Path) -> None:
    """400 of them, where a process may open 200 files unless it asks for more, and 300 at most."""
    raise_file_limit()
    job = make_job(config, machines=1, tls=True)
    with ExitStack() as stack, launched(job, (200, 300)) as server:
        for _ in range(400):
            stack.enter_context(socket.create_connection(job.addresses[0]))
        with connected(job) as trainer:
            trainer.local_part = -1
            assert serves(trainer)
            wait_until("idle connections dropped", lambda: len(server.net_connections()) <= 10)
            assert serves(trainer)


def test_refusals_do_not_flood_the_log(capfd: Any, monkeypatch: Any) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    refusals = Refusals()
    for _ in range(100_000):
        refusals.report("10.0.0.1")
    for i in range(10_000):
        refusals.report(f"fe80::{i}")
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == _ADDRESSES + 1
    assert lines[0] == "refused a peer at 10.0.0.1: it lacks this job's key"
    assert "refused a peer at further addresses" in lines[-1]
    now += 61
    refusals.report("10.0.0.1")
    text = "10.0.0.1: it lacks this job's key (99,999 more attempts since the last report)"
    assert text in capfd.readouterr().err


# --------------------------------------------------------------------------- with the key
ZERO = torch.zeros(1, dtype=torch.int32)
HUB = torch.zeros(200_000, dtype=torch.int32)  # where it is row 0, 600 million in-edges
W = "edge~_N:_E:_N~w"


@pytest.fixture(scope="module")
def hub(attacked: tuple[JobSettings, psutil.Process]) -> torch.Tensor:
    """The row of the node with 3,000 in-edges."""
    with connected(attacked[0]) as trainer:
        trainer.local_part = -1
        degrees = trainer.exchange([(0, m.Degrees(0, torch.arange(1001)))])[0]
    return degrees.argmax().int()


def expensive(hub: torch.Tensor) -> list[tuple[Any, str]]:
    """Small requests with a large effect, and what the server says of them."""
    much = "edges, and at most 16,777,216 are sent at once. Ask for fewer seeds"
    seeds = {"_N": HUB[:1] + hub}
    return [
        (m.Sample(seeds, (300_000_000,), 1, replace=True), f"needs 300,000,000 {much}"),
        (m.Sample(seeds, (2**63 - 1,), 1, replace=True), much),
        (m.Sample(seeds, (2**63,), 1), "fanouts are at most 9223372036854775807"),
        (m.Sample(seeds, (1,), -1), "a key has 64 bits"),
        (m.Sample({"_N": HUB + hub}, (-1,), 1), f"needs 600,000,000 {much}"),
        (m.Sample({"_N": HUB + hub}, (2**40,), 1), f"needs 600,000,000 {much}"),
        (m.Sample({"_N": HUB + hub}, (100,), 1), f"needs 20,000,000 {much}"),
        (m.Sample({"_N": HUB + hub}, (1,), 1, weights=(W,)), f"needs 600,000,000 {much}"),
        (m.Sample({"_N": HUB + hub}, (1,), 1, True, (W,)), f"needs 600,000,000 {much}"),
        (m.Pull("node~_N~wide", HUB[:10_000]), "have 327,680,000 bytes; at most 268,435,456"),
        (m.Create("node~_N~z", (2**40,), "float32"), "expected the shape of a row"),
        (m.Create("node~_N~z", (2**31, 2**31, 4), "int8"), "expected the shape of a row"),
        (m.Create("node~_N~z", (1,) * 50_000, "int8"), "expected the shape of a row"),
        (m.Create("node~_N~z", (2**32,), "float64"), "node~_N~z needs 34,"),
        (m.Reverse(0, ZERO, 10**12), "edge type 1000000000000 of 1"),
        (m.Inclusion(0, ZERO, torch.tensor([math.nan]).double(), 1), "are from 0 to 1"),
        (m.Push(X, HUB, torch.ones(1)), "expected values of torch.float32"),
        (m.Update(X, HUB, torch.ones(1), "adam"), "takes"),
        (m.Update(X, ZERO, torch.ones(1), "adagrad", {"lr": 1.0, "eps": 0.0}, (X,), 0, -5), "rank"),
        (m.Release(X, 7, 3), "rank 7 of 3 ranks does not exist"),
        (m.Bye(-1, 3), "rank -1 of 3 ranks does not exist"),
    ]


def test_requests_cost_no_more_than_the_graph_can_answer(
    attacked: tuple[JobSettings, psutil.Process], trainer: RemoteTransport, hub: torch.Tensor
) -> None:
    job, server = attacked
    trainer.request([(0, m.Create("node~_N~wide", (8192,), "float32")), (0, m.Share(X))])
    everything = trainer.exchange([(0, m.Sample({"_N": HUB[:1] + hub}, (-1,), 1))])[0][0]
    files = sorted(memory._FOLDER.glob(f"gnnlab-{job.id}-*"))
    before = server.memory_info().rss
    peak(server)
    for message, text in expensive(hub):
        with pytest.raises(GNNLabError) as caught:
            trainer.request([(0, message)])
        assert text in str(caught.value), message
        assert peak(server) - before < 50 * MIB, message
    assert sorted(memory._FOLDER.glob(f"gnnlab-{job.id}-*")) == files
    found = trainer.exchange([(0, m.Sample({"_N": HUB[:1] + hub}, (2**62,), 1))])[0][0]
    assert all(torch.equal(a, b) for a, b in zip(found, everything, strict=True))
    assert len(found[1]) == 3000 and serves(trainer)
    trainer.request([(0, m.Release("node~_N~wide", 0, 1))])


@pytest.mark.parametrize(("places", "size", "refused"), [(20, 10, 21), (1000, 250_000, 4)])
def test_ranks_that_wait_for_others_that_never_come(
    config: Path, monkeypatch: Any, places: int, size: int, refused: int
) -> None:
    """Of 1 MB and 20 places, they fill one or the other."""
    monkeypatch.setattr(server_module, "_MEETINGS", places)
    monkeypatch.setattr(server_module, "_WAITING", 1_000_000)
    job = make_job(config, machines=1)
    with serving(job) as (server,), connected(job) as trainer, ExitStack() as stack:
        for i in range(1, refused):
            peer = Peer(job)
            stack.callback(peer.close)
            message = m.Meet(f"place {i}", 0, 2, "x" * size)
            peer.stream.link.settimeout(60)
            peer.stream.send(wire.encode_request(i, message))
            wait_until(f"place {i}", lambda i=i: len(server._meetings) == i)
        with pytest.raises(InvalidInput, match="too many ranks wait for others"):
            trainer.request([(0, m.Meet("one more", 0, 2, "x" * size))])
        assert serves(trainer)


def test_gradients_that_wait_for_ranks_that_never_come(
    attacked: tuple[JobSettings, psutil.Process], trainer: RemoteTransport
) -> None:
    """60 steps of 4 MB, each begun by one rank of two."""
    _, server = attacked
    for name in "hs":
        trainer.request([(0, m.Create(f"node~_N~{name}", (1000,), "float32"))])
    options, states = {"lr": 1.0, "eps": 0.0}, ("node~_N~s",)
    given = "node~_N~h", torch.arange(1000), torch.ones(1000, 1000), "adagrad", options, states
    trainer.request([(0, m.Update(*given, 0, 2, 1))])  # a server's first update loads its code
    before = server.memory_info().rss
    peak(server)
    for step in [*range(2, 31), *range(60, 30, -1)]:
        trainer.request([(0, m.Update(*given, 0, 2, step))])
    assert peak(server) - before < 100 * MIB
    with pytest.raises(InvalidInput, match="step 31 of node~_N~h has 2 ranks; rank 1 sent 3"):
        trainer.request([(0, m.Update(*given, 1, 3, 31))])
    trainer.request([(0, m.Update(*given, 1, 2, 31))])
    assert trainer.exchange([(0, m.CountNonzero("node~_N~h"))]) == [1_000_000]
    for name in "hs":
        trainer.request([(0, m.Release(f"node~_N~{name}", 0, 1))])


def test_gradients_wait_for_a_limited_time_and_in_limited_memory(
    config: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(part_store, "_MAX_WAITING", 300_000)
    job = make_job(config, machines=1)
    with serving(job) as (server,), connected(job) as trainer:
        for name in "hs":
            trainer.request([(0, m.Create(f"node~_N~{name}", (100,), "float32"))])
        options, states = {"lr": 1.0, "eps": 0.0}, ("node~_N~s",)
        given = "node~_N~h", torch.arange(300), torch.ones(300, 100), "adagrad", options, states
        for _ in range(5):  # of a step that is tried again, the last gradients count
            trainer.request([(0, m.Update(*given, 0, 4, 1))])
        trainer.request([(0, m.Update(*given, 1, 4, 1))])
        with pytest.raises(InvalidInput, match=r"370,272.* 300,000"):
            trainer.request([(0, m.Update(*given, 2, 4, 1))])
        assert server.store._waiting
        server.store.drop_waiting(1000.0)
        assert server.store._waiting
        server.store.drop_waiting(0.0)
        assert not server.store._waiting
        trainer.request([(0, m.Update(*given, 2, 4, 1))])


class Bomb:
    """Executes a command where it is unpickled."""

    file = ""

    def __reduce__(self) -> Any:
        return os.system, (f"touch {Bomb.file}",)


def requests() -> list[Any]:
    """A message of each kind but Meet; those that change something do not concern x."""
    rows, name, own = torch.tensor([3, 1]), "node~_N~fuzz", torch.ones(2)
    options, states = {"lr": 1.0, "eps": 0.0}, ("node~_N~fuzz",)
    return [
        *(m.Describe(), m.Create(name, (), "float32"), m.Delete(name), m.CountNonzero(X)),
        *(m.Pull(X, rows), m.Push(name, rows, own), m.FindEdges(0, rows), m.Degrees(0, rows)),
        *(m.Update(name, rows, own, "adagrad", options, states, 0, 2), m.Reverse(0, rows, 0)),
        m.OutEdges(0, rows),
        *(m.Sample({"_N": rows}, (2,), 7), m.Sample({"_N": rows}, (9,), 7, True, (W,), {0: rows})),
        *(m.Hello(), m.Statistics(), m.Share(name)),
        *(m.Freeze(name), m.Release(name, 0, 3), m.Bye(0, 3)),
    ]


def test_broken_requests_of_every_kind(
    attacked: tuple[JobSettings, psutil.Process], trainer: RemoteTransport, tmp_path: Path
) -> None:
    """Some of them too large or without end; nothing is executed, memory stays bounded."""
    job, server = attacked
    chance = random.Random(23)
    Bomb.file = str(tmp_path / "executed")
    originals = [
        [bytes(frame) for frame in wire.encode_request(i, message)]
        for i, message in enumerate(requests())
    ]
    assert serves(trainer)
    before = server.memory_info().rss
    peak(server)
    peer = Peer(job)
    for i in range(8_000 if THOROUGH else 1_500):
        frames = mutated(chance.choice(originals), chance)
        if i % 100 == 0:
            frames = [frames[0], pickle.dumps(Bomb())]
        peer.send(frames)
        if i % 500 == 1:
            peer.send_raw(chance.randbytes(64))
    assert peer.is_through()
    meet = [bytes(frame) for frame in wire.encode_request(0, m.Meet("here", 0, 2))]
    for _ in range(60):  # each on a connection of its own, which waits if the message is good
        waiting = Peer(job)
        waiting.send(mutated(meet, chance))
        waiting.close()
    dropped = trainer.statistics()[0]["dropped"].number
    for sizes in ([wire.MAX_FRAME], [9, wire.MAX_FRAME, wire.MAX_FRAME - 9]):
        for _ in range(12):  # announced and not sent: memory is taken by what arrives
            start = stream._PREFIX.pack(stream._MARK, len(sizes))
            peer.stream.link.settimeout(60)
            peer.stream.link.sendall(start + struct.pack(f"<{len(sizes)}Q", *sizes) + bytes(9999))
            peer.close()
            peer = Peer(job)
    for count, size in ((0, 0), (wire.MAX_FRAMES + 1, 1), (1, wire.MAX_FRAME + 1), (1, 2**64 - 1)):
        peer.send_raw(stream._PREFIX.pack(stream._MARK, count) + struct.pack("<Q", size) * count)
    assert peer.is_through()
    peer.close()
    assert serves(trainer) and dropped > 100
    assert peak(server) - before < 100 * MIB
    assert not Path(Bomb.file).exists()


# ------------------------------------------------------------------- servers that are wrong
TWO = torch.tensor([0, 1])


def reads() -> list[Any]:
    """Messages whose replies have lists of rows, edges or neighbors."""
    sample = m.Sample({"_N": TWO}, (9,), 1)
    return [m.Pull(X, TWO), m.Degrees(0, TWO), m.FindEdges(0, TWO), sample]


def lies(kind: type) -> list[Any]:
    """Replies that cannot be those to the requests of the test below."""
    wrong = [None, 3, torch.arange(3.0), torch.arange(2).double(), torch.tensor([[1], [2]])]
    ptr, two = torch.tensor([0, 1, 2]), torch.tensor([3, 4])
    if kind is m.Pull:
        return [*wrong, torch.arange(2), torch.empty(0)]
    if kind is m.Degrees:
        return [*wrong, torch.tensor([-1, 2]), torch.tensor([1])]
    if kind is m.Reverse:
        return [*wrong[:2], wrong[4], torch.tensor([5000]), torch.tensor([-1])]
    if kind is m.FindEdges:
        return [(two, two[:1]), (two, two + 1000), (two - 4, two), (two, two.float()), (two,)]
    if kind is m.Inclusion:
        logs = -torch.ones(2).double()
        pairs = [(two, -logs), (two, logs * math.nan), (two, logs.float()), (two, logs[:1])]
        return [*wrong[:2], *pairs, (two + 1000, logs), (two - 4, logs), (two,)]
    if kind is m.CountNonzero:
        return [*wrong[:1], -1, "many"]
    if kind is m.OutEdges:
        lists = [(ptr[:2], two), (ptr - 1, two), (ptr, two[:1]), (ptr.int(), two), (two,)]
        return [*wrong[:2], *lists, (ptr, two + 4000), (ptr, two - 4), (ptr, two * 1.0)]
    found = [(ptr[:2], two, two), (ptr - 1, two, two), (ptr, two, two[:1]), (ptr, two[:1], two)]
    found += [(ptr, two + 4000, two), (ptr, two, two + 1000), (ptr, two, two - 4)]
    found += [(torch.tensor([0, 2**40, 2]), two, two), (ptr.int(), two, two), (ptr, two, two * 1.0)]
    return [*wrong, (), *((one,) for one in found), ((ptr, two, two),) * 2]


def test_replies_that_do_not_fit_are_errors(config: Path, monkeypatch: Any) -> None:
    job = make_job(config, machines=1)
    requests = [*reads(), m.Reverse(0, TWO, 0), m.OutEdges(0, TWO), m.CountNonzero(X)]
    requests += [m.Inclusion(0, TWO, torch.ones(2).double(), 1)]
    number = 0
    with serving(job) as (server,), connected(job) as trainer:
        trainer.local_part = -1
        for message in requests:
            for lie in lies(type(message)):
                with monkeypatch.context() as patch:
                    patch.setattr(server.store, "answer", lambda _, lie=lie: lie)
                    with pytest.raises(BadReply, match=r"^the reply of server 0 "):
                        trainer.exchange([(0, message)])
                number += 1
        with monkeypatch.context() as patch:
            patch.setattr(server, "_meet", lambda _: ())
            with pytest.raises(BadReply, match="1 ranks; found 0"):
                trainer.barrier()
        assert number > 40 and serves(trainer)


def test_mutated_replies(config: Path, monkeypatch: Any) -> None:
    """Each is an error, or a reply of the right form; none is waited for beyond the timeout."""
    chance = random.Random(11)
    job = make_job(config, machines=1)
    requests = reads()
    errors = 0
    with serving(job) as (server,), connected(job) as trainer:
        trainer.local_part = -1
        expected = [trainer.request([(0, message)])[0] for message in requests]
        answer = server._answer

        def garble(number: int, message: Any) -> Any:
            reply = answer(number, message)
            if not isinstance(message, m.Pull | m.Degrees | m.FindEdges | m.Sample):
                return reply
            return mutated([bytes(frame) for frame in reply], chance)

        with monkeypatch.context() as patch:
            patch.setattr(server, "_answer", garble)
            for _ in range(300):
                i = chance.randrange(len(requests))
                start = time.monotonic()
                try:
                    (found,) = trainer.request([(0, requests[i])], timeout=0.3)
                except GNNLabError:
                    errors += 1
                else:
                    assert type(found) is type(expected[i])
                    assert i > 1 or (found.shape, found.dtype) == (
                        expected[i].shape,
                        expected[i].dtype,
                    )
                assert time.monotonic() - start < 10
        assert errors > 100 and server.failure is None
        assert serves(trainer)


def test_a_flood_of_replies_ends_at_the_deadline(config: Path) -> None:
    """A server that answers other requests without end holds nobody beyond the timeout."""
    job = make_job(config, machines=1)
    with socket.create_server(job.addresses[0]) as listener:

        def flood() -> None:
            link = stream.accept(listener.accept()[0], None, 60)
            with suppress(OSError):
                while True:
                    link.send(wire.encode_reply(1, None))
            link.close()

        server = threading.Thread(target=flood)
        server.start()
        pool = Pool(job)
        with pytest.raises(GNNLabError, match=" Pull "):
            pool.carry([(0, m.Pull(X, torch.arange(2)))], lambda: None, 0.5)
        pool.close()
        server.join(60)
        assert not server.is_alive()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request", b"", bytes(8)])
def test_what_is_no_server(config: Path, answer: bytes) -> None:
    """Something else that listens at the address is refused, or waited for as for a server."""
    job = make_job(config, machines=1)
    with socket.create_server(job.addresses[0]) as listener:

        def reply() -> None:
            with suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    link.sendall(answer)
                    link.shutdown(socket.SHUT_WR)
                    link.recv(1 << 10)
                    link.close()

        threading.Thread(target=reply, daemon=True).start()
        pool = Pool(job)
        pool._patience = 1.0
        text = "it refused this process" if answer else "no connection within 1 s"
        with pytest.raises(GNNLabError, match=text):
            pool.carry([(0, m.Hello())], lambda: None, 60.0)
        listener.shutdown(socket.SHUT_RDWR)
