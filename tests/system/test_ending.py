"""Processes with torch's threads end without an abort; other processes do not wait."""

import hashlib
import threading
import time
from pathlib import Path

import pytest

from gnnlab.system.ending import await_torch
from tests.helpers import run_processes, run_script
from tests.nursery import FINALIZE

LATE = """
    import sys
    import torch
    import torch.distributed as dist
    import gnnlab

    JOIN
    ours = torch.zeros(int(sys.argv[1]))
    everybodys = [torch.empty_like(ours)]
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: dist.all_gather(everybodys, ours, async_op=True) and None)
    x.sum().backward()
"""
INIT = "dist.init_process_group('gloo', init_method='tcp://127.0.0.1:0', rank=0, world_size=1)"
LOADER = """gnnlab.dataloading.DataLoader(
        gnnlab.rand_graph(9, 9), [0], gnnlab.dataloading.NeighborSampler([1]), use_ddp=True
    )"""


AGAIN = pytest.mark.thorough("which size comes too late depends on the computer")


@pytest.mark.parametrize(
    ("join", "size"),
    [
        ("gnnlab.distributed.initialize(); dist.init_process_group('gloo')", 500_000),
        pytest.param("gnnlab.parallel.init_process_group(device='cpu')", 200_000, marks=AGAIN),
        pytest.param(f"{INIT}; len({LOADER})", 1_000_000, marks=AGAIN),
        pytest.param(
            f"{INIT}; gnnlab.parallel.init_model(torch.nn.Linear(1, 1))", 500_000, marks=AGAIN
        ),
    ],
)
def test_a_collective_that_is_still_on_its_way(join: str, size: int) -> None:
    """Without a wait, most of these are aborted (SIGABRT) by a thread of gloo."""
    run_processes(LATE.replace("JOIN", join), [{FINALIZE: "1"}] * 3, [str(size)], 120)


def test_importing_registers_nothing() -> None:
    """Neither the package nor any of its packages."""
    printed = run_script(
        """
        import atexit, importlib, sys
        import torch

        found = []
        register = atexit.register
        atexit.register = lambda each, *rest: found.append(each) or register(each, *rest)
        import gnnlab

        print(found, "gnnlab.system.ending" in sys.modules)
        for name in gnnlab._SUBMODULES:
            importlib.import_module(f"gnnlab.{name}")
        print([function for function in found if function.__module__.startswith("gnnlab")])
        gnnlab.distributed.initialize()
        gnnlab.distributed.initialize()
        print([each.__name__ for each in found if each.__module__ == "gnnlab.system.ending"])
        """,
        fresh=True,
    )
    assert printed.splitlines() == ["[] False", "[]", "['await_torch']"]


def test_a_process_of_ours_waits() -> None:
    printed = run_script("""
        import atexit, gnnlab
        atexit.register = lambda function: print(function.__name__)
        gnnlab.multiprocessing.Process(target=print, args=("work",)).run()  # as in the child
    """)
    assert printed.splitlines() == ["await_torch", "work"]


def test_no_wait_where_torch_has_no_threads() -> None:
    """The thread that waits is none of them, though torchrun gives it such a name."""
    printed = run_script("""
        import time
        from pathlib import Path
        from gnnlab.system.ending import await_torch

        if (name := Path("/proc/self/comm")).exists():
            name.write_text("pt_elastic")
        start = time.perf_counter()
        await_torch()
        print(time.perf_counter() - start)
    """)
    assert float(printed) < 1


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
def test_a_thread_of_torch_that_computes_is_not_awaited_for_ever() -> None:
    begun, done = threading.Event(), threading.Event()

    def compute() -> None:
        own = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        own.write_text("pt_odd ) S")  # the state comes after the last ")"
        begun.set()
        while not done.is_set():
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 300_000)  # releases Python's lock

    thread = threading.Thread(target=compute)
    thread.start()
    assert begun.wait(60)
    start = time.monotonic()
    await_torch(limit=0.05)
    assert 0.05 <= time.monotonic() - start < 5
    done.set()
    thread.join(60)
