"""torch.multiprocessing under another name, with processes that can compute."""

from __future__ import annotations

import os

import pytest
import torch

import gnnlab as dgl
from gnnlab.multiprocessing import shared_file
from tests.helpers import run_script


def test_everything_of_torch_is_here() -> None:
    for name in [*torch.multiprocessing.__all__, "spawn", "get_context", "Queue"]:
        assert name in ("Process",) or getattr(dgl.multiprocessing, name) is getattr(
            torch.multiprocessing, name
        )
    assert issubclass(dgl.multiprocessing.Process, torch.multiprocessing.Process)
    with pytest.raises(AttributeError):
        _ = dgl.multiprocessing.nothing


def test_processes_can_compute_and_share() -> None:
    """Forked after OpenMP was used, where plain processes hang; and started afresh."""
    run_script(
        """
        import torch, gnnlab as dgl, gnnlab.multiprocessing as mp

        def fill(rank, out):
            out[rank] = (torch.ones(2_000_000) * (rank + 1)).sum()

        def run(method, number):
            mp.set_start_method(method, force=True)
            out = mp.shared_tensor(number)
            processes = [mp.Process(target=fill, args=(rank, out)) for rank in range(number)]
            for process in processes:
                process.start()
            for process in processes:
                process.join(60)
                assert process.exitcode == 0, process.exitcode
            assert out.tolist() == [2e6, 4e6][:number], out

        if __name__ == "__main__":
            torch.set_num_threads(2)
            fill(0, torch.zeros(1))
            run("fork", 2)
            run("spawn", 1)
        """,
        timeout=100,
        fresh=True,
    )


@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 3)])
def test_shared_tensor_alone(shape: int | tuple[int, ...]) -> None:
    x = dgl.multiprocessing.shared_tensor(shape, torch.int64)
    assert x.shape == ((shape,) if isinstance(shape, int) else shape)
    assert x.dtype is torch.int64 and x.is_shared() and not x.any()


def test_ranks_get_the_same_memory() -> None:
    run_script(
        """
        import torch, gnnlab as dgl

        def work(rank, world_size):
            dgl.parallel.init_process_group(device="cpu")
            x = dgl.multiprocessing.shared_tensor((world_size, 2), torch.int16)
            y = dgl.multiprocessing.shared_tensor(())
            assert not x.any() and y == 0
            torch.distributed.barrier()
            x[rank] = rank + 1
            if rank == 1:
                y.fill_(7)
            torch.distributed.barrier()
            return x.tolist(), y.item(), dgl.multiprocessing.shared_tensor((0, 2)).shape[1]

        expected = ([[1, 1], [2, 2]], 7.0, 2)
        assert dgl.parallel.launch_processes(work, 2, start_method="fork") == [expected] * 2
        """
    )


def test_shared_files_leave_nothing() -> None:
    with shared_file(10) as (descriptor, name):
        with open(name, "r+b") as file:
            file.write(b"0123456789")
        assert os.pread(descriptor, 3, 7) == b"789" and os.stat(name).st_size == 10
    with pytest.raises(OSError):
        os.fstat(descriptor)
    assert not os.path.exists(name)
