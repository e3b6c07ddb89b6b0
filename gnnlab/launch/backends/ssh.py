"""The backend ``ssh``: logging in to machines with the user's OpenSSH programs.

Keys, aliases and jump hosts of ``~/.ssh/config`` therefore work. ssh never prompts for a password,
and refuses to connect to a machine whose host key is unknown.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch.backends import Backend, Host, HostRequest

OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "3",
}
# Error message of ssh -> code of the reason, which the doctor explains.
_REASONS = {
    "IDENTIFICATION HAS CHANGED": "host_key_changed",
    "Host key verification failed": "host_key_unknown",
    "Permission denied": "ssh_denied",
    "Connection refused": "ssh_refused",
    "Could not resolve hostname": "ssh_name",
    "No such file or directory: 'ssh'": "ssh_missing",
}
_REMEDIES = {
    "host_key_unknown": "log in once by hand and compare the fingerprint that ssh shows",
    "host_key_changed": "another machine answers at this address, or it was reinstalled; find "
    "out which, then `ssh-keygen -R` with the address",
    "ssh_denied": "let your key in by ssh-copy-id; --ssh_username names the user",
    "ssh_refused": "no sshd listens there; --ssh_port names its port",
    "ssh_name": "write an address that this computer can resolve into ip_config",
}


class Ssh(Backend):
    """The hosts of an ip_config, in the order of its lines; see :class:`Backend`."""

    name = "ssh"

    def __init__(self, request: HostRequest) -> None:
        if not request.listed:
            raise InvalidInput(
                "no machines are given; pass --ip_config FILE with a line `address [port]` for each"
            )
        if request.num_hosts not in (None, len(request.listed)):
            raise InvalidInput(
                f"num_machines is {request.num_hosts}, but ip_config lists {len(request.listed)}"
            )
        self.hosts = [Host(line.address, line.address, line.port) for line in request.listed]
        self._port, self._username = request.ssh_port, request.ssh_username

    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return the command line of ssh."""
        return Login(host.address, self._port, self._username).ssh(shlex.join(command))

    def remedy(self, output: str) -> str:
        """Return what to do about a failed login."""
        return _REMEDIES.get(reason(output), "")


class LoginError(GNNLabError):
    """The login to a machine failed (``status`` 255 of ssh), or a script failed there."""

    def __init__(self, message: str, status: int = 255) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Login:
    """How to log in to one machine, by default as the user's ssh configuration says."""

    address: str
    port: int | None = None
    username: str | None = None

    def __post_init__(self) -> None:
        if self.username is not None and not re.fullmatch(r"\w[\w.@\\-]*", self.username):
            raise InvalidInput(f"--ssh_username {self.username!r} is not the name of a user")

    @property
    def target(self) -> str:
        """``user@address``, the form for ssh."""
        return f"{self.username}@{self.address}" if self.username else self.address

    def place(self, path: str) -> str:
        """``user@address:path``, the form for rsync and scp."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.username}@{address}:{path}" if self.username else f"{address}:{path}"

    def program(self, name: str, port_option: str) -> list[str]:
        """Return the command line of ``ssh``, ``sftp`` or ``scp`` with our options."""
        argv = [name]
        for option, value in OPTIONS.items():
            argv += ["-o", f"{option}={value}"]
        return argv + ([port_option, str(self.port)] if self.port is not None else [])

    def ssh(self, command: str) -> list[str]:
        """Return the command line that runs a command, for the user's shell, on the machine."""
        return [*self.program("ssh", "-p"), "--", self.target, command]

    def run(self, script: str, text: str) -> str:
        """Run a script of ``/bin/sh``, with a text as its input, and return what it printed."""
        return run_there(self.ssh(f"/bin/sh -c {shlex.quote(script)}"), text)


def run_there(argv: Sequence[str], text: str, timeout: float | None = None) -> str:
    """Run a command line of a backend, and return what it printed; raise LoginError if it fails.

    A lost connection is noticed without ``timeout`` (seconds); a login or a disk that hangs is not.
    """
    options: dict[str, Any] = {"capture_output": True, "encoding": "utf8", "errors": "replace"}
    try:
        done = subprocess.run(argv, input=text, timeout=timeout, **options)
    except OSError as error:
        raise LoginError(str(error)) from None
    except subprocess.TimeoutExpired:
        raise LoginError(f"nothing came back within {timeout:g} s") from None
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}"
        raise LoginError(said, done.returncode)
    return str(done.stdout)


def reason(error: str) -> str:
    """Return a code for why a login failed, from the error message of ssh."""
    return next((word for said, word in _REASONS.items() if said in error), "ssh_unreachable")
