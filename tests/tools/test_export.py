"""Helpers that are copied out of gnnlab do their work without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.tools import closure
from gnnlab.tools.closure import collect
from gnnlab.tools.export import MEMORY, export, main
from gnnlab.tools.helpers import HELPERS
from tests.helpers import ROOT

# A clean interpreter that finds the standard library, the copy, and the packages that the helper
# states, with what those need themselves; not gnnlab, and nothing else that is installed.
CLEAN = """
import importlib.metadata as metadata, re, sys
folder, stated = sys.argv[1], sys.argv[2].split()
wanted, waiting = set(), list(stated)
while waiting:
    name = re.sub("[-_.]+", "-", re.match("[A-Za-z0-9._-]+", waiting.pop())[0]).lower()
    if name not in wanted:
        wanted.add(name)
        try:
            waiting += [text for text in metadata.requires(name) or [] if "extra ==" not in text]
        except metadata.PackageNotFoundError:
            pass  # of another platform
normal = lambda name: re.sub("[-_.]+", "-", name).lower()
forbidden = {"gnnlab"} | {
    top for top, names in metadata.packages_distributions().items()
    if not {normal(name) for name in names} & wanted
}
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in forbidden:
            return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Hiding, sys.meta_path)
sys.path.insert(0, folder)
for name in ("gnnlab", "pandas", "pytest"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} can be imported")
"""

TRAINING = """
torch.manual_seed(0)
n = 60
src, dst = torch.randint(n, (2, 600))
labels = (torch.arange(n) < 30).long()
src = torch.where(labels[src] == labels[dst], src, (src + 30) % n)  # neighbors are of one class
relation, x = Relation.from_edges(src, dst, n, n), torch.eye(n)
"""

# What must hold after the lines that the command prints.
JOBS = {
    "checkpoint": """
before = model.weight.clone()
with torch.no_grad():
    model.weight.zero_()
drawn = torch.rand(3)
load_checkpoint("run.pt", model=model)
assert torch.equal(model.weight, before) and torch.equal(torch.rand(3), drawn)
try:
    load_checkpoint("run.pt", other=model)
except KeyError as error:
    assert "its parts are: model, optimizer" in str(error)
else:
    raise SystemExit("no error")
""",
    "csc": "assert (indptr.tolist(), src.tolist()) == ([0, 1, 3], [6, 5, 7])",
    "fork": """
torch.set_num_threads(2)
assert work() == 90000  # OpenMP has threads now
child = os.fork()
if child == 0:
    os._exit(0 if work() == 90000 else 1)
assert os.waitpid(child, 0)[1] == 0
""",
    "layers": TRAINING
    + """
from fast.nn.gatconv import GATConv
from fast.nn.graphconv import GraphConv
assert h.shape == (2, 2)
layers = torch.nn.ModuleList([SAGEConv(n, 8, "mean"), SAGEConv(8, 2, "mean")])
optimizer = torch.optim.Adam(layers.parameters(), 0.05)
losses = []
for step in range(20):
    seeds = torch.randperm(n)[:20]
    blocks = sample_blocks(relation, seeds, [4, 4], key=step)
    h = layers[0](blocks[0], x[blocks[0].src_ids]).relu()
    loss = torch.nn.functional.cross_entropy(layers[1](blocks[1], h), labels[seeds])
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 3, losses
last = blocks[1]
h = h.detach()
assert GraphConv(8, 2, allow_zero_in_degree=True)(last, h).shape == (20, 2)
assert GATConv(8, 2, 3, allow_zero_in_degree=True)(last, h).shape == (20, 3, 2)
""",
    "metis": "assert sorted(part.tolist()) == [0, 0, 1, 1]",
    "processes": "assert results == [0, 10]",
    "rng": "numbers = [throw(i) for i in range(9)]\n"
    "assert len(set(numbers)) == 9 and all(0 <= x < 1 for x in numbers)",
    "sampler": TRAINING
    + """
assert (blocks[0].num_dst_nodes(), blocks[1].src_ids.tolist()) == (3, [0, 1, 2])
for block in sample_blocks(relation, torch.arange(0, n, 3), [3, -1], key=5):
    s, d = block.relation().coo()
    pairs = set(zip(src.tolist(), dst.tolist()))
    found = zip(block.src_ids[s].tolist(), block.src_ids[d].tolist())
    assert set(found) <= pairs and block.num_edges() > 20
""",
    "spmm": """
dense = torch.zeros(4, 4)
dense[torch.tensor([0, 0, 1]), torch.tensor([1, 2, 3])] = 1
x = torch.rand(4, 8, requires_grad=True)
out = spmm(relation, "copy_lhs", "sum", x, None)
out.square().sum().backward()
assert torch.allclose(out, dense @ x) and torch.allclose(x.grad, 2 * dense.T @ dense @ x)
from fast.ops.edge_softmax import edge_softmax
""",
    "timeline": "assert open('timeline.png', 'rb').read(4) == b'\\x89PNG'",
    "torch_sampler": """
assert ptr.tolist() == [0, 2] and set(src.tolist()) <= {0, 1, 2}
from fast.kernels.relabel_torch import NodeList
with NodeList(3) as nodes:
    nodes.start(torch.tensor([2]))
    assert nodes.add(torch.tensor([0, 2])).tolist() == [1, 0]
""",
    "trace": """
trace.stop()
events = trace.read("events")
assert [(event.kind, event.step) for event in events] == [("compute", 1)]
trace.write_chrome(events, "events.json")
""",
}


# Compiling takes longer than all the rest; the kernels are compiled by other helpers' jobs.
INTERPRETED = {"layers", "metis", "spmm"}


def clean_run(folder: Path, source: str, stated: str, helper: str) -> None:
    (folder / "job.py").write_text(CLEAN + source, "utf8")
    jit = {"NUMBA_DISABLE_JIT": "1"} if helper in INTERPRETED else {}
    done = subprocess.run(
        [sys.executable, "-I", "job.py", str(folder), stated],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **jit},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_each_helper_has_a_job() -> None:
    assert JOBS.keys() == HELPERS.keys()


@pytest.mark.parametrize("helper", HELPERS)
def test_a_copy_works_alone(
    helper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([helper, str(tmp_path / "fast")]) == 0
    said = capsys.readouterr().out
    stated = re.search("^It needs: pip install (.*)$", said, re.MULTILINE)
    example = said.partition(f"Use of {helper}:\n")[2]
    assert example, said
    lines = "".join(line.removeprefix("    ") for line in example.splitlines(keepends=True))
    packages = stated[1].replace("'", "") if stated else ""
    clean_run(tmp_path, f"{lines}\n{JOBS[helper]}\n", packages, helper)


@pytest.mark.parametrize("helper", HELPERS)
def test_files_tell_their_origin_and_know_nothing_of_gnnlab(helper: str, tmp_path: Path) -> None:
    changes = export([helper], tmp_path / "fast")
    for change in changes:
        if change.path.endswith(".py"):
            text = (tmp_path / "fast" / change.path).read_text("utf8")
            head = text[:400]
            assert "gnnlab 0" in head and "Apache-2.0" in head and "gnnlab export --update" in head
            compile(text, change.path, "exec")
            imports = re.findall(r"^\s*(?:from|import) gnnlab.*$", text, re.MULTILINE)
            hints = text.partition("if TYPE_CHECKING:")[2]
            assert all(line in hints for line in imports), imports
    assert (tmp_path / "fast" / "LICENSE.gnnlab").read_text() == (ROOT / "LICENSE").read_text()
    assert not {p.stem for p in (tmp_path / "fast").glob("*.py")} & set(sys.stdlib_module_names)


def test_two_helpers_share_files(tmp_path: Path) -> None:
    export(["sampler"], tmp_path / "fast")
    states = {change.path: change.state for change in export(["spmm"], tmp_path / "fast")}
    assert states["kernels/csc.py"] == "same" and states["ops/spmm.py"] == "new"
    assert states["sampling/arrays.py"] == "same"  # the helper that was there is kept up to date


def edit(path: Path, old: str = "", new: str = "# mine\n") -> None:
    text = path.read_text("utf8")
    path.write_text(text.replace(old, new, 1) if old else new + text, "utf8")


def test_what_was_changed_by_hand_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = tmp_path / "fast"
    export(["fork"], fast)
    edit(fast / "fork.py")
    mine = (fast / "fork.py").read_text("utf8")
    for words in (["fork", str(fast)], ["--update", str(fast)], ["csc", str(fast)]):
        assert main(words) == 1
        assert "fork.py: changed by you: left alone (--force" in capsys.readouterr().out
        assert (fast / "fork.py").read_text("utf8") == mine
    assert main(["fork", str(fast), "--force", "--dry-run"]) == 0
    assert (fast / "fork.py").read_text("utf8") == mine
    assert main(["fork", str(fast), "--force"]) == 0
    assert (fast / "fork.py").read_text("utf8") == mine.removeprefix("# mine\n")
    assert main(["--update", str(fast)]) == 0


def test_a_strangers_file_stays(tmp_path: Path) -> None:
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "fork.py").write_text("pass\n")
    states = {change.path: change.state for change in export(["fork"], tmp_path / "fast")}
    assert states["fork.py"] == "edited"
    assert (tmp_path / "fast" / "fork.py").read_text() == "pass\n"


def test_update_shows_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older gnnlab wrote fork.py and csc.py with other words; since then csc.py was edited."""
    fast = tmp_path / "fast"
    export(["fork", "csc"], fast)
    for path in ("fork.py", "kernels/csc.py"):
        for folder in (fast, fast / MEMORY):
            edit(folder / path, "stably", "in order")
            edit(folder / path, "Forking:", "To fork:")
    edit(fast / MEMORY / "state.json", '"gnnlab": "0', '"gnnlab": "0.0.9')
    edit(fast / "kernels/csc.py", "_SMALL = 1 << 17", "_SMALL = 1 << 10")
    before = (fast / "fork.py").read_text("utf8")
    assert main(["--update", "--dry-run", str(fast)]) == 1
    dry = capsys.readouterr().out
    assert (fast / "fork.py").read_text("utf8") == before and "would be updated" in dry
    assert main(["--update", str(fast)]) == 1
    said = capsys.readouterr().out
    assert said.replace("updated", "would be updated") == dry
    assert "--- fork.py (as exported from gnnlab 0.0.9" in said
    assert "-To fork:" in re.sub('"""', "", said) and "+Forking:" in re.sub('"""', "", said)
    assert "+++ kernels/csc.py (yours)" in said and "+_SMALL = 1 << 10" in said
    assert (
        "+++ kernels/csc.py (gnnlab 0" in said and '-    """Group values by key, in order.' in said
    )
    assert "fork.py: updated" in said and "csc.py: changed by you: left alone" in said
    assert "_SMALL = 1 << 10" in (fast / "kernels/csc.py").read_text("utf8")
    assert main(["--update", str(fast)]) == 1
    assert "fork.py: " not in capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(HELPERS)


def test_any_small_module_can_be_copied(tmp_path: Path) -> None:
    paths = [change.path for change in export(["kernels.gather"], tmp_path / "fast")]
    assert paths == [
        "LICENSE.gnnlab", "__init__.py", "kernels/__init__.py", "kernels/gather.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("helper", "folder", "error", "message"),
    [
        ("sampling", "fast", InvalidInput, "sampling needs .* files with .* use gnnlab itself"),
        ("lunch", "fast", NotFound, "no helper 'lunch'; there are checkpoint, csc"),
        ("fork", "file", InvalidInput, "is a file; name a folder"),
        ("fork", "file/fast", InvalidInput, "file is a file; name a folder"),
    ],
)
def test_refuses(
    helper: str,
    folder: str,
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("file").touch()
    with pytest.raises(error, match=message):
        export([helper], folder)
    assert [path.name for path in Path().iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["my.project"], "my.project/from_gnnlab"),
        (["import"], "import/from_gnnlab"),
        (["."], "from_gnnlab"),
        (["my.project", "--package", "fast"], "my.project/fast"),
        (["fast", "--package", "faster"], "fast/faster"),
    ],
)
def test_any_folder_can_be_named(
    words: list[str],
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trace", *words]) == 0
    said = capsys.readouterr().out
    assert f"{place}/trace_.py: written" in said and f"from {Path(place).name} import" in said
    assert "It needs: nothing besides Python" in said
    assert (tmp_path / place / MEMORY).is_dir()
    assert main(["--update", *words]) == 0


@pytest.mark.parametrize("package", ["my.project", "", "1a", "import"])
def test_a_package_has_a_name_of_python(package: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the name of a package has letters, digits"):
        export(["fork"], tmp_path / "x", package=package)
    assert not (tmp_path / "x").exists()


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lunch", str(tmp_path / "fast")]) == 1
    assert "gnnlab export: no helper 'lunch'" in capsys.readouterr().err
    assert main(["--update", str(tmp_path)]) == 1
    assert "has nothing that gnnlab export wrote" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fork"])
    assert "then a folder" in capsys.readouterr().err
    export(["fork"], tmp_path / "fast")
    (tmp_path / "fast" / MEMORY / "state.json").write_text("{")
    assert main(["--update", str(tmp_path / "fast")]) == 1
    assert "state.json is damaged" in capsys.readouterr().err


def test_imports_are_found_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A house of five modules: a name of the standard library, a package, hints, a late import."""
    house = {
        "__init__.py": "",
        "random.py": "import torch\nx = 1\n",
        "low/__init__.py": '"""A package whose modules load when used."""\n',
        "low/a.py": "from gnnlab import random, low\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from gnnlab.high import c\ny = low.b\n",
        "low/b.py": "def late():\n    import numpy.linalg\n    needed('scipy.sparse')\n"
        "    from gnnlab.random import (\n"
        "        x,\n    )\n",
        "high.py": "c = 1\n",
    }
    for path, text in house.items():
        (tmp_path / "gnnlab" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "gnnlab" / path).write_text(text)
    (tmp_path / "LICENSE").write_text("free")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(closure, "ROOT", tmp_path / "gnnlab")
    closure.modules.cache_clear()
    try:
        files = collect(["low.a"])
    finally:
        monkeypatch.undo()
        closure.modules.cache_clear()
    assert sorted(files.texts) == [
        "LICENSE.gnnlab", "__init__.py", "low/__init__.py", "low/a.py", "low/b.py", "random_.py",
    ]  # fmt: skip
    assert files.packages == {"torch", "numpy", "scipy"}
    assert files.texts["LICENSE.gnnlab"] == "free"
    assert "from .. import random_ as random, low\n" in files.texts["low/a.py"]
    assert "from gnnlab.high import c" in files.texts["low/a.py"]
    assert "    from ..random_ import (\n        x,\n    )\n" in files.texts["low/b.py"]
    assert "A package whose modules" in files.texts["low/__init__.py"]
