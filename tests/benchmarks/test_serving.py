"""The table of latencies counts what each way reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import data, serving


def test_every_way_on_both_kinds_of_graphs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(data.SIZES, "T", (500, 10_000))
    data.generate("T", tmp_path)
    monkeypatch.setattr(serving, "FANOUTS", [3, 4])
    head, *rows = serving.measure(tmp_path, requests=20)
    most = {row[0]: int(row[4]) for row in rows}
    assert len(head) == 5 and len(most) == 6
    for graph in ("Graph", "DistGraph"):
        assert most[f"{graph}, sampled [3, 4]"] <= 1 + 4 + 5 * 3
        assert most[f"{graph}, stored"] < most[f"{graph}, all neighbors"] <= 500
    assert all(0 < float(row[1]) <= float(row[2]) for row in rows)
