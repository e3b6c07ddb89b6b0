"""Medians, ratios and tables, from results written out by hand."""

from __future__ import annotations

import pytest

from benchmarks.table import (
    memory_table,
    milliseconds,
    speed_table,
    summarize,
)


def result(system: str, task: str, **values: float) -> dict:
    return {"sys": system, "task": task, **values}


RESULTS = [
    result("gnnlab", "build", ms=10.0, rss=100, peak=150),
    result("dgl", "build", total_s=0.030, rss=200, peak=260),
    result("gnnlab", "build", ms=30.0, rss=110, peak=160),
    result("dgl", "build", total_s=0.050, rss=200, peak=250),
    result("gnnlab", "build", ms=20.0, rss=120, peak=155),
    result("dgl", "build", total_s=0.040, rss=210, peak=320),
    result("gnnlab", "epoch", s=2.0),
    result("dgl", "epoch", error="ran out of patience"),
]


@pytest.mark.parametrize(
    ("answer", "ms"),
    [({"ms": 3}, 3.0), ({"s": 0.5}, 500.0), ({"total_s": 2}, 2000.0), ({"error": "x"}, None)],
)
def test_every_unit_becomes_milliseconds(answer: dict, ms: float | None) -> None:
    assert milliseconds(answer) == ms


def test_median_and_range_of_each_system() -> None:
    cells = summarize(RESULTS)
    assert cells["build"]["gnnlab"] == (20.0, 10.0, 30.0)
    assert cells["build"]["dgl"] == pytest.approx((40.0, 30.0, 50.0))
    assert list(cells["epoch"]) == ["gnnlab"]


def test_ratio_says_how_many_times_faster_we_are() -> None:
    assert speed_table(RESULTS, {"build": "COO → CSC"}) == [
        ["work", "gnnlab ms", "dgl ms", "dgl / gnnlab"],
        ["COO → CSC", "20.00 [10.00–30.00]", "40.00 [30.00–50.00]", "2.00"],
        ["epoch", "2000 [2000–2000]", "–", "–"],
    ]


def test_memory_after_build_and_peak() -> None:
    assert memory_table(RESULTS) == [
        ["memory", "after build MB", "peak MB", "peak / gnnlab"],
        ["gnnlab", "120", "160", "1.00"],
        ["dgl", "210", "320", "2.00"],
    ]
