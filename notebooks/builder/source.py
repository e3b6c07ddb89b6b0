"""Lesson sources: Python files of cells in which Markdown exists once a language."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

LANGS = ("en", "ko", "zh")


class SourceError(Exception):
    """A lesson source that cannot be read."""


@dataclass
class Slot:
    """One place in a lesson: a code cell, or one Markdown text a language."""

    name: str
    code: str | None = None
    text: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    folded: bool = False

    def say(self, lang: str) -> str:
        """The Markdown of one language; Chinese lines are joined, English stands in if it lacks.

        The tilde of a Korean range is escaped: two in a paragraph would strike through what is
        between them.
        """
        if lang not in self.text:
            return self.text.get("en", "")
        text = re.sub(r"(?<=\d)~(?=\d)", r"\~", self.text[lang])
        return unwrap(text) if lang == "zh" else text


@dataclass
class Lesson:
    """The cells of one source file, in order."""

    name: str
    slots: list[Slot]

    @property
    def code(self) -> str:
        """Digest of all code: outputs belong to exactly this code."""
        return digest([(slot.name, slot.code) for slot in self.slots if slot.code is not None])

    def title(self, lang: str) -> str:
        """The first line of the first cell, without its ``#``."""
        return self.slots[0].say(lang).partition("\n")[0].lstrip("# ")


def digest(value: object) -> str:
    """First 16 hex digits of the SHA-256 of a JSON-able value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def unwrap(text: str) -> str:
    """Join wrapped Chinese lines: a line break would show as a space."""
    han, mark = r"[\u3007-\u9fff]", r"[\u2014\u2018-\u201d\u3001-\u301f\uff01-\uff20]"
    text = re.sub(rf"(?<={han})\n *(?={han}|{mark}|\*\*)", "", text)
    text = re.sub(rf"(?<=\*\*|.\))\n *(?={han}|{mark})", "", text)
    text = re.sub(r"(?<=[，、；：（])\n *(?=\*\*)", "", text)
    return re.sub(rf"(?<={mark})\n *(?!\s|[#|>*-]|\d+\. )", "", text)


def read_lesson(path: Path) -> Lesson:
    """Read a source file; the texts of one slot in several languages become one `Slot`."""
    slots: list[Slot] = []
    for number, cell in enumerate(jupytext.read(path, fmt="py:percent").cells, 1):
        first = cell.source.partition("\n")[0][:40]
        where = f"{path.name}, cell {number} ({first!r})"
        name, lang = cell.metadata.get("slot"), cell.metadata.get("lang")
        if not name or not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
            raise SourceError(f'{where}: found slot={name!r}; give it one, as slot="toy-graph"')
        if (cell.cell_type == "markdown") != (lang in LANGS):
            raise SourceError(
                f"{where}: found a {cell.cell_type} cell with lang={lang!r}; Markdown cells carry"
                f" one of {', '.join(LANGS)}, code cells none"
            )
        if name not in [slot.name for slot in slots]:
            slots.append(Slot(name, tags=list(cell.metadata.get("tags", []))))
        slot = slots[-1]
        is_text_too = lang is None and bool(slot.text)
        if slot.name != name or slot.code is not None or is_text_too or lang in slot.text:
            raise SourceError(
                f"{where}: slot {name!r} is taken; the languages of one slot stand together,"
                " and each has one cell"
            )
        if lang:
            slot.text[lang] = cell.source
        else:
            slot.code = cell.source
    if not slots:
        raise SourceError(f"{path.name}: found no cell; start one with '# %%'")
    return Lesson(path.stem, slots)


def with_solutions(lesson: Lesson, solutions: Lesson) -> Lesson:
    """The title of the solutions, the lesson's code (folded), then the solutions.

    A code cell of the lesson whose slot the solutions define again is left out.
    """
    answered = {slot.name for slot in solutions.slots}
    needed = [
        Slot(slot.name, slot.code, tags=["nbval-ignore-output"], folded=True)
        for slot in lesson.slots
        if slot.code is not None and slot.name not in answered
    ]
    return Lesson(f"{lesson.name}_solution", [solutions.slots[0], *needed, *solutions.slots[1:]])


def review(
    lesson: Lesson, lock: dict[str, dict[str, str]], accept: bool
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What the lock says after this build, and the translations left behind by the English.

    The lock keeps, per slot and language, the digest of the English text that the translation was
    made from and the digest of the translation.
    """
    entry: dict[str, dict[str, str]] = {}
    problems = []
    for slot in lesson.slots:
        for lang in LANGS[1:]:
            if lang not in slot.text or "en" not in slot.text:
                continue
            now = [digest(slot.text["en"]), digest(slot.text[lang])]
            before = lock.get(slot.name, {}).get(lang, " ".join(now)).split()
            stale = before[0] != now[0] and before[1] == now[1] and not accept
            if stale:
                problems.append(
                    f"{lesson.name}: slot {slot.name!r}: the English changed, the {lang} text did"
                    " not; change it, or confirm that it still holds with --accept"
                )
            entry.setdefault(slot.name, {})[lang] = " ".join(before if stale else now)
    return entry, problems
