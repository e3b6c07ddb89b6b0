"""The protocol, spoken with a peer that only pretends to work; and gnnlab's own side of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import words
from benchmarks.__main__ import main
from benchmarks.drive import interleave, peer

PEER = '''
"""Answers build with 2 ms and sage with 8 ms, and notes the order in which it was asked."""
import json, os, sys
assert sys.argv[3] == "serve"
print("a library that greets", flush=True)
print("READY", flush=True)
for line in sys.stdin:
    task = line.strip()
    with open("asked.txt", "a") as log:
        log.write(f"{os.environ['OMP_NUM_THREADS']} {sys.argv[1]} {task}\\n")
    if task == "quit":
        break
    if task == "die":
        sys.exit("it was too much")
    print("a warning")
    known = {"build": {"ms": 2.0}, "sage": {"ms": 8.0}}
    answer = known.get(task.split(":")[0], {"error": "?"})
    print(json.dumps(dict(answer, sys="x", task=task, rss=10, peak=20)), flush=True)
'''


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder with two peers, ``fake`` and ``dgl``, that are the same script."""
    for name in ("fake", "dgl"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
        (tmp_path / f"bench_{name}.py").write_text(PEER)
    (tmp_path / "bench_absent.py").write_text("no interpreter beside it: not a peer")
    return tmp_path


@pytest.fixture
def tiny(peers: Path) -> Path:
    """The same folder with a graph of 200 nodes named T."""
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 200, (2, 3000), dtype=np.int32)
    folder = peers / "data" / "T"
    folder.mkdir(parents=True)
    arrays = {
        "src": src,
        "dst": dst,
        "feat": rng.standard_normal((200, 8), dtype=np.float32),
        "label": rng.integers(0, 47, 200),
        "train": np.arange(64),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return peers


def test_systems_take_turns_in_each_round(peers: Path) -> None:
    with peer("fake", peers, "S", 1) as a, peer("dgl", peers, "S", 2) as b:
        a.wait_ready()
        b.wait_ready()
        results = interleave([a, b], ["build", "step:15,10,5"], 2, words.translate)
    assert [(r["sys"], r["task"], r.get("ms")) for r in results] == [
        ("fake", "build", 2.0),
        ("dgl", "build", 2.0),
        ("fake", "build", 2.0),
        ("dgl", "build", 2.0),
        ("fake", "step:15,10,5", None),  # a stranger is asked in our words
        ("dgl", "step:15,10,5", 8.0),
        ("fake", "step:15,10,5", None),
        ("dgl", "step:15,10,5", 8.0),
    ]
    asked = (peers / "asked.txt").read_text().splitlines()
    assert asked[:3] == ["1 S build", "2 S build", "1 S build"]
    assert "2 S sage:15,10,5" in asked
    assert sorted(asked[-2:]) == ["1 S quit", "2 S quit"]


def test_a_peer_that_ends_is_an_error_not_a_hang(peers: Path) -> None:
    with peer("fake", peers, "S", 1) as system:
        system.wait_ready()
        assert "it was too much" in system.ask("die")["error"]
        assert "it was too much" in system.ask("build")["error"]


@pytest.mark.thorough("measures, which takes its time")
def test_run_measures_every_task_and_prints_ratios(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of gnnlab's tasks on the peers' arrays; only ``build`` and ``step`` are known to them."""
    out = tiny / "out.json"
    groups = ",".join(name for name in words.GROUPS if name != "small")
    arguments = f"run --size T --rounds 1 --tasks {groups} --systems dgl".split()
    status = main([*arguments, "--peer", str(tiny), "--json", str(out)])
    printed = capsys.readouterr()
    written = json.loads(out.read_text())
    ours = {r["task"]: r for r in written["results"] if r["sys"] == "gnnlab"}
    assert [r["task"] for r in ours.values() if "error" in r] == []
    expected = [task.name for name in groups.split(",") for task in words.GROUPS[name]]
    assert set(ours) == set(expected)
    assert status == 1 and "dgl failed at sample:4,4,4" in printed.err
    assert "dgl / gnnlab" in printed.out and "| COO → CSC |" in printed.out
    assert written["about"]["size"] == "T"


def test_small_graphs_need_no_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert main(["run", "--rounds", "1", "--tasks", "small:batch", "--json", str(out)]) == 0
    (result,) = json.loads(out.read_text())["results"]
    assert (result["task"], result["sys"]) == ("small:batch", "gnnlab") and result["ms"] > 0
    assert "batch of 128 molecules" in capsys.readouterr().out
