"""Encrypted servers are measured; what a peer lacks is said before anything is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import distributed
from benchmarks.data import NAMES


@pytest.mark.thorough("measures, which takes its time")
def test_encrypted_servers_are_measured(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 4000, (2, 20_000)).astype(np.int32)
    feat, label = rng.random((4000, 8), np.float32), np.arange(4000) % 5
    for name, array in zip(NAMES, (*ends, feat, label, np.arange(4000)), strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    answers = distributed.ours(distributed.cut(tmp_path, tmp_path / "parts"), "tls")
    found = {answer["task"]: answer for answer in answers}
    assert found["disttensor_read30k remote"]["ms"] > 0
    assert found["epoch"]["rows"] > 1000


def test_what_a_peer_lacks_is_said_at_once(tmp_path: Path) -> None:
    def refusal() -> str:
        with pytest.raises(SystemExit) as caught:
            distributed.measure(tmp_path, 1, tmp_path, ["dgl"], "none")
        return str(caught.value)

    (tmp_path / "dgl" / "bin").mkdir(parents=True)
    assert refusal().startswith(f"{tmp_path}/dgl/bin/python is missing")
    (tmp_path / "dgl" / "bin" / "python").touch()
    assert refusal().startswith(f"{tmp_path}/bench_dgl_dist.py is missing")
    (tmp_path / "bench_dgl_dist.py").touch()
    assert refusal().endswith(
        f"cd {tmp_path} && BENCH_DIR=$PWD dgl/bin/python bench_dgl.py S 1 part:2"
    )
    (tmp_path / "part_S_2").mkdir()
    (tmp_path / "part_S_2" / "gS.json").touch()
    distributed.check_peer(tmp_path, "dgl")


def test_a_peer_that_measures_nothing_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "dgl" / "bin").mkdir(parents=True)
    python = tmp_path / "dgl" / "bin" / "python"
    python.write_text("#!/bin/sh\necho no servers >&2; exit 3\n")
    python.chmod(0o755)
    with pytest.raises(SystemExit, match=r"dgl .*3\):\nno servers"):
        distributed.theirs(tmp_path, "dgl")
