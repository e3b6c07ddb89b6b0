"""Helpers are copied out of gnnlab, work there without it, and are compared with a newer gnnlab."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gnnlab as dgl
from gnnlab.errors import NotFound
from gnnlab.tools import export as tool
from gnnlab.tools.export import HELPERS, check, export, main
from tests.helpers import save_as_windows

FOLDER = Path(dgl.helpers.__file__).parent
VERSION = dgl.__version__

# The doctests of a copy, as `python -m doctest` runs them, where some packages are missing.
ALONE = """
import doctest, runpy, sys

sys.modules.update(dict.fromkeys(sys.argv.pop(1).split()))  # an import of them fails
sys.argv[0] = "doctest"
try:
    runpy.run_module("doctest", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert not end.code, "doctests failed"
assert sys.modules["gnnlab"] is None and "torch" in sys.modules
"""


def alone(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", HELPERS)
def test_a_copy_works_without_gnnlab(name: str, tmp_path: Path) -> None:
    copies = export(name, tmp_path / "my project")
    assert not any(copy.is_changed for copy in copies)
    missing = "gnnlab" if name == "dist_graph_simulator" else "gnnlab numpy"
    words = ("-W", "ignore", "-c", ALONE, missing, f"{name}.py")
    done = alone(tmp_path / "my project", *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_a_copy_is_the_file_and_a_checksum(tmp_path: Path) -> None:
    [copy] = export("fork", tmp_path)
    assert copy == (tmp_path / "fork.py", "fork", VERSION, False, True)
    text, own = (path.read_text("utf8").splitlines() for path in (copy.path, FOLDER / "fork.py"))
    differing = [number for number, (a, b) in enumerate(zip(text, own, strict=True)) if a != b]
    assert differing == [3] and text[3].startswith(f"{own[3]}, checksum ")
    save_as_windows(copy.path)  # other line ends and a byte order mark are no change
    assert not check(tmp_path)[0].is_changed


def test_the_simulator_comes_with_the_sampler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dist_graph_simulator"]) == 0
    names = ["dist_graph_simulator.py", "block_sampler.py"]
    assert capsys.readouterr().out == "".join(f"{name}: gnnlab {VERSION}\n" for name in names)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert main(["--check", "."]) == 0
    assert capsys.readouterr().out.count("there is no newer version") == 2


def test_check_looks_into_folders_but_not_into_environments(tmp_path: Path) -> None:
    for folder in ("src/course", ".venv/lib", "env/site-packages"):
        export("fork", tmp_path / folder)
    assert [copy.path for copy in check(tmp_path)] == [tmp_path / "src/course/fork.py"]


def test_the_simulator_alone_says_what_it_needs(tmp_path: Path) -> None:
    export("dist_graph_simulator", tmp_path)
    (tmp_path / "block_sampler.py").unlink()
    said = alone(tmp_path, "dist_graph_simulator.py").stderr
    assert "put block_sampler.py beside this file" in said.splitlines()[-1]


def append(path: Path, text: str = "# mine\n") -> str:
    path.write_text(path.read_text("utf8") + text, "utf8")
    return path.read_text("utf8")


def test_what_was_changed_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("dist_graph_simulator", tmp_path)
    mine = append(tmp_path / "block_sampler.py")
    for name in ("block_sampler", "dist_graph_simulator"):
        assert main([name, str(tmp_path)]) == 1
        assert "block_sampler.py: was changed, left alone (--force" in capsys.readouterr().out
        assert (tmp_path / "block_sampler.py").read_text("utf8") == mine
    assert main(["block_sampler", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "block_sampler.py").read_text("utf8") == mine.removesuffix("# mine\n")
    assert main(["block_sampler", str(tmp_path)]) == 0


@pytest.mark.parametrize("text", ["pass\n", '"""Sample.\n\nOrigin:  mine\n"""\n'])
def test_a_file_of_another_origin_stays(text: str, tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(text)
    [copy] = export("fork", tmp_path)
    assert copy.is_changed and copy.version == "" and copy.path.read_text() == text
    with pytest.raises(NotFound, match=str(tmp_path)):
        check(tmp_path)
    assert not export("fork", tmp_path, force=True)[0].is_changed


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gnnlab 9.10.0 whose fork.py has another last line; tmp_path / mine has today's copies."""
    shutil.copytree(FOLDER, tmp_path / "helpers")
    mine = tmp_path / "mine"
    export("fork", mine)
    export("ddp_loader", mine)
    shutil.copy(FOLDER / "block_sampler.py", mine / "sampler.py")  # without the command
    append(mine / "ddp_loader.py")
    for path in (tmp_path / "helpers").glob("*.py"):
        path.write_text(path.read_text("utf8").replace(f"gnnlab {VERSION}", "gnnlab 9.10.0"))
        append(path, "# newer\n")
    monkeypatch.setattr(tool, "_FOLDER", tmp_path / "helpers")
    return mine


def test_check_says_what_is_newer_and_what_is_changed(
    newer: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(newer)
    assert main(["--check", "."]) == 1
    has, own = "; gnnlab 9.10.0 has a newer version:", newer.parent / "helpers"
    assert capsys.readouterr().out.splitlines() == [
        f"ddp_loader.py: gnnlab {VERSION}, changed since{has} compare with {own}/ddp_loader.py",
        f"fork.py: gnnlab {VERSION}{has} gnnlab export fork .",
        # Nobody knows how it was when it was copied.
        f"sampler.py: gnnlab {VERSION}, changed since{has} compare with {own}/block_sampler.py",
    ]
    assert main(["fork", str(newer)]) == 0
    assert (newer / "fork.py").read_text("utf8").endswith("# newer\n")
    assert [copy.is_newest for copy in check(newer)] == [False, True, False]
    assert main(["ddp_loader", str(newer)]) == 1
    assert not (newer / "ddp_loader.py").read_text("utf8").endswith("# newer\n")


def test_newer_than_gnnlab_is_not_old(newer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(["fork", str(newer)])
    shutil.copy(newer.parent / "helpers" / "block_sampler.py", newer / "sampler.py")
    monkeypatch.setattr(tool, "_FOLDER", FOLDER)
    assert [copy.version for copy in check(newer)] == [VERSION, "9.10.0", "9.10.0"]
    assert all(copy.is_newest for copy in check(newer))
