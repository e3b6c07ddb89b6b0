"""The reductions for GPUs, in Triton's interpreter.

The interpreter executes kernels with numpy; ``test_triton_compiles.py`` checks types.
"""

import importlib.util

import pytest

from tests.helpers import NO_TRITON, run_script

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=NO_TRITON)


def test_they_equal_the_kernels_of_the_cpu() -> None:
    """Groups are empty, of one, and longer than a program reads at a time."""
    run_script(
        """
import torch
from gnnlab.kernels import sddmm, segment_triton, spmm

torch.manual_seed(0)
INDPTR = torch.tensor([2, 5, 5, 6, 10, 80])
NAN, INF = float("nan"), float("inf")

def near(found, expected, **tolerance):
    torch.testing.assert_close(found, torch.from_numpy(expected), equal_nan=True, **tolerance)

def array(x):
    return None if x is None else x.numpy()

def check(width, dtype, ids, num_rows=7):
    indices = torch.randint(num_rows, (80,)).to(ids)
    order, weights = torch.randperm(80).to(ids), torch.randn(80, 2, dtype=dtype)
    x = torch.randn(num_rows, width, dtype=dtype)
    for mean in (False, True):
        found = segment_triton.weighted_sum(INDPTR, indices, x, mean=mean)
        near(found, spmm.weighted_sum(*map(array, (INDPTR, indices, x)), mean=mean))
        alone = weights[:, 0].contiguous()
        for slots in (order, None):
            filled = torch.arange(80).to(ids) if slots is None else slots
            for values, rows in ((alone, x), (weights, torch.stack([x, x * 2], 1))):
                given = INDPTR, indices, rows, values
                found = segment_triton.weighted_sum(*given, slots, mean)
                near(found, spmm.weighted_sum(*map(array, (*given, filled)), mean=mean))
    degrees = torch.tensor([0, 0, 3, 4, 5, 6, 7, 8])  # of rows of x: 0, 3, 1, 1, …
    inverse = 1 / degrees.diff().clamp(min=1).to(dtype)
    found = segment_triton.weighted_sum(INDPTR, indices.clamp(min=1), x, others=degrees)
    rows = indices.clamp(min=1)
    near(found, spmm.weighted_sum(*map(array, (INDPTR, rows, x, inverse, rows))))
    per_edge = torch.randn(80, width, dtype=dtype)
    found = segment_triton.weighted_sum(INDPTR, None, per_edge)
    near(found, spmm.weighted_sum(*map(array, (INDPTR, torch.arange(80), per_edge))))
    ties = x.round()
    ties[3], ties[4], ties[5] = NAN, -INF, INF
    for smallest in (False, True):
        for slots, rows in ((indices, ties), (None, per_edge.round())):
            filled = torch.arange(80) if slots is None else slots
            best, winner = segment_triton.extreme(INDPTR, slots, rows, smallest)
            expected = spmm.extreme(*map(array, (INDPTR, filled, rows)), smallest)
            near(best, expected[0])
            assert torch.equal(winner, torch.from_numpy(expected[1]))
    src, dst = indices[:21], indices[21:42]
    lhs, rhs = torch.randn(2, num_rows, 3, width, dtype=dtype)
    found = segment_triton.dot(src, dst, lhs, rhs)
    near(found, sddmm.dot(*map(array, (src, dst, lhs, rhs))))

check(6, torch.float32, torch.int32)
check(1, torch.float64, torch.int64)
wide = torch.randn(7, 130)
few = INDPTR[:5]
found = segment_triton.weighted_sum(few, torch.arange(10) % 7, wide)
near(found, spmm.weighted_sum(few.numpy(), (torch.arange(10) % 7).numpy(), wide.numpy()))
half = wide[:, :4].to(torch.bfloat16).contiguous()
found = segment_triton.weighted_sum(few, torch.arange(10) % 7, half)
assert found.dtype == torch.bfloat16
expected = spmm.weighted_sum(few.numpy(), (torch.arange(10) % 7).numpy(), half.float().numpy())
near(found.float(), expected, rtol=1 / 128, atol=0)
none = torch.zeros(0, dtype=torch.int64)
assert segment_triton.weighted_sum(torch.zeros(3, dtype=torch.int64), none, wide).abs().max() == 0
assert segment_triton.weighted_sum(torch.zeros(1, dtype=torch.int64), none, wide).shape == (0, 130)
assert segment_triton.extreme(torch.tensor([0, 1]), none[:1], wide[:, :0])[0].shape == (1, 0)
""",
        env={"TRITON_INTERPRET": "1"},
        fresh=True,
    )
