"""docs/architecture.md is true and short: its picture is FLOORS, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.test_floors import FLOORS

MOST_WORDS = 2200  # ten minutes
PAGES = ("docs/architecture.md", "docs/internals.md", "CONTRIBUTING.md")


def test_the_picture_shows_the_floors() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf8")
    rows = re.findall(r"^ *(\d+) +([\w.]+(?: · [\w.]+)*)", text, re.MULTILINE)
    assert [int(floor) for floor, _ in rows] == list(reversed(range(len(FLOORS))))
    assert [set(rooms.split(" · ")) for _, rooms in rows] == FLOORS[::-1]


def test_every_room_is_described() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf8")
    cells = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    rooms = {name.rstrip("/") for name in re.findall(r"`([^`]+)`", cells)}
    assert set().union(*FLOORS) - {"__main__"} <= rooms


def test_it_is_read_in_ten_minutes() -> None:
    words = re.findall(r"\S*\w\S*", (ROOT / "docs/architecture.md").read_text("utf8"))
    assert len(words) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    """A path may be given from the root, from gnnlab/, or within a room; NN and NAME stand in."""
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
    rooms = [path for top in tops for path in top.iterdir() if path.is_dir()]
    return [ROOT, ROOT / "docs", *tops, *rooms]
