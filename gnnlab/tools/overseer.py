"""The launcher's side of a job: hear all hosts, find the failure that came first, end everything.

Processes of one job fail together: when one goes, the connections of the others break a moment
later. What a user needs is the error that came first; the others are its consequences.
"""

from __future__ import annotations

import json
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
from gnnlab.tools.agent import BEAT, SILENCE, in_thread
from gnnlab.tools.board import Board
from gnnlab.tools.ssh import reason

__all__ = ["LaunchError", "Machine", "Overseer"]

# Seconds after a failure in which its cause may still show up, by how far the failure seems to be
# from it: none, a server that is lost, any connection that broke.
_HINDSIGHT = (0.5, 1.5, 3.0)
_GRACE = 2.0  # seconds that processes have to end by themselves
_FAREWELL = 8.0  # seconds that agents have to end everything
_QUOTED = 25  # lines of output that an error repeats
_CONSEQUENCE = re.compile(
    r"gloo/|NCCL|TCPStore|Broken pipe|connection (was )?(closed|reset|refused)",
    re.IGNORECASE,
)
_TRACE = re.compile(r"[\w-]+\.jsonl")
_REMEDIES = {
    "host_key_unknown": "log in once by hand and compare the fingerprint that ssh shows",
    "host_key_changed": "another machine answers at this address, or it was installed anew; find "
    "out which, then `ssh-keygen -R` with the address",
    "ssh_denied": "let your key in by ssh-copy-id; --ssh_username names the user",
    "ssh_refused": "no sshd listens there; --ssh_port names its port",
    "ssh_name": "write an address that this computer can resolve into ip_config",
}


class LaunchError(GNNLabError, RuntimeError):
    """A job failed and was ended on all machines.

    Attributes
    ----------
    host : str
        Where it failed first.
    role : str
        "trainer", "server", "torchrun" or "agent".
    rank : int
        Of the trainer; ID of the server; index of the machine otherwise.
    status : int
        Exit status; 128 + n where signal n ended the process.
    log_dir : Path
        What all processes printed.
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


class Machine:
    """An agent as the launcher sees it.

    Parameters
    ----------
    number : int
    words : sequence of str
        The command that starts the agent.
    env : dict
    news : queue.Queue
        Where to put what the agent says, as (machine, dictionary).
    """

    def __init__(
        self, number: int, words: Sequence[str], env: Mapping[str, str], news: queue.Queue[Any]
    ) -> None:
        self.number, self._news = number, news
        self._last_beat: float | None = None
        self._orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
        pipe = subprocess.PIPE
        # A session of its own: Ctrl-C is for the launcher, which ends its agents in order.
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), start_new_session=True
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        in_thread(self._write, self.process.stdin)
        complaints = in_thread(self._hear_complaints, self.process.stderr)
        in_thread(self._hear, self.process.stdout, complaints)

    @property
    def is_silent(self) -> bool:
        """Nothing has been heard for too long, though the line seems to be there."""
        return self._last_beat is not None and time.monotonic() - self._last_beat > SILENCE

    def order(self, do: str, **about: Any) -> None:
        """Send an order."""
        self._orders.put({"do": do, **about})

    def hang_up(self) -> None:
        """Say that there will be no more orders."""
        self._orders.put(None)

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

    def _hear(self, stdout: BinaryIO, complaints: threading.Thread) -> None:
        for line in stdout:
            try:
                news = json.loads(line)
                kind = news["news"]
            except (ValueError, TypeError, KeyError):  # a greeting of the login shell
                kind, text = "line", line.decode("utf8", "replace").rstrip()
                news = {"news": kind, "text": text}
            if kind == "beat":
                self._last_beat = time.monotonic()
            else:
                self._news.put((self.number, {"role": "agent", "id": self.number} | news))
        complaints.join(1.0)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(2.0)
        gone = {"news": "exited", "role": "agent", "id": self.number}
        status = self.process.returncode or 0
        self._news.put((self.number, gone | {"status": status if status >= 0 else 128 - status}))

    def _hear_complaints(self, stderr: BinaryIO) -> None:
        for line in stderr:
            text = line.decode("utf8", "replace").rstrip()
            about = {"news": "line", "role": "agent", "id": self.number, "text": text}
            self._news.put((self.number, about))


class Overseer:
    """Hears the agents of all hosts.

    Parameters
    ----------
    addresses : sequence of str
    log_dir : Path
    board : Board
        Shows it to the user.
    trace_dir : Path, optional
        Where to put the events that processes have recorded.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        log_dir: Path,
        board: Board,
        trace_dir: Path | None = None,
    ) -> None:
        self.machines: list[Machine] = []
        self._addresses, self._log_dir, self._board = addresses, log_dir, board
        self._trace_dir, self._last_events = trace_dir, 0.0
        self._news: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue(1 << 14)
        self._heard: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        self._tails: dict[tuple[str, int], deque[str]] = defaultdict(lambda: deque(maxlen=_QUOTED))
        self._failures: list[dict[str, Any]] = []

    def begin(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the agent of the next machine."""
        try:
            self.machines.append(Machine(len(self.machines), words, env, self._news))
        except OSError as error:
            raise LaunchError(f"{words[0]} could not be started: {error.strerror}") from None

    def order(self, do: str, **about: Any) -> None:
        """Send an order to all agents."""
        for machine in self.machines:
            machine.order(do, **about)

    def wait_for(
        self, news: str, role: str, number: int, timeout: float | None = None, late: str = ""
    ) -> list[dict[str, Any]]:
        """Wait until ``number`` processes of a role have said something; return what they said.

        Raises :class:`LaunchError` for the first failure, or, with ``late`` as the reason, when
        time is up.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        heard = self._heard[news, role]
        while len(heard) < number:
            self._listen(0.2)
            self._look_for_silence()
            if self._failures:
                raise self._first_failure()
            if deadline is not None and time.monotonic() > deadline:
                missing = next(i for i in range(number) if i not in heard)
                machine = missing * len(self.machines) // number
                raise self._error(role, missing, machine, f"{late} within {timeout:g} s", 1)
        return [heard[i] for i in range(number)]

    def refuse(self, machine: int, what: str) -> LaunchError:
        """Make the error for what is wrong on a host before the job has begun."""
        return LaunchError(f"{self._name(machine)}: {what}", self._addresses[machine])

    def _name(self, machine: int) -> str:
        return f"{self._addresses[machine]} (machine {machine})"

    def end(self, grace: float = _GRACE) -> None:
        """End everything everywhere. Returns when it is done, or when it takes too long."""
        deadline = time.monotonic() + grace - _GRACE + _FAREWELL
        try:
            self.order("end", grace=grace)
            for machine in self.machines:
                machine.hang_up()
            while time.monotonic() < max(deadline, self._last_events + _GRACE):
                self._listen(0.05)
                for machine in self.machines:
                    if machine.is_silent:  # its agent has lost us as well, and ends by itself
                        machine.process.kill()
                # Not when its process has ended: what it said last may still be on its way.
                if len(self._heard["exited", "agent"]) == len(self.machines):
                    break
        finally:
            for machine in self.machines:
                with suppress(ProcessLookupError):
                    machine.process.kill()  # its agent loses the line and ends by itself
                machine.process.wait()
            while not self._news.empty():
                self._listen(0)
            self._board.close()

    # -------------------------------------------------------------------------- listening
    def _look_for_silence(self) -> None:
        for machine in self.machines if self._news.empty() else ():
            if machine.is_silent:
                about = {"role": "agent", "id": machine.number, "machine": machine.number}
                self._failures.append(about | {"status": 1})

    def _listen(self, seconds: float) -> None:
        """Take in the next piece of news."""
        try:
            machine, news = self._news.get(timeout=seconds) if seconds else self._news.get_nowait()
        except queue.Empty:
            return
        kind, who = news["news"], (news["role"], news["id"])
        if kind == "line":
            self._log(machine, who, news["text"])
            return
        if kind == "trace":
            self._keep_events(news["name"], news["text"])
            return
        self._heard[kind, who[0]][who[1]] = news
        self._board.tell(machine, *who, kind, news.get("status", 0))
        is_end_of_work = who[0] in ("trainer", "torchrun") and news.get("status") == 0
        if kind == "exited" and not is_end_of_work:
            self._failures.append(news | {"machine": machine})

    def _keep_events(self, name: str, text: str) -> None:
        self._last_events = time.monotonic()
        if self._trace_dir and _TRACE.fullmatch(name):
            with open(self._trace_dir / name, "a", encoding="utf8") as file:
                file.write(text)

    def _log(self, machine: int, who: tuple[str, int], text: str) -> None:
        self._tails[who].append(text)
        with open(self._log_dir / f"{who[0]}-{who[1]}.log", "ab") as log:
            log.write(text.encode("utf8", "replace") + b"\n")
        if who[0] in ("trainer", "server"):
            self._board.print(f"{self._addresses[machine]} {who[0]} {who[1]} | {text}")

    # --------------------------------------------------------------------------- failures
    def _first_failure(self) -> LaunchError:
        start = time.monotonic()
        while time.monotonic() - start < _HINDSIGHT[min(map(self._distance, self._failures))]:
            self._listen(0.05)
        first = min(self._failures, key=self._distance)
        role, number, status = first["role"], first["id"], first["status"]
        return self._error(role, number, first["machine"], self._how(role, number, status), status)

    def _distance(self, failure: dict[str, Any]) -> int:
        """How far a failure is from a cause: 0 for one that may be a cause itself."""
        if failure["role"] == "torchrun" or failure["status"] == 128 + signal.SIGTERM:
            return 2
        words = "\n".join(self._tails[failure["role"], failure["id"]])
        if "ServerLost" in words:
            return 1
        return 2 if _CONSEQUENCE.search(words) else 0

    def _how(self, role: str, number: int, status: int) -> str:
        if role == "agent":
            said = "\n".join(self._tails[role, number])
            if self.machines[number].is_silent:
                return f"no sign of life for {SILENCE:g} s; is the host or the network down?"
            what = "the agent ended"
            if number not in self._heard["hello", "agent"]:
                what = "the agent could not be started"
                if "No module named" in said:
                    what += "; install gnnlab there, for the interpreter of your command"
                elif status == 127:
                    what += "; name an interpreter that is there in your command"
                elif remedy := _REMEDIES.get(reason(said)):
                    what += f"; {remedy}"
            return what
        if status > 128:
            name = next((s.name for s in signal.Signals if s == status - 128), str(status - 128))
            hint = ". When memory runs out, the system ends a process so" if status == 137 else ""
            return f"was ended by {name}{hint}"
        how = f"ended with status {status}"
        if role == "server":
            ready = number in self._heard["ready", "server"]
            how += (
                " before the trainers had finished"
                if ready
                else (" before it was ready; does the script call gnnlab.distributed.initialize()?")
            )
        return how

    def _error(self, role: str, number: int, machine: int, what: str, status: int) -> LaunchError:
        name = f"{role} {number} on {self._name(machine)}"
        parts = [f"{self._name(machine)}: {what}" if role == "agent" else f"{name} {what}"]
        if words := "\n".join(self._tails[role, number]).strip("\n"):
            parts.append(f"The last lines of {role} {number}:\n{words}")
        parts.append(f"All that was printed: {self._log_dir}{os.sep}")
        return LaunchError(
            "\n\n".join(parts),
            self._addresses[machine],
            role,
            number,
            status or 1,
            self._log_dir,
        )
