"""Ranks from a notebook cell: start them, show their output, and end them in every case.

``launch_processes(train, 4, graph)`` runs ``train(rank, 4, graph)`` in four processes and returns
the results. The processes end when the call returns, raises or is interrupted, or the kernel dies.

Fresh interpreters are the default, since a notebook's kernel may have used the GPU, and since its
threads do not survive a fork. :mod:`gnnlab.parallel.payload` passes the function to them.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.helpers.fork import check_fork
from gnnlab.parallel.multiplexer import OutputMultiplexer
from gnnlab.parallel.payload import INHERITS, fresh_python, pack
from gnnlab.parallel.rank import Lines, Settings, pack_work, run
from gnnlab.parallel.rank_process import RankProcess
from gnnlab.parallel.rank_supervisor import RankError, supervise
from gnnlab.system.bars import is_kernel
from gnnlab.system.threads import processors


def launch_processes(
    fn: Callable[..., Any],
    nprocs: int,
    *args: Any,
    start_method: str = "spawn",
    timeout: float | None = None,
    num_threads: int | None = None,
    live: bool | None = None,
) -> list[Any]:
    """Run ``fn(rank, nprocs, *args)`` in ``nprocs`` processes; return a list of their results.

    The environment variables of torch's rendezvous are set:
    ``torch.distributed.init_process_group("gloo")`` needs no further arguments. Lines that ranks
    print are shown as they arrive, each with its rank; in a notebook in the order of the ranks.
    If a rank fails, all ranks are ended and its error is raised here.

    Parameters
    ----------
    fn : callable
        It may be defined in a notebook cell.
    nprocs : int
        Number of ranks.
    *args
        Further arguments. Ranks read large tensors from shared memory, and their writes are
        private; call ``tensor.share_memory_()`` before to make writes visible to all. A graph after
        ``graph.share_memory()`` is in memory once, otherwise twice while the ranks run. What is on
        a GPU is copied, once for each rank, to the same GPU; prefer ``graph.cpu()``.
    start_method : str
        "spawn" for fresh interpreters, or "fork" for copies of this process, which start faster
        but require that this process has not used CUDA.
    timeout : float, optional
        Seconds after which ranks that still run count as failed; the error has their tracebacks.
    num_threads : int, optional
        Threads for the operators of each rank; by default the ranks share the processors.
    live : bool, optional
        Whether to show lines of all ranks as they arrive, in an order that differs from run to run;
        otherwise those of a rank follow when all before it have ended. By default True, but False
        in a notebook, whose stored output is then the same in each run.

    Raises
    ------
    RankError
        A rank raised an error, ended without a result, or exceeded the timeout.
    gnnlab.helpers.fork.ForkError
        A fork would not work; the message says why.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> def total(rank, world_size, x):
    ...     torch.distributed.init_process_group("gloo")
    ...     share = x[rank::world_size].sum()
    ...     torch.distributed.all_reduce(share)
    ...     return share.item()
    >>> dgl.parallel.launch_processes(total, 2, torch.arange(5))
    [10, 10]
    """
    if not callable(fn) or not isinstance(nprocs, int) or nprocs < 1:
        raise InvalidInput(
            f"expected a function and a number of processes; found {fn!r} and {nprocs!r}"
        )
    if start_method not in ("spawn", "fork"):
        raise InvalidInput(f"start_method must be 'spawn' or 'fork'; found {start_method!r}")
    if start_method == "fork" and not hasattr(os, "fork"):
        raise InvalidInput(
            "this system has no fork (Windows): use start_method='spawn', the default, or WSL"
        )
    num_threads = num_threads or max(1, processors() // nprocs)
    start = _start_fresh if start_method == "spawn" else _start_forked
    ranks: list[RankProcess] = []
    with ExitStack() as kept, _meeting_point() as common:
        common |= {"WORLD_SIZE": str(nprocs), "LOCAL_WORLD_SIZE": str(nprocs)}
        settings = []
        for number in range(nprocs):
            environment = common | {"RANK": str(number), "LOCAL_RANK": str(number)}
            settings.append(Settings(number, nprocs, environment, num_threads))
        output = OutputMultiplexer(nprocs, not is_kernel() if live is None else live)
        try:
            start(ranks, settings, fn, args, kept)
            return supervise(ranks, output, timeout)
        except RankError as error:
            raise error.with_traceback(None) from None  # hide the launcher's own frames
        finally:
            for rank in ranks:
                rank.kill()
            for rank in ranks:
                rank.join()
            output.update(ranks, is_last=True)
            output.close()


@contextmanager
def _meeting_point() -> Iterator[dict[str, str]]:
    """Reserve a free port for the rendezvous until rank 0 listens on it."""
    with socket.socket() as holder:
        # Bound, but not listening: the system does not assign the port to a bind to port 0. On all
        # addresses, because rank 0 listens on all: one that is taken at 127.0.0.2 is no use to it.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        port = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()  # elsewhere, rank 0 could not bind the same port
        environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        if not hasattr(os, "fork"):  # Windows: torch is built without libuv
            environment["USE_LIBUV"] = "0"
        loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
        if loopback and "GLOO_SOCKET_IFNAME" not in os.environ:
            environment["GLOO_SOCKET_IFNAME"] = loopback[0]
        yield environment


# ------------------------------------------------------------------------------ starting
Begin = Callable[[Settings, Lines, list[int]], tuple[int, Callable[[], int | None]]]


def _start_fresh(
    ranks: list[RankProcess],
    settings: list[Settings],
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kept: ExitStack,
) -> None:
    """Start fresh interpreters; ``kept`` is closed when they have ended."""
    command = fresh_python(run.__module__)
    with ExitStack() as inherited:
        payload = (inherited if INHERITS else kept).enter_context(pack(pack_work(fn, args)))

        def begin(each: Settings, lines: Lines, others: list[int]) -> Any:
            process = subprocess.Popen(
                command, stdin=lines.lifeline, stdout=lines.events, stderr=lines.output,
                env=os.environ | each.environment, pass_fds=payload.descriptors,
                start_new_session=True,
            )  # fmt: skip
            return process.pid, process.poll

        _start(ranks, settings, begin)
        for rank, each in zip(ranks, settings, strict=True):
            rank.give((each, payload))


def _start_forked(
    ranks: list[RankProcess],
    settings: list[Settings],
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    _kept: ExitStack,
) -> None:
    check_fork()
    context = multiprocessing.get_context("fork")

    def live(each: Settings, lines: Lines, others: list[int]) -> None:
        os.setsid()
        for descriptor in others:  # end of file only if no other process holds the lifeline
            os.close(descriptor)
        sys.exit(run(lines, each, lambda: (fn, args)))

    def begin(each: Settings, lines: Lines, others: list[int]) -> Any:
        process = context.Process(target=live, args=(each, lines, others))
        process.start()
        return process.pid, partial(getattr, process, "exitcode")

    _start(ranks, settings, begin)


def _start(ranks: list[RankProcess], settings: list[Settings], begin: Begin) -> None:
    """Start a process with pipes to it for each rank; append each to ``ranks``."""
    lines = [_lines() for _ in settings]
    everything = [descriptor for pair in lines for end in pair for descriptor in end]
    try:
        for each, (ours, theirs) in zip(settings, lines, strict=True):
            others = [descriptor for descriptor in everything if descriptor not in theirs]
            pid, poll = begin(each, theirs, others)
            ranks.append(RankProcess(each.rank, pid, poll, ours))
    finally:
        for _, theirs in lines:
            _close(theirs)
        for ours, _ in lines[len(ranks) :]:  # interrupted: this ends a rank just started
            _close(ours)


def _lines() -> tuple[Lines, Lines]:
    """Make three pipes to a rank; return the starter's ends and the rank's."""
    (read_life, write_life), (read_events, write_events), (read_out, write_out) = (
        os.pipe() for _ in range(3)
    )
    return Lines(write_life, read_events, read_out), Lines(read_life, write_events, write_out)


def _close(lines: Lines) -> None:
    for descriptor in lines:
        os.close(descriptor)
