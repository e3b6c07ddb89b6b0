"""The process connected to Ray, and the relay to it; run as a script by ``backends/ray.py``.

    ray_hub.py hub FOLDER NUMBER                  # NUMBER 0: all nodes
    ray_hub.py relay SOCKET INDEX COMMAND...

It imports nothing of gnnlab: Ray sends :class:`NodeActor` to the nodes by value, as a class of
``__main__``, and Ray's workers need no gnnlab. A relay passes its standard streams to the hub, as
file descriptors and with a line of JSON, and waits for the exit status, one byte.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

_PLACED = 60.0  # seconds until nodes are reserved
_HEAD_LOST = 5.0  # seconds for the head to accept a connection
_FAREWELL = 8.0  # seconds for programs to end after their standard input has
_LAST = 3.0  # seconds for which an actor outlives its program, and for the hub to leave Ray
_LOST = 255  # exit status when Ray fails, as ssh has it
_PIECE = 1 << 16  # bytes; Ray sends results of this size directly


class NodeActor:
    """Actor: a program and its standard streams. Its methods block, each in its own thread."""

    def __init__(self, command: Sequence[str], folder: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=folder if os.path.isdir(folder) else None,
            start_new_session=True,  # Ray kills the process group of an actor that ends
        )

    def write(self, data: bytes) -> None:
        """Write to standard input; close it after b""."""
        stdin: Any = self._process.stdin
        with suppress(OSError, ValueError):  # the program has ended
            stdin.write(data)
            stdin.flush() if data else stdin.close()

    def read(self, kind: int) -> bytes:
        """Read standard output (1) or error (2); b"" at its end."""
        stream: Any = self._process.stdout if kind == 1 else self._process.stderr
        return os.read(stream.fileno(), _PIECE)

    def wait(self) -> int:
        """Return the exit status when the program has ended; this actor ends soon after it."""
        status = self._process.wait()
        # Also without a hub or a head that would end this actor; until then the hub reads the rest.
        threading.Timer(_LAST, os._exit, (0,)).start()
        return status if status >= 0 else 128 - status


class Hub:
    """Connects relays with actors."""

    def __init__(self, folder: str, number: int) -> None:
        import ray

        self._ray = ray
        self._actors: list[Any] = []
        self._relays: list[socket.socket] = []
        self._problem = ""
        address = os.environ.get("RAY_ADDRESS") or "auto"
        try:
            ray.init(address, logging_level="ERROR", log_to_driver=False)
        except Exception as error:
            raise ValueError(
                f"no connection to a Ray cluster at {address}: {error}; start this on a node of a "
                "cluster or by `ray job submit`, or set RAY_ADDRESS to HOST:6379 (not to http://…, "
                "where Ray takes jobs)"
            ) from None
        self._nodes = self._reserve(number)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(folder, "socket"))
        self._listener.listen()

    def hosts(self) -> list[dict[str, Any]]:
        """Return the fields of gnnlab.launch.backends.Host for each node."""
        names = [node["NodeManagerHostname"] for node in self._nodes]
        places = [node["NodeManagerAddress"] for node in self._nodes]
        return [
            {"name": name if names.count(name) == 1 else place, "address": place}
            for name, place in zip(names, places, strict=True)
        ]

    def _reserve(self, number: int) -> list[dict[str, Any]]:
        """Reserve nodes: of those with most resources, each as much as the smallest has."""
        from ray.util.placement_group import placement_group, placement_group_table

        nodes = [n for n in self._ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
        nodes.sort(key=_by_address)
        number = number or len(nodes)
        if len(nodes) < number or not nodes:
            raise ValueError(
                f"{number} machines are needed, one for each part of the graph, but the Ray "
                f"cluster has {len(nodes)} nodes with processors; add nodes, or partition the "
                f"graph into {len(nodes)}"
            )
        sizes = [(n["Resources"].get("GPU", 0.0), n["Resources"]["CPU"]) for n in nodes]
        largest = sorted(sizes, reverse=True)[:number]
        self._bundle = {"CPU": min(cpus for _, cpus in largest)}
        if gpus := min(gpus for gpus, _ in largest):
            self._bundle["GPU"] = gpus
        self._group = placement_group([dict(self._bundle)] * number, strategy="STRICT_SPREAD")
        if not self._group.wait(_PLACED):
            raise ValueError(
                f"{number} nodes with {self._bundle} each are not free in the Ray cluster within "
                f"{_PLACED:g} s; `ray status` shows what is in use"
            )
        placed = placement_group_table(self._group)["bundles_to_node_id"]
        bundles = {identity: int(bundle) for bundle, identity in placed.items()}
        return [n | {"bundle": bundles[n["NodeID"]]} for n in nodes if n["NodeID"] in bundles]

    def serve(self) -> None:
        """Serve relays until standard input ends; then end all programs, and leave Ray."""
        in_thread(self._watch_head)
        in_thread(self._accept)
        while os.read(0, _PIECE):
            pass
        self._end_programs()
        deadline = time.monotonic() + _FAREWELL
        for relay in list(self._relays):
            relay.settimeout(max(deadline - time.monotonic(), 0.01))
            with suppress(OSError):
                relay.recv(1)  # it has ended, or the launcher has killed it: its host is lost

        # With the connection end the actors and the placement group; without a head it takes long.
        in_thread(self._ray.shutdown).join(_LAST)

    def _end_programs(self) -> None:
        for actor in list(self._actors):
            actor.write.remote(b"")

    def _watch_head(self) -> None:
        """Notice the loss of the head: Ray itself waits a minute for it to come back."""
        host, _, port = self._ray.get_runtime_context().gcs_address.rpartition(":")
        with suppress(OSError):
            while True:
                time.sleep(1.0)
                socket.create_connection((host.strip("[]"), int(port)), _HEAD_LOST).close()
        self._problem = f"the head of the Ray cluster, {host}:{port}, is lost"
        self._end_programs()

    def _get(self, reference: Any) -> Any:
        """Wait for a result, but not longer than the head lives."""
        while not self._problem:
            with suppress(self._ray.exceptions.GetTimeoutError):
                return self._ray.get(reference, timeout=1.0)
        raise ConnectionError(self._problem)

    def _accept(self) -> None:
        while True:
            self._relays.append(self._listener.accept()[0])
            in_thread(self._run, self._relays[-1])

    def _run(self, relay: socket.socket) -> None:
        """Run a program for a relay."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        streams = socket.recv_fds(relay, 1, 3)[1]
        index, command, folder = json.loads(relay.makefile().readline())
        strategy = PlacementGroupSchedulingStrategy(self._group, self._nodes[index]["bundle"])
        options = {"num_cpus": self._bundle["CPU"], "num_gpus": self._bundle.get("GPU", 0)}
        options |= {"scheduling_strategy": strategy, "max_concurrency": 8}
        get = self._get
        try:
            actor = self._ray.remote(NodeActor).options(**options).remote(command, folder)
            self._actors.append(actor)
            ended = actor.wait.remote()
            copies = (
                # Each write is waited for, so they arrive in order.
                (lambda: os.read(streams[0], _PIECE), lambda data: get(actor.write.remote(data))),
                (lambda: get(actor.read.remote(1)), lambda data: os.write(streams[1], data)),
                (lambda: get(actor.read.remote(2)), lambda data: os.write(streams[2], data)),
            )
            _, *shown = [in_thread(_copy, *copy) for copy in copies]
            status = get(ended)
            for thread in shown:
                thread.join()
            if self._problem:  # it may be why the program has ended
                raise ConnectionError(self._problem)
        except Exception as error:
            status, why = _LOST, str(error).strip().splitlines()[-1]
            with suppress(OSError):
                os.write(streams[2], f"Ray: {why}\n".encode())
        for stream in streams[1:]:
            os.close(stream)
        with suppress(OSError):
            relay.sendall(bytes([status]))


def _copy(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    """Copy a stream and its end, b""; after a failure stop, since _run reports it."""
    with suppress(Exception):
        data = b"more"
        while data:
            write(data := read())


def in_thread(work: Callable[..., None], *args: Any) -> threading.Thread:
    """Run a function in a thread that does not keep the process from ending."""
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def _by_address(node: dict[str, Any]) -> str:
    return re.sub(r"\d+", lambda digits: digits[0].zfill(5), node["NodeManagerAddress"])


def hub(folder: str, number: str) -> None:
    """Run the hub; the first line that it prints is JSON, with ``hosts`` or ``problem``."""
    try:
        served = Hub(folder, int(number))
    except ValueError as error:
        print(json.dumps({"problem": str(error)}), flush=True)
        os._exit(2)
    print(json.dumps({"hosts": served.hosts()}), flush=True)
    served.serve()
    shutil.rmtree(folder, ignore_errors=True)  # the launcher may have been killed
    os._exit(0)


def relay(path: str, index: str, *command: str) -> None:
    """Pass the standard streams to the hub, and end with the program's exit status."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    socket.send_fds(line, [b"\0"], [0, 1, 2])
    line.sendall(json.dumps([int(index), command, os.getcwd()]).encode() + b"\n")
    status = line.recv(1)
    if not status:
        os.write(2, b"Ray: the process connected to Ray has ended\n")
    os._exit(status[0] if status else _LOST)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM):  # the launcher ends us, after the agents
        signal.signal(each, signal.SIG_IGN)
    role = hub if sys.argv[1] == "hub" else relay
    role(*sys.argv[2:])
