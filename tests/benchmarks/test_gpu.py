"""The benchmark of epochs on a GPU, here on the CPU and on a small graph."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch

from benchmarks import gpu
from benchmarks.__main__ import main


class Slow:
    """Sixteen steps; the first is slower than the others together."""

    def __len__(self):
        return 16

    def __iter__(self):
        for step in range(16):
            time.sleep(0.2 if step == 0 else 0.01)
            yield torch.tensor(0.0)


def test_an_epoch_is_measured_whole_or_from_its_later_steps(monkeypatch):
    seconds, is_whole = gpu._epoch(Slow())
    assert is_whole and seconds >= 0.35
    monkeypatch.setattr(gpu, "MOST_SECONDS", 0.1)  # less than the first step takes
    seconds, is_whole = gpu._epoch(Slow())
    assert not is_whole and seconds >= 0.16


@pytest.mark.thorough("trains for half a minute")
def test_the_table_and_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "FANOUTS", gpu.FANOUTS[:1])
    path = tmp_path / "gpu.json"
    arguments = ["gpu", "--size", "T", "--device", "cpu", "--epochs", "1", "--json", str(path)]
    assert main(arguments) == 0
    found = json.loads(path.read_text("utf8"))
    table = capsys.readouterr().out
    assert found["blocks_equal"] and "blocks equal the CPU's: yes" in table
    ours = [row for row in found["epochs"] if not row["place"].startswith("PyG")]
    assert {(row["place"], row["step"], row["fanouts"]) for row in ours} == {
        (place, step, str(fanouts))
        for place in ("on the device", "in pageable memory")
        for step in ("ordinary", "captured")
        for fanouts in gpu.FANOUTS
    }
    assert all(row["seconds"] > 0 and row["place"] in table for row in found["epochs"])
