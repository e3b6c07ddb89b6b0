"""Turn lessons into assignments that nbgrader or otter-grader hand out and grade.

    python notebooks/assignment.py nbgrader --output course              every lesson, in English
    python notebooks/assignment.py otter --output course --lang ko --only 01

An assignment is the lesson without outputs and without the link to its solutions. Each exercise
becomes a cell to answer in and a test worth one point, which is the lesson's own check; the answer
from ``src/solutions`` stands in the teacher's copy, between the marks by which either program
removes it from the students'. docs/teaching.md says what to type next. A copy that you have
changed, as by hidden tests, is overwritten only with --force.

==========  =====================================================================================
form        written under ``--output``
==========  =====================================================================================
nbgrader    ``source/NN_name/NN_name.ipynb`` for `nbgrader generate_assignment NN_name`, and
            ``nbgrader_config.py`` unless there is one
otter       ``NN_name.ipynb`` for `otter assign NN_name.ipynb dist`
==========  =====================================================================================
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from builder import words
from builder.source import LANGS, Lesson, SourceError, digest, read_lesson
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

HERE = Path(__file__).resolve().parent
Cell = dict[str, Any]
# From the end of one sentence to the end of the next, with a link to the solutions in it.
SOLUTIONS = re.compile(r"[^.。]*\]\(\.\./solutions/[^)]*\)[^.。]*[.。]")
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

NBGRADER_CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "gnnlab"
c.ClearSolutions.code_stub = {"python": "# or define it here"}
c.Execute.timeout = 300  # seconds for one cell
"""
OTTER_CONFIG = """\
# ASSIGNMENT CONFIG
name: {name}
init_cell: true
check_all_cell: true
export_cell:
  pdf: false
  run_tests: true
"""


@dataclass
class Exercise:
    """A question of a lesson: the line with None, an answer, the function that judges it."""

    number: int
    prompt: str
    answer: str
    is_right: str
    said: dict[str, str] = field(default_factory=dict)  # English words → the reader's

    def verdict(self, word: str) -> str:
        """What the lesson's own check prints."""
        text = self.said.get("exercise {number}: {verdict}", "exercise {number}: {verdict}")
        return text.format(number=self.number, verdict=self.said.get(word, word))

    @property
    def test(self) -> str:
        """Code that fails with the lesson's verdict unless the answer is right."""
        name = f"answer_{self.number}"
        return (
            f"is_right = {self.is_right}\n"
            f'assert {name} is not None, "{self.verdict("not answered yet")}"\n'
            f'assert is_right({name}), "{self.verdict("wrong")}"'
        )


def main(argv: list[str] | None = None, root: Path = HERE) -> int:
    """Write the assignments; 0 when all were written."""
    parser = argparse.ArgumentParser(description="Turn lessons into graded assignments.")
    parser.add_argument("form", choices=FORMS, help="the program that will grade them")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where to")
    parser.add_argument("--lang", choices=LANGS, default="en", help="language of the prose")
    parser.add_argument("--only", default="", metavar="NN", help="only lessons that begin so")
    parser.add_argument("--force", action="store_true", help="overwrite copies that you changed")
    args = parser.parse_args(argv)
    kept: list[Path] = []
    try:
        sources = sorted((root / "src").glob("[0-9]*.py"))
        chosen = [path for path in sources if path.stem.startswith(args.only)]
        if not chosen:
            names = ", ".join(path.stem for path in sources) or "none"
            raise SourceError(f"no lesson begins with {args.only!r}; there are: {names}")
        for path in chosen:
            lesson = read_lesson(path)
            solutions = read_lesson(path.parent / "solutions" / path.name)
            said = words.read_words(path.parent / "words", path.stem)
            lesson, solutions = (
                words.in_language(told, args.lang, said) for told in (lesson, solutions)
            )
            phrases = {english: row[args.lang] for english, row in said.items()}
            path, cells = FORMS[args.form](lesson, solutions, args.lang, args.output, phrases)
            if args.force or not is_changed(path):
                print(write(cells, path))
            else:
                kept.append(path)
    except (SourceError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for path in kept:
        print(f"{path}: was changed, left alone (--force overwrites it)", file=sys.stderr)
    return int(bool(kept))


# --- what a lesson asks ----------------------------------------------------------------------


def statements(code: str) -> Iterator[tuple[ast.stmt, str]]:
    """Top-level statements, each with its lines and the comments before it."""
    lines, done = code.splitlines(), 0
    for node in ast.parse(code).body:
        yield node, "\n".join(lines[done : node.end_lineno]).strip("\n")
        done = node.end_lineno or done


def answers(node: ast.stmt) -> int | None:
    """The exercise that a statement answers by defining answer_N."""
    names = [getattr(node, "name", "")]
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    found = [re.fullmatch(r"answer_(\d+)", name) for name in names]
    return next((int(match[1]) for match in found if match), None)


def judges(node: ast.stmt) -> tuple[int, str] | None:
    """The number and the judging function of ``check(N, answer_N, is_right)``."""
    match node:
        case ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(int(number)), answer, is_right])):
            if ast.unparse(answer) == f"answer_{number}":
                return number, ast.unparse(is_right)
    return None


def exercises(code: str, solution: str) -> tuple[str, list[Exercise]]:
    """The helpers and the exercises of a cell, whose answers are in the cell of the solutions."""
    helpers, prompts, tests, known = [], {}, {}, set()
    for node, text in statements(code):
        known.add(ast.dump(node))
        if number := answers(node):
            prompts[number] = text.strip()
        elif judged := judges(node):
            tests[judged[0]] = judged[1]
        else:
            helpers.append(text)
    solved: dict[int, list[str]] = {}
    pending: list[str] = []
    for node, text in statements(solution):
        if ast.dump(node) in known or judges(node):
            continue
        pending.append(text)
        if number := answers(node):  # what stands before an answer belongs to it
            solved.setdefault(number, []).extend(pending)
            pending = []
    if not prompts.keys() == tests.keys() == solved.keys():
        raise SourceError(
            f"found answers {sorted(prompts)}, checks {sorted(tests)} and solutions"
            f" {sorted(solved)}; each exercise has answer_N = None, a check(N, answer_N, …) in the"
            " same cell, and an answer_N in the cell of the solutions with the same slot"
        )
    asked = [Exercise(n, prompts[n], "\n".join(solved[n]), tests[n]) for n in sorted(prompts)]
    return "\n".join(helpers), asked


def parts(
    lesson: Lesson, solutions: Lesson, lang: str, said: dict[str, str]
) -> Iterator[Cell | Exercise]:
    """The cells of a lesson in order, with an `Exercise` in place of each answer."""
    solved = {slot.name: slot.code or "" for slot in solutions.slots}
    for slot in lesson.slots:
        if slot.code is None:
            yield new_markdown_cell(SOLUTIONS.sub("", slot.say(lang)), id=slot.name)
            continue
        asked: list[Exercise] = []
        code = slot.code
        if re.search(r"^answer_\d+ = None", code, re.MULTILINE):
            try:
                code, asked = exercises(code, solved.get(slot.name, ""))
            except SourceError as error:
                raise SourceError(f"{lesson.name}: slot {slot.name!r}: {error}") from None
        if code:
            yield new_code_cell(code, id=slot.name)
        yield from (replace(exercise, said=said) for exercise in asked)


# --- how the two programs want it ------------------------------------------------------------


def for_nbgrader(
    lesson: Lesson, solutions: Lesson, lang: str, folder: Path, said: dict[str, str]
) -> tuple[Path, list[Cell]]:
    """The teacher's copy for nbgrader; the lesson's own code is read-only in it."""
    cells: list[Cell] = []
    for part in parts(lesson, solutions, lang, said):
        if not isinstance(part, Exercise):
            cells.append(part if part["cell_type"] == "markdown" else graded(part, locked=True))
            continue
        marked = f"{part.prompt}\n### BEGIN SOLUTION\n{part.answer}\n### END SOLUTION"
        cells.append(graded(new_code_cell(marked, id=f"exercise-{part.number}"), solution=True))
        test = f'{part.test}\nprint("{part.verdict("right")}")'
        test_cell = new_code_cell(test, id=f"test-{part.number}")
        cells.append(graded(test_cell, grade=True, locked=True))
    config = folder / "nbgrader_config.py"
    if not config.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config.write_text(NBGRADER_CONFIG)
    return folder / "source" / lesson.name / f"{lesson.name}.ipynb", cells


def graded(cell: Cell, grade: bool = False, solution: bool = False, locked: bool = False) -> Cell:
    """A cell with what nbgrader wants to know of it."""
    kind = {"grade": grade, "solution": solution, "locked": locked, "task": False}
    points = {"points": 1} if grade else {}
    cell["metadata"]["nbgrader"] = {
        **{"schema_version": 3, "grade_id": cell["id"]},
        **kind,
        **points,
    }
    return cell


def for_otter(
    lesson: Lesson, solutions: Lesson, lang: str, folder: Path, said: dict[str, str]
) -> tuple[Path, list[Cell]]:
    """The teacher's copy for otter-grader, whose marks are raw cells."""
    cells: list[Cell] = [new_raw_cell(OTTER_CONFIG.format(name=lesson.name))]
    for part in parts(lesson, solutions, lang, said):
        if not isinstance(part, Exercise):
            cells.append(part)
            continue
        marked = (
            f'""" # BEGIN PROMPT\n{part.prompt}\n"""; # END PROMPT\n'
            f"# BEGIN SOLUTION NO PROMPT\n{part.answer}\n# END SOLUTION"
        )
        cells += [
            new_raw_cell(f"# BEGIN QUESTION\nname: exercise_{part.number}\npoints: 1"),
            new_raw_cell("# BEGIN SOLUTION"),
            new_code_cell(marked),
            new_raw_cell("# END SOLUTION"),
            new_raw_cell("# BEGIN TESTS"),
            new_code_cell(part.test),
            new_raw_cell("# END TESTS"),
            new_raw_cell("# END QUESTION"),
        ]
    return folder / f"{lesson.name}.ipynb", cells


def write(cells: list[Cell], path: Path) -> Path:
    """Write a notebook of these cells, and by what to tell later whether they have changed."""
    page = new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "gnnlab": mark(cells)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(page) + "\n", encoding="utf-8")
    return path


def is_changed(path: Path) -> bool:
    """Whether there is a file that is not as `write` wrote it."""
    try:
        page = nbformat.read(path, as_version=4)
    except FileNotFoundError:
        return False
    except ValueError:  # not a notebook
        return True
    return bool(page["metadata"].get("gnnlab") != mark(page["cells"]))


def mark(cells: list[Cell]) -> str:
    """A checksum of what these cells say; running them does not change it."""
    parts = ("cell_type", "source", "metadata", "attachments")
    return digest([[cell.get(part) for part in parts] for cell in cells])


FORMS = {"nbgrader": for_nbgrader, "otter": for_otter}

if __name__ == "__main__":
    sys.exit(main())
