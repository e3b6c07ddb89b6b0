"""What servers refuse, and what they do when connections break."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import client, connections, memory, wire
from gnnlab.distributed import messages as m
from gnnlab.distributed.client import Client
from gnnlab.distributed.connections import ServerLost
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.server_transport import RemoteTransport
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, PartitionError
from gnnlab.launch.certificates import Authority, Keys
from gnnlab.partition import PartitionPolicy
from gnnlab.partition.part import open_part
from tests.distributed.live import connected, keys_of, make_job, serving
from tests.helpers import THOROUGH, free_port, run_script

X = "node~_N~x"
JOB = f"test{os.getpid()}"  # of memory that has no servers
SOON = 30  # seconds, half of the time limit: what takes five does so on a busy computer too


@pytest.fixture(scope="module")
def config(tmp_path_factory: Any) -> Path:
    """A ring of 40 nodes in two parts; x is the original ID."""
    folder = tmp_path_factory.mktemp("ring")
    g = dgl.graph((torch.arange(40), (torch.arange(40) + 1) % 40))
    g.ndata["x"] = torch.arange(40)
    halves = torch.arange(40) // 20
    dgl.distributed.partition_graph(g, "ring", 2, str(folder), part_method=lambda g, k: halves)
    return folder / "ring.json"


@pytest.fixture(scope="module")
def running(config: Path) -> Iterator[tuple[JobSettings, RemoteTransport]]:
    """Two machines with two servers each, and a trainer on machine 0."""
    job = make_job(config, machines=2, servers=2, tls=True)
    with serving(job), connected(job) as trainer:
        yield job, trainer


def rows(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


# ------------------------------------------------------------------------------- asking


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        (m.Pull("node~_N~y", rows(0)), NotFound, "no distributed tensor 'node~_N~y'"),
        (m.Push(X, rows(1), torch.tensor([0.5])), InvalidInput, "expected values of torch.int64"),
        (m.Delete(X), InvalidInput, "goes to the first server"),
    ],
)
def test_refusals_are_raised_where_they_were_caused(
    running: tuple[JobSettings, RemoteTransport], message: Any, error: type[Exception], text: str
) -> None:
    _, trainer = running
    trainer.exchange([(1, m.Push(X, rows(1), rows(21)))])  # x is in shared memory from here on
    with pytest.raises(error) as caught:
        trainer.request([(2, message)])
    assert text in str(caught.value)
    assert trainer.exchange([(1, m.Pull(X, rows(0, 1)))])[0].tolist() == [20, 21]


def test_writes_go_to_the_owner(running: tuple[JobSettings, RemoteTransport]) -> None:
    """Of the 20 rows of a part, each of two servers owns ten."""
    _, trainer = running
    trainer.exchange([(1, m.Push(X, rows(9, 10), rows(29, 30)))])
    for server, row in ((2, 10), (3, 9)):
        with pytest.raises(InvalidInput, match=f"server {server} "):
            trainer.request([(server, m.Push(X, rows(row), rows(0)))])
    with pytest.raises(InvalidInput, match="Create"):
        trainer.request([(3, m.Create("node~_N~z", (), "float32"))])


def test_large_reads_and_writes_go_in_pieces(config: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 1000)
    monkeypatch.setattr(client, "_AT_ONCE", 900)
    job = make_job(config)
    with serving(job), connected(job) as trainer:
        asking = Client(trainer.part().book, trainer, ("ring", str(config)))
        policy = PartitionPolicy("node~_N", asking.book)
        ids = torch.arange(40).flip(0).repeat(20)  # 3200 bytes of each of two owners
        assert torch.equal(asking.pull(policy, X, ids), ids)
        asking.push(policy, X, ids, torch.arange(800))
        assert asking.pull(policy, X, rows(0, 39)).tolist() == [799, 760]


def test_a_tensor_comes_and_goes(running: tuple[JobSettings, RemoteTransport]) -> None:
    _, trainer = running
    name = "node~_N~h"
    trainer.create(m.Create(name, (2,), "float32"), lambda part: torch.full((20, 2), 7.0))
    trainer.request([(2, m.Create(name, (2,), "float32"))])  # as the first trainer there does
    assert trainer.readable(0, name).sum() == 280
    assert trainer.exchange([(1, m.Pull(name, rows(3)))])[0].tolist() == [[0, 0]]
    trainer.exchange([(part, m.Delete(name)) for part in (0, 1)])
    assert trainer.readable(0, name) is None
    with pytest.raises(NotFound):
        trainer.exchange([(1, m.Pull(name, rows(3)))])


# -------------------------------------------------------------------------- who may come
def strange(keys: Keys | None) -> Keys:
    """Keys of somebody who knows the job's authority, but has no certificate from it."""
    assert keys
    return replace(Authority().issue("client", 0), authority=keys.authority)


def test_a_peer_without_the_key_is_refused(config: Path, capfd: Any) -> None:
    job = make_job(config, machines=2, tls=True)
    with serving(job):
        for keys in (
            strange(job.keys),
            Authority().issue("client", 0),
            keys_of(job, "server"),
            None,
        ):
            with pytest.raises(ServerLost, match="whose keys"):
                RemoteTransport(replace(job, keys=keys))
        with connected(job) as trainer:
            assert len(trainer.statistics()) == 2
    assert "refused a peer at 127.0.0.1: it lacks this job's key" in capfd.readouterr().err


def test_a_server_without_the_key_is_refused(config: Path) -> None:
    """It has none, or that of another machine; nothing is sent to it but a greeting."""
    job = make_job(config, machines=2, tls=True)
    with serving(replace(job, keys=None)), pytest.raises(ServerLost, match="whose keys"):
        RemoteTransport(job)
    with serving(job):
        swapped = replace(job, addresses=job.addresses[::-1])
        with pytest.raises(ServerLost, match="whose keys"):
            RemoteTransport(swapped)


def test_another_job_or_graph_is_refused(config: Path, tmp_path: Path) -> None:
    job = make_job(config)
    with serving(job):
        with (
            closing(Memory(JOB, 0)),
            pytest.raises(GNNLabError, match=f"in job {job.id} as server 0; expected 'ring' in"),
        ):
            RemoteTransport(replace(job, id=JOB))
        moved = tmp_path / "moved.json"
        moved.write_text(config.read_text() + "\n")
        for name in ("part0", "part1"):
            shutil.copytree(config.parent / name, tmp_path / name)
        with pytest.raises(GNNLabError, match="JSON file"):
            RemoteTransport(replace(job, part_config=str(moved)))


def test_a_job_of_another_size_is_refused(config: Path) -> None:
    job = make_job(config, machines=3)
    with pytest.raises(PartitionError, match="3, found 2"), serving(job):
        pass
    assert not list(memory._FOLDER.glob(f"gnnlab-{job.id}-*"))


def test_a_port_in_use_is_named(config: Path) -> None:
    job = make_job(config, machines=2)
    with socket.socket() as holder:
        holder.bind(job.addresses[1])
        holder.listen()
        text = rf"server 1 \(machine 1, 127.0.0.1:{job.addresses[1][1]}\) cannot listen there"
        with pytest.raises(GNNLabError, match=text), serving(job):
            pass


# -------------------------------------------------------------------------------- waiting
def test_a_meeting_tells_who_is_missing(config: Path) -> None:
    job = replace(make_job(config, ranks=3), timeout=1.5)
    with serving(job), connected(job, timeout=60.0) as trainer:
        start = time.monotonic()
        with pytest.raises(GNNLabError) as caught:
            trainer.barrier()
        assert time.monotonic() - start < SOON
    assert "barrier (meeting 1): ranks 1, 2 of 3 did not come within 1.5 s" in str(caught.value)


def at_once(job: JobSettings, work: Any, machines: Any = (0, 0, 0)) -> list[Any]:
    """Call a function for the trainers of all ranks at once; return results, or errors."""

    def come(rank: int) -> Any:
        own = {"machine": machines[rank], "local_rank": machines[:rank].count(machines[rank])}
        with connected(job, rank=rank, **own) as trainer:
            try:
                return work(trainer, rank)
            except GNNLabError as error:
                return error

    with serving(job), ThreadPoolExecutor(job.num_ranks) as pool:
        futures = [pool.submit(come, rank) for rank in range(job.num_ranks)]
        return [future.result(60) for future in futures]


def test_trainers_that_wait_at_different_places_learn_it_at_once(config: Path) -> None:
    """As those that create tensors in the order of a set, which differs between processes."""
    start = time.monotonic()
    errors = at_once(
        make_job(config, ranks=2),
        lambda trainer, rank: trainer.create(
            m.Create(f"node~_N~{'hx'[rank]}", (), "float32"), None
        ),
    )
    assert time.monotonic() - start < SOON
    text = (
        "rank 0 at making of node~_N~h (meeting 1), rank 1 at making of node~_N~x (meeting 1). "
        "They must create tensors and call barriers in the same order"
    )
    assert all(text in str(error) for error in errors)


def test_tensors_are_made_alike_by_all(config: Path) -> None:
    first, second = at_once(
        make_job(config, ranks=2),
        lambda trainer, rank: trainer.create(m.Create("node~_N~h", (rank,), "float32"), None),
    )
    assert isinstance(first, InvalidInput) and str(first) == str(second)
    assert "node~_N~h (1,) float32 by rank 1" in str(first)


def test_a_feature_is_replaced_by_trainers_that_come_at_different_times(config: Path) -> None:
    """The first trainer has let go of the old rows, and waits, before the second one does."""
    has_let_go = threading.Event()

    def replace_x(trainer: RemoteTransport, rank: int) -> list[int]:
        asking = Client(trainer.part().book, trainer, ("ring", str(config)))
        policy = PartitionPolicy("node~_N", asking.book)
        assert rank == 0 or has_let_go.wait(60)
        asking.delete(X)
        threading.Timer(0.5, has_let_go.set).start()
        asking.create(policy, "x", (), torch.int64, torch.arange(40) + 100)
        trainer.barrier()
        rows = asking.pull(policy, X, torch.arange(40)).tolist()
        trainer.barrier()
        return rows

    job = make_job(config, ranks=2)
    assert at_once(job, replace_x, machines=(0, 1)) == [list(range(100, 140))] * 2


def test_a_machine_without_rows_of_a_rare_type_takes_part(tmp_path: Path) -> None:
    """Both nodes of type b lie with machine 0; two trainers learn them."""
    g = dgl.heterograph({("a", "r", "b"): ([0, 1, 2, 3], [0, 1, 0, 1])})
    parts = {"a": torch.tensor([0, 0, 1, 1]), "b": torch.tensor([0, 0])}
    dgl.distributed.partition_graph(g, "g", 2, str(tmp_path), part_method=lambda g, k: parts)
    job = make_job(tmp_path / "g.json", ranks=2)

    def learn(trainer: RemoteTransport, rank: int) -> Any:
        asking = Client(trainer.part().book, trainer, ("g", job.part_config))
        policy = PartitionPolicy("node~b", asking.book)
        weight, total = (asking.create(policy, n, (2,), torch.float32) for n in "ws")
        options = {"lr": 1.0, "eps": 0.0}
        given = torch.tensor([rank]), torch.ones(1, 2)
        asking.update(policy, weight, *given, "adagrad", options, (total,), rank, 2, 1)
        trainer.barrier()
        rows = asking.pull(policy, weight, torch.arange(2)).tolist()
        trainer.barrier()
        return rows

    assert at_once(job, learn, machines=(0, 1)) == [[[-1.0, -1.0]] * 2] * 2


def test_no_server_at_all(config: Path) -> None:
    job = replace(make_job(config, machines=2), timeout=1.0)
    with pytest.raises(GNNLabError, match="the first server of this machine did not start"):
        RemoteTransport(job)
    with closing(Memory(job.id, 0)), pytest.raises(GNNLabError, match=" 1 s"):
        RemoteTransport(job)


# ------------------------------------------------------------------------ broken connections
class Relay:
    """Stands between a trainer and a server; drops connections, or what they carry."""

    def __init__(self, port: int) -> None:
        self.port, self._target = free_port(), port
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._open: list[socket.socket] = []
        self.is_silent = False
        self.is_quick = threading.Event()
        self.is_quick.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.is_quick.wait()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self.is_silent:
                    target.sendall(data)
        for each in source, target:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Break all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def close(self) -> None:
        """Stop for good."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()


@pytest.fixture
def relayed(config: Path) -> Iterator[tuple[JobSettings, Relay]]:
    job = make_job(config, machines=2)
    with serving(job):
        relay = Relay(job.addresses[1][1])
        yield replace(job, addresses=(job.addresses[0], ("127.0.0.1", relay.port))), relay
        relay.close()


def test_a_short_interruption_is_survived(relayed: tuple[JobSettings, Relay]) -> None:
    """Writes that were sent again are applied once: each adds its gradient to the sum."""
    job, relay = relayed
    with connected(job) as trainer:
        for name in ("node~_N~h", "node~_N~s"):
            trainer.request([(1, m.Create(name, (), "float32"))])
        options = {"lr": 1.0, "eps": 0.0}
        stop, step, drops = threading.Event(), 0, 0

        def disturb() -> None:
            nonlocal drops
            last = 0
            while not stop.wait(0.15):
                if step > last:  # a busy computer needs longer than that for a connection
                    last, drops = step, drops + 1
                    relay.drop()

        disturber = threading.Thread(target=disturb, daemon=True)
        disturber.start()
        while step < 199 or drops < 2:
            step += 1
            trainer.exchange(
                [
                    (1, m.Update("node~_N~h", rows(3), torch.ones(1), "adagrad", options,
                                 ("node~_N~s",), 0, 1, step)),
                    (1, m.Pull(X, rows(0, 1, 2))),
                ]
            )  # fmt: skip
        stop.set()
        disturber.join()
        assert trainer.exchange([(1, m.Pull("node~_N~s", rows(3)))])[0].item() == step


def test_a_slow_reconnection_is_no_loss(relayed: tuple[JobSettings, Relay]) -> None:
    """A busy machine accepts a connection at once, and may answer much later."""
    job, relay = relayed
    with connected(job) as trainer:
        (before,) = trainer.exchange([(1, m.Pull(X, rows(0)))])
        relay.is_quick.clear()
        relay.drop()
        threading.Timer(2 * connections._GRACE, relay.is_quick.set).start()
        assert torch.equal(trainer.exchange([(1, m.Pull(X, rows(0)))])[0], before)


def test_a_server_that_is_gone_is_named(relayed: tuple[JobSettings, Relay]) -> None:
    job, relay = relayed
    with connected(job) as trainer:
        relay.close()
        start = time.monotonic()
        with pytest.raises(ServerLost) as caught:
            trainer.exchange([(1, m.Pull(X, rows(0)))])
        assert time.monotonic() - start < SOON
        address = f"127.0.0.1:{job.addresses[1][1]}"
        assert f"lost server 1 (machine 1, {address})" in str(caught.value)
        with pytest.raises(ServerLost):  # also by a connection that is made afterwards
            trainer.exchange([(1, m.Pull(X, rows(0)))])
    remote = {("127.0.0.1", port) for _, port in job.addresses}
    open_ones = {each.raddr for each in psutil.Process().net_connections("tcp4") if each.raddr}
    assert not remote & open_ones, "an error that is kept keeps no socket open"


def test_a_server_that_says_nothing_is_lost(
    relayed: tuple[JobSettings, Relay], monkeypatch: Any
) -> None:
    """As a stopped process; the host still acknowledges what arrives."""
    monkeypatch.setattr(connections, "_SILENT", 0.5)
    monkeypatch.setattr(connections, "_HELD", 1.0)
    job, relay = relayed
    with connected(job) as trainer:
        relay.is_silent = True
        start = time.monotonic()
        with pytest.raises(ServerLost, match="lost server 1"):
            trainer.exchange([(1, m.Pull(X, rows(0)))])
        assert time.monotonic() - start < SOON
        assert trainer.exchange([(0, m.Pull(X, rows(0)))])[0].tolist() == [0]
        relay.close()


def test_a_slow_server_is_not_lost(config: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(connections, "_SILENT", 0.1)
    job = make_job(config, tls=True)
    with serving(job) as (_, server), connected(job) as trainer:
        answer = server.store.answer

        def slowly(message: Any) -> Any:
            time.sleep(1.0)
            return answer(message)

        with monkeypatch.context() as patch:
            patch.setattr(server.store, "answer", slowly)
            assert trainer.exchange([(1, m.Pull(X, rows(0)))])[0].tolist() == [20]


# ---------------------------------------------------------------------------- shared memory
def test_memory_goes_with_the_last_who_uses_it() -> None:
    writer, reader = Memory(JOB, 3), Memory(JOB, 3, timeout=1)
    writer.create("a~b~c", (3,), torch.bfloat16)
    kept = writer.tensors["a~b~c"]
    writer.close()
    assert list(Path("/dev/shm").glob(f"gnnlab-{JOB}-3-*"))
    reader.refresh()
    kept += 1
    assert reader.tensors["a~b~c"].tolist() == [1, 1, 1]
    reader.close()
    assert not list(Path("/dev/shm").glob(f"gnnlab-{JOB}-3-*"))


def test_memory_of_a_killed_job_is_not_taken_for_that_of_the_next() -> None:
    """Without a launcher jobs at equal addresses have one name, and a trainer may come first."""
    leave_memory(JOB, 10)
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(Memory, JOB, 10, timeout=60.0) for _ in range(2)]
        time.sleep(0.2)
        with closing(Memory(JOB, 10)) as writer:
            writer.create("a~b~c", (3,), torch.float32)
            for reader in readers:
                with closing(reader.result()) as found:
                    assert found.refresh() and list(found.tensors) == ["a~b~c"]
    assert not files(f"{JOB}-10")


def test_memory_of_other_killed_jobs_is_removed() -> None:
    """A job of another name finds it; that of a job that lives, and what it has just made, stay."""
    names = [f"{JOB}{word}" for word in ("killed", "lives", "new")]
    leave_memory(names[0], 0)
    living = Memory(names[1], 0)
    unlocked = Path(f"/dev/shm/gnnlab-{names[2]}-0-catalog")
    unlocked.touch()  # between its making and its lock
    try:
        Memory(f"{JOB}next", 0).close()
        assert not files(names[0]) and len(files(names[1])) == 1 and unlocked.exists()
    finally:
        living.close()
        unlocked.unlink()


def test_memory_of_a_job_whose_name_begins_alike_stays() -> None:
    with closing(Memory(f"{JOB}-[1] 그래프-0", 0)) as longer:
        longer.create("node~_N~a/b ü", (2,), torch.float32)
        Memory(f"{JOB}-[1] 그래프", 0).close()
        with closing(Memory(f"{JOB}-[1] 그래프-0", 0, timeout=1)) as reader:
            assert reader.refresh() and list(reader.tensors) == ["node~_N~a/b ü"]
    assert not list(Path("/dev/shm").glob(f"gnnlab-{JOB}-[[]1*"))


def leave_memory(job: str, machine: int) -> None:
    """Leave the memory of a process that was killed, once more if another job has removed it."""
    for _ in range(100):
        child = os.fork()
        if child == 0:
            Memory(job, machine).create("h", (2,), torch.float32)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        if len(files(f"{job}-{machine}")) == 2:
            return
    raise AssertionError(f"other jobs removed the memory of {job} a hundred times")


def files(job: str) -> list[Path]:
    return list(Path("/dev/shm").glob(f"gnnlab-{job}-*"))


def test_memory_of_a_living_job_stays() -> None:
    with closing(Memory(JOB, 6)), pytest.raises(GNNLabError, match=f"'{JOB}'"):
        Memory(JOB, 6)


def test_a_store_that_looks_while_the_catalog_changes(config: Path) -> None:
    """Threads look at any moment; none may keep for good what it saw before the change."""
    with closing(Memory(JOB, 8)) as writer:
        store = SharedStore(open_part(config, 0), writer)
        writer.create("node~_N~h", (20,), torch.float32)
        store.refresh()

        class Watched(dict[str, Any]):
            def items(self) -> Any:
                store.refresh()
                return super().items()

        entry = writer.entries["node~_N~h"]
        writer.attach(Watched({"node~_N~h": entry, "node~_N~new": entry}))
        store.refresh()
        assert "node~_N~new" in store.tensors


def test_what_is_freed_while_the_catalog_is_read_may_look_at_it_too(monkeypatch: Any) -> None:
    """The garbage collector runs at any place: a lost tensor is forgotten there, by a message."""
    writer, reader = Memory(JOB, 9), Memory(JOB, 9, timeout=1)
    map_file, depth = torch.from_file, []

    def look_again(*args: Any, **options: Any) -> torch.Tensor:
        depth.append(1)
        if len(depth) == 1:
            reader.refresh()
        return map_file(*args, **options)

    writer.create("node~_N~h", (2,), torch.float32)
    monkeypatch.setattr(torch, "from_file", look_again)
    looker = threading.Thread(target=reader.refresh, daemon=True)
    looker.start()
    looker.join(60.0)
    assert depth and not looker.is_alive() and list(reader.tensors) == ["node~_N~h"]
    reader.close()
    writer.close()


def test_a_signal_comes_at_any_moment() -> None:
    """Python runs the handler between any two instructions of the main thread, and none may hang:
    with a ``threading.Event`` in place of ``Stop`` this hangs sooner or later."""
    script = """
    import os, random, signal, sys, threading, time
    from gnnlab.distributed.server import Stop

    def blow(seconds):
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGTERM)

    stop, again = Stop(), random.Random(0)
    for turn in range(int(sys.argv[1])):
        thread = threading.Thread(target=blow, args=(again.random() / 1000,))
        thread.start()
        while not stop.wait(0):
            pass
        thread.join()
        os.read(stop._noted, 1)
    print("done")
    """
    rounds = os.environ.get("GNNLAB_TEST_SIGNALS", "500" if THOROUGH else "100")
    assert run_script(script, args=[rounds], timeout=300) == "done\n"


def test_servers_end_when_all_trainers_have_left(config: Path) -> None:
    job = make_job(config, ranks=2)
    with serving(job) as servers:
        for rank in range(2):
            assert not any(server.is_deserted for server in servers)
            with connected(job, rank=rank):
                pass
        assert all(server.is_deserted for server in servers)
