"""docs/architecture.md is true and short: its picture is LEVELS, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.test_levels import LEVELS

MOST_WORDS = 2200  # ten minutes
PAGES = ("docs/architecture.md", "docs/internals.md", "CONTRIBUTING.md")


def test_the_picture_shows_the_levels() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf8")
    rows = re.findall(r"^ *(\d+) +([\w.]+(?: · [\w.]+)*)", text, re.MULTILINE)
    assert [int(level) for level, _ in rows] == list(reversed(range(len(LEVELS))))
    assert [set(names.split(" · ")) for _, names in rows] == LEVELS[::-1]


def test_every_package_is_described() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf8")
    cells = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    named = {name.rstrip("/") for name in re.findall(r"`([^`]+)`", cells)}
    assert set().union(*LEVELS) - {"__main__"} <= named


def test_it_is_read_in_ten_minutes() -> None:
    words = re.findall(r"\S*\w\S*", (ROOT / "docs/architecture.md").read_text("utf8"))
    assert len(words) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    """A path may start at the root, gnnlab/ or a package; NN and NAME stand in."""
    text = (ROOT / page).read_text("utf8")
    named = set(re.findall(r"`((?:[\w.*-]+/)*[\w*-]+\.(?:py|md|txt|csv))`", text))
    missing = [
        name
        for name in sorted(named)
        if "NAME" not in name
        and "NN_" not in name
        and not any(any(base.glob(name)) for base in _bases())
    ]
    assert not missing, f"{page} names files that do not exist: {missing}"


def _bases() -> list[Path]:
    tops = [ROOT / "gnnlab", ROOT / "tests"]
    packages = [path for top in tops for path in top.iterdir() if path.is_dir()]
    return [ROOT, ROOT / "docs", *tops, *packages]
