"""A job's events come from all machines, and ``gnnlab trace`` shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import gnnlab as dgl
from gnnlab import trace
from gnnlab.errors import InvalidInput
from gnnlab.launch import launch
from gnnlab.tools import cli
from gnnlab.tools import trace as tool

TRAIN = """
import torch, gnnlab as dgl
dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("g", part_config="g.json")
nids = dgl.distributed.node_split(torch.ones(80, dtype=torch.bool), g.get_partition_book())
sampler = dgl.dataloading.NeighborSampler([4, 4], prefetch_node_feats=["x"])
loader = dgl.distributed.DistNodeDataLoader(g, nids, sampler, batch_size=10)
for _, nodes, blocks in loader:
    with dgl.trace.span("allreduce"):
        g.ndata["y"][79 - nodes] = torch.ones(len(nodes))
g.ndata["y"][torch.arange(80)]
g.barrier()  # both have recorded their steps
if g.rank() == 1:
    raise ValueError("the loss is NaN")
g.barrier()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    g = dgl.rand_graph(80, 600)
    g.ndata["x"], g.ndata["y"] = torch.randn(80, 3), torch.zeros(80)
    dgl.distributed.partition_graph(g, "g", 2, tmp_path, part_method="random")
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def run(folder: Path) -> None:
    launch.run(
        "python train.py", part_config="g.json", workspace=folder, num_machines=2, num_samplers=1,
        log_dir=folder / "logs", trace=folder / "events", security="none",
    )  # fmt: skip


def test_a_job_leaves_its_events(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that fails."""
    with pytest.raises(launch.LaunchError, match="ValueError"):
        run(workspace)
    events = trace.read(workspace / "events")
    found = {(e.role, e.machine, e.rank, e.kind) for e in events}
    assert found == {
        *(("trainer", i, i, kind) for i in (0, 1) for kind in ("compute", "allreduce", "wait")),
        *(("trainer", i, i, "fetch") for i in (0, 1)),
        *(("sampler", i, i, kind) for i in (0, 1) for kind in ("sample", "fetch")),
        *(("server", i, i, "serve") for i in (0, 1)),
    }
    for rank in (0, 1):
        mine = [e for e in events if e.role == "trainer" and e.rank == rank]
        assert [e.step for e in mine if e.kind == "compute"] == [0, 1, 2, 3]
        assert [e.step for e in mine if e.info.get("place") == "batch"] == [0, 1, 2, 3]
        assert "barrier" in [e.info.get("place") for e in mine]
        pulled = [e for e in events if e.role == "sampler" and e.rank == rank and e.kind == "fetch"]
        assert {e.step for e in pulled} <= {0, 1, 2, 3}
        assert {e.info["name"] for e in pulled} == {"node~_N~x"}
        assert {e.info["message"] for e in mine if e.kind == "fetch"} == {"Pull", "Push"}
    start, end = events[0].start, max(e.start + e.seconds for e in events)
    assert 0 < end - start < 120
    capsys.readouterr()
    output = workspace / "trace.json"
    assert cli.main(["trace", str(workspace / "events"), "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    assert f"{output}: {len(events)} events" in printed
    assert [line.split()[0] for line in printed.splitlines()[1:-1]].count("server") == 1
    bars = [e for e in json.loads(output.read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(bars) == len(events)
    with pytest.raises(InvalidInput, match=r"/events .*--trace"):
        run(workspace)


def test_without_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([str(tmp_path)]) == 1
    assert "holds no traces" in capsys.readouterr().err
