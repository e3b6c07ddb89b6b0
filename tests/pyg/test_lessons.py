"""The code for PyG that lessons 03 and 06 show, and do not run, runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, partition_graph
from gnnlab.pyg import to_pyg
from tests.helpers import ROOT

LESSONS = ROOT / "notebooks" / "en"


def run_shown(lesson: str, **names: Any) -> dict[str, Any]:
    """Run the one block of code for PyG in the text of a lesson; return its names."""
    cells = json.loads((LESSONS / f"{lesson}.ipynb").read_text("utf8"))["cells"]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    (shown,) = re.findall(r"```python\n(.*?gnnlab\.pyg.*?)```", text, re.DOTALL)
    exec(shown, names)
    return names


def test_a_batch_has_the_seeds_first() -> None:
    dataset = dgl.data.load("digits")
    found = run_shown("03_custom_sampling", graph=dataset[0], train_ids=dataset.train_idx)
    assert torch.equal(found["seeds"], dataset.train_idx[:32])
    batch, feat = found["batch"], dataset[0].ndata["feat"]
    assert torch.equal(batch.x, feat[batch.n_id])
    for ends, ids in zip(batch.edge_index, dataset[0].find_edges(batch.e_id), strict=True):
        assert torch.equal(batch.n_id[ends], ids)


def test_a_partitioned_graph_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = to_pyg(dgl.data.load("digits")[0])
    dgl.distributed.initialize()
    names = {"data": data, "partition_graph": partition_graph, "DistGraph": DistGraph}
    found = run_shown("06_distributed_api", **names)
    seen = torch.cat([batch.n_id[: batch.batch_size] for batch in found["loader"]])
    assert torch.equal(seen.sort().values, found["g"].ndata["train_mask"][:].nonzero().flatten())
