"""The backend ``local``: all machines are this computer, each with a loopback address."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gnnlab.errors import InvalidInput
from gnnlab.launch.backends.base import Backend, Host, Request


class Local(Backend):
    """Machines that this computer emulates; see :class:`Backend`."""

    name = "local"
    is_local = True

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = list(hosts)

    def hosts(self) -> list[Host]:
        """Return the hosts."""
        return self._hosts

    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return the command itself."""
        return list(command)


def open_backend(request: Request) -> Local:
    """Open the backend; ports are those of ip_config, if there is one."""
    number = request.num_hosts if request.num_hosts is not None else len(request.listed)
    if number < 1:
        raise InvalidInput(f"num_machines must be at least 1; found {number}")
    if len(request.listed) not in (0, number):
        raise InvalidInput(f"num_machines is {number}, but ip_config lists {len(request.listed)}")
    return Local(loopback_hosts(number, [host.port for host in request.listed]))


def loopback_hosts(number: int, ports: Sequence[int | None] | None = None) -> list[Host]:
    """Return hosts on this computer, each with a loopback address of its own."""
    # Only Linux configures all of 127.0.0.0/8 by default.
    is_linux = sys.platform == "linux"
    addresses = [f"127.0.0.{2 + i}" if is_linux else "127.0.0.1" for i in range(number)]
    return [
        Host(address, address, ports[i] if ports else None) for i, address in enumerate(addresses)
    ]
