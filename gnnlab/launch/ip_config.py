"""The file that lists the machines: one line each, ``address [port]``.

Line i is the machine that holds part i. The port is where its first server listens; without one,
the launcher chooses free ports, and a job without a launcher uses :data:`DEFAULT_PORT`. Text after
a ``#`` is a comment. Machines with the same address and different ports share one computer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gnnlab.errors import InvalidInput, cannot_read, file_error

DEFAULT_PORT = 30050
IP_CONFIG_HELP = (
    "file with a line `ADDRESS [PORT]` for each machine, in the order of the parts; an address is "
    "an IP address or a host name that all machines can resolve, the port that of its first "
    "server; an address may be there twice, with other ports"
)
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:-]*")  # cannot be an option of ssh or shell syntax


@dataclass(frozen=True)
class Endpoint:
    """A machine of the file."""

    address: str  # an IP address or a host name
    port: int | None = None  # of its first server, if the line states one


def read_ip_config(
    path: str | os.PathLike[str], num_parts: int | None = None, num_servers: int = 1
) -> list[Endpoint]:
    """Read the machines of a cluster.

    There must be ``num_parts`` of them, if that is given. The ``num_servers`` of a machine listen
    at the port of its line and at those that follow.
    """
    what = "an ip_config is a text file with a line `address [port]` for each machine"
    try:
        text = Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} cannot be read ({error}); {what}", code="cannot_read") from None
    except OSError as error:
        raise file_error(error, path, f"{cannot_read(path, error)}; {what}", InvalidInput) from None
    hosts: list[Endpoint] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if fields := line.partition("#")[0].split():
            host = _read_line(fields, f"{path}, line {number}: {line.strip()!r}")
            for other, line_of_other in zip(hosts, lines, strict=True):
                _check_ports(
                    host, other, num_servers, f"{path}, lines {line_of_other} and {number}"
                )
            hosts.append(host)
            lines.append(number)
    if not hosts or num_parts not in (None, len(hosts)):
        wanted = "at least one" if num_parts is None else f"{num_parts}, one for each part"
        raise InvalidInput(
            f"{path} lists {len(hosts)} machines, expected {wanted}; change the file, or partition "
            "the graph into as many parts as there are machines"
        )
    return hosts


def names_of(hosts: Sequence[Endpoint]) -> list[str]:
    """Name the machines for messages: by address, plus number if an address occurs twice."""
    addresses = [host.address for host in hosts]
    return [
        f"{address} (machine {i})" if addresses.count(address) > 1 else address
        for i, address in enumerate(addresses)
    ]


def _check_ports(host: Endpoint, other: Endpoint, num_servers: int, where: str) -> None:
    if host.address != other.address or host.port is None or other.port is None:
        return
    if abs(host.port - other.port) < num_servers:
        ports = "the same port" if num_servers == 1 else f"ports less than {num_servers} apart"
        raise InvalidInput(
            f"{where}: {host.address} {other.port} and {host.address} {host.port}. Two machines "
            f"at one address cannot have {ports}, as each needs one for each of its {num_servers} "
            "servers; choose others, or leave the ports out: then free ones are found"
        )


def _read_line(fields: Sequence[str], where: str) -> Endpoint:
    port = fields[1] if len(fields) == 2 else "1"
    fits = len(fields) <= 2 and _ADDRESS.fullmatch(fields[0]) is not None
    if not (fits and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise InvalidInput(f"{where}: expected `address [port]`, the port from 1 to 65535")
    return Endpoint(fields[0], int(port) if len(fields) == 2 else None)
