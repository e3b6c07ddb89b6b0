"""One connection: what is sent arrives, in aligned memory that is not kept, and options are set."""

from __future__ import annotations

import socket
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from gnnlab.distributed import connections, stream
from gnnlab.distributed.stream import Stream
from gnnlab.launch.certificates import Authority, server_name

JOB = Authority()
ME = bytes(range(16))
SIZES = [0, 1, 7, 8, 9, stream._LARGE - 1, stream._LARGE, 3 * stream._LARGE + 5]


@pytest.fixture(params=["plain", "tls"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Stream, Stream]]:
    """The ends of a connection: the client's, which does not block, and the server's."""
    keys = [JOB.issue(role, 0) for role in ("server", "client")]
    tls = [key.context(i == 0) if request.param == "tls" else None for i, key in enumerate(keys)]
    accepted: list[Stream] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            """Take the client; another may call first, whose server had this port before."""
            while not accepted:
                with suppress(stream.Refused, OSError):
                    found = stream.accept(listener.accept()[0], tls[0], 30)
                    if found.peer == ME:
                        accepted.append(found)

        thread = threading.Thread(target=take)
        thread.start()
        link = socket.create_connection(listener.getsockname(), 30)
        client = stream.greet(link, ME, tls[1], server_name(0), 30)
        thread.join(30)
    client.link.settimeout(30)
    yield client, accepted[0]
    client.close()
    accepted[0].close()


def test_frames_arrive_as_they_were(pair: tuple[Stream, Stream]) -> None:
    client, server = pair
    assert server.peer == ME
    chance = np.random.default_rng(0)
    for sizes in ([1], SIZES, SIZES[::-1], [8, 0], [5, 3 << 20]):
        sent = [chance.bytes(size) for size in sizes]
        sender = threading.Thread(target=client.send, args=(sent,))
        sender.start()
        found = server.receive()
        sender.join(30)
        assert found is not None and [bytes(frame) for frame in found] == sent
        starts = [np.frombuffer(frame, np.uint8).ctypes.data for frame in found if len(frame)]
        assert not any(start % 8 for start in starts)


def test_a_message_is_not_kept(pair: tuple[Stream, Stream]) -> None:
    """An idle connection of a server holds no memory of the last request."""
    client, server = pair
    client.send([bytes(1000)])
    found = server.receive()
    assert found is not None
    kept = weakref.ref(found[0].obj)
    assert kept() is not None
    del found
    assert kept() is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other options")
def test_both_ends_notice_a_host_that_is_cut_off(pair: tuple[Stream, Stream]) -> None:
    for end in pair:
        of = {
            name: end.link.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
            for name in ("NODELAY", "KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
        }
        assert end.link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert of["NODELAY"] and of["USER_TIMEOUT"] == 4000
        assert of["KEEPIDLE"] + of["KEEPINTVL"] * of["KEEPCNT"] <= 4
    assert of["USER_TIMEOUT"] / 1000 + connections._GRACE < 5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other options")
def test_the_end_of_a_large_message_does_not_wait(pair: tuple[Stream, Stream]) -> None:
    client, server = pair
    client.send([bytes(stream._LARGE)])
    assert server.receive() is not None
    assert not client.link.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK)
