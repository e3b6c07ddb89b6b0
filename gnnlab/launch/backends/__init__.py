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
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from gnnlab.errors import InvalidInput
from gnnlab.launch import ip_config

_CLASSES = {"local": "Local", "ssh": "Ssh", "slurm": "Slurm", "ray": "Ray"}
NAMES = tuple(_CLASSES)


@dataclass(frozen=True)
class Host:
    """A machine of a job; machine i holds part i of the graph."""

    name: str  # what the backend calls it, for messages
    address: str  # an IP address, or a host name that all machines can resolve
    port: int | None = None  # of its first server, if the user has chosen one


@dataclass(frozen=True)
class HostRequest:
    """What a job asks of a backend."""

    num_hosts: int | None = None  # as many as the graph has parts; None: all of the backend
    listed: tuple[ip_config.Endpoint, ...] = ()  # lines of an ip_config, if there is one
    ssh_port: int | None = None  # by default, as the name, that of the user's ssh configuration
    ssh_username: str | None = None


class Backend(ABC):
    """Hosts for a job, and the way to start programs there. A context manager.

    A backend does not supervise: ``launch`` runs what :meth:`argv` returns, as a child in a session
    of its own, and kills the child's process group at the end.
    """

    #: Its name, as in ``--on``.
    name: ClassVar[str]
    #: Whether all hosts are this computer and share its processors.
    is_local: ClassVar[bool] = False
    #: Part of what a program prints that could not be started -> what to do.
    remedies: ClassVar[Mapping[str, str]] = {}
    #: The hosts, machine 0 first.
    hosts: list[Host]

    @abstractmethod
    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return a command line, to be run here, that runs a command on a host.

        No shell interprets the command's arguments. Standard input, output and error are those of
        the command there, byte for byte; the line ends with the command, with its exit status.
        """

    def remedy(self, output: str) -> str:
        """Return what to do if a program could not be started, by its standard error; or ''."""
        return next((remedy for said, remedy in self.remedies.items() if said in output), "")

    def requeue(self) -> None:  # noqa: B027 – an optional hook
        """Queue the job again after its trainers have stopped early; by default do nothing."""

    def close(self) -> None:  # noqa: B027 – an optional hook
        """Give the hosts back."""

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
