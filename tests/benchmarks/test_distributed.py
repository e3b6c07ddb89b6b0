"""What a peer lacks is said before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import distributed


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
    assert refusal() == (
        f"{tmp_path}/part_S_2 holds no graph in parts, which bench_dgl_dist.py reads. Make it: "
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
    with pytest.raises(SystemExit, match=r"dgl measured nothing \(status 3\):\nno servers"):
        distributed.theirs(tmp_path, "dgl")
