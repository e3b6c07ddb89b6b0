"""Messages over a TCP connection, in the clear or with TLS 1.3.

A message is a mark and the number of its frames, the length of each frame, and the frames; see
:mod:`gnnlab.distributed.wire` for what is in them. A connection begins with a greeting, which
identifies the client, so that a server recognizes a request that is sent again on a new connection.
The kernel notices within four seconds that the other host cannot be reached.

References
----------
RFC 8446, "The Transport Layer Security Protocol Version 1.3". RFC 5482, "TCP User Timeout Option".
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gnnlab.distributed import wire
from gnnlab.errors import GNNLabError

_HELLO, _NO = b"gnnlab\0\1", b"gnnlab\0\0"  # the last byte is the version
_IDENTITY = 16  # bytes
_PREFIX = struct.Struct("<4sI")  # mark, number of frames
_MARK = b"GNN\1"
_ALIGNED = 8  # frames begin at multiples of it, so that tensors can view them
_LARGE = 1 << 16  # bytes from which a frame is sent from where it is
_LINGER = 1.0  # seconds for which the peer may read why it was refused
_UNREACHABLE = 4  # seconds after which a host that does not answer is lost


class Refused(GNNLabError):
    """The other side does not accept this process, or is not accepted by it."""


class Stream:
    """Messages over a connected socket, for one thread at a time; ``peer`` names the client."""

    def __init__(self, link: socket.socket, peer: bytes) -> None:
        self.link, self.peer = link, peer
        self._messages = self._read()

    def send(self, frames: Sequence[Any]) -> None:
        """Send a message without copying large frames; raise OSError if the connection broke."""
        sizes = [len(frame) for frame in frames]
        start = bytearray(_PREFIX.pack(_MARK, len(frames)))
        start += struct.pack(f"<{len(frames)}Q", *sizes)
        is_large = max(sizes, default=0) >= _LARGE
        if is_large:
            self._cork(True)
        for frame, size in zip(frames, sizes, strict=True):
            if size < _LARGE:
                start += frame
            else:
                self.link.sendall(start)
                self.link.sendall(frame)
                start.clear()
            start += bytes(-size % _ALIGNED)
        self.link.sendall(start)
        if is_large:
            self._cork(False)

    def _cork(self, is_on: bool) -> None:
        """Send full packets only, or all that is left: TLS writes 16 KiB at a time."""
        if hasattr(socket, "TCP_CORK"):  # Linux
            self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, is_on)

    def receive(self) -> list[memoryview] | None:
        """Return the frames of the next message, in memory of their own.

        None if further bytes must arrive first; a socket that blocks waits for them instead. Raises
        OSError if the connection is broken or has ended, and BadFrame if the bytes are no message,
        after which the stream cannot be used any more.
        """
        return next(self._messages)

    def _read(self) -> Generator[list[memoryview] | None, None, None]:
        while True:
            mark, count = _PREFIX.unpack((yield from self._fill(_PREFIX.size)))
            if mark != _MARK or not 1 <= count <= wire.MAX_FRAMES:
                raise wire.BadFrame(f"no message begins with {mark!r} and {count} frames")
            sizes = struct.unpack(f"<{count}Q", (yield from self._fill(8 * count)))
            if max(sizes) > wire.MAX_FRAME or sum(sizes) > 2 * wire.MAX_FRAME:
                raise wire.BadFrame(f"a message of {sum(sizes):,} bytes is too large")
            # The system provides memory when bytes arrive, not when a peer announces them.
            total = sum(size + -size % _ALIGNED for size in sizes)
            yield _views((yield from self._fill(total)), sizes)

    def _fill(self, size: int) -> Generator[None, None, memoryview]:
        try:
            room = np.empty(size, np.uint8).data
        except MemoryError:
            raise wire.BadFrame(f"no memory for a message of {size:,} bytes") from None
        got = 0
        while got < size:
            try:
                count = self.link.recv_into(room[got:])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                yield None
                continue
            if not count:
                raise ConnectionResetError("the connection has ended")
            got += count
        return room

    def close(self) -> None:
        """Close the connection."""
        self.link.close()


def _views(room: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    found, start = [], 0
    for size in sizes:
        found.append(room[start : start + size])
        start += size + -size % _ALIGNED
    return found


def greet(
    link: socket.socket, identity: bytes, context: ssl.SSLContext | None, name: str, timeout: float
) -> Stream:
    """Begin a connection, as the client; the socket of the stream does not block.

    ``identity``, 16 bytes, is the same for all connections of a client. ``context`` is for TLS, and
    ``name`` the one that the server's certificate must have; each step may take ``timeout``
    seconds. If this fails, ``link`` is closed. Raises Refused if the server has no such certificate
    from the job's authority, does not accept this process, or is no server of gnnlab, and OSError
    if the connection ended, or took too long.
    """
    try:
        link.settimeout(timeout)
        _set_options(link)
        if context is not None:
            link = context.wrap_socket(link, server_hostname=name)
        link.sendall(_HELLO + identity)
        answer = _read_exactly(link, len(_HELLO))
        if answer and answer != _HELLO:
            raise Refused(f"it answers {answer!r}")
        if not answer:
            raise ConnectionResetError("the connection has ended")
        link.setblocking(False)
        return Stream(link, identity)
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        link.close()
        raise ConnectionResetError("the connection has ended") from None
    except ssl.SSLError as error:
        link.close()
        raise Refused(str(error)) from None
    except BaseException:
        link.close()
        raise


def accept(link: socket.socket, context: ssl.SSLContext | None, timeout: float) -> Stream:
    """Begin a connection, as the server, whose socket blocks; otherwise as :func:`greet`."""
    try:
        link.settimeout(timeout)
        _set_options(link)
        if context is not None:
            link = context.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
            link.do_handshake()  # type: ignore[attr-defined]
        hello = _read_exactly(link, len(_HELLO) + _IDENTITY)
        if hello and not hello.startswith(_HELLO):
            raise Refused(f"it begins with {hello[: len(_HELLO)]!r}")
        if len(hello) < len(_HELLO) + _IDENTITY:
            raise ConnectionResetError("the connection has ended")
        link.sendall(_HELLO)
        link.settimeout(None)
        return Stream(link, hello[len(_HELLO) :])
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        link.close()
        raise ConnectionResetError("the connection has ended") from None
    except (Refused, ssl.SSLError) as error:
        _refuse(link)
        raise Refused(str(error)) from None
    except BaseException:
        link.close()
        raise


def _read_exactly(link: socket.socket, size: int) -> bytes:
    """Read bytes; fewer if the connection ends."""
    found = b""
    while len(found) < size and (more := link.recv(size - len(found))):
        found += more
    return found


def _refuse(link: socket.socket) -> None:
    """Refuse a peer so that it can read this: closing with unread bytes would reset the link."""
    with suppress(OSError):
        link.settimeout(_LINGER)
        socket.socket.sendall(link, _NO)  # in the clear, for a peer that does not expect TLS
        link.shutdown(socket.SHUT_WR)  # from here on, also of TLS, bytes are read as they are
        for _ in range(100):
            if not link.recv(1 << 12):
                break
    link.close()


def _set_options(link: socket.socket) -> None:
    """Send at once, and notice a host that cannot be reached."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": 1,  # seconds
        "TCP_KEEPALIVE": 1,  # the same on macOS
        "TCP_KEEPINTVL": 1,
        "TCP_KEEPCNT": _UNREACHABLE - 1,
        "TCP_USER_TIMEOUT": 1000 * _UNREACHABLE,
    }
    for option, value in options.items():
        if hasattr(socket, option):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
