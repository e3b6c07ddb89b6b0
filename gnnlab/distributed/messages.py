"""Messages from clients to servers, which :mod:`gnnlab.distributed.part_store` answers.

Where each goes and what its reply is, :mod:`gnnlab.distributed.protocol` says. Distributed data is
accessed by messages, also when everything is in one process, so client code is the same in a
notebook and on a cluster. A message names a tensor or an edge type of one part and rows *of that
part*: row 0 is the first that the part owns. Fields are numbers, strings and CPU tensors, and
tuples and dictionaries of them. No message carries code.

A tensor's full name says what its rows are: ``node~_N~feat``, ``edge~user:plays:game~weight``.
The IDs of the rows before the graph was partitioned, ``node~_N~~orig_id``, can be pulled alone.
Edge types are named by their position in ``canonical_etypes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

MAX_REPLY = 1 << 28  # bytes of rows or edges in one reply
ORIGINAL_IDS = "~~orig_id"  # after a policy; names of tensors have no "~"


@dataclass(frozen=True, eq=False)
class Describe:
    """List all tensors. Reply: full name → :class:`Description`."""


class Description(NamedTuple):
    """Description of a tensor: shape of one row, dtype, and whether it is graph data."""

    row_shape: tuple[int, ...]
    dtype: str
    is_gdata: bool


@dataclass(frozen=True, eq=False)
class Create:
    """Create a tensor with a row for each node or edge of its type that the part owns.

    Reply: whether it is new. An existing equal tensor is not changed; if row shape or dtype differ,
    the message is refused. ``is_gdata`` tensors are among the features of the graph. ``values`` are
    the initial rows of the part, by default zeros; the owner may keep the tensor itself.
    """

    name: str
    row_shape: tuple[int, ...]
    dtype: str
    is_gdata: bool = True
    values: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class Delete:
    """Delete a tensor. Reply: whether it existed."""

    name: str


@dataclass(frozen=True, eq=False)
class Pull:
    """Read rows. Reply: a new tensor of shape (len(rows), …).

    A server refuses replies of more than :data:`MAX_REPLY` bytes, except of a single row.
    """

    name: str
    rows: torch.Tensor


@dataclass(frozen=True, eq=False)
class Push:
    """Write rows; of a repeated row, the last value wins."""

    name: str
    rows: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True, eq=False)
class Update:
    """Send gradients of rows to the owner, which applies an optimizer's rule.

    The owner keeps the gradients of a step until those of all ranks have arrived, and applies them
    once. Ranks without gradients send empty ones.
    """

    name: str
    rows: torch.Tensor  # (K,); may repeat
    grads: torch.Tensor  # (K, …)
    rule: str  # a name in gnnlab.distributed.sparse_rules
    options: Mapping[str, float] = field(default_factory=dict)  # its hyperparameters
    states: tuple[str, ...] = ()  # full names of the tensors of the rule's state, in its order
    rank: int = 0  # of the sender
    num_ranks: int = 1
    step: int = 1  # from 1


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample in-edges of nodes, for all edge types at once.

    Reply: for each edge type ``(ptr, edges, sources)``: the edges of the type's i-th seed are
    ``ptr[i]:ptr[i + 1]``; edges and sources are type-wise IDs of the whole graph. A server refuses
    repeated seeds, or draws with replacement, if the reply would be larger than :data:`MAX_REPLY`
    and than all edges of the part.
    """

    seeds: Mapping[str, torch.Tensor]  # rows by node type; types without seeds may be left out
    fanouts: tuple[int, ...]  # per edge type; −1 takes all
    key: int  # of the layer's random numbers, 64 bits
    replace: bool = False
    #: Full name of the tensor with the weights, per edge type; empty for none at all.
    weights: tuple[str | None, ...] = ()
    #: Position of an edge type → rows that must not be sampled.
    excluded: Mapping[int, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SampleUntil(Sample):
    """Sample in-edges no later than the time of their seed. Reply: as of :class:`Sample`."""

    #: By node type, the time of each seed, int64 or float64.
    until: Mapping[str, torch.Tensor] = field(default_factory=dict)
    #: Full name of the tensor with the times of edges, per edge type; None for no limit.
    times: tuple[str | None, ...] = ()
    last: bool = False  # the last edges, not random ones


@dataclass(frozen=True, eq=False)
class FindEdges:
    """Look up the endpoints of edges. Reply: sources and destinations, type-wise IDs, int64."""

    etype: int
    rows: torch.Tensor


@dataclass(frozen=True, eq=False)
class Reverse:
    """Look up reverse edges: those of another type with the same ID in the user's graph.

    Reply: type-wise IDs of the whole graph, in no particular order. The owner of an edge also
    stores the edges that leave its destination.
    """

    etype: int
    rows: torch.Tensor
    reverse_etype: int


@dataclass(frozen=True, eq=False)
class OutEdges:
    """Look up all edges that leave nodes. Reply: starts of the lists and type-wise edge IDs.

    Shapes (len(rows) + 1,) and (K,); the edges of a node are in the order of the user's graph. The
    owner of a node also stores the edges from it into other parts.
    """

    etype: int
    rows: torch.Tensor


@dataclass(frozen=True, eq=False)
class Degrees:
    """Look up the in-degrees of nodes, or their out-degrees. Reply: shape (len(rows),), int64."""

    etype: int
    rows: torch.Tensor
    inward: bool = True


@dataclass(frozen=True, eq=False)
class Inclusion:
    """Compute how probably nodes are sampled; see :mod:`gnnlab.distributed.inclusion`.

    ``probs``, shape (R,), float64, are the probabilities that the nodes ``rows`` sample at all.
    Reply: type-wise IDs of the nodes that may be sampled, and for each the logarithm of the
    probability that none of the rows samples it; shapes (K,), the latter float64.
    """

    etype: int
    rows: torch.Tensor
    probs: torch.Tensor
    fanout: int
    replace: bool = False


@dataclass(frozen=True, eq=False)
class CountNonzero:
    """Count the elements of the part's rows that are not zero. Reply: int."""

    name: str


# --------------------------------------- messages that servers answer, or shared stores alone
@dataclass(frozen=True, eq=False)
class Hello:
    """Ask for a server's identity. Reply: :class:`Welcome`."""


class Welcome(NamedTuple):
    """Job, index and graph of a server; ``digest`` is that of the JSON file."""

    job: str
    server: int
    graph_name: str
    digest: str


@dataclass(frozen=True, eq=False)
class Meet:
    """Wait for all ranks at a place. Reply: ``words`` of all ranks, in their order."""

    place: str
    rank: int
    num_ranks: int
    words: str = ""  # the name is part of the encoded message


@dataclass(frozen=True, eq=False)
class Share:
    """Copy a feature to shared memory, so that all processes of the machine see writes to it."""

    name: str


@dataclass(frozen=True, eq=False)
class Freeze:
    """Make a feature of the part read-only, because other processes cache its rows.

    Reply: whether it is. A feature that has been written to, or a tensor created in the job, cannot
    be frozen; a frozen feature refuses writes.
    """

    name: str


@dataclass(frozen=True, eq=False)
class Release:
    """Tell that a rank no longer needs a tensor; the last rank's release deletes it."""

    name: str
    rank: int
    num_ranks: int


@dataclass(frozen=True, eq=False)
class Bye:
    """Tell that a rank leaves the job."""

    rank: int
    num_ranks: int


@dataclass(frozen=True, eq=False)
class Statistics:
    """Ask for a server's traffic. Reply: class of message → :class:`MessageStats`."""


class MessageStats(NamedTuple):
    """Number of requests of a class, their bytes in and out, and the seconds spent on them."""

    number: int
    bytes_in: int
    bytes_out: int
    seconds: float


Message = Any
"""One of the classes of this module."""
