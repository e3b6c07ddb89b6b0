"""The launcher's side of a job: read messages from all agents, find the first failure, end all.

:mod:`gnnlab.launch.first_failure` has the rules by which the first failure is found.
"""

from __future__ import annotations

import json
import math
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gnnlab.errors import GNNLabError
from gnnlab.launch import first_failure
from gnnlab.launch.agent_messages import BEAT, LONGEST, SILENCE, BadMessage, parse_message
from gnnlab.launch.backends import Backend
from gnnlab.launch.process_tree import is_stopped
from gnnlab.launch.status_table import StatusTable
from gnnlab.system.threads import in_thread

_GRACE = 2.0  # seconds for processes to end after SIGTERM
_END_TIMEOUT = 8.0  # seconds for agents to end all processes
_LOST = 255  # exit status of ssh and of a relay to Ray when the connection is lost
_WIDTH = 4000  # characters quoted of such a line
_SURE = 1.5  # seconds for which all trainers that run must have waited for a group
_EARLY = 10.0  # seconds after which a trainer that ended early is reported
_EXCEPTION = re.compile(
    r"(?:\[rank\d+\]: )?((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Lost)(?:: .{1,300})?)"
)


class LaunchError(GNNLabError, RuntimeError):
    """A job failed and was ended on all machines.

    Of the first failure it has the ``host``, the ``role`` ("trainer", "server" or "agent"), the
    ``rank`` (ID of a server, of an agent its machine) and the exit ``status`` (128 + n if signal n
    ended the process). ``log_dir`` is the folder with the output of all processes.
    """

    def __init__(
        self,
        message: str,
        host: str = "",
        role: str = "agent",
        rank: int = 0,
        status: int = 1,
        log_dir: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.host, self.role, self.rank, self.status = host, role, rank, status
        self.log_dir = log_dir


class AgentConnection:
    """The launcher's connection to the agent of a machine.

    ``argv`` starts the agent, or a relay such as ssh that forwards its streams. ``messages``
    receives pairs of a machine and a dictionary; ``ids`` are those of its processes, by role.
    """

    def __init__(
        self,
        number: int,
        argv: Sequence[str],
        env: Mapping[str, str],
        messages: queue.Queue[Any],
        ids: Mapping[str, range],
        is_relay: bool,
    ) -> None:
        self.number, self._messages, self._ids, self._is_relay = number, messages, ids, is_relay
        self._last_beat: float | None = None
        self._stopped: float | None = None  # since when it is stopped, before its first heartbeat
        self._orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
        pipe = subprocess.PIPE
        # In a new session: Ctrl-C goes only to the launcher, which ends its agents in order.
        self.process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), start_new_session=True
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        in_thread(self._write, self.process.stdin)
        stderr_reader = in_thread(self._read_stderr, self.process.stderr)
        in_thread(self._read_messages, self.process.stdout, stderr_reader)

    @property
    def is_silent(self) -> bool:
        """Whether the last heartbeat is too old, or none will come from a stopped process."""
        since = self._last_beat or self._stopped
        return since is not None and time.monotonic() - since > SILENCE

    def look(self) -> None:
        """Note whether the process is stopped; afterwards, missing heartbeats tell."""
        if self._last_beat is None:
            since = self._stopped or time.monotonic()
            self._stopped = since if is_stopped(self.process.pid) else None

    def end_status(self, timeout: float) -> int:
        """Return the exit status, 128 + n after signal n; 0 if it still runs after ``timeout``."""
        with suppress(subprocess.TimeoutExpired):
            status = self.process.wait(timeout)
            return status if status >= 0 else 128 - status
        return 0

    def order(self, do: str, **about: Any) -> None:
        """Send an order."""
        self._orders.put({"do": do, **about})

    def close(self) -> None:
        """Close the agent's standard input after the orders in the queue."""
        self._orders.put(None)

    def kill(self) -> None:
        """Kill the agent or its relay; an agent that loses the line ends everything by itself."""
        with suppress(ProcessLookupError):
            if self._is_relay and self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)  # srun, for one, is two processes
            self.process.kill()

    def _write(self, stdin: BinaryIO) -> None:
        with suppress(OSError), stdin:
            while True:
                order: dict[str, Any] | None = {}
                with suppress(queue.Empty):
                    order = self._orders.get(timeout=BEAT)
                if order is None:
                    return
                stdin.write((json.dumps(order) if order else "").encode() + b"\n")
                stdin.flush()

    def _read_messages(self, stdout: BinaryIO, stderr_reader: threading.Thread) -> None:
        rest = LONGEST  # bytes of other output, such as a login greeting, that are shown
        while line := stdout.readline(LONGEST):
            try:
                if len(line) == LONGEST:
                    raise BadMessage(f"no agent sends a line of {LONGEST} bytes")
                message = parse_message(line, self.number, self._ids)
            except BadMessage as error:
                about = {"kind": "bad", "role": "agent", "id": self.number, "why": str(error)}
                self._messages.put((self.number, about))
                self.kill()
                break
            if message is None:
                rest = self._pass_on(line, rest)
            elif message["kind"] == "beat":
                self._last_beat = time.monotonic()
            else:
                self._messages.put((self.number, message))
        stderr_reader.join(1.0)
        status = self.end_status(2.0)
        gone = {"kind": "exited", "role": "agent", "id": self.number, "status": status}
        self._messages.put((self.number, gone))

    def _read_stderr(self, stderr: BinaryIO) -> None:
        rest = LONGEST
        while line := stderr.readline(LONGEST):
            rest = self._pass_on(line, rest)

    def _pass_on(self, line: bytes, rest: int) -> int:
        """Show a line that is not a message, up to ``rest`` bytes; return how many are left."""
        if rest:
            text = line[:rest].decode("utf8", "replace").rstrip()
            about = {"kind": "line", "role": "agent", "id": self.number, "text": text}
            self._messages.put((self.number, about))
        return max(rest - len(line), 0)


class JobSupervisor:
    """Receives the messages of all agents, finds the first failure, and ends the job.

    ``names`` are those of the machines. Output of the processes goes to ``log_dir``, their trace
    events to ``trace_dir``, and their states to ``table``.
    """

    def __init__(
        self,
        names: Sequence[str],
        log_dir: Path,
        table: StatusTable,
        trace_dir: Path | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.machines: list[AgentConnection] = []
        self._names, self._log_dir, self._table, self._backend = names, log_dir, table, backend
        self._trace_dir, self._last_events = trace_dir, 0.0
        self._may_write = True
        self._messages: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue(1 << 9)
        self._received: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        self._tails: dict[tuple[str, int], deque[str]] = defaultdict(
            lambda: deque(maxlen=first_failure.QUOTED)
        )
        self._failures: list[dict[str, Any]] = []
        self._stop_requested = False
        self._early: dict[int, float] = {}  # rank of a trainer that ended with status 0 -> when
        self._rendezvous = first_failure.Rendezvous(_SURE)

    @property
    def has_stopped(self) -> bool:
        """Whether trainers have stopped early because they were asked to."""
        return bool(self._received["stopping", "trainer"])

    def request_stop(self) -> None:
        """Ask the trainers to save and stop; may be called by a signal handler."""
        self._stop_requested = True

    @property
    def _num_trainers(self) -> int:
        return len(self.machines) * self._table.numbers.get("trainer", 0)

    def _pass_on_stop(self) -> None:
        started = self._received["started", "trainer"]
        if self._stop_requested and len(started) == self._num_trainers:
            self._stop_requested = False
            self._table.print("the trainers are asked to save and stop")
            self.order("stop")

    def begin(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the agent of the next machine."""
        machine = len(self.machines)
        ids = {
            role: range(machine * number, (machine + 1) * number)
            for role, number in self._table.numbers.items()
        }
        try:
            is_local = self._backend is not None and self._backend.is_local
            self.machines.append(
                AgentConnection(machine, argv, env, self._messages, ids, not is_local)
            )
        except OSError as error:
            raise LaunchError(f"{argv[0]} could not be started: {error.strerror}") from None

    def order(self, do: str, **about: Any) -> None:
        """Send an order to all agents."""
        for machine in self.machines:
            machine.order(do, **about)

    def wait_for(
        self, message: str, role: str, number: int, timeout: float | None = None, late: str = ""
    ) -> list[dict[str, Any]]:
        """Wait for a message of one kind from ``number`` processes of a role; return the messages.

        Raise :class:`LaunchError` for the first failure, or when it is ``late``.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        received = self._received[message, role]
        while len(received) < number:
            self._listen(0.2)
            self._look_for_silence()
            self._look_for_early_ends()
            self._pass_on_stop()
            if self._failures:
                raise self._first_failure()
            if deadline is not None and time.monotonic() > deadline:
                missing = next(i for i in range(number) if i not in received)
                machine = missing * len(self.machines) // number
                raise self._error(role, missing, machine, f"{late} within {timeout:g} s", 1)
        return [received[i] for i in range(number)]

    def refuse(self, machine: int, what: str) -> LaunchError:
        """Return the error for a problem on a host before the job has begun."""
        return LaunchError(f"{self._place(machine)}: {what}", self._names[machine])

    def _place(self, machine: int) -> str:
        return f"{self._names[machine]} (machine {machine})"

    def end(self, grace: float = _GRACE) -> None:
        """End all processes on all hosts; return when done or after a timeout."""
        deadline = time.monotonic() + grace - _GRACE + _END_TIMEOUT
        try:
            self.order("end", grace=grace)
            for machine in self.machines:
                machine.close()
            while time.monotonic() < max(deadline, self._last_events + _GRACE):
                self._listen(0.05)
                for machine in self.machines:
                    if machine.is_silent:  # its agent gets no heartbeats either, and ends by itself
                        machine.kill()
                # After a process has ended, its last messages may not have been read yet.
                gone = self._received["exited", "agent"]
                if all(each.is_silent or each.number in gone for each in self.machines):
                    break
        finally:
            for machine in self.machines:
                machine.kill()
                machine.process.wait()
            while not self._messages.empty():
                self._listen(0)
            self._table.close()

    # ----------------------------------------------------------------- messages of agents
    def _look_for_silence(self) -> None:
        for machine in self.machines if self._messages.empty() else ():
            machine.look()
            if machine.is_silent:
                about = {"role": "agent", "id": machine.number, "machine": machine.number}
                self._failures.append(about | {"status": 1})

    def _look_for_early_ends(self) -> None:
        """Find trainers that have ended with status 0 while others still run."""
        kinds = ("ready", "waiting", "met", "exited")
        joined, begun, met, exited = (self._received[kind, "trainer"] for kind in kinds)
        waiting = begun.keys() - met.keys()
        running = set(range(self._num_trainers)) - exited.keys()
        # A trainer says half a second late that the group has met, and may end before it does.
        now = time.monotonic()
        is_stuck = self._rendezvous.is_stuck(running, waiting)
        for rank, when in list(self._early.items()):
            machine = exited[rank]["machine"]
            why = ""
            if joined and rank not in joined:
                why = (
                    "without calling gnnlab.distributed.initialize(), which trainer "
                    f"{min(joined)} has called"
                )
            elif is_stuck:
                why = first_failure.Rendezvous.missed(f"trainer {min(running)}")
            if why:
                about = {"role": "trainer", "id": rank, "machine": machine, "status": 0}
                about["why"] = f"ended with status 0 {why}"
                self._failures.append(about)
            elif now > when + _EARLY:
                name = f"trainer {rank} on {self._place(machine)}"
                self._table.print(f"{name} has ended with status 0; other trainers still run")
                self._early[rank] = math.inf  # report once

    def _listen(self, seconds: float) -> None:
        """Process the next message."""
        try:
            machine, message = self._messages.get(bool(seconds), seconds)
        except queue.Empty:
            return
        kind, who = message["kind"], (message["role"], message["id"])
        if kind == "line":
            self._log(machine, who, message["text"])
            return
        if kind == "trace":
            self._last_events = time.monotonic()
            if self._trace_dir:
                self._append(self._trace_dir / message["name"], message["text"])
            return
        if kind == "bad":
            self._failures.append(message | {"machine": machine, "status": 1})
            return
        if kind == "lost":
            # A process that is ending closes its pipes a moment before its status can be read.
            status = message["status"] or self.machines[machine].end_status(1.0) or 1
            how = first_failure.describe_exit(128 - status) if status > 128 else "is gone"
            how = how.partition(".")[0]  # nobody has run out of memory
            why = f"the agent ended: its {message['process']} {how}"
            self._failures.append(message | {"machine": machine, "status": status, "why": why})
            return
        received = self._received[kind, who[0]]
        if who[1] in received:  # an agent sends each message once
            return
        received[who[1]] = message = message | {"machine": machine}
        self._table.update(machine, *who, kind, message.get("status", 0))
        if kind == "stopped":
            why = "the agent " if who[0] == "agent" else ""
            why += (
                f"was stopped for {message['seconds']} s ({message['process']}). SIGSTOP, Ctrl-Z "
                "and debuggers do that; --max_pause allows for longer"
            )
            self._failures.append(message | {"status": 128 + signal.SIGSTOP, "why": why})
        if kind == "failing":
            self._failures.append(message | {"status": 1})  # that of Python after an exception
        if kind != "exited":
            return
        if who[0] == "trainer" and message["status"] == 0:
            self._early[who[1]] = time.monotonic()
        else:
            self._failures.append(message)

    def _append(self, path: Path, text: str) -> None:
        """Append to a file; after one that cannot be written, which is raised, write no more."""
        try:
            if self._may_write:
                with open(path, "ab") as file:
                    file.write(text.encode("utf8", "replace"))
        except OSError as error:
            self._may_write = False
            raise GNNLabError(
                f"{path} cannot be written ({error.strerror}), and the job was ended; make room "
                "there, or name another folder by --log_dir and --trace"
            ) from None

    def _log(self, machine: int, who: tuple[str, int], text: str) -> None:
        self._tails[who].append(text[:_WIDTH])
        self._append(self._log_dir / f"{who[0]}-{who[1]}.log", text + "\n")
        if who[0] in ("trainer", "server"):
            self._table.print(f"{self._names[machine]} {who[0]} {who[1]} | {text}")

    # --------------------------------------------------------------------------- failures
    def _first_failure(self) -> LaunchError:
        first = first_failure.first_failure(
            lambda: self._failures, self._distance, lambda: self._listen(0.05)
        )
        role, number, status = first["role"], first["id"], first["status"]
        machine, how = first["machine"], first.get("why") or self._how(role, number, status)
        if self._distance(first) and self._early:
            rank = next(iter(self._early))
            consequence = f"{role} {number} on {self._place(machine)} {how.partition(':')[0]}"
            machine = self._received["exited", "trainer"][rank]["machine"]
            role, number = "trainer", rank
            how = (
                "ended with status 0 while others still ran, whose connections to it then broke: "
                f"{consequence}. All ranks must make the same number of steps; does this one "
                "return, or call sys.exit(), before the others?"
            )
        return self._error(role, number, machine, how, status)

    def _distance(self, failure: dict[str, Any]) -> int:
        """Return how far a failure is from its cause; see :func:`first_failure.distance`."""
        # An agent ends only by itself, when it is killed, or when its host is lost.
        is_agent = failure["role"] == "agent"
        if is_agent or "why" in failure or failure["status"] == 128 + signal.SIGKILL:
            return 0
        if failure["status"] == 128 + signal.SIGTERM:
            return first_failure.LOST_PEER
        return first_failure.distance(self._said(failure["role"], failure["id"]))

    def _said(self, role: str, number: int) -> str:
        return "\n".join(self._tails[role, number])

    def _how(self, role: str, number: int, status: int) -> str:
        if role == "agent":
            said = self._said(role, number)
            machine = self.machines[number]
            if machine.is_silent:
                pid, why = machine.process.pid, "is the host or the network down?"
                why = f"process {pid} is stopped" if is_stopped(pid) else why
                return f"no sign of life for {SILENCE:g} s; {why}"
            what, remedy = "the agent ended", self._backend.remedy(said) if self._backend else ""
            if number not in self._received["hello", "agent"]:
                what = "the agent could not be started"
                if "No module named" in said:
                    what += "; install gnnlab there, for the interpreter of your command"
                elif status == 127:
                    what += "; name an interpreter that is there in your command"
                elif remedy:
                    what += f"; {remedy}"
            elif remedy and status == _LOST:
                what += f"; {remedy}"
            return what
        how = first_failure.describe_exit(128 - status if status > 128 else status)
        if status > 128:
            return how
        if role == "server":
            ready = number in self._received["ready", "server"]
            how += " before the trainers had finished" if ready else " before it was ready"
        last = next(filter(str.strip, reversed(self._tails[role, number])), "")
        if status and (found := _EXCEPTION.fullmatch(last)):
            how += f": {found[1]}"
        elif role == "server" and not status and not ready:
            how += "; does the script call gnnlab.distributed.initialize()?"
        return how

    def _error(self, role: str, number: int, machine: int, what: str, status: int) -> LaunchError:
        name, host = f"{role} {number}", self._place(machine)
        what = f"{host}: {what}" if role == "agent" else f"{name} on {host} {what}"
        end = f"All that was printed: {self._log_dir}{os.sep}"
        message = first_failure.report(what, "", name, self._said(role, number), end)
        return LaunchError(message, self._names[machine], role, number, status or 1, self._log_dir)
