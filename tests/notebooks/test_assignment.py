"""Assignments made of a small lesson, run as a student's and as the teacher's, and of all lessons.

src/01_tiny.py            title, a link to the solutions, code, two exercises in one cell, one more
src/solutions/01_tiny.py  their answers, with a helper and a check of another answer
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

import assignment  # noqa: E402

Cell = nbformat.NotebookNode
LESSON = """\
# %% [markdown] slot="title" lang="en"
# # Tiny
#
# Replace `None`. The
# [solutions](../solutions/01_tiny.ipynb) are beside it. Good luck.

# %% [markdown] slot="title" lang="zh"
# # 小课
#
# 替换 `None`。[解答](../solutions/01_tiny.ipynb)在旁边。祝你好运。

# %% slot="code"
base = 40

# %% slot="check"
def check(number, answer, is_right):
    print(number, is_right(answer))

# %% slot="answers-1-2"
answer_1 = None  # a number
answer_2 = None  # a function of x

# what the second exercise is judged by
def doubles(f):
    return f(base) == 2 * base

check(1, answer_1, lambda answer: answer == base + 2)
check(2, answer_2, doubles)

# %% slot="answer-3"
answer_3 = None  # a list
check(3, answer_3, lambda answer: answer == [1, 2])
"""
SOLUTIONS = """\
# %% [markdown] slot="title" lang="en"
# # Solutions

# %% slot="answers-1-2"
SECRET = 2
answer_1 = base + SECRET


def answer_2(x):
    return x + x


# another way
def in_other_words(x):
    return 2 * x


def doubles(f):
    return f(base) == 2 * base

check(1, answer_1, lambda answer: answer == base + 2)
check(2, in_other_words, doubles)

# %% slot="answer-3"
answer_3 = [1, 2]
check(3, answer_3, lambda answer: answer == [1, 2])
"""


class Course:
    """A folder with the small lesson, and the assignments made of it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys, self.output = root, capsys, root / "course"
        (root / "src" / "solutions").mkdir(parents=True)
        self.lesson = root / "src" / "01_tiny.py"
        self.lesson.write_text(LESSON, encoding="utf-8")
        (root / "src" / "solutions" / "01_tiny.py").write_text(SOLUTIONS, encoding="utf-8")

    def make(self, *argv: str) -> str:
        """Complaints of one run; none when it succeeds."""
        status = assignment.main([*argv, "--output", str(self.output)], self.root)
        complaints = self.capsys.readouterr().err
        assert status == bool(complaints)
        return complaints

    def cells(self, path: str) -> list[Cell]:
        page = nbformat.read(self.output / path, as_version=4)
        nbformat.validate(page)
        return page.cells


@pytest.fixture
def course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Course:
    return Course(tmp_path, capsys)


TEACHERS = "source/01_tiny/01_tiny.ipynb"
REGION = re.compile(r"### BEGIN SOLUTION.*### END SOLUTION", re.DOTALL)


def grade(cells: list[Cell]) -> dict[str, str]:
    """What the tests of a notebook for nbgrader say, cell after cell in one namespace."""
    verdicts: dict[str, str] = {}
    names: dict[str, object] = {}
    for cell in cells:
        try:
            if cell.cell_type == "code":
                exec(cell.source, names)
            said = "right"
        except AssertionError as error:
            said = str(error)
        if cell.metadata.get("nbgrader", {}).get("grade"):
            verdicts[cell.metadata.nbgrader.grade_id] = said
    return verdicts


def test_teachers_copy_gets_all_points(course: Course) -> None:
    assert course.make("nbgrader") == ""
    cells = course.cells(TEACHERS)
    assert grade(cells) == dict.fromkeys(("test-1", "test-2", "test-3"), "right")
    printed = course.capsys.readouterr().out.splitlines()
    assert printed == ["exercise 1: right", "exercise 2: right", "exercise 3: right"]


def test_students_copy_gets_the_verdicts_of_the_lesson(course: Course) -> None:
    course.make("nbgrader")
    cells = course.cells(TEACHERS)
    for cell in cells:
        cell.source = REGION.sub(
            "answer_2 = abs" if "answer_2 =" in cell.source else "", cell.source
        )
    assert "SECRET" not in "".join(cell.source for cell in cells)
    assert grade(cells) == {
        "test-1": "exercise 1: not answered yet",
        "test-2": "exercise 2: wrong",
        "test-3": "exercise 3: not answered yet",
    }


def test_answers_are_open_and_everything_else_is_locked(course: Course) -> None:
    course.make("nbgrader")
    code = [cell for cell in course.cells(TEACHERS) if cell.cell_type == "code"]
    marks = {cell.id: cell.metadata.nbgrader for cell in code}
    assert list(marks) == [
        *("code", "check", "answers-1-2", "exercise-1", "test-1", "exercise-2", "test-2"),
        *("exercise-3", "test-3"),
    ]
    for name, mark in marks.items():
        assert (mark.schema_version, mark.grade_id) == (3, name)
        assert mark.solution == name.startswith("exercise") != mark.locked
        assert mark.get("points") == (1 if name.startswith("test") else None)
    assert code[2].source.startswith("# what the second exercise is judged by\ndef doubles")
    assert code[3].source.startswith(
        "answer_1 = None  # a number\n### BEGIN SOLUTION\nSECRET = 2\n"
    )
    assert "in_other_words" not in "".join(cell.source for cell in code)


def test_config_of_nbgrader_is_written_once(course: Course) -> None:
    course.make("nbgrader")
    config = course.output / "nbgrader_config.py"
    assert "c.ClearSolutions.code_stub" in config.read_text()
    config.write_text("# mine\n")
    course.make("nbgrader")
    assert config.read_text() == "# mine\n"


@pytest.mark.parametrize(
    ("lang", "text"),
    [("en", "# Tiny\n\nReplace `None`. Good luck."), ("zh", "# 小课\n\n替换 `None`。祝你好运。")],
)
def test_the_sentence_that_leads_to_the_solutions_goes(
    course: Course, lang: str, text: str
) -> None:
    assert course.make("nbgrader", "--lang", lang) == ""
    assert course.cells(TEACHERS)[0].source == text


def test_marks_of_otter_open_and_close(course: Course) -> None:
    assert course.make("otter", "--only", "01") == ""
    cells = course.cells("01_tiny.ipynb")
    marks = [cell.source.splitlines()[0][2:] for cell in cells if cell.cell_type == "raw"]
    question = ["BEGIN QUESTION", "BEGIN SOLUTION", "END SOLUTION", "BEGIN TESTS", "END TESTS"]
    assert marks == ["ASSIGNMENT CONFIG", *[*question, "END QUESTION"] * 3]
    names: dict[str, object] = {}
    for cell in cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert names["answer_1"] == 42
    (asked,) = (cell.source for cell in cells if "answer_3 = None" in cell.source)
    prompt, answer = asked.split("# BEGIN SOLUTION NO PROMPT")
    assert prompt == '""" # BEGIN PROMPT\nanswer_3 = None  # a list\n"""; # END PROMPT\n'
    assert answer == "\nanswer_3 = [1, 2]\n# END SOLUTION"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("check(3, answer_3", "check(3, answer_1", "answers [3], checks [] and solutions [3]"),
        ('slot="answer-3"', 'slot="three"', "slot 'three': found answers [3], checks [3] and"),
        ("# %% slot", "# %% plot", "found slot=None; give it one"),
    ],
)
def test_faults_of_a_lesson_are_named(course: Course, old: str, new: str, complaint: str) -> None:
    course.lesson.write_text(LESSON.replace(old, new), encoding="utf-8")
    assert complaint in course.make("nbgrader")


@pytest.mark.parametrize(("form", "path"), [("nbgrader", TEACHERS), ("otter", "01_tiny.ipynb")])
def test_a_changed_copy_is_kept(course: Course, form: str, path: str) -> None:
    assert course.make(form) == "" and course.make(form) == ""
    course.lesson.write_text(LESSON.replace("base = 40", "base = 50"), encoding="utf-8")
    assert course.make(form) == ""  # nobody has changed the copy: it is brought up to date
    copy = course.output / path
    assert "base = 50" in copy.read_text("utf8")
    page = nbformat.read(copy, as_version=4)
    page.cells[-1].source += "\n### BEGIN HIDDEN TESTS"
    changed = nbformat.writes(page)
    page = nbformat.reads(copy.read_text("utf8"), as_version=4)
    words = next(cell for cell in page.cells if cell.cell_type == "markdown")
    words["attachments"] = {"a.png": {"image/png": "aaaa"}}
    for text in (changed, nbformat.writes(page), "not a notebook", ""):
        copy.write_text(text, encoding="utf-8")
        assert f"{copy}: was changed" in course.make(form)
        assert copy.read_text("utf8") == text
    assert course.make(form, "--force") == ""
    assert "HIDDEN" not in copy.read_text("utf8")


def test_unknown_lesson_is_named(course: Course) -> None:
    assert "begins with '02'; there are: 01_tiny" in course.make("otter", "--only", "02")


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
def test_every_lesson_becomes_an_assignment(tmp_path: Path, lang: str) -> None:
    assert assignment.main(["nbgrader", "--lang", lang, "--output", str(tmp_path)]) == 0
    written = sorted(tmp_path.glob("source/*/*.ipynb"))
    assert len(written) == len(list((NOTEBOOKS / "src").glob("[0-9]*.py")))
    for path in written:
        cells = nbformat.read(path, as_version=4).cells
        listed = re.findall(
            r"^\d+(?=\. )", next(c.source for c in cells if c.id == "summary"), re.M
        )
        points = [c.id for c in cells if c.metadata.get("nbgrader", {}).get("grade")]
        assert sorted(points) == [f"test-{number}" for number in listed], path.name
        assert not any("../solutions" in c.source or c.get("outputs") for c in cells), path.name
