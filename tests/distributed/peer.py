"""A client that sends any bytes or frames to a server, with the keys of its job; and bad frames."""

from __future__ import annotations

import random
import socket
import uuid
from collections.abc import Sequence
from typing import Any

from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.stream import Stream, greet
from gnnlab.launch.certificates import server_name


class Peer:
    """A connection to the first server of a job; it is made again where the server ends it."""

    def __init__(self, job: JobSettings) -> None:
        self.job, self.identity = job, uuid.uuid4().bytes
        self.tls = job.keys.context(is_server=False) if job.keys else None
        self.stream = self.connect()

    def connect(self) -> Stream:
        link = socket.create_connection(self.job.addresses[0], 60)
        return greet(link, self.identity, self.tls, server_name(0), 60)

    def send(self, frames: Sequence[Any]) -> None:
        """Send frames, and drop what has come; the server ends the connection if there are none."""
        self.stream.link.settimeout(60)
        self.stream.send(frames)
        if not frames:
            self.await_end()
            return
        self.stream.link.setblocking(False)
        while self.stream.receive() is not None:
            pass

    def send_raw(self, data: bytes) -> None:
        """Send bytes that are no message, for which the server ends the connection."""
        self.stream.link.settimeout(60)
        self.stream.link.sendall(data)
        self.await_end()

    def await_end(self) -> None:
        try:
            while True:
                self.stream.receive()
        except (OSError, wire.BadFrame):
            self.stream.close()
            self.stream = self.connect()

    def ask(self, message: Any, number: int = 1 << 20) -> Any:
        """Send a good message and return the reply; what comes before it is dropped."""
        self.stream.link.settimeout(60)
        self.stream.send(wire.encode_request(number, message))
        while True:
            frames = self.stream.receive()
            found, reply = wire.decode_reply(frames, {number: type(message)})
            if found == number:
                return reply

    def is_through(self) -> bool:
        """Whether the server has seen all that was sent, and answers."""
        return bool(self.ask(m.Hello()))

    def close(self) -> None:
        self.stream.close()


def mutated(frames: list[bytes], chance: random.Random) -> list[bytes]:
    """Frames with something wrong: bits, lengths, order, number, or all of it."""
    frames = [bytearray(frame) for frame in frames]
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        i = chance.randrange(len(frames))
        match chance.randrange(6):
            case 0 if frames[i]:
                frames[i][chance.randrange(len(frames[i]))] ^= 1 << chance.randrange(8)
            case 1:
                del frames[i][chance.randrange(len(frames[i]) + 1) :]
            case 2:
                frames[i] += chance.randbytes(chance.choice([1, 8, 1000]))
            case 3:
                frames[i] = bytearray(chance.randbytes(chance.randrange(64)))
            case 4:
                frames.insert(i, bytearray(chance.randbytes(chance.randrange(20))))
            case _ if len(frames) > 1:
                del frames[i]
    return [bytes(frame) for frame in frames]
