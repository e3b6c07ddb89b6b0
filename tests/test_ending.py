"""Processes end in peace."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gnnlab import ending
from tests.helpers import run_processes, run_script

LATE = """
    import sys
    import torch
    import torch.distributed as dist
    import gnnlab

    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    ours = torch.zeros(int(sys.argv[1]))
    everybodys = [torch.empty_like(ours)]
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: dist.all_gather(everybodys, ours, async_op=True) and None)
    x.sum().backward()
"""


AGAIN = pytest.mark.thorough("which size comes too late depends on the computer")


@pytest.mark.parametrize(
    "size", [pytest.param(200_000, marks=AGAIN), 500_000, pytest.param(1_000_000, marks=AGAIN)]
)
def test_a_collective_that_is_still_on_its_way(size: int) -> None:
    """Without a wait, most of these are aborted (SIGABRT) by a thread of gloo."""
    run_processes(LATE, [{}, {}, {}], [str(size)], 120)


def test_no_wait_where_torch_has_no_threads() -> None:
    """The thread that waits is none of them, though torchrun gives it such a name."""
    printed = run_script("""
        import time
        from pathlib import Path
        from gnnlab.ending import await_torch

        if (name := Path("/proc/self/comm")).exists():
            name.write_text("pt_elastic")
        start = time.perf_counter()
        await_torch()
        print(time.perf_counter() - start)
    """)
    assert float(printed) < 1


@pytest.mark.skipif(not ending._TASKS.is_dir(), reason="this system does not tell of threads")
def test_states_are_those_of_torchs_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = {"1": "1 (python) R 0", "2": "2 (pt_gloo_runloop) S 0", "3": "3 (pt_odd ) R) D 0 1"}
    for number, stat in tasks.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "stat").write_text(stat)
    (tmp_path / "4").mkdir()  # ended while we looked
    monkeypatch.setattr(ending, "_TASKS", tmp_path)
    assert ending._states() == {"S", "D"}


def test_a_thread_without_rest_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_states", lambda: {"R"})
    start = time.monotonic()
    ending.await_torch(limit=0.05)
    assert 0.05 <= time.monotonic() - start < 5


def test_where_the_system_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_TASKS", tmp_path / os.devnull[1:])
    assert ending._states() == {"S"}
