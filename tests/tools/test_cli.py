"""``gnnlab COMMAND`` and ``python -m gnnlab COMMAND``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gnnlab.system.command import command_parser
from gnnlab.tools import cli
from tests.helpers import ROOT


def python(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, *words], {**os.environ, **env}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", [*cli.COMMANDS, "copy-files"])
def test_each_command_helps(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "example" in said and f"gnnlab {command.replace('-', '_')}" in said


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["lunch"]])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    is_wrong = words == ["lunch"]
    assert cli.main(words) == 2 * is_wrong
    out, err = capsys.readouterr()
    assert all(command in (err if is_wrong else out) for command in cli.COMMANDS)
    assert ("'lunch'" in err) == is_wrong


def test_as_a_module_and_as_a_program() -> None:
    done = python("-m", "gnnlab", "--version")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    commit = r" \(commit [0-9a-f]{40}(, changed)?\)" if (ROOT / ".git").exists() else ""
    assert re.fullmatch(re.escape(f"gnnlab {project['version']}") + commit, done.stdout.strip())
    assert project["scripts"]["gnnlab"] == "gnnlab.tools.cli:main"


def test_a_command_starts_without_torch_and_other_programs_keep_ctrl_c() -> None:
    code = "import sys; from gnnlab.launch import doctor, launch; print('torch' in sys.modules)"
    assert python("-c", code).stdout == "False\n"
    code = "import signal, gnnlab; print(signal.getsignal(signal.SIGINT).__name__)"
    assert python("-c", code).stdout == "default_int_handler\n"


def test_options_with_either_separator(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_parser("doctor", "a\n\nb")
    parser.add_argument("--part_config")
    parser.add_argument("--num-parts", "-n", type=int)
    parser.add_argument("words", nargs="*")
    for words in (["--part-config", "a-b_c"], ["--part_config=a-b_c"], ["--part-c", "a-b_c"]):
        assert parser.parse_args(words).part_config == "a-b_c"
    assert parser.parse_args(["--num_parts", "2"]).num_parts == 2
    # What is no option of this command, or comes after "--", is somebody else's.
    assert parser.parse_known_args(["--my_own-x=3"])[1] == ["--my_own-x=3"]
    assert parser.parse_args(["-n3", "--", "--part-config"]).words == ["--part-config"]
    assert "--part-config" not in parser.format_help()
    with pytest.raises(SystemExit):  # the options are right, the file is missing
        cli.main(["launch", "--num-trainers", "2", "--part-config", "g.json", "--dry-run", "--x_y"])
    assert "unrecognized arguments: --x_y\n" in capsys.readouterr().err


# Ctrl-C comes at the moment when a module is looked for.
INTERRUPTING = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["MOMENT"]:
            os.environ["MOMENT"] = ""
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("moment", "how", "command", "said"),
    [
        ("typing", "program", "launch", "gnnlab: interrupted"),
        pytest.param(
            *("gnnlab.launch.status_table", "launch", "launch", "gnnlab: interrupted"),
            marks=pytest.mark.thorough("as at other moments"),
        ),
        (
            *("gnnlab.launch.backends.local", "program", "launch"),
            "gnnlab launch: interrupted; everything has been ended",
        ),
        ("probing", "module", "doctor", "gnnlab doctor: interrupted"),
    ],
)
def test_ctrl_c_says_so(moment: str, how: str, command: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    program = "from gnnlab.tools.cli import main\nraise SystemExit(main())\n"
    (tmp_path / "gnnlab").write_text(program)
    graph = {"num_parts": 1, "part-0": {"part_graph": "."}}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    # nvidia-smi is what the doctor runs: its examination is interrupted, not its loading.
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nkill -INT $PPID; exec sleep 60\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    words = {
        "program": [str(tmp_path / "gnnlab"), command],
        "module": ["-m", "gnnlab", command],
        "launch": ["-m", "gnnlab.launch.launch"],
    }[how]
    if command == "launch":
        words += ["--local", "--part_config", "graph.json", "python sitecustomize.py"]
    paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = python(*words, cwd=tmp_path, MOMENT=moment, **paths)
    assert (done.returncode, done.stderr) == (130, f"{said}\n")
