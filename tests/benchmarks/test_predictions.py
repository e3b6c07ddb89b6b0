"""The grid of predictions: its settings, its figures, and an interrupted run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import predictions
from benchmarks.predictions import ALONE, FACTORS, summary, tables

KNOWN = [(1.0, 1.1), (2.0, 1.9), (4.0, 4.2), (3.0, 5.0)]
"""Measured and predicted: off by 10, 5, 5 and 66.7 %; one pair of six in the wrong order."""


def known(setting: dict[str, Any]) -> dict[str, Any]:
    measured, predicted = KNOWN[setting["machines"] - 1]
    return {"measured": measured, "predicted": predicted, "equal": True, "limit": "compute"}


def settings() -> list[dict[str, Any]]:
    first = {name: levels[0] for name, levels in FACTORS.items()} | ALONE
    return [first | {"machines": machines} for machines in FACTORS["machines"]]


def test_errors_and_order_by_hand() -> None:
    rows = [{"setting": each, **known(each)} for each in settings()]
    rows[0] |= {"equal": False, "ahead": 1.2}  # 20 % too long
    found = summary([*rows, {"setting": rows[0]["setting"], "failed": "no room\nmore"}])
    assert found == pytest.approx(
        {"rows": 4, "failed": 1, "bytes equal": 3, "MAPE": (10 + 5 + 5 + 200 / 3) / 4,
         "ahead": 20, "worst": 200 / 3, "tau": (5 - 1) / 6}
    )  # fmt: skip
    shown, total = tables([*rows, {"setting": rows[0]["setting"], "failed": "no room"}])
    names = list(FACTORS)
    assert shown[0][: len(names)] == names and len({len(row) for row in shown}) == 1
    assert shown[1][len(names) :] == ["1.000 s", "1.100 s", "1.10", "NO", "compute"]
    assert shown[5][len(names)] == "failed"
    assert total == [list(found), ["4", "1", "3", "21.7 %", "20.0 %", "66.7 %", "0.667"]]
    assert tables([])[1][1][:3] == ["0", "0", "0"]


def test_a_run_that_broke_off_is_resumed(tmp_path: Path) -> None:
    """A row that fails is kept with its reason, later rows run, and resuming runs it again."""
    path, ran = tmp_path / "results" / "grid.json", []

    def fails(setting: dict[str, Any]) -> dict[str, Any]:
        if setting["machines"] == 2:
            raise RuntimeError("trainer-0 failed")
        if setting["machines"] == 4:
            raise KeyboardInterrupt
        return known(setting)

    def works(setting: dict[str, Any]) -> dict[str, Any]:
        ran.append(setting["machines"])
        return known(setting)

    with pytest.raises(KeyboardInterrupt):
        predictions.measure(path, settings=settings(), row=fails)
    before = json.loads(path.read_text("utf8"))
    assert [each.get("failed") for each in before["rows"]] == [
        None, "RuntimeError: trainer-0 failed", None,
    ]  # fmt: skip
    found = predictions.measure(path, resume=True, row=works)
    assert ran == [2, 4] and found == json.loads(path.read_text("utf8"))
    assert found["settings"] == before["settings"] == settings()
    assert summary(found["rows"])["rows"] == 4
    assert found["rows"][:2] == [before["rows"][0], before["rows"][2]]
    predictions.measure(path, resume=True, row=works)
    assert ran == [2, 4]
