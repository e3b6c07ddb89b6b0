"""The language of figures: a font that has its letters, or else English words; and their paper.

matplotlib's own font has neither Korean nor Chinese letters and draws a box for each. So figures
are in the reader's language only where a font for it is installed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.plot import words
from gnnlab.plot.canvas import require

# Families in the order of preference: those of Linux, Windows and macOS.
_FONTS = {
    "en": (),
    "ko": (
        *("Noto Sans CJK KR", "Noto Sans KR", "Source Han Sans KR", "NanumGothic", "Malgun Gothic"),
        *("Apple SD Gothic Neo", "AppleGothic", "NanumBarunGothic", "UnDotum", "Baekmuk Gulim"),
    ),
    "zh": (
        *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Microsoft YaHei", "SimHei"),
        *("PingFang SC", "Hiragino Sans GB", "Heiti TC", "STHeiti", "WenQuanYi Micro Hei"),
        *("WenQuanYi Zen Hei", "Noto Sans CJK JP"),
    ),
}
_FOREIGN = re.compile(r"[\u1100-\u11ff\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")
_FIELD = re.compile(r"\{([^{}:!]*)[^{}]*\}")
# Black text and all colors of figures can be read on it, and it does not glare on a dark page.
_PAPER = "#eceff3"
_WORDS = ".words.json"  # beside the notebooks of a language, written by notebooks/build.py


def language(lang: str) -> str:
    """Draw text in figures in this language from now on, if a font for it is installed.

    The labels of this package's figures change with it. If there is no font, text of the lessons is
    drawn in English, and other Korean and Chinese text is left out. Figures get a light gray
    background, for pages that are white and for pages that are dark.

    ``lang`` is "en", "ko" or "zh". Returns the figures' language: "en" if no font has the letters.

    Examples
    --------
    >>> from gnnlab import plot
    >>> plot.language("en")
    'en'
    """
    if lang not in _FONTS:
        raise InvalidInput(f"lang must be one of {', '.join(_FONTS)}; found {lang!r}")
    text = require("matplotlib.text").Text
    _draw_as_given(text)
    parameters = require("matplotlib").rcParams
    family = _family(lang)
    parameters["font.family"] = [family, "DejaVu Sans"] if family else ["DejaVu Sans"]
    for part in ("figure", "axes"):
        parameters[f"{part}.facecolor"] = _PAPER
    if lang != "en" and not family:
        _draw_in_english(text, _read_words(lang))
        lang = "en"
    words.use(lang)
    return lang


def _family(lang: str) -> str | None:
    """Return the first installed family for a language."""
    if not _FONTS[lang]:
        return None
    fonts = require("matplotlib.font_manager")
    if found := _first(fonts, lang):
        return found
    # matplotlib's list may be older than a font.
    listed = {entry.fname for entry in fonts.fontManager.ttflist}
    for path in set(fonts.findSystemFonts()) - listed:
        try:
            fonts.fontManager.addfont(path)
        except (OSError, RuntimeError, ValueError):
            continue  # a format that matplotlib does not read
    return _first(fonts, lang)


def _first(fonts: Any, lang: str) -> str | None:
    names = {entry.name for entry in fonts.fontManager.ttflist}
    return next((name for name in _FONTS[lang] if name in names), None)


# --- without a font --------------------------------------------------------------------------


def _draw_as_given(text: Any) -> None:
    if hasattr(text, "_gnnlab_set_text"):
        text.set_text = text._gnnlab_set_text
        del text._gnnlab_set_text


def _draw_in_english(text: Any, words: list[tuple[re.Pattern[str], str]]) -> None:
    """Make matplotlib replace text that it would draw as boxes."""
    text._gnnlab_set_text = set_text = text.set_text

    def set_english(self: Any, s: object) -> None:
        set_text(self, s if s is None else in_english(str(s), words))

    text.set_text = set_english


def in_english(found: str, words: list[tuple[re.Pattern[str], str]]) -> str:
    """Return the English of a text of the lessons; without one, the text less foreign letters."""
    if not _FOREIGN.search(found):
        return found
    for pattern, english in words:
        if match := pattern.fullmatch(found):
            template = _FIELD.sub(lambda field: "{" + _name(field[1]) + "}", english)
            fields = {name: in_english(value, words) for name, value in match.groupdict().items()}
            return template.format(**fields)
    return _FOREIGN.sub("", found).strip()


def _name(field: str) -> str:
    """Return a name for the value of a field of an f-string, fit for a regular expression."""
    return "v" + field.encode().hex()


def _pattern(text: str) -> re.Pattern[str]:
    """Return what finds the texts that an f-string makes, with the values of its fields."""
    parts = _FIELD.split(text)
    seen: set[str] = set()
    for i, part in enumerate(parts):
        if not i % 2:
            parts[i] = re.escape(part)
        elif part in seen:
            parts[i] = f"(?P={_name(part)})"
        else:
            seen.add(part)
            parts[i] = f"(?P<{_name(part)}>.*?)"
    return re.compile("".join(parts), re.DOTALL)


def _read_words(lang: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the texts of the lessons and their English, from beside the notebook or the wheel."""
    package = Path(__file__).resolve().parents[1]
    folders = (Path(), package / "_lessons" / lang, package.parent / "notebooks" / lang)
    for folder in folders:
        try:
            pairs = json.loads((folder / _WORDS).read_text("utf8"))
        except (OSError, ValueError):
            continue
        # Texts with more letters outside of their fields say more surely what they are.
        letters = {text: len(_FOREIGN.findall(_FIELD.sub("", text))) for text in pairs}
        known = sorted((text for text in pairs if letters[text]), key=lambda t: -letters[t])
        return [(_pattern(text), pairs[text]) for text in known]
    return []
