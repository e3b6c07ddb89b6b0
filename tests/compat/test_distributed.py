"""``dgl.distributed``: module paths, books, ID maps, loaders with ``next``, files of a part."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gnnlab
import gnnlab.compat as dgl
from gnnlab.compat.distributed import dist_dataloader, part_files, rpc
from gnnlab.compat.distributed import graph_partition_book as books
from gnnlab.compat.distributed.id_map import IdMap
from gnnlab.distributed.job import is_distributed
from gnnlab.errors import GNNLabError, InvalidInput, PartitionError
from tests.distributed.cluster import run_job

FOLLOWS, LIKES = ("user", "follows", "user"), ("user", "likes", "game")


def shop() -> gnnlab.Graph:
    """Six users in a ring, three games; user u likes game u // 2."""
    users = torch.arange(6)
    g = gnnlab.heterograph({FOLLOWS: (users, (users + 1) % 6), LIKES: (users, users // 2)})
    g.nodes["user"].data["age"] = users * 10
    g.nodes["game"].data["price"] = torch.arange(3.0)
    g.edges[LIKES].data["stars"] = users + 1
    return g


@pytest.fixture
def folder(tmp_path):
    g = shop()
    parts = {"user": torch.tensor([0, 1, 0, 1, 0, 1]), "game": torch.tensor([1, 0, 1])}
    dgl.distributed.partition_graph(g, "shop", 2, tmp_path, part_method=lambda g, k: parts)
    dgl.distributed.initialize()
    return tmp_path


def opened(folder):
    return dgl.distributed.DistGraph("shop", part_config=folder / "shop.json")


def test_a_role_of_server_is_a_job_without_the_mode(monkeypatch):
    monkeypatch.delenv("DGL_DIST_MODE", raising=False)
    assert not is_distributed()
    monkeypatch.setenv("DGL_ROLE", "server")
    assert is_distributed()


# ------------------------------------------------------------------------------- books and IDs


def test_range_book_of_homogeneous_ranges():
    # part 0: users 0 1, game 2; part 1: user 3, games 4 5
    nodes = {"game": torch.tensor([[2, 3], [4, 6]]), "user": np.array([[0, 2], [3, 4]])}
    edges = {LIKES: [[0, 2], [2, 5]]}
    book = books.RangePartitionBook(1, 2, nodes, edges, {"user": 0, "game": 1}, {LIKES: 0})
    assert book.ntypes == ["user", "game"]
    assert book.nid2partid([0, 1, 2], "user").tolist() == [0, 0, 1]
    assert book.nid2partid([0, 1, 2], "game").tolist() == [0, 1, 1]
    types, ids = book.map_to_per_ntype(range(6))
    assert types.tolist() == [0, 0, 1, 0, 1, 1]
    assert ids.tolist() == [0, 1, 0, 2, 1, 2]
    with pytest.raises(InvalidInput, match=r"shape \(1, 2\); expected \(2, 2\)"):
        books.RangePartitionBook(0, 2, {"user": [[0, 2]]}, edges, {"user": 0}, {LIKES: 0})


@pytest.mark.parametrize("seed", range(5))
def test_id_map_against_a_list(seed):
    rng = np.random.default_rng(seed)
    types, parts = 3, 4
    expected, ranges, seen, at = [], {t: [] for t in "abc"}, [0] * types, 0
    for _ in range(parts):
        for t in rng.permutation(types):
            size = int(rng.integers(0, 5))
            ranges["abc"[t]].append([at, at + size])
            expected += [(t, seen[t] + i) for i in range(size)]
            seen[t] += size
            at += size
    found = IdMap(ranges)(torch.arange(at))
    assert list(zip(*(each.tolist() for each in found), strict=True)) == expected


# --------------------------------------------------------------------------------------- loaders
def test_loaders_are_iterators(folder):
    g = opened(folder)
    sampler = dgl.dataloading.NeighborSampler([2])
    loader = dgl.dataloading.DistNodeDataLoader(g, {"user": range(6)}, sampler, batch_size=4)
    assert (len(loader), loader.expected_idxs) == (2, 2)
    whole = [seeds["user"].tolist() for _, seeds, _ in loader]
    assert whole == [[0, 1, 2, 3], [4, 5]]
    iter(loader)
    assert next(loader)[1]["user"].tolist() == [0, 1, 2, 3]
    iter(loader)  # begins anew
    assert [next(loader)[1]["user"].tolist() for _ in range(2)] == whole
    with pytest.raises(StopIteration):
        next(loader)


LEFT_EARLY = """
import sys, gnnlab, gnnlab.compat as dgl
from contextlib import suppress

dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("ring", part_config=sys.argv[1])
sampler, options = dgl.dataloading.NeighborSampler([2]), {"batch_size": 4}

class Keeps(gnnlab.distributed.DistDataLoader):
    def __init__(self):
        super().__init__(range(20), collate_fn=self.double, **options)

    def __iter__(self):
        self.epoch = super().__iter__()
        return self.epoch

    def double(self, items):
        return [2 * item for item in items]

def seeds(batch):
    if isinstance(batch, list):
        return batch
    found = batch[1]
    return (found.edata[dgl.EID] if isinstance(found, dgl.DGLGraph) else found).tolist()

ours, theirs = gnnlab.distributed, dgl.distributed
for loader in (
    theirs.DistNodeDataLoader(g, range(20), sampler, **options),
    theirs.DistEdgeDataLoader(g, range(20), sampler, **options),
    theirs.DistDataLoader(range(20), collate_fn=list, **options),
    ours.DistNodeDataLoader(g, range(20), sampler, **options),
    ours.DistEdgeDataLoader(g, range(20), sampler, **options),
    Keeps(),
):
    whole = [seeds(batch) for batch in loader]
    assert len(whole) == 5 and whole[1][0] in (4, 8), whole
    for batch in loader:
        break
    next(iter(loader))
    with suppress(ZeroDivisionError):
        for batch in loader:
            1 / 0
    assert [seeds(batch) for batch in loader] == whole
    assert [[seeds(inner) for inner in loader] for outer in loader] == [whole] * 5
    if type(loader).__module__.startswith(theirs.__name__):
        assert [seeds(next(loader)) for _ in range(5)] == whole
        for _ in range(2):  # as GraphStorm begins each epoch
            loader = iter(loader)
            assert [seeds(next(loader)) for _ in range(loader.expected_idxs)] == whole
print("done")
"""


def test_loops_that_were_left_begin_anew(tmp_path):
    ring = dgl.graph((torch.arange(20), (torch.arange(20) + 1) % 20))
    dgl.distributed.partition_graph(ring, "ring", 1, tmp_path, part_method="random")
    config = tmp_path / "ring.json"
    done = run_job(LEFT_EARLY, config, args=[str(config)], machines=1, samplers=1)
    assert [out.split() for out in done] == [["done"]]


def test_pairs_have_the_types_of_the_seeds(folder):
    g = opened(folder)
    sampler, k = dgl.dataloading.NeighborSampler([2]), 3
    options = {"exclude": "self", "negative_sampler": dgl.dataloading.negative_sampler.Uniform(k)}
    loader = dgl.dataloading.DistEdgeDataLoader(
        g, {LIKES: range(6)}, sampler, batch_size=6, **options
    )
    ((_, pairs, negatives, blocks),) = loader
    assert pairs.canonical_etypes == [LIKES]
    assert pairs.ntypes == g.ntypes
    ends = zip(("user", "game"), pairs.edges(), strict=True)
    src, dst = (pairs.nodes[ntype].data[dgl.NID][ids] for ntype, ids in ends)
    assert torch.equal(torch.stack([src, dst]), torch.stack(g.find_edges(range(6), LIKES)))
    assert pairs.edata["stars"].tolist() == g.edges[LIKES].data["stars"][range(6)].tolist()
    assert negatives.num_edges(LIKES) == 6 * k
    assert blocks[0].num_edges(LIKES) == 0  # all are excluded
    collator = dgl.dataloading.EdgeCollator(g, {LIKES: range(6)}, sampler)
    assert collator.collate(collator.dataset[:2])[1].canonical_etypes == [LIKES]
    ordinary = dgl.dataloading.EdgeCollator(shop(), {LIKES: range(6)}, sampler)
    assert ordinary.collate(ordinary.dataset[:2])[1].canonical_etypes == [FOLLOWS, LIKES]


class OneOfEach(dist_dataloader.DistDataLoader):
    """As GraphStorm's loader: one item of each type a batch, until all are through."""

    def __init__(self, dataset, **kwargs):
        super().__init__(dataset, **kwargs)
        self.expected_idxs = max(map(len, dataset.values()))

    def __iter__(self):
        self.at = 0
        return self

    def _next_data(self):
        self.at += 1
        if self.at > self.expected_idxs:
            return None
        return [(kind, int(ids[(self.at - 1) % len(ids)])) for kind, ids in self.dataset.items()]


def test_a_loader_that_chooses_its_items():
    loader = OneOfEach({"a": torch.tensor([1, 2]), "b": torch.tensor([7])}, collate_fn=tuple)
    assert loader.expected_idxs == 2
    for _ in range(2):  # epochs
        assert list(loader) == [(("a", 1), ("b", 7)), (("a", 2), ("b", 7))]


def test_random_numbers_of_a_loader_that_chooses_its_items():
    def draw(items):
        return int(torch.randint(1 << 40, (1,), generator=dgl.random.generator()))

    def drawn():
        gnnlab.seed(3)
        loader = OneOfEach({"a": torch.arange(3)}, collate_fn=draw)
        return [*loader, *loader]

    first = drawn()
    assert drawn() == first
    assert len(set(first)) == 6


# ---------------------------------------------------------------------------------------- requests
class Flush(rpc.Request):
    def process_request(self, server_state):
        return rpc.Response()


class Peek(rpc.Request):
    def process_request(self, server_state):
        return server_state.partition_book


def test_requests_without_servers(folder):
    with pytest.raises(InvalidInput, match="Flush"):
        rpc.send_request(0, Flush())
    rpc.register_service(901, Flush, rpc.Response)
    with pytest.raises(InvalidInput, match=r"server 0 .*0$"):
        rpc.send_request(0, Flush())
    with pytest.raises(GNNLabError):
        rpc.recv_response()
    with pytest.raises(GNNLabError, match="partition_book"):
        Peek().process_request(rpc._ServerState())


# ---------------------------------------------------------------------------------- files of a part
def test_features_of_a_part_are_read_and_replaced(folder):
    """The new feature is a function of the original IDs: the reading graph shows it at those."""
    for part in range(2):
        file = folder / f"part{part}" / "node_feat.dgl"
        found = dgl.data.utils.load_tensors(file)
        assert sorted(found) == ["game/price", "user/age"]
        del found["game/price"]
        found["user/twice"] = found["user/age"] * 2
        dgl.data.utils.save_tensors(file, found)
        assert sorted(dgl.data.load_tensors(str(file))) == ["user/age", "user/twice"]
        file = folder / f"part{part}" / "edge_feat.dgl"
        found = dgl.data.utils.load_tensors(file)
        assert list(found) == ["user:likes:game/stars"]
        file.unlink(missing_ok=True)
        found["user:likes:game/stars"] = found["user:likes:game/stars"].double() / 2
        dgl.data.utils.save_tensors(file, found)
    dgl.distributed.initialize()
    g = opened(folder)
    assert list(g.nodes["game"].data) == []
    age, twice = (g.nodes["user"].data[name][range(6)] for name in ("age", "twice"))
    assert sorted(age.tolist()) == [0, 10, 20, 30, 40, 50]
    assert torch.equal(twice, age * 2)
    stars = g.edges[LIKES].data["stars"][range(6)]
    users = g.find_edges(range(6), LIKES)[0]
    assert torch.equal(stars, (age[users] / 10 + 1).double() / 2)
    assert not list(folder.rglob("price.npy"))


def test_a_feature_of_wrong_rows_or_type_is_refused(folder):
    file = folder / "part0" / "node_feat.dgl"
    for name, rows, message in (
        ("user/age", 2, r"'user/age' has shape \(2,\); part 0 owns 3 of these nodes"),
        ("shop/age", 3, "'shop/age'; expected TYPE/NAME"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dgl.data.utils.save_tensors(file, {name: torch.zeros(rows)})
    assert sorted(dgl.data.utils.load_tensors(file)) == ["game/price", "user/age"]


def test_a_changed_file_of_a_rewritten_part_is_noticed(folder):
    file = folder / "part0" / "node_feat.dgl"
    dgl.data.utils.save_tensors(file, {"user/age": torch.zeros(3)})
    (array,) = (folder / "part0").rglob("age.npy")
    array.write_bytes(array.read_bytes()[:-1] + b"x")
    with pytest.raises(PartitionError, match="checksum"):
        dgl.data.utils.load_tensors(file)


def test_other_files_are_files(tmp_path):
    for name in ("feat.dgl", "part0/node_feat.dgl", "part0/other.dgl"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        assert part_files.part_of(file) is None
        dgl.data.utils.save_tensors(file, {"x": torch.arange(3)})
        assert dgl.data.utils.load_tensors(file)["x"].tolist() == [0, 1, 2]
