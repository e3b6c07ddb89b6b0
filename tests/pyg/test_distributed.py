"""PyG's loaders on a graph in parts: batches of the whole graph, and bytes of a real job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch

from gnnlab.distributed import DistGraph, initialize, partition_graph
from gnnlab.errors import InvalidInput
from gnnlab.pyg import FeatureStore, GraphStore, LinkNeighborLoader, NeighborLoader, to_pyg
from tests.distributed.cluster import outputs, run_job, run_simulated
from tests.pyg import graphs
from tests.pyg.graphs import CITES, WRITES

PARTS = pytest.mark.parametrize("parts", [1, 2, 4])


def assign(g: Any, k: int) -> torch.Tensor:
    return torch.randint(k, (g.num_nodes(),), generator=torch.Generator().manual_seed(7))


def cut(data: Any, parts: int, folder: Path) -> tuple[DistGraph, Any, Any]:
    """The graph in parts, and for each type: new ID → original ID of nodes and of edges."""
    maps = partition_graph(data, "g", parts, folder, part_method=assign, return_mapping=True)
    initialize()
    return DistGraph("g", part_config=folder / "g.json"), *maps


def inverse(order: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))


@PARTS
@pytest.mark.parametrize(
    "options",
    [{}, {"replace": True}, {"weight_attr": "weight"}, {"disjoint": True}],
    ids=["uniform", "replace", "weights", "disjoint"],
)
def test_batches_are_those_of_the_whole_graph(
    parts: int, options: dict[str, Any], tmp_path: Path
) -> None:
    data = graphs.plain()
    g, nodes, edges = cut(data, parts, tmp_path)
    seeds = torch.randperm(60, generator=torch.Generator().manual_seed(0))[:40]
    options = {"batch_size": 9, "seed": 4, **options}
    whole = NeighborLoader(data, [3, 2], seeds, **options)
    own = NeighborLoader(g, [3, 2], inverse(nodes)[seeds], **options)
    for one, other in zip(whole, own, strict=True):
        assert torch.equal(nodes[other.n_id], one.n_id)
        assert torch.equal(edges[other.e_id], one.e_id)
        assert other.num_sampled_nodes == one.num_sampled_nodes
        for name in ("edge_index", "x", "y", "mask", "edge_attr", "weight"):
            assert torch.equal(other[name], one[name]), name


@PARTS
def test_typed_batches_are_those_of_the_whole_graph(parts: int, tmp_path: Path) -> None:
    data = graphs.typed()
    g, nodes, edges = cut(data, parts, tmp_path)
    seeds = torch.arange(0, 30, 2)
    fanouts = {etype: [3, 2] for etype in data.edge_types} | {CITES: [-1, 1]}
    own = ("paper", inverse(nodes["paper"])[seeds])
    options = {"batch_size": 6, "seed": 4}
    whole = NeighborLoader(data, fanouts, ("paper", seeds), **options)
    for one, other in zip(whole, NeighborLoader(g, fanouts, own, **options), strict=True):
        for ntype in data.node_types:
            assert torch.equal(nodes[ntype][other[ntype].n_id], one[ntype].n_id)
            assert torch.equal(other[ntype].x, one[ntype].x)
        for etype in data.edge_types:
            assert torch.equal(edges[etype][other[etype].e_id], one[etype].e_id)
            for name in ("edge_index", "edge_attr"):
                assert torch.equal(other[etype][name], one[etype][name])


@PARTS
def test_links(parts: int, tmp_path: Path) -> None:
    data = graphs.plain()
    g, nodes, edges = cut(data, parts, tmp_path)
    ids = torch.arange(0, 400, 3)
    whole = LinkNeighborLoader(data, [3], data.edge_index[:, ids], batch_size=50, seed=1)
    own = LinkNeighborLoader(g, [3], inverse(edges)[ids], batch_size=50, seed=1)
    for one, other in zip(whole, own, strict=True):
        assert torch.equal(
            nodes[other.n_id][other.edge_label_index], one.n_id[one.edge_label_index]
        )
        assert set(edges[other.e_id].tolist()) == set(one.e_id.tolist())
    negatives = LinkNeighborLoader(g, [3], neg_sampling="binary", batch_size=100, seed=1)
    assert sum(len(batch.edge_label) for batch in negatives) == 800


def test_masks_and_no_seeds_mean_the_trainers_share(tmp_path: Path) -> None:
    data = graphs.typed()
    g, nodes, _ = cut(data, 2, tmp_path)
    mask = g.nodes["paper"].data["mask"]
    found = [
        b["paper"].n_id[: b["paper"].batch_size] for b in NeighborLoader(g, [1], ("paper", mask))
    ]
    expected = data["paper"].mask.nonzero().flatten()
    assert torch.equal(nodes["paper"][torch.cat(found)].sort().values, expected)
    assert len(NeighborLoader(g, [1], "author", batch_size=5)) == 4
    assert len(LinkNeighborLoader(g, [1], WRITES, batch_size=45)) == 2


def test_what_a_graph_in_parts_cannot_do_is_an_error(tmp_path: Path) -> None:
    g, _, _ = cut(graphs.plain(), 2, tmp_path)
    with pytest.raises(InvalidInput, match="edges"):
        GraphStore(g).coo()
    with pytest.raises(InvalidInput, match="DistGraph"):
        to_pyg(g)
    with pytest.warns(UserWarning, match="num_samplers N"):
        loader = NeighborLoader(g, [2], batch_size=30, num_workers=2, persistent_workers=True)
    assert loader.num_workers == 0 and len(list(loader)) == 2
    store = FeatureStore(g)  # which writes features where they belong
    store[None, "h", None] = torch.zeros(60, 2)
    store[None, "h", torch.tensor([59, 0])] = torch.ones(2, 2)
    assert torch.equal(store[None, "h", torch.tensor([0, 1, 59])].sum(1), torch.tensor([2.0, 0, 2]))


def test_features_of_all_types_take_one_round_trip(tmp_path: Path) -> None:
    """One exchange of messages a mini-batch for node features, one for edge features."""
    g, _, _ = cut(graphs.typed(), 2, tmp_path)
    transport, rounds = g.client.transport, []
    exchange = transport.exchange
    transport.readable = lambda part, name: None  # as if every part were far
    transport.exchange = lambda requests, *rest: (
        rounds.append(requests) or exchange(requests, *rest)
    )
    loader = NeighborLoader(g, [2], ("paper", torch.arange(30)), batch_size=30, prefetch=0)
    (batch,) = loader
    kinds = [[type(message).__name__ for _, message in requests] for requests in rounds]
    assert [set(each) for each in kinds] == [{"Sample"}, {"Pull"}, {"Pull"}]
    assert len(kinds[1]) == 6  # three features of nodes, from two machines
    assert len(kinds[2]) == 4  # of the edges of two types; none of the third is in the hop
    assert batch["author"].x.shape[1] == 3


SCRIPT = """
import json, sys, warnings
import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv
import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, DistGraph, SparseAdagrad
from gnnlab.distributed.context import current
from gnnlab.pyg import NeighborLoader

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(8, 8), SAGEConv(8, 2)
    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)

dgl.distributed.initialize("unused.txt")
torch.distributed.init_process_group("gloo")
g = DistGraph("g", part_config=sys.argv[1])
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
ones = lambda shape, dtype: torch.ones(shape, dtype=dtype)
emb = DistEmbedding(g.num_nodes(), 4, "emb", ones)  # was torch.nn.Embedding
sparse = SparseAdagrad([emb], lr=0.1)
loader = NeighborLoader(g, [3, 2], g.ndata["mask"], batch_size=4, shuffle=True, seed=1)
steps = 0
for epoch in range(2):
    for batch in loader:
        h = torch.cat([batch.x, emb(batch.n_id)], dim=1)
        out = model(h, batch.edge_index)[: batch.batch_size]
        loss = F.cross_entropy(out, batch.y[: batch.batch_size] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sparse.step()
        steps += 1
g.barrier()
remote = current().remote
print(json.dumps({
    "rank": g.rank(),
    "steps": steps,
    "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(),
    "rows": emb.weight[torch.arange(60)].flatten().tolist(),
    "traffic": remote.traffic.to_list(),
}), flush=True)
"""


def test_a_simulation_counts_the_bytes_of_a_job(tmp_path: Path) -> None:
    parts, samplers = 2, 1
    partition_graph(graphs.plain(), "g", parts, tmp_path, part_method=assign)
    config, script = tmp_path / "g.json", tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf8")
    lines = run_job(script, config, 250, args=[str(config)], machines=parts, samplers=samplers)
    real = [outputs(each) for each in lines]
    _, found = run_simulated(script, config, samplers_per_trainer=samplers)
    assert len({each["steps"] for each in real}) == 1 and real[0]["steps"] >= 4
    for one, other in zip(real, found, strict=True):
        assert one["steps"] == other["steps"]
        assert one["traffic"] == other["traffic"]
        torch.testing.assert_close(*(torch.tensor(each["parameters"]) for each in (one, other)))
        torch.testing.assert_close(*(torch.tensor(each["rows"]) for each in (one, other)))
