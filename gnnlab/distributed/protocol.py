"""The protocol: for each message its reply, kind of traffic, destination and the reply's check.

:data:`EXCHANGES` is the only place where this is written. Clients send by it, servers refuse by
it what another server has to apply, :mod:`gnnlab.distributed.wire` decodes replies by it, and bytes
are counted by it. The rows that a message names belong to one machine; a machine has one or more
servers, each of which answers reads of any row and applies writes to the rows that it owns.

Replies are checked before they reach kernels, which check nothing: a server may run another
version, read other files or, without keys, belong to another job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed.part_store import Store
from gnnlab.errors import GNNLabError
from gnnlab.partition.book import PartitionPolicy

_IDS = (torch.int64, torch.int32)
_ROWS = "features or embeddings"


class BadReply(GNNLabError):
    """A reply that does not fit its request."""


class To(Enum):
    """The servers to which a message goes."""

    ANY = "any server of the rows' machine, in turn; no message for rows of the own machine"
    OWNERS = "the servers that own the rows, each with its rows"
    ALL_OWNERS = "all servers of the rows' machine, each with its rows, perhaps none"
    FIRST = "the first server of a machine"
    EACH = "every server of the job"
    SERVER_0 = "server 0 of the job"
    NONE = "stores of the own process alone; a job sends Release instead"


# ------------------------------------------------------------------- checks of replies
def _check_rows(store: Store, message: m.Pull, reply: torch.Tensor) -> None:
    if message.name.endswith(m.ORIGINAL_IDS):
        policy = PartitionPolicy(message.name.removesuffix(m.ORIGINAL_IDS), store.part.book)
        _check_ids(reply, len(message.rows), policy.get_size(), "original IDs")
    known = store.tensors.get(message.name)
    shape = (len(message.rows), *(reply.shape if known is None else known.shape)[1:])
    dtype = reply.dtype if known is None else known.dtype
    if reply.shape != shape or reply.dtype != dtype:
        raise BadReply(
            f"expected {dtype} of shape {tuple(shape)}; found {reply.dtype} of shape "
            f"{tuple(reply.shape)}"
        )


def _check_sample(store: Store, message: m.Sample, reply: Any) -> None:
    book = store.part.book
    if len(reply) != len(store.etypes):
        raise BadReply(f"expected {len(store.etypes)} edge types; found {len(reply)}")
    for etype, (ptr, edges, sources) in zip(store.etypes, reply, strict=True):
        seeds = message.seeds.get(etype[2])
        _check_lists(ptr, 0 if seeds is None else len(seeds), len(sources))
        _check_ids(edges, len(sources), int(book.edge_ranges[etype][-1]), "edges")
        _check_ids(sources, len(sources), int(book.node_ranges[etype[0]][-1]), "sources")


def _check_ends(store: Store, message: m.FindEdges, reply: Any) -> None:
    for ends, ntype in zip(reply, store.etypes[message.etype][::2], strict=True):
        bound = int(store.part.book.node_ranges[ntype][-1])
        _check_ids(ends, len(message.rows), bound, "nodes")


def _check_reverse(store: Store, message: m.Reverse, reply: torch.Tensor) -> None:
    bound = int(store.part.book.edge_ranges[store.etypes[message.reverse_etype]][-1])
    _check_ids(reply, min(reply.numel(), len(message.rows)), bound, "edges")


def _check_out_edges(store: Store, message: m.OutEdges, reply: Any) -> None:
    ptr, edges = reply
    _check_lists(ptr, len(message.rows), len(edges))
    bound = int(store.part.book.edge_ranges[store.etypes[message.etype]][-1])
    _check_ids(edges, len(edges), bound, "edges")


def _check_degrees(_: Store, message: m.Degrees, reply: torch.Tensor) -> None:
    _check_ids(reply, len(message.rows), torch.iinfo(torch.int64).max, "degrees")


def _check_inclusion(store: Store, message: m.Inclusion, reply: Any) -> None:
    nodes, logs = reply
    bound = int(store.part.book.node_ranges[store.etypes[message.etype][0]][-1])
    _check_ids(nodes, len(nodes), bound, "nodes")
    if logs.dtype is not torch.float64 or logs.shape != nodes.shape:
        raise BadReply(
            f"expected float64 of shape {tuple(nodes.shape)}; found {logs.dtype} of shape "
            f"{tuple(logs.shape)}"
        )
    if not bool((logs <= 0).all()):
        raise BadReply("expected logarithms of probabilities; found numbers above 0 or NaN")


def _check_count(_: Store, message: m.CountNonzero, reply: int) -> None:
    if reply < 0:
        raise BadReply(f"expected a count; found {reply}")


def _check_texts(_: Store, message: m.Meet, reply: tuple[str, ...]) -> None:
    if len(reply) != message.num_ranks:
        raise BadReply(f"expected texts of {message.num_ranks} ranks; found {len(reply)}")


def _check_lists(ptr: torch.Tensor, num_lists: int, total: int) -> None:
    if ptr.dtype is not torch.int64 or ptr.shape != (num_lists + 1,):
        raise BadReply(
            f"expected int64 of shape ({num_lists + 1},) for the starts of lists; found "
            f"{ptr.dtype} of shape {tuple(ptr.shape)}"
        )
    starts = ptr.numpy()
    if starts[0] != 0 or starts[-1] != total or (starts[1:] < starts[:-1]).any():
        raise BadReply(f"lists of neighbors do not follow one another from 0 to {total}")


def _check_ids(ids: torch.Tensor, count: int, bound: int, what: str) -> None:
    if ids.dtype not in _IDS or ids.shape != (count,):
        raise BadReply(
            f"expected {what} as integers of shape ({count},); found {ids.dtype} of shape "
            f"{tuple(ids.shape)}"
        )
    if count:
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= bound:
            raise BadReply(f"expected {what} from 0 to {bound - 1}; found {low} to {high}")


# --------------------------------------------------------------------------- the table
class Exchange(NamedTuple):
    """What becomes of the messages of a class."""

    reply: Any  # its type
    traffic: str  # a kind of gnnlab.distributed.traffic, or _ROWS
    to: To
    #: Whether a server may execute a resent message again. Replies to others are remembered.
    is_repeatable: bool = False
    #: ``check(store, message, reply)`` raises BadReply unless the reply fits message and graph.
    check: Callable[[Store, Any, Any], None] | None = None


_Row = torch.Tensor
_Lists = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
EXCHANGES: dict[type, Exchange] = {
    # rows of tensors
    m.Pull: Exchange(_Row, _ROWS, To.ANY, True, _check_rows),
    m.Push: Exchange(None, _ROWS, To.OWNERS),
    m.Update: Exchange(None, "gradients", To.ALL_OWNERS),
    m.CountNonzero: Exchange(int, "control", To.ANY, True, _check_count),
    # the structure of the graph
    m.Sample: Exchange(tuple[_Lists, ...], "structure", To.ANY, True, _check_sample),
    m.SampleUntil: Exchange(tuple[_Lists, ...], "structure", To.ANY, True, _check_sample),
    m.FindEdges: Exchange(tuple[_Row, _Row], "structure", To.ANY, True, _check_ends),
    m.Reverse: Exchange(_Row, "structure", To.ANY, True, _check_reverse),
    m.OutEdges: Exchange(tuple[_Row, _Row], "structure", To.ANY, True, _check_out_edges),
    m.Degrees: Exchange(_Row, "structure", To.ANY, True, _check_degrees),
    m.Inclusion: Exchange(tuple[_Row, _Row], "structure", To.ANY, True, _check_inclusion),
    # which tensors there are
    m.Describe: Exchange(dict[str, m.Description], "control", To.ANY, True),
    m.Create: Exchange(bool, "control", To.FIRST),
    m.Delete: Exchange(bool, "control", To.NONE),
    m.Release: Exchange(None, "control", To.FIRST),
    m.Share: Exchange(None, "control", To.FIRST),
    m.Freeze: Exchange(bool, "control", To.FIRST),
    # the job
    m.Hello: Exchange(m.Welcome, "control", To.EACH, True),
    m.Bye: Exchange(None, "control", To.EACH),
    m.Statistics: Exchange(dict[str, m.MessageStats], "control", To.EACH, True),
    m.Meet: Exchange(tuple[str, ...], "control", To.SERVER_0, False, _check_texts),
}
"""Class of a message → its :class:`Exchange`."""


def check_reply(store: Store, message: Any, reply: Any) -> None:
    """Raise BadReply unless a reply is valid for a message; stores of all machines know enough."""
    check = EXCHANGES[type(message)].check
    if check is not None:
        check(store, message, reply)


def kind_of(message: Any, is_gdata: Mapping[str, bool]) -> str:
    """Return the kind of traffic of a message; tensors not in ``is_gdata`` are features."""
    kind = EXCHANGES[type(message)].traffic
    if kind == _ROWS:
        return "features" if is_gdata.get(message.name, True) else "embeddings"
    return kind


def num_rows(message: Any) -> int:
    """Return how many rows, or seeds, a message names."""
    if isinstance(message, m.Sample):
        return sum(map(len, message.seeds.values()))
    return len(getattr(message, "rows", ()))
