"""The table of limits is whole, on a graph so small that its figures mean nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import distributed, limits
from benchmarks.data import NAMES


def test_every_task_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 300, (2, 3000)).astype(np.int32)
    feat = rng.random((300, 8), np.float32)
    for name, array in zip(NAMES, (*ends, feat, np.arange(300) % 5, np.arange(30)), strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    # Servers would take longer than all the rest; the connections that limit them are real.
    asked = []

    def ours(_: Path, security: str) -> list[dict]:
        asked.append(security)
        return [{"task": "disttensor_read30k remote", "ms": 7.0}]

    monkeypatch.setattr(distributed, "cut", lambda data, folder: folder)
    monkeypatch.setattr(distributed, "ours", ours)
    header, *rows = limits.measure(tmp_path, "T", 1, remote=True)
    assert [len(row) for row in rows] == [len(header)] * 9
    assert all(float(figure) >= 0 for row in rows for figure in row[1:4]), rows
    assert all(float(row[2]) > 0 for row in rows if row[1] == "7.00"), rows  # of the connections
    assert asked == ["none"] * 2 + ["tls"] * 2
