"""The agent of a job on one host: have processes started, forward their output, always end them.

``launch`` starts one agent per host and exchanges lines of JSON with it: *orders* on the agent's
standard input, *messages* on its standard output. So no secret is on a command line or on a disk.
When standard input ends or is silent for some seconds, the launcher or the connection to it is
lost, and the agent ends everything it has started.

An agent is three processes. The *worker* executes the orders. Its child, the *runner*
(:mod:`gnnlab.launch.runner`), starts servers and trainers; it is the only one that loads torch. The
*guard* waits for the worker. Each ends all others' descendants when those are killed or stopped:
the worker after the guard or the runner, the guard after the worker, and the runner after both. All
are subreapers: orphans become their children and are found even after ``setsid``.

Each second the worker reads the states of its descendants. One that has been stopped for some
seconds, by SIGSTOP, Ctrl-Z or a debugger, is reported as a failure, since all others wait for it.
The states come from the system, not from heartbeats of the processes: a trainer inside a long C++
call may hold the interpreter's lock, and could not send a heartbeat although it works.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnnlab.errors import no_such_file
from gnnlab.launch import environment, process_tree
from gnnlab.launch.agent_messages import BEAT, SILENCE, WIDEST, Messages
from gnnlab.launch.first_failure import wait
from gnnlab.launch.probe import array_file, interface_to, own_address, versions
from gnnlab.launch.probe import holder as holder_of
from gnnlab.launch.process_tree import Row
from gnnlab.system.threads import in_thread, processors

# The code that runs an agent. It imports the package without its __init__.py, which would load
# torch: an agent does not need torch, and without it a job starts a second or two earlier.
ENTRY = (
    "import importlib.util as i, sys; spec = i.find_spec('gnnlab') "
    "or sys.exit(\"No module named 'gnnlab'\"); "
    "sys.modules['gnnlab'] = i.module_from_spec(spec); "
    "from gnnlab.launch.agent import main; main()"
)

# The code of the runner; its process loads torch, but not what else gnnlab consists of.
_RUNNER = ENTRY.replace("launch.agent", "launch.runner")
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_LAST = 1.0  # seconds for the runner to report that processes have ended

STOP = "stop"  # file that announces the end of the job; distributed/job_checkpoint.py looks for it


def main() -> None:
    """Run the agent of a host until the launcher ends the job or is gone."""
    folder = Path(tempfile.gettempdir(), f"gnnlab-{secrets.token_hex(8)}")
    life, held = os.pipe()
    lifeline, lives = os.pipe()  # read by the runner; worker and guard both hold the writing end
    told, tell = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until there are handlers
    guard, worker = os.getpid(), os.fork()
    process_tree.adopt_orphans()
    status, runner_pid = 1, 0
    try:
        # Schedulers signal all processes at once and kill what is left a moment after the agent has
        # ended. So it ends last. The worker reads ``life`` and ``told``.
        sigterms = _on_sigterm(tell if worker == 0 else held)
        if worker == 0:
            os.close(held)
            # At once, because torch takes a second or two to load.
            words = map(str, [lifeline, folder, guard, os.getpid()])
            runner = subprocess.Popen(
                [sys.executable, "-P", "-c", _RUNNER, *words], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, pass_fds=[lifeline], start_new_session=True,
            )  # fmt: skip
            runner_pid = runner.pid
            Agent(life, told, guard, folder, runner).serve()
            status = 128 + signal.SIGTERM if sigterms else 0
        else:
            os.close(life)
            os.close(tell)  # now the worker alone holds it
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # only the worker reads orders
            status, was_stopped = _end_of(worker)
            if sigterms:
                status = 128 + signal.SIGTERM
            elif status < 0:
                name = f"{'stopped ' * was_stopped}worker (process {worker})"
                lost = {"agent": "lost", "process": name}
                line = json.dumps(lost | {"status": 128 - status}).encode() + b"\n"
                _at_most(1.0, os.write, 1, line)
    except Exception:
        traceback.print_exc()
    if worker:  # closing the lifeline ends the runner
        os.close(lives)
        process_tree.await_descendants(_GRACE)
    process_tree.end_descendants(0.0, runner_pid)
    process_tree.remove_files(folder)
    if worker == 0 and process_tree.is_stopped(guard):  # a stopped guard would never end
        os.kill(guard, signal.SIGKILL)
    sys.stderr.flush()
    os._exit(abs(status))  # without waiting for threads that may block in a write


def _on_sigterm(descriptor: int) -> list[int]:
    """Close a descriptor on the first SIGTERM, and add the signal to the list that is returned."""
    received: list[int] = []

    def note(number: int, _: object) -> None:
        if not received:
            os.close(descriptor)
        received.append(number)

    signal.signal(signal.SIGTERM, note)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return received


def _end_of(worker: int) -> tuple[int, bool]:
    """Return the worker's exit status, and if it was stopped: then it is killed."""
    was_stopped = False
    while os.WIFSTOPPED(status := os.waitpid(worker, os.WUNTRACED)[1]):
        os.kill(worker, signal.SIGKILL)  # a stopped worker cannot end the job
        was_stopped = True
    return os.waitstatus_to_exitcode(status), was_stopped


class Agent:
    """Executes the launcher's orders; the agent's worker.

    Of two descriptors, ``life`` reads end of file when the guard (a process ID) has ended or has
    received SIGTERM, ``told`` when this process has received it. ``folder`` is temporary.
    """

    def __init__(
        self, life: int, told: int, guard: int, folder: Path, runner: subprocess.Popen[bytes]
    ) -> None:
        self._life, self._sigterm, self._folder = life, told, folder
        self._guard, self._runner, self._job = guard, runner, ""
        self._max_pause = math.inf
        self._secrets: dict[str, str] = {}  # role -> secret key; never sent
        #: ID of a process that was started here -> its role.
        self._started: dict[int, dict[str, Any]] = {guard: {}}
        self._num_running = 0
        self._has_begun = threading.Event()
        self._stopped: dict[int, tuple[Row, float]] = {}  # row, since when
        self._ports: list[socket.socket] = []
        self._messages = Messages()

    def serve(self) -> None:
        """Execute orders until "end", or until the launcher or the guard is lost."""
        orders: dict[str, Callable[..., None]] = {
            "hello": self._hello,
            "reserve": self._reserve,
            "start": self._start,
            "stop": lambda: (self._folder / STOP).touch(),
        }
        grace = _GRACE
        in_thread(self._beat)
        in_thread(self._forward)
        for order in self._orders():
            if order["do"] == "end":
                grace = order["grace"]
                break
            orders[order.pop("do")](**order)
        else:
            self._report_loss()
            self._messages.is_closed = True
        process_tree.end_descendants(grace, self._runner.pid)
        wait(lambda: self._num_running <= 0, _LAST)  # the runner reports their ends
        self._send_events()

    def _report_loss(self) -> None:
        """Send which process of the agent is lost, if one is; otherwise, the launcher is."""
        lost = select.select([self._life, self._sigterm], [], [], 0)[0]
        sigterm = 128 + signal.SIGTERM
        if self._sigterm in lost:
            worker = f"worker (process {os.getpid()})"
            _at_most(1.0, self._messages.send, "lost", process=worker, status=sigterm)
        elif lost:
            time.sleep(0.05)  # a process that is ending closes its pipes a moment before
            status = sigterm if os.getppid() == self._guard else 0
            guard = f"guard (process {self._guard})"
            _at_most(1.0, self._messages.send, "lost", process=guard, status=status)

    def _send_events(self) -> None:
        """Send the trace events of the processes, unless the launcher is lost."""
        if self._messages.is_closed:  # a thread blocked in a write may hold the lock for ever
            return
        for path in sorted((self._folder / "trace").glob("*.jsonl")):
            with open(path, encoding="utf8", errors="replace") as file:
                while text := file.read(WIDEST):
                    self._messages.send("trace", name=path.name, text=text)

    def _orders(self) -> Any:
        """Yield orders until the launcher, the connection to it, or the guard is lost."""
        rest = b""
        while ready := select.select([0, self._life, self._sigterm], [], [], SILENCE)[0]:
            if ready != [0] or not (new := os.read(0, 1 << 16)):
                return
            *lines, rest = (rest + new).split(b"\n")
            yield from (json.loads(line) for line in lines if line)
        _at_most(1.0, print, f"no sign of life of the launcher for {SILENCE:g} s", file=sys.stderr)

    # ---------------------------------------------------------------------------- orders
    def _hello(
        self,
        machine: int,
        workspace: str,
        part_config: str,
        script: str,
        address: str,
        peer: str,
        job: str,
        security: str,
        max_pause: float,
    ) -> None:
        os.environ[environment.MACHINE] = str(machine)
        self._max_pause = max_pause
        self._job = job
        graph, problem, found = None, None, versions()
        try:
            folder = os.path.expandvars(os.path.expanduser(workspace))
            if not os.path.isdir(folder):
                raise ValueError(no_such_file(folder))
            os.chdir(folder)
            if script and not os.path.exists(script):
                raise ValueError(no_such_file(os.path.abspath(script)))
            graph = _look_at_part(Path(part_config), machine)
        except (OSError, ValueError) as error:
            problem = str(error)
        self._messages.send(
            "hello",
            python=found["python"].rpartition(".")[0],
            torch=found["torch"].partition("+")[0],  # without the kind of build
            gnnlab=found["gnnlab"],
            cpus=processors(),
            interface=interface_to(peer),
            address=own_address(address, peer),
            keys=self._make_keys() if security == "tls" else {},
            graph=graph,
            problem=problem,
        )

    def _make_keys(self) -> dict[str, str]:
        """Make secret keys for this host's servers and clients; return requests to sign theirs."""
        from gnnlab.launch.certificates import request

        requests = {}
        with suppress(ImportError):  # no cryptography; the launcher says so
            for role in ("server", "client"):
                self._secrets[role], requests[role] = request()
        return requests

    def _reserve(self, places: list[tuple[str, int]]) -> None:
        """Reserve ports, any free one for 0, until the processes listen on them."""
        ports = []
        for address, port in places:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            holder = socket.socket(family)
            # Bound, not listening: a socket that sets this option as well can still listen there.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind((address, port))
            except (OSError, OverflowError) as error:  # OverflowError: beyond 65535
                pid, command = holder_of(port)
                user = f"; process {pid} listens there: {command[:200]}" if pid else ""
                what = error.strerror if isinstance(error, OSError) else error
                self._messages.send("ports", problem=f"port {port} of {address}: {what}{user}")
                return
            self._ports.append(holder)
            ports.append(holder.getsockname()[1])
        self._messages.send("ports", ports=ports, problem=None)

    def _start(self, processes: list[dict[str, Any]], store: Sequence[Any] | None) -> None:
        self._folder.mkdir(0o700)
        (self._folder / "job").write_text(self._job)
        os.mkfifo(self._folder / environment.EVENTS, 0o600)
        for each in processes:
            env = each["env"]
            env[environment.OUTPUT] = str(self._folder)
            if environment.KEYS in env:
                secret = self._secrets["server" if each["role"] == "server" else "client"]
                known = json.loads(env[environment.KEYS])
                env[environment.KEYS] = json.dumps(known | {"secret": secret})
        self._num_running = len(processes)
        self._has_begun.set()
        order = {"folder": os.getcwd(), "processes": processes, "store": store}
        assert self._runner.stdin
        with suppress(BrokenPipeError), self._runner.stdin as stdin:  # _forward reports that
            stdin.write(json.dumps(order).encode() + b"\n")

    # --------------------------------------------------------------------------- threads
    def _beat(self) -> None:
        while True:
            self._messages.send("beat")
            self._look_for_stopped()
            time.sleep(BEAT)

    def _look_for_stopped(self) -> None:
        """Report the first process that has been stopped for too long."""
        rows, now = process_tree.processes(), time.monotonic()
        pids = [*self._started, *process_tree.descendants(os.getpid(), rows)]
        stopped = [rows[pid] for pid in pids if pid in rows and rows[pid].is_stopped]
        before, self._stopped = self._stopped, {}
        for row in stopped:
            # A process whose processor time has grown was running in between, as under a profiler.
            known, since = before.get(row.pid, (row, now))
            self._stopped[row.pid] = row, since if known == row else now
            if now - since >= self._max_pause and known == row:
                self._max_pause = math.inf  # the first is enough
                self._messages.send(
                    "stopped", **self._about(row.pid, rows), seconds=round(now - since)
                )

    def _about(self, pid: int, rows: Mapping[int, Row]) -> dict[str, Any]:
        """Describe a process: the server or the trainer to which it belongs, and its command."""
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            env = dict(each.decode("utf8", "replace").split("=", 1) for each in variables if each)
            command = Path(f"/proc/{pid}/cmdline").read_text("utf8", "replace").replace("\0", " ")
        except (OSError, ValueError):  # no /proc, or not readable
            env, command = {}, ""
        mine = pid
        while mine not in self._started and mine in rows:
            mine = rows[mine].parent
        sampler = f"sampler {env[environment.SAMPLER][:9]}, " if environment.SAMPLER in env else ""
        command = "".join(c if c.isprintable() else " " for c in command[:200]).strip()
        who = self._started.get(mine, {})
        return {**who, "process": f"{sampler}process {pid}: {command}"}

    def _forward(self) -> None:
        """Send on what the runner reports about the processes, and its own end."""
        assert self._runner.stdout
        for line in self._runner.stdout:
            message = json.loads(line)
            kind = message.pop("agent")
            if kind == "started":
                pid = message.pop("pid")
                self._started[pid] = dict(message)
            self._messages.send(kind, **message)
            self._num_running -= kind == "exited"
        status, self._num_running = self._runner.wait(), 0
        self._has_begun.wait()  # before, "hello" tells what is missing, such as torch
        name = f"runner (process {self._runner.pid})"
        self._messages.send("lost", process=name, status=status if status >= 0 else 128 - status)


def _at_most(seconds: float, work: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Call a function that may block, as a write to a stopped launcher does."""
    in_thread(work, *args, **options).join(seconds)


# ---------------------------------------------------------------------- checks of this host
def _look_at_part(part_config: Path, machine: int) -> dict[str, Any]:
    """Return what must be equal on all hosts; raise if files of this host's part are missing."""
    here = Path.cwd() / part_config
    if not here.exists():
        raise ValueError(no_such_file(here))
    try:
        config = json.loads(here.read_text("utf-8-sig"))
        if not isinstance(config["num_parts"], int):
            raise TypeError(f"num_parts is {config['num_parts']!r}")
        own = [config[f"part-{machine}"]["part_graph"]] if machine < config["num_parts"] else []
        arrays = config.get("arrays", ())
        own += [array_file(config, name) for name in arrays if name.startswith(f"part{machine}/")]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{here} is not the JSON file of a partitioned graph ({error!r})"
        ) from None
    for place in own:
        if not (here.parent / place).exists():
            raise ValueError(f"{here} names {place}, which is not beside it; copy the part here")
    maps = json.dumps([config.get("node_map"), config.get("edge_map")], sort_keys=True)
    digest = hashlib.sha256(maps.encode()).hexdigest()[:12]
    name = config.get("graph_name")
    return {"num_parts": config["num_parts"], "graph_name": name, "IDs": digest}


if __name__ == "__main__":
    main()
