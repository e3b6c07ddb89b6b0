"""``python -m gnnlab.as_dgl`` and ``gnnlab as-dgl``: programs as they are, with their children."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
import torch

import gnnlab
from gnnlab.errors import InvalidInput
from gnnlab.tools import as_dgl as tool
from tests.helpers import ROOT, run_script

REPLACE = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


def run(*words: str | Path, env: dict[str, str] | None = None, timeout: float = 120) -> list[str]:
    """Run Python with these arguments; return its lines. Nothing may be left behind."""
    printed = run_script(REPLACE, args=[*map(str, words)], env=env, timeout=timeout, fresh=True)
    return printed.splitlines()


def write(folder: Path, source: str, name: str = "program.py") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


PROCESSES = """
    import multiprocessing
    import sys

    import dgl
    import dgl.function as fn


    class Child:
        def __init__(self, number):
            self.number = number

        def __call__(self, queue):
            from dgl.nn.pytorch.conv import GraphConv
            queue.put((self.number, dgl.__name__, GraphConv.__module__))


    if __name__ == "__main__":
        print(sys.argv[1:], __file__, fn.__name__)
        for number, method in enumerate(("spawn", "fork", "forkserver")):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            process = context.Process(target=Child(number), args=(queue,))
            process.start()
            print(method, *queue.get(timeout=60))
            process.join()
"""


def test_children_of_multiprocessing(tmp_path: Path) -> None:
    script = write(tmp_path, PROCESSES)
    assert run("-m", "gnnlab.as_dgl", script, "--lr", "0.1") == [
        f"['--lr', '0.1'] {script} gnnlab.function",
        "spawn 0 gnnlab.compat gnnlab.nn.graphconv",
        "fork 1 gnnlab.compat gnnlab.nn.graphconv",
        "forkserver 2 gnnlab.compat gnnlab.nn.graphconv",
    ]


DISTRIBUTED = """
    import dgl
    import torch

    dgl.distributed.initialize("ip_config.txt")
    torch.distributed.init_process_group("gloo")
    g = dgl.distributed.DistGraph("toy", part_config="data/toy.json")
    sampler = dgl.dataloading.MultiLayerNeighborSampler([2])
    loader = dgl.dataloading.DistNodeDataLoader(g, torch.arange(4), sampler, batch_size=4)
    blocks = [blocks for _, _, blocks in loader]
    print(dgl.__name__, g.num_nodes(), len(blocks), int(g.ndata["x"][[3]]))
"""


def test_a_job_of_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``as-dgl -- gnnlab launch …``: trainers are started by torchrun."""
    write(tmp_path, DISTRIBUTED, "train.py")
    monkeypatch.chdir(tmp_path)
    g = gnnlab.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    g.ndata["x"] = torch.arange(4) * 10
    gnnlab.distributed.partition_graph(g, "toy", 1, "data")
    launch = ["-m", "gnnlab", "launch", "--workspace", str(tmp_path), "--local"]
    launch += ["--part_config", "data/toy.json", "python3 train.py"]
    printed = run("-m", "gnnlab", "as-dgl", sys.executable, *launch)
    assert any(line.endswith("gnnlab.compat 4 1 30") for line in printed), printed


def python(*words: str, path: str) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, *words], {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_another_dgl_that_is_installed_is_named(tmp_path: Path) -> None:
    other = write(tmp_path / "dgl", "raise ImportError('no library for this torch')", "__init__.py")
    path, code = os.pathsep.join([str(ROOT), str(tmp_path)]), "import dgl; print(dgl.__name__)"
    done = python("-m", "gnnlab.as_dgl", "-c", code, path=path)
    assert done.stdout == "gnnlab.compat\n"
    assert done.stderr.splitlines() == [
        f"gnnlab: `import dgl` gives gnnlab ({ROOT / 'gnnlab'}), not the DGL of {other}"
    ]
    done = python("-c", "import gnnlab.compat.as_dgl, dgl; print(dgl.__name__)", path=path)
    assert (done.stdout, done.stderr.count("\n")) == ("gnnlab.compat\n", 1)
    assert str(other) in done.stderr


def test_a_python_without_gnnlab() -> None:
    done = python("-S", "-P", "-c", "import dgl", path=tool.FOLDER)
    assert f"{sys.executable} -m pip install gnnlab" in done.stderr.splitlines()[-1]


def test_modules_code_options_and_status_are_passed_on(tmp_path: Path) -> None:
    """And the user's sitecustomize and PYTHONPATH still work."""
    write(tmp_path, "print('customized')", "sitecustomize.py")
    write(tmp_path, "name = 'of the user'", "helper.py")
    source = "import sys, dgl, helper; print(sys.argv[1:], helper.name); sys.exit(3)"
    write(tmp_path, source, "tool.py")
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = python("-m", "gnnlab.as_dgl", "-m", "tool", "-x", "--", "y", path=path)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[-2:] == ["customized", "['-x', '--', 'y'] of the user"]
    code = "import sys; print(sys.flags.optimize, sys.warnoptions)"
    done = python("-O", "-W", "error", "-m", "gnnlab.as_dgl", "-c", code, path=str(ROOT))
    assert done.stdout == "1 ['error']\n", done.stderr


def test_a_wheel_named_dgl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unpacked on the path, as pip installs it, it gives gnnlab; its files are as RECORD says."""
    assert tool.main(["--wheel", str(tmp_path / "new"), "--version", "2.4.0"]) == 0
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == "dgl-2.4.0-py3-none-any.whl" and str(path) in capsys.readouterr().out
    assert path.read_bytes() == tool.write_wheel(tmp_path, "2.4.0").read_bytes()
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(tmp_path / "site")
        record = wheel.read("dgl-2.4.0.dist-info/RECORD").decode().splitlines()
        assert sorted(line.split(",")[0] for line in record) == sorted(wheel.namelist())
    source = """
        import importlib.metadata, sys
        sys.path.insert(0, sys.argv[1])
        print(importlib.metadata.version("dgl"))
        import dgl
        from dgl.nn import GATConv
        print(dgl.__name__)
        """
    printed = run_script(source, args=[str(tmp_path / "site")], fresh=True)
    assert printed.split() == ["2.4.0", "gnnlab.compat"]  # and no note on another DGL


def test_no_wheel_for_wrong_versions_or_beside_dgl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("", "new", "2.1/../x"):
        with pytest.raises(InvalidInput, match="version"):
            tool.write_wheel(tmp_path, version)
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=str(tmp_path / "dgl")):
        tool.write_wheel(tmp_path / "new")
    with pytest.raises(SystemExit):
        tool.main(["--wheel", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()
