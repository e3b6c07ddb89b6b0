"""``gnnlab lessons``: lessons that somebody worked in stay as they are."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from gnnlab.errors import InvalidInput
from gnnlab.tools import lessons
from tests.helpers import ROOT

LESSON = "ko/01_node_classification.ipynb"


def test_each_language_with_its_solutions(tmp_path: Path) -> None:
    copied = lessons.copy_lessons(tmp_path / "수업 자료", "ko")["new"]
    sources = sorted((ROOT / "notebooks/ko").glob("[0-9]*.ipynb"))
    assert len(sources) >= 10
    for source in sources:
        assert (tmp_path / "수업 자료/ko" / source.name).read_bytes() == source.read_bytes()
        english = not (ROOT / "notebooks/solutions/ko" / source.name).exists()
        assert (f"solutions/{source.name}" in copied) == english
        assert (f"solutions/ko/{source.name}" in copied) != english
        (link,) = re.findall(r"\(\.\./(solutions/[^)]*)\)", source.read_text("utf8"))
        assert (tmp_path / "수업 자료" / link).is_file()
    assert not [name for name in copied if name.startswith(("en/", "zh/"))]


def test_what_the_student_changed_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lessons.copy_lessons(tmp_path, "ko")
    mine = tmp_path / LESSON
    mine.write_text("my answers")
    other = "ko/02_link_prediction.ipynb"
    (tmp_path / other).unlink()
    assert lessons.main([str(tmp_path), "--lang", "ko", "--copy-only"]) == 0
    assert f"kept as you have it: {LESSON}" in capsys.readouterr().out
    assert mine.read_text() == "my answers"
    assert (tmp_path / other).is_file()


def test_an_older_text_is_replaced_unless_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("en/README.md", "en/a.ipynb", "en/b.ipynb"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"old {name}")
    monkeypatch.setattr(lessons, "lessons_folder", lambda: source)
    lessons.copy_lessons(target)
    (target / "en/b.ipynb").write_text("mine")
    for name in ("a", "b"):
        (source / f"en/{name}.ipynb").write_text("new")
    done = lessons.copy_lessons(target)
    assert done == {
        "new": [],
        "updated": ["en/a.ipynb"],
        "same": ["en/README.md"],
        "kept": ["en/b.ipynb"],
    }
    assert (target / "en/a.ipynb").read_text() == "new"
    assert lessons.copy_lessons(target)["kept"] == ["en/b.ipynb"]  # and is still known as changed


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="en, ko, zh; found 'fr'"):
        lessons.copy_lessons(tmp_path, "fr")
    with pytest.raises(InvalidInput, match=re.escape(str(lessons.lessons_folder()))):
        lessons.copy_lessons(lessons.lessons_folder())
    (tmp_path / "file").touch()
    assert lessons.main([str(tmp_path / "file"), "--copy-only"]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_without_jupyterlab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lessons.importlib.util, "find_spec", lambda name: None)
    assert lessons.main([str(tmp_path)]) == 2
    assert 'pip install "gnnlab[lab]"' in capsys.readouterr().err
    assert (tmp_path / "en/README.md").is_file()


def test_jupyterlab_shows_them(tmp_path: Path) -> None:
    folder = tmp_path / "수업 자료"
    words = [sys.executable, "-m", "gnnlab", "lessons", str(folder), "--no-browser"]
    env = {**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=env, cwd=ROOT,
                                   start_new_session=True)  # fmt: skip
    try:
        deadline, cells = time.monotonic() + 100, None
        while not cells:  # the address is shown a moment before somebody answers there
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
            if found := re.search(r"(http://127\S+:\d+)/lab\S*\?token=(\w+)", log.read_text()):
                address = f"{found[1]}/api/contents/en/01_node_classification.ipynb"
                with (
                    contextlib.suppress(urllib.error.URLError),
                    urllib.request.urlopen(f"{address}?token={found[2]}", timeout=30) as answer,
                ):
                    cells = json.load(answer)["content"]["cells"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_wheel_carries_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for part in (*lessons.LANGUAGES, "solutions"):
        assert wheel["force-include"][f"notebooks/{part}"] == f"gnnlab/_lessons/{part}"
        assert list((ROOT / "notebooks" / part).glob("*.ipynb"))
