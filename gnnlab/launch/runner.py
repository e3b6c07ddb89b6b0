"""Run the servers and trainers of a host for its agent, and end them when the agent is gone.

PyTorch's engine (:mod:`torch.distributed.elastic.multiprocessing`) starts the processes. Each has a
context of its own, because elastic ends a context as a whole: after the first failure it sends
SIGTERM to the others and waits up to 30 s, during which it reports nothing, and it reports a
process that has ended with status 0 only after the last one has. A job reports every end at once.
Output goes to pipes: elastic's log files would be polled, and would grow on the host's disk.

On machine 0 the runner also holds the store in which the trainers' process group meets. So the
store outlives rank 0, and it listens at the address of machine 0 instead of all interfaces.

The runner holds the reading end of a pipe, the *lifeline*, whose writing end only the agent's other
two processes hold. When both are killed, the lifeline reads end of file; the runner then kills all
descendants and removes the agent's files. When both are stopped, the pipe stays open; the runner
looks every second and kills them. It ignores SIGTERM, which schedulers send to all processes of a
job: the agent ends the processes, and closes the lifeline last.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gnnlab.launch import environment
from gnnlab.launch.agent_messages import BEAT, SILENCE, WIDEST, Messages
from gnnlab.launch.first_failure import last_state
from gnnlab.launch.process_tree import adopt_orphans, ancestors, end_descendants, remove_files
from gnnlab.system.threads import in_thread

_EXIT = b"\0exit "  # after the output of a process: its exit status
# What a process reports through the FIFO of environment.EVENTS; see parallel/rendezvous.py.
_EVENT = re.compile(rb"(server|trainer) (\d+) (ready|waiting|met|stopping|failing)\n")
# Set by torchrun, too; job_spec.py has the others. Trainers use the runner's store, and serve none.
_ELASTIC = {
    "ROLE_NAME": "default",
    "TORCHELASTIC_MAX_RESTARTS": "0",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
}


def main() -> None:
    """Read an order from standard input and execute it.

    Arguments: reading end of the lifeline, the agent's folder, the IDs of its guard and worker.
    """
    lifeline, folder = int(sys.argv[1]), Path(sys.argv[2])
    agent = _Agent({int(pid) for pid in sys.argv[3:5]})
    noted, tell = os.pipe()
    os.set_blocking(tell, False)
    os.set_blocking(noted, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):  # exec resets the handlers
        signal.signal(number, lambda *_: None)
    adopt_orphans()
    runner = Runner(folder)
    in_thread(runner.serve)
    while lifeline not in select.select([lifeline, noted], [], [], BEAT)[0]:
        with suppress(BlockingIOError):
            os.read(noted, 1 << 16)
        agent.look()
        runner.reap()
    with runner.lock:  # not while a process is being started
        end_descendants(0.0)
    remove_files(folder)
    os._exit(0)


class _Agent:
    """The agent's guard and worker; kills those that are left if all of them are stopped."""

    def __init__(self, pids: set[int]) -> None:
        self._pids = pids
        self._seen: set[tuple[int, str]] = set()  # process ID and processor time
        self._since = self._next_look = 0.0

    def look(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + BEAT
        # Only ancestors: the ID of a process that has ended may have been reused.
        above = [row for row in ancestors() if row.pid in self._pids]
        seen = {(row.pid, row.time) for row in above}
        if not all(row.is_stopped for row in above) or not seen <= self._seen:
            self._seen, self._since = seen, now
        elif now - self._since >= SILENCE:
            for row in above:
                with suppress(ProcessLookupError):
                    os.kill(row.pid, signal.SIGKILL)


class Runner:
    """Starts processes, and reports their output, their events and their ends in lines of JSON.

    The agent's ``folder`` exists when the order comes.
    """

    def __init__(self, folder: Path) -> None:
        self.lock = threading.Lock()  # held while a process is being started
        self._folder = folder
        #: Process ID -> elastic's context, and the writing end of the pipe for its output.
        self._running: dict[int, tuple[Any, int]] = {}
        self._store: Any = None
        self._messages = Messages()

    def serve(self) -> None:
        """Load torch, which takes a second or two, and execute the order."""
        try:
            gc.disable()  # torch's objects stay; Python would search them repeatedly
            from gnnlab.launch import elastic

            # Of each process that fails: the launcher says more about it.
            logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
            if line := sys.stdin.buffer.readline():
                order = json.loads(line)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the processes inherit it
                os.chdir(order["folder"])
                in_thread(self._read_events, self._folder / environment.EVENTS)
                if order["store"]:
                    self._store = elastic.serve_store(*order["store"])
                for each in order["processes"]:
                    self._start(elastic.start, **each)
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # the agent's worker reports that and ends the processes

    def _start(
        self,
        start: Callable[..., Any],
        role: str,
        id: int,
        argv: Sequence[str],
        env: Mapping[str, str],
    ) -> None:
        if role == "trainer":
            env = {**_ELASTIC, "TORCHELASTIC_RUN_ID": env[environment.JOB], **env}
        output, inlet = os.pipe()
        in_thread(self._relay, os.fdopen(output, "rb"), {"role": role, "id": id})
        try:
            with self.lock:
                context = start(f"{role} {id}", argv, env, inlet)
                pid = context.pids()[0]
                self._running[pid] = context, inlet
            self._messages.send("started", role=role, id=id, pid=pid)
        except OSError as error:
            os.write(inlet, f"{argv[0]}: {error.strerror}".encode() + _EXIT + b"127\n")

    def reap(self) -> None:
        """Report the ends of processes; wait for orphans that this process has adopted."""
        with self.lock:
            for pid, (context, inlet) in list(self._running.items()):
                if ended := context.wait(0):
                    del self._running[pid]
                    status = ended.failures[0].exitcode if ended.failures else 0
                    mark = _EXIT + b"%d\n" % (status if status >= 0 else 128 - status)
                    in_thread(os.write, inlet, mark)  # a full pipe blocks
            if not hasattr(os, "waitid"):
                return  # macOS has no subreapers
            with suppress(ChildProcessError):
                options = os.WEXITED | os.WNOHANG | os.WNOWAIT
                while ended := os.waitid(os.P_ALL, 0, options):
                    if ended.si_pid in self._running:  # since the loop above: SIGCHLD comes
                        return
                    os.waitpid(ended.si_pid, 0)

    def _relay(self, output: BinaryIO, who: Mapping[str, Any]) -> None:
        while line := output.readline(WIDEST):
            text, mark, status = line.partition(_EXIT)
            if text or not mark:
                self._messages.send("line", **who, text=last_state(text))
            if mark:
                self._messages.send("exited", **who, status=int(status))

    def _read_events(self, path: Path) -> None:
        # Opened for reading and writing, so that it neither blocks nor ends.
        with os.fdopen(os.open(path, os.O_RDWR), "rb") as file:
            while line := file.readline(WIDEST):
                if event := _EVENT.fullmatch(line):
                    self._messages.send(event[3].decode(), role=event[1].decode(), id=int(event[2]))
