"""``torch.multiprocessing``, with forked processes that can use OpenMP.

All names of :mod:`torch.multiprocessing` are here too. :class:`Process` raises an error for a fork
after CUDA is initialized and resets OpenMP in the child (:mod:`gnnlab.helpers.fork`), and
:func:`shared_tensor` makes a tensor that all ranks read and write.

By default each process uses as many threads as there are processors. If several compute at once,
call ``torch.set_num_threads(processors // processes)`` first in each: more threads than processors
slow all of them down. :func:`gnnlab.parallel.launch_processes` does this.

Examples
--------
>>> import gnnlab as dgl, torch
>>> counts = dgl.multiprocessing.shared_tensor((2,), dtype=torch.int64)
>>> process = dgl.multiprocessing.Process(target=counts.add_, args=(1,))
>>> process.start()
>>> process.join()
>>> counts
tensor([1, 1])
"""

from __future__ import annotations

import math
import multiprocessing.util
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

try:
    import resource
except ImportError:  # Windows, which has no such limits
    resource = None  # type: ignore[assignment]
import torch
import torch.distributed
import torch.multiprocessing
from torch.multiprocessing import *  # noqa: F403
from torch.multiprocessing import get_start_method

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.helpers.fork import check_fork, fix_openmp
from gnnlab.system.ending import await_torch_at_exit

__all__ = [*torch.multiprocessing.__all__, "Process", "shared_tensor"]

_FILES = 1 << 20  # more open files than any job needs; some systems allow 2**63
_FEWEST = 64  # with less, errors of worker processes are lost, or loaders hang
_LONGEST = 85  # bytes of a folder's path; with a socket's name, within every system's limit


def __getattr__(name: str) -> Any:
    return getattr(torch.multiprocessing, name)


class Process(torch.multiprocessing.Process):  # type: ignore[name-defined,misc]
    """A :class:`multiprocessing.Process` whose target may use OpenMP, also after a fork.

    Raises
    ------
    gnnlab.helpers.fork.ForkError
        From :meth:`start`, if the start method is fork and CUDA is initialized.
    """

    def start(self) -> None:
        """Start the process."""
        if (self._start_method or get_start_method()) == "fork":
            check_fork()
        super().start()

    def run(self) -> None:
        """Run the target, in the child."""
        await_torch_at_exit()
        fix_openmp(super().run)()


def shared_tensor(shape: int | Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor of zeros in shared memory.

    Without a process group, pass the tensor to child processes. In a process group, each rank calls
    this once and all get the same memory; all ranks must be on one machine.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = math.prod(shape) * dtype.itemsize
    group = torch.distributed
    if not (size and group.is_available() and group.is_initialized()):
        with explained(size):
            return torch.zeros(shape, dtype=dtype).share_memory_()
    file = shared_file(size) if group.get_rank() == 0 else nullcontext((0, ""))
    with file as (_, name):
        names = [name]
        group.broadcast_object_list(names)
        tensor = torch.from_file(names[0], True, math.prod(shape), dtype=dtype)
        group.barrier()  # all have opened the file
    return tensor.view(shape)


@contextmanager
def explained(what: int | str) -> Iterator[None]:
    """Translate torch's errors for missing shared memory or files into ones that say what to do."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        wanted = what if isinstance(what, str) else f"{what:,} bytes"
        # "ancdata": a descriptor that was sent to this process found no place
        if "Too many open files" in str(error) or "ancdata" in str(error):
            raise GNNLabError(
                f"too many open files for {wanted}, of which each tensor in shared memory is one "
                f"({error}). {open_files()}, keep fewer mini-batches at a time, or use "
                "num_workers=0"
            ) from None
        if isinstance(error, OSError) or "shared memory" not in str(error):
            raise
        raise GNNLabError(
            f"there is no shared memory for {wanted} ({error}). Enlarge /dev/shm: "
            "docker run --shm-size=8g, or mount -o remount,size=8g /dev/shm; launch_processes also "
            "takes tensors and graphs that are not shared, which need none of it"
        ) from None


@contextmanager
def shared_file(size: int) -> Iterator[tuple[int, str]]:
    """Make a file of ``size`` bytes in memory, freed when no process has it open or mapped.

    Yields a file descriptor, and a path by which other processes of this user can open the file,
    both valid inside the ``with``. Raises OSError if there is not enough memory.
    """
    if hasattr(os, "memfd_create"):  # Linux: in memory, not limited by /dev/shm
        with open(os.memfd_create("gnnlab"), "r+b") as file:
            allocate(file.fileno(), size)
            yield file.fileno(), f"/proc/{os.getpid()}/fd/{file.fileno()}"
    else:
        descriptor, name = tempfile.mkstemp(prefix="gnnlab-")  # readable by this user alone
        try:
            allocate(descriptor, size)
            yield descriptor, name
        finally:
            os.close(descriptor)
            with suppress(PermissionError):  # Windows cannot remove a mapped file
                os.unlink(name)


def allocate(descriptor: int, size: int) -> None:
    """Allocate the memory now: if it were missing on first access, that would be a SIGBUS."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def raise_file_limit() -> None:
    """Raise this process's limit of open files as far as the system permits.

    Raise GNNLabError for so few that worker processes could not even report an error.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems permit less than their hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if resource.RLIM_INFINITY != resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEWEST:
        raise GNNLabError(f"processes need {_FEWEST} open files to work together. {open_files()}")


def open_files() -> str:
    """Say, for an error, how many files this process may open and how to permit more."""
    if resource is None:
        return "Close some files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"This process may open {soft} files; raise the system's limit ({hard}: `ulimit -Hn`)"


def check_sockets() -> None:
    """Raise if the temporary folder's path is too long for sockets: loaders would hang."""
    if not hasattr(socket, "AF_UNIX"):  # Windows: named pipes, no path
        return
    place = multiprocessing.util.get_temp_dir()
    if len(os.fsencode(place)) > _LONGEST:
        raise InvalidInput(
            f"batches of worker processes pass through sockets in {place}, whose path may have "
            f"{_LONGEST} bytes; found {len(os.fsencode(place))}. Set TMPDIR to a shorter path, "
            "such as /tmp, before Python starts, or use num_workers=0"
        )
