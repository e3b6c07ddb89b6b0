"""Judges accept right answers in every form, refuse what students often write, and say why.

``answers_NN.py`` has, for each exercise of a lesson, ``RIGHT``: right answers, and ``WRONG``: wrong
programs and usual wrong numbers, each with the reason that must be told (a key of
``gnnlab/exercises/texts/``; "" if none is known, the name of an error that the answer raises).
Numbers and lists are given in all their forms, and each exercise gets answers of another kind, too.
"""

from __future__ import annotations

import ast
import csv
import importlib
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab import exercises
from gnnlab.exercises import Lesson
from gnnlab.exercises.judging import Wrong
from tests.helpers import run_script

FOLDER = Path(exercises.__file__).parent
LESSONS = sorted(path.stem[-2:] for path in FOLDER.glob("lesson_*.py"))


def forms(right: Any) -> list[Any]:
    """A right answer as Python, numpy and torch write it."""
    if isinstance(right, int | float):
        return [right, float(right), np.float64(right), torch.tensor(right), torch.tensor([right])]
    if isinstance(right, list) and not isinstance(right[0], str):
        return [right, tuple(right), np.array(right), torch.tensor(right)]
    return [right]


def of_no_form(right: Any) -> list[tuple[Any, str]]:
    """Answers of another kind than a right one, and the reason."""
    if callable(right):
        return [(3, "not a function"), ([1, 2], "not a function")]
    if isinstance(right, list):
        return [(right[-1] if isinstance(right[-1], int) else 3, "not a list"), ("2", "not a list")]
    if isinstance(right, int | float):
        return [(str(right), "not a number"), ([right, 0], "not a number"), (True, "not a number")]
    return []


def cases(kind: str) -> list[Any]:
    found = []
    for lesson in LESSONS:
        answers = importlib.import_module(f"tests.exercises.answers_{lesson}")
        for number, given in getattr(answers, kind).items():
            if kind == "RIGHT":
                given = [form for right in given for form in forms(right)]
            else:
                given = [*given, *of_no_form(answers.RIGHT[number][0])]
            found += [
                pytest.param(lesson, number, answer, id=f"{lesson}.{number}-{i}")
                for i, answer in enumerate(given)
            ]
    return found


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Answers that draw at random do the same in each run."""
    dgl.seed(0)
    torch.manual_seed(0)


def judges(lesson: str) -> Any:
    return importlib.import_module(f"gnnlab.exercises.lesson_{lesson}")


@pytest.mark.parametrize(("lesson", "number", "answer"), cases("RIGHT"))
def test_right_is_right(lesson: str, number: int, answer: Any) -> None:
    verdict = Lesson(lesson, "en").judge(number, answer)
    assert verdict.is_right, verdict.text


@pytest.mark.parametrize(("lesson", "number", "case"), cases("WRONG"))
def test_wrong_is_wrong_and_told(lesson: str, number: int, case: tuple[Any, str]) -> None:
    answer, reason = case
    with pytest.raises(Exception) as found:
        getattr(judges(lesson), f"exercise_{number}")(answer)
    told = found.value.reason if isinstance(found.value, Wrong) else found.typename
    assert told == reason
    language = ("en", "ko", "zh")[number % 3]  # texts of all are compared below
    assert not Lesson(lesson, language).judge(number, answer).is_right


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_exercise_is_tried(lesson: str) -> None:
    answers = importlib.import_module(f"tests.exercises.answers_{lesson}")
    numbers = {name[9:] for name in dir(judges(lesson)) if name.startswith("exercise_")}
    assert {*map(str, answers.RIGHT)} == {*map(str, answers.WRONG)} == numbers
    assert all(len(given) >= 3 for given in answers.WRONG.values())


@pytest.mark.parametrize("lesson", LESSONS)
def test_texts_are_those_that_judges_say(lesson: str) -> None:
    """Each reason has a text in three languages with the same fields, and each text is used."""
    tables = {}
    for name in ("common", lesson):
        with (FOLDER / "texts" / f"{name}.csv").open(encoding="utf8", newline="") as file:
            rows = list(csv.DictReader(file))
        tables[name] = {row["key"] for row in rows}
        for row in rows:
            assert list(row) == ["key", "en", "ko", "zh"], row
            assert all(text.strip() for text in row.values()), row
            fields = {lang: sorted(_fields(row[lang])) for lang in ("en", "ko", "zh")}
            assert fields["en"] == fields["ko"] == fields["zh"], row
    tree = ast.parse((FOLDER / f"lesson_{lesson}.py").read_text("utf8"))
    said = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    numbers = [name[9:] for name in dir(judges(lesson)) if name.startswith("exercise_")]
    hints = {f"{number} hint {step}" for number in numbers for step in (1, 2)}
    assert tables[lesson] == (tables[lesson] & said) | hints


def _fields(text: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def test_an_error_of_the_reader_is_shown_with_its_lines() -> None:
    def broken(g: Any, x: Any) -> Any:
        return g.no_such_name

    verdict = Lesson("01", "en").judge(3, broken)
    assert verdict.is_right is False
    assert "g.no_such_name" in verdict.text and "AttributeError" in verdict.text
    assert str(FOLDER) not in verdict.text


def test_hints_say_more_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    lesson = Lesson("01", "en")
    for _ in range(4):
        lesson.hint(1)
    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert len({first, second, third}) == 3 and fourth == third


def test_what_is_no_lesson_or_exercise() -> None:
    with pytest.raises(ValueError, match=r"number.*'12x'.*01"):
        Lesson("12x")
    with pytest.raises(ValueError, match=r"language.*'fr'"):
        Lesson("01", "fr")
    with pytest.raises(ValueError, match=r"number.*9"):
        Lesson("01").judge(9, 1)


def test_the_folder_is_kept_by_a_cell_that_runs_again_and_removed_at_the_end() -> None:
    folder = run_script(
        """
        from gnnlab.exercises import Lesson

        folder = Lesson("01").folder
        assert folder.is_dir() and Lesson("01").folder == folder
        print(folder)
        """
    )
    assert not Path(folder.strip()).exists()
