"""docs/performance.md: its first table summarizes the runs in benchmarks/results/dgl.json."""

from __future__ import annotations

import json
import re
import statistics

import pytest

from tests.helpers import ROOT

RUNS = json.loads((ROOT / "benchmarks/results/dgl.json").read_text("utf8"))["runs"]


def ratios(size: str, work: str) -> list[float]:
    return sorted(r["ratios"][work] for r in RUNS if r["size"] == size and work in r["ratios"])


def test_table_is_median_and_range_of_the_runs() -> None:
    page = (ROOT / "docs/performance.md").read_text("utf8")
    table = page.partition("runs, M |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(table) == len({work for run in RUNS for work in run["ratios"]})
    last = ""
    for row in table:
        work, median, spread, large = (cell.strip() for cell in row.strip("|").split("|"))
        last = last if work.startswith("…") else work
        work = re.sub("^… (and read|with)", f"{last},", work)
        found = ratios("S", work)
        assert float(median) == pytest.approx(statistics.median(found), abs=0.051)
        shown = [float(number) for number in spread.split("–")]
        assert shown == pytest.approx([found[0], found[-1]], abs=0.001), work
        assert large == (", ".join(map(str, ratios("M", work))) or "–"), work
