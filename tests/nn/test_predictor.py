"""EdgePredictor: values of DGL 2.1 for each operation, with and without a linear layer."""

import pytest

from gnnlab.nn import EdgePredictor
from tests.nn.toy import assert_close, fill, ramp

# DGL 2.1: the score alone (first pair only for ele and cat), then through a linear layer 3 -> 2.
DGL_VALUES = {
    "dot": (
        [[0.18], [-0.11], [-0.12], [-0.07]],
        [[-0.536, 0.29], [-0.478, 0.145], [-0.476, 0.14], [-0.486, 0.165]],
    ),
    "cos": (
        [[0.57208], [-0.37187], [-0.41603], [-0.20597]],
        [[-0.61442, 0.48604], [-0.42563, 0.01407], [-0.41679, -0.00801], [-0.45881, 0.09701]],
    ),
    "ele": ([[0.1, 0.1, -0.02]], [[-0.472, 0.21], [-0.45, 0.261], [-0.464, 0.248], [-0.47, 0.237]]),
    "cat": (
        [[-0.5, 0.2, -0.2, -0.2, 0.5, 0.1]],
        [[-0.06, 0.66], [-0.33, 0.29], [-0.38, 0.36], [-0.43, 0.43]],
    ),
}


@pytest.mark.parametrize("op", DGL_VALUES)
def test_values_of_dgl(op):
    src, dst = ramp(4, 3), ramp(4, 3, start=1)
    score, through_linear = DGL_VALUES[op]
    assert_close(EdgePredictor(op)(src, dst)[: len(score)], score)
    assert_close(fill(EdgePredictor(op, 3, 2, bias=True))(src, dst), through_linear)


def test_output_size_needs_the_input_size():
    with pytest.raises(ValueError, match="in_feats"):
        EdgePredictor("cat", out_feats=2)
