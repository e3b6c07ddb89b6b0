"""Machines that one computer plays: network namespaces on a bridge, with links of a given rate.

Needs root, iproute2 and a Linux with network namespaces. Each machine has a shaped link in both
directions, and its processes a /dev/shm of their own; the processors are shared. Servers and
trainers of a job run on the machines as on real ones. What the links carry, and what messages cost
the processors, can be measured before a job.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from gnnlab.launch.certificates import Authority

__all__ = [
    "bits", "busy_seconds", "exchange", "hear", "machines", "python", "run_job", "shape",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
PREFIX, SUBNET, PORT = "gnnlab-sim", "10.79.0", 30050


def bits(rate: str) -> float:
    """Bits per second of a rate as tc writes it, such as ``150mbit``."""
    number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()  # type: ignore[union-attr]
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit]


# ----------------------------------------------------------------------------- machines
def _sh(line: str, check: bool = True) -> str:
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"{line}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def machines(count: int) -> Iterator[list[str]]:
    """Namespaces on a bridge, with unlimited links; yields their names.

    TCP is Reno, which every kernel has. A connection has at most 64 KiB under way, so queues are
    short, and connections share a link evenly, as with a queue for each (fq_codel), which not every
    kernel has. Packets within a machine are at most 16 KiB, so that several are under way there,
    too: a receiver acknowledges a single one only after 40 ms.
    """
    names = [f"{PREFIX}-{number}" for number in range(count)]
    _remove(names)  # a benchmark that was killed may have left some
    try:
        _sh(f"ip netns add {PREFIX}-switch")
        _sh(f"ip -n {PREFIX}-switch link add br0 type bridge")
        _sh(f"ip -n {PREFIX}-switch link set br0 up")
        for number, name in enumerate(names):
            _sh(f"ip netns add {name}")
            _sh(f"ip -n {name} link set lo up mtu 16384")
            _sh(f"ip -n {name} link add eth0 type veth peer name p{number} netns {PREFIX}-switch")
            _sh(f"ip -n {name} addr add {SUBNET}.{10 + number}/24 dev eth0")
            _sh(f"ip -n {name} link set eth0 up")
            _sh(f"ip -n {PREFIX}-switch link set p{number} master br0 up")
            for value in ("congestion_control=reno", "wmem='4096 32768 65536'"):
                _sh(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_{value}")
        yield names
    finally:
        _remove(names)


def shape(names: Sequence[str], rate: str) -> None:
    """Give each link a rate, in both directions, in place of the one it had.

    An idle link sends a burst at once, at any rate, so the burst is as small as it can be: one of
    256 KB would carry all rows of a small batch. It has room for 2 ms at the rate, as timers of
    busy processors are late, and for the largest packet before segmentation, 64 KiB and its
    headers. With less, the kernel cuts it into packets of 1,500 bytes, work that a network card
    does elsewhere.
    """
    burst = max(72_000, int(bits(rate) / 8 * 0.002))
    for number, name in enumerate(names):
        shaped = f"root tbf rate {rate} burst {burst} latency 50ms"
        _sh(f"tc -n {name} qdisc replace dev eth0 {shaped}")
        _sh(f"tc -n {PREFIX}-switch qdisc replace dev p{number} {shaped}")


def _remove(names: Sequence[str]) -> None:
    for name in [*names, f"{PREFIX}-switch"]:
        _kill_processes(name)
        _sh(f"ip netns del {name}", check=False)


def _kill_processes(name: str) -> None:
    for process in _sh(f"ip netns pids {name}", check=False).split():
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)


def python(
    code: str,
    *words: object,
    before: Sequence[str] = (),
    inherits: Sequence[int] = (),
    **variables: object,
) -> subprocess.Popen[str]:
    """Start a fresh interpreter that runs code, with pipes and the descriptors it inherits."""
    pipe = subprocess.PIPE
    line = [*before, sys.executable, "-c", code, *map(str, words)]
    own = {"PYTHONPATH": ROOT, "OMP_NUM_THREADS": 1, **variables}
    env = {**os.environ, **{name: str(value) for name, value in own.items()}}
    return subprocess.Popen(
        line, stdin=pipe, stdout=pipe, text=True, env=env, pass_fds=tuple(inherits)
    )


def hear(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints.

    Raises
    ------
    RuntimeError
        It printed none and ended.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the calibration ended early; its error is above")
    return line


# What each machine runs to find out what the links carry when all talk to all, in rounds, as
# trainers do: nobody begins one before all have ended the last.
EXCHANGE = """
import json, os, socket, sys, time
from concurrent.futures import ThreadPoolExecutor
from gnnlab.launch.certificates import Keys, server_name
from gnnlab.distributed.stream import accept, greet
me, rounds, size, streams = map(int, sys.argv[1:])
hosts = [f"SUBNET.{10 + k}" for k in range(MACHINES)]
others = [k for k in range(MACHINES) if k != me] * streams
listener = socket.create_server((hosts[me], 5002), backlog=len(others))

def context(name):
    keys = os.environ.get(name)
    return Keys(**json.loads(keys)).context(name == "SERVER_KEYS") if keys else None

def connect(host):
    for _ in range(3000):
        try: return socket.create_connection((host, 5002))
        except OSError: time.sleep(0.02)

own = context("SERVER_KEYS")
pool = ThreadPoolExecutor(2 * len(others))
coming = [pool.submit(lambda: accept(listener.accept()[0], own, 60)) for _ in others]
mine = context("CLIENT_KEYS")
sending = [greet(connect(hosts[k]), bytes(16), mine, server_name(k), 60) for k in others]
receiving = [each.result() for each in coming]
for stream in sending: stream.link.setblocking(True)

def exchange(message):  # a thread for each connection, as in a server
    done = [pool.submit(stream.send, [message]) for stream in sending]
    done += [pool.submit(stream.receive) for stream in receiving]
    for each in done: each.result()

print("ready", flush=True)
time.sleep(max(0, float(sys.stdin.readline()) - time.time()))
begin, data = time.perf_counter(), bytes(size)
for _ in range(rounds):
    exchange(data)
    exchange(b"-")  # whoever has a whole round says so
print(time.perf_counter() - begin, flush=True)
sys.stdin.read()  # others may still be reading
"""


# Small messages there and back: before the start of an exchange, then during it.
PING = """
import socket, statistics, sys, time
host, is_echo = sys.argv[1], int(sys.argv[2])
if is_echo:
    with socket.create_server((host, 5003)) as server: connection = server.accept()[0]
else:
    for _ in range(100):
        try: connection = socket.create_connection((host, 5003)); break
        except OSError: time.sleep(0.02)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if is_echo:
    while message := connection.recv(64): connection.sendall(message)
    sys.exit()

def seconds(begin, end):
    found = []
    time.sleep(max(0, begin - time.time()))
    while time.time() < end:
        sent = time.perf_counter()
        connection.sendall(bytes(64))
        connection.recv(64, socket.MSG_WAITALL)
        found.append(time.perf_counter() - sent)
        time.sleep(0.004)
    return statistics.median(found)

print("ready", flush=True)
start = float(sys.stdin.readline())
idle = seconds(start - 0.7, start - 0.2)
print(max(0, seconds(start + 0.3, start + 2) - idle) / 2, flush=True)
"""


def exchange(
    names: Sequence[str], rate: str, is_encrypted: bool, size: int, streams: int = 1
) -> dict[str, float]:
    """Let all machines send ``size`` bytes to each other one at once, in rounds, as trainers do.

    They are divided among some connections, as those of several trainers on a machine are.

    Returns
    -------
    dict
        ``per_byte``: processor seconds of this computer that a byte costs at each end.
        ``queue``: seconds that a packet waits for each connection that uses the link it leaves on.
        ``overhead``: share of the links' rate that does not arrive; absent where the processors
        were the limit.
    """
    count, bandwidth, size = len(names), bits(rate) / 8, size // streams * streams
    rounds = min(400, max(3, int(bandwidth * 3 / (size * (count - 1)))))  # three seconds
    code = EXCHANGE.replace("SUBNET", SUBNET).replace("MACHINES", str(count))
    authority = Authority()
    with ExitStack() as stack:
        running = []
        for number, name in enumerate(names):
            before = ("ip", "netns", "exec", name, "timeout", "120")
            words = (code, number, rounds, size // streams, streams)
            keys: dict[str, Any] = {
                f"{role.upper()}_KEYS": authority.issue(role, number).to_json()
                for role in ("server", "client")
                if is_encrypted
            }
            process = stack.enter_context(python(*words, before=before, **keys))
            stack.callback(process.kill)
            running.append(process)
        for is_echo in (1, 0):
            before = ("ip", "netns", "exec", names[1 - is_echo], "timeout", "120")
            ping = stack.enter_context(python(PING, f"{SUBNET}.10", is_echo, before=before))
            stack.callback(ping.kill)
        waiting = [*running, ping]
        for process in waiting:
            hear(process)
        start = time.time() + 1.0
        for process in waiting:
            print(start, file=process.stdin, flush=True)
        time.sleep(max(0.0, start - time.time()))
        busy = busy_seconds()
        took = [float(hear(process)) for process in running]
        busy = busy_seconds() - busy
        queue = float(hear(ping))
    moved = count * (count - 1) * rounds * size
    wall = statistics.median(took)
    found = {"per_byte": busy / moved / 2, "queue": queue / (count - 1) / streams}
    if busy < 0.8 * wall * len(os.sched_getaffinity(0)):
        found["overhead"] = max(0.0, 1 - moved / count / wall / bandwidth)
    return found


def busy_seconds() -> float:
    """Processor time of this computer so far, also what the kernel spends on packets."""
    line = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = (int(ticks) for ticks in line[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run_job(
    names: Sequence[str],
    script: Path,
    words: Sequence[object],
    part_config: Path,
    logs: Path,
    *,
    trainers: int = 1,
    samplers: int = 0,
    is_encrypted: bool = False,
    cache_bytes: int = 0,
    timeout: float = 600.0,
) -> list[str]:
    """Run a server and trainers on each machine to their end; return what each trainer printed.

    Raises
    ------
    RuntimeError
        A process failed, or trainers did not end in time; with the end of what it printed.
    """
    logs.mkdir(exist_ok=True, parents=True)
    for old in logs.iterdir():
        old.unlink()
    common = {
        **_environment(len(names), part_config),
        "GNNLAB_SECURITY": "tls" if is_encrypted else "none",
        "DGL_NUM_SAMPLER": samplers,
        "GNNLAB_NUM_TRAINERS": trainers,
        "GNNLAB_CACHE_BYTES": cache_bytes,
        "WORLD_SIZE": len(names) * trainers,
    }
    command = [sys.executable, str(script), *map(str, words)]
    shells, authority = [], Authority()

    def process_of(role: str, machine: int) -> dict[str, object]:
        found: dict[str, object] = {"DGL_ROLE": role, "GNNLAB_MACHINE": machine}
        if is_encrypted:
            found["GNNLAB_KEYS"] = authority.issue(role, machine).to_json()
        return found

    try:
        for machine, name in enumerate(names):
            server = {**process_of("server", machine), "DGL_SERVER_ID": machine}
            lines = ["mount -t tmpfs -o size=50% tmpfs /dev/shm"]
            lines.append(_line({**common, **server}, command, logs / f"server-{machine}"))
            for local in range(trainers):
                rank = machine * trainers + local
                client = {**process_of("client", machine), "RANK": rank, "LOCAL_RANK": local}
                lines.append(_line({**common, **client}, command, logs / f"trainer-{rank}"))
            inside = ["unshare", "-m", "sh", "-c", "\n".join([*lines, "wait"])]
            line = ["ip", "netns", "exec", name, *inside]
            shells.append(subprocess.Popen(line, start_new_session=True))
        return _await(logs, len(names) * trainers, timeout)
    finally:
        for shell in shells:
            with suppress(subprocess.TimeoutExpired):
                shell.wait(5)
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        for name in names:
            _kill_processes(name)


def _environment(count: int, part_config: Path) -> dict[str, object]:
    return {
        "PYTHONPATH": ROOT,
        "OMP_NUM_THREADS": 1,
        "DGL_DIST_MODE": "distributed",
        "DGL_NUM_SERVER": 1,
        "DGL_CONF_PATH": part_config,
        "GNNLAB_SERVERS": json.dumps([[f"{SUBNET}.{10 + m}", PORT] for m in range(count)]),
        "GNNLAB_JOB": f"{os.getpid():016d}",
        "MASTER_ADDR": f"{SUBNET}.10",
        "MASTER_PORT": 29500,
        "GLOO_SOCKET_IFNAME": "eth0",
    }


def _line(variables: dict[str, Any], command: Sequence[str], log: Path) -> str:
    """A line of shell that starts a process in the background, and notes how it ended."""
    env = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    return (
        f"( env {env} {shlex.join(command)} > {log}.out 2>&1; echo $? > {log}.tmp; "
        f"mv {log}.tmp {log}.end ) &"
    )


def _await(logs: Path, num_trainers: int, timeout: float) -> list[str]:
    deadline = time.monotonic() + timeout
    trainers = [logs / f"trainer-{rank}" for rank in range(num_trainers)]
    while True:
        ended = sorted(logs.glob("*.end"))
        failed = [path for path in ended if path.read_text().strip() != "0"]
        if failed or time.monotonic() > deadline:
            shown = failed[0].with_suffix(".out") if failed else Path(f"{trainers[0]}.out")
            raise RuntimeError(
                f"{shown.stem} failed, or took too long:\n{shown.read_text()[-4000:]}"
            )
        if {f"{path.name}.end" for path in trainers} <= {path.name for path in ended}:
            return [Path(f"{path}.out").read_text() for path in trainers]
        time.sleep(0.1)
