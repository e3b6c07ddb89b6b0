"""Machines to log in to: an sshd on each of 127.0.0.2, 127.0.0.3, …, with keys of their own.

Every machine has a host key, a home folder in which each login starts, and a ``bin`` folder first
on its PATH. They share the file system and the processes of this computer, so paths relative to
the home folder are what tells them apart. Nothing of the user's own ``~/.ssh`` is read or written.

A tool under test runs plain ``ssh``, ``sftp`` and ``rsync``; with ``Cluster.env`` as its
environment these know the keys of the machines. Host keys and batch mode are the tool's.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.helpers import ROOT, _descendants, free_port, wait_until

NO_SSHD = (
    "needs sshd and rsync: install them (Debian, Ubuntu: apt install openssh-server rsync; "
    "`make test` does so when it runs as root)"
)
SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")

# With SHLVL bash takes a login for a shell in a shell and does not read the user's ~/.bashrc, which
# may take long, and leave a lock (pyenv's) when a test ends the login in the middle of it.
_SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
StrictModes no
MaxStartups 100
MaxSessions 100
Subsystem sftp sftp-server
SetEnv SHLVL=1
ForceCommand {folder}/enter
"""
_SSH_CONFIG = """\
Host 127.0.0.*
  User {user}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""
_ENTER = """\
#!/bin/sh
cd '{folder}/home' || exit 1
export HOME="$PWD" PATH='{folder}/bin':"$PATH":'{folder}/programs'
export GNNLAB_TEST_MACHINE={number} GNNLAB_TEST_TOKEN={token}
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass
class Machine:
    """One sshd."""

    address: str
    port: int
    folder: Path
    sshd: subprocess.Popen[bytes]

    @property
    def home(self) -> Path:
        """Where each login starts."""
        return self.folder / "home"

    def replace(self, program: str, script: str) -> None:
        """Put a shell script in a program's place on this machine."""
        path = self.folder / "bin" / program
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def restore(self, program: str) -> None:
        """Take the script away again."""
        (self.folder / "bin" / program).unlink()

    def hide(self, program: str) -> None:
        """Make a program of this machine fail as if it were not there."""
        self.replace(program, "exit 127")

    def stop(self) -> None:
        """End sshd and every login at once, as if the machine were switched off."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.sshd.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.sshd.kill()
        self.sshd.wait()


@dataclass
class Cluster:
    """Several machines.

    ``env`` is the environment for a tool that logs in to them; ``ip_config`` lists their
    addresses; all listen on ``port``; ``known_hosts`` holds their keys.
    """

    machines: list[Machine]
    port: int
    folder: Path
    token: str

    @property
    def env(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        programs = f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": programs, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    @property
    def ip_config(self) -> Path:
        return self.folder / "ip_config.txt"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def left_over(self, seconds: float = 5.0) -> list[psutil.Process]:
        """What logins have started and still runs after some seconds."""
        with contextlib.suppress(TimeoutError):
            wait_until("the end", lambda: not _descendants(self.token), seconds)
        return _descendants(self.token)


@contextlib.contextmanager
def cluster(folder: Path, count: int = 2) -> Iterator[Cluster]:
    """Start ``count`` machines in ``folder`` and end all that ran on them at the end."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    sftp_server = next(filter(os.path.exists, SFTP_SERVERS), None)
    if not (sshd and sftp_server and shutil.which("ssh") and shutil.which("rsync")):
        pytest.skip(NO_SSHD)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd locks itself in, as root only
    addresses = [f"127.0.0.{2 + i}" for i in range(count)]
    made = Cluster([], free_port(), folder, uuid.uuid4().hex)
    try:
        _prepare_client(made, addresses)
        for number, address in enumerate(addresses):
            made.machines.append(_start(sshd, sftp_server, made, number, address))
        for machine in made.machines:
            _wait_until_up(machine)
        yield made
    finally:
        for machine in made.machines:
            machine.stop()
        for process in _descendants(made.token):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def _prepare_client(made: Cluster, addresses: list[str]) -> None:
    folder = made.folder
    (folder / "bin").mkdir(parents=True)
    _make_key(folder / "client_key")
    user = pwd.getpwuid(os.getuid()).pw_name  # who this is, whatever $USER says
    config = _SSH_CONFIG.format(user=user, folder=folder)
    (folder / "ssh_config").write_text(config)
    made.known_hosts.touch()
    made.ip_config.write_text("".join(f"{address}\n" for address in addresses))
    for program in ("ssh", "sftp", "scp"):
        script = f"#!/bin/sh\nexec {shutil.which(program)} -F '{folder}/ssh_config' \"$@\"\n"
        (folder / "bin" / program).write_text(script)
        (folder / "bin" / program).chmod(0o755)


def _start(sshd: str, sftp_server: str, made: Cluster, number: int, address: str) -> Machine:
    folder = made.folder / f"machine{number}"
    for name in ("home", "bin"):
        (folder / name).mkdir(parents=True)
    _make_key(folder / "host_key")
    words = (folder / "host_key.pub").read_text().split()[:2]
    with made.known_hosts.open("a") as file:
        file.write(f"[{address}]:{made.port} {' '.join(words)}\n")
    shutil.copy(made.folder / "client_key.pub", folder / "authorized_keys")
    config = _SSHD_CONFIG.format(port=made.port, address=address, folder=folder)
    (folder / "programs").mkdir()
    (folder / "programs" / "sftp-server").symlink_to(sftp_server)
    (folder / "sshd_config").write_text(config)
    enter = _ENTER.format(folder=folder, number=number, token=made.token)
    (folder / "enter").write_text(enter)
    (folder / "enter").chmod(0o755)
    command = [sshd, "-D", "-f", f"{folder}/sshd_config", "-E", f"{folder}/sshd.log"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    return Machine(address, made.port, folder, process)


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def _wait_until_up(machine: Machine) -> None:
    log = machine.folder / "sshd.log"

    def is_up() -> bool:
        assert machine.sshd.poll() is None, log.read_text()
        with contextlib.suppress(OSError):
            socket.create_connection((machine.address, machine.port), 1).close()
            return True
        return False

    wait_until(lambda: f"sshd of {machine.address}\n{log.read_text()}", is_up)
