"""What `build.py --check` asks of a lesson's text: size, languages in step, terms, links.

Each function returns a list of complaints, one sentence each that names the slot.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builder.source import Lesson

CELLS = range(20, 41)
WORDS = 2050
CODE_LINES = 25
CODE_COLUMNS = 90  # what JupyterLab shows beside its file browser on a 1200-pixel screen

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"  # .*")  # in the reader's language
CODE = re.compile(r"`[^`\n]+`")
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Letters of one language that no other language's text has.
FOREIGN = {"en": "[ㄱ-ㅣ가-힣㐀-鿿]", "ko": "[㐀-鿿]", "zh": "[ㄱ-ㅣ가-힣]"}
# What differs between links to a page that exists in several languages.
TRANSLATED = re.compile(
    r"\.(ko|zh)(?=\.md\b)|(?<=/solutions/)(ko|zh)/|(?<=/solutions)/(ko|zh)(?=`)"
)
FORMULA_TEXT = re.compile(r"\\text\{[^}]*\}")
FROM_SOLUTIONS = re.compile(r"(?<=\]\(\.\./)\.\./(ko|zh)(?=/)")
HEADING = re.compile(r"^#+(?= )", re.MULTILINE)
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)
ROW = re.compile(r"^\|", re.MULTILINE)


def size(lesson: Lesson) -> list[str]:
    """A lesson is one evening's work: bounded cells, words and lines of code."""
    problems = []
    cells = sum("folded" not in slot.tags for slot in lesson.slots)
    if cells not in CELLS:
        problems.append(
            f"{lesson.name}: found {cells} cells; a lesson has {CELLS[0]} to {CELLS[-1]}"
            " besides folded ones"
        )
    words = count_words(lesson)
    if words > WORDS:
        problems.append(f"{lesson.name}: found {words} English words; shorten it to {WORDS}")
    for slot in lesson.slots:
        lines = (slot.code or "").count("\n") + 1
        if lines > CODE_LINES:
            problems.append(
                f"{lesson.name}: slot {slot.name!r} has {lines} lines of code; split it, or move"
                f" what is over {CODE_LINES} into gnnlab"
            )
        columns = max(map(len, (slot.code or "").splitlines()), default=0)
        if columns > CODE_COLUMNS:
            problems.append(
                f"{lesson.name}: slot {slot.name!r} has a code line of {columns} characters; break"
                f" it, a page shows {CODE_COLUMNS}"
            )
        if slot.code and not slot.code.isascii():
            problems.append(
                f"{lesson.name}: slot {slot.name!r}: code is shared by all languages; write its"
                " comments and printed text in plain English (ASCII), others into src/words"
            )
    return problems


def count_words(lesson: Lesson) -> int:
    """English words of the prose; code, formulas and addresses do not count."""
    text = "\n".join(slot.text.get("en", "") for slot in lesson.slots)
    return len(re.findall(r"[A-Za-z][\w'’-]*", prose(text)))


def prose(text: str) -> str:
    """Text without code, formulas, link targets and emphasis."""
    text = FORMULA.sub(" ", CODE.sub(" ", FENCE.sub(" ", text)))
    return LINK.sub("]", text).replace("*", "")


def languages(
    lesson: Lesson, langs: Sequence[str], glossary: list[dict[str, str]], first: bool = True
) -> list[str]:
    """Each language says the same with the glossary's words; ``first``: first uses are glossed."""
    problems = []
    for slot in lesson.slots:
        if slot.code is not None:
            continue
        where = f"{lesson.name}: slot {slot.name!r}"
        missing = [lang for lang in langs if not slot.text.get(lang, "").strip()]
        problems += [f"{where} has no {lang} text; write it" for lang in missing]
        problems += [
            f"{where} ({lang}): found {found.group()!r}, of another language; translate it"
            for lang in langs
            if (found := re.search(rf"{FOREIGN[lang]}.*", slot.text.get(lang, "")))
        ]
        if "en" in missing:
            continue
        wanted = shape(slot.text["en"])
        for lang in langs[1:]:
            if lang in missing:
                continue
            for what, found in shape(slot.say(lang)).items():
                if found != wanted[what]:
                    problems.append(
                        f"{where}: {what} differ: {lang} has {show(found)},"
                        f" the English {show(wanted[what])}"
                    )
    for lang in langs[1:]:
        problems += avoided_words(lesson, lang, glossary)
        problems += first_uses(lesson, lang, glossary) if first else []
    return problems


def shape(text: str) -> dict[str, object]:
    """What a translation leaves as it is."""
    bare = FENCE.sub("", text)
    words = CODE.sub("", bare)
    return {
        "heading levels": HEADING.findall(bare),
        "links": Counter(LINK.findall(FROM_SOLUTIONS.sub("en", TRANSLATED.sub("", bare)))),
        "formulas": Counter(
            "".join(FORMULA_TEXT.sub("TEXT", f).split()) for f in FORMULA.findall(words)
        ),
        "code words": set(CODE.findall(TRANSLATED.sub("", bare))),
        "code blocks": [COMMENT.sub("", block) for block in FENCE.findall(text)],
        "list items": len(ITEM.findall(bare)),
        "table rows": len(ROW.findall(bare)),
    }


def show(found: object) -> str:
    """A found value as a message shows it."""
    if isinstance(found, Counter):
        return " ".join(sorted(found.elements())) or "none"
    if isinstance(found, list | set):
        return " ".join(sorted(found) if isinstance(found, set) else found) or "none"
    return str(found)


def read_glossary(path: Path) -> list[dict[str, str]]:
    """Rows of term, ko, zh, the words to avoid for each, split by ``|`` (ko_not, zh_not), and
    whether readers know the word without its English (known).
    """
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def avoided_words(lesson: Lesson, lang: str, glossary: list[dict[str, str]]) -> list[str]:
    """No word that the glossary tells to avoid, except where it overlaps the word to use."""

    def rest(text: str, word: str, given: str) -> str:
        return text if given in word else text.replace(given, "")

    found = []
    for row in glossary:
        for word in filter(None, (row[f"{lang}_not"] or "").split("|")):
            found += [
                f"{lesson.name}: slot {slot.name!r} ({lang}): found {word!r}; the glossary says"
                f" {row[lang]!r} for {row['term']!r}"
                for slot in lesson.slots
                if lang in slot.text and word in rest(one_line(slot.say(lang)), word, row[lang])
            ]
    return found


def first_uses(lesson: Lesson, lang: str, glossary: list[dict[str, str]]) -> list[str]:
    """The English stands in parentheses where a technical term is first used, headings aside."""
    english = {
        row[lang].partition("(")[0]: row["term"].partition(" (")[0]
        for row in glossary
        if row["known"] != "yes"
    }
    # Single characters are part of too many other words to be found safely.
    words = sorted((word for word in english if len(word) > 1), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, words)) or "(?!)")
    seen = set()
    problems = []
    for slot in lesson.slots:
        text = one_line(re.sub(r"^#+ .*$", "", slot.say(lang), flags=re.MULTILINE))
        for match in pattern.finditer(text if lang in slot.text else ""):
            word = match.group()
            given = rf"[^()（）]{{0,12}}[(（][^)）]*{english[word]}"
            if word not in seen and not re.match(given, text[match.end() :], re.IGNORECASE):
                problems.append(
                    f"{lesson.name}: slot {slot.name!r} ({lang}): the first {word!r} stands"
                    f" without its English; write {word}({english[word]})"
                )
            seen.add(word)
    return problems


def one_line(text: str) -> str:
    """Prose with every run of white space made one space."""
    return re.sub(r"\s+", " ", prose(text))


def links(folders: Mapping[str, Path], lessons: Sequence[Lesson]) -> list[str]:
    """Relative links, as seen from the folder of each language, lead to files that exist."""
    return [
        f"{lesson.name}: slot {slot.name!r} ({lang}): the link {target} leads nowhere"
        for lesson in lessons
        for slot in lesson.slots
        for lang, folder in folders.items()
        for target in LINK.findall(slot.text.get(lang, ""))
        if "://" not in target
        and not target.startswith("#")
        and not (folder / target.partition("#")[0]).exists()
    ]
