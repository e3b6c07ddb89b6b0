"""The language of figures, with and without a font for it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib import font_manager, pyplot

from gnnlab import plot
from gnnlab.plot import fonts, words
from tests.plot.samples import legend

KOREAN, CHINESE = "이웃 수", "邻居数"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with pyplot.rc_context():
        yield
        plot.language("en")


@pytest.fixture
def without_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = font_manager.fontManager.ttflist
    ours = [entry for entry in listed if entry.name.startswith("DejaVu")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", ours)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])


def drawn(text: str) -> str:
    """What a figure shows as its title; a letter that no font has is an error."""
    figure, ax = pyplot.subplots()
    ax.set_title(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    pyplot.close(figure)
    return str(ax.get_title())


@pytest.mark.parametrize(
    ("lang", "text", "label"),
    [("en", "k", "compute"), ("ko", KOREAN, "계산"), ("zh", CHINESE, "计算")],
)
def test_with_a_font_text_stays_and_labels_are_translated(lang: str, text: str, label: str) -> None:
    if plot.language(lang) != lang:
        pytest.skip(f"no font for {lang!r} is installed")
    assert drawn(text) == text
    assert legend(plot.time_parts({"mine": {"compute": 1.0, "own": 2.0}})) == ["own", label]


def test_without_a_font_known_text_is_english(
    without_fonts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {
        "{kind}": "{kind}s",
        KOREAN: "neighbors",
        "{name}：{value}": "{name}: {value}",
        "{b:.1f} 뒤 계층 {a}개": "{a}-layer after {b:.1f}",
    }
    (tmp_path / ".words.json").write_text(json.dumps(words))
    monkeypatch.chdir(tmp_path)
    assert plot.language("ko") == "en"
    assert drawn(KOREAN) == "neighbors"
    assert drawn("0.5 뒤 계층 3개") == "3-layer after 0.5"
    assert drawn("모르는 말 7") == "7"
    assert drawn(f"{KOREAN}：{KOREAN}") == "neighbors: neighbors"
    assert drawn("as it is") == "as it is"
    assert plot.language("en") == "en"
    figure, ax = pyplot.subplots()
    assert ax.set_title(KOREAN).get_text() == KOREAN
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("lang", "text", "english"),
    [("ko", "계층 3개", "3-layer"), ("zh", "验证准确率", "validation accuracy")],
)
def test_words_of_the_lessons_are_found_from_any_folder(
    without_fonts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    lang: str, text: str, english: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    plot.language(lang)
    assert drawn(text) == english


def test_without_a_font_labels_are_english(without_fonts: None) -> None:
    plot.language("zh")
    assert legend(plot.time_parts({1: {"compute": 1.0}})) == ["compute"]


def test_labels_keep_their_fields() -> None:
    for english, others in words._TABLE.items():
        wanted = set(fonts._FIELD.findall(english))
        assert [set(fonts._FIELD.findall(other)) for other in others] == [wanted] * 2


def test_figures_have_a_background_for_white_and_for_dark_pages() -> None:
    plot.language("en")
    figure, ax = pyplot.subplots()
    red, green, blue, alpha = figure.get_facecolor()
    assert 0.8 < min(red, green, blue) < 1 and alpha == 1
    assert ax.get_facecolor() == figure.get_facecolor()
    pyplot.close(figure)
