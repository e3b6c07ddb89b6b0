"""Job settings from environment variables: role of this process, addresses of the servers.

:mod:`gnnlab.launch.environment` lists the variables. A launcher sets them for each process that it
starts; without a launcher, most settings follow from ``ip_config``.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput, PartitionError, reading
from gnnlab.graph.names import check_name
from gnnlab.launch import environment as e
from gnnlab.launch.certificates import Keys
from gnnlab.launch.ip_config import DEFAULT_PORT, read_ip_config


@dataclass(frozen=True)
class JobSettings:
    """A process's view of its job."""

    id: str
    role: str  # "server", "trainer" or "sampler"
    machine: int
    num_machines: int
    server: int  # index of this server among all; −1 for other roles
    num_servers: int  # per machine
    rank: int  # of the trainer; a sampler has its trainer's
    num_ranks: int
    local_rank: int  # on the machine
    num_samplers: int  # of each trainer
    #: IP address and port of each server; server s is on machine ``s // num_servers``.
    addresses: tuple[tuple[str, int], ...]
    part_config: str
    keys: Keys | None  # None where messages are neither authenticated nor encrypted
    timeout: float  # maximum wait in seconds

    @classmethod
    def read(
        cls, ip_config: Any = None, num_servers: int = 1, num_samplers: int = 0
    ) -> JobSettings:
        """Read the environment variables; arguments are defaults for those that are not set."""
        env = os.environ
        num_servers = e.number(e.NUM_SERVERS, num_servers, 1)
        addresses = _addresses(env, ip_config, num_servers)
        num_machines = len(addresses) // num_servers
        role = {"server": "server", "sampler": "sampler"}.get(env.get(e.ROLE, ""), "trainer")
        num_ranks = e.number("WORLD_SIZE", num_machines * e.number(e.NUM_TRAINERS, 1, 1), 1)
        rank = 0 if role == "server" else e.number("RANK", 0 if num_ranks == 1 else None)
        per_machine = max(1, num_ranks // num_machines)
        server = e.number(e.SERVER_ID) if role == "server" else -1
        machine = e.number(e.MACHINE, max(server // num_servers, rank // per_machine))
        if not (server < len(addresses) and machine < num_machines and rank < num_ranks):
            raise InvalidInput(
                f"server {server} of {len(addresses)}, machine {machine} of {num_machines}, rank "
                f"{rank} of {num_ranks}: the environment variables of this process are inconsistent"
            )
        # Without a launcher, all processes agree on this ID.
        known = hashlib.sha256(json.dumps(addresses).encode()).hexdigest()[:12]
        return cls(
            id=check_name(env.get(e.JOB) or known, e.JOB),
            role=role,
            machine=machine,
            num_machines=num_machines,
            server=server,
            num_servers=num_servers,
            rank=rank,
            num_ranks=num_ranks,
            local_rank=e.number("LOCAL_RANK", rank % per_machine),
            num_samplers=e.number(e.NUM_SAMPLERS, num_samplers),
            addresses=addresses,
            part_config=env.get(e.PART_CONFIG, ""),
            keys=_keys(env, addresses, role),
            timeout=e.seconds(e.TIMEOUT, 300.0),
        )

    def digest(self) -> str:
        """Identify the partitioned graph by its JSON file."""
        with reading(self.part_config, PartitionError):
            return hashlib.sha256(Path(self.part_config).read_bytes()).hexdigest()

    def name_of(self, server: int) -> str:
        """Return a server's name for error texts: number, machine and address."""
        host, port = self.addresses[server]
        return f"server {server} (machine {server // self.num_servers}, {host}:{port})"


def is_distributed() -> bool:
    """Whether ``DGL_DIST_MODE`` asks for servers; raises InvalidInput for an unknown mode.

    DGL's launchers set the mode for trainers alone, so the role of a server implies it.
    """
    mode = os.environ.get(e.MODE, "standalone")
    if mode not in ("standalone", "distributed"):
        raise InvalidInput(f"DGL_DIST_MODE is 'standalone' or 'distributed'; found {mode!r}")
    return mode == "distributed" or os.environ.get(e.ROLE) == "server"


def _addresses(
    env: Mapping[str, str], ip_config: Any, num_servers: int
) -> tuple[tuple[str, int], ...]:
    if e.SERVERS in env:
        try:
            found = tuple((str(host), int(port)) for host, port in json.loads(env[e.SERVERS]))
        except (ValueError, TypeError):
            raise InvalidInput(
                f"{e.SERVERS} must be a JSON list of [address, port]; found {env[e.SERVERS]!r:.200}"
            ) from None
    else:
        path = env.get(e.IP_CONFIG) or ip_config
        if not path:
            raise InvalidInput("DGL_IP_CONFIG names no file with the addresses of the machines")
        hosts = read_ip_config(path, num_servers=num_servers)
        found = tuple(
            (host.address, (host.port or DEFAULT_PORT) + i)
            for host in hosts
            for i in range(num_servers)
        )
    if not found or len(found) % num_servers:
        raise InvalidInput(f"{len(found)} servers are not {num_servers} on each machine")
    if twice := [place for place in found if found.count(place) > 1]:
        host, port = twice[0]
        raise InvalidInput(
            f"two servers cannot both listen at {host}:{port}; a machine has {num_servers}, at the "
            f"port of its line ({DEFAULT_PORT} where there is none) and at those that follow: give "
            "machines at one address ports that are further apart"
        )
    return found


def _keys(env: Mapping[str, str], addresses: tuple[tuple[str, int], ...], role: str) -> Keys | None:
    security = env.get(e.SECURITY)
    if security not in (None, "tls", "none"):
        raise InvalidInput(f"GNNLAB_SECURITY is 'tls' or 'none'; found {security!r}")
    if security == "tls" or (security is None and e.KEYS in env):
        try:
            keys = Keys(**json.loads(env[e.KEYS]))
            if not all(isinstance(text, str) for text in vars(keys).values()):
                raise TypeError("a key is no text")
        except (KeyError, TypeError, ValueError, RecursionError):
            raise InvalidInput(
                "GNNLAB_SECURITY=tls needs keys in GNNLAB_KEYS, as JSON with `authority`, "
                "`certificate` and `secret`, each a text in PEM; launch makes them"
            ) from None
        try:
            keys.context(is_server=role == "server")
        except (TypeError, ValueError, ssl.SSLError) as error:
            raise InvalidInput(
                "GNNLAB_KEYS must hold the certificates of an authority and of this process, and "
                f"the secret key of this process; found texts that cannot be used: {error}"
            ) from None
        return keys
    if security != "none" and not all(_is_loopback(host) for host, _ in addresses):
        raise GNNLabError(
            "between machines messages are encrypted, which needs the keys that launch makes. In a "
            "network where everybody may read and write the data, set GNNLAB_SECURITY=none"
        )
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
