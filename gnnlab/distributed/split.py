"""Dividing the training set among trainers.

All trainers should have equally many nodes (or edges), so that they make the same number of steps,
and as many as possible from the part of their machine, to reduce traffic. A trainer's share is
first filled from that part; nodes left over on other machines then fill the remaining room. If the
number is not divisible, some shares are one short; each of these also gets an ID of another share,
not one of its own, because a mini-batch must not contain a node twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.distributed import context
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import EdgeType
from gnnlab.partition.book import GraphPartitionBook


def node_split(
    nodes: Any,
    partition_book: GraphPartitionBook | None = None,
    ntype: str = "_N",
    rank: int | None = None,
    force_even: bool = True,
    node_trainer_ids: Any = None,
    *,
    num_trainers: int | None = None,
) -> Any:
    """Return this trainer's share of some nodes.

    Parameters
    ----------
    nodes : DistTensor, tensor or numpy array, or dict of them by node type
        A mask, shape (N,), bool or uint8 (or integers that are all 0 or 1); or distinct node IDs.
    partition_book : GraphPartitionBook, optional
        Needed where ``nodes`` is not a DistTensor.
    ntype : str
        Node type of a tensor. "_N" on a graph with several types means homogeneous IDs.
    rank : int, optional
        Rank of the share; by default that of the calling trainer.
    force_even : bool
        All shares have the same size, ``ceil(N / R)`` for N nodes and R trainers, so that all
        trainers make the same number of steps. Shares that would be one short, fewer than R, end
        with a node of another share. With False each node is in exactly one share, and each
        trainer gets nodes of its part only, however many these are: for evaluation.
    node_trainer_ids : DistTensor or tensor, or dict of them by node type, optional
        Shape (N,): the trainer of each node, as ``partition_graph`` stores them with
        ``num_trainers_per_machine``. A trainer's own nodes then precede others of its machine.
    num_trainers : int, optional
        Number of trainers; by default that of the job, in standalone mode 1.

    Returns
    -------
    torch.Tensor or dict of torch.Tensor
        IDs, int64, distinct; nodes of the trainer's part come first, a repeated one last. Several
        types are divided together: only their sum is the same for all trainers.

    Examples
    --------
    Two machines own nodes 0–5 and 6–9. Of the seven training nodes the first machine owns five;
    one node is in both shares.

    >>> import torch
    >>> from gnnlab.distributed import node_split
    >>> from gnnlab.partition import GraphPartitionBook
    >>> book = GraphPartitionBook(0, {"_N": [0, 6, 10]}, {("_N", "_E", "_N"): [0, 9, 18]})
    >>> mask = torch.tensor([1, 1, 1, 1, 1, 0, 1, 1, 0, 0], dtype=torch.bool)
    >>> [node_split(mask, book, rank=rank, num_trainers=2).tolist() for rank in (0, 1)]
    [[0, 1, 2, 3], [6, 7, 4, 0]]
    >>> share = {"num_trainers": 2, "force_even": False}
    >>> [node_split(mask, book, rank=rank, **share).tolist() for rank in (0, 1)]
    [[0, 1, 2, 3, 4], [6, 7]]
    """
    ranks = _read_ranks(rank, num_trainers)
    return _divide("node", nodes, partition_book, ntype, node_trainer_ids, ranks, force_even)


def edge_split(
    edges: Any,
    partition_book: GraphPartitionBook | None = None,
    etype: str | EdgeType = "_E",
    rank: int | None = None,
    force_even: bool = True,
    edge_trainer_ids: Any = None,
    *,
    num_trainers: int | None = None,
) -> Any:
    """Return this trainer's share of some edges; as :func:`node_split`.

    Parameters
    ----------
    edges : DistTensor, tensor or numpy array, or dict of them by edge type
        A mask, shape (E,), or distinct edge IDs.
    etype : str or tuple
        Edge type of a tensor. "_E" on a graph with several types means homogeneous IDs.
    partition_book, rank, force_even, edge_trainer_ids, num_trainers
        As for :func:`node_split`.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.distributed import edge_split
    >>> from gnnlab.partition import GraphPartitionBook
    >>> book = GraphPartitionBook(0, {"_N": [0, 6, 10]}, {("_N", "_E", "_N"): [0, 2, 6]})
    >>> edge_split(np.arange(6), book, rank=1, num_trainers=2, force_even=False)
    tensor([2, 3, 4, 5])
    """
    ranks = _read_ranks(rank, num_trainers)
    return _divide("edge", edges, partition_book, etype, edge_trainer_ids, ranks, force_even)


def assign(
    levels: Sequence[tuple[np.ndarray, np.ndarray]], num_ranks: int, force_even: bool
) -> list[np.ndarray]:
    """Assign items to ranks, preferring locally owned ones.

    ``levels`` are pairs of the location of each item and of each rank, integers from 0, shapes (N,)
    and (R,): nearest level first. Each location has a rank. With ``force_even`` all ranks get
    equally many: items left after the last level go to any rank with room, and ranks that are one
    short also get an item of another. Otherwise only the first level is used.

    Returns the items of each rank, distinct positions in ``range(N)``: nearest first, then
    ascending; a repeated item of another rank comes last.
    """
    total = len(levels[0][0])
    left = np.arange(total)
    room = np.full(num_ranks, total)
    num_full = total % num_ranks if force_even else 0
    if force_even:
        room = total // num_ranks + (np.arange(num_ranks) < num_full)
        anywhere = np.zeros(total, np.int64), np.zeros(num_ranks, np.int64)
        levels = [*levels, anywhere]
    dealt: list[list[np.ndarray]] = [[] for _ in range(num_ranks)]
    for things, ranks in levels:
        num_homes = int(ranks.max()) + 1
        offsets, order = kernels.csc.group_by(things[left], None, num_homes)
        rest = []
        for home in range(num_homes):
            here = left[order[offsets[home] : offsets[home + 1]]]
            members = (ranks == home).nonzero()[0]
            counts = _spread(min(len(here), int(room[members].sum())), room[members])
            *pieces, remainder = np.split(here, np.cumsum(counts))
            for rank, piece in zip(members, pieces, strict=True):
                dealt[rank].append(piece)
            room[members] -= counts
            rest.append(remainder)
        left = np.sort(np.concatenate(rest))
    shares = [np.concatenate(pieces) for pieces in dealt]
    if num_full:
        # With this offset no two ranks repeat the same item, unless there are fewer than ranks.
        for rank in range(num_full, num_ranks):
            shares[rank] = np.append(shares[rank], shares[rank - num_full][0])
    return shares


def _spread(count: int, room: np.ndarray) -> np.ndarray:
    """Divide a number among ranks as equally as their room allows."""
    given = np.zeros_like(room)
    while count:
        free = (given < room).nonzero()[0]
        each = max(count // len(free), 1)
        more = np.minimum(room[free] - given[free], each)[:count]
        given[free[: len(more)]] += more
        count -= int(more.sum())
    return given


def _read_ranks(rank: int | None, num_trainers: int | None) -> tuple[int, int]:
    num_ranks = context.num_trainers() if num_trainers is None else num_trainers
    rank = context.rank() if rank is None else rank
    if not 0 <= rank < num_ranks:
        raise InvalidInput(
            f"expected 0 <= rank < number of trainers; found {rank} and {num_ranks}. Among how "
            "many trainers to divide can be said by num_trainers="
        )
    return rank, num_ranks


def _divide(
    what: str,
    given: Any,
    book: GraphPartitionBook | None,
    kind: Any,
    trainer_ids: Any,
    ranks: tuple[int, int],
    force_even: bool,
) -> Any:
    by_kind = given if isinstance(given, Mapping) else {kind: given}
    if not by_kind:
        raise InvalidInput(f"{what}_split() divides the {what}s of a type; found an empty dict")
    ids, parts, trainers, highest = [], [], [], 0
    for name, value in by_kind.items():
        offsets = _offsets(what, value, book, name)
        ids.append(_read_ids(what, value, int(offsets[-1])))
        parts.append(np.searchsorted(offsets, ids[-1], side="right") - 1)
        if trainer_ids is not None:
            of_kind = trainer_ids[name] if isinstance(trainer_ids, Mapping) else trainer_ids
            of_kind = _read_trainers(what, of_kind, int(offsets[-1]))
            trainers.append(of_kind[ids[-1]])
            highest = max(highest, int(of_kind.max(initial=-1)) + 1)
    rank, num_ranks = ranks
    num_parts = len(offsets) - 1
    levels = [_homes(np.concatenate(parts), num_parts, num_ranks)]
    if trainer_ids is not None:
        finer = np.concatenate(trainers)
        levels.insert(0, _homes(finer, -(-highest // num_parts) * num_parts, num_ranks))
    mine = assign(levels, num_ranks, force_even)[rank]
    starts = np.cumsum([0, *map(len, ids)])
    shares = {
        name: torch.from_numpy(of_kind[mine[(mine >= lo) & (mine < hi)] - lo])
        for name, of_kind, lo, hi in zip(by_kind, ids, starts, starts[1:], strict=False)
    }
    return shares if isinstance(given, Mapping) else shares[kind]


def _homes(owners: np.ndarray, num_owners: int, num_ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the locations of items and ranks; a part may have several ranks, or vice versa."""
    homes = min(num_owners, num_ranks)
    return owners * homes // num_owners, np.arange(num_ranks) * homes // num_ranks


def _offsets(what: str, value: Any, book: GraphPartitionBook | None, kind: Any) -> np.ndarray:
    """Return the offsets of the parts' ID ranges, shape (K + 1,)."""
    policy = getattr(value, "part_policy", None)
    if policy is not None:
        if policy.is_node != (what == "node"):
            raise InvalidInput(
                f"{what}_split() divides {what}s; found a tensor with a row for each "
                f"{'node' if policy.is_node else 'edge'} of type {policy.type_name!r}"
            )
        return np.asarray(policy.ranges)
    if book is None:
        raise InvalidInput(
            f"which part owns which {what} must be known: pass partition_book="
            "g.get_partition_book(), or a DistTensor as the mask"
        )
    if not hasattr(book, "partid2nids"):
        raise InvalidInput(f"partition_book is g.get_partition_book(); found {type(book).__name__}")
    return book.ranges_of(what, kind)


def _read_ids(what: str, value: Any, size: int) -> np.ndarray:
    """Read a mask or IDs as ascending IDs."""
    if hasattr(value, "part_policy"):
        value = value[0 : len(value)]
    given = as_tensor(value)
    given = given.squeeze(-1) if given.ndim == 2 else given
    # More than two distinct IDs cannot all be 0 or 1.
    is_long = given.ndim == 1 and 2 < len(given) == size
    if given.dtype is torch.uint8 or (is_long and bool(((given == 0) | (given == 1)).all())):
        given = given.bool()
    ids = np.sort(read_ids(given, size, what).long().numpy())
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise InvalidInput(f"{what} {twice[0]} is given twice; pass distinct IDs, or a mask")
    return ids


def _read_trainers(what: str, value: Any, size: int) -> np.ndarray:
    trainers = as_tensor(value[0 : len(value)] if hasattr(value, "part_policy") else value)
    if trainers.shape != (size,) or trainers.dtype.is_floating_point or (trainers < 0).any():
        raise InvalidInput(
            f"trainer IDs are one integer per {what}, at least 0, shape ({size},); found "
            f"{trainers.dtype} of shape {tuple(trainers.shape)}"
        )
    return trainers.long().numpy()
