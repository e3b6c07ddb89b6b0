"""What a lesson's first cell makes: figures' style, a scratch folder, and the judge of answers."""

from __future__ import annotations

import atexit
import csv
import importlib
import runpy
import tempfile
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from gnnlab.errors import InvalidInput
from gnnlab.exercises.judging import Wrong

_HERE = Path(__file__).parent
_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}


class Verdict(NamedTuple):
    """What a judge says: right, wrong, or None if there is no answer; and the words for it."""

    is_right: bool | None
    text: str


class Lesson:
    """A lesson's exercises, scratch folder and style of figures.

    Parameters
    ----------
    number : str
        Such as "01", or a Python file with judges of your own, such as "judges.py".
    language : str
        "en", "ko" or "zh": of verdicts, hints and figures.

    Examples
    --------
    >>> from gnnlab.exercises import Lesson
    >>> lesson = Lesson("01", "en")
    >>> lesson.check(1, None)
    exercise 1: not answered yet
    >>> lesson.judge(1, 85).is_right
    True
    """

    def __init__(self, number: str, language: str = "en") -> None:
        own = Path(number).absolute() if number.endswith(".py") else None
        self._file = own or _HERE / f"lesson_{number}.py"
        if not self._file.is_file():
            known = ", ".join(sorted(path.stem[-2:] for path in _HERE.glob("lesson_*.py")))
            expected = f"one of {known}, or a file of judges"
            raise InvalidInput(f"number: found {number!r}; expected {expected}")
        self.number = number
        self._language, self._hints = language, Counter[int]()
        _texts(number, language)  # a language that does not exist is an error now

    @property
    def folder(self) -> Path:
        """A folder for files: the same one if a cell runs again; removed when the process ends."""
        if self.number not in _folders:
            _folders[self.number] = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            atexit.register(_folders[self.number].cleanup)
        return Path(_folders[self.number].name)

    def style(self) -> None:
        """Draw figures as the lessons do: small text, two spines, in the lesson's language."""
        import matplotlib.pyplot as plt

        from gnnlab import plot

        plt.rcParams.update({"figure.dpi": 110, "font.size": 9, "legend.frameon": False})
        plt.rcParams.update({"axes.spines.right": False, "axes.spines.top": False})
        plot.language(self._language)

    def check(self, number: int, answer: Any) -> None:
        """Print whether an answer is right and, if it is wrong, what that points to."""
        print(self.judge(number, answer).text)

    def judge(self, number: int, answer: Any) -> Verdict:
        """Return what :meth:`check` prints, for programs that grade."""
        exercise = getattr(self._judges(), f"exercise_{number}", None)
        if exercise is None:
            raise InvalidInput(f"number: lesson {self.number} has no exercise {number!r}")
        start = self._say("exercise", number=number)
        if answer is None:
            return Verdict(None, f"{start}{self._say('unanswered')}")
        try:
            exercise(answer)
        except Wrong as wrong:
            reason = self._say(wrong.reason, **wrong.values) if wrong.reason else ""
            offer = self._say("offer", number=number) if self._has_hints(number) else ""
            lines = [f"{start}{self._say('wrong')}", reason, offer]
            return Verdict(False, "\n  ".join(filter(None, lines)))
        except Exception as error:
            lines = [f"{start}{self._say('raised')}", _of_reader(error)]
            return Verdict(False, "\n".join(lines))
        return Verdict(True, f"{start}{self._say('right')}")

    def hint(self, number: int) -> None:
        """Print a hint; the next call prints one that says more, and then where the solution is."""
        if not self._has_hints(number):
            raise InvalidInput(f"number: lesson {self.number} has no hint for exercise {number!r}")
        self._hints[number] = step = min(self._hints[number] + 1, 3)
        print(self._say(f"{number} hint {step}" if step < 3 else "solution"))

    def _has_hints(self, number: int) -> bool:
        return f"{number} hint 1" in _texts(self.number, self._language)

    def _judges(self) -> ModuleType | SimpleNamespace:
        if self._file.parent == _HERE:
            return importlib.import_module(f"gnnlab.exercises.lesson_{self.number}")
        return SimpleNamespace(**runpy.run_path(str(self._file)))

    def _say(self, key: str, **values: Any) -> str:
        text = _texts(self.number, self._language).get(key)
        return key if text is None else text.format(**values)  # an own judge's words are its own


@cache
def _texts(number: str, language: str) -> dict[str, str]:
    """Key -> text in a language, of a lesson and of all lessons."""
    found = {}
    for name in ("common", number)[: 1 if number.endswith(".py") else 2]:
        with (_HERE / "texts" / f"{name}.csv").open(encoding="utf8", newline="") as file:
            for row in csv.DictReader(file):
                if language not in row:
                    raise InvalidInput(f"language: found {language!r}; expected en, ko or zh")
                found[row["key"]] = row[language]
    return found


def _of_reader(error: Exception) -> str:
    """The traceback from the reader's code on: the judge's own lines say nothing to a reader."""
    frame = error.__traceback__
    while frame and Path(frame.tb_frame.f_code.co_filename).parent == _HERE:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame)).rstrip()
