"""Partitioning is killed at any step: a whole result stays, and the next run clears the rest.

An audit hook counts the steps that change the file system below a folder. From a given step on it
refuses every one, as if the process were no more: nothing is cleaned up after that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnlab.partition import partition_files
from gnnlab.partition.part import open_part
from tests.helpers import run_script
from tests.partition.samples import PART_OF, content, cut_ring, ring

_STEPS = {"os.mkdir", "os.rename", "os.rmdir", "os.remove", "os.link", "shutil.rmtree"}


class _Killed(BaseException):
    """Not an Exception, so that no error handling goes on."""


class _Hook:
    """Counts the steps below a folder; from step ``last`` on, refuses them."""

    folder, last, count, has_switched = "", 0, 0, False

    def begin(self, folder: Path, last: int) -> None:
        self.folder, self.last, self.count, self.has_switched = f"{folder}", last, 0, False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.folder or (event not in _STEPS and event != "open"):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & os.O_CREAT):
            return
        if any(isinstance(a, str | os.PathLike) and self.folder in str(a) for a in args[:2]):
            self.count += 1
            if self.count >= self.last:
                raise _Killed
            self.has_switched |= event == "os.rename" and str(args[1]).endswith("ring.json")


@pytest.fixture(scope="module")
def hook() -> Iterator[_Hook]:
    made = _Hook()
    sys.addaudithook(made)
    yield made
    made.folder = ""


def _from_files(folder: Path, num_hops: int) -> None:
    edges = folder.parent / "edges.npy"
    np.save(edges, np.stack([ends.numpy() for ends in ring().edges(order="eid")], 1))
    partition_files(edges, 6, "ring", 2, folder, num_hops, np.array(PART_OF), progress=False)


def _in_memory(folder: Path, num_hops: int) -> None:
    cut_ring(folder, num_hops=num_hops)


def _reach(folder: Path) -> int:
    """Reach of the halo of the result that is there; its checksums are right."""
    halo = [open_part(folder / "ring.json", i).edges["_N", "_E", "_N"].halo for i in range(2)]
    return {(3, 3): 1, (4, 4): 2}[len(halo[0]), len(halo[1])]


@pytest.mark.parametrize(("cut", "stride"), [(_in_memory, 5), (_from_files, 9)])
def test_killed_at_every_step(
    cut: Callable[[Path, int], None], stride: int, tmp_path: Path, hook: _Hook
) -> None:
    found = []
    for step in range(1, 200, stride):
        folder = tmp_path / f"{step}"
        cut(folder, 1)
        hook.begin(folder, step)
        try:
            cut(folder, 2)
            break
        except _Killed:
            pass
        finally:
            hook.folder = ""
        # The rename of the JSON file is the only switch.
        found.append(_reach(folder))
        assert found[-1] == 1 + hook.has_switched, step
        if step % 3 == 2:
            continue
        cut(folder, 2)
        assert _reach(folder) == 2
        left = sorted(path.name for path in folder.iterdir())
        assert len(left) == 3 and left[-1] == "ring.json", (step, left)
    assert step > 40
    assert found.count(1) > 4 and found.count(2) > 1  # killed while it removed old folders, too


def test_first_result_killed(tmp_path: Path, hook: _Hook) -> None:
    """Where nothing was before, folders without a JSON file are cleared by any next run."""
    hook.begin(tmp_path, 25)
    with pytest.raises(_Killed):
        cut_ring(tmp_path)
    hook.folder = ""
    assert (tmp_path / "part0" / "graph").is_dir() and not (tmp_path / "ring.json").exists()
    cut_ring(tmp_path / "out")  # another folder is not touched
    assert (tmp_path / "part0").is_dir()
    cut_ring(tmp_path)
    assert not list(tmp_path.glob(".*")) and len(list(tmp_path.glob("part*"))) == 2


def test_drafts_of_killed_processes_and_of_running_ones(tmp_path: Path) -> None:
    """Really killed: the system releases the lock. A draft of a running process stays."""
    folder = tmp_path / "out"
    cut_ring(folder)
    before = content(folder)
    script = f"""
        import os, signal
        from gnnlab.partition.writer import PartitionWriter
        writer = PartitionWriter({str(folder)!r}, "other", 2).__enter__()
        print(sorted(os.listdir({str(folder)!r}))[1:3], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    with pytest.raises(pytest.fail.Exception, match="part0-other"):
        run_script(script)
    assert len(list(folder.glob(".other-*.draft"))) == 1
    assert content(folder).items() > before.items()

    def look(g: Any, num_parts: int) -> list[int]:
        drafts.append([path.name.rpartition("-")[0] for path in folder.glob(".*.draft")])
        if len(drafts) == 1:
            cut_ring(folder, num_hops=2)  # while another run writes the same graph
        drafts.append([path.name.rpartition("-")[0] for path in folder.glob(".*.draft")])
        return PART_OF

    drafts: list[list[str]] = []
    cut_ring(folder, part_method=look)
    assert drafts == [[".ring"], [".ring"]]
    assert _reach(folder) == 1 and len(list(folder.iterdir())) == 3
