"""Judge answers of a notebook without trusting it: each in a process of its own.

What a notebook has defined or replaced does not reach that process: it gets the answer by value.
An answer that is a function runs there. It may not replace what judges rely on, and printing a
verdict, ending the process or running for ever does not make it right. Code that is written to
attack the judge in its own process is not kept out: read answers that look like that.
"""

from __future__ import annotations

import ast
import base64
import builtins
import functools
import json
import math
import os
import secrets
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from typing import Any

import cloudpickle
import torch

from gnnlab.exercises import judging, lesson
from gnnlab.exercises.lesson import Lesson, Verdict
from gnnlab.graph.graph import Graph

MIME = "application/x-gnnlab-answer"  # of an output that hands an answer to the program that grades
_TRUSTED = (builtins, math, torch, torch.Tensor, Graph, judging, lesson)
_SECONDS = 120.0


def grade(number: str, exercise: int, answer: Any, language: str = "en") -> None:
    """Fail unless an answer is right: the test cell of an assignment.

    While nbgrader grades, this only hands the answer over and fails: :func:`regrade` then judges it
    outside the notebook's process.

    Parameters
    ----------
    number : str
        Lesson, such as "01", or a file of judges, as of :class:`~gnnlab.exercises.Lesson`.
    exercise : int
    answer : object
        Anything that cloudpickle can copy.
    language : str
        "en", "ko" or "zh".

    Raises
    ------
    AssertionError
        The answer is not right; the message is the judge's verdict.

    Examples
    --------
    >>> from gnnlab.exercises.grading import grade
    >>> grade("01", 1, 85)
    >>> grade("01", 1, None)
    Traceback (most recent call last):
    AssertionError: exercise 1: no value of `answer_1` ... ended with an error
    """
    data = cloudpickle.dumps(answer)
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        from IPython.display import display

        display({MIME: base64.b64encode(data).decode()}, raw=True)
        raise AssertionError("not judged: nbgrader_config.py is not the one of gnnlab assignment")
    verdict = judge_apart(number, exercise, data, language)
    if verdict.is_right is not True:
        raise AssertionError(verdict.text)


def judge_apart(
    number: str, exercise: int, data: bytes, language: str = "en", folder: str = "."
) -> Verdict:
    """Judge an answer, pickled by cloudpickle, in a new process that starts in a folder."""
    command = [sys.executable, "-P", "-m", __name__, number, str(exercise), language]
    mark = secrets.token_bytes(16)  # an answer cannot write it in front of a verdict
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            done = subprocess.run(
                command,
                input=mark + data,
                capture_output=True,
                timeout=_SECONDS,
                cwd=folder,
                env={**os.environ, "TMPDIR": scratch},  # what an ended process leaves goes with it
            )
        return Verdict(*json.loads(done.stdout.partition(mark)[2]))
    except subprocess.TimeoutExpired:
        why = f"> {_SECONDS:g} s"
    except ValueError:  # the answer ended the process
        why = done.stderr.decode(errors="replace").strip()[-500:] or f"exit {done.returncode}"
    own = Lesson("01", language)
    return Verdict(False, own._say("exercise", number=exercise) + own._say("not judged", why=why))


def regrade(page: Any, folder: str = ".") -> None:
    """Judge the answers that an executed notebook hands over, and write the verdicts into it.

    Parameters
    ----------
    page : nbformat.NotebookNode
        The outputs of each cell that calls :func:`grade` become none if the answer is right, else
        an error with the verdict. A test cell that handed over no answer fails as well.
    folder : path
        Where a file of judges is.
    """
    for cell in page.cells:
        if not cell.metadata.get("nbgrader", {}).get("grade") or "grade(" not in cell.source:
            continue
        calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
        call = next(each for each in calls if getattr(each.func, "id", "") == "grade")
        number, exercise, _, language = (getattr(word, "value", None) for word in call.args)
        found = [out.data[MIME] for out in cell.outputs if MIME in out.get("data", {})]
        errors = [out for out in cell.outputs if out.output_type == "error"]
        if found or not errors:  # neither: the notebook hides errors, or has replaced grade
            data = base64.b64decode(found[-1]) if found else cloudpickle.dumps(None)
            verdict = judge_apart(str(number), int(exercise or 0), data, str(language), folder)
            errors = [] if verdict.is_right else [_error(verdict.text)]
        cell.outputs = errors


def _error(text: str) -> Any:
    from nbformat.v4 import new_output

    return new_output("error", ename="AssertionError", evalue=text, traceback=[text])


def _callables() -> dict[tuple[str, str], Any]:
    return {
        (each.__name__, name): value
        for each in _TRUSTED
        for name, value in vars(each).items()
        if callable(value)
    }


def _judge(number: str, exercise: int, language: str, data: bytes) -> Verdict:
    before, own = _callables(), Lesson(number, language)
    start = own._say("exercise", number=exercise)

    def rebound() -> str:
        now = _callables()
        return ", ".join(f"{k[0]}.{k[1]}" for k, v in before.items() if now.get(k) is not v)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            if names := rebound():
                raise judging.Wrong("rebound", names=names)
            return found

        return call

    answer = cloudpickle.loads(data)
    if isinstance(answer, types.FunctionType) and not rebound():
        answer = watched(answer)
    verdict = Verdict(None, start + own._say("no answer", number=exercise))
    if answer is not None and not rebound():
        verdict = own.judge(exercise, answer)
    if names := rebound():
        return Verdict(False, start + own._say("rebound", names=names))
    return verdict


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an answer prints is no verdict
    number, exercise, language = sys.argv[1:]
    given = sys.stdin.buffer.read()
    said = json.dumps(_judge(number, int(exercise), language, given[16:])).encode()
    out.write(given[:16] + said)
    out.close()
