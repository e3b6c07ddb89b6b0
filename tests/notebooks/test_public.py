"""Lessons and solutions use public names of gnnlab only, and state its constants correctly."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from gnnlab.launch.agent_messages import BEAT, SILENCE
from tests.helpers import ROOT

SOURCES = sorted((ROOT / "notebooks/src").glob("**/[0-9]*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_names_are_public(path: Path) -> None:
    """Those in strings and ``%%writefile`` cells included: scripts are read as well."""
    code = re.sub(r"(?m)^# .*\n", "", path.read_text("utf8"))
    assert re.findall(r"\w\._[a-z]\w*", code) == []
    for place, names in re.findall(r"(?m)^\s*from (gnnlab[\w.]*) import (.+)$", code):
        module = import_module(place)
        for name in (words.split(" as ")[0].strip() for words in names.split(",")):
            is_module = hasattr(module, "__path__") and find_spec(f"{place}.{name}")
            offered = getattr(module, "__all__", None) or dir(module)
            assert name[0] != "_" and (is_module or name in offered), f"{place}.{name}"


def test_lesson_09_draws_the_deadline_and_the_processes_of_a_job() -> None:
    lesson = (ROOT / "notebooks/src/09_launching.py").read_text("utf8")
    assert f"\nBEAT, SILENCE = {BEAT:g}, {SILENCE:g}  # seconds\n" in lesson
    # It knows the agents and runners of a job by their command lines.
    assert '"launch.agent": "agent"' in lesson and find_spec("gnnlab.launch.agent")
    assert '"launch.runner": "runner"' in lesson and find_spec("gnnlab.launch.runner")
