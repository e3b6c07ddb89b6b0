"""DistDataLoader: mini-batches that a function of the user's makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gnnlab import random
from gnnlab.distributed import DistDataLoader
from gnnlab.errors import InvalidInput


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        (torch.arange(10, 20), torch.Tensor),
        (np.arange(10, 20), np.ndarray),
        (list(range(10, 20)), list),
        (range(10, 20), list),
        ([("user", i) for i in range(10)], list),
    ],
)
def test_batches_have_the_form_of_the_data_set(dataset: Any, kind: type) -> None:
    batches = list(DistDataLoader(dataset, 4))
    assert all(isinstance(batch, kind) for batch in batches)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert [item for batch in batches for item in batch] == list(dataset)


def test_in_order_without_shuffling_and_the_last_batch() -> None:
    loader = DistDataLoader(dataset=np.arange(5), batch_size=2, drop_last=True)
    assert len(loader) == 2
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    assert len(DistDataLoader(np.arange(5), 2)) == 3
    assert list(DistDataLoader(np.arange(0), 2)) == []
    assert [b.tolist() for b in DistDataLoader(np.arange(3), 100)] == [[0, 1, 2]]


def draw(ids: Any) -> tuple[list[int], int, list[int]]:
    """A collate function that uses randomness of the library and of torch."""
    return (
        list(ids),
        random.next_key(),
        torch.randint(99, (3,), generator=random.generator()).tolist(),
    )


def test_randomness_is_named_by_seed_epoch_and_batch() -> None:
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "collate_fn": draw}
    first, second = (DistDataLoader(np.arange(10), seed=3, **options) for _ in range(2))
    epochs = [list(first), list(first)]
    assert epochs[0] != epochs[1]
    random.next_key()  # what others draw in between does not matter
    assert [list(second), list(second)] == epochs
    again = DistDataLoader(np.arange(10), seed=3, **options)
    again.set_epoch(1)
    assert list(again) == epochs[1]
    other = DistDataLoader(np.arange(10), seed=4, **options)
    assert list(other) != epochs[0]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((7, 2), {}, "dataset needs a length and an index.*found int"),
        ((iter([1]), 2), {}, "found list_iterator"),
        (([1, 2], 0), {}, "batch_size must be a whole number, at least 1; found 0"),
        (([1, 2], 1.5), {}, "found 1.5"),
        (([1, 2], True), {}, "found True"),
        (([1, 2], "2"), {}, "found '2'"),
        (([1, 2], 2), {"queue_size": 0}, "queue_size must be a whole number, at least 1; found 0"),
        (([1, 2], 2), {"collate_fn": "sample"}, "collate_fn must be a function.*'sample'"),
    ],
)
def test_bad_input_is_refused(args: Any, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        DistDataLoader(*args, **kwargs)
