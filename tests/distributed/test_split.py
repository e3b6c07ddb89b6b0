"""Dividing nodes and edges among trainers: evenly, near home, each once unless that is uneven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.distributed import edge_split, node_split
from gnnlab.partition import GraphPartitionBook

ONE = ("_N", "_E", "_N")


def book_of(*sizes: int) -> GraphPartitionBook:
    """A graph with one type; part p owns ``sizes[p]`` nodes and twice as many edges."""
    borders = np.cumsum([0, *sizes])
    return GraphPartitionBook(0, {"_N": borders}, {ONE: 2 * borders})


def shares_of(split: Any, *args: Any, num_trainers: int, **kwargs: Any) -> list[torch.Tensor]:
    return [split(*args, rank=r, num_trainers=num_trainers, **kwargs) for r in range(num_trainers)]


@st.composite
def cases(draw: Any) -> tuple[list[int], list[bool], int]:
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=5).filter(any))
    mask = draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes)))
    return sizes, mask, draw(st.integers(1, 7))


@given(cases())
def test_even_shares_are_of_one_size_and_as_many_at_home_as_can_be(
    case: tuple[list[int], list[bool], int],
) -> None:
    sizes, flags, num_trainers = case
    book, mask = book_of(*sizes), torch.tensor(flags, dtype=torch.bool)
    shares = shares_of(node_split, mask, book, num_trainers=num_trainers)
    nodes = mask.nonzero().flatten()
    assert {len(share) for share in shares} == {-(-len(nodes) // num_trainers)}
    ids, counts = torch.cat(shares).unique(return_counts=True)
    assert torch.equal(ids, nodes)
    assert (counts - 1).sum() < num_trainers
    assert (counts <= max(2, -(-num_trainers // max(len(nodes), 1)))).all()
    for share in shares:  # a node that stands twice in a mini-batch is refused
        assert len(share.unique()) == len(share)
    # Of the last ranks, each ends with a node of another share where the number does not divide.
    num_full = len(nodes) % num_trainers or num_trainers
    shares[num_full:] = [share[:-1] for share in shares[num_full:]]
    assert torch.equal(torch.cat(shares).sort().values, nodes)
    lengths = [len(share) for share in shares]
    # A home is a part and its trainers, or a trainer and its parts.
    homes = min(len(sizes), num_trainers)
    of_part = [part * homes // len(sizes) for part in range(len(sizes))]
    of_rank = [rank * homes // num_trainers for rank in range(num_trainers)]
    at_home = [0] * homes
    for rank, share in enumerate(shares):
        near = [of_part[part] == of_rank[rank] for part in book.nid2partid(share).tolist()]
        assert near == sorted(near, reverse=True)  # those from home come first
        at_home[of_rank[rank]] += sum(near)
    train = [0] * homes
    for part in book.nid2partid(mask.nonzero().flatten()).tolist():
        train[of_part[part]] += 1
    wanted = [sum(n for n, h in zip(lengths, of_rank, strict=True) if h == k) for k in range(homes)]
    assert at_home == [min(*both) for both in zip(train, wanted, strict=True)]


@given(cases())
def test_local_shares_hold_each_node_once_and_none_from_elsewhere(
    case: tuple[list[int], list[bool], int],
) -> None:
    sizes, flags, _ = case
    num_trainers = 2 * len(sizes)
    book, mask = book_of(*sizes), torch.tensor(flags, dtype=torch.bool)
    shares = shares_of(node_split, mask, book, force_even=False, num_trainers=num_trainers)
    assert torch.equal(torch.cat(shares), mask.nonzero().flatten())
    for rank, share in enumerate(shares):
        assert set(book.nid2partid(share).tolist()) <= {rank // 2}
    for first, second in zip(shares[::2], shares[1::2], strict=True):
        assert len(first) - len(second) in (0, 1)


@pytest.mark.parametrize(
    "form",
    [
        lambda mask: mask,
        lambda mask: mask.to(torch.uint8),
        lambda mask: mask.long(),
        lambda mask: mask.float(),
        lambda mask: mask.numpy(),
        lambda mask: mask.tolist(),
        lambda mask: mask.nonzero().flatten(),
        lambda mask: mask.nonzero().flatten().int().numpy(),
        lambda mask: mask.nonzero().flatten().tolist()[::-1],
        lambda mask: mask.unsqueeze(1),
    ],
)
def test_masks_and_ids_in_all_forms(form: Any) -> None:
    mask = torch.tensor([1, 0, 1, 1, 0, 1], dtype=torch.bool)
    share = node_split(form(mask), book_of(2, 4))
    assert share.dtype is torch.int64
    assert share.tolist() == [0, 2, 3, 5]


def test_all_ids_are_no_mask() -> None:
    """DGL's examples divide ``np.arange(N)`` for inference: node 0 is one of the nodes."""
    assert node_split(np.arange(6), book_of(3, 3)).tolist() == [0, 1, 2, 3, 4, 5]
    assert node_split(np.arange(2), book_of(1, 1)).tolist() == [0, 1]


TYPED = GraphPartitionBook(
    0,
    {"game": [0, 1, 3], "user": [0, 4, 6]},
    {("user", "plays", "game"): [0, 2, 8], ("user", "likes", "user"): [0, 5, 6]},
)


def test_types_are_divided_together() -> None:
    """2 games and 3 users to train with: 3 each, though each type alone would give 1 + 2."""
    masks = {"game": torch.tensor([0, 1, 1]).bool(), "user": torch.tensor([1, 1, 0, 1, 0, 0])}
    zero, one = shares_of(node_split, masks, TYPED, num_trainers=2)
    assert {name: ids.tolist() for name, ids in zero.items()} == {"game": [], "user": [0, 1, 3]}
    assert {name: ids.tolist() for name, ids in one.items()} == {"game": [1, 2], "user": [0]}


def test_one_type_of_several_and_homogeneous_ids() -> None:
    zero, one = shares_of(node_split, range(6), TYPED, "user", num_trainers=2, force_even=False)
    assert (zero.tolist(), one.tolist()) == ([0, 1, 2, 3], [4, 5])
    zero, one = shares_of(node_split, range(9), TYPED, num_trainers=2, force_even=False)
    assert (zero.tolist(), one.tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7, 8])
    zero, one = shares_of(edge_split, range(8), TYPED, "plays", num_trainers=2)
    assert (zero.tolist(), one.tolist()) == ([0, 1, 6, 7], [2, 3, 4, 5])
    zero, one = shares_of(
        edge_split, {"likes": range(6), "plays": []}, TYPED, num_trainers=2, force_even=False
    )
    assert (zero["likes"].tolist(), one["likes"].tolist()) == ([0, 1, 2, 3, 4], [5])


@pytest.mark.parametrize(
    ("sizes", "nodes", "trainers", "is_even", "expected"),
    [
        # two machines with two trainers each; trainer 1 has few nodes, trainer 0 has many
        ((6, 6), 12, [0, 1, 0, 0, 0, 0, 3, 2, 3, 2, 3, 2], True,
         [[0, 2, 3], [1, 4, 5], [7, 9, 11], [6, 8, 10]]),
        ((6, 6), 12, [0, 1, 0, 0, 0, 0, 3, 2, 3, 2, 3, 2], False,
         [[0, 2, 3, 4, 5], [1], [7, 9, 11], [6, 8, 10]]),
        # the second machine has no nodes to train with
        ((4, 4), 4, [0, 1, 0, 1, 2, 3, 2, 3], False, [[0, 2], [1, 3], [], []]),
        # fewer trainers than the partition was made for
        ((2, 4), 6, [0, 1, 2, 3, 2, 3], False, [[0, 1], [2, 3, 4, 5]]),
    ],
)  # fmt: skip
def test_trainers_prefer_the_nodes_that_were_meant_for_them(
    sizes: Any, nodes: int, trainers: list[int], is_even: bool, expected: list[list[int]]
) -> None:
    shares = shares_of(
        *(node_split, range(nodes), book_of(*sizes)),
        **{"node_trainer_ids": torch.tensor(trainers), "num_trainers": len(expected)},
        force_even=is_even,
    )
    assert [share.tolist() for share in shares] == expected
