"""The kernel that reads pinned rows, in Triton's interpreter: on the CPU, with numpy."""

import importlib.util

import pytest

from tests.helpers import NO_TRITON, run_script

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=NO_TRITON)


def test_rows_of_all_dtypes_and_shapes_with_and_without_a_cache() -> None:
    run_script(
        """
        import torch
        from gnnlab.kernels import gather, gather_triton

        generator = torch.Generator().manual_seed(0)
        dtypes = [torch.float32, torch.float16, torch.bool, torch.int64, torch.uint16]
        dtypes += [torch.complex64, torch.float8_e4m3fn]
        for dtype in dtypes:
            for shape in [(), (3,), (100,), (5, 7), (2, 300)]:
                matrix = (100 * torch.rand(50, *shape, generator=generator)).to(dtype)
                words = gather.words(matrix)
                for ids in torch.randint(50, (37,), generator=generator), torch.empty(0).int():
                    expected = words[ids.long()]
                    assert torch.equal(gather_triton.rows(words, ids), expected), (dtype, shape)
                    assert torch.equal(gather_triton.rows(words, ids.int()), expected)
                    # Of the rows that are cached, the matrix has other values.
                    cached = torch.arange(0, 50, 3)
                    slots = torch.full((50,), -1, dtype=torch.int32)
                    slots[cached] = torch.arange(17, dtype=torch.int32)
                    table, rest, hits = words[cached], words.clone(), torch.ones(1).long()
                    rest[cached] = 0
                    found = gather_triton.rows(rest, ids, slots, table, hits)
                    assert torch.equal(found, expected)
                    assert int(hits) == 1 + int((ids % 3 == 0).sum())

        # Rows that do not exist are zeros.
        matrix = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
        around = torch.full((6, 2), 9, dtype=torch.int32)
        around[2:4] = matrix
        ids, slots = torch.tensor([-1, 1, 2, 1 << 40]), torch.tensor([-1, 0]).int()
        expected = [[0, 0], [3, 4], [0, 0], [0, 0]]
        assert gather_triton.rows(around[2:4], ids).tolist() == expected
        hits = torch.zeros(1).long()
        assert gather_triton.rows(around[2:4], ids, slots, matrix[1:], hits).tolist() == expected
        assert int(hits) == 1
        """,
        env={"TRITON_INTERPRET": "1"},
        fresh=True,
    )
