"""Environment variables that the processes of a job exchange.

The launcher sets most of them for the processes that an agent starts on each host. A server or
trainer that is started by hand needs only a few: ``DGL_DIST_MODE=distributed``, ``DGL_ROLE``,
``DGL_IP_CONFIG``, ``DGL_SERVER_ID`` for a server, and ``RANK`` and ``WORLD_SIZE``, as torchrun sets
them, for a trainer. The names with ``DGL_`` are those of DGL.
"""

from __future__ import annotations

import math
import os

from gnnlab.errors import InvalidInput

# Values; which process sets it: what it says.
MODE = "DGL_DIST_MODE"  # standalone | distributed; launcher: whether to use servers
ROLE = "DGL_ROLE"  # server | client | sampler; launcher: role of the process
NUM_SERVERS = "DGL_NUM_SERVER"  # int ≥ 1; launcher: servers per machine
NUM_SAMPLERS = "DGL_NUM_SAMPLER"  # int ≥ 0; launcher: samplers per trainer
NUM_CLIENTS = "DGL_NUM_CLIENT"  # int; launcher: trainers and samplers; not read
PART_CONFIG = "DGL_CONF_PATH"  # path; launcher: JSON file of the partition
IP_CONFIG = "DGL_IP_CONFIG"  # path; launcher: addresses, unless SERVERS has them
GRAPH_FORMAT = "DGL_GRAPH_FORMAT"  # csc, …; launcher: for scripts; not read
SERVER_ID = "DGL_SERVER_ID"  # int ≥ 0; launcher: index of a server among all
MACHINE = "GNNLAB_MACHINE"  # int ≥ 0; launcher, agent: index of the machine
NUM_TRAINERS = "GNNLAB_NUM_TRAINERS"  # int ≥ 1; launcher: trainers per machine
SERVERS = "GNNLAB_SERVERS"  # JSON [[address, port], …]; launcher: of all servers
JOB = "GNNLAB_JOB"  # text; launcher: ID of the job; part of names of files
SECURITY = "GNNLAB_SECURITY"  # tls | none; launcher: encrypt messages, or not
KEYS = "GNNLAB_KEYS"  # JSON of Keys; agent: certificates, secret key
TIMEOUT = "GNNLAB_TIMEOUT"  # seconds > 0; launcher: longest wait; 300 by default
OUTPUT = "GNNLAB_OUTPUT"  # path; agent: folder of the agent's files
SAMPLER = "GNNLAB_SAMPLER"  # int ≥ 0; trainer: index of a sampler of this trainer
TRACE = "GNNLAB_TRACE"  # path; launcher, user: folder for trace events
AS_DGL = "GNNLAB_AS_DGL"  # 1; gnnlab as-dgl: `import dgl` gives gnnlab
CACHE_BYTES = "GNNLAB_CACHE_BYTES"  # int ≥ 0; user: memory for rows of others
CACHE_POLICY = "GNNLAB_CACHE_POLICY"  # access | …; user: which of them to keep

EVENTS = "events"  # FIFO in the folder OUTPUT; a process writes a line like "trainer 3 waiting"


def number(name: str, default: int | None = None, least: int = 0) -> int:
    """Read a whole number; raise InvalidInput if it is invalid, or missing without a default."""
    text = os.environ.get(name, "" if default is None else str(default))
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise InvalidInput(
            f"the environment variable {name} must be a number, {least} or more; found {text!r}. "
            "`gnnlab launch` sets it"
        )
    return int(text)


def seconds(name: str, default: float) -> float:
    """Read a positive, finite number of seconds; raise InvalidInput if it is invalid."""
    text = os.environ.get(name, str(default))
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise InvalidInput(
            f"the environment variable {name} must be a number of seconds; found {text!r}"
        )
    return found
