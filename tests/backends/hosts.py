"""Several hosts on one machine: Linux namespaces behind a bridge that leads nowhere else.

Each host has an address (10.79.0.10, .11, …), a host name, process IDs, /dev/shm and /etc/hosts of
its own; other files are shared, as on a cluster's network disk. Needs root, and leave to make
namespaces, which a container has if it is privileged.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

NETWORK = "10.79.0."
PROGRAMS = ("ip", "nsenter", "unshare", "setpriv")
PATIENCE = 60.0  # seconds for any one step; the machine may be busy


def obstacle(programs: Sequence[str] = PROGRAMS) -> str:
    """Say why hosts cannot be made here; '' if they can."""
    if os.geteuid():
        return "needs root, which may make namespaces"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in programs if not shutil.which(name, path=path)]
    if missing:
        return f"needs {', '.join(missing)}: `make test-backends` installs what is missing"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True
    )
    return f"may not make namespaces: {tried.stderr.strip()}" if tried.returncode else ""


class Hosts:
    """Hosts that are up inside a ``with`` block; all their processes end with it.

    Parameters
    ----------
    name : str
        First letters of their names; two sets that are up at the same time need different ones.
    number : int
    loopback : bool
        Each host finds its own name at 127.0.1.1, as Debian's installer writes it.
    """

    def __init__(self, name: str, number: int = 3, loopback: bool = False) -> None:
        self.names = [f"{name}{i}" for i in range(number)]
        self.addresses = [f"{NETWORK}{10 + i}" for i in range(number)]
        self._switch, self._loopback = f"{name}sw", loopback
        self._firsts: list[int] = []  # the first process of each host
        self._keepers: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Hosts:
        # A short path: sockets lie below, whose paths have at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="eng-", dir="/tmp"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for name in (self._switch, *self.names):  # names that a killed run has left
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        try:
            self._make_switch()
            for i in range(len(self.names)):
                self._make_host(i)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process of every host, and take the hosts away."""
        self._stack.close()

    def _make_switch(self) -> None:
        _ip("netns", "add", self._switch)
        self._stack.callback(_ip, "netns", "del", self._switch)
        _ip("-n", self._switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "br0", "up")

    def _make_host(self, i: int) -> None:
        name, names = self.names[i], ["127.0.0.1 localhost"]
        for other, address in zip(self.names, self.addresses, strict=True):
            own = "127.0.1.1" if self._loopback and other == name else address
            names.append(f"{own} {other}")
        (self.folder / f"hosts{i}").write_text("\n".join(names) + "\n")
        _ip("netns", "add", name)
        self._stack.callback(_ip, "netns", "del", name)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            *("-n", name, "link", "add", "eth0", "type", "veth"),
            *("peer", "name", f"p{i}", "netns", self._switch),
        )
        _ip("-n", name, "addr", "add", f"{self.addresses[i]}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", self._switch, "link", "set", f"p{i}", "master", "br0")
        _ip("-n", self._switch, "link", "set", f"p{i}", "up")
        first = (
            f"hostname {name} && mount --bind {self.folder}/hosts{i} /etc/hosts && "
            "mount -t tmpfs -o mode=1777 shm /dev/shm && echo up && "
            "while :; do sleep 3600 & wait $!; done"
        )
        keeper = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "--"),  # also if this process is killed
                *("nsenter", f"--net=/run/netns/{name}", "unshare", "--mount", "--uts", "--ipc"),
                *("--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", first),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # says that a mask of signals is of another system
            start_new_session=True,
        )
        self._keepers.append(keeper)
        assert keeper.stdout
        if keeper.stdout.readline() != b"up\n":
            raise OSError(f"host {name} did not come up")
        children = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text()
        self._firsts.append(int(children))
        self._stack.callback(self._end_host, i)

    def _end_host(self, i: int) -> None:
        self.lose(i)
        self._keepers[i].wait()

    def argv(self, i: int, command: Sequence[str], folder: str | Path = "/") -> list[str]:
        """Return a command line that runs a command on a host, in a folder; SIGTERM reaches it."""
        enter = ["--mount", "--uts", "--ipc", "--net", "--pid"]
        return [
            *("nsenter", "--target", str(self._firsts[i]), *enter),
            *("--", "setpriv", "--pdeathsig", "TERM"),
            *("bash", "-c", 'cd "$0" && exec "$@"', str(folder), *command),
        ]

    def run(self, i: int, *command: str, folder: str | Path = "/", **options: Any) -> str:
        """Run a command on a host and return what it printed; raise if it fails."""
        options = {"timeout": PATIENCE, "stderr": subprocess.PIPE} | options
        done = subprocess.run(
            self.argv(i, command, folder), stdout=subprocess.PIPE, text=True, **options
        )
        if done.returncode:
            raise OSError(f"{command} on {self.names[i]}: {done.returncode}: {done.stderr}")
        return done.stdout

    def pids(self, i: int) -> list[int]:
        """Return the IDs, as seen from outside, of all processes on a host but its first."""
        found = subprocess.run(["ip", "netns", "pids", self.names[i]], stdout=subprocess.PIPE)
        own = {self._firsts[i], self._keepers[i].pid}
        return [int(pid) for pid in found.stdout.split() if int(pid) not in own]

    def find(self, i: int, *words: str) -> list[int]:
        """Return the IDs of the processes on a host whose command line has all the words."""
        found = []
        for pid in self.pids(i):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if all(word in line for word in words):
                    found.append(pid)
        return found

    def kill(self, i: int, *words: str) -> int:
        """Kill the processes on a host whose command line has all the words; return how many."""
        found = self.find(i, *words)
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def cut(self, i: int) -> None:
        """Unplug a host's network cable."""
        _ip("-n", self.names[i], "link", "set", "eth0", "down")

    def plug(self, i: int) -> None:
        """Plug a host's network cable in again."""
        _ip("-n", self.names[i], "link", "set", "eth0", "up")

    def lose(self, i: int) -> None:
        """Let a host lose its power: all its processes are gone at once."""
        with suppress(ProcessLookupError):
            os.kill(self._firsts[i], signal.SIGKILL)


def killed(role: str) -> Callable[[Any], object]:
    """Return a fault: of a job, whose processes write their IDs, host 1 loses the one of a role."""
    return lambda job: job.hosts.run(1, "kill", "-KILL", (job.folder / f"{role}-1.pid").read_text())


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=PATIENCE)
