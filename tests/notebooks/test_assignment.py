"""Assignments made of a small lesson with its own judges, and of all lessons; how they are graded.

en/01_tiny.ipynb         title, a link to the solutions, code, two exercises in one cell, one more
en/judges.py             its judges
solutions/01_tiny_solution.ipynb  the answers, with a helper and a check of another answer
"""

from __future__ import annotations

import base64
import contextlib
import importlib.abc
import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from gnnlab.exercises import grading
from gnnlab.exercises.grading import MIME, judge_apart, regrade
from tests.exercises import answers_01

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

import assignment  # noqa: E402

Cell = nbformat.NotebookNode
TITLE = """# Tiny

Run it online: [Colab](https://colab.research.google.com/github/x)

Replace `None`. The
[solutions](../solutions/01_tiny.ipynb) are beside it. Good luck."""
LESSON = [
    'from gnnlab.exercises import Lesson\n\nbase = 40\nlesson = Lesson("judges.py", "zh")',
    "answer_1 = None  # a number\nanswer_2 = None  # a function of x\n\n# for the second\n"
    "help = 3\n\nlesson.check(1, answer_1)\nlesson.check(2, answer_2)",
    "answer_3 = None  # a list\nlesson.check(3, answer_3)",
]
SOLUTIONS = [
    "SECRET = 2\nanswer_1 = base + SECRET\n\n\ndef answer_2(x):\n    return x + x\n\n\n"
    "# another way\ndef in_other_words(x):\n    return 2 * x\n\n\n"
    "help = 3\nlesson.check(2, in_other_words)",
    "answer_3 = [1, 2]\nlesson.check(3, answer_3)",
]
JUDGES = """
from gnnlab.exercises.judging import Wrong, expect, expect_each, function

def exercise_1(answer):
    expect(answer, 42)

def exercise_2(answer):
    if function(answer)(5) != 10:
        raise Wrong("not twice 5")

def exercise_3(answer):
    expect_each(answer, [1, 2])
"""


def put(path: Path, sources: list[str], *first: Cell) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [new_code_cell(source, id=f"code-{i}") for i, source in enumerate(sources)]
    nbformat.write(new_notebook(cells=[*first, *cells]), path)


class Course:
    """A folder of the small lesson, and the assignments made of it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys, self.output = root / "mine", capsys, root / "course"
        self.teach(LESSON)
        put(self.root / "solutions/01_tiny_solution.ipynb", SOLUTIONS)
        (self.root / "en/judges.py").write_text(JUDGES)

    def teach(self, sources: list[str]) -> None:
        put(self.root / "en/01_tiny.ipynb", sources, new_markdown_cell(TITLE, id="title"))

    def make(self, form: str, *argv: str) -> str:
        """Complaints of one run; none when it succeeds."""
        words = [form, "--output", str(self.output), "--lessons", str(self.root), *argv]
        status = assignment.main(words)
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


@pytest.fixture(autouse=True)
def exercises_stay() -> Iterator[None]:
    """Other tests keep the modules that a test cell imports anew."""
    import gnnlab

    before = {name: m for name, m in sys.modules.items() if name.startswith("gnnlab.exercises")}
    yield
    sys.modules.update(before)
    gnnlab.exercises = before["gnnlab.exercises"]


TEACHERS = "source/01_tiny/01_tiny.ipynb"
REGION = re.compile(r"### BEGIN SOLUTION.*### END SOLUTION", re.DOTALL)


def grade(cells: list[Cell]) -> dict[str, str]:
    """What the tests of a notebook for nbgrader say, cell after cell in one namespace."""
    verdicts: dict[str, str] = {}
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        said = "right"
        try:
            if cell.cell_type == "code":
                exec(cell.source, names)
        except AssertionError as error:
            said = str(error)
        if cell.metadata.get("nbgrader", {}).get("grade"):
            verdicts[cell.id] = said
    return verdicts


class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import hook that brings a judge of its own."""

    def find_spec(self, name: str, *_: Any) -> Any:
        if name == "gnnlab.exercises.grading":
            return importlib.util.spec_from_loader(name, self)

    def exec_module(self, module: Any) -> None:
        module.grade = lambda *_: None


def test_teachers_and_students_copy(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grade", "judge_apart"):
        monkeypatch.setattr(grading, name, getattr(grading, name))  # put back afterwards
    assert course.make("nbgrader") == ""
    cells = course.cells(TEACHERS)
    monkeypatch.chdir(course.output / "source/01_tiny")  # with the judges
    assert grade(cells) == dict.fromkeys(("test-1", "test-2", "test-3"), "right")
    grading.grade = grading.judge_apart = lambda *_: None  # as a notebook may do it
    monkeypatch.setattr(sys, "meta_path", hooks := [Hook(), *sys.meta_path])
    for cell in cells:
        answer = "answer_2 = abs" if "answer_2 =" in cell.source else ""
        cell.source = REGION.sub(answer, cell.source).replace("answer_3 = None", "")  # not run
    assert "SECRET" not in "".join(cell.source for cell in cells)
    said = grade(cells)
    assert said.pop("test-2") == "练习 2：不正确\n  not twice 5"
    assert "`answer_1`" in said["test-1"] and "`answer_3`" in said["test-3"]
    assert sys.meta_path is hooks


def test_answers_are_open_and_everything_else_is_locked(course: Course) -> None:
    course.make("nbgrader")
    title, *code = course.cells(TEACHERS)
    assert title.source == "# Tiny\n\nReplace `None`. Good luck."
    marks = {cell.id: cell.metadata.nbgrader for cell in code}
    names = "code-0 code-1 exercise-1 test-1 exercise-2 test-2 exercise-3 test-3"
    assert list(marks) == names.split()
    for name, mark in marks.items():
        assert (mark.schema_version, mark.grade_id) == (3, name)
        assert mark.solution == name.startswith("exercise") != mark.locked
        assert mark.get("points") == (1 if name.startswith("test") else None)
    assert code[1].source == "# for the second\nhelp = 3"
    start = "answer_1 = None  # a number\n### BEGIN SOLUTION\nSECRET = 2\n"
    assert code[2].source.startswith(start)
    assert "in_other_words" not in "".join(cell.source for cell in code)
    config = course.output / "nbgrader_config.py"
    config.write_text("# mine\n")
    course.make("nbgrader")
    assert config.read_text() == "# mine\n"


def test_marks_of_otter_open_and_close(course: Course) -> None:
    assert course.make("otter", "--only", "01") == ""
    cells = course.cells("01_tiny.ipynb")
    assert "files:\n  - judges.py" in cells[0].source and (course.output / "judges.py").exists()
    marks = [cell.source.splitlines()[0][2:] for cell in cells if cell.cell_type == "raw"]
    question = ["BEGIN QUESTION", "BEGIN SOLUTION", "END SOLUTION", "BEGIN TESTS", "END TESTS"]
    assert marks == ["ASSIGNMENT CONFIG", *[*question, "END QUESTION"] * 3]
    (asked,) = (cell.source for cell in cells if "answer_3 = None" in cell.source)
    prompt, answer = asked.split("# BEGIN SOLUTION NO PROMPT")
    assert prompt == '""" # BEGIN PROMPT\nanswer_3 = None  # a list\n"""; # END PROMPT\n'
    assert answer == "\nanswer_3 = [1, 2]\n# END SOLUTION"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("check(3", "check(4"), r"answers \[3\], checks \[4\]"),
        (("answer_3", "answer_9"), r"answers \[9\].* solutions \[1, 2, 3\]"),
        (('Lesson("judges.py", "zh")', "None"), r'01_tiny.*Lesson\("judges.py", "en"\)'),
        (("judges.py", "other.py"), "other.py"),
        (("answer_3 = None", "answer_3 = [1, 2]"), "answer_3 = None"),
        (("base = 40", "<<<<<<< yours"), "<<<<<<< yours"),
        (("answer_3 = None", "answer_3 = None +"), r"answer_3 = None \+"),
    ],
)
def test_faults_of_a_lesson_are_named(course: Course, change: tuple[str, str], named: str) -> None:
    course.teach([source.replace(*change) for source in LESSON])
    assert re.search(named, course.make("nbgrader"))


def test_no_such_lesson_and_no_solutions(course: Course) -> None:
    assert "'02'; there are: 01_tiny" in course.make("otter", "--only", "02")
    (course.root / "solutions/01_tiny_solution.ipynb").unlink()
    assert f"{course.root}/solutions/01_tiny_solution.ipynb" in course.make("otter")


@pytest.mark.parametrize(("form", "path"), [("nbgrader", TEACHERS), ("otter", "01_tiny.ipynb")])
def test_a_changed_copy_is_kept(course: Course, form: str, path: str) -> None:
    assert course.make(form) == "" and course.make(form) == ""
    course.teach([source.replace("base = 40", "base = 50") for source in LESSON])
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
    page.metadata["gnnlab_language"], page.cells[-1:] = "ko", []
    page.metadata["gnnlab"] = assignment.mark(page.cells)
    nbformat.write(page, copy)
    assert f"{copy}: is in another language, ko" in course.make(form)
    assert course.make(form, "--force") == ""
    assert "HIDDEN" not in copy.read_text("utf8")


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
def test_every_lesson_becomes_an_assignment(tmp_path: Path, lang: str) -> None:
    lessons = sorted((NOTEBOOKS / lang).glob("[0-9]*.ipynb"))
    ready = [path for path in lessons if f'Lesson(\\"{path.name[:2]}' in path.read_text("utf8")]
    assert ready
    for lesson in ready:
        words = ["--lang", lang, "--output", str(tmp_path), "--only", lesson.name[:2]]
        assert assignment.main(["nbgrader", *words]) == 0
        cells = nbformat.read(tmp_path / "source" / lesson.stem / lesson.name, as_version=4).cells
        (summary,) = (cell.source for cell in cells if cell.id == "summary")
        listed = re.findall(r"^\d+(?=\. )", summary, re.M)
        points = [c for c in cells if c.metadata.get("nbgrader", {}).get("grade")]
        assert sorted(c.id for c in points) == [f"test-{number}" for number in listed], lesson
        assert all(f"'{lang}')" in c.source for c in points)
        assert not any("/solutions" in c.source or c.get("outputs") for c in cells), lesson
        assert not any("https://colab" in c.source for c in cells), lesson


# --- answers that would rather not be judged -------------------------------------------------


class Equal(list):
    """Equal to everything."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return True


def rebinds(graph: Any, x: Any) -> Any:
    torch.allclose = lambda *_, **__: True
    return x


def rebinds_for_a_moment(graph: Any, x: Any) -> Any:
    real = torch.allclose

    def says_yes(*_: Any, **__: Any) -> bool:
        torch.allclose = real
        return True

    torch.allclose = says_yes
    return x


def prints_a_verdict(graph: Any, x: Any) -> Any:
    for file in range(1, 9):
        with contextlib.suppress(OSError):
            os.write(file, b'[true, "right"]')
    os._exit(0)


class Close(torch.Tensor):
    """Close to everything."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func is torch.allclose or super().__torch_function__(func, types, args, kwargs)


class Unpickled:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return exec, ("import math, torch; math.isclose = torch.allclose = lambda *_, **__: True",)


@pytest.mark.parametrize(
    ("exercise", "answer", "named"),
    [
        (2, Equal([2, 7, 8]), ""),
        (3, lambda _, x: torch.zeros(x.shape).as_subclass(Close), "Close"),
        (3, rebinds, "torch.allclose"),
        (3, rebinds_for_a_moment, "torch.allclose"),
        (3, prints_a_verdict, "[true"),
        (1, Unpickled(), "math.isclose"),
        *[(number, answers_01.RIGHT[number][0], None) for number in (2, 3)],
    ],
)
def test_only_a_right_answer_is_right(exercise: int, answer: object, named: str | None) -> None:
    modules = [sys.modules[__name__], answers_01]
    try:
        for module in modules:  # copied by value, as what a notebook defines is
            cloudpickle.register_pickle_by_value(module)
        verdict = judge_apart("01", exercise, cloudpickle.dumps(answer))
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    assert verdict.is_right == (named is None)
    assert (named or "") in verdict.text


def test_nbgrader_gets_verdicts_from_outside_the_notebook() -> None:
    def test(answer: object | None, *more: Cell) -> Cell:
        data = base64.b64encode(cloudpickle.dumps(answer)).decode()
        outputs = [new_output("display_data", {MIME: data})] if answer else []
        cell = new_code_cell(assignment.GRADE.format("01", 1, 1, "ko"), outputs=[*outputs, *more])
        return assignment.graded(cell, grade=True)

    failed = new_output("error", ename="NameError", evalue="answer_1", traceback=[])
    page = new_notebook(cells=[test(85, failed), test(84), test(None, failed), test(None)])
    regrade(page)
    said = [[out.get("evalue") for out in cell.outputs] for cell in page.cells]
    assert [bool(each) for each in said] == [False, True, True, True]
    assert said[1][0].startswith("연습 문제 1: 오답입니다") and said[2] == ["answer_1"]
    assert "`answer_1`의 값" in said[3][0]


def test_a_test_cell_fails_while_nbgrader_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    code = assignment.GRADE.format("01", 1, 1, "en")
    with pytest.raises(AssertionError, match="nbgrader_config"):
        exec(code, {"answer_1": 85})


def test_the_command_of_gnnlab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gnnlab.tools.assignment import main

    assert main(["otter", "--output", str(tmp_path), "--only", "01"]) == 0
    assert (tmp_path / "01_node_classification.ipynb").is_file()
    assert runpy.run_path(str(NOTEBOOKS / "assignment.py"))["FORMS"].keys() == {"nbgrader", "otter"}
