"""Keys of a job, and the TLS contexts that use them: only processes of the job can connect.

A job has an authority of its own, which the launcher makes and which signs a certificate for the
servers and one for the clients of each host. Connections use TLS 1.3, in which both sides present
their certificates: a client accepts only the servers of the host that it wants to reach, and a
server accepts only clients. An agent makes the secret keys on its host and sends requests for
certificates, so that no secret key leaves its host.

References
----------
RFC 8446, "The Transport Layer Security Protocol Version 1.3". RFC 5280, "Internet X.509 Public Key
Infrastructure Certificate Profile".
"""

from __future__ import annotations

import json
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

# The clocks of hosts differ; a certificate ends with its job, whose authority nobody else knows.
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Keys:
    """What a process needs to prove that it belongs to a job; texts in PEM."""

    authority: str  # certificate of the job's authority
    certificate: str  # of this process, signed by the authority
    secret: str = field(repr=False)  # secret key of this process

    def to_json(self) -> str:
        """Return the value of ``GNNLAB_KEYS``."""
        return json.dumps(asdict(self))

    def context(self, is_server: bool) -> ssl.SSLContext:
        """Return a context for connections with mutual authentication by TLS 1.3.

        Raise ssl.SSLError if the texts are no certificates and key, or do not belong together.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.authority)
        if is_server:
            context.num_tickets = 0  # of sessions that could be resumed
        with _file(f"{self.secret}\n{self.certificate}") as name:
            context.load_cert_chain(name, password="")  # no question if the key is encrypted
        return context


class Authority:
    """Signs the certificates of one job; its secret key exists only in this object.

    Its ``certificate`` is in PEM. Needs the package ``cryptography``.
    """

    def __init__(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("gnnlab job")
        own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
        self.certificate = self._signed(
            self._name,
            self._key.public_key(),
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_usage(signs_certificates=True), True),
            (own, False),
        )

    def sign(self, request: str, role: str, machine: int) -> str:
        """Sign a :func:`request` for the role "server" or "client" of a machine, in PEM.

        Only its public key is used. Raise ValueError unless it is a request signed with that key.
        """
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

        try:
            found = x509.load_pem_x509_csr(request.encode())
            public_key, is_valid = found.public_key(), found.is_signature_valid
        except Exception as error:  # of several classes, for what may come from a host
            raise ValueError(
                f"a request for a certificate cannot be read: {error!s:.200}"
            ) from None
        if not is_valid:
            raise ValueError("a request for a certificate is not signed with its own key")
        usage = {"server": Usage.SERVER_AUTH, "client": Usage.CLIENT_AUTH}[role]
        name = server_name(machine) if role == "server" else f"client-{machine}"
        return self._signed(
            _named(name),
            public_key,
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs_certificates=False), True),
            (x509.ExtendedKeyUsage([usage]), False),
            (x509.SubjectAlternativeName([x509.DNSName(name)]), False),
            (self._identifier, False),
        )

    def issue(self, role: str, machine: int) -> Keys:
        """Make a secret key and sign a certificate for it: all that a process needs."""
        secret, asked = request()
        return Keys(self.certificate, self.sign(asked, role, machine), secret)

    def _signed(self, subject: Any, public_key: Any, *extensions: tuple[Any, bool]) -> str:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        builder = x509.CertificateBuilder(self._name, subject, public_key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(_FROM).not_valid_after(_UNTIL)
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, is_critical)
        found = builder.sign(self._key, hashes.SHA256())
        return found.public_bytes(serialization.Encoding.PEM).decode()


def request() -> tuple[str, str]:
    """Make a secret key, and a request for a certificate of its public key; both in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    builder = x509.CertificateSigningRequestBuilder(_named("gnnlab"))
    return secret.decode(), builder.sign(key, hashes.SHA256()).public_bytes(pem).decode()


def server_name(machine: int) -> str:
    """Return the name of a machine's servers in their certificate."""
    return f"server-{machine}"


def _named(text: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _usage(signs_certificates: bool) -> Any:
    from cryptography import x509

    uses = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "crl_sign", "encipher_only", "decipher_only"), False
    )  # fmt: skip
    return x509.KeyUsage(
        digital_signature=not signs_certificates, key_cert_sign=signs_certificates, **uses
    )


@contextmanager
def _file(text: str) -> Iterator[str]:
    """Name of a file with a text, because ``ssl`` reads keys from files only.

    The file is in memory where the system permits it, and readable by this user alone.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("keys")
        try:
            os.write(number, text.encode())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            yield file.name
