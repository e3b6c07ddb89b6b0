"""The backend ``local``: all machines are this computer, each with a loopback address."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gnnlab.errors import InvalidInput
from gnnlab.launch.backends import Backend, Host, HostRequest


class Local(Backend):
    """Machines that this computer emulates; see :class:`Backend`."""

    name = "local"
    is_local = True

    def __init__(self, request: HostRequest) -> None:
        number, listed = request.num_hosts, len(request.listed)
        number = listed if number is None else number
        if number < 1:
            raise InvalidInput(f"num_machines must be at least 1; found {number}")
        if listed not in (0, number):
            raise InvalidInput(f"num_machines is {number}, but ip_config lists {listed}")
        self.hosts = loopback_hosts(number, [host.port for host in request.listed])

    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return the command itself."""
        return list(command)


def loopback_hosts(number: int, ports: Sequence[int | None] | None = None) -> list[Host]:
    """Return hosts on this computer, each with a loopback address of its own."""
    # Only Linux configures all of 127.0.0.0/8 by default.
    is_linux = sys.platform == "linux"
    addresses = [f"127.0.0.{2 + i}" if is_linux else "127.0.0.1" for i in range(number)]
    return [
        Host(address, address, ports[i] if ports else None) for i, address in enumerate(addresses)
    ]
