"""Who may connect to whom: servers and clients with certificates of one job, and strangers."""

from __future__ import annotations

import json
import ssl
from dataclasses import replace

import pytest

from gnnlab.launch.certificates import Authority, Keys, request, server_name

JOB, OTHER = Authority(), Authority()
SERVER, CLIENT = JOB.issue("server", 1), JOB.issue("client", 0)


def talk(server: Keys, client: Keys, machine: int = 1) -> tuple[bytes, bytes]:
    """What a server and a client that looks for the servers of a machine hear of each other.

    Each side sends its name, and the handshake is driven without sockets.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        server.context(is_server=True).wrap_bio(to_server, to_client, server_side=True),
        client.context(is_server=False).wrap_bio(
            to_client, to_server, server_hostname=server_name(machine)
        ),
    )
    for _ in range(3):  # neither side needs more turns for a handshake
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    for side, word in zip(sides, (b"server", b"client"), strict=True):
        assert side.version() == "TLSv1.3"
        side.write(word)
    return sides[0].read(), sides[1].read()


def test_a_client_and_the_server_it_looks_for() -> None:
    assert talk(SERVER, CLIENT) == (b"client", b"server")
    assert talk(JOB.issue("server", 1), JOB.issue("client", 7)) == (b"client", b"server")


@pytest.mark.parametrize(
    ("server", "client", "machine", "reason"),
    [
        pytest.param(SERVER, CLIENT, 0, "mismatch, certificate is not valid for 'server-0'",
                     id="a server of another machine"),
        pytest.param(SERVER, JOB.issue("server", 1), 1, "unsuitable certificate purpose",
                     id="a server's certificate at a client"),
        pytest.param(CLIENT, CLIENT, 1, "unsuitable certificate purpose",
                     id="a client's certificate at a server"),
        pytest.param(SERVER, OTHER.issue("client", 0), 1, "certificate verify failed",
                     id="a client of another job"),
        pytest.param(OTHER.issue("server", 1), CLIENT, 1, "certificate verify failed",
                     id="a server of another job"),
        pytest.param(SERVER, replace(OTHER.issue("client", 0), authority=JOB.certificate), 1,
                     "certificate verify failed", id="a client that knows the authority"),
        pytest.param(replace(OTHER.issue("server", 1), authority=JOB.certificate), CLIENT, 1,
                     "certificate verify failed", id="a server that knows the authority"),
    ],
)  # fmt: skip
def test_others_are_refused(server: Keys, client: Keys, machine: int, reason: str) -> None:
    with pytest.raises(ssl.SSLError, match=reason):
        talk(server, client, machine)


def test_a_client_without_a_certificate_is_refused() -> None:
    class Anonymous(Keys):
        def context(self, is_server: bool) -> ssl.SSLContext:
            return ssl.create_default_context(cadata=self.authority)

    with pytest.raises(ssl.SSLError, match="peer did not return a certificate"):
        talk(SERVER, Anonymous(**vars(CLIENT)))


def test_an_older_tls_is_refused() -> None:
    class Older(Keys):
        def context(self, is_server: bool) -> ssl.SSLContext:
            found = super().context(is_server)
            found.minimum_version = ssl.TLSVersion.TLSv1_2
            found.maximum_version = ssl.TLSVersion.TLSv1_2
            return found

    for server, client in ((SERVER, Older(**vars(CLIENT))), (Older(**vars(SERVER)), CLIENT)):
        with pytest.raises(ssl.SSLError, match=r"(?i)protocol"):
            talk(server, client)


def test_keys_are_not_shown_and_make_a_round_trip() -> None:
    assert CLIENT.secret not in repr(CLIENT) and "PRIVATE" not in repr(CLIENT)
    found = json.loads(CLIENT.to_json())
    assert found.keys() == {"authority", "certificate", "secret"}
    assert Keys(**found) == CLIENT and CLIENT.certificate != SERVER.certificate


@pytest.mark.parametrize("is_server", [False, True])
def test_a_certificate_of_another_key(is_server: bool) -> None:
    with pytest.raises(ssl.SSLError, match="mismatch"):
        replace(CLIENT, secret=SERVER.secret).context(is_server)
    with pytest.raises(ssl.SSLError, match="mismatch"):
        replace(CLIENT, certificate=SERVER.certificate).context(is_server)


def test_the_secret_stays_where_it_was_made() -> None:
    """A host sends a request, and the authority sends a certificate."""
    secret, asked = request()
    assert "PRIVATE" not in asked
    keys = Keys(JOB.certificate, JOB.sign(asked, "client", 0), secret)
    assert talk(SERVER, keys) == (b"client", b"server")
    with pytest.raises(ValueError, match=r"(?i)pem"):
        JOB.sign("no request", "client", 0)
