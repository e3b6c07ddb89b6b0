"""The network between simulated machines.

References
----------
Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal
of Parallel and Distributed Computing 69(2), 2009: the ring.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

from gnnlab.errors import InvalidInput


@dataclass(frozen=True)
class Network:
    """Machines on one switch, each with a full-duplex link.

    Parameters
    ----------
    bandwidth : float
        Bits per second of each machine's link in each direction; 1e9 is gigabit Ethernet.
    latency : float
        Seconds that a packet takes from one machine to another.
    per_request : float
        Processor seconds that a request and its reply cost the client, and again the server, in
        addition to what the store computes: encoding, system calls, waking threads.
    per_byte : float
        Processor seconds that a byte costs its sender, and again its receiver: system calls,
        TCP, encryption. Measured on one machine at 1 Gbit/s: 5e-10, encrypted 1.5e-9.
    per_round : float
        Processor seconds that a round of an all-reduce costs each trainer: system calls, waking
        threads, DDP's own work; 0 by default. R trainers need 2 (R − 1) rounds.
    queue : float
        Seconds that a packet waits, in addition to ``latency``, for each transfer that uses the
        link it leaves on; 0 by default, as with a queue of its own for each connection.
    overhead : float
        Share of the bandwidth that does not carry messages: headers of Ethernet, IP and TCP take 90
        of 1538 bytes, and acknowledgements of the opposite direction 2 %.

    Examples
    --------
    >>> from gnnlab.simulate import Network
    >>> network = Network(bandwidth=1e9, latency=1e-4)
    >>> network.bytes_per_second
    115000000.0
    """

    bandwidth: float = 1e9
    latency: float = 1e-4
    per_request: float = 1e-4
    per_byte: float = 5e-10
    overhead: float = 0.08
    per_round: float = 0.0
    queue: float = 0.0

    def __post_init__(self) -> None:
        """Check the values."""
        for name, value in vars(self).items():
            if not isinstance(value, numbers.Real):
                raise InvalidInput(f"{name} must be a number; found {value!r}")
        if not self.bandwidth > 0:
            raise InvalidInput(f"bandwidth is in bits per second, above 0; found {self.bandwidth}")
        for name in ("latency", "per_request", "per_byte", "per_round", "queue"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} is a time in seconds; found {getattr(self, name)}")
        if not 0 <= self.overhead < 1:
            raise InvalidInput(f"overhead is a share from 0 to 1; found {self.overhead}")

    @property
    def bytes_per_second(self) -> float:
        """Bytes of messages that a link carries per second in each direction."""
        return self.bandwidth / 8 * (1 - self.overhead)
