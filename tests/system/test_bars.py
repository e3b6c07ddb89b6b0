"""Progress bars are tqdm's, except that one variable turns them off everywhere."""

from __future__ import annotations

import io
import time

import pytest
import tqdm.auto
import tqdm.notebook

from gnnlab.system.bars import progress_bar


def draw(seconds: float, show: bool = True) -> str:
    file = io.StringIO()
    for _ in progress_bar([0, 1], show, file=file, delay=0.05):
        time.sleep(seconds)
    return file.getvalue()


@pytest.fixture(autouse=True)
def bars_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TQDM_DISABLE", "LOCAL_RANK", "RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.std.tqdm)


def test_what_takes_long_is_drawn_unless_it_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "2/2" in draw(0.1) and draw(0) == draw(0.1, show=False) == ""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert draw(0.1) == ""


@pytest.mark.parametrize(
    ("rank", "local_rank", "draws"),
    [("0", "0", True), ("4", "0", True), ("1", "1", False), ("0", None, True), ("3", None, False)],
)
def test_one_rank_of_a_machine_draws_bars(
    monkeypatch: pytest.MonkeyPatch, rank: str, local_rank: str | None, draws: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    if local_rank:
        monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert bool(draw(0.1)) is draws


def test_bars_of_notebooks_are_turned_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """tqdm's own do not read the variable: a slow disk changed what a tested lesson showed."""
    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.notebook.tqdm)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert progress_bar([0, 1]).disable
    monkeypatch.delenv("TQDM_DISABLE")
    assert not progress_bar([0, 1]).disable
