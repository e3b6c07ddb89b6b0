"""Backends: which hosts a job runs on, and how a program starts on one of them.

========  =====================================  ===========================
backend   hosts                                 a program starts by
========  =====================================  ===========================
local     loopback addresses of this computer   itself, here
ssh       the lines of ip_config                ``ssh``
slurm     the nodes of the allocation           ``srun``, one step per node
ray       nodes of a Ray cluster                an actor per node
========  =====================================  ===========================

``launch`` starts an agent on each host through the backend, and talks to it on its standard
streams; all else is the same on every backend. Only the module of the chosen backend is imported.
"""

from __future__ import annotations

import os
from importlib import import_module

from gnnlab.errors import InvalidInput
from gnnlab.launch.backends.base import Backend, Host, HostRequest

__all__ = ["NAMES", "Backend", "Host", "HostRequest", "choose", "open_backend"]

_CLASSES = {"local": "Local", "ssh": "Ssh", "slurm": "Slurm", "ray": "Ray"}
NAMES = tuple(_CLASSES)


def choose(request: HostRequest) -> tuple[str, str]:
    """Choose a backend: ssh for the hosts of an ip_config, otherwise the cluster we are in.

    Returns its name, and where its hosts come from, for a message.
    """
    if request.listed:
        return "ssh", "those of ip_config"
    if os.environ.get("SLURM_JOB_ID") and os.environ.get("SLURM_JOB_NODELIST"):
        return "slurm", f"those of Slurm job {os.environ['SLURM_JOB_ID']}"
    if os.environ.get("RAY_ADDRESS"):
        return "ray", f"those of the Ray cluster at {os.environ['RAY_ADDRESS']}"
    raise InvalidInput(
        "no machines are given; pass --ip_config FILE with a line `address [port]` for each, "
        "start this in a Slurm allocation or with RAY_ADDRESS set, or pass --local to play all of "
        "them on this computer"
    )


def open_backend(name: str, request: HostRequest) -> Backend:
    """Open a backend by its name, one of :data:`NAMES`; its module is imported only now."""
    if name not in NAMES:
        raise InvalidInput(f"--on is one of {', '.join(NAMES)}; found {name!r}")
    module = import_module(f"gnnlab.launch.backends.{name}")
    backend: Backend = getattr(module, _CLASSES[name])(request)
    return backend
