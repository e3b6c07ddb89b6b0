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


@pytest.fixture(params=[1, 2])
def part_config(request, tmp_path) -> str:
    g = small_graph()
    dgl.distributed.partition_graph(g, "graph_name", request.param, str(tmp_path), num_hops=1)
    return str(tmp_path / "graph_name.json")


@pytest.fixture(params=[1, 2])
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


def test_mappings_and_pieces_of_a_partition(tmp_path: Path) -> None:
    g = small_graph()
    node_map, edge_map = dgl.distributed.partition_graph(
        *(g, "graph_name", 2, tmp_path), num_trainers_per_machine=2, return_mapping=True
    )
    config = str(tmp_path / "graph_name.json")
    gpb, name, ntypes, etypes = dgl.distributed.load_partition_book(config, 1)
    assert (gpb.partid, name) == (1, "graph_name")
    assert (ntypes, etypes) == ({"_N": 0}, {("_N", "_E", "_N"): 0})
    node_feats, _ = dgl.distributed.load_partition_feats(config, 1)
    assert th.equal(g.ndata["feat"][node_map[gpb.partid2nids(1)]], node_feats["_N/feat"])
    assert sorted(edge_map.tolist()) == list(range(3000))
    # An embedding in the order of the partition goes back to the order of the graph.
    found, original = th.randn(300, 2), th.zeros(300, 2)
    original[node_map] = found
    assert th.equal(original[node_map], found)


def test_balance_of_several_kinds_of_nodes(tmp_path: Path) -> None:
    g = small_typed_graph()
    node_map, edge_map = dgl.distributed.partition_graph(
        *(g, "typed", 2, tmp_path), balance_ntypes={"T0": g.nodes["T0"].data["train_mask"]},
        return_mapping=True,
    )  # fmt: skip
    assert set(node_map) == {"T0", "T1"} and set(edge_map) == set(g.canonical_etypes)


# ------------------------------------------------------------------- 7.2 initialization
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("ip_config.txt",), {}),
        (("ip_config.txt", 1, 4), {}),
        (("ip_config.txt",), {"num_workers": 4}),
        ((), {"ip_config": "ip_config.txt", "max_queue_size": 2**30, "net_type": "socket"}),
        (("ip_config.txt",), {"use_graphbolt": False}),
    ],
)
def test_joining_a_job(part_config: str, args: Any, kwargs: Any) -> None:
    dgl.distributed.initialize(*args, **kwargs)
    th.distributed.init_process_group(backend="gloo")
    g = dgl.distributed.DistGraph("graph_name", part_config)
    assert g.rank() == 0
    assert (th.distributed.get_rank(), th.distributed.get_world_size()) == (0, 1)


def test_the_graph(part_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    assert (g.num_nodes(), g.number_of_nodes(), g.number_of_edges()) == (300, 300, 3000)
    assert g.ndata["train_mask"][0].shape == (1,)
    assert g.get_partition_book().num_partitions() == g.client.transport.num_parts
    # what the tutorials' helper for processes does
    g.in_degrees(0), g.out_degrees(0), g.find_edges([0])


def test_tensors_in_parts(part_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    tensor = dgl.distributed.DistTensor((g.number_of_nodes(), 10), th.float32, name="test")
    g.ndata["feat"] = tensor
    data = g.ndata["feat"][[1, 2, 3]]
    assert data.shape == (3, 10) and not data.any()
    data = th.randn(3, 10)
    g.ndata["feat"][[3, 4, 5]] = data
    assert th.equal(g.ndata["feat"][np.array([5, 3])], data[[2, 0]])
    assert th.equal(tensor[3:6], data) and len(tensor) == 300


def initializer(shape: tuple[int, ...], dtype: th.dtype) -> th.Tensor:
    arr = th.zeros(shape, dtype=dtype)
    arr.uniform_(-1, 1)
    return arr


@pytest.mark.parametrize("where", ["dgl.distributed", "dgl.distributed.optim"])
def test_embeddings_beside_a_model(part_config: str, where: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    th.distributed.init_process_group(backend="gloo")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    emb = dgl.distributed.DistEmbedding(g.num_nodes(), 10, init_func=initializer)
    before = emb.weight[:]
    assert before.min() < 0 < before.max()
    module = dgl.distributed if where == "dgl.distributed" else dgl.distributed.optim
    sparse_optimizer = module.SparseAdagrad([emb], lr=0.1)
    model = th.nn.parallel.DistributedDataParallel(th.nn.Linear(10, 1))
    optimizer = th.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        feats = emb(th.arange(50))
        loss = (model(feats) - 3).square().mean()
        optimizer.zero_grad()
        sparse_optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sparse_optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    changed = (emb.weight[:] != before).any(1)
    assert changed[:50].all() and not changed[50:].any()


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


# ----------------------------------------------------------------------- 7.2 sampling
def train_ids(g: Any) -> np.ndarray:
    pb = g.get_partition_book()
    train_nid = dgl.distributed.node_split(g.ndata["train_mask"], pb, force_even=True)
    assert th.equal(train_nid, dgl.distributed.node_split(g.ndata["train_mask"]))
    assert len(train_nid) == 150
    return train_nid.numpy()


def test_a_function_samples_blocks(part_config: str) -> None:
    """The lower of the guide's two levels: a loop over layers, in a function."""
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)

    def sample_blocks(seeds: Any) -> list[dgl.Block]:
        seeds = th.LongTensor(np.asarray(seeds))
        blocks: list[dgl.Block] = []
        for fanout in [10, 25]:
            frontier = dgl.distributed.sample_neighbors(g, seeds, fanout, replace=True)
            block = dgl.to_block(frontier, seeds)
            seeds = block.srcdata[dgl.NID]
            blocks.insert(0, block)
        return blocks

    dataloader = dgl.distributed.DistDataLoader(
        dataset=train_ids(g), batch_size=32, collate_fn=sample_blocks, shuffle=True
    )
    model = dglnn.SAGEConv(8, 3, "mean")
    for _ in range(2):
        seen = []
        for blocks in dataloader:
            features = g.ndata["feat"][blocks[0].srcdata[dgl.NID]]
            labels = g.ndata["label"][blocks[-1].dstdata[dgl.NID]]
            assert model(blocks[0], features).shape == (blocks[0].num_dst_nodes(), 3)
            assert len(labels) == blocks[-1].num_dst_nodes()
            seen += blocks[-1].dstdata[dgl.NID].tolist()
        assert sorted(seen) == sorted(train_ids(g).tolist())


class NeighborSampler:
    """A sampler as users write it, with the function that it samples by."""

    def __init__(self, g: Any, fanouts: list[int], sample_neighbors: Any, device: Any) -> None:
        self.g, self.fanouts = g, fanouts
        self.sample_neighbors, self.device = sample_neighbors, device

    def sample_blocks(self, seeds: Any) -> list[dgl.Block]:
        seeds = th.LongTensor(np.asarray(seeds)).to(self.device)
        blocks: list[dgl.Block] = []
        for fanout in self.fanouts:
            frontier = self.sample_neighbors(self.g, seeds, fanout, replace=True)
            block = dgl.to_block(frontier, seeds)
            seeds = block.srcdata[dgl.NID]
            block.edata[dgl.EID] = frontier.edata[dgl.EID][block.edata[dgl.EID]]
            blocks.insert(0, block)
        return blocks


def test_a_class_samples_blocks(part_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    sampler = NeighborSampler(g, [5, 5], dgl.distributed.sample_neighbors, th.device("cpu"))
    for dataset in (train_ids(g), th.from_numpy(train_ids(g)), train_ids(g).tolist()):
        loader = dgl.distributed.DistDataLoader(
            dataset=dataset,
            batch_size=100,
            collate_fn=sampler.sample_blocks,
            shuffle=True,
            drop_last=False,
        )
        for blocks in loader:
            src, dst = g.find_edges(blocks[1].edata[dgl.EID])
            own = blocks[1].edges()
            assert th.equal(blocks[1].srcdata[dgl.NID][own[0]], src)
            assert th.equal(blocks[1].dstdata[dgl.NID][own[1]], dst)


def test_the_loader_of_nodes(part_config: str) -> None:
    """The higher level: the single-machine sampler, and the loader that is found in two places."""
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    train_nid = dgl.distributed.node_split(g.ndata["train_mask"])
    for loaders in (dgl.sampling, dgl.distributed, dgl.dataloading):
        sampler = dgl.sampling.MultiLayerNeighborSampler([10, 25])
        dataloader = loaders.DistNodeDataLoader(
            g, train_nid, sampler, batch_size=64, shuffle=True, drop_last=False, num_workers=0
        )
        for input_nodes, seeds, blocks in dataloader:
            assert th.equal(blocks[0].srcdata["feat"], g.ndata["feat"][input_nodes])
            assert th.equal(blocks[-1].dstdata["label"], g.ndata["label"][seeds])


def test_the_loader_of_edges(part_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    ones = th.ones(g.num_edges(), dtype=th.bool)
    train_eids = dgl.distributed.edge_split(ones, g.get_partition_book(), force_even=True)
    dataloader = dgl.distributed.DistEdgeDataLoader(
        g=g,
        eids=train_eids.numpy(),
        graph_sampler=dgl.dataloading.NeighborSampler([10, 25]),
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
        batch_size=1000,
        shuffle=True,
    )
    assert [len(batch) for batch in dataloader] == [4, 4, 4]


# -------------------------------------------------------------- 7.2 division of the work
def test_division_among_trainers(part_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("graph_name", part_config=part_config)
    pb = g.get_partition_book()
    mask = g.ndata["train_mask"]
    expected = mask[:].nonzero().flatten()
    forms: list[Any] = [mask, mask[:]]
    for form in forms:
        for kwargs in ({}, {"force_even": True}, {"force_even": False}, {"rank": 0}):
            assert th.equal(dgl.distributed.node_split(form, pb, **kwargs), expected)
    shares = [
        dgl.distributed.node_split(mask, pb, rank=rank, force_even=True, num_trainers=4)
        for rank in range(4)
    ]
    assert th.equal(th.cat(shares).unique(), expected)
    assert {len(share) for share in shares} == {38}  # 4 × 38 is 152: two of 150 are repeated
    everything = dgl.distributed.node_split(np.arange(g.num_nodes()), pb, force_even=True)
    assert everything.tolist() == list(range(300))


# ------------------------------------------------------------------ 7.3 several types
def test_ids_of_both_kinds(typed_config: str) -> None:
    gpb, _, ntypes, etypes = dgl.distributed.load_partition_book(typed_config, 0)
    homogeneous = th.arange(130)
    type_ids, type_wise = gpb.map_to_per_ntype(homogeneous)
    for number, ntype in enumerate(ntypes):
        mine = type_ids == number
        assert th.equal(gpb.map_to_homo_nid(type_wise[mine], ntype), homogeneous[mine])
        assert th.equal(type_wise[mine].sort().values, th.arange(90 if ntype == "T0" else 40))
    type_ids, type_wise = gpb.map_to_per_etype(th.arange(1200))
    for number, etype in enumerate(etypes):
        mine = type_ids == number
        assert th.equal(gpb.map_to_homo_eid(type_wise[mine], etype), mine.nonzero().flatten())


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


def test_sampling_by_type(typed_config: str) -> None:
    dgl.distributed.initialize("ip_config.txt")
    g = dgl.distributed.DistGraph("typed", part_config=typed_config)
    seeds = {"T0": [0, 89, 17], "T1": [3]}
    frontier = dgl.distributed.sample_neighbors(g, seeds, {"R0": 2, "R1": 3, "R2": -1})
    assert frontier.ntypes == ["T0", "T1"]
    block = dgl.to_block(frontier, {t: th.tensor(ids) for t, ids in seeds.items()})
    assert block.num_dst_nodes("T0") == 3
    masks = {"T0": g.nodes["T0"].data["train_mask"]}
    train = dgl.distributed.node_split(masks, g.get_partition_book())
    assert set(train) == {"T0"}
    sampler = dgl.dataloading.NeighborSampler([3, 3])
    for inputs, output, blocks in dgl.distributed.DistNodeDataLoader(
        g, train, sampler, batch_size=16, shuffle=True
    ):
        assert set(output) == {"T0"} and set(inputs) == {"T0", "T1"}
        for ntype, ids in inputs.items():
            features = blocks[0].srcnodes[ntype].data["feat1"]
            assert th.equal(features, g.nodes[ntype].data["feat1"][ids])


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
