"""Each dtype that torch can index can be stored and sent; others are refused by name."""

from __future__ import annotations

import pytest
import torch

from gnnlab.errors import InvalidInput
from gnnlab.kernels.dtypes import DTYPES, check_stored, dtype_name, numpy_view, read_dtype


def is_indexed(dtype: torch.dtype) -> bool:
    try:
        torch.zeros(2, dtype=dtype)[torch.tensor([1])]
    except (RuntimeError, NotImplementedError):  # the former: quantized tensors lack zeros
        return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_the_table_has_what_torch_indexes() -> None:
    all_of_torch = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    assert set(DTYPES.values()) == {dtype for dtype in all_of_torch if is_indexed(dtype)}
    assert all(read_dtype(dtype_name(dtype)) is dtype for dtype in DTYPES.values())


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_views_that_numpy_has(dtype: torch.dtype) -> None:
    """Of the same dtype, or, where numpy lacks it, of integers of the same size."""
    words = {torch.bfloat16: torch.int16, torch.complex32: torch.int32}
    values = numpy_view(torch.ones(3, 2).to(dtype))
    assert values.dtype in (dtype, words.get(dtype, torch.int8))
    assert values.numpy().nbytes == 6 * dtype.itemsize


def test_others_are_refused() -> None:
    for act in (
        lambda: numpy_view(torch.zeros(2, dtype=torch.uint4)),
        lambda: check_stored(torch.quint8),
        lambda: check_stored(torch.uint4),
        lambda: read_dtype("bits8"),
        lambda: read_dtype("Tensor"),
    ):
        with pytest.raises(InvalidInput):
            act()
