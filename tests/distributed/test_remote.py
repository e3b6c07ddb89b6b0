"""Servers and trainers as real processes: what is asked of one process is asked of many."""

from __future__ import annotations

from pathlib import Path

import torch

import gnnlab as dgl
from tests.distributed.cluster import run_job

SCRIPT = """
import sys, torch, gnnlab as dgl
from gnnlab.kernels.dtypes import DTYPES

dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("g", part_config=sys.argv[1] if sys.argv[1:] else None)
print(g.num_nodes(), g.ndata["x"][:].tolist())
dgl.seed(3)
f = dgl.distributed.sample_neighbors(g, torch.arange(0, 100, 7), 5)
print(torch.stack(f.edges()).tolist())
h = dgl.distributed.DistTensor((100, 2), torch.float32, "h", lambda s, t: torch.ones(s, dtype=t))
print(h[[0, 99]].tolist(), h.count_nonzero())
for name, dtype in DTYPES.items():
    t = dgl.distributed.DistTensor((100, 2), dtype, name, lambda s, t: torch.ones(s).to(t))
    values = torch.tensor([[1.0, 4.0], [1.0, 1.0], [2.0, 1.0]]).to(dtype)
    t[[0, 99]] = values[[0, 2]]
    assert t[[0, 1, 99]].tolist() == values.tolist(), name
rank = dgl.distributed.context.rank()
g.client.barrier()
if rank == 0:
    h[torch.arange(100)] = torch.arange(200.0).view(100, 2)
    g.ndata["x"][torch.tensor([3, 98, 50])] = torch.tensor([-1.0, -2, -3])
g.client.barrier()
print(h[:].sum().item(), g.ndata["x"][[50, 98, 3, 4]].tolist())
"""


def partitioned(folder: Path, parts: int = 2) -> Path:
    g = dgl.graph((torch.randint(100, (1000,)), torch.randint(100, (1000,))), num_nodes=100)
    g.ndata["x"] = torch.arange(100.0)
    dgl.distributed.partition_graph(g, "g", parts, str(folder), part_method="random")
    return folder / "g.json"


def test_rows_and_samples(tmp_path: Path) -> None:
    config = partitioned(tmp_path)
    outputs = run_job(SCRIPT, config, machines=2, servers=2, trainers=2)
    print(outputs[0])
    assert len(set(outputs)) == 1
