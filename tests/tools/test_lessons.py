"""``gnnlab lessons``: lessons that somebody worked in stay as they are."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.tools import lessons
from tests.helpers import ROOT


def test_each_language_with_its_solutions(tmp_path: Path) -> None:
    copied = lessons.copy_lessons(tmp_path / "수업 자료", "ko")["new"]
    sources = sorted((ROOT / "notebooks/ko").glob("[0-9]*.ipynb"))
    assert len(sources) >= 10
    for source in sources:
        assert (tmp_path / "수업 자료/ko" / source.name).read_bytes() == source.read_bytes()
        name = f"{source.stem}_solution.ipynb"
        is_translated = (ROOT / "notebooks/solutions/ko" / name).exists()
        assert ("solutions/" + "ko/" * is_translated + name) in copied
        (link,) = re.findall(r"\(\.\./(solutions/[^)]*)\)", source.read_text("utf8"))
        assert (tmp_path / "수업 자료" / link).is_file()
    assert not [name for name in copied if name.startswith(("en/", "zh/"))]


class Course:
    """A folder of lessons a, …, and the lessons of an older and a newer gnnlab."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.folder = root / "source", root / "수업"
        monkeypatch.setattr(lessons, "lessons_folder", lambda: self.source)

    def release(self, names: str, *changes: tuple[str, str]) -> None:
        """gnnlab gets these lessons, with the sources of cells changed."""
        self.source.joinpath("en").mkdir(parents=True, exist_ok=True)
        (self.source / "en/README.md").write_text("# Lessons\n")
        for number, name in enumerate(names, 1):
            sources = ["# Title", "a = 1\nb = 2\n\n\nc = 3", "check(a)"]
            sources = [dict(changes).get(each, each) for each in sources]
            cells = [new_code_cell(each, id=f"c{i}") for i, each in enumerate(sources)]
            cells[1].metadata = {"tags": ["x"]}
            cells[0] = new_markdown_cell(sources[0], id="c0")
            write(self.source / f"en/0{number}_{name}.ipynb", cells)

    def edit(self, name: str, **changes: object) -> None:
        """Change what somebody has: the source of a cell, c1="…", or where it ran, c1=3."""
        (path,) = self.folder.glob(f"en/*_{name}.ipynb")
        cells = nbformat.read(path, 4).cells
        for cell in cells:
            if isinstance(change := changes.get(cell.id), str):
                cell.source = change
            elif change:
                cell.update(execution_count=change, outputs=[new_output("stream", text="ran")])
        write(path, cells, language_info={"name": "python"})

    def sources(self, name: str) -> list[str]:
        (path,) = self.folder.glob(f"en/*_{name}.ipynb")
        page = nbformat.read(path, 4)
        nbformat.validate(page)
        return [cell.source for cell in page.cells]

    def run(self, *words: str) -> tuple[int, dict[str, str]]:
        """The exit status, and file name → what a run would say of it."""
        path, status = self.folder / lessons._RECORD, None
        said = lessons.copy_lessons(self.folder, check=True, merge="--merge" in words)
        before = path.read_bytes() if path.exists() else b""
        status = lessons.main([str(self.folder), "--lang", "en", "--copy-only", *words])
        assert "--check" not in words or before == path.read_bytes()
        return status, {
            Path(name).name.partition(".")[0]: how for how, names in said.items() for name in names
        }


def write(path: Path, cells: list[nbformat.NotebookNode], **metadata: object) -> None:
    path.write_text(nbformat.writes(new_notebook(cells=cells, metadata=metadata)), "utf8")


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    return Course(tmp_path, monkeypatch)


def test_each_state_of_a_lesson(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    course.release("abcde")
    assert course.run()[1] == dict.fromkeys(("README", *[f"0{i}_{n}" for i, n in
                                             enumerate("abcde", 1)]), "new")  # fmt: skip
    course.edit("b", c1=7, c2=8)  # only run
    course.edit("c", c0="# Mine", c2=9)
    (course.folder / "en/04_d.ipynb").unlink()
    course.edit("e", c1="a = 10\nb = 2\n\n\nc = 3", c2=5)
    assert course.run("--check") == (
        0, {"README": "same", "01_a": "same", "02_b": "same", "03_c": "kept", "04_d": "deleted",
            "05_e": "kept"})  # fmt: skip
    newer = ("a = 1\nb = 2\n\n\nc = 3", "a = 1\nb = 2\n\n\nc = 4")
    course.release("abcdef", newer)
    (course.folder / "en/06_f.ipynb").write_text("somebody else's")
    states = {"README": "same", "01_a": "updated", "02_b": "updated", "03_c": "behind",
              "04_d": "deleted", "05_e": "behind", "06_f": "unknown"}  # fmt: skip
    capsys.readouterr()
    assert course.run("--check") == (1, states)
    out = capsys.readouterr().out
    assert [name for name in states if f": en/{name}" in out] == [*states][1:]
    assert course.run() == (0, states)
    assert course.sources("a") == course.sources("b") == ["# Title", newer[1], "check(a)"]
    assert course.sources("c")[:2] == ["# Mine", newer[0]]
    assert not (course.folder / "en/04_d.ipynb").exists()
    (course.folder / "en/README.md").unlink()
    assert course.run("--merge", "--restore", "04,README")[1]["03_c"] == "merged"
    assert (course.folder / "en/README.md").exists()
    assert course.sources("c") == ["# Mine", newer[1], "check(a)"]
    assert course.sources("e") == ["# Title", "a = 10\nb = 2\n\n\nc = 4", "check(a)"]
    assert course.sources("d") == ["# Title", newer[1], "check(a)"]
    merged = nbformat.read(course.folder / "en/05_e.ipynb", 4)
    assert merged.metadata == {"language_info": {"name": "python"}}
    assert merged.cells[1].metadata.tags == ["x"] and merged.cells[1].outputs == []
    assert merged.cells[2].outputs[0].text == "ran"  # of a cell that has not changed
    before = nbformat.read(course.folder / "en/05_e.before.ipynb", 4)
    assert before.cells[1].source.startswith("a = 10") and before.cells[1].source.endswith("c = 3")
    assert set(course.run("--check")[1].values()) == {"same", "kept", "unknown"}
    assert (course.folder / "en/06_f.ipynb").read_text() == "somebody else's"


def test_a_file_that_replaced_a_lesson_is_not_merged(course: Course) -> None:
    course.release("abc")
    course.run()
    mine = [course.folder / f"en/{name}.ipynb" for name in ("01_a", "02_b", "03_c")]
    write(mine[0], [new_markdown_cell("# My lesson"), new_code_cell("x = 1"), new_code_cell("x")])
    mine[1].write_text("notes")
    course.edit("c", c0="# Mine", c1="b")  # one cell of three is left: still a copy
    before = [path.read_bytes() for path in mine]
    course.release("abc", ("check(a)", "check(a, b)"))
    assert [*course.run("--merge")[1].values()] == ["same", "unknown", "unknown", "merged"]
    assert [path.read_bytes() for path in mine[:2]] == before[:2]
    assert [path.name for path in course.folder.glob("en/*.before.*")] == ["03_c.before.ipynb"]


def test_solutions_that_had_the_names_of_their_lessons_are_moved(course: Course) -> None:
    course.release("abcd")
    mine = course.folder / "solutions"
    shutil.copytree(course.source / "en", course.source / "solutions")
    course.run()
    course.edit("b", c0="# Mine", c1=7)
    changed = Path(shutil.copy(course.folder / "en/02_b.ipynb", mine)).read_bytes()
    (mine / "03_c.ipynb").unlink()
    (mine / "04_d_solution.ipynb").write_text("somebody's")
    for path in course.source.glob("solutions/0*"):
        path.rename(path.with_stem(f"{path.stem}_solution"))
    states = {"01_a": "same", "02_b": "kept", "03_c": "deleted", "04_d": "unknown"}
    for words in (("--check",), (), ()):
        found = course.run(*words)[1]
        assert {name: found[f"{name}_solution"] for name in states} == states
    names = ["01_a_solution", "02_b_solution", "04_d", "04_d_solution"]
    assert sorted(path.stem for path in mine.glob("0*")) == names
    assert (mine / "02_b_solution.ipynb").read_bytes() == changed


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_conflict_loses_nothing(course: Course, has_ids: bool) -> None:
    course.release("a")
    course.run()
    course.edit("a", c0="# Mine", c2="check(b)")
    if not has_ids:
        path = course.folder / "en/01_a.ipynb"
        page = json.loads(path.read_text("utf8")) | {"nbformat_minor": 4}
        page["cells"] = [{k: v for k, v in cell.items() if k != "id"} for cell in page["cells"]]
        path.write_text(json.dumps(page))
    course.release("a", ("# Title", "# New"))
    assert course.run("--merge") == (1, {"README": "same", "01_a": "conflict"})
    first, *others = course.sources("a")
    assert first.splitlines()[1::2] == ["# Mine", "# New"] and first.startswith("<<<<<<< ")
    assert others == ["a = 1\nb = 2\n\n\nc = 3", "check(b)"]
    assert course.run("--merge") == (1, {"README": "same", "01_a": "conflict"})  # not resolved yet


def test_what_was_chosen_is_remembered(tmp_path: Path) -> None:
    first = lessons.copy_lessons(tmp_path / "x", "ko,zh", only="01,05", solutions=False)["new"]
    assert [name[:5] for name in first] == ["ko/01", "ko/05", "ko/RE", "zh/01", "zh/05", "zh/RE"]
    assert lessons.copy_lessons(tmp_path / "x")["same"] == first
    (tmp_path / "x/.gnnlab-lessons.json").unlink()
    assert lessons.copy_lessons(tmp_path / "x")["same"] == first
    more = lessons.copy_lessons(tmp_path / "x", only="02", solutions=True)["new"]
    folders = ["ko", "solutions/ko", "solutions/zh", "zh"]
    assert [name.rpartition("/")[0] for name in more] == folders


def test_merging_needs_git(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    course.release("a")
    course.run()
    course.edit("a", c0="# Mine")
    course.release("a", ("check(a)", "check(b)"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotFound, match="git"):
        lessons.copy_lessons(course.folder, merge=True)
    assert course.sources("a")[0] == "# Mine"


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput, match="en, ko, zh; found 'fr'"):
        lessons.copy_lessons(tmp_path, "fr")
    with pytest.raises(InvalidInput, match="'77'; there are 01, 02"):
        lessons.copy_lessons(tmp_path, only="01,77")
    with pytest.raises(InvalidInput, match=re.escape(str(lessons.lessons_folder()))):
        lessons.copy_lessons(lessons.lessons_folder())
    lessons.copy_lessons(tmp_path, only="01,05")
    with pytest.raises(InvalidInput, match=r"restore: 07 .*--only 01,05,07"):
        lessons.copy_lessons(tmp_path, restore="05,07")
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
    assert wheel["force-include"]["constraints.txt"] == "gnnlab/constraints.txt"
    for part in (*lessons.LANGUAGES, "solutions"):
        assert wheel["force-include"][f"notebooks/{part}"] == f"gnnlab/_lessons/{part}"
