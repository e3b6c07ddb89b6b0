"""Local IDs: seeds first, then every node at first sight."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.kernels import relabel, relabel_torch
from tests.helpers import examples

MAKERS = [relabel.NodeList, relabel_torch.NodeList]
ids = st.lists(st.integers(0, 29), max_size=25)


def reference(seeds: list[int], batches: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    position = {node: i for i, node in enumerate(seeds)}
    local = [[position.setdefault(node, len(position)) for node in batch] for batch in batches]
    return list(position), local


@pytest.mark.parametrize("make", MAKERS)
@examples(150)
@given(seeds=st.lists(st.integers(0, 29), unique=True), first=ids, second=ids)
def test_equals_a_dictionary(make, seeds, first, second):
    expected_ids, expected = reference(seeds, [first, second])
    with make(30) as nodes:
        nodes.start(torch.tensor(seeds, dtype=torch.int64))
        got = [
            nodes.add(torch.tensor(first, dtype=torch.int64)).tolist(),
            nodes.add(torch.tensor(second, dtype=torch.int32), overwrite=True).tolist(),
        ]
        assert got == expected
        assert nodes.ids.tolist() == expected_ids and nodes.count == len(expected_ids)
        everything = nodes.find(torch.arange(30)).tolist()
    assert everything == [expected_ids.index(v) if v in expected_ids else -1 for v in range(30)]


def test_borrowed_array_comes_back_clean():
    for seeds in ([5, 1], [1, 5], [0]):
        with relabel.NodeList(7) as nodes:
            nodes.start(torch.tensor(seeds))
            assert nodes.add(torch.tensor([6, 5])).tolist()[0] == len(seeds)


def test_two_lists_at_a_time_do_not_share():
    with relabel.NodeList(7) as one, relabel.NodeList(7) as two:
        one.start(torch.tensor([3]))
        two.start(torch.tensor([4, 3]))
        assert one.add(torch.tensor([4])).tolist() == [1]
        assert two.add(torch.tensor([4])).tolist() == [0]


def test_a_seed_may_not_stand_twice():
    for make in MAKERS:
        with pytest.raises(InvalidInput, match=r"twice .* torch\.unique"), make(7) as nodes:
            nodes.start(torch.tensor([3, 4, 3]))


@pytest.mark.parametrize("wrong", [-1, 7])
def test_a_seed_must_exist(wrong):
    with pytest.raises(OutOfRange, match=f"node {wrong} .* 6"), relabel.NodeList(7) as nodes:
        nodes.start(torch.tensor([3, wrong]))
    with relabel.NodeList(7) as nodes:
        nodes.start(torch.tensor([3]))  # the error left nothing behind
        assert nodes.count == 1
