"""Turn lessons into assignments that nbgrader or otter-grader hand out and grade.

    gnnlab assignment nbgrader --output course                       every lesson, in English
    gnnlab assignment otter --output course --lang ko --only 01
    gnnlab assignment nbgrader --output course --lessons my_lessons  your copies, your lessons

An assignment is a lesson without outputs and without the link to its solutions. Each exercise, a
cell with ``answer_1 = None`` and ``lesson.check(1, answer_1)``, becomes a cell to answer in and a
test worth one point, which runs the judge outside the notebook. The answer, from the lesson's
notebook in ``solutions``, stands in the teacher's copy, between the marks by which either
program removes it from the students'. A copy that you have changed is overwritten only with
--force.

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
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

HERE = Path(__file__).resolve().parent
LANGS = ("en", "ko", "zh")
Cell = dict[str, Any]
# From the end of one sentence to the end of the next, with a link to the solutions in it.
SOLUTIONS = re.compile(r"[^.。]*\]\((?:\.\./)+solutions/[^)]*\)[^.。]*[.。]")
ONLINE = re.compile(r"^.*\]\(https://(?:colab\.|mybinder\.)[^)]*\)\n*", re.MULTILINE)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
GRADE = """\
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

for _ in [name for name in sys.modules if name.startswith("gnnlab.exercises")]:
    del sys.modules[_]  # import them as they are on disk, not as this notebook may have made them
_, sys.meta_path = sys.meta_path, [BuiltinImporter, FrozenImporter, PathFinder]  # without its hooks
from gnnlab.exercises.grading import grade

sys.meta_path = _
grade({!r}, {}, globals().get("answer_{}"), {!r})"""

NBGRADER_CONFIG = """\
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, NbGraderPreprocessor


class Judge(NbGraderPreprocessor):
    \"\"\"Judges answers after the notebook has run, outside its process, by source/judges.py.\"\"\"

    def preprocess(self, nb, resources):
        from gnnlab.exercises.grading import regrade

        course = CourseDirectory(parent=self)
        name = resources["nbgrader"]["assignment"]
        regrade(nb, course.format_path(course.source_directory, ".", name))
        return nb, resources


c = get_config()
c.CourseDirectory.course_id = "gnnlab"
c.ClearSolutions.code_stub = {"python": "# or define it here"}
c.Execute.timeout = 300  # seconds for one cell
c.OverwriteCells.add_missing_cells = True  # a test cell that a student has deleted comes back
steps = Autograde.autograde_preprocessors.default_args[0]
after = steps.index(Execute) + 1
c.Autograde.autograde_preprocessors = [*steps[:after], Judge, *steps[after:]]
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


class SourceError(Exception):
    """A lesson of which no assignment can be made."""


@dataclass
class Exercise:
    """A question of a lesson: the line with None, an answer, the code that tests it."""

    number: int
    prompt: str
    answer: str
    test: str


def main(argv: list[str] | None = None, root: Path = HERE) -> int:
    """Write the assignments; 0 when all were written."""
    summary, example, *_ = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        "gnnlab assignment",
        description=summary,
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("form", choices=FORMS, help="the program that will grade them")
    add("--output", type=Path, required=True, metavar="DIR", help="where to")
    add("--lessons", type=Path, metavar="DIR", help="a folder of `gnnlab lessons`, with your own")
    add("--lang", choices=LANGS, default="en", help="language of the prose (en)")
    add("--only", default="", metavar="NN", help="only lessons that begin so")
    add("--force", action="store_true", help="overwrite copies that you changed")
    args = parser.parse_args(argv)
    said: list[str] = []
    try:
        paths = chosen(args.lessons or root, args.lang, args.only)
    except SourceError as error:
        paths, said = [], [f"gnnlab assignment: {error}"]
    for path in paths:
        try:
            lesson = nbformat.read(path, as_version=4)
            solutions = nbformat.read(answers_of(path, root), as_version=4)
            number, lang, files = judges_of(lesson, path)
            cells = list(parts(lesson, solutions, number, lang))
            target = FORMS[args.form](path.stem, cells, args.output, files)
            if why := "" if args.force else obstacle(target, args.lang):
                said.append(f"{target}: {why}, left alone (--force overwrites it)")
                continue
            print(write(cells, target, args.lang))
            for file in files:
                shutil.copy(file, target.parent)
        except (SourceError, OSError, ValueError, SyntaxError) as error:
            said.append(f"gnnlab assignment: {path}: {error}")
    print("".join(f"{each}\n" for each in said), end="", file=sys.stderr)
    return int(bool(said))


# --- what a lesson asks ----------------------------------------------------------------------


def chosen(folder: Path, lang: str, only: str) -> list[Path]:
    """The notebooks of the lessons, without copies such as 01_name.before.ipynb."""
    found = sorted(p for p in (folder / lang).glob("[0-9]*.ipynb") if "." not in p.stem)
    if not (fit := [path for path in found if path.name.startswith(only)]):
        names = ", ".join(path.stem for path in found) or "none"
        raise SourceError(f"{folder / lang}: no lesson begins with {only!r}; there are: {names}")
    return fit


def answers_of(path: Path, root: Path) -> Path:
    """The solutions of a lesson: beside it, or else those of gnnlab."""
    places = [
        folder / "solutions" / part / f"{path.stem}{ending}.ipynb"
        for folder in (path.parents[1], root)
        for part in (path.parent.name, "")
        for ending in ("_solution", "")  # a course may have it under its lesson's name
    ]
    for place in places:
        if place.is_file():
            return place
    raise SourceError(f"no solutions; write {places[2]}, with a cell for each answer_N")


def judges_of(lesson: Any, path: Path) -> tuple[str, str, list[Path]]:
    """The arguments of the lesson's Lesson("01", "en"), and the file of judges, if it is one."""
    code = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "code")
    found = re.search(r"\bLesson\(\s*[\"']([^\"']+)[\"'](?:\s*,\s*[\"'](\w+)[\"'])?\s*\)", code)
    if not found:
        raise SourceError(
            "has no judges outside the notebook; a cell must say lesson = Lesson(…), with"
            ' the number of a lesson or a file, as in Lesson("judges.py", "en")'
        )
    number = found[1]
    files = [path.parent / number] if number.endswith(".py") else []
    if files and not files[0].is_file():
        raise SourceError(f"its judges, {files[0]}, are missing")
    return number, found[2] or "en", files


def statements(code: str) -> Iterator[tuple[ast.stmt, str]]:
    """Top-level statements, each with its lines and the comments before it."""
    lines, done = code.splitlines(), 0
    try:
        nodes = ast.parse(code).body
    except SyntaxError as error:  # markers of a merge, for instance
        raise SourceError(f"a cell is not Python: {(error.text or '').strip()!r}") from None
    for node in nodes:
        yield node, "\n".join(lines[done : node.end_lineno]).strip("\n")
        done = node.end_lineno or done


def answers(node: ast.stmt) -> int | None:
    """The exercise that a statement answers by defining answer_N."""
    names = [getattr(node, "name", "")]
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    found = [re.fullmatch(r"answer_(\d+)", name) for name in names]
    return next((int(match[1]) for match in found if match), None)


def judged(node: ast.stmt) -> int | None:
    """The number of ``lesson.check(N, …)``."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(attr="check"), [ast.Constant(int(number)), _])):
            return number
    return None


def parts(lesson: Any, solutions: Any, number: str, lang: str) -> Iterator[Cell | Exercise]:
    """The cells of a lesson in order, with an `Exercise` in place of each answer."""
    solved = [cell.source for cell in solutions.cells if cell.cell_type == "code"]
    for cell in lesson.cells:
        if marks := re.search(r"^(<{7}|>{7}) .*", cell.source, re.MULTILINE):
            raise SourceError(f"a cell has what a merge could not decide, {marks[0]!r}")
        if cell.cell_type != "code":
            source = ONLINE.sub("", SOLUTIONS.sub("", cell.source))
            yield new_markdown_cell(source, id=cell.id)
            continue
        if "remove-cell" in cell.metadata.get("tags", ()):  # installs gnnlab on Colab
            continue
        code, asked = cell.source, []
        if re.search(r"^(answer_\d+ = |def answer_\d+|lesson\.check\()", code, re.MULTILINE):
            code, asked = exercises(code, solved, number, lang)
        if code:
            yield new_code_cell(code, id=cell.id)
        yield from asked


def exercises(code: str, solved: list[str], number: str, lang: str) -> tuple[str, list[Exercise]]:
    """The helpers and the exercises of a cell, with the answers from the solutions' cells."""
    helpers, prompts, tests, known = [], {}, set(), set()
    for node, text in statements(code):
        known.add(ast.dump(node))
        if n := answers(node):
            if not isinstance(node, ast.Assign) or ast.unparse(node.value) != "None":
                raise SourceError(
                    f"exercise {n} is answered; students would get it. Write answer_{n} = None, and"
                    " keep the answer in the notebook of the solutions"
                )
            prompts[n] = text.strip()
        elif n := judged(node):
            tests.add(n)
        else:
            helpers.append(text)
    found: dict[int, list[str]] = {}
    for source in solved:
        pending: list[str] = []
        for node, text in statements(source) if re.search(r"\banswer_\d", source) else ():
            if ast.dump(node) in known or judged(node):
                continue
            pending.append(text)
            if n := answers(node):  # what stands before an answer belongs to it
                found.setdefault(n, []).extend(pending)
                pending = []
    if not prompts or prompts.keys() != tests or prompts.keys() - found.keys():
        raise SourceError(
            f"found answers {sorted(prompts)}, checks {sorted(tests)} and solutions"
            f" {sorted(found)}; each exercise has answer_N = None and lesson.check(N, answer_N) in"
            " one cell, and answer_N in the notebook of the solutions"
        )
    return "\n".join(helpers), [
        Exercise(n, prompts[n], "\n".join(found[n]), GRADE.format(number, n, n, lang))
        for n in sorted(prompts)
    ]


# --- how the two programs want it ------------------------------------------------------------


def for_nbgrader(name: str, cells: list[Any], folder: Path, files: list[Path]) -> Path:
    """Make the cells those of the teacher's copy for nbgrader; the lesson's code is read-only."""
    lesson, cells[:] = list(cells), []
    for part in lesson:
        if not isinstance(part, Exercise):
            cells.append(part if part["cell_type"] == "markdown" else graded(part, locked=True))
            continue
        marked = f"{part.prompt}\n### BEGIN SOLUTION\n{part.answer}\n### END SOLUTION"
        cells.append(graded(new_code_cell(marked, id=f"exercise-{part.number}"), solution=True))
        test_cell = new_code_cell(part.test, id=f"test-{part.number}")
        cells.append(graded(test_cell, grade=True, locked=True))
    config = folder / "nbgrader_config.py"
    if not config.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config.write_text(NBGRADER_CONFIG)
    return folder / "source" / name / f"{name}.ipynb"


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


def for_otter(name: str, cells: list[Any], folder: Path, files: list[Path]) -> Path:
    """Make the cells those of the teacher's copy for otter-grader, whose marks are raw cells."""
    config = OTTER_CONFIG.format(name=name)
    config += "".join(f"files:\n  - {file.name}\n" for file in files)
    lesson, cells[:] = list(cells), [new_raw_cell(config)]
    for part in lesson:
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
    return folder / f"{name}.ipynb"


def write(cells: list[Cell], path: Path, lang: str) -> Path:
    """Write a notebook of these cells, and by what to tell later whether they have changed."""
    about = {"kernelspec": KERNEL, "gnnlab": mark(cells), "gnnlab_language": lang}
    page = new_notebook(cells=cells, metadata=about)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(page) + "\n", encoding="utf-8")
    return path


def obstacle(path: Path, lang: str) -> str:
    """Why a file should not be overwritten, in a few words; "" if it may be."""
    try:
        page = nbformat.read(path, as_version=4)
    except FileNotFoundError:
        return ""
    except ValueError:
        return "was changed"
    if page["metadata"].get("gnnlab") != mark(page["cells"]):
        return "was changed"
    other = page["metadata"].get("gnnlab_language", lang)
    return "" if other == lang else f"is in another language, {other}; use one --output for each"


def mark(cells: list[Cell]) -> str:
    """A checksum of what these cells say; running them does not change it."""
    names = ("cell_type", "source", "metadata", "attachments")
    said = json.dumps([[cell.get(name) for name in names] for cell in cells], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


FORMS = {"nbgrader": for_nbgrader, "otter": for_otter}

if __name__ == "__main__":
    sys.exit(main())
