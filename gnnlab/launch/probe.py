"""Collect facts about a machine. Runs on Python 3.8 or newer with the standard library alone.

The doctor sends this file through ssh to machines on which gnnlab or torch may be missing or of
another version. It returns the facts as JSON; the doctor judges them.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

PACKAGES = ("torch", "numpy", "numba", "cryptography", "msgspec")
USABLE_RSYNC = re.compile(r"rsync +version v?(([3-9]|\d\d)\S*)")


def examine(request: dict[str, Any]) -> dict[str, Any]:
    """Return the facts.

    A request has the ``address`` of this machine or '', ``peers`` as [address, port], ``ports`` to
    try, ``workspace``, ``part_config`` relative to it or None, ``part`` or None for all. With
    ``mark``, ``address`` is the name that a cluster has for this machine, and the workspace is
    shared if it has a file of that name ('': unknown).
    """
    workspace = os.path.expanduser(request["workspace"] or ".")
    existing = workspace
    while not os.path.isdir(existing or "."):
        existing = os.path.dirname(existing)
    mark, address = request.get("mark", ""), request["address"]
    if "mark" in request and request["peers"]:
        address = own_address(address, request["peers"][0][0])
    facts: dict[str, Any] = {
        "clock": time.time(),
        "versions": versions(),
        "interface": {peer: interface_to(peer) for peer, _ in request["peers"]},
        "unreachable": [peer for peer, port in request["peers"] if not _reaches(peer, port)],
        "is_own": _bind(address, 0) != errno.EADDRNOTAVAIL,
        "busy": [
            [port, *holder(port)]
            for port in request["ports"]
            if _bind(address, port) in (errno.EADDRINUSE, errno.EACCES)
        ],
        "rsync": rsync(),
        "shm": _shared_memory(),
        "memory": free_memory(),
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
            for name in (("NOFILE", "NPROC") if resource else ())
        },
        "workspace": os.path.isdir(workspace) and os.access(workspace, os.W_OK),
        "is_shared": not mark or os.path.exists(os.path.join(workspace, mark)),
        "disk": shutil.disk_usage(existing or ".").free,
        "gpus": _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines(),
        "processor": _processor(),
    }
    if request["part_config"]:
        config = os.path.join(workspace, request["part_config"])
        facts["partition"] = partition(config, request["part"])
    return facts


def versions() -> dict[str, str]:
    """Return the versions of Python, gnnlab and its dependencies; '' if not installed."""
    found = {"python": platform.python_version(), "gnnlab": ""}
    spec = importlib.util.find_spec("gnnlab")
    if spec is not None and spec.origin:
        with open(spec.origin, encoding="utf8") as file:
            match = re.search(r'^__version__ = "(.*)"', file.read(), re.MULTILINE)
            found["gnnlab"] = match[1] if match else "?"
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = ""
    return found


def own_address(name: str, peer: str) -> str:
    """Return the IP address at which this machine, called ``name``, can be reached from ``peer``.

    Debian lets a machine's own name stand for 127.0.1.1, which no other machine can reach; then the
    address is the one from which packets to ``peer`` leave.
    """
    found = []
    for each in (name, peer):
        with suppress(OSError):
            found.append(socket.getaddrinfo(each, 9, type=socket.SOCK_DGRAM)[0])
    if len(found) < 2:
        return name
    own, (family, kind, _, _, where) = str(found[0][4][0]), found[1]
    if _is_loopback(own) and not _is_loopback(str(where[0])):
        with suppress(OSError), socket.socket(family, kind) as probe:
            probe.connect(where)  # sends nothing
            return str(probe.getsockname()[0])
    return own


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def interface_to(address: str) -> str:
    """Return the network interface through which ``address`` is reached; '' if unknown."""
    with suppress(OSError):
        family, kind, _, _, where = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)  # sends nothing
            own = probe.getsockname()[0]
        if _is_loopback(own):
            return "lo"
        if fcntl is None:
            return ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for _, name in socket.if_nameindex():
                asked = struct.pack("256s", name.encode())
                with suppress(OSError):  # an interface without an IPv4 address
                    answer = fcntl.ioctl(any_socket, 0x8915, asked)  # SIOCGIFADDR
                    if socket.inet_ntoa(answer[20:24]) == own:
                        return name
    return ""


def _reaches(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 3).close()
    except ConnectionRefusedError:
        return True  # connection refused: the machine has answered
    except OSError:
        return False
    return True


def _bind(address: str, port: int) -> int:
    """Try to listen on a port; return the errno, or 0."""
    try:
        family, kind, _, _, where = socket.getaddrinfo(
            address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen()
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    except OSError as error:
        return error.errno or 0
    return 0


def holder(port: int) -> tuple[int, str]:
    """Return process ID and command of the process listening on a TCP port; (0, '') if unknown."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table) as file:
            for fields in map(str.split, file):
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) in sockets:
                pid = link.split("/")[2]
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    command = file.read().replace(b"\0", b" ").decode("utf8", "replace")
                return int(pid), command.strip()
    return 0, ""


def _output(*command: str) -> str:
    """Return what a program prints; '' if it is missing or fails."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True, timeout=20)
    return ""


def rsync() -> str:
    """Return rsync's name and version; '' if it is missing or older than 3."""
    found = USABLE_RSYNC.match(_output("rsync", "--version"))
    return f"rsync {found[1]}" if found else ""


def _shared_memory() -> list[int] | None:
    """Return total and free bytes of /dev/shm; None if it is not writable."""
    if not os.access("/dev/shm", os.W_OK):
        return None
    usage = shutil.disk_usage("/dev/shm")
    return [usage.total, usage.free]


def _processor() -> tuple[float, int, str]:
    """Return the load (running processes), the number of cores, and how threads of OpenMP wait."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return load, cores or 1, os.environ.get("OMP_WAIT_POLICY", "")


def free_memory() -> int | None:
    """Return the bytes that this process may still use; None if unknown.

    The least of what the machine has, what the control groups of this process allow, in which
    containers and Slurm's jobs run, and what is left of its address space (``ulimit -v``).
    """
    free = []
    with suppress(OSError, ValueError, AttributeError), open("/proc/meminfo") as file:
        found = re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.MULTILINE)
        free.append(1024 * int(found[1]))  # type: ignore[index]
    with suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, kinds, group = line.strip().split(":", 2)
            if kinds in ("", "memory"):
                free += _group_memory(f"/sys/fs/cgroup/{kinds}", group, kinds)
    with suppress(OSError, ValueError, AttributeError):  # Windows has no resource
        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(_text("/proc/self", "statm").split()[0]) * resource.getpagesize()
        free += [max(space - used, 0)] if space >= 0 else []  # negative: no limit
    return min(free) if free else None


def _group_memory(root: str, group: str, version_1: str) -> list[int]:
    """Return what a control group and those around it leave, where they have a limit."""
    limit, used, total = "memory.max", "memory.current", ""
    if version_1:
        limit, used, total = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
    free, names = [], group.strip("/").split("/")
    for depth in range(len(names) + 1):
        folder = os.path.join(root, *names[:depth])
        with suppress(OSError, ValueError):  # "max": no limit
            # Pages of files count as used, but the system takes them back.
            pages = rf"^{total}(?:in)?active_file (\d+)"
            files = sum(map(int, re.findall(pages, _text(folder, "memory.stat"), re.MULTILINE)))
            free.append(max(int(_text(folder, limit)) - int(_text(folder, used)) + files, 0))
    return free


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name)) as file:
        return file.read()


def partition(path: str, part: int | None) -> dict[str, Any]:
    """Compare the arrays of one part, or of all, with the checksums in the JSON file."""
    try:
        with open(path, "rb") as file:
            text = file.read()
        config = json.loads(text)
        parts = range(config["num_parts"]) if part is None else [part]
        wanted = {
            name: about
            for name, about in config["arrays"].items()
            if name.split("/")[0] in {f"part{i}" for i in parts}
        }
        faults = []
        for name, about in wanted.items():
            found = _damage(os.path.join(os.path.dirname(path), array_file(config, name)), about)
            faults += [[name, found]] if found else []
        size = sum(about["bytes"] for about in wanted.values())
        digest = hashlib.sha256(text).hexdigest()
        return {"parts": config["num_parts"], "bytes": size, "json": digest, "faults": faults}
    except FileNotFoundError:
        return {"error": "missing"}
    except (OSError, ValueError, LookupError, TypeError) as error:
        return {"error": repr(error)}


def array_file(config: dict[str, Any], name: str) -> str:
    """Return the file of an array, relative to the JSON file, from its name there."""
    part, kind, rest = name.split("/", 2)
    entry = {"graph": "part_graph", "node_data": "node_feats", "edge_data": "edge_feats"}[kind]
    place = config[part.replace("part", "part-")][entry]
    return f"{place}/{rest}"


def _damage(path: str, about: dict[str, Any]) -> str:
    try:
        size = os.path.getsize(path)
        if size != about["bytes"]:
            return f"{size} B, not {about['bytes']} B"
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    except OSError as error:
        return error.strerror or "unreadable"
    return "" if digest.hexdigest() == about["sha256"] else "sha256"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(examine(json.loads(sys.argv[1]))))
