from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from gnnlab.ops import segment_reduce
from tests.ops.reference import REDUCE, assert_near


@pytest.mark.parametrize("reducer", list(REDUCE))
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_equals_the_definition(reducer: str, shape: tuple, path: str) -> None:
    lengths = torch.tensor([2, 0, 3, 1, 0])
    value = torch.randn(6, *shape, dtype=torch.float64, requires_grad=True)
    rows = [
        REDUCE[reducer](part) if len(part) else torch.zeros(shape, dtype=torch.float64)
        for part in value.split(lengths.tolist())
    ]
    assert_near(segment_reduce(lengths, value, reducer), torch.stack(rows))
    assert_near(segment_reduce(lengths.int(), value, reducer), torch.stack(rows))
    assert gradcheck(lambda x: segment_reduce(lengths, x, reducer), value)


def test_integers_and_nothing(path: str) -> None:
    assert segment_reduce(torch.tensor([1, 2]), torch.tensor([4, 5, 6])).tolist() == [4, 11]
    assert segment_reduce(torch.tensor([0, 0]), torch.ones(0, 2), "max").tolist() == [[0, 0]] * 2
    assert segment_reduce(torch.tensor([]), torch.ones(0, 2)).shape == (0, 2)
