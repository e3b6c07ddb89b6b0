"""Start processes with PyTorch's engine, and hold the store in which a job's trainers meet.

Importing this module loads torch, so only :mod:`gnnlab.launch.runner` does.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing import PContext, start_processes
from torch.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs


class _ToPipe(LogsSpecs):
    """Sends what one process prints to a pipe; elastic's own choices are files."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._path = f"/dev/fd/{descriptor}"

    def reify(self, envs: Mapping[int, Mapping[str, str]]) -> LogsDest:
        path = {0: self._path}
        return LogsDest(stdouts=path, stderrs=path, error_files={0: ""})

    @property
    def root_log_dir(self) -> str:
        return ""


def start(name: str, argv: Sequence[str], env: Mapping[str, str], output: int) -> PContext:
    """Start a process, which prints to the pipe ``output``; raise OSError if it cannot be run."""
    args, envs = {0: tuple(argv[1:])}, {0: dict(env)}
    return start_processes(name, argv[0], args, envs, _ToPipe(output))


def serve_store(host: str, port: int) -> TCPStore:
    """Serve a store at one address; by default torch's stores listen at all addresses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family).detach()
    return TCPStore(host, port, is_master=True, wait_for_workers=False, master_listen_fd=listener)
