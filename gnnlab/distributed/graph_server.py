"""A server that a user script starts, by hand or under a scheduler."""

from __future__ import annotations

import os
from typing import Any

from gnnlab.distributed.job import JobSettings
from gnnlab.errors import InvalidInput
from gnnlab.launch import environment as e


class DistGraphServer:
    """Make this process a server of a job, instead of ``gnnlab launch`` and ``initialize``.

    Trainers and samplers find it by the same ``ip_config`` and number of servers.

    Parameters
    ----------
    server_id : int
        Counted over all machines: server s is on machine ``s // num_servers``.
    ip_config : str
        File with a line ``address [port]`` for each machine.
    num_servers : int
        Servers of each machine.
    num_clients : int
        Not needed: trainers report their number, and the server ends after the last.
    part_config : str
        The JSON file of the partitioned graph.

    Raises
    ------
    InvalidInput
        There is no such server in ``ip_config``.
    GNNLabError
        There are no keys for messages between machines; the text names the remedy.

    Examples
    --------
    >>> server = DistGraphServer(0, "ip_config.txt", 1, 4, "data/graph.json")  # doctest: +SKIP
    >>> server.start()                                                         # doctest: +SKIP

    References
    ----------
    DGL user guide, chapter 7.2.
    """

    def __init__(
        self,
        server_id: int,
        ip_config: str,
        num_servers: int,
        num_clients: int,
        part_config: str,
    ) -> None:
        said: dict[str, Any] = {
            e.ROLE: "server",
            e.SERVER_ID: 0,
            e.NUM_SERVERS: num_servers,
            e.IP_CONFIG: ip_config,
            e.PART_CONFIG: part_config,
        }
        os.environ.update({name: str(value) for name, value in said.items()})
        num_all = len(JobSettings.read().addresses)
        if server_id not in range(num_all):
            raise InvalidInput(
                f"server_id must be from 0 to {num_all - 1}, for {num_servers} servers on each "
                f"machine of {ip_config}; found {server_id!r}"
            )
        os.environ[e.SERVER_ID] = str(server_id)
        self.job = JobSettings.read()

    def start(self) -> None:
        """Serve until all trainers have left the job, then exit with status 0."""
        from gnnlab.distributed.server import serve  # only servers need this module

        serve(self.job)
