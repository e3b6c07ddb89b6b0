"""A simulation moves the bytes that real servers move, and computes what real trainers compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gnnlab.distributed.policies import POLICIES
from tests.distributed.cluster import outputs, run_job, run_simulated
from tests.distributed.cut import plain, typed, write
from tests.helpers import THOROUGH

SCRIPT = """
import json, os, sys
import torch
import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, DistNodeDataLoader, DistTensor, SparseAdagrad
from gnnlab.distributed import node_split
from gnnlab.distributed.context import current
from gnnlab.kernels.dtypes import DTYPES
from gnnlab.nn import SAGEConv

class Model(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second
    def forward(self, blocks, h):
        return self.second(blocks[1], self.first(blocks[0], h))

dgl.distributed.initialize("unused.txt")
torch.distributed.init_process_group("gloo")
g = dgl.distributed.DistGraph("g", part_config=sys.argv[1])
ntype = "_N" if g.is_homogeneous else "user"
size = g.num_nodes(ntype)

torch.manual_seed(g.rank())  # what rank 0 has counts
width = 7 if g.is_homogeneous else 5
layers = [SAGEConv(width, 5, "mean"), SAGEConv(5, 1, "mean")]
model = torch.nn.parallel.DistributedDataParallel(Model(*layers))
dense = torch.optim.Adam(model.parameters(), lr=0.01)
policy = g.get_node_partition_policy(ntype)
ones = lambda shape, dtype: torch.ones(shape, dtype=dtype)
emb = DistEmbedding(size, 4, "emb", ones, policy)
sparse = SparseAdagrad([emb], lr=0.1)

nodes = node_split(torch.arange(size), g.get_partition_book(), ntype)
nodes = nodes if g.is_homogeneous else {"user": nodes}
sampler = dgl.dataloading.NeighborSampler([3, 4], prefetch_node_feats=["x"])
loader = DistNodeDataLoader(g, nodes, sampler, batch_size=11, shuffle=True, seed=5)
for epoch in range(2):
    for inputs, seeds, blocks in loader:
        x = blocks[0].srcdata["x"]
        if not g.is_homogeneous:
            inputs, seeds, x = inputs["user"], seeds["user"], x["user"].unsqueeze(1)
        h = torch.cat([x / 100, emb(inputs)], 1)
        blocks = blocks if g.is_homogeneous else [block["follows"] for block in blocks]
        y = model(blocks, h)
        dense.zero_grad()
        (y - 1).square().mean().backward()
        dense.step()
        sparse.step()

h = DistTensor((size, 2), torch.float32, "h", part_policy=policy)
ids = torch.arange(g.rank(), size, torch.distributed.get_world_size())
h[ids] = torch.ones(len(ids), 2)
g.barrier()
tables = []
for name, dtype in DTYPES.items():
    first = lambda shape, dtype: torch.ones(shape).to(dtype)
    tables.append(DistTensor((size, 2), dtype, f"of {name}", first, policy))
    values = torch.tensor([[1.0, 4.0], [1.0, 1.0], [2.0, 1.0]]).to(dtype)
    tables[-1][[0, size - 1]] = values[[0, 2]]
    assert tables[-1][[0, 1, size - 1]].tolist() == values.tolist(), name
g.barrier()
every = torch.arange(size)
x = g.nodes[ntype].data["x"]
etype = "_E" if g.is_homogeneous else "follows"
found = {
    "degrees": int(g.in_degrees(every, etype=etype).sum()),
    "ends": [int(e.sum()) for e in g.find_edges(torch.arange(50), etype=etype)],
    "h": h[:].sum().item(),
}
g.barrier()
if g.rank() == 0 and os.environ.get("GNNLAB_CACHE_BYTES", "0") == "0":
    x[torch.tensor([1, size - 1])] = x[torch.tensor([0, 1])]  # a feature of the files is written
g.barrier()
found |= {
    "x": x[:].sum().item(),
    "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(),
    "rows": emb.weight[every].flatten().tolist(),
}
g.barrier()
remote = current().remote
found["traffic"] = remote.traffic.to_list()
found["servers"] = [{k: t[:3] for k, t in s.items()} for s in remote.statistics()]
g.barrier()
found |= {"rank": g.rank(), "cache": str(g.cache_info()), "policy": g.client.cache.policy}
found["hits"] = g.cache_info().hits
print(json.dumps(found), flush=True)
"""
ANSWERED = ("Sample", "Pull", "Push", "Update", "Degrees", "FindEdges", "Create", "Share")


def simulated(config: Path, folder: Path, **options: Any) -> list[dict[str, Any]]:
    script = folder / "script.py"
    script.write_text(SCRIPT, encoding="utf8")
    result, found = run_simulated(script, config, **options)
    # The traffic of the result is that of all processes, samplers included.
    assert result.traffic.total("gradients").bytes_in == sum(
        count[-1]
        for one in found
        for count in one["traffic"]
        if count[2] == "gradients" and count[0] != count[1]
    )
    return found


AGAIN = pytest.mark.thorough("as with other parts, types and policies")


@pytest.mark.parametrize(
    ("parts", "graph", "trainers", "samplers", "servers", "cache", "policy"),
    [
        (2, plain, 2, 0, 2, 0, "access"),
        *(
            pytest.param(*(2, plain, 1, 0, 1, 600, policy), marks=AGAIN)
            for policy in POLICIES
            if policy not in ("belady", "vip")
        ),
        (4, plain, 1, 0, 1, 600, "belady"),
        (2, typed, 1, 0, 1, 100, "vip"),
        (2, plain, 1, 2 if THOROUGH else 1, 1, 600, "access"),
    ],
)
def test_bytes_and_results_are_those_of_a_job(
    tmp_path: Path, parts: int, graph: Any, trainers: int, samplers: int, servers: int, cache: int,
    policy: str,
) -> None:  # fmt: skip
    config = write(graph(), parts, tmp_path)
    lines = run_job(
        SCRIPT, config, args=[str(config)], machines=parts, trainers=trainers, samplers=samplers,
        servers=servers, GNNLAB_CACHE_BYTES=str(cache), GNNLAB_CACHE_POLICY=policy,
    )  # fmt: skip
    real = [outputs(each) for each in lines]
    mine = simulated(
        config, tmp_path, trainers_per_machine=trainers, samplers_per_trainer=samplers,
        servers_per_machine=servers, cache_bytes=cache, cache_policy=policy,
    )  # fmt: skip
    for one, other in zip(real, mine, strict=True):
        for exact in ("degrees", "ends", "h", "x", "cache", "policy"):
            assert one[exact] == other[exact]
        assert one["policy"] == policy and (one["hits"] > 0 or samplers or not cache)
        for near in ("parameters", "rows"):
            pair = torch.tensor(one[near]), torch.tensor(other[near])
            assert torch.allclose(*pair, rtol=0, atol=1e-6)
        assert one["traffic"] == other["traffic"]
    assert machines_of(real[0]["servers"], servers) == machines_of(mine[0]["servers"], servers)


def machines_of(statistics: list[dict[str, list[int]]], servers: int) -> list[dict[str, list[int]]]:
    """What the servers of each machine did together; which of them answers a read is chance."""
    found = []
    for first in range(0, len(statistics), servers):
        of_machine = statistics[first : first + servers]
        found.append(
            {
                kind: [sum(counts) for counts in zip(*given, strict=True)]
                for kind in ANSWERED
                if (given := [each[kind] for each in of_machine if kind in each])
            }
        )
    return found
