"""Compare predicted epochs with measured ones, on machines that this one plays.

    python -m benchmarks.simulation --machines 1,2,4 --rates 100mbit,1gbit

Needs root, iproute2 and a Linux with network namespaces. Each machine is a namespace with a link of
the given rate in both directions and a /dev/shm of its own; it runs a server and trainers of
``examples/train_dist.py``. Then the same script runs in a simulation on the same parts with the
same seeds. All namespaces share the processors of this machine, and the simulation is told so.
What the links carry, what a byte costs the processors, and how much slower work is while many
processes do it are measured first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import numpy as np
import torch
import zmq

import gnnlab as dgl
from benchmarks import data, table
from gnnlab.distributed.traffic import KINDS, Traffic
from gnnlab.simulate import Network, Result, simulate

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "train_dist.py"
PREFIX, SUBNET, PORT = "gnnlab-sim", "10.79.0", 30050
ROUND = 8 << 20  # bytes that a machine sends in a round of _exchange: about those of a mini-batch
EPOCH = re.compile(r"^epoch +\d+ .* ([0-9.]+) s$", re.MULTILINE)
# What a trainer runs: the example, and then it says what it asked for.
DRIVER = """
import json, runpy, sys
from gnnlab.distributed.context import current
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print("TRAFFIC", json.dumps(current().remote.traffic.to_list()), flush=True)
"""


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--size", default="S", help="T, S or M (default S)")
    parser.add_argument("--machines", default="1,2,4", help="default %(default)s")
    parser.add_argument("--rates", default="100mbit,1gbit", help="as tc reads; default %(default)s")
    parser.add_argument("--trainers", type=int, default=1, help="of each machine (default 1)")
    parser.add_argument("--epochs", type=int, default=4, help="the first is not counted")
    parser.add_argument("--batch_size", type=int, default=1000, help="of all trainers together")
    parser.add_argument("--fan_out", default="5,10,15", help="default %(default)s")
    parser.add_argument("--width", type=int, help="features of a node; 100 by default, as made")
    parser.add_argument("--part_method", default="metis")
    parser.add_argument("--curve", action="store_true", help="encrypt, as launch does")
    parser.add_argument("--latency", type=float, help="of a link; measured by default")
    parser.add_argument("--per_byte", type=float, help="as of Network; measured by default")
    parser.add_argument("--per_request", type=float, default=Network.per_request)
    parser.add_argument("--json", type=Path, help="write every result to this file")
    options = parser.parse_args(arguments)
    if os.geteuid() or sys.platform != "linux":
        print("benchmarks.simulation: needs root on Linux", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):  # either way namespaces are taken down
        signal.signal(number, _stop)
    rows = [["machines", "link", "measured", "predicted", "ratio", "bytes equal", "limit"]]
    results = []
    with tempfile.TemporaryDirectory(prefix="gnnlab-simulation-") as folder:
        for machines in map(int, options.machines.split(",")):
            part_config = _partition(options, machines, Path(folder) / str(machines))
            crowding = _crowding(options, machines * (options.trainers + 1))  # trainers, servers
            for rate in options.rates.split(",") if machines > 1 else ["-"]:
                one = _compare(options, part_config, machines, rate, crowding, Path(folder))
                results.append(one)
                rows.append([str(one[name]) for name in ("machines", "rate")])
                rows[-1] += [f"{one['measured']:.2f} s", f"{one['predicted']:.2f} s"]
                rows[-1] += [f"{one['predicted'] / one['measured']:.2f}"]
                rows[-1] += ["yes" if one["equal"] else "NO", one["limit"]]
                print(table.as_text(rows), flush=True)
    print(table.as_markdown(rows))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0 if all(one["equal"] for one in results) else 1


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _partition(options: argparse.Namespace, machines: int, folder: Path) -> Path:
    arrays = {n: np.load(data.folder_of(options.size) / f"{n}.npy") for n in data.NAMES}
    g = dgl.graph((arrays["src"], arrays["dst"]), num_nodes=len(arrays["label"]))
    feat = torch.from_numpy(arrays["feat"])
    g.ndata["feat"] = feat[:, torch.arange(options.width or feat.shape[1]) % feat.shape[1]]
    g.ndata["label"] = torch.from_numpy(arrays["label"])
    train = torch.zeros(g.num_nodes(), dtype=torch.bool)
    train[torch.from_numpy(arrays["train"])] = True
    g.ndata["train_mask"] = train
    for number, name in enumerate(("val_mask", "test_mask")):  # few: only training is measured
        g.ndata[name] = torch.arange(g.num_nodes()) % 1000 == number
    dgl.distributed.partition_graph(g, "g", machines, folder, part_method=options.part_method)
    return folder / "g.json"


def _words(options: argparse.Namespace, part_config: Path) -> list[str]:
    return [
        *("--graph_name", "g", "--part_config", str(part_config)),
        *("--num_epochs", str(options.epochs), "--batch_size", str(options.batch_size)),
        *("--fan_out", *options.fan_out.split(","), "--num_hidden", "64"),
    ]


def _compare(
    options: argparse.Namespace,
    part_config: Path,
    machines: int,
    rate: str,
    crowding: float,
    folder: Path,
) -> dict:
    words = _words(options, part_config)
    latency, per_byte, overhead = 0.0, 0.0, None
    with _machines(machines, rate) as names:
        if machines > 1:
            latency = _latency(names)
            per_byte, overhead = _exchange(names, rate, options.curve)
        printed = _run_job(options, part_config, machines, words, folder)
    measured = [float(seconds) for seconds in EPOCH.findall(printed[0])][1:]
    real = Traffic(machines)
    for text in printed:
        real.update(Traffic.from_list(machines, json.loads(text.split("TRAFFIC", 1)[1])))
    network = Network(
        bandwidth=_bits(rate),
        latency=latency if options.latency is None else options.latency,
        per_byte=per_byte if options.per_byte is None else options.per_byte,
        per_request=options.per_request,
        **({} if overhead is None else {"overhead": overhead}),
    )
    simulation = simulate(
        part_config,
        trainers_per_machine=options.trainers,
        network=network,
        shared_cores=len(os.sched_getaffinity(0)) / crowding,
    )
    with redirect_stdout(StringIO()):
        result = simulation.run(EXAMPLE, *words)
    kinds = [kind for kind in KINDS if kind != "control"]
    return {
        "machines": machines,
        "rate": rate,
        "latency": network.latency,
        "per_byte": network.per_byte,
        "overhead": network.overhead,
        "crowding": crowding,
        "epochs": measured,
        "measured": statistics.median(measured),
        "predicted": statistics.median(_epochs(result, options.epochs)[1:]),
        "parts": result.epochs[1].parts,
        "equal": all(real.total(kind) == result.traffic.total(kind) for kind in kinds),
        "bytes": real.total().bytes_in + real.total().bytes_out,
        "limit": result.limit,
    }


def _epochs(result: Result, count: int) -> list[float]:
    """Seconds from the end of one epoch to that of the next, as the example measures them."""
    ends = [epoch.start + epoch.seconds for epoch in result.epochs[:count]]
    return [ends[0], *(later - end for end, later in itertools.pairwise(ends))]


def _bits(rate: str) -> float:
    if rate == "-":
        return 1e9
    number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()  # type: ignore[union-attr]
    return float(number) * {"k": 1e3, "m": 1e6, "g": 1e9}[unit]


# ----------------------------------------------------------------------------- machines
def _sh(line: str, check: bool = True) -> str:
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"{line}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def _machines(count: int, rate: str) -> Iterator[list[str]]:
    """Namespaces on a bridge, with shaped links; yields their names."""
    names = [f"{PREFIX}-{number}" for number in range(count)]
    try:
        _sh(f"ip netns add {PREFIX}-switch")
        _sh(f"ip -n {PREFIX}-switch link add br0 type bridge")
        _sh(f"ip -n {PREFIX}-switch link set br0 up")
        for number, name in enumerate(names):
            _sh(f"ip netns add {name}")
            _sh(f"ip -n {name} link set lo up")
            _sh(f"ip -n {name} link add eth0 type veth peer name p{number} netns {PREFIX}-switch")
            _sh(f"ip -n {name} addr add {SUBNET}.{10 + number}/24 dev eth0")
            _sh(f"ip -n {name} link set eth0 up")
            _sh(f"ip -n {PREFIX}-switch link set p{number} master br0 up")
            if rate != "-":
                shape = f"root tbf rate {rate} burst 64kb latency 50ms"
                _sh(f"tc -n {name} qdisc add dev eth0 {shape}")
                _sh(f"tc -n {PREFIX}-switch qdisc add dev p{number} {shape}")
        yield names
    finally:
        for name in [*names, f"{PREFIX}-switch"]:
            for process in _sh(f"ip netns pids {name}", check=False).split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            _sh(f"ip netns del {name}", check=False)


def _in(name: str, code: str, *words: object) -> subprocess.Popen[str]:
    return _python(code, *words, before=("ip", "netns", "exec", name, "timeout", "120"))


def _python(
    code: str, *words: object, before: Sequence[str] = (), env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    line = [*before, sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True, env=env)


def _hear(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def _latency(names: list[str]) -> float:
    """Half of the time that one byte needs to the next machine and back over TCP."""
    server = (
        "import socket; s = socket.create_server(('', 5000)); c, _ = s.accept()\n"
        "c.setsockopt(6, 1, 1)\nwhile (b := c.recv(1)): c.send(b)"
    )
    client = (
        f"import socket, time; time.sleep(0.5); c = socket.create_connection(('{SUBNET}.10', 5000))"
        "\nc.setsockopt(6, 1, 1); found = []\nfor _ in range(200):\n"
        "    begin = time.perf_counter(); c.send(b'x'); c.recv(1)\n"
        "    found.append(time.perf_counter() - begin)\n"
        "print(sorted(found)[100])"
    )
    with _in(names[0], server) as listening, _in(names[1], client) as asking:
        try:
            return float(asking.communicate(timeout=30)[0]) / 2
        finally:
            asking.kill()
            listening.kill()


# What each machine runs to find out what the links carry when all talk to all, in rounds, as
# trainers do: nobody begins one before all have ended the last.
EXCHANGE = """
import sys, time, zmq
me, rounds, size, start, *keys = sys.argv[1:]
hosts = [f"SUBNET.{10 + k}" for k in range(MACHINES)]
context, data = zmq.Context(), bytes(int(size))

def socket(kind):
    found = context.socket(kind)
    if keys:
        found.curve_publickey, found.curve_secretkey = (key.encode() for key in keys)
        if kind == zmq.PULL: found.curve_server = True
        else: found.curve_serverkey = keys[0].encode()
    return found

pull = socket(zmq.PULL)
pull.bind(f"tcp://{hosts[int(me)]}:5002")
others = [k for k in range(len(hosts)) if k != int(me)]
pushes = [socket(zmq.PUSH) for _ in others]
for k, push in zip(others, pushes): push.connect(f"tcp://{hosts[k]}:5002")
time.sleep(max(0, float(start) - time.time()))
begin = time.perf_counter()
arrived = {len(data): 0, 0: 0}  # messages by their size; who has a whole round sends an empty one
for expected in range(len(others), (int(rounds) + 1) * len(others), len(others)):
    for push in pushes: push.send(data, copy=False)
    while arrived[len(data)] < expected: arrived[len(pull.recv(copy=False))] += 1
    for push in pushes: push.send(b"")
    while arrived[0] < expected: arrived[len(pull.recv(copy=False))] += 1
print(time.perf_counter() - begin, flush=True)
sys.stdin.read()  # others may still be reading
"""


def _exchange(names: list[str], rate: str, curve: bool) -> tuple[float, float | None]:
    """Let all machines send to all others at once, by ZeroMQ, as trainers do.

    Returns the processor time of this computer that a byte needs at each end, and the share of the
    bandwidth that does not arrive; None for the share where processors were the limit.
    """
    machines, bandwidth = len(names), _bits(rate) / 8
    size = ROUND // (machines - 1)
    rounds = max(3, int(bandwidth * 3 / ROUND))  # three seconds of the link
    code = EXCHANGE.replace("SUBNET", SUBNET).replace("MACHINES", str(machines))
    keys = [key.decode() for key in zmq.curve_keypair()] if curve else []
    start = time.time() + 3.0
    with ExitStack() as stack:
        running = []
        for number, name in enumerate(names):
            process = stack.enter_context(_in(name, code, number, rounds, size, start, *keys))
            stack.callback(process.kill)
            running.append(process)
        time.sleep(max(0.0, start - time.time()))
        busy = _busy_seconds()
        took = [float(_hear(process)) for process in running]
        busy = _busy_seconds() - busy
    moved = machines * (machines - 1) * rounds * size
    wall = statistics.median(took)
    is_idle = busy < 0.8 * wall * len(os.sched_getaffinity(0))
    arrived = moved / machines / wall
    return busy / moved / 2, max(0.0, 1 - arrived / bandwidth) if is_idle else None


# Epochs on the whole graph, for four seconds whenever asked; prints processor time of an epoch.
WORK = """
import sys, time
from pathlib import Path
from benchmarks.tasks import Tasks
tasks = Tasks(Path(sys.argv[1]), "")
tasks.epoch("", sys.argv[2])
print("ready", flush=True)
for _ in sys.stdin:
    begin, used, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < 4:
        tasks.epoch("", sys.argv[2])
        count += 1
    print((time.process_time() - used) / count, flush=True)
"""


def _crowding(options: argparse.Namespace, count: int) -> float:
    """How much more processor time work takes while ``count`` processes do it at once.

    They take each other's place in caches; the simulation measures work that runs alone.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    words = [data.folder_of(options.size), options.fan_out]
    with ExitStack() as stack:
        running = []
        for _ in range(count):
            process = stack.enter_context(_python(WORK, *words, env=environment))
            stack.callback(process.kill)
            running.append(process)
        for process in running:
            _hear(process)

        def seconds(some: list[subprocess.Popen[str]]) -> float:
            for process in some:
                print(file=process.stdin, flush=True)
            return statistics.mean(float(_hear(process)) for process in some)

        pairs = [(seconds(running[:1]), seconds(running)) for _ in range(3)]
    alone, together = (statistics.median(found) for found in zip(*pairs, strict=True))
    return max(1.0, together / alone)


def _busy_seconds() -> float:
    """Processor time of this computer so far, also what the kernel spends on packets."""
    line = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = (int(ticks) for ticks in line[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _run_job(
    options: argparse.Namespace, part_config: Path, machines: int, words: list[str], folder: Path
) -> list[str]:
    """Run servers and trainers to their end; return what each trainer printed."""
    driver, logs = folder / "driver.py", folder / "logs"
    driver.write_text(DRIVER)
    logs.mkdir(exist_ok=True)
    for old in logs.iterdir():
        old.unlink()
    common = _environment(options, part_config, machines)
    shells = []
    try:
        for machine in range(machines):
            lines = ["mount -t tmpfs -o size=50% tmpfs /dev/shm"]
            lines.append(_line(common, {"DGL_ROLE": "server", "DGL_SERVER_ID": machine,
                                        "GNNLAB_MACHINE": machine}, driver, words,
                               logs / f"server-{machine}"))  # fmt: skip
            for local in range(options.trainers):
                rank = machine * options.trainers + local
                own = {"DGL_ROLE": "client", "GNNLAB_MACHINE": machine, "RANK": rank,
                       "LOCAL_RANK": local}  # fmt: skip
                lines.append(_line(common, own, driver, words, logs / f"trainer-{rank}"))
            shells.append(
                subprocess.Popen(
                    [
                        "ip",
                        "netns",
                        "exec",
                        f"{PREFIX}-{machine}",
                        "unshare",
                        "-m",
                        "sh",
                        "-c",
                        "\n".join([*lines, "wait"]),
                    ],
                    start_new_session=True,
                )
            )
        return _await(logs, machines * options.trainers)
    finally:
        for shell in shells:
            with suppress(subprocess.TimeoutExpired):
                shell.wait(5)
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


def _environment(
    options: argparse.Namespace, part_config: Path, machines: int
) -> dict[str, object]:
    found: dict[str, object] = {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": 1,
        "DGL_DIST_MODE": "distributed",
        "DGL_NUM_SERVER": 1,
        "DGL_CONF_PATH": part_config,
        "GNNLAB_SERVERS": json.dumps([[f"{SUBNET}.{10 + m}", PORT] for m in range(machines)]),
        "GNNLAB_NUM_TRAINERS": options.trainers,
        "GNNLAB_JOB": f"{os.getpid():016d}",
        "GNNLAB_SECURITY": "none",
        "WORLD_SIZE": machines * options.trainers,
        "MASTER_ADDR": f"{SUBNET}.10",
        "MASTER_PORT": 29500,
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    if options.curve:
        server, client = zmq.curve_keypair(), zmq.curve_keypair()
        names = ("server_public", "server_secret", "client_public", "client_secret")
        keys = dict(zip(names, (key.decode() for key in (*server, *client)), strict=True))
        found |= {"GNNLAB_SECURITY": "curve", "GNNLAB_KEYS": json.dumps(keys)}
    return found


def _line(common: dict, own: dict, driver: Path, words: list[str], log: Path) -> str:
    """A line of shell that starts a process in the background, and notes how it ended."""
    variables = [f"{name}={shlex.quote(str(value))}" for name, value in {**common, **own}.items()]
    command = shlex.join([sys.executable, str(driver), str(EXAMPLE), *words])
    return (
        f"( env {' '.join(variables)} {command} > {log}.out 2>&1; echo $? > {log}.tmp; "
        f"mv {log}.tmp {log}.end ) &"
    )


def _await(logs: Path, num_trainers: int, timeout: float = 1800) -> list[str]:
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


if __name__ == "__main__":
    sys.exit(main())
