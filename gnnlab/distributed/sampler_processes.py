"""Sampler processes: children of a trainer that prefetch its mini-batches.

``initialize`` starts them, as fresh interpreters that do not run the user's script again. A loader
sends them its recipe by cloudpickle, and then the tasks of an epoch, round-robin; so batches come
back in order. Batches are passed in anonymous memory files, which the trainer maps: large tensors
are not copied. Features that the recipe has not read are left to the trainer.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gnnlab import trace
from gnnlab.dataloading.recipe import Recipe, Task
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.tensor import DistFrame, DistTensor
from gnnlab.errors import GNNLabError
from gnnlab.graph.frame import Frame, LazyTensor
from gnnlab.launch import environment
from gnnlab.parallel.payload import Packer, Payload, fresh_python, pack, unpack

_PROGRAM = "gnnlab.distributed.sampler_program"
_HEAD = struct.Struct("<QQ")
_MOST_AHEAD = 32  # batches of a loader for each sampler; a socket buffers some hundred messages
_EXIT_TIMEOUT = 2.0  # seconds in which a sampler that closed its socket exits
_PATIENCE = 0.5  # seconds in which a sampler must exit on request; it has nothing to save
_NOTICE = 2.0  # seconds in which a loader can report a dead sampler before the trainer exits


class SamplerExecutor:
    """Has the sampler processes of this trainer make batches, and completes them on its device."""

    def __init__(self, samplers: Any, ahead: int | None = None) -> None:
        self.samplers, self.ahead = samplers, ahead

    def run(self, recipe: Recipe, tasks: Sequence[Task]) -> Iterator[Any]:
        """Yield the batch of each task."""
        made = self.samplers.run(_There(recipe.on_cpu()), tasks, self.ahead)
        return map(recipe.complete, trace.waiting(made))


class _There(Recipe):
    """A recipe in a sampler process, whose cache gets the rows that the trainer's cache has."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.graphs = recipe, recipe.graphs
        self.best = [g.client.cache.best for g in self.graphs if isinstance(g, DistGraph)][:1]

    def __call__(self, task: Task) -> Any:
        """Make the batch of a task."""
        for best in filter(None, self.best):
            self.graphs[0].client.cache.prepare(best)
        return self.recipe(task)


class Samplers:
    """The ``job.num_samplers`` sampler processes of one trainer.

    When one dies, the loader that uses it raises. If none does so within two seconds, because the
    trainer waits for other ranks or computes something else, this process prints which sampler
    died and exits with status 1: otherwise the job would go on until a loader needs the sampler.
    """

    def __init__(self, job: JobSettings) -> None:
        self._job = job
        self._lines: list[socket.socket] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._arrived: dict[tuple[int, int], Any] = {}
        self._runs = 0
        self._active: set[int] = set()
        self._settled = threading.Event()  # set when they are closed, or when a death was reported
        try:
            for number in range(job.num_samplers):
                ours, theirs = socket.socketpair()
                ours.settimeout(job.timeout)
                self._lines.append(ours)
                with theirs:
                    command = fresh_python(_PROGRAM, str(theirs.fileno()))
                    env = {**os.environ, environment.SAMPLER: str(number)}
                    self._processes.append(
                        subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=env)
                    )
                threading.Thread(target=self._watch, args=(number,), daemon=True).start()
                self._send(number, replace(job, role="sampler"))
        except BaseException:
            self.close()
            raise

    def run(
        self, make: Callable[[Any], Any], tasks: Sequence[Any], ahead: int | None = None
    ) -> Iterator[Any]:
        """Make the batch of each task, in the samplers; yield them in order.

        At most ``ahead`` batches are pending: by default four for each sampler, at most 32.
        """
        count = len(self._lines)
        ahead = 4 * count if ahead is None else min(ahead, _MOST_AHEAD * count)
        self._runs += 1
        run = self._runs
        self._active.add(run)

        def order(number: int) -> None:
            if number < len(tasks):
                self._send(number % count, (run, number, tasks[number]))

        try:
            for number in range(min(count, len(tasks))):
                self._send(number, (run, None, (make, frozenset(self._active))))
            for number in range(ahead):
                order(number)
            for number in range(len(tasks)):
                batch = self._wait(run, number)
                order(number + ahead)
                yield batch
        finally:
            self._active.discard(run)
            for key in [key for key in self._arrived if key[0] == run]:
                del self._arrived[key]

    def _wait(self, run: int, number: int) -> Any:
        """Return a batch; store those of other loaders that arrive before it."""
        while (run, number) not in self._arrived:
            self._read_reply(number % len(self._lines))
        batch, error = self._arrived.pop((run, number))
        if error is not None:
            raise error
        return batch

    def _read_reply(self, sampler: int) -> None:
        """Receive and store the next message of a sampler."""
        try:
            message = receive(self._lines[sampler])
        except TimeoutError:
            raise GNNLabError(
                f"{self._name(sampler)} made no batch within {self._job.timeout:g} s "
                "(GNNLAB_TIMEOUT)"
            ) from None
        except ConnectionResetError:
            message = None
        if message is None:
            raise self._death(sampler)
        key, batch, error = message
        if key is None:
            raise error
        if key[0] in self._active:
            self._arrived[key] = batch, error

    def _send(self, sampler: int, value: Any) -> None:
        # Read pending batches first: a sampler whose socket is full accepts no order.
        while has_come(self._lines[sampler]):
            self._read_reply(sampler)
        try:
            send(self._lines[sampler], value)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death(sampler) from None
        except TimeoutError:
            raise GNNLabError(
                f"{self._name(sampler)} accepted no task within {self._job.timeout:g} s "
                "(GNNLAB_TIMEOUT)"
            ) from None

    def _watch(self, sampler: int) -> None:
        self._processes[sampler].wait()
        if not self._settled.wait(_NOTICE):
            # The main thread may be inside C++ for minutes, where no exception reaches it.
            traceback.print_exception(self._death(sampler))  # the launcher quotes an exception
            sys.stderr.flush()
            os._exit(1)

    def _death(self, sampler: int) -> GNNLabError:
        self._settled.set()
        with suppress(subprocess.TimeoutExpired):
            self._processes[sampler].wait(_EXIT_TIMEOUT)
        status = self._processes[sampler].returncode
        how = f"status {status}"
        if status is not None and status < 0:
            how = f"{signal.Signals(-status).name}; when memory runs out, the system does that"
        return GNNLabError(f"{self._name(sampler)} ended ({how}). Look at what it printed")

    def _name(self, sampler: int) -> str:
        job, process = self._job, self._processes[sampler]
        return (
            f"sampler {sampler} of rank {job.rank} (machine {job.machine}, process {process.pid})"
        )

    def close(self) -> None:
        """Terminate the processes."""
        self._settled.set()
        for line in self._lines:
            line.close()
        deadline = time.monotonic() + _PATIENCE
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.wait()


# ---------------------------------------------------------------------------- the socket
def send(line: socket.socket, value: Any) -> None:
    """Send a value: its position in a memory file, and the file's descriptor."""
    with pack(value, BatchPacker) as payload:
        socket.send_fds(line, [_HEAD.pack(payload.start, payload.size)], [payload.memory])


def has_come(line: socket.socket) -> bool:
    """Whether a message, or the end of the stream, can be received at once."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))


def receive(line: socket.socket) -> Any:
    """Receive a value; None when the socket is closed."""
    head, descriptors, _, _ = socket.recv_fds(line, _HEAD.size, 1)
    while 0 < len(head) < _HEAD.size:
        more = line.recv(_HEAD.size - len(head))
        if not more:
            return None
        head += more
    if not head:
        return None
    try:
        start, size = _HEAD.unpack(head)
        return unpack(Payload(descriptors[0], start, size, ()))
    finally:
        os.close(descriptors[0])


class BatchPacker(Packer):
    """Packs mini-batches; features that have not been read stay lazy."""

    shares = False

    def reducer_override(self, value: Any) -> Any:
        """Pickle features, unless they are pending reads from a distributed graph."""
        if isinstance(value, Frame):
            columns = {n: c if _is_far(c := value.column(n)) else value[n] for n in value}
            return Frame, (value.num_rows, columns, value.device, value.what)
        if isinstance(value, LazyTensor):
            if _is_far(value):
                return LazyTensor, (value.make, value.device)
            return _same, (value(),)
        return super().reducer_override(value)


def _is_far(column: Any) -> bool:
    """Whether a column is a pending read from a distributed graph."""
    make = column.make if isinstance(column, LazyTensor) and column.is_pending else None
    return isinstance(make, partial) and isinstance(make.args[0], DistFrame | DistTensor)


def _same(value: Any) -> Any:
    return value
