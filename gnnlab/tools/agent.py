"""A host's side of a job: start processes here, pass on what they say, and end them in every case.

``launch`` starts one agent per host and talks to it in lines of JSON: orders come through standard
input, news go through standard output. Nothing secret is thus on a command line or on a disk. When
standard input ends, or nothing has come through it for some seconds, the launcher or the way to it
is gone, and the agent ends everything it has started.

An agent is two processes. The *worker* does the work. The *guard* only waits for it, and ends what
is left when the worker was killed or stopped; when the guard is killed, the worker ends everything
itself. Orphans are handed to these two by the system, so that they are found wherever they fled to.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gnnlab.tools.probe import holder as holder_of
from gnnlab.tools.probe import interface_to, versions

__all__ = ["BEAT", "ENTRY", "RANK_SHELL", "SILENCE", "in_thread", "main"]

# What Python runs to be an agent. The package stands in without its __init__.py, which would load
# torch: an agent has no use for it, and a job starts a second or two earlier.
ENTRY = (
    "import importlib.util as i, sys; spec = i.find_spec('gnnlab') "
    "or sys.exit(\"No module named 'gnnlab'\"); "
    "sys.modules['gnnlab'] = i.module_from_spec(spec); "
    "from gnnlab.tools.agent import main; main()"
)

BEAT = 1.0  # seconds between two signs of life, in both directions
SILENCE = 4.5  # seconds without any, after which the other side counts as lost
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL
_LONGEST = 1 << 16  # bytes of a line
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER

# What torchrun starts in place of a rank: it gives each rank an output of its own, and tells how
# the rank ended at once, where torchrun may wait half a minute for the others.
RANK_SHELL = (
    'trap : TERM INT; out="$GNNLAB_OUTPUT/$LOCAL_RANK"; "$@" >"$out" 2>&1; '
    'status=$?; printf "\\0exit %s\\n" $status >"$out"; exit $status'
)
_EXIT = b"\0exit "


def main() -> None:
    """Be the agent of a host until the launcher says that the job has ended, or is gone."""
    folder = Path(tempfile.mkdtemp(prefix="gnnlab-"))
    life, held = os.pipe()
    worker = os.fork()
    _adopt_orphans()
    status = 1
    try:
        if worker == 0:
            os.close(held)
            Agent(life, folder).serve()
            status = 0
        else:
            os.close(life)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # only the worker reads orders
            status = _end_of(worker)
            if status < 0:
                print(f"the agent was ended by {signal.Signals(-status).name}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    end_descendants(0.0)
    with suppress(OSError):
        for left in Path("/dev/shm").glob(f"gnnlab-{(folder / 'job').read_text()}-*"):
            left.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(abs(status))  # without waiting for threads that may be held up in a write


def _end_of(worker: int) -> int:
    """Wait for the end of the worker. One that is stopped can end nothing: it counts as lost."""
    while os.WIFSTOPPED(status := os.waitpid(worker, os.WUNTRACED)[1]):
        os.kill(worker, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


class Agent:
    """Takes orders and carries them out.

    Parameters
    ----------
    life : int
        Descriptor that ends when the guard does.
    folder : Path
        Of this agent alone; it disappears with it.
    """

    def __init__(self, life: int, folder: Path) -> None:
        self._life, self._folder = life, folder
        self._lock = threading.Lock()
        self._ports: list[socket.socket] = []
        self._news = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # a stray print is no news
        self._is_lost = False  # how processes end from then on is no news

    def serve(self) -> None:
        """Carry out orders until the last one, or until nobody can give any."""
        orders: dict[str, Callable[..., None]] = {
            "hello": self._hello,
            "reserve": self._reserve,
            "start": self._start,
        }
        grace = _GRACE
        in_thread(self._beat)
        for order in self._orders():
            if order["do"] == "end":
                grace = order["grace"]
                break
            orders[order.pop("do")](**order)
        else:
            self._is_lost = True
        end_descendants(grace)
        self._hand_over()

    def _hand_over(self) -> None:
        """Send the events that processes have recorded, unless nobody listens any more."""
        if self._is_lost:  # and then a thread may hold the lock for ever, in a write
            return
        for path in sorted((self._folder / "trace").glob("*.jsonl")):
            with open(path, encoding="utf8", errors="replace") as file:
                while lines := file.readlines(_LONGEST):
                    self._say("trace", name=path.name, text="".join(lines))

    def _orders(self) -> Any:
        """Yield orders until the launcher, the way to it, or the guard is gone."""
        rest = b""
        while ready := select.select([0, self._life], [], [], SILENCE)[0]:
            if self._life in ready or not (new := os.read(0, 1 << 16)):
                return
            *lines, rest = (rest + new).split(b"\n")
            yield from (json.loads(line) for line in lines if line)

    def _say(self, news: str, **about: Any) -> None:
        # When nobody listens any more, the orders have ended too.
        with self._lock, suppress(OSError):
            if self._is_lost:
                return
            self._news.write(json.dumps({"news": news, **about}).encode() + b"\n")
            self._news.flush()

    # ---------------------------------------------------------------------------- orders
    def _hello(self, machine: int, workspace: str, part_config: str, peer: str, job: str) -> None:
        os.environ["GNNLAB_MACHINE"] = str(machine)
        (self._folder / "job").write_text(job)
        graph, problem, found = None, None, versions()
        try:
            os.chdir(os.path.expandvars(os.path.expanduser(workspace)))
            graph = _look_at_part(Path(part_config), machine)
        except (OSError, ValueError) as error:
            problem = str(error)
        self._say(
            "hello",
            python=found["python"].rpartition(".")[0],
            torch=found["torch"].partition("+")[0],  # without the kind of build
            gnnlab=found["gnnlab"],
            host=socket.gethostname(),
            pid=os.getpid(),
            cpus=_processors(),
            interface=interface_to(peer),
            graph=graph,
            problem=problem,
        )

    def _reserve(self, places: list[tuple[str, int]]) -> None:
        """Find ports; 0 asks for any. They are held until the processes listen there."""
        ports = []
        for address, port in places:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            holder = socket.socket(family)
            # Bound, but not listening: whoever sets this option as well can listen there.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind((address, port))
            except (OSError, OverflowError) as error:  # the latter beyond 65535
                pid, command = holder_of(port)
                user = f"; process {pid} listens there: {command[:200]}" if pid else ""
                what = error.strerror if isinstance(error, OSError) else error
                self._say("ports", problem=f"port {port} of {address}: {what}{user}")
                return
            self._ports.append(holder)
            ports.append(holder.getsockname()[1])
        self._say("ports", ports=ports, problem=None)

    def _start(self, processes: list[dict[str, Any]]) -> None:
        for each in processes:
            who = {"role": each["role"], "id": each["id"]}
            ready, tell = os.pipe()
            env = os.environ | each["env"] | {"GNNLAB_READY_FD": str(tell)}
            env["GNNLAB_OUTPUT"] = str(self._folder)
            readers = [self._rank(i, rank) for i, rank in enumerate(each["ranks"])]
            try:
                process = subprocess.Popen(
                    each["argv"],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(tell,),
                    start_new_session=True,
                )
            except OSError as error:
                self._say("line", **who, text=f"{each['argv'][0]}: {error.strerror}")
                self._say("exited", **who, status=127)
                return
            finally:
                os.close(tell)
            self._say("started", **who, pid=process.pid)
            assert process.stdout
            readers.append(in_thread(self._relay, process.stdout, who))
            in_thread(self._await_ready, ready, who)
            in_thread(self._await_exit, process, readers, who)

    def _rank(self, local_rank: int, rank: int) -> threading.Thread:
        path = self._folder / str(local_rank)
        os.mkfifo(path, 0o600)
        # Opened for both, so that nobody waits for the other side; the end is a mark in it.
        file = os.fdopen(os.open(path, os.O_RDWR), "rb")
        return in_thread(self._relay, file, {"role": "trainer", "id": rank})

    # --------------------------------------------------------------------------- threads
    def _beat(self) -> None:
        while True:
            self._say("beat")
            time.sleep(BEAT)

    def _relay(self, output: BinaryIO, who: dict[str, Any]) -> None:
        while line := output.readline(_LONGEST):
            text, mark, status = line.partition(_EXIT)
            if text or not mark:
                # A line that was drawn over and over, as bars do: its last state.
                last = text.rstrip(b"\r\n").rpartition(b"\r")[2]
                self._say("line", **who, text=last.decode("utf8", "replace"))
            if mark:
                self._say("exited", **who, status=int(status))
                return

    def _await_ready(self, ready: int, who: dict[str, Any]) -> None:
        with os.fdopen(ready, "rb") as file:
            if file.readline():
                self._say("ready", **who)

    def _await_exit(
        self, process: subprocess.Popen[bytes], readers: list[threading.Thread], who: dict[str, Any]
    ) -> None:
        status = process.wait()
        for reader in readers:
            reader.join(0.5)  # a child of the process may keep its output open
        self._say("exited", **who, status=status if status >= 0 else 128 - status)


def in_thread(work: Callable[..., None], *args: Any) -> threading.Thread:
    """Call a function in a thread that holds nothing back."""
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


# -------------------------------------------------------------------------------- ending
def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _descendants() -> list[int]:
    """IDs of all processes that this one has started, directly or not."""
    if os.path.isdir("/proc/self"):
        rows = list(filter(None, map(_row, filter(str.isdigit, os.listdir("/proc")))))
    else:
        command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ps:
            table = ps.communicate()[0].splitlines()
        rows = [row for row in map(str.split, table) if int(row[0]) != ps.pid]
    children: dict[int, list[int]] = {}
    for pid, parent, state in rows:
        if not state.startswith("Z"):
            children.setdefault(int(parent), []).append(int(pid))
    found = list(children.get(os.getpid(), ()))
    for each in found:
        found += children.get(each, ())
    return found


def _row(pid: str) -> list[str] | None:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return [pid, parent, state]


def end_descendants(grace: float) -> None:
    """End all that this process has started: SIGTERM, and SIGKILL after ``grace`` seconds."""
    deadline = time.monotonic() + grace
    asked: set[int] = set()
    while (running := _descendants()) and time.monotonic() < deadline + 5:
        is_late = time.monotonic() >= deadline
        for pid in running if is_late else set(running) - asked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
        asked.update(running)
        time.sleep(0.02)


# --------------------------------------------------------------------------- looking around
def _look_at_part(part_config: Path, machine: int) -> dict[str, Any]:
    """What must be the same on all hosts; raise where this host's part is not there."""
    here = Path.cwd() / part_config
    try:
        config = json.loads(here.read_text("utf8"))
        own = [config[f"part-{machine}"]["part_graph"]] if machine < config["num_parts"] else []
        own += [name for name in config.get("arrays", ()) if name.startswith(f"part{machine}/")]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{here} is not the JSON file of a partitioned graph ({error!r})"
        ) from None
    for place in own:
        if not (here.parent / place).exists():
            raise ValueError(f"{here} names {place}, which is not beside it; copy the part here")
    maps = json.dumps([config.get("node_map"), config.get("edge_map")], sort_keys=True)
    digest = hashlib.sha256(maps.encode()).hexdigest()[:12]
    return {
        "num_parts": config["num_parts"],
        "graph_name": config.get("graph_name"),
        "IDs": digest,
    }


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    main()
