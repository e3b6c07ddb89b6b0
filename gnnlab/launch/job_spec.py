"""What a job consists of: the processes of each machine, their commands and their environments.

This module only computes data and starts no process, so a job can be printed instead of run.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gnnlab.errors import InvalidInput
from gnnlab.launch import environment as e
from gnnlab.launch.backends import Host

_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Text that a shell passes on as it is, or, as a group, what it interprets. The group's name is a
# key of _INSTEAD. [10,25] as a whole argument is a list rather than a pattern of files.
_SHELL = re.compile(
    r"""\\.|'[^']*'|"(?:[^"\\$`]|\\.)*"|"""
    r"""(?P<files>\|(?!\|)|>>?|<<?)|"""
    r"""(?P<commands>&&?|\|\||[;()\n]|(?<!\S)\#)|"""
    r"""(?P<values>[$`*?]|(?<![\s=,\[])\[[^\s\]]+\]|\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}|(?<![^\s=:])~)""",
    re.DOTALL,
)
_INSTEAD = {
    "files": "--log_dir keeps what each process prints; let the script read and write other files",
    "commands": "Give one command: --workspace names its folder, NAME=VALUE before it sets a "
    "variable",
    "values": "Write out what it stands for, or let the script find that on each machine",
}
SECRET = "(made at the start)"


class Command(NamedTuple):
    """The user's command, parsed."""

    python: str  # the interpreter; it runs the agents as well
    argv: list[str]  # begins with the interpreter
    env: dict[str, str]  # assigned before it

    @classmethod
    def read(cls, command: str | Sequence[str]) -> Command:
        """Parse a command; raise InvalidInput unless it runs Python, and needs no shell for that.

        A sequence of arguments may contain any characters, a text only quoted ones.
        """
        try:
            argv = list(command)
            if isinstance(command, str):
                command = command.strip().replace("\\\n", " ")  # a line that goes on
                argv = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(f"the command {command!r} cannot be read: {error}") from None
        for part in _SHELL.finditer(command) if isinstance(command, str) else ():
            if part.lastgroup:
                shown = part[0].replace("\n", "a line break")
                raise InvalidInput(
                    f"the command {command!r} contains {shown}, but no shell runs it. "
                    f"{_INSTEAD[part.lastgroup]}. If {shown} is part of an argument, put that in "
                    "single quotes"
                )
        env = {}
        while argv and (found := _VARIABLE.fullmatch(argv[0])):
            env[found[1]] = found[2]
            del argv[0]
        for first in (argv, argv[1:]) if isinstance(command, str) else ():
            if path := _split_path(first):
                raise InvalidInput(
                    f"the command {command!r} ends the path {path!r} at its first space; quote it: "
                    f"{shlex.quote(path)} (in Python: shlex.quote)"
                )
        if len(argv) < 2 or not _PYTHON.fullmatch(argv[0]):
            raise InvalidInput(
                f"found the command {command!r}; expected one that runs a Python script, "
                'for example "python3 train.py --lr 0.1"'
            )
        return cls(argv[0], argv, env)

    @property
    def script(self) -> str:
        """Path of the script; empty for ``-m`` and ``-c``."""
        argv = iter(self.argv[1:])
        for word in argv:
            if not word.startswith("-"):
                return word
            for letter in word[1:] or "c":  # "-" alone: the script is read from standard input
                if letter in "mc":
                    return ""
                if letter in "XW":  # its value is the rest of the word or the next word
                    if word.endswith(letter):
                        next(argv, "")
                    break
        return ""


def _split_path(argv: Sequence[str]) -> str:
    """Return the existing file whose path, split at spaces, is the first arguments; '' if none."""
    if not argv or os.path.exists(argv[0]):
        return ""
    paths = (" ".join(argv[:count]) for count in range(2, len(argv) + 1))
    return next((path for path in paths if os.path.isfile(path)), "")


@dataclass
class JobSpec:
    """A job on K machines; ``run`` of :mod:`gnnlab.launch.launch` explains the settings."""

    command: Command
    hosts: list[Host]
    part_config: str
    ip_config: str
    num_trainers: int
    num_samplers: int
    num_servers: int
    num_server_threads: int
    num_omp_threads: int | None
    graph_format: str
    security: str
    timeout: float
    max_pause: float
    extra_envs: Mapping[str, str]
    is_traced: bool = False
    keys: Sequence[Mapping[str, str]] = ()  # of each machine: authority, server, client in PEM
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        wanted = {"num_trainers": 1, "num_servers": 1, "num_samplers": 0, "num_server_threads": 1}
        for name, least in wanted.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InvalidInput(f"--{name} must be at least {least}; found {value!r}")
        if not self.max_pause > 0:
            raise InvalidInput(f"--max_pause must be more than 0 seconds; found {self.max_pause}")
        if self.security not in ("tls", "none"):
            raise InvalidInput(f"--security is tls or none; found {self.security!r}")

    @property
    def names(self) -> list[str]:
        """Names of the machines, for messages."""
        return [host.name for host in self.hosts]

    @property
    def addresses(self) -> list[str]:
        """Addresses of the machines."""
        return [host.address for host in self.hosts]

    def server_ports(self, machine: int) -> list[int]:
        """Ports requested on a machine; 0 stands for any free port."""
        port = self.hosts[machine].port
        return [port + i if port else 0 for i in range(self.num_servers)]

    def servers(self, machine: int, ports: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """Describe the servers of a machine; ``ports``: those of all machines."""
        return [
            {
                "role": "server",
                "id": machine * self.num_servers + i,
                "argv": self.command.argv,
                "env": self._environment("server", machine, ports)
                | {
                    e.SERVER_ID: str(machine * self.num_servers + i),
                    "OMP_NUM_THREADS": str(self.num_server_threads),
                },
            }
            for i in range(self.num_servers)
        ]

    def trainers(
        self,
        machine: int,
        ports: Sequence[Sequence[int]],
        master_port: int,
        cpus: int = 1,
        interface: str = "",
    ) -> list[dict[str, Any]]:
        """Describe the trainers of a machine, with the variables that torchrun sets, too."""
        num_busy = self.num_trainers * (1 + self.num_samplers)
        threads = self.num_omp_threads or max(1, cpus // num_busy)
        environment = {"OMP_NUM_THREADS": str(threads)}
        if interface:  # gloo's default, the host name's address, is often loopback
            environment |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
        environment |= self._environment("client", machine, ports)
        environment |= {"MASTER_ADDR": self.hosts[0].address, "MASTER_PORT": str(master_port)}
        num_trainers = self.num_trainers * len(self.hosts)
        trainers = []
        for local_rank in range(self.num_trainers):
            rank = machine * self.num_trainers + local_rank
            numbers = {
                "RANK": rank,
                "WORLD_SIZE": num_trainers,
                "LOCAL_RANK": local_rank,
                "LOCAL_WORLD_SIZE": self.num_trainers,
                "GROUP_RANK": machine,
                "GROUP_WORLD_SIZE": len(self.hosts),
                "ROLE_RANK": rank,
                "ROLE_WORLD_SIZE": num_trainers,
            }
            env = environment | {name: str(number) for name, number in numbers.items()}
            trainers.append({"role": "trainer", "id": rank, "argv": self.command.argv, "env": env})
        return trainers

    def _environment(
        self, role: str, machine: int, ports: Sequence[Sequence[int]]
    ) -> dict[str, str]:
        num_trainers = self.num_trainers * len(self.hosts)
        pairs = zip(self.hosts, ports, strict=True)
        servers = [[host.address, port] for host, those in pairs for port in those]
        environment = {
            "PYTHONUNBUFFERED": "1",
            **self.extra_envs,
            **self.command.env,
            e.MODE: "distributed",
            e.ROLE: role,
            e.NUM_SERVERS: str(self.num_servers),
            e.NUM_SAMPLERS: str(self.num_samplers),
            e.NUM_CLIENTS: str(num_trainers * (1 + self.num_samplers)),
            e.PART_CONFIG: self.part_config,
            e.IP_CONFIG: self.ip_config,
            e.GRAPH_FORMAT: self.graph_format,
            e.MACHINE: str(machine),
            e.NUM_TRAINERS: str(self.num_trainers),
            e.SERVERS: json.dumps(servers),
            e.JOB: self.id,
            e.SECURITY: self.security,
            e.TIMEOUT: f"{self.timeout:g}",
        }
        if self.is_traced:
            environment[e.TRACE] = f"${e.OUTPUT}/trace"  # the agent sends it on
        if self.security == "tls":
            known = self.keys[machine] if self.keys else {}  # none in a dry run
            public = {"authority": known.get("authority"), "certificate": known.get(role)}
            environment[e.KEYS] = json.dumps(public)  # an agent adds the secret key
        return environment

    def describe(self, machine: int) -> str:
        """Return the commands of a machine with their environments, without secrets."""
        nowhere = [self.server_ports(i) for i in range(len(self.hosts))]
        processes = [*self.servers(machine, nowhere), *self.trainers(machine, nowhere, 0)]
        hidden = dict.fromkeys([*self.extra_envs, *self.command.env], "(hidden)")
        lines = []
        for each in processes:
            env = each["env"] | hidden
            if e.KEYS in env:
                env[e.KEYS] = SECRET
            variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
            lines.append(" ".join([*variables, shlex.join(each["argv"])]))
        return "\n".join(lines)
