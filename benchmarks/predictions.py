"""Hold predictions to account: real jobs on played machines beside what the simulator predicts.

Settings are drawn by a seed before anything is run. For each setting, the simulator runs the
trainers, calibrations measure this computer, and the job runs on machines that are network
namespaces (:mod:`benchmarks.namespaces`). Calibrations, none of which runs a job that is predicted:

- *pace*: as many real processes as the setting has trainers, and sampler processes if it has them,
  do their work at once, without a network. Their processor seconds by kind, divided by those of a
  simulation of the same work, are the ``slowdown``: processes share caches and memory bandwidth,
  and their allocators and threads differ. The main and the prefetch thread of a trainer wait for
  each other, so what the main thread of a single trainer waits counts, too, and for several
  trainers the share of the processors that stays idle. The speed of a virtual machine changes by a
  fifth within a minute, so the pace is measured just before and just after the job, and the mean
  counts; "ahead" in a row is the prediction from what was known before the job.
- *request*: small messages to a real server: processor seconds, and the time of a round trip.
- *round*: processor seconds of an all-reduce of the trainers.
- *exchange*: all machines send to all others, in rounds of the bytes that a batch needs, over as
  many connections as there are trainers: processor seconds of a byte, the share of the link that
  arrives, and how long a packet waits for each connection that uses the link.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gnnlab as dgl
from benchmarks import data, machine, namespaces, trainer
from gnnlab.simulate import Network, SimulationResult, simulate
from gnnlab.simulate.optrace import LoaderPass, Wait, Work

__all__ = ["FACTORS", "draw", "measure", "summary", "tables"]

FACTORS: dict[str, tuple[Any, ...]] = {
    "machines": (1, 2, 3, 4),
    "rate": ("150mbit", "400mbit", "1gbit"),
    "parts": ("metis", "random"),
    "cache": (False, True),
    "width": (100, 600),
    "trainers": (1, 2),
    "encrypted": (False, True),
    "samplers": (0, 1),
}
ALONE = {"rate": "-", "parts": "metis", "cache": False, "encrypted": False}
"""What one machine has: no link, no other part."""

BATCH = {"T": 80, "S": 1000}  # nodes of all trainers together
_ROW_SECONDS = 240.0  # that a simulation, or a job, may take
_TRAINER = Path(trainer.__file__)
_SMALLEST = 2 << 20  # bytes that a machine sends in a round of an exchange
_CLASSES = 47
_Setting = dict[str, Any]


# ---------------------------------------------------------------------------------- settings
def draw(rows: int, seed: int) -> list[_Setting]:
    """Draw different settings; the levels of each factor are balanced, and all occur from 20 rows.

    One machine has no link, and fewer settings; it is drawn half as often as others.
    """
    if not 1 <= rows <= 48:  # one machine has eight settings
        raise ValueError(f"a grid has from 1 to 48 different settings; found {rows}")
    rng = random.Random(seed)
    levels = {**FACTORS, "machines": (4, 3, 2, 1, 4, 3, 2)}
    while True:
        columns = {}
        for name, values in levels.items():
            columns[name] = list(itertools.islice(itertools.cycle(values), rows))
            rng.shuffle(columns[name])
        drawn = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        drawn = [each | ALONE if each["machines"] == 1 else each for each in drawn]
        is_whole = rows < 20 or all(
            {each[name] for each in drawn} >= set(values) for name, values in FACTORS.items()
        )
        if is_whole and len({tuple(each.values()) for each in drawn}) == rows:
            return drawn


def _epochs(setting: _Setting) -> int:
    """How many epochs to run: more where they are short. The first is not counted."""
    if setting["machines"] == 1:
        return 41 if setting["width"] < 600 else 15
    expected = setting["width"] / 600 * 150e6 / namespaces.bits(setting["rate"]) * 12
    return 1 + max(3, min(14, int(10 / expected)))


# ---------------------------------------------------------------------------------- a whole grid
class _TimeIsUp(BaseException):
    """The minutes have passed."""


def measure(
    path: Path,
    *,
    rows: int = 36,
    seed: int = 0,
    size: str = "S",
    minutes: float = 60.0,
    settings: Sequence[_Setting] | None = None,
    resume: bool = False,
    row: Callable[[_Setting], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Measure settings one by one; write the file after each.

    Parameters
    ----------
    path : Path
        JSON file: what the computer is, the settings, calibrations and rows.
    rows, seed : int
        Of :func:`draw`.
    size : str
        Graph: T or S.
    minutes : float
        After which it ends with the rows that it has.
    settings : list of dict, optional
        In place of drawing them.
    resume : bool
        Continue the file: run the settings that have no row, or whose row failed.
    row : callable, optional
        Measures a setting, in place of real jobs.
    """
    if resume and path.exists():
        found = json.loads(path.read_text("utf8")) | {"calibration": {}}  # of another hour
    else:
        drawn = draw(rows, seed) if settings is None else list(settings)
        found = {"about": machine.describe(), "size": size, "seed": seed, "settings": drawn}
        found |= {"calibration": {}, "rows": []}
        _write(path, found)
    done = [each for each in found["rows"] if "failed" not in each]
    todo = [s for s in found["settings"] if s not in [each["setting"] for each in done]]
    found["rows"], began = done, time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(_alarm(minutes))
        try:
            if row is None and todo:
                grid = stack.enter_context(_Grid(found))
                row = grid.row
            for number, setting in enumerate(todo):
                start = time.monotonic()
                try:
                    one = row(setting) if row else {}
                except Exception as error:
                    traceback.print_exc()
                    one = {"failed": f"{type(error).__name__}: {error}"[:2000]}
                seconds = time.monotonic() - start
                found["rows"].append({"setting": setting, **one, "seconds": round(seconds, 1)})
                _write(path, found)
                left = (time.monotonic() - began) / (number + 1) * (len(todo) - number - 1)
                _tell(number + 1, len(todo), found["rows"][-1], left)
        except _TimeIsUp:
            print(f"stopped after {minutes:g} minutes; --resume runs the rest", file=sys.stderr)
    return found


@contextmanager
def _alarm(minutes: float) -> Iterator[None]:
    """Raise _TimeIsUp after some minutes, and SystemExit at SIGTERM."""

    def ring(number: int, frame: object) -> None:
        raise _TimeIsUp if number == signal.SIGALRM else SystemExit(128 + number)

    numbers = (signal.SIGALRM, signal.SIGTERM)
    before = [signal.signal(number, ring) for number in numbers]
    signal.setitimer(signal.ITIMER_REAL, minutes * 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _write(path: Path, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"  {json.dumps(key)}: {_lines(value)}" for key, value in found.items()]
    new = path.with_suffix(".tmp")
    new.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf8")
    new.replace(path)


def _lines(value: Any) -> str:
    """JSON, a list with a line for each of its elements."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in value) + "\n  ]"


def _tell(number: int, count: int, row: dict[str, Any], left: float) -> None:
    named = " ".join(f"{name}={value}" for name, value in row["setting"].items())
    if "failed" in row:
        shown = "failed: " + row["failed"].splitlines()[0][:100]
    else:
        ratio = row["predicted"] / row["measured"]
        shown = (
            f"measured {row['measured']:.3f} s, predicted {row['predicted']:.3f} s ({ratio:.2f})"
        )
    text = f"{number}/{count}  {named}  {shown}  {row['seconds']:.0f} s, {left / 60:.0f} min left"
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------- a row
class _Grid:
    """Partitions, machines and calibrations that settings share.

    Parameters
    ----------
    found : dict
        Its "calibration" is read and added to.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.size, self.known = found["size"], found["calibration"]
        self.batch = BATCH[self.size]
        self.count = max(setting["machines"] for setting in found["settings"])
        self._partitions: dict[tuple[Any, ...], Path] = {}

    def __enter__(self) -> _Grid:
        self._stack = ExitStack()
        with ExitStack() as stack:
            text = tempfile.TemporaryDirectory(prefix="gnnlab-predictions-")
            self.folder = Path(stack.enter_context(text))
            self.names = stack.enter_context(namespaces.machines(self.count))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def row(self, setting: _Setting) -> dict[str, Any]:
        """Predict a setting, then measure it."""
        count, width, trainers = setting["machines"], setting["width"], setting["trainers"]
        part_config = self._partition(count, setting["parts"], width)
        epochs, samplers = _epochs(setting), setting["samplers"]
        # A quarter of all rows, in each process.
        cache = width * 4 * data.SIZES[self.size][0] // 4 if setting["cache"] else 0
        words = [part_config, self.batch, epochs]
        simulation = simulate(
            part_config, trainers_per_machine=trainers, samplers_per_trainer=samplers,
            cache_bytes=cache,
        )  # fmt: skip
        with redirect_stdout(StringIO()) as out:
            result = simulation.run(_TRAINER, *map(str, words), timeout=_ROW_SECONDS)
        simulated = _found(out.getvalue())
        with self._pace(result, count * trainers, width, bool(samplers)) as pace:
            before = pace()
            calibration = self._calibrate(setting, result, epochs) | {"slowdown": before}
            ahead = _seconds(_retimed(result, calibration), epochs)[1:]
            printed = namespaces.run_job(
                self.names[:count], _TRAINER, words, part_config, self.folder / "logs",
                trainers=trainers, samplers=samplers, is_encrypted=setting["encrypted"],
                cache_bytes=cache, timeout=_ROW_SECONDS,
            )  # fmt: skip
            after = pace()
        mean = {kind: round((before[kind] + after[kind]) / 2, 4) for kind in before}
        calibration |= {"slowdown": mean, "slowdown before": before}
        predicted = _retimed(result, calibration)
        real = _found(printed[0])
        taken = _seconds(predicted, epochs)[1:]
        return {
            "measured": round(statistics.median(real["epochs"][1:]), 4),
            "predicted": round(statistics.median(taken), 4),
            "ahead": round(statistics.median(ahead), 4),
            "equal": real["servers"] == simulated["servers"],
            "bytes": result.traffic.total().bytes_in + result.traffic.total().bytes_out,
            "limit": predicted.limit,
            "measured epochs": [round(each, 4) for each in real["epochs"]],
            "predicted epochs": [round(each, 4) for each in taken],
            "calibration": calibration,
        }

    def _partition(self, count: int, method: str, width: int) -> Path:
        key = count, method, width
        if key not in self._partitions:
            folder = self.folder / "-".join(map(str, key))
            g = _graph(self.size, width)
            with redirect_stdout(StringIO()):
                dgl.distributed.partition_graph(g, "g", count, folder, part_method=method)
            self._partitions[key] = folder / "g.json"
        return self._partitions[key]

    # ------------------------------------------------------------------ calibrations
    def _calibrate(
        self, setting: _Setting, result: SimulationResult, epochs: int
    ) -> dict[str, Any]:
        count, width = setting["machines"], setting["width"]
        ranks = count * setting["trainers"]
        found: dict[str, Any] = {}
        if ranks > 1:
            sizes = (width, trainer.HIDDEN, _CLASSES) if count == 1 else (1, 1, 1)
            key = f"round {ranks} {sizes[0]}"
            found["per_round"] = self._once(key, _seconds_of_a_round, ranks, *sizes)
        if count > 1:
            encrypted = setting["encrypted"]
            key = "request " + ("encrypted" if encrypted else "plain")
            found |= self._once(key, self._request, encrypted)
            total = result.traffic.total()
            each = (total.bytes_in + total.bytes_out) / epochs / trainer.STEPS / count
            names = self.names[:count]
            namespaces.shape(names, setting["rate"])
            size = int(max(_SMALLEST, each)) // (count - 1)
            found |= namespaces.exchange(
                names, setting["rate"], encrypted, size, setting["trainers"]
            )
            found["bandwidth"] = namespaces.bits(setting["rate"])
        return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in found.items()}

    def _once(self, key: str, calibrate: Callable[..., Any], *arguments: Any) -> Any:
        if key not in self.known:
            self.known[key] = calibrate(*arguments)
        return self.known[key]

    @contextmanager
    def _pace(
        self, result: SimulationResult, ranks: int, width: int, has_samplers: bool
    ) -> Iterator[Callable[[], dict[str, float]]]:
        """Processor seconds of real processes by those of a simulation, by kind of work.

        Training is that of the setting's own simulation; sampling is simulated on one machine. The
        processes wait between calls.
        """
        part_config = self._partition(1, "metis", width)
        batch = self.batch // ranks
        roles = ["trainer", "sampler"] if has_samplers else ["both"]
        with redirect_stdout(StringIO()):
            simulation = simulate(part_config, samplers_per_trainer=int(has_samplers))
            simulated = simulation.run(_TRAINER, str(part_config), str(batch), "8")
        alone = _work(simulated) | {"compute": _work(result)["compute"]}
        code = "import sys; from benchmarks import trainer; "
        code += "trainer.main(sys.argv[1], int(sys.argv[2]), 0, sys.argv[3], int(sys.argv[4]))"

        def measure() -> dict[str, float]:
            for process in running:
                print(file=process.stdin, flush=True)
            real = [_found(namespaces.hear(process)) for process in running]
            mean = {
                kind: sum(each.get(kind, 0.0) for each in real) / ranks
                for kind in ("compute", "sample", "busy", "wall")
            }
            idle = 1.0
            if ranks > 1:  # two threads or processes a trainer, which wait for each other
                cores = len(os.sched_getaffinity(0))
                idle = max(1.0, mean["wall"] * cores / ranks / (mean["compute"] + mean["sample"]))
            elif not has_samplers:
                mean["compute"] = mean["busy"]
            compute = idle * mean["compute"] / alone["compute"]
            sample = idle * mean["sample"] / alone["sample"]
            found = {"compute": compute, "sample": sample, "fetch": sample, "serve": sample}
            return {kind: round(factor, 4) for kind, factor in found.items()}

        with ExitStack() as stack:
            running = []
            for _ in range(ranks):
                pair = socket.socketpair()
                for role, line in zip(roles, pair, strict=False):
                    variables: dict[str, Any] = {"WORLD_SIZE": 1, "RANK": 0}
                    variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _port()}
                    number = line.fileno()
                    process = namespaces.python(
                        code, part_config, batch, role, number, inherits=(number,), **variables
                    )
                    running.append(stack.enter_context(process))
                    stack.callback(process.kill)
                for line in pair:
                    line.close()
            for process in running:
                namespaces.hear(process)
            yield measure

    def _request(self, encrypted: bool) -> dict[str, float]:
        """What a small message to a real server costs, and how long it takes."""
        part_config, script = (
            self._partition(2, "metis", FACTORS["width"][0]),
            self.folder / "ask.py",
        )
        script.write_text(_ASK, "utf8")
        namespaces.shape(self.names[:2], FACTORS["rate"][-1])
        printed = namespaces.run_job(
            self.names[:2], script, [part_config], part_config, self.folder / "logs",
            is_encrypted=encrypted, timeout=_ROW_SECONDS,
        )  # fmt: skip
        found = _found(printed[0])
        latency = max(2e-5, (found["seconds"] - found["busy"]) / 2)
        return {"per_request": found["busy"] / 2, "latency": latency}


# Asks a server of another machine for a few rows. Between, a sum evicts the nearer caches, as the
# work of a trainer does; what it costs alone is subtracted.
_ASK = """
import json, sys, time, torch
import gnnlab as dgl
from benchmarks.namespaces import busy_seconds
from gnnlab.distributed import messages as m
from gnnlab.distributed.context import current

dgl.distributed.initialize()
g = dgl.distributed.DistGraph("g", part_config=sys.argv[1])
remote, scratch = current().remote, torch.ones(1 << 20)

def measure(asks, count=1000):
    waited, busy = 0.0, busy_seconds()
    for _ in range(count):
        scratch.sum()
        if asks:
            begin = time.perf_counter()
            remote.request([(1, m.Pull("node~_N~label", torch.arange(16)))])
            waited += time.perf_counter() - begin
    return (busy_seconds() - busy) / count, waited / count

g.barrier()
if g.rank() == 0:
    measure(True, 100)
    (busy, seconds), (without, _) = measure(True), measure(False)
    print("FOUND", json.dumps({"busy": max(0.0, busy - without), "seconds": seconds}), flush=True)
g.barrier()
"""

# What DDP does with gradients; what that costs without others is in the pace already.
_ALLREDUCE = """
import sys, time, torch, torch.distributed as dist
from types import SimpleNamespace as Of
from gnnlab.parallel.rank_order import average_in_rank_order
rank, ranks, port, size, count = map(int, sys.argv[1:])
place = f"tcp://127.0.0.1:{port}"
dist.init_process_group("gloo", init_method=place, rank=rank, world_size=ranks)
alone, bucket = [dist.new_group([each]) for each in range(ranks)], Of(buffer=lambda: values)
values = torch.zeros(size)

def seconds(group):
    trained = Of(process_group=group)
    for _ in range(20): average_in_rank_order(lambda: trained, bucket)
    begin = time.process_time()
    for _ in range(count): average_in_rank_order(lambda: trained, bucket)
    return (time.process_time() - begin) / count

used = seconds(None) - seconds(alone[rank])
dist.barrier()
print(max(0.0, used) / 2 / (ranks - 1), flush=True)
dist.destroy_process_group()
"""


def _seconds_of_a_round(ranks: int, width: int, hidden: int, classes: int) -> float:
    """Processor seconds of a trainer in a round of an all-reduce of the model's gradients."""
    size, port = 2 * width * hidden + 2 * hidden * classes, _port()
    with ExitStack() as stack:
        running = []
        for rank in range(ranks):
            process = namespaces.python(_ALLREDUCE, rank, ranks, port, size, 200)
            running.append(stack.enter_context(process))
            stack.callback(process.kill)
        return statistics.mean(float(namespaces.hear(process)) for process in running)


def _port() -> int:
    """Return a free port below those that the system gives to outgoing connections."""
    for port in _PORTS:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


_PORTS = itertools.count(29600)


def _graph(size: str, width: int) -> dgl.Graph:
    """The graph with features of some width: its own, repeated."""
    arrays = {n: np.load(data.folder_of(size) / f"{n}.npy") for n in data.NAMES}
    g = dgl.graph((arrays["src"], arrays["dst"]), num_nodes=len(arrays["label"]))
    feat = torch.from_numpy(arrays["feat"])
    g.ndata["feat"] = feat[:, torch.arange(width) % feat.shape[1]]
    g.ndata["label"] = torch.from_numpy(arrays["label"])
    train = torch.zeros(g.num_nodes(), dtype=torch.bool)
    train[torch.from_numpy(arrays["train"])] = True
    g.ndata["train_mask"] = train
    return g


# ---------------------------------------------------------------------------------- predictions
def _retimed(result: SimulationResult, calibration: dict[str, Any]) -> SimulationResult:
    """The simulated run on the network and the processors that were measured."""
    names = ("bandwidth", "latency", "per_request", "per_byte", "overhead", "per_round", "queue")
    network = Network(**{name: calibration[name] for name in names if name in calibration})
    cores = len(os.sched_getaffinity(0))
    return result.retimed(network, shared_cores=cores, slowdown=calibration["slowdown"])


def _seconds(result: SimulationResult, count: int) -> list[float]:
    """Seconds from the end of one epoch to that of the next, as the trainer measures them."""
    ends = [epoch.start + epoch.seconds for epoch in result.epochs[:count]]
    return [ends[0], *(later - end for end, later in itertools.pairwise(ends))]


def _work(result: SimulationResult) -> dict[str, float]:
    """Mean processor seconds of a batch by kind; a trainer's first epoch is not counted."""
    spent: dict[str, list[float]] = defaultdict(list)
    for track in result.lanes:
        kind = "compute" if track.name == "trainer" else "sample"
        epochs: list[float] = []
        for op in track.ops:
            if (isinstance(op, LoaderPass) and op.begins) or (
                isinstance(op, Wait) and op.key[1:] == ("begin",) and op.step == 0
            ):
                epochs.append(0.0)
            elif isinstance(op, Work) and epochs and kind in ("sample", op.kind):
                epochs[-1] += op.seconds
        spent[kind] += epochs[1:]
    return {kind: statistics.mean(each) / trainer.STEPS for kind, each in spent.items()}


def _found(text: str) -> dict[str, Any]:
    line = next((line for line in text.splitlines() if line.startswith("FOUND ")), None)
    if line is None:
        raise RuntimeError(f"no result in what was printed:\n{text[-2000:]}")
    return json.loads(line.removeprefix("FOUND "))


# ---------------------------------------------------------------------------------- results
def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Mean and largest absolute error of predictions in percent, Kendall's tau, and counts.

    "ahead" is the mean absolute error of what was predicted before each job.

    tau is 1 if predictions order the settings as measurements do, −1 if the other way round.
    """
    good = [row for row in rows if "failed" not in row]
    pairs = [(row["measured"], row["predicted"]) for row in good]
    errors = [100 * abs(predicted / measured - 1) for measured, predicted in pairs]
    ahead = [100 * abs(row["ahead"] / row["measured"] - 1) for row in good if "ahead" in row]
    signs = [
        float(np.sign((a[0] - b[0]) * (a[1] - b[1]))) for a, b in itertools.combinations(pairs, 2)
    ]
    nan = float("nan")
    return {
        "rows": len(good),
        "failed": len(rows) - len(good),
        "bytes equal": sum(row["equal"] for row in good),
        "MAPE": statistics.mean(errors) if errors else nan,
        "ahead": statistics.mean(ahead) if ahead else nan,
        "worst": max(errors, default=nan),
        "tau": statistics.mean(signs) if signs else nan,
    }


def tables(rows: Sequence[dict[str, Any]]) -> list[list[list[str]]]:
    """Lay out a table of all settings, and one of :func:`summary`."""
    shown = [[*FACTORS, "measured", "predicted", "ratio", "bytes equal", "limit"]]
    for row in rows:
        line = [_word(row["setting"][name]) for name in FACTORS]
        if "failed" in row:
            shown.append([*line, "failed", *["–"] * 4])
            continue
        line += [f"{row['measured']:.3f} s", f"{row['predicted']:.3f} s"]
        line += [f"{row['predicted'] / row['measured']:.2f}"]
        shown.append([*line, "yes" if row["equal"] else "NO", row["limit"]])
    found = summary(rows)
    texts = {"MAPE": "{:.1f} %", "ahead": "{:.1f} %", "worst": "{:.1f} %", "tau": "{:.3f}"}
    values = [texts.get(name, "{}").format(value) for name, value in found.items()]
    return [shown, [list(found), values]]


def _word(level: Any) -> str:
    return {True: "yes", False: "no"}[level] if isinstance(level, bool) else str(level)


def can_run() -> str | None:
    """Return why this computer cannot play machines; None if it can."""
    if sys.platform != "linux" or os.geteuid():
        return "predictions needs root on Linux, for network namespaces"
    missing = [name for name in ("ip", "tc", "unshare") if shutil.which(name) is None]
    return f"predictions needs {', '.join(missing)} (iproute2, util-linux)" if missing else None
