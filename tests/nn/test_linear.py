"""TypedLinear and WeightBasis: values of DGL 2.1, a loop over rows, errors."""

import pytest
import torch

from gnnlab.nn import TypedLinear, WeightBasis
from tests.nn.toy import assert_close, fill, ramp


def test_weight_basis_of_dgl():
    expected = [
        [[0.02, -0.19, -0.07], [0.05, -0.16, -0.04]],
        [[-0.16, 0.05, -0.07], [-0.19, 0.02, -0.1]],
        [[0.1, -0.04, 0.04], [0.12, -0.02, 0.06]],
    ]
    assert_close(fill(WeightBasis((2, 3), 2, 3))(), expected)


def test_basis_of_dgl():
    expected = [
        [[0.3, -0.04], [-0.16, 0.05], [-0.07, -0.19]],
        [[-0.17, 0.02], [0.1, -0.04], [0.04, 0.12]],
        [[-0.2, 0.08], [-0.08, 0.2], [0.04, -0.12]],
    ]
    assert_close(fill(TypedLinear(3, 2, 3, "basis", 2)).get_weight(), expected)


def test_blocks_of_dgl():
    layer = fill(TypedLinear(4, 2, 3, "bdd", 2))
    expected = [[0.26, -0.23], [-0.11, -0.08], [-0.13, -0.04]]
    assert_close(layer(ramp(3, 4), torch.tensor([2, 0, 1])), expected)


@pytest.mark.parametrize("regularizer", [None, "basis", "bdd"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_equals_a_product_per_row(regularizer, dtype):
    torch.manual_seed(0)
    layer = TypedLinear(4, 6, 5, regularizer, 2)
    rows, types = torch.randn(20, 4), torch.randint(4, (20,), dtype=dtype)  # type 4 is absent
    weight = layer.get_weight()
    if regularizer == "bdd":
        weight = torch.stack([torch.block_diag(*blocks) for blocks in weight.view(5, 2, 2, 3)])
    expected = torch.stack([row @ weight[kind] for row, kind in zip(rows, types, strict=True)])
    assert_close(layer(rows, types), expected)
    types, order = types.sort(stable=True)
    assert_close(layer(rows[order], types, sorted_by_type=True), expected[order])


def test_no_rows():
    assert TypedLinear(4, 6, 3)(torch.empty(0, 4), torch.empty(0, dtype=torch.int64)).shape == (
        0,
        6,
    )


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        (
            lambda: TypedLinear(4, 6, 3)(torch.ones(2, 4), torch.tensor([0, 3])),
            IndexError,
            "0 to 3",
        ),
        (lambda: TypedLinear(4, 6, 3)(torch.ones(2, 4), torch.arange(3)), ValueError, r"\(2,\)"),
        (lambda: TypedLinear(4, 6, 3, "diag"), ValueError, "'diag'"),
        (lambda: TypedLinear(5, 6, 3, "bdd", 2), ValueError, "5 and 6 .* 2 blocks"),
    ],
)
def test_errors(call, kind, named):
    with pytest.raises(kind, match=named):
        call()
