"""Words in the code of a lesson that readers see: printed text, labels, comments.

A table (``src/words/NN_name.csv``; ``src/words/common.csv`` is for all lessons that have one) gives
the whole text between the quotes of a string, or a whole comment with its ``#``, as it stands in
the code, and its translations. Everything else in the code stays as it is, and so do the fields of
an f-string: the code of all languages is one, whatever they say.
"""

from __future__ import annotations

import csv
import io
import re
import tokenize
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from builder.source import LANGS, SourceError

if TYPE_CHECKING:
    from builder.source import Lesson

Words = dict[str, dict[str, str]]  # English → language → text

STRING = re.compile(
    r"(?P<open>[A-Za-z]*(?P<quote>\"\"\"|'''|\"|'))(?P<body>.*)(?P=quote)", re.DOTALL
)
OPTIONS = ("ha", "va", "loc", "norm")  # arguments whose strings are not for readers
FIELD = re.compile(r"\{[^{}]*\}")


def read_words(folder: Path, name: str) -> Words:
    """The words of one lesson; none when it has no table, for its code is then in English."""
    own = read_table(folder / f"{name}.csv")
    return read_table(folder / "common.csv") | own if own else {}


def read_table(path: Path) -> Words:
    """The rows of one table; none when there is no such file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if tuple(row) != LANGS or not all(row.values()):
            raise SourceError(
                f"{path.name}: found {row}; a row has a text for each of {', '.join(LANGS)}"
            )
    return {row["en"]: row for row in rows}


def texts(code: str) -> Iterator[tuple[int, int, str]]:
    """Where each string's text and each comment stands in the code: from, to, text."""
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(place: tuple[int, int]) -> int:
        return starts[place[0] - 1] + place[1]

    depth, begin = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "COMMENT":
            yield at(token.start), at(token.end), token.string
        elif kind == "FSTRING_START":
            begin = begin if depth else at(token.start)
            depth += 1
        elif kind == "FSTRING_END":
            depth -= 1
        if depth or kind not in ("STRING", "FSTRING_END"):
            continue
        start = at(token.start) if kind == "STRING" else begin
        match = STRING.fullmatch(code[start : at(token.end)])
        if match and code[:start].rstrip("= ").rpartition(" ")[2].lstrip("(") not in OPTIONS:
            yield start + match.start("body"), start + match.end("body"), match["body"]


def in_language(lesson: Lesson, lang: str, words: Words) -> Lesson:
    """A lesson whose code says everything in this language."""
    if lang == LANGS[0] or not words:
        return lesson
    slots = [
        slot if slot.code is None else replace(slot, code=translate(slot.code, lang, words))
        for slot in lesson.slots
    ]
    return replace(lesson, slots=slots)


def translate(code: str, lang: str, words: Words) -> str:
    """The code with the words of a language in place of the English ones."""
    done, position = [], 0
    for start, end, text in texts(code):
        if text in words:
            done += [code[position:start], words[text][lang]]
            position = end
    return "".join([*done, code[position:]])


def faults(lesson: Lesson, folder: Path, columns: int) -> list[str]:
    """What is wrong with the table of a lesson: its rows, the comments, the length of lines."""
    own, words = read_table(folder / f"{lesson.name}.csv"), read_words(folder, lesson.name)
    if not words:
        return []
    codes = [(slot.name, slot.code) for slot in lesson.slots if slot.code is not None]
    found = {text for _, code in codes for _, _, text in texts(code)}
    problems = [
        f"{lesson.name}: words: no string or comment of the code is {text!r}; remove its row"
        for text in own
        if text not in found
    ]
    problems += [
        f"{lesson.name}: words: found no row for the comment {text!r}; add one"
        for text in sorted(found - set(words))
        if text.startswith("# ") and re.search(r"[A-Za-z]{2}", text)
    ]
    for text in sorted(set(words) & found):
        wanted = Counter(FIELD.findall(text))
        problems += [
            f"{lesson.name}: words: {words[text][lang]!r} has other fields than {text!r}"
            for lang in LANGS[1:]
            if Counter(FIELD.findall(words[text][lang])) != wanted
        ]
    for name, code in codes:
        for lang in LANGS[1:]:
            widest = max(map(width, translate(code, lang, words).splitlines()), default=0)
            if widest > columns:
                problems.append(
                    f"{lesson.name}: slot {name!r} ({lang}): a code line is {widest} columns wide;"
                    f" shorten the words, a page shows {columns}"
                )
    return problems


def width(line: str) -> int:
    """Columns of a line: a Korean or Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)
