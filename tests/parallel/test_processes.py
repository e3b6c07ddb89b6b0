"""Ranks started from one process: results, output, failures; and that nothing is left behind.

The scripts are starters: what happens to them and to their ranks, the helper sees from outside.
"""

import os
import socket
import sys
from pathlib import Path

import pytest
from torch.distributed import TCPStore

from gnnlab.parallel.processes import _meeting_point
from gnnlab.parallel.rank import RELEASE, Lines, send_message
from gnnlab.parallel.rank_process import RankProcess
from tests.helpers import run_script

COMMON = """
import ctypes, os, signal, subprocess, sys, threading, time
import psutil, torch
import torch.distributed as dist
import gnnlab as dgl
from gnnlab.parallel import RankError, launch_processes

def children():
    return psutil.Process().children(recursive=True)
"""


def script(text: str, timeout: float = 100) -> str:
    return run_script(COMMON + text, timeout=timeout)


AGAIN = pytest.mark.thorough("as with fork")


@pytest.mark.parametrize("start_method", [pytest.param("spawn", marks=AGAIN), "fork"])
def test_ranks_from_a_script_without_a_guard(start_method: str) -> None:
    """The script is not run again; functions, classes, closures and state go to the ranks."""
    printed = script(
        f"""
START = {start_method!r}
print("script runs")
torch.set_num_threads(2)
(torch.ones(2_000_000) * 2).sum()  # a fork would inherit OpenMP's threads
dgl.seed(7)
torch.manual_seed(5)
expected = dgl.random.get_state(), torch.rand(1)
torch.manual_seed(5)

class Box:
    def __init__(self, value):
        self.value = value

scale = 3.0
private, shared = torch.zeros(100_000), torch.zeros(2).share_memory_()

def work(rank, world_size, private, shared):
    print("hello from", rank, file=sys.stderr if rank else sys.stdout)
    os.write(1, b"below Python\\n")
    assert (dgl.random.get_state(), torch.rand(1)) == expected
    assert torch.get_num_threads() == 1
    assert (os.environ["RANK"], os.environ["LOCAL_RANK"]) == (str(rank),) * 2
    assert input_is_closed()
    dist.init_process_group("gloo")
    total = (torch.ones(2_000_000) * (rank + 1)).sum() * scale
    dist.all_reduce(total)
    private += 1
    assert private.max() == 1
    shared[rank] = 1
    return Box(total.item())

def input_is_closed():
    return sys.stdin.read() == "" if START == "spawn" else True

boxes = launch_processes(work, 2, private, shared, start_method=START, num_threads=1, live=False)
assert [box.value for box in boxes] == [18e6] * 2 and isinstance(boxes[0], Box)
assert private.max() == 0 and shared.tolist() == [1, 1]
assert not children()
        """
    )
    lines = printed.splitlines()
    assert lines[0] == "script runs"
    ranks = [["hello from", "below Python"]] * 2
    assert lines[1:] == [
        f"rank {rank} | {line} {rank}" if line.startswith("hello") else f"rank {rank} | {line}"
        for rank, texts in enumerate(ranks)
        for line in texts
    ]


def test_live_output_comes_from_all_ranks() -> None:
    """No rank ends before the line of rank 1 is shown."""
    script(
        """
import io, tempfile
from contextlib import redirect_stdout

folder = tempfile.TemporaryDirectory()
shown = folder.name + "/shown"

def talk(rank, world_size):
    if rank == 1:
        print("begun\\nhalf", end="", flush=True)
    while not os.path.exists(shown):
        time.sleep(0.01)

class Watching(io.StringIO):
    def write(self, text):
        if "rank 1 | begun\\n" in text:
            open(shown, "w").close()
        return super().write(text)

with redirect_stdout(Watching()) as screen:
    launch_processes(talk, 2, start_method="fork", timeout=60.0)
assert screen.getvalue() == "rank 1 | begun\\nrank 1 | half\\n", screen.getvalue()
"""
    )


def test_each_way_to_fail_is_reported_and_ends_all() -> None:
    """Within seconds, with the rank and its own words; others wait for it in a collective."""
    script(
        """
def leave(status):
    os._exit(status)

def segfault():
    ctypes.string_at(0)

class Unsendable:
    def __reduce__(self):
        raise TypeError("stays here")

WAYS = {
    "raises": (lambda: 1 / 0, ["ZeroDivisionError: division by zero", "in <lambda>", "said this"]),
    "exits": (lambda: sys.exit(3), ["SystemExit: 3"]),
    "exits with words": (lambda: sys.exit("no data"), ["SystemExit: no data"]),
    "leaves": (lambda: leave(4), ["ended with status 4 before its function returned", "said this"]),
    "leaves well": (lambda: leave(0), ["ended with status 0 before"]),
    "killed": (lambda: os.kill(os.getpid(), signal.SIGKILL), ["by SIGKILL. The system kills"]),
    "segfault": (segfault, ["killed by SIGSEGV", "Segmentation fault"]),
    "result": (Unsendable, ["stays here"]),
}

def work(rank, world_size, way):
    dist.init_process_group("gloo")
    dist.barrier()
    print(f"rank {rank} said this", flush=True)
    if rank == 1:
        failed[0] = time.monotonic()  # one clock for all processes
    result = way() if rank == 1 else None
    dist.all_reduce(torch.ones(1)) if rank == 0 else None
    return result

failed = torch.zeros(1, dtype=torch.float64).share_memory_()
for name, (way, expected) in WAYS.items():
    try:
        launch_processes(work, 3, way, start_method="fork")
    except RankError as error:
        assert error.rank == 1, (name, str(error))
        for words in ["rank 1 of 3 failed", *expected]:
            assert words in str(error), (name, words, str(error))
        assert "gloo" not in str(error), (name, str(error))
        assert name in ("segfault", "result") or "/rank.py" not in str(error), (name, str(error))
    else:
        raise AssertionError(name)
    assert 0 < time.monotonic() - failed.item() < 60, name
    assert not children(), name
        """
    )


def test_what_hangs_is_shown() -> None:
    """The classic: rank 1 makes a step more than rank 0 and waits for a partner."""
    script(
        """
def work(rank, world_size):
    dist.init_process_group("gloo")
    for step in range(3 + rank):
        dist.all_reduce(torch.ones(1))  # one step too many
    dist.barrier()

for seconds in (3, 40):  # a busy computer may not be there after 3 s
    try:
        launch_processes(work, 2, start_method="fork", timeout=seconds)
    except RankError as error:
        text = str(error)
    else:
        raise AssertionError
    assert not children()
    if "dist.barrier()" in text and "# one step too many" in text:
        break
assert f"still ran after {seconds} s" in text
assert "Rank 0 stands here" in text and "dist.barrier()" in text
assert "Rank 1 stands here" in text and "# one step too many" in text
        """
    )


def test_a_rank_that_returns_before_the_rendezvous() -> None:
    """The others would wait for torch's timeout, half an hour."""
    script(
        """
def work(rank, world_size):
    if rank == 0:  # the host of the store
        return
    dgl.parallel.init_process_group() if rank == 2 else dist.init_process_group("gloo")

start = time.monotonic()
try:
    launch_processes(work, 3, start_method="fork", timeout=80)
except RankError as error:
    text, rank = str(error), error.rank
else:
    raise AssertionError
assert time.monotonic() - start < 60 and not children()
assert rank == 0, text
first = "rank 0 of 3 returned without joining torch.distributed.init_process_group(), "
assert text.startswith(first + "in which rank 1 waits\\n"), text
assert "in work\\n" in text, text
        """
    )


def test_ctrl_c_ends_all() -> None:
    script(
        """
def work(rank, world_size):
    subprocess.Popen(["sleep", "1000"])
    time.sleep(1000)

for method in ("fork", "spawn"):
    def interrupt():
        while len(children()) < 4:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    try:
        launch_processes(work, 2, start_method=method, timeout=60)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError
    assert not children()
        """
    )


@pytest.mark.parametrize("start_method", ["fork", pytest.param("spawn", marks=AGAIN)])
def test_ranks_end_with_their_starter(start_method: str) -> None:
    """A kernel that is killed cannot clean up: its ranks notice, and end what they started."""
    script(
        f"""
STARTER = '''
import subprocess, sys, time
import torch, gnnlab as dgl

def work(rank, world_size):
    subprocess.Popen(["sleep", "1000"])
    torch.distributed.init_process_group("gloo")
    if rank == 0:
        torch.distributed.barrier()  # waits without Python
    while True:
        time.sleep(1)

dgl.parallel.launch_processes(work, 2, start_method={start_method!r})
'''
starter = subprocess.Popen([sys.executable, "-c", STARTER])
while len(running := children()) < 5:
    time.sleep(0.05)
    assert starter.poll() is None
time.sleep(1)
starter.kill()
starter.wait()

def lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

deadline = time.monotonic() + 60
while alive := list(filter(lives, running)):
    assert time.monotonic() < deadline, alive
    time.sleep(0.05)
        """
    )


def test_a_rank_that_fails_since_its_starter_is_gone_leaves_nothing(tmp_path: Path) -> None:
    """Its error reaches nobody; it must not end by itself, for its children would stay."""
    script(
        f"""
from pathlib import Path
from threading import Timer
from gnnlab.parallel.rank import Lines, Settings, run

note = Path({str(tmp_path / "child")!r})

def starter_ends(rank, world_size):
    note.write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
    os.close(events[0])  # as if the starter had ended; the lifeline tells it a second later
    Timer(1.0, os.close, [lifeline[1]]).start()
    raise RuntimeError("Connection closed by peer")

events, lifeline, output = os.pipe(), os.pipe(), os.dup(1)
pid = os.fork()
if pid == 0:
    os.setsid()
    lines = Lines(lifeline[0], events[1], output)
    run(lines, Settings(0, 1, {{}}, 1), lambda: (starter_ends, ()))
    os._exit(0)
os.close(events[0])
os.close(lifeline[1])
_, status = os.waitpid(pid, 0)
assert os.WIFSIGNALED(status), status
child = int(note.read_text())
assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"
        """
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the port cannot be kept")
def test_the_port_of_the_rendezvous_is_kept_at_every_address() -> None:
    """Rank 0 listens on all of them, so that a port in use at 127.0.0.2 would fail it."""
    with _meeting_point() as environment, socket.socket() as other:
        port = int(environment["MASTER_PORT"])
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.2", port))
        store = TCPStore("127.0.0.1", port, world_size=1, is_master=True)
        store.set("rank 0", "listens")
        assert store.get("rank 0") == b"listens"


def test_a_starter_with_many_open_files() -> None:
    """Each mapped array of a graph holds one; a rank must still hear that it may end."""
    said = run_script(
        """
        import os, resource
        from gnnlab.parallel import launch_processes

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = 2048 if hard == resource.RLIM_INFINITY else min(2048, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(min(1100, most - 200))]
        print(launch_processes(lambda rank, world_size: rank, 2, start_method="fork"))
        """
    )
    assert said == "[0, 1]\n"


def test_a_rank_that_ends_as_its_result_arrives_is_no_error() -> None:
    def poll() -> int:
        if not events.closed:
            send_message(events, ("result", b"x"))
            events.close()
            rank._readers[0].join(60.0)
        return 0

    pipes = [os.pipe() for _ in range(3)]
    rank = RankProcess(0, 1 << 30, poll, Lines(pipes[0][1], pipes[1][0], pipes[2][0]))
    events = os.fdopen(pipes[1][1], "wb", 0)
    for end in (pipes[0][0], pipes[2][1]):
        os.close(end)
    rank.listen()
    assert rank.look() and rank.result == b"x" and rank.failure is None
    rank.send(RELEASE)
