"""The file that lists the machines: one line each, ``address [port]``.

Line i is the machine that holds part i. The port is where its first server listens; without one,
whoever starts the servers chooses free ports. What follows a ``#`` is a comment.

References
----------
DGL user guide, chapter 7, "Distributed Training", ``ip_config.txt``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gnnlab.errors import InvalidInput

__all__ = ["Host", "read_ip_config"]

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")  # no option of ssh, nothing for a shell


@dataclass(frozen=True)
class Host:
    """A machine of the file.

    Attributes
    ----------
    address : str
        An IP address or a host name.
    port : int or None
        Of its first server, where the line states one.
    """

    address: str
    port: int | None = None


def read_ip_config(path: str | os.PathLike[str], num_parts: int | None = None) -> list[Host]:
    """Read the machines of a cluster.

    Parameters
    ----------
    path : path
    num_parts : int, optional
        How many machines there must be.

    Returns
    -------
    list of Host
        In the order of the lines: machine i holds part i.

    Raises
    ------
    InvalidInput
        The file cannot be read, a line is malformed, a machine appears twice, or the number of
        machines is not ``num_parts``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gnnlab.tools.ip_config import read_ip_config
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ip_config.txt")
    >>> _ = path.write_text("10.0.0.1        # the big one\\n10.0.0.2 31000\\n")
    >>> [(host.address, host.port) for host in read_ip_config(path)]
    [('10.0.0.1', None), ('10.0.0.2', 31000)]
    """
    try:
        text = Path(path).read_text("utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} cannot be read ({error}); --ip_config expects a text file with a line "
            "`address [port]` for each machine"
        ) from None
    hosts: list[Host] = []
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.partition("#")[0].split():
            host = _read_line(words, f"{path}, line {number}: {line.strip()!r}")
            if host.address in (other.address for other in hosts):
                raise InvalidInput(f"{path}, line {number}: {host.address} appears a second time")
            hosts.append(host)
    if not hosts or num_parts not in (None, len(hosts)):
        wanted = "at least one" if num_parts is None else f"{num_parts}, one for each part"
        raise InvalidInput(
            f"{path} lists {len(hosts)} machines, expected {wanted}; change the file, or partition "
            "the graph into as many parts as there are machines"
        )
    return hosts


def _read_line(words: Sequence[str], where: str) -> Host:
    port = words[1] if len(words) == 2 else "1"
    fits = len(words) <= 2 and _ADDRESS.fullmatch(words[0]) is not None
    if not (fits and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise InvalidInput(f"{where}: expected `address [port]`, the port from 1 to 65535")
    return Host(words[0], int(port) if len(words) == 2 else None)
