"""Run torchrun so that its store listens on one address and its files are in one folder.

    python -m gnnlab.launch.torchrun --master_addr 10.0.0.5 --master_port 29500 ... script.py

By default torchrun's store listens on all interfaces of machine 0, and no option changes that. But
the store accepts a socket that is already listening; this module passes one that is bound to the
address of ``--master_addr`` alone.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from typing import Any

if __name__ == "__main__":
    gc.disable()  # torch's objects stay; Python would search them repeatedly while they are made

from torch.distributed import TCPStore, run
from torch.distributed.elastic.rendezvous import static_tcp_rendezvous

from gnnlab.launch import environment

__all__ = ["main"]


def main() -> None:
    """Run torchrun with the arguments of the command line."""
    gc.freeze()  # at exit, Python would otherwise traverse all objects of torch, for half a second
    static_tcp_rendezvous.TCPStore = _store  # type: ignore[assignment, misc]
    folder = os.environ.get(environment.OUTPUT)
    # Otherwise torchrun would leave a folder behind in the system's temporary folder.
    argv = ["--log_dir", os.path.join(folder, "torchrun")] if folder else []
    run.main([*argv, *sys.argv[1:]])


def _store(
    host: str, port: int, world_size: int, is_master: bool, timeout: Any, **options: Any
) -> TCPStore:
    """Return a store; on the machine that serves it, it listens on ``host`` only."""
    if is_master:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        options["master_listen_fd"] = socket.create_server((host, port), family=family).detach()
    return TCPStore(host, port, world_size, is_master, timeout, **options)


if __name__ == "__main__":
    main()
