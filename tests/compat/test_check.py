"""``gnnlab as-dgl --check`` names what a program needs and does not find, without running it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gnnlab.compat as dgl
from gnnlab.tools.as_dgl import main

PROGRAM = """
import dgl.graphbolt as gb
import dgl
from dgl.nn import GNNExplainer as Explainer, SAGEConv
from .dgl import nothing
raise SystemExit("the program runs")
def use(g):
    import dgl.sparse as dglsp
    return dgl.nn.pytorch.conv.GATConv, gb.CooperativeConv(g), dglsp.no_such, g.nothing
"""


def check(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["--check", str(path)])
    return status, capsys.readouterr().out


def test_a_program_and_a_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    status, printed = check(program, capsys)
    first, second, third, there, _ = printed.splitlines()
    assert status == 1 and first.startswith(f"{program}:4: dgl.nn.GNNExplainer ")
    assert second.startswith(f"{program}:9: dgl.graphbolt.CooperativeConv ")
    assert "several GPUs" in second and third.startswith(f"{program}:9: dgl.sparse.no_such ")
    assert "dgl.nn.pytorch.conv.GATConv" in there and "dgl.nn.SAGEConv" in there
    program.unlink()
    cells = ["%pip install x\n", "import dgl"], ["!ls\n", "dgl.data.utils\n", "dgl.bad"]
    code = [{"cell_type": "code", "source": source} for source in cells]
    text = {"cell_type": "markdown", "source": ["dgl.worse"]}
    (tmp_path / "lesson.ipynb").write_text(json.dumps({"cells": [text, *code]}))
    status, printed = check(tmp_path, capsys)
    assert status == 1 and printed.startswith(f"{tmp_path}/lesson.ipynb:cell 3:3: dgl.bad ")
    assert len(printed.splitlines()) == 3


def test_an_attribute_that_is_missing_says_what_to_use_instead() -> None:
    for name, words in ("LazyFeature", "set_src_lazy_features"), ("nothing", "gnnlab has none"):
        with pytest.raises(AttributeError, match=f"dgl.{name} is missing: .*{words}"):
            getattr(dgl, name)


def test_all_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    status, printed = check(Path(__file__).with_name("programs"), capsys)
    assert status == 0 and "dgl.graphbolt.DataLoader" in printed


@pytest.mark.parametrize(
    ("name", "text"), [("a.py", "import ("), ("a.ipynb", "{}"), ("a.txt", ""), ("", "")]
)
def test_errors(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / (name or "nowhere.py")
    if name:
        path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["--check", str(tmp_path if name == "a.txt" else path)])
    assert stop.value.code == 2 and str(tmp_path) in capsys.readouterr().err
