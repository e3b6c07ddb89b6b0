"""Validation of server replies, before they reach kernels, which check nothing.

:mod:`gnnlab.distributed.wire` has already checked the types of a reply. This module checks that it
fits the request and the graph: a server may run another version, read other files or, without
keys, belong to another job.
"""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.store import Store
from gnnlab.errors import GNNLabError

__all__ = ["BadReply", "check"]

_IDS = (torch.int64, torch.int32)


class BadReply(GNNLabError):
    """A reply that does not fit its request."""


def check(store: Store, message: Any, reply: Any) -> None:
    """Raise BadReply unless a reply is valid for a message.

    Parameters
    ----------
    store : Store
        Store of this machine; types, ID ranges and tensors are the same on all machines.
    message, reply : object
    """
    book = store.part.book
    if isinstance(message, m.Pull):
        known = store.tensors.get(message.name)
        shape = (len(message.rows), *(reply.shape if known is None else known.shape)[1:])
        dtype = reply.dtype if known is None else known.dtype
        if reply.shape != shape or reply.dtype != dtype:
            raise BadReply(
                f"expected {dtype} of shape {tuple(shape)}; found {reply.dtype} of shape "
                f"{tuple(reply.shape)}"
            )
    elif isinstance(message, m.Sample):
        if len(reply) != len(store.etypes):
            raise BadReply(f"expected {len(store.etypes)} edge types; found {len(reply)}")
        for etype, (ptr, edges, sources) in zip(store.etypes, reply, strict=True):
            seeds = message.seeds.get(etype[2])
            _check_lists(ptr, 0 if seeds is None else len(seeds), len(sources))
            _check_ids(edges, len(sources), int(book.edge_ranges[etype][-1]), "edges")
            _check_ids(sources, len(sources), int(book.node_ranges[etype[0]][-1]), "sources")
    elif isinstance(message, m.FindEdges):
        etype = store.etypes[message.etype]
        for ends, ntype in zip(reply, etype[::2], strict=True):
            _check_ids(ends, len(message.rows), int(book.node_ranges[ntype][-1]), "nodes")
    elif isinstance(message, m.Reverse):
        bound = int(book.edge_ranges[store.etypes[message.reverse_etype]][-1])
        _check_ids(reply, min(reply.numel(), len(message.rows)), bound, "edges")
    elif isinstance(message, m.Degrees):
        _check_ids(reply, len(message.rows), torch.iinfo(torch.int64).max, "degrees")
    elif isinstance(message, m.CountNonzero) and reply < 0:
        raise BadReply(f"expected a count; found {reply}")
    elif isinstance(message, wire.Meet) and len(reply) != message.num_ranks:
        raise BadReply(f"expected words of {message.num_ranks} ranks; found {len(reply)}")


def _check_lists(ptr: torch.Tensor, num_lists: int, total: int) -> None:
    if ptr.dtype is not torch.int64 or ptr.shape != (num_lists + 1,):
        raise BadReply(
            f"expected int64 of shape ({num_lists + 1},) for where lists begin; found {ptr.dtype} "
            f"of shape {tuple(ptr.shape)}"
        )
    if int(ptr[0]) != 0 or int(ptr[-1]) != total or bool((ptr[1:] < ptr[:-1]).any()):
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
