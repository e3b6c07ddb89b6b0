"""The process that is connected to Ray, and the relay to it; run as a script by ``engines/ray.py``.

    ray_hub.py hub FOLDER NUMBER                  # NUMBER 0: all nodes
    ray_hub.py relay SOCKET INDEX COMMAND...

It imports nothing of gnnlab: Ray sends :class:`Runner` to the nodes by value, as a class of
``__main__``, and Ray's workers need no gnnlab. On the socket, the hub sends frames of a byte for
the kind (0: exit status, 1: standard output, 2: standard error), a length and data; a relay sends a
line of JSON, then its standard input.
"""

from __future__ import annotations

import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import struct
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
_LAST = 3.0  # seconds for which an actor outlives its program
_LOST = 255  # exit status when Ray fails, as ssh has it
_FRAME = struct.Struct("!BI")


class Runner:
    """Actor: a child process, its standard input, and what it prints.

    Methods are called from several threads, so a reader may wait while input is written.
    """

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
        assert self._process.stdout and self._process.stderr
        self._said: queue.Queue[tuple[int, bytes]] = queue.Queue(64)
        streams = {1: self._process.stdout.fileno(), 2: self._process.stderr.fileno()}
        readers = [
            threading.Thread(target=self._read, args=each, daemon=True) for each in streams.items()
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self._end, args=(readers,), daemon=True).start()

    def _read(self, kind: int, descriptor: int) -> None:
        while some := os.read(descriptor, 1 << 16):
            self._said.put((kind, some))

    def _end(self, readers: Sequence[threading.Thread]) -> None:
        for reader in readers:
            reader.join()
        status = self._process.wait()
        self._said.put((0, bytes([status if status >= 0 else 128 - status])))
        time.sleep(_LAST)  # for the hub to read it
        os._exit(0)  # also without a hub or a head that would end this actor

    def write(self, data: bytes) -> None:
        """Write to standard input; close it after b""."""
        stdin = self._process.stdin
        assert stdin
        with suppress(OSError, ValueError):  # the program has ended
            if data:
                stdin.write(data)
                stdin.flush()
            else:
                stdin.close()

    def read(self) -> list[tuple[int, bytes]]:
        """Return what was printed since the last call, at the latest after a second."""
        found: list[tuple[int, bytes]] = []
        with suppress(queue.Empty):
            found.append(self._said.get(timeout=1.0))
            while True:
                found.append(self._said.get_nowait())
        return found


class Hub:
    """Connects relays with actors."""

    def __init__(self, folder: str, number: int) -> None:
        import ray

        self._ray, self._folder = ray, folder
        address = os.environ.get("RAY_ADDRESS") or "auto"
        if address.startswith("http"):
            raise ValueError(
                f"RAY_ADDRESS is {address}, where Ray takes jobs; set it to the cluster's address, "
                "HOST:6379, or start this by `ray job submit`"
            )
        try:
            ray.init(address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ValueError(
                f"no connection to a Ray cluster at {address}: {error}; start this on a node of a "
                "cluster, or set RAY_ADDRESS to HOST:6379"
            ) from None
        head = ray.get_runtime_context().gcs_address
        self._head = head.rpartition(":")[0].strip("[]"), int(head.rpartition(":")[2])
        self._nodes = self._reserve(number)
        self._open: dict[int, Callable[[bytes], Any]] = {}  # index -> write to its actor
        self._relays: dict[int, socket.socket] = {}
        self._problem = ""

    def hosts(self) -> list[dict[str, Any]]:
        """Return the fields of gnnlab.engines.Host for each node."""
        names = [node["NodeManagerHostname"] for node in self._nodes]
        places = [node["NodeManagerAddress"] for node in self._nodes]
        return [
            {
                "name": name if names.count(name) == 1 else place,
                "address": place,
                "num_cpus": int(self._bundle["CPU"]),
                "num_gpus": int(self._bundle.get("GPU", 0)),
            }
            for name, place in zip(names, places, strict=True)
        ]

    def _reserve(self, number: int) -> list[dict[str, Any]]:
        """Reserve nodes: of those with most resources, each as much as the smallest has."""
        from ray.util.placement_group import placement_group, placement_group_table

        nodes = [n for n in self._ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
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
        by_id = {node["NodeID"]: node for node in nodes}
        chosen = [by_id[identity] | {"bundle": int(bundle)} for bundle, identity in placed.items()]
        return sorted(chosen, key=lambda node: _in_order(node["NodeManagerAddress"]))

    def serve(self) -> None:
        """Serve relays until standard input ends or the head is lost; then end all programs."""
        threading.Thread(target=self._watch_head, daemon=True).start()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(self._folder, "socket"))
        listener.listen()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        print(json.dumps({"hosts": self.hosts()}), flush=True)
        while os.read(0, 1 << 10):
            pass
        deadline = time.monotonic() + _FAREWELL
        for write in list(self._open.values()):
            write(b"")
        # Not for those whose relay the launcher has killed: their hosts are lost.
        while any(not _is_closed(self._relays[index]) for index in list(self._open)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)

    def leave(self) -> None:
        """End the actors, and the connection to Ray."""
        from ray.util.placement_group import remove_placement_group

        with suppress(Exception):
            remove_placement_group(self._group)
            self._ray.shutdown()

    def _watch_head(self) -> None:
        """Notice the loss of the head: Ray itself waits a minute for it to come back."""
        while True:
            time.sleep(1.0)
            try:
                socket.create_connection(self._head, _HEAD_LOST).close()
            except OSError as error:
                host, port = self._head
                self._problem = (
                    f"the head of the Ray cluster, {host}:{port}, is lost: {error}. Jobs end "
                    "with it"
                )
                for write in list(self._open.values()):
                    write(b"")
                time.sleep(1.0)
                return

    def _accept(self, listener: socket.socket) -> None:
        while True:
            relay = listener.accept()[0]
            threading.Thread(target=self._connect, args=(relay,), daemon=True).start()

    def _connect(self, relay: socket.socket) -> None:
        """Run a program for a relay."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        stream = relay.makefile("rb", buffering=0)
        index, command, folder = json.loads(stream.readline())
        where = PlacementGroupSchedulingStrategy(self._group, self._nodes[index]["bundle"])
        status, self._relays[index] = _LOST, relay
        try:
            actor = (
                self._ray.remote(Runner)
                .options(
                    num_cpus=self._bundle["CPU"],
                    num_gpus=self._bundle.get("GPU", 0),
                    scheduling_strategy=where,
                    max_concurrency=3,
                )
                .remote(command, folder)
            )
            self._open[index] = actor.write.remote
            args = (stream, actor)
            threading.Thread(target=self._feed, args=args, daemon=True).start()
            status = self._show(actor, relay)
        except Exception as error:
            why = self._problem or str(error).strip().splitlines()[-1]
            with suppress(OSError):
                _send(relay, 2, f"Ray: {why}\n".encode())
        self._open.pop(index, None)
        with suppress(OSError):
            _send(relay, 0, bytes([status]))

    def _feed(self, stream: Any, actor: Any) -> None:
        with suppress(Exception):  # the reader of the actor reports its loss
            while data := stream.read(1 << 16):
                self._ray.get(actor.write.remote(data))  # one after the other: in order
        actor.write.remote(b"")

    def _show(self, actor: Any, relay: socket.socket) -> int:
        while not self._problem:
            for kind, data in self._ray.get(actor.read.remote()):
                if kind == 0:
                    return int(data[0])
                with suppress(OSError):  # without its relay, the program ends soon
                    _send(relay, kind, data)
        raise ConnectionError(self._problem)


def _in_order(address: str) -> str:
    return re.sub(r"\d+", lambda digits: digits[0].zfill(5), address)


def _is_closed(relay: socket.socket) -> bool:
    """Whether the peer has ended; a peer whose standard input has ended still reads."""
    poll = select.poll()
    poll.register(relay, 0)  # POLLHUP is always reported
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def _send(relay: socket.socket, kind: int, data: bytes) -> None:
    relay.sendall(_FRAME.pack(kind, len(data)) + data)


def hub(folder: str, number: str) -> None:
    """Run the hub; the first line that it prints is JSON, with ``hosts`` or ``problem``."""
    for each in (signal.SIGINT, signal.SIGTERM):  # the launcher ends us, after the agents
        signal.signal(each, signal.SIG_IGN)
    try:
        served = Hub(folder, int(number))
    except ValueError as error:
        print(json.dumps({"problem": str(error)}), flush=True)
        os._exit(2)
    served.serve()
    leaving = threading.Thread(target=served.leave, daemon=True)
    leaving.start()
    leaving.join(3.0)  # without a head, this would take a minute
    shutil.rmtree(folder, ignore_errors=True)  # the launcher may have been killed
    os._exit(0)


def relay(path: str, index: str, *command: str) -> None:
    """Forward standard streams to and from the hub."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    line.sendall(json.dumps([int(index), command, os.getcwd()]).encode() + b"\n")

    def feed() -> None:
        with suppress(OSError):
            while data := os.read(0, 1 << 16):
                line.sendall(data)
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)

    threading.Thread(target=feed, daemon=True).start()
    frames = line.makefile("rb")
    while len(head := frames.read(_FRAME.size)) == _FRAME.size:
        kind, size = _FRAME.unpack(head)
        data = frames.read(size)
        if kind == 0:
            os._exit(data[0])
        with suppress(OSError):
            os.write(kind, data)  # blocking pipes take all
    os.write(2, b"Ray: the process connected to Ray has ended\n")
    os._exit(_LOST)


if __name__ == "__main__":
    role = hub if sys.argv[1] == "hub" else relay
    role(*sys.argv[2:])
