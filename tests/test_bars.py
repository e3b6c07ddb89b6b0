"""Progress bars are tqdm's, except that one variable turns them off everywhere."""

from __future__ import annotations

import io
import time

import pytest
import tqdm.auto
import tqdm.notebook

from gnnlab.bars import progress_bar


def draw(seconds: float, show: bool = True) -> str:
    file = io.StringIO()
    for _ in progress_bar([0, 1], show, file=file, delay=0.05):
        time.sleep(seconds)
    return file.getvalue()


@pytest.fixture(autouse=True)
def bars_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.std.tqdm)


def test_what_takes_long_is_drawn_and_what_is_short_is_not() -> None:
    assert "2/2" in draw(0.1)
    assert draw(0) == ""


def test_bars_are_turned_off_by_the_caller_and_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert draw(0.1, show=False) == ""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert draw(0.1) == ""


def test_bars_of_notebooks_are_turned_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """tqdm's own do not read the variable: a slow disk changed what a tested lesson showed."""
    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.notebook.tqdm)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert progress_bar([0, 1]).disable
    monkeypatch.delenv("TQDM_DISABLE")
    assert not progress_bar([0, 1]).disable
