"""What a backend is: hosts, and the command that runs a program on one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnnlab.launch import ip_config


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

    @abstractmethod
    def hosts(self) -> list[Host]:
        """Return the hosts; the same ones in the same order each time."""

    @abstractmethod
    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return a command line, to be run here, that runs a command on a host.

        No shell interprets the command's arguments. Standard input, output and error are those of
        the command there, byte for byte; the line ends with the command, with its exit status.
        """

    def remedy(self, output: str) -> str:
        """Return what to do if a program could not be started, by its standard error; or ''."""
        return ""

    def requeue(self) -> None:  # noqa: B027 – an optional hook
        """Queue the job again after its trainers have stopped early; by default do nothing."""

    def close(self) -> None:  # noqa: B027 – an optional hook
        """Give the hosts back."""

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
