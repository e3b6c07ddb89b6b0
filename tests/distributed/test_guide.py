"""The calls of DGL's user guide, chapters 7.1 to 7.3, in the forms in which the guide writes them.

Each test is one passage of the guide on a small graph: positional and keyword arguments, names of
modules, what goes in as a list, an array or a tensor. The prose and the data are ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
import torch.distributed

import gnnlab as dgl
import gnnlab.nn as dglnn
from tests.distributed.cut import PARTS


@pytest.fixture(autouse=True)
def end_of_job() -> Any:
    """Each passage is a script of its own."""
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    dgl.distributed.exit_client()


def small_graph() -> dgl.Graph:
    g = dgl.rand_graph(300, 3000)
    g.ndata["feat"] = th.randn(300, 8)
    g.ndata["label"] = th.randint(3, (300,))
    g.ndata["train_mask"] = th.arange(300) % 2 == 0
    g.edata["weight"] = th.rand(3000)
    return g


def small_typed_graph() -> dgl.Graph:
    """Types T0, T1 and relations R0, R1, R2, as in the guide's example of a heterogeneous graph."""

    def ends(n: int, m: int) -> tuple[th.Tensor, th.Tensor]:
        return th.randint(n, (400,)), th.randint(m, (400,))

    edges = {("T0", "R0", "T0"): ends(90, 90), ("T0", "R1", "T1"): ends(90, 40)}
    g = dgl.heterograph({**edges, ("T1", "R2", "T0"): ends(40, 90)}, {"T0": 90, "T1": 40})
    g.nodes["T0"].data["feat1"] = th.randn(90, 4)
    g.nodes["T1"].data["feat1"] = th.randn(40, 4)
    g.nodes["T0"].data["train_mask"] = th.arange(90) % 3 == 0
    g.edges["R1"].data["w"] = th.rand(400)
    return g


@pytest.fixture(params=PARTS)
def part_config(request, tmp_path) -> str:
    g = small_graph()
    dgl.distributed.partition_graph(g, "graph_name", request.param, str(tmp_path), num_hops=1)
    return str(tmp_path / "graph_name.json")


@pytest.fixture(params=PARTS)
def typed_config(request, tmp_path) -> str:
    dgl.distributed.partition_graph(small_typed_graph(), "typed", request.param, str(tmp_path))
    return str(tmp_path / "typed.json")


# ----------------------------------------------------------------------- 7.1 preprocessing
def test_partitioning(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    g = small_graph()
    dgl.distributed.partition_graph(
        *(g, "mygraph", 2, "data_root_dir"),
        **{"num_hops": 1, "part_method": "metis", "reshuffle": True},
        balance_ntypes=g.ndata["train_mask"],
        balance_edges=True,
    )
    g_part, node_feats, edge_feats, gpb, graph_name, ntypes, etypes = (
        dgl.distributed.load_partition("data_root_dir/mygraph.json", 0)
    )
    inner = int(g_part.ndata["inner_node"].sum())
    assert graph_name == "mygraph" and ntypes == ["_N"] and etypes == [("_N", "_E", "_N")]
    assert node_feats["_N/feat"].shape == (inner, 8)
    assert edge_feats["_N:_E:_N/weight"].shape == (int(g_part.edata["inner_edge"].sum()),)
    assert gpb.num_partitions() == 2
    assert th.equal(g.ndata["feat"][g_part.ndata["orig_id"][:inner]], node_feats["_N/feat"])


# ------------------------------------------------------------------------- 7.2 a program
def initializer(shape: tuple[int, ...], dtype: th.dtype) -> th.Tensor:
    arr = th.zeros(shape, dtype=dtype)
    arr.uniform_(-1, 1)
    return arr


def test_adam_for_the_embeddings(part_config: str, tmp_path: Path) -> None:
    dgl.distributed.initialize(ip_config="ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    policy = g.get_node_partition_policy("_N")
    emb = dgl.distributed.DistEmbedding(g.num_nodes(), 4, "emb", initializer, policy)
    optimizer = dgl.distributed.optim.SparseAdam([emb], 0.01, (0.9, 0.999), 1e-8)
    before = emb.weight[:]
    emb(th.tensor([1, 2]), device=th.device("cpu")).sum().backward()
    optimizer.step()
    moved = emb.weight[:] - before  # Adam's first step has the length of the learning rate
    assert th.allclose(moved[1:3], th.tensor(-0.01)) and moved.count_nonzero() == 8
    optimizer.save(str(tmp_path / "optimizer"))
    means = emb.optm_state[0][:]
    emb([1]).sum().backward()
    optimizer.step()
    assert not th.equal(emb.optm_state[0][:], means)
    optimizer.load(str(tmp_path / "optimizer"))
    assert th.equal(emb.optm_state[0][:], means)


def test_a_training_script(part_config: str) -> None:
    """A table beside the features, the division of the work, and the loaders of three modules."""
    dgl.distributed.initialize("ip_config.txt")
    th.distributed.init_process_group(backend="gloo")
    g = dgl.distributed.DistGraph("graph_name", part_config)
    assert (g.number_of_nodes(), g.number_of_edges(), g.rank()) == (300, 3000, 0)
    tensor = dgl.distributed.DistTensor((g.number_of_nodes(), 10), th.float32, name="test")
    g.ndata["table"] = tensor
    g.ndata["table"][[3, 4, 5]] = (data := th.randn(3, 10))
    assert th.equal(g.ndata["table"][np.array([5, 3])], data[[2, 0]])
    pb = g.get_partition_book()
    train_nid = dgl.distributed.node_split(g.ndata["train_mask"], pb, force_even=True)
    assert train_nid.tolist() == g.ndata["train_mask"][:].nonzero().flatten().tolist()
    for loaders in (dgl.sampling, dgl.distributed, dgl.dataloading):
        dataloader = loaders.DistNodeDataLoader(
            *(g, train_nid.numpy(), dgl.sampling.MultiLayerNeighborSampler([10, 25])),
            **{"batch_size": 64, "shuffle": True, "drop_last": False, "num_workers": 0},
        )
        for input_nodes, seeds, blocks in dataloader:
            assert th.equal(blocks[0].srcdata["feat"], g.ndata["feat"][input_nodes])
            assert th.equal(blocks[-1].dstdata["label"], g.ndata["label"][seeds])
    ones = th.ones(g.num_edges(), dtype=th.bool)
    edge_loader = dgl.distributed.DistEdgeDataLoader(
        g=g,
        eids=dgl.distributed.edge_split(ones, pb, force_even=True).numpy(),
        graph_sampler=dgl.dataloading.NeighborSampler([10, 25]),
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
        batch_size=1000,
        shuffle=True,
    )
    assert [len(batch) for batch in edge_loader] == [4, 4, 4]


# ------------------------------------------------------------------ 7.3 several types


def test_typed_features_and_tensors(typed_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("typed", part_config=typed_config)
    feat = g.nodes["T0"].data["feat1"][th.tensor([0, 88])]
    assert feat.shape == (2, 4)
    g.nodes["T0"].data["feat1"][[0, 88]] = feat + 1
    assert th.equal(g.nodes["T0"].data["feat1"][[0, 88]], feat + 1)
    tensor = dgl.distributed.DistTensor(
        *((g.num_nodes("T0"), 1), th.int32, "count"),
        part_policy=g.get_node_partition_policy("T0"),
    )
    g.nodes["T0"].data["count"] = tensor
    assert g.nodes["T0"].data["count"][[5]].tolist() == [[0]]
    weight = g.edges["R1"].data["w"]
    assert weight.part_policy.policy_str == "edge~T0:R1:T1" and len(weight) == 400
    assert (g.num_nodes("T1"), g.num_edges("R2"), g.get_etype_id("R1")) == (40, 400, 1)


def test_sampling_with_homogeneous_ids(typed_config: str) -> None:
    """Seeds and blocks in homogeneous IDs; types stand on nodes and edges."""
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("typed", part_config=typed_config)
    gpb = g.get_partition_book()
    train = dgl.distributed.node_split(
        g.nodes["T0"].data["train_mask"], gpb, ntype="T0", force_even=True
    )
    assert len(train) == 30
    cur = gpb.map_to_homo_nid(train, "T0")
    blocks: list[dgl.Block] = []
    for fanout in [5, 5]:
        frontier = dgl.distributed.sample_neighbors(g, cur, fanout, replace=False)
        block = dgl.to_block(frontier, cur)
        block.edata[dgl.EID] = frontier.edata[dgl.EID][block.edata[dgl.EID]]
        cur = block.srcdata[dgl.NID]
        block.srcdata[dgl.NTYPE], _ = gpb.map_to_per_ntype(cur)
        blocks.insert(0, block)
    for block in blocks:
        type_ids, type_wise = gpb.map_to_per_etype(block.edata[dgl.EID])
        assert th.equal(type_ids, block.edata[dgl.ETYPE].long())
        own_src, own_dst = block.edges()
        for number, (src_type, relation, dst_type) in enumerate(g.canonical_etypes):
            mine = type_ids == number
            src, dst = g.find_edges(type_wise[mine], relation)
            ends = block.srcdata[dgl.NID][own_src[mine]], block.dstdata[dgl.NID][own_dst[mine]]
            assert th.equal(gpb.map_to_homo_nid(src, src_type), ends[0])
            assert th.equal(gpb.map_to_homo_nid(dst, dst_type), ends[1])


def test_embeddings_of_a_type(typed_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("typed", part_config=typed_config)
    embs = {
        ntype: dgl.distributed.DistEmbedding(
            g.num_nodes(ntype), 6, f"{ntype}_embed", initializer, g.get_node_partition_policy(ntype)
        )
        for ntype in g.ntypes
    }
    optimizer = dgl.distributed.SparseAdagrad(list(embs.values()), lr=0.1)
    conv = dglnn.HeteroGraphConv({r: dglnn.SAGEConv(6, 3, "mean") for r in g.etypes})
    sampler = dgl.dataloading.NeighborSampler([4])
    seeds = {"T0": th.arange(90)}
    for inputs, _, blocks in dgl.distributed.DistNodeDataLoader(g, seeds, sampler, batch_size=30):
        rows = {ntype: embs[ntype](ids) for ntype, ids in inputs.items()}
        conv(blocks[0], rows)["T0"].square().sum().backward()
        optimizer.step()
    assert all(emb.optm_state[0].count_nonzero() for emb in embs.values())
