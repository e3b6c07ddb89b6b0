"""Forks: what hangs, caused in processes with a deadline, and what keeps it from hanging.

Each script below is a fresh interpreter that uses torch's operators on two threads and then forks.
"""

from __future__ import annotations

import sys
import traceback
import types
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.helpers import block_sampler, fork
from tests.accelerator import GPU
from tests.helpers import run_script

COMMON = """
import os, sys, time, torch
import torch.multiprocessing as mp
torch.set_num_threads(2)

def compute(scale=2):
    return (torch.ones(2_000_000) * scale).sum().item()

def outcome(process, seconds):
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return "hangs"
    return process.exitcode

Forked = mp.get_context("fork").Process
compute()  # from now on GNU OpenMP has a team of two threads
"""


def script(text: str) -> list[str]:
    return run_script(COMMON + text, timeout=200, fresh=True).splitlines()


def test_prepare_mp_makes_all_formats() -> None:
    g = dgl.heterograph({("u", "a", "v"): ([0, 1], [1, 0]), ("v", "b", "u"): ([1, 0], [0, 0])})
    fork.prepare_mp(g)
    assert g.formats() == {"created": ["coo", "csr", "csc"], "not created": []}
    fork.prepare_mp(dgl.graph(([], []), num_nodes=3))


def test_prepare_mp_takes_a_graph_of_the_small_library() -> None:
    g = block_sampler.Graph([0, 1], [1, 0])
    assert g._csc is None
    fork.prepare_mp(g)
    assert g._csc is not None
    for other in (3, types.SimpleNamespace(csc=list)):  # PyG's Data has a csc(), and stores nothing
        with pytest.raises(TypeError, match=r"takes a graph of gnnlab, .* found"):
            fork.prepare_mp(other)


def test_results_and_errors_come_through_the_thread() -> None:
    def fail() -> None:
        raise KeyError("inner")

    assert fork._in_new_thread(lambda: 3) == 3
    with pytest.raises(KeyError) as caught:
        fork._in_new_thread(fail)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"
    with pytest.raises(SystemExit) as ended:
        fork._in_new_thread(lambda: sys.exit(3))
    assert ended.value.code == 3


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_openmp_after_a_fork_hangs_and_each_remedy_works() -> None:
    """Causes the hang, too: where it is gone, a future torch needs no remedy."""
    printed = script(
        """
        from gnnlab.helpers.fork import fix_openmp, prepare_mp, rest_openmp
        print(outcome(Forked(target=compute), 3))
        print("decorated", outcome(Forked(target=fix_openmp(compute)), 30))
        print("at rest", rest_openmp(), outcome(Forked(target=compute), 30))

        class Nothing:
            def create_formats_(self): pass

        compute()
        prepare_mp(Nothing())
        print("prepared", [outcome(Forked(target=compute), 30) for _ in range(2)], compute())

        # A team belongs to the thread that made it, and it is that thread which forks.
        import threading
        found = []
        def start():
            compute()
            found.append(outcome(Forked(target=compute), 30))
        threads = [threading.Thread(target=start) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print("threads", found)
        """.replace("\n        ", "\n")
    )
    assert printed == [
        "hangs",
        "decorated 0",
        "at rest True 0",
        "prepared [0, 0] 4000000.0",
        "threads [0, 0]",
    ]


def test_locks_of_threads_are_open_in_a_forked_child() -> None:
    run_script(
        """
        import os, threading
        from gnnlab import random
        from gnnlab.helpers.fork import Lock

        lock, held = Lock(), threading.Event()

        def hold():
            with lock, random._lock:
                held.set()
                threading.Event().wait()

        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        child = os.fork()
        if child == 0:
            with lock, lock:
                random.next_key()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


@pytest.mark.gpu
def test_a_fork_after_a_gpu_was_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.ones(1, device=GPU)
    context = torch.multiprocessing.get_context("fork")
    before = context.active_children()
    monkeypatch.setattr(torch.multiprocessing, "get_start_method", lambda: "fork")
    monkeypatch.setattr(dgl.multiprocessing, "get_start_method", lambda: "fork")
    for fork_now in (
        fork.check_fork,
        lambda: dgl.multiprocessing.Process(target=print).start(),
        lambda: dgl.parallel.launch_processes(print, 2, start_method="fork"),
    ):
        with pytest.raises(fork.ForkError, match=f"^{GPU.upper()} is initialized") as caught:
            fork_now()
        assert "start_method='spawn'" in str(caught.value)
        assert "fork before anything uses the GPU" in str(caught.value)
    assert context.active_children() == before


class Driver:
    """libcuda as check_fork sees it: it is loaded, and perhaps initialized."""

    def __init__(self, devices: int | None) -> None:
        self.devices = devices

    def cuDeviceGetCount(self, pointer: Any) -> int:
        if self.devices is None:
            return 3  # CUDA_ERROR_NOT_INITIALIZED
        pointer._obj.value = self.devices
        return 0


@pytest.mark.parametrize("devices", [None, 0, 2])
def test_a_fork_after_a_question_that_started_the_driver(
    monkeypatch: pytest.MonkeyPatch, devices: int | None
) -> None:
    """torch.cuda.is_available() starts CUDA's driver, and is_initialized() stays False."""
    real, driver = fork.ctypes.CDLL, Driver(devices)
    monkeypatch.setattr(
        fork.ctypes, "CDLL", lambda path, *mode: driver if "cuda" in path else real(path, *mode)
    )
    with pytest.raises(fork.ForkError, match="is_available") if devices else nullcontext():
        fork.check_fork()


def test_openmp_is_found_in_a_folder_with_spaces(tmp_path: Path) -> None:
    run_script(
        """
        import re, shutil, sys
        from pathlib import Path
        import torch
        from gnnlab.helpers import block_sampler, fork

        folder = Path(sys.argv[1], "a b")
        folder.mkdir()
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "libgomp" in line:
                *numbers, path = line.split(maxsplit=5)
                shutil.copy(path, folder / "libgomp.so.1")
                fork._MAPS = folder / "maps"
                fork._MAPS.write_text(" ".join(numbers) + f"    {folder}/libgomp.so.1\\n")
        assert fork.rest_openmp()
        """,
        args=[str(tmp_path)],
    )


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")
def test_forked_workers_share_the_graph() -> None:
    """Two workers read all of a graph of 200 MB; memory grows by one copy of it, not by two.

    Counted is PSS: a page that k processes map counts 1/k in each.
    """
    run_script(
        """
        import gc, os, re, torch, gnnlab as dgl
        from gnnlab.helpers import prepare_mp
        from gnnlab.parallel import init_process_group, launch_processes

        def pss(pid):
            # Not that of files: how many processes share libraries is the business of others.
            with open(f"/proc/{pid}/smaps_rollup") as file:
                found = re.findall(r"^Pss_(?:Anon|Shmem):\\s+(\\d+)", file.read(), re.M)
            return sum(map(int, found)) * 1024

        def tensors(g):
            found = [g.ndata["x"]]
            g.relation().map(lambda tensor: found.append(tensor) or tensor)
            return found

        def read(rank, world_size, g):
            for tensor in tensors(g):
                assert tensor.min() <= tensor.max()  # touches every page
            init_process_group(device="cpu")
            torch.distributed.barrier()
            used = pss(os.getpid()) + (pss(os.getppid()) if rank == 0 else 0)
            torch.distributed.barrier()
            return used

        def measure(g):
            gc.collect()
            return sum(launch_processes(read, 2, g, start_method="fork"))

        torch.set_num_threads(1)
        small = dgl.graph(([0], [0]))
        small.ndata["x"] = torch.rand(1, 1)
        prepare_mp(small)
        dgl.rand_graph(10, 10).create_formats_()  # compiles
        before = measure(small)

        g = dgl.rand_graph(150_000, 2_000_000)
        g.ndata["x"] = torch.rand(150_000, 256)
        prepare_mp(g)
        size = sum(tensor.nbytes for tensor in tensors(g))
        assert size > 180e6, size
        after = measure(g)
        assert after - before < 1.15 * size, (before, after, size)
        """,
        timeout=120,
        fresh=True,
    )
