"""The variables that processes of a job exchange, in one list."""

from __future__ import annotations

import re

import pytest

from gnnlab.errors import InvalidInput
from gnnlab.launch import environment
from tests.helpers import ROOT

# Read by users' programs and by gnnlab outside of jobs, or no variable.
OTHERS = {"GNNLAB_DATA_DIR", "GNNLAB_DATA_URL", "DGL_DOWNLOAD_DIR", "DGL_REPO", "DGL_FILES"}
OTHERS |= {"GNNLAB_FAST_GPU"}


def test_the_list_names_all_variables() -> None:
    named = set()
    for path in (ROOT / "gnnlab").rglob("*.py"):
        named |= set(re.findall(r"\b(?:DGL|GNNLAB)_[A-Z_]+[A-Z]\b", path.read_text("utf8")))
    assert named - OTHERS == set(environment.VARIABLES)


def test_constants_are_their_names() -> None:
    constants = {name: value for name, value in vars(environment).items() if name.isupper()}
    del constants["VARIABLES"], constants["EVENTS"]  # the latter is a file
    assert sorted(constants.values()) == sorted(environment.VARIABLES)
    assert all(all(each) for each in environment.VARIABLES.values())


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²"])
def test_numbers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNLAB_CACHE_BYTES", "12")
    assert environment.number(environment.CACHE_BYTES) == 12
    monkeypatch.setenv("GNNLAB_CACHE_BYTES", text)
    with pytest.raises(InvalidInput, match="GNNLAB_CACHE_BYTES must be a number, 0 or more"):
        environment.number(environment.CACHE_BYTES)


def test_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNLAB_TIMEOUT", raising=False)
    assert environment.seconds(environment.TIMEOUT, 300.0) == 300
    for text in ("0", "inf", "soon"):
        monkeypatch.setenv("GNNLAB_TIMEOUT", text)
        with pytest.raises(InvalidInput, match=f"must be a number of seconds; found '{text}'"):
            environment.seconds(environment.TIMEOUT, 300.0)
