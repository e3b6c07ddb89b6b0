"""Build the lessons: one source in three languages becomes three notebooks.

    python notebooks/build.py              write the notebooks; outputs of unchanged code are kept
    python notebooks/build.py --execute    run the English notebooks and carry the outputs to all
    python notebooks/build.py --check      write nothing; fail when something is out of step
    python notebooks/build.py --accept     the translations still hold although the English changed

``--only 01`` restricts each of these to lesson 01. A notebook that was changed by hand, or run in
Jupyter and saved, is overwritten only with ``--force``.

A source is a Python file of cells (the "percent" format, which JupyterLab opens through jupytext).
A code cell exists once, a Markdown cell once a language::

    # %% [markdown] slot="toy" lang="en"
    # ## A toy graph

    # %% [markdown] slot="toy" lang="ko"
    # ## 장난감 그래프

    # %% slot="toy-graph" tags=["nbval-ignore-output"]
    graph = dgl.graph((src, dst))

``slot`` names the place of a cell in the lesson and becomes the cell's id in every notebook.
Markdown lines may be wrapped anywhere: Chinese ones are joined without a space. Cells whose output
changes from run to run (times, accuracies, progress bars) carry the tag shown above. The code of a
cell with the tag ``folded``, a drawing that teaches nothing, is hidden until a reader opens it.

============================  ==================================================================
``src/NN_name.py``            a lesson → ``{en,ko,zh}/NN_name.ipynb``
``src/solutions/NN_name.py``  its answers → ``solutions/NN_name_solution.ipynb``, which runs the
                              lesson's code, then these cells in place of the exercises'; Korean
                              and Chinese ones, if it has them, → ``solutions/{ko,zh}/``
``src/words/NN_name.csv``     strings and comments of the code in three languages, those of all
                              lessons in ``common.csv`` → ``{ko,zh}/.words.json``, for figures
                              where no font has the letters
``src/index.py``              the page before the lessons → ``{en,ko,zh}/README.md``; a slot named
                              like a lesson is its row of the table, and TITLE in it its linked
                              title; the row is left out while there is no such lesson
``claims.md``                 written: settings that were tried, and the conditions asserted
``glossary.csv``              the terms in three languages, and words to avoid
``translations.lock``         which English text each translation was made from
============================  ==================================================================

Each notebook begins with links to Colab and Binder and a folded cell that installs gnnlab where it
is missing. They take the address of the repository from ``Repository`` in pyproject.toml, and there
are no links as long as that is a placeholder: change it there, and build.

Code is the same in every language but for the words of the table. Where a lesson has none, its
printed text and its figures are in English, and one run serves all three notebooks; where it has
one, each language is run. Figures need a Korean and a Chinese font to be drawn in it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
from builder import checks, claims, words
from builder.pages import (
    changed_cells,
    execute,
    is_edited,
    make_page,
    read_page,
    stored_outputs,
)
from builder.source import LANGS, Lesson, SourceError, read_lesson, review, with_solutions
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

HERE = Path(__file__).resolve().parent
SOLVED = "solutions/"  # before a lesson's name in the lock
ROW = re.compile(r"\d\d_")  # names of the index' slots that are rows of its table


def main(argv: list[str] | None = None, root: Path = HERE) -> int:
    """Build, execute or check; 0 when everything is in step."""
    parser = argparse.ArgumentParser(description="Build the notebooks of the lessons.")
    parser.add_argument("--check", action="store_true", help="write nothing, say what is off")
    parser.add_argument("--execute", action="store_true", help="run the lessons for new outputs")
    parser.add_argument("--accept", action="store_true", help="the translations hold as they are")
    parser.add_argument("--only", default="", metavar="NN", help="only lessons that begin so")
    parser.add_argument("--force", action="store_true", help="overwrite notebooks that were edited")
    args = parser.parse_args(argv)
    if args.check and (args.execute or args.accept):
        parser.error("--check writes nothing: it goes with neither --execute nor --accept")
    try:
        problems = Workshop(root, args).build()
    except (SourceError, CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


class Workshop:
    """A folder of lessons and what one run of this program does there."""

    def __init__(self, root: Path, args: argparse.Namespace) -> None:
        self.root, self.args = root, args
        self.problems: list[str] = []
        self.index = read_lesson(root / "src" / "index.py")
        self.lessons = [read_lesson(p) for p in sorted((root / "src").glob("[0-9]*.py"))]
        self.words = root / "src" / "words"
        self.answers = {
            path.stem: read_lesson(path) for path in (root / "src" / "solutions").glob("[0-9]*.py")
        }

    def build(self) -> list[str]:
        """Write or check every file; returns what is wrong."""
        chosen = [lesson for lesson in self.lessons if lesson.name.startswith(self.args.only)]
        if not chosen:
            names = ", ".join(lesson.name for lesson in self.lessons) or "none"
            raise SourceError(f"no lesson begins with {self.args.only!r}; there are: {names}")
        glossary = checks.read_glossary(self.root / "glossary.csv")
        for lesson in (self.index, *chosen):
            self.problems += checks.languages(lesson, LANGS, glossary)
        for lesson in chosen:
            self.problems += checks.size(lesson)
            self.notebooks(lesson)
            if answers := self.answers.get(lesson.name):
                langs = list(self.solution_folders(answers))
                self.problems += checks.languages(answers, langs, glossary, first=False)
        rows = {slot.name for slot in self.index.slots}
        self.problems += [
            f"index: found no row for {lesson.name}; add a slot of that name to src/index.py"
            for lesson in self.lessons
            if lesson.name not in rows
        ]
        answered = [self.answers[book.name] for book in chosen if book.name in self.answers]
        self.lock((self.index, *chosen, *(replace(a, name=SOLVED + a.name) for a in answered)))
        self.put(self.root / "claims.md", claims.page(self.lessons))
        for lang in LANGS:
            self.put(self.root / lang / "README.md", self.index_page(lang))
        for lang in LANGS[1:]:
            self.put(self.root / lang / ".words.json", self.english(lang))
        folders = {lang: self.root / lang for lang in LANGS}
        self.problems += checks.links(folders, (self.index, *chosen))
        for answers in answered:
            self.problems += checks.links(self.solution_folders(answers), (answers,))
        return self.problems

    def notebooks(self, lesson: Lesson) -> None:
        """The notebooks of one lesson and of its solutions."""
        print(f"{lesson.name}: {len(lesson.slots)} cells, {checks.count_words(lesson)} words")
        said = words.read_words(self.words, lesson.name)
        self.share_runs(lesson, {lang: self.root / lang for lang in LANGS}, said)
        whole = lesson
        if answers := self.answers.get(lesson.name):
            solved = with_solutions(lesson, answers)
            self.share_runs(solved, self.solution_folders(answers), said)
            whole = Lesson(lesson.name, [*lesson.slots, *answers.slots])
        self.problems += words.faults(whole, self.words, checks.CODE_COLUMNS)

    def solution_folders(self, answers: Lesson) -> dict[str, Path]:
        """Where the solutions of a lesson go in each language that they have."""
        folder = self.root / "solutions"
        others = [lang for lang in LANGS[1:] if lang in answers.slots[0].text]
        return {LANGS[0]: folder, **{lang: folder / lang for lang in others}}

    def share_runs(self, lesson: Lesson, folders: dict[str, Path], said: words.Words) -> None:
        """Put notebooks in several languages; those with the same code show the same run."""
        runs: dict[str, tuple[Lesson, dict[str, Path]]] = {}
        for lang, folder in folders.items():
            told = words.in_language(lesson, lang, said)
            runs.setdefault(told.code, (told, {}))[1][lang] = folder
        for told, places in runs.values():
            self.share_run(told, places)

    def share_run(self, lesson: Lesson, folders: dict[str, Path]) -> None:
        """Put notebooks that show the same run in several languages."""
        paths = {lang: folder / f"{lesson.name}.ipynb" for lang, folder in folders.items()}
        first = next(iter(folders.values()))
        where = f"{first.relative_to(self.root)}/{lesson.name}.ipynb"
        if self.args.execute:
            first.mkdir(parents=True, exist_ok=True)
            outputs, warnings = execute(lesson, first)
            self.problems += warnings
        else:
            outputs = stored_outputs(lesson, list(paths.values()))
        if not outputs and self.args.check:
            self.problems.append(f"{where}: its outputs are not of this code; run --execute")
            return
        written = False
        for lang, path in paths.items():
            folder = path.parent.relative_to(self.root).as_posix()
            page = nbformat.writes(make_page(lesson, lang, outputs, folder)) + "\n"
            written = self.put(path, page) or written
        if written and not outputs:
            print(f"{where}: written without outputs, for its code is new; --execute makes them")

    def lock(self, lessons: tuple[Lesson, ...]) -> None:
        """Compare the translations with the lock and bring it up to date."""
        path = self.root / "translations.lock"
        before = json.loads(path.read_text()) if path.exists() else {}
        names = [lesson.name for lesson in self.lessons]
        known = {"index", *names, *(SOLVED + name for name in names)}
        after = {name: entry for name, entry in before.items() if name in known}
        for lesson in lessons:
            entry, stale = review(lesson, before.get(lesson.name, {}), self.args.accept)
            after[lesson.name] = entry
            self.problems += stale
        self.put(path, json.dumps(after, indent=1, sort_keys=True) + "\n")

    def index_page(self, lang: str) -> str:
        """The README of one language: the index, with a row for each lesson that exists."""
        titles = {book.name: f"[{book.title(lang)}]({book.name}.ipynb)" for book in self.lessons}
        page = ""
        for slot in self.index.slots:
            if not ROW.match(slot.name):
                page += "\n\n" + slot.say(lang)
            elif slot.name in titles:
                page += "\n" + slot.say(lang).replace("TITLE", titles[slot.name])
        return page.strip() + "\n"

    def english(self, lang: str) -> str:
        """The words of all lessons in one language and their English."""
        tables = [words.read_words(self.words, lesson.name) for lesson in self.lessons]
        rows = [row for table in tables for row in table.values()]
        known = {row[lang]: row["en"] for row in rows if not row["en"].startswith("#")}
        return json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True) + "\n"

    def put(self, path: Path, text: str) -> bool:
        """Write a file unless it was edited; under --check, complain unless it is right."""
        found = path.read_text(encoding="utf-8") if path.exists() else None
        if found == text:
            return False
        page = read_page(path) if path.suffix == ".ipynb" else None
        is_kept = page is not None and is_edited(page) and not self.args.force
        if not self.args.check and not is_kept:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return True
        cells = changed_cells(page, nbformat.reads(text, 4)) if page else []
        if found is None:
            problem = "is missing"
        elif not cells:
            problem = "is not as this program writes it (Jupyter may have saved it)"
        else:
            problem = "was edited by hand" if is_kept else "is older than its source"
            problem += f" (cells: {', '.join(cells)})"
        where, run = path.relative_to(self.root), "build.py" + " --force" * is_kept
        self.problems.append(f"{where} {problem}; change notebooks/src, then run {run}")
        return False


if __name__ == "__main__":
    sys.exit(main())
