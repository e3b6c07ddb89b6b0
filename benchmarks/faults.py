"""Real jobs that break: inject one random fault into each, and see how soon nothing is left.

A job is two machines that this computer plays, each with a server and a trainer, in every other job
with a sampler too. The fault comes at a random moment between the start and the end of a job. Needs
``/proc``.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.drive import ROOT

_MARK = "GNNLAB_FAULTS"
_SHARED = Path("/dev/shm")
_CLEAN = 10.0  # seconds after the launcher's end in which everything else goes
_BLOWS = ("SIGKILL", "SIGTERM", "SIGSTOP")
_ROLES = (
    *("launcher", "agent", "guard", "agent and guard", "all agents and guards"),
    *("runner", "server", "rank", "sampler"),
)
_OTHERS = ("Ctrl-C", "stdin closed", "rank raises", "rank exits 0", "rank exits 3", "server raises")
FAULTS = (*(f"{blow} {role}" for role in _ROLES for blow in _BLOWS), *_OTHERS)

_SCRIPT = """
import os, sys, time, torch
if os.environ["GNNLAB_FAULT"] == "server raises" and os.environ["DGL_ROLE"] == "server":
    raise RuntimeError("the server's own error")
import gnnlab as dgl

def ask_for_fault():
    if fault.startswith("rank") and os.environ["RANK"] == "1" and time.time() > moment:
        if fault == "rank raises":
            raise ValueError("the loss is NaN")
        sys.exit(int(fault.split()[-1]))

fault, moment = os.environ["GNNLAB_FAULT"], float(os.environ["GNNLAB_MOMENT"])
dgl.distributed.initialize("ip_config.txt")
ask_for_fault()
torch.distributed.init_process_group("gloo")
g = dgl.distributed.DistGraph("toy")
ids = dgl.distributed.node_split(torch.ones(200, dtype=torch.bool), g.get_partition_book())
table = dgl.distributed.DistTensor((200,), torch.float32, "table")

def collate(ids):
    return g.ndata["x"][dgl.distributed.sample_neighbors(g, ids, 5).edges()[0]]

for epoch in range(4):
    for x in dgl.distributed.DistDataLoader(ids, batch_size=8, collate_fn=collate):
        ask_for_fault()
        total = x.sum()
        torch.distributed.all_reduce(total)
        table[ids[:4]] = total.expand(4)
        time.sleep(0.05)
    print("epoch", epoch, flush=True)
"""

_GRAPH = """
import sys, torch, gnnlab as dgl
g = dgl.rand_graph(200, 1500)
g.ndata["x"] = torch.rand(200, 8)
dgl.distributed.partition_graph(g, "toy", 2, sys.argv[1], part_method="random")
"""


@dataclass
class Outcome:
    """What became of a job.

    Attributes
    ----------
    fault : str
    moment : float
        Seconds from the start of the launcher to the fault.
    hit : bool
        Whether the fault happened; not so where the job ended before.
    ended, clean : float
        Seconds from the fault until the launcher had ended, and until nothing was left.
    status : int or None
        The launcher's exit status; None where it did not end.
    said : str
        First line of its errors.
    left : list of str
        What is still there at last.
    """

    fault: str
    moment: float
    hit: bool
    ended: float
    clean: float
    status: int | None
    said: str
    left: list[str]

    @property
    def is_failure(self) -> bool:
        """Whether something stayed."""
        return bool(self.left) or self.status is None


def measure(jobs: int, seed: int, deadline: float, faults: tuple[str, ...] = FAULTS) -> int:
    """Run jobs and print what became of each, then a table; return the number of failures."""
    chance = random.Random(seed)
    # A shell ignores Ctrl-C for what it starts in the background, and the jobs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gnnlab-faults-") as name:
        folder = Path(name)
        (folder / "job.py").write_text(_SCRIPT)
        command = [sys.executable, "-c", _GRAPH, str(folder / "data")]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        whole = []
        for samplers in (0, 1):  # also compiles what has to be compiled
            well = _Job(folder, "none", 1e9, samplers, 10 * deadline).run()
            _print(f"without a fault, {samplers} samplers", well)
            if well.status != 0 or well.left:
                return 1
            whole.append(well.ended)
        outcomes: list[Outcome] = []
        with suppress(KeyboardInterrupt):  # what has been measured is shown
            _break(folder, jobs, chance, deadline, faults, whole, outcomes)
    print(f"\nseed {seed}; seconds from the fault:\n\n{table(outcomes)}", flush=True)
    return sum(outcome.is_failure for outcome in outcomes) + (jobs - len(outcomes))


def _break(
    folder: Path,
    jobs: int,
    chance: random.Random,
    deadline: float,
    faults: tuple[str, ...],
    whole: list[float],
    outcomes: list[Outcome],
) -> None:
    coming: list[str] = []
    for number in range(jobs):
        if number % len(faults) == 0:  # all of them before any comes again
            coming = chance.sample(faults, len(faults))
        fault = coming.pop()
        samplers = 1 if "sampler" in fault else chance.randrange(2)
        moment = chance.uniform(0, whole[samplers])
        outcome = _Job(folder, fault, moment, samplers, deadline + whole[samplers]).run()
        _print(f"{number}: {fault}, {samplers} samplers", outcome)
        outcomes.append(outcome)
        if not outcome.hit and outcome.status == 0:  # the computer is less busy than before
            whole[samplers] = min(whole[samplers], outcome.ended)


def table(outcomes: list[Outcome]) -> str:
    """Lay the outcomes out by fault, in Markdown."""
    heads = ["fault", "jobs", "hit", "launcher ended: median (max)", "nothing left: median (max)"]
    heads += ["statuses", "failures"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.fault].append(outcome)
    for fault in sorted(groups, key=FAULTS.index):
        group = groups[fault]
        hit = [outcome for outcome in group if outcome.hit]
        cells = [fault, str(len(group)), str(len(hit))]
        for values in ([o.ended for o in hit], [o.clean for o in hit]):
            times = f"{statistics.median(values):.1f} ({max(values):.1f})" if values else "–"
            cells.append(times)
        cells.append(" ".join(sorted({str(o.status) for o in group})))
        cells.append(str(sum(o.is_failure for o in group)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _print(title: str, outcome: Outcome) -> None:
    words = [
        f"{title}: at {outcome.moment:.2f} s" if outcome.hit else f"{title}: did not happen",
        f"ended after {outcome.ended:.1f} s, status {outcome.status}",
        f"clean after {outcome.clean:.1f} s",
        outcome.said or "no errors",
        *([f"LEFT: {', '.join(outcome.left)}"] if outcome.left else []),
    ]
    print("; ".join(words), flush=True)


def _command(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.status()}: {' '.join(process.cmdline())[:300]}"
    return "gone"


class _Job:
    """A job with one fault."""

    def __init__(
        self, folder: Path, fault: str, moment: float, samplers: int, deadline: float
    ) -> None:
        self._fault, self._moment, self._deadline = fault, moment, deadline
        self._token = uuid.uuid4().hex
        self._folder = folder / self._token
        (self._folder / "tmp").mkdir(parents=True)
        self._ports: set[tuple[str, int]] = set()
        self._noted = 0.0
        command = [sys.executable, "-m", "gnnlab.launch.launch", "--local", "--timeout", "60"]
        command += ["--workspace", str(folder), "--part_config", "data/toy.json"]
        command += ["--num_samplers", str(samplers), "--log_dir", str(self._folder / "logs")]
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self._folder / "tmp"),
            "GNNLAB_FAULT": fault,
            "GNNLAB_MOMENT": str(time.time() + moment),
            _MARK: self._token,
        }
        with open(self._folder / "out", "wb") as out, open(self._folder / "err", "wb") as err:
            self._process = subprocess.Popen(
                [*command, "python job.py"],
                env=env,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._start = time.monotonic()

    def run(self) -> Outcome:
        """Inject the fault, wait for the end, and end what is left."""
        try:
            return self._run()
        finally:  # also when interrupted
            self._end()

    def _run(self) -> Outcome:
        victims: list[psutil.Process] = []
        is_hit = self._wait(lambda: time.monotonic() - self._start >= self._moment, self._deadline)
        if is_hit and not self._fault.startswith(("rank", "server raises")):
            is_hit = self._wait(lambda: bool(victims) or self._inject(victims), self._deadline)
        moment = time.monotonic()
        is_stopped = is_hit and self._fault == "SIGSTOP launcher"
        if is_stopped:  # it cannot end, but everything else can
            self._wait(lambda: not self._others(), _CLEAN)
            left = [f"{p.pid} while the launcher is stopped" for p in self._others()]
            self._process.send_signal(signal.SIGCONT)
        else:
            left = []
        self._wait(lambda: False, self._deadline)
        status, ended = self._process.poll(), time.monotonic()
        while (more := self._left()) and time.monotonic() < ended + _CLEAN:
            time.sleep(0.05)
        clean = time.monotonic()
        lines = (self._folder / "err").read_text("utf8", "replace").splitlines()
        return Outcome(
            self._fault,
            moment - self._start,
            is_hit,
            ended - moment if is_hit else ended - self._start,
            clean - moment if is_hit else clean - self._start,
            status,
            lines[0] if lines else "",
            left + more,
        )

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition while the launcher runs; say whether it came."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            if condition():
                return True
            if time.monotonic() > self._noted + 1.0:  # it reads much of /proc
                self._note_ports()
                self._noted = time.monotonic()
            time.sleep(0.05)
        return False

    # ------------------------------------------------------------------------------ the fault
    def _inject(self, victims: list[psutil.Process]) -> bool:
        """Inject the fault if the process that it needs is there; say whether it was."""
        if self._fault == "stdin closed":
            assert self._process.stdin
            self._process.stdin.close()
            return True
        if self._fault == "Ctrl-C":
            self._process.send_signal(signal.SIGINT)
            return True
        blow, _, role = self._fault.partition(" ")
        found = self._roles()
        if role == "agent and guard":
            pairs = [(a, g) for a in found["agent"] for g in found["guard"] if a.ppid() == g.pid]
            victims += random.Random(self._token).choice(pairs) if pairs else ()
        elif role == "all agents and guards":
            if len(found["agent"]) == len(found["guard"]) == 2:
                victims += [*found["agent"], *found["guard"]]
        elif found[role]:
            victims.append(random.Random(self._token).choice(found[role]))
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.Signals[blow])
        return bool(victims)

    def _roles(self) -> dict[str, list[psutil.Process]]:
        roles: dict[str, list[psutil.Process]] = defaultdict(list)
        for process in self._marked():
            with suppress(psutil.Error):
                words, env = process.cmdline(), process.environ()
                roles[self._role(process, " ".join(words), env)].append(process)
        return roles

    def _role(self, process: psutil.Process, words: str, env: dict[str, str]) -> str:
        if process.pid == self._process.pid:
            return "launcher"
        if "gnnlab.launch.agent" in words:
            return "guard" if process.ppid() == self._process.pid else "agent"
        if "gnnlab.launch.runner" in words:
            return "runner"
        if "GNNLAB_SAMPLER" in env:
            return "sampler"
        if words.endswith("job.py"):
            return "server" if env.get("DGL_ROLE") == "server" else "rank"
        return "other"

    # ---------------------------------------------------------------------------- what is left
    def _marked(self) -> Iterator[psutil.Process]:
        mark = f"{_MARK}={self._token}".encode()
        for entry in os.listdir("/proc"):
            with suppress(OSError, psutil.Error):
                if entry.isdigit() and mark in Path(f"/proc/{entry}/environ").read_bytes():
                    process = psutil.Process(int(entry))
                    if process.status() != psutil.STATUS_ZOMBIE:
                        yield process

    def _others(self) -> list[psutil.Process]:
        return [process for process in self._marked() if process.pid != self._process.pid]

    def _note_ports(self) -> None:
        for process in self._marked():
            with suppress(psutil.Error):
                for connection in process.net_connections("tcp"):
                    if connection.status == psutil.CONN_LISTEN:
                        self._ports.add(tuple(connection.laddr))

    def _left(self) -> list[str]:
        jobs = [path.name.rpartition("-")[2] for path in (self._folder / "logs").glob("*")]
        listening = {
            tuple(connection.laddr)
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        return [
            *(f"process {p.pid} ({_command(p)})" for p in self._others()),
            *(str(path) for job in jobs for path in _SHARED.glob(f"gnnlab-{job}*")),
            # The cache of torch's compiler is for later jobs too.
            *(
                str(path)
                for path in (self._folder / "tmp").iterdir()
                if not path.name.startswith("torchinductor_")
            ),
            *(f"port {port} of {host}" for host, port in self._ports & listening),
        ]

    def _end(self) -> None:
        """End what should have ended by itself, so that the next job is undisturbed."""
        for process in self._marked():
            with suppress(psutil.Error):
                process.kill()
        self._process.wait()
        assert self._process.stdin
        self._process.stdin.close()
        for path in self._left():
            if path.startswith(str(_SHARED)):
                Path(path).unlink(missing_ok=True)
