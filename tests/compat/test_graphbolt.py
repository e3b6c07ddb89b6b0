"""``dgl.graphbolt``: its pipelines make the mini-batches that the library's loaders make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import gnnlab as core
import gnnlab.compat.graphbolt as gb
from gnnlab.errors import GNNLabError

LIKES, FOLLOWS = "user:likes:item", "user:follows:user"


@pytest.fixture(scope="module")
def graph() -> core.Graph:
    core.seed(0)
    g = core.rand_graph(200, 2000)
    g.ndata["feat"] = torch.arange(400.0).view(200, 2)
    return g


@pytest.fixture(scope="module")
def typed() -> core.Graph:
    random = torch.Generator().manual_seed(0)

    def ends(count: int, *sizes: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.randint(size, (count,), generator=random) for size in sizes)

    return core.heterograph(
        {
            ("user", "follows", "user"): ends(300, 50, 50),
            ("user", "likes", "item"): ends(400, 50, 30),
            ("item", "liked-by", "user"): ends(400, 30, 50),
        },
        {"user": 50, "item": 30},
    )


def seeds_of(items: Any, batch_size: int = 32, **options: Any) -> Any:
    return gb.ItemSampler(items, batch_size=batch_size, **options)


def same_blocks(ours: list[Any], theirs: list[Any]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.canonical_etypes == other.canonical_etypes
        for etype in mine.canonical_etypes:
            for name in "csc", "csr":
                for x, y in zip(
                    mine.adj_tensors(name, etype), other.adj_tensors(name, etype), strict=True
                ):
                    assert torch.equal(x, y)
        for ntype in mine.srctypes:
            assert torch.equal(
                mine.srcnodes[ntype].data[core.NID], other.srcnodes[ntype].data[core.NID]
            )
        for ntype in mine.dsttypes:
            assert torch.equal(
                mine.dstnodes[ntype].data[core.NID], other.dstnodes[ntype].data[core.NID]
            )


# ---------------------------------------------------------------------------------------- items
def test_items() -> None:
    pairs = gb.ItemSet((torch.arange(4), [1, 2, 3, 4]), names=("seeds", "labels"))
    assert pairs[-1] == (torch.tensor(3), 4) and pairs.num_items == 2
    assert pairs[1:3][1] == [2, 3] and [label for _, label in pairs] == [1, 2, 3, 4]
    numbers = gb.ItemSet(torch.tensor(5), names="seeds")
    assert numbers[2:4].tolist() == [2, 3] and numbers.names == ("seeds",)
    with pytest.raises(IndexError):
        numbers[5]
    with pytest.raises(GNNLabError):
        gb.ItemSet((torch.arange(4), torch.arange(3)))
    both = gb.HeteroItemSet({"a": gb.ItemSet(2, "seeds"), "b": gb.ItemSet(3, "seeds")})
    assert len(both) == 5 and both[1] == {"a": 1} and both[-1] == {"b": 2}
    assert {name: ids.tolist() for name, ids in both[1:4].items()} == {"a": [1], "b": [0, 1]}


def test_batches_of_items() -> None:
    items = gb.ItemSet((torch.arange(10), torch.arange(10) * 2), names=("seeds", "labels"))
    plain = list(seeds_of(items, 4))
    assert [batch.seeds.tolist() for batch in plain] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(seeds_of(items, 4)) == 3 and len(seeds_of(items, 4, drop_last=True)) == 2
    shuffled = seeds_of(items, 4, shuffle=True, seed=1)
    epochs = [[batch.seeds for batch in shuffled] for _ in range(2)]
    assert not torch.equal(torch.cat(epochs[0]), torch.cat(epochs[1]))
    assert torch.cat(epochs[0]).sort().values.tolist() == list(range(10))
    assert all(torch.equal(batch.labels, batch.seeds * 2) for batch in shuffled)


# ------------------------------------------------------------------------------------ sampling
@pytest.mark.parametrize("kind", ["sample_neighbor", "sample_layer_neighbor"])
@pytest.mark.parametrize("workers", [0, 2])
def test_blocks_are_those_of_the_loader(graph: core.Graph, kind: str, workers: int) -> None:
    """For the same seed: order of the seeds, sampled edges, numbers of the nodes."""
    pipe = seeds_of(gb.ItemSet(graph.num_nodes(), names="seeds"), shuffle=True, seed=7)
    sampling = gb.from_dglgraph(graph, is_homogeneous=True, include_original_edge_id=True)
    pipe = getattr(pipe, kind)(sampling, [4, 3]).copy_to("cpu")
    layers = core.dataloading
    sampler = {"sample_neighbor": layers.NeighborSampler}.get(kind, layers.LaborSampler)([4, 3])
    loader = layers.DataLoader(graph, range(200), sampler, batch_size=32, shuffle=True, seed=7)
    for epoch in range(2):
        ours = list(gb.DataLoader(pipe, num_workers=workers))
        theirs = list(loader)
        assert len(ours) == len(theirs) == 7, epoch
        for batch, (input_nodes, output_nodes, blocks) in zip(ours, theirs, strict=True):
            assert torch.equal(batch.seeds, output_nodes)
            assert torch.equal(batch.input_nodes, input_nodes)
            same_blocks(batch.blocks, blocks)
            for mine, other in zip(batch.blocks, blocks, strict=True):
                assert torch.equal(mine.edata[core.EID], other.edata[core.EID])


def test_a_mini_batch_for_pyg(graph: core.Graph) -> None:
    """Its edges, by IDs of nodes, are those of all layers."""
    pytest.importorskip("torch_geometric")
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    store = gb.BasicFeatureStore({("node", None, "x"): gb.TorchBasedFeature(torch.rand(200, 4))})
    pipe = seeds_of(gb.ItemSet(40, names="seeds")).sample_neighbor(sampling, [4, 3])
    for batch in pipe.fetch_feature(store, ["x"]):
        data = batch.to_pyg_data()
        data.validate()
        assert torch.equal(data.n_id[: data.batch_size], batch.seeds)
        assert torch.equal(data.x, store.read("node", None, "x", data.n_id))
        layers = [b.srcdata[core.NID][torch.stack(b.edges()).long()] for b in batch.blocks]
        edges = {pair for layer in layers for pair in zip(*layer.tolist(), strict=True)}
        assert sorted(zip(*data.n_id[data.edge_index].tolist(), strict=True)) == sorted(edges)


def test_blocks_of_a_typed_graph(typed: core.Graph) -> None:
    items = gb.HeteroItemSet({n: gb.ItemSet(typed.num_nodes(n), "seeds") for n in ("user", "item")})
    sampling = gb.from_dglgraph(typed)
    assert sampling.num_nodes == {"item": 30, "user": 50}
    assert sampling.num_edges == {"item:liked-by:user": 400, FOLLOWS: 300, LIKES: 400}
    pipe = seeds_of(items, 16, seed=3).sample_neighbor(sampling, [torch.tensor([2, 3, 4]), 2])
    fanout = {("item", "liked-by", "user"): 2, ("user", "follows", "user"): 3}
    sampler = core.dataloading.NeighborSampler([fanout | {("user", "likes", "item"): 4}, 2])
    for batch in gb.DataLoader(pipe):
        with core.random.stream(*batch.task):
            input_nodes, _, blocks = sampler.sample(typed, batch.seeds)
        same_blocks(batch.blocks, blocks)
        assert all(torch.equal(batch.input_nodes[n], ids) for n, ids in input_nodes.items())


def test_rows_of_a_sampled_layer_are_nodes_of_the_graph(graph: core.Graph) -> None:
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    seeds = torch.tensor([5, 9])
    for layer in sampling.in_subgraph(seeds), sampling.sample_layer_neighbors(seeds, [-1]):
        src, dst = graph.in_edges(seeds)
        csc = layer.sampled_csc
        assert torch.equal(csc.indices.sort().values, src.sort().values)
        assert torch.diff(csc.indptr).tolist() == [int((dst == seed).sum()) for seed in seeds]
        sources = sampling.indices[layer.original_edge_ids]
        assert torch.equal(sources, csc.indices)


def test_weights_decide(graph: core.Graph) -> None:
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    allowed = torch.arange(sampling.total_num_edges) % 2
    sampling.add_edge_attribute("weight", allowed.float())
    pipe = seeds_of(gb.ItemSet(200, "seeds")).sample_neighbor(sampling, [3], prob_name="weight")
    for batch in pipe:
        assert allowed[batch.edge_ids(0)].all()


def test_layers_with_replacement(typed: core.Graph) -> None:
    """Each seed has ``fanout`` draws in proportion to the weights; sources are shared."""
    g, seeds = (
        core.graph(([0, 1, 2] * 40, [v for v in range(3, 43) for _ in range(3)])),
        range(3, 43),
    )
    sampling = gb.from_dglgraph(g, is_homogeneous=True)
    sampling.add_edge_attribute("weight", torch.tensor([1.0, 0.0, 3.0] * 40))
    drawn = torch.zeros(3)
    for _ in range(200):
        layer = sampling.sample_layer_neighbors(
            torch.tensor(seeds), [5], replace=True, probs_name="weight"
        )
        assert torch.equal(torch.diff(layer.sampled_csc.indptr), torch.full((40,), 5))
        rows = layer.sampled_csc.indices.view(40, 5)
        assert torch.equal(rows, rows[:1].expand(40, 5))  # they have the same neighbors
        drawn += torch.bincount(rows[0], minlength=3)
    assert drawn[1] == 0 and 0.68 < drawn[2] / drawn.sum() < 0.82
    items = gb.HeteroItemSet({"user": gb.ItemSet(50, names="seeds")})
    pipe = seeds_of(items, 20, seed=1).sample_layer_neighbor(
        gb.from_dglgraph(typed), [3, -1], replace=True, layer_dependency=True
    )
    batches = [list(pipe), list(gb.DataLoader(pipe, num_workers=2))]
    for batch, again in zip(*batches, strict=True):
        assert [x.num_edges() for x in batch.blocks] == [x.num_edges() for x in again.blocks]
        for etype in ("item", "liked-by", "user"), ("user", "follows", "user"):
            taken = batch.blocks[0].in_degrees(etype=etype)
            nodes = batch.blocks[0].dstnodes["user"].data[core.NID]
            assert torch.equal(taken, 3 * (typed.in_degrees(nodes, etype) > 0))


@pytest.mark.parametrize("is_typed", [False, True])
def test_edges_and_their_negatives_do_not_look_ahead(is_typed: bool, typed: core.Graph) -> None:
    g = typed if is_typed else core.edge_type_subgraph(typed, ["follows"])
    name = LIKES if is_typed else None
    sampling = gb.from_dglgraph(g, is_homogeneous=not is_typed, include_original_edge_id=True)
    times = torch.arange(sampling.total_num_edges) % 97
    sampling.add_edge_attribute("time", times)
    pairs = torch.stack(g.edges(etype="likes" if is_typed else "follows"), 1)[:60]
    until = torch.arange(60) + 20
    items: Any = gb.ItemSet((pairs, until), names=("seeds", "timestamp"))
    items = gb.HeteroItemSet({name: items}) if is_typed else items
    pipe = seeds_of(items, 20).sample_uniform_negative(sampling, 2)
    pipe = pipe.temporal_sample_neighbor(sampling, [-1, -1], edge_timestamp_attr_name="time")
    for batch in pipe:
        seeds, places, own, which = (
            x[name] if is_typed else x
            for x in (batch.seeds, batch.compacted_seeds, batch.timestamp, batch.indexes)
        )
        block = batch.blocks[-1]
        for column, ntype in enumerate(("user", "item") if is_typed else ("user", "user")):
            ntype = ntype if is_typed else "_N"
            at = places[:, column].long()
            assert torch.equal(block.dstnodes[ntype].data[core.NID][at].long(), seeds[:, column])
            assert torch.equal(block.dstnodes[ntype].data["seed_time"][at].long(), own[which])
        for each in batch.blocks:
            for etype in each.canonical_etypes:
                seen = each.dstnodes[etype[2]].data["seed_time"][each.edges(etype=etype)[1].long()]
                taken = each.edges[etype].data[core.EID]
                of_type = sampling.graph().edges[etype].data
                ids = of_type[gb.ORIGINAL_EDGE_ID]
                time_of = torch.empty_like(of_type["time"]).scatter_(0, ids, of_type["time"])
                assert bool((time_of[taken] <= seen).all())
                target = each.dstnodes[etype[2]].data[core.NID]
                degrees = torch.zeros(len(target), dtype=torch.int64)
                for i, (node, last) in enumerate(
                    zip(target.tolist(), each.dstnodes[etype[2]].data["seed_time"], strict=True)
                ):
                    known = g.in_edges(node, "eid", etype=etype if is_typed else None)
                    degrees[i] = (time_of[known] <= last).sum()
                assert torch.equal(each.in_degrees(etype=etype).long(), degrees)


# --------------------------------------------------------------------------------------- edges
def test_edges_with_negatives_are_compacted_and_excluded(graph: core.Graph) -> None:
    edges = torch.stack(graph.edges(), 1)
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    pipe = seeds_of(gb.ItemSet(edges, names="seeds"), 64, shuffle=True)
    pipe = pipe.sample_uniform_negative(sampling, 2).sample_neighbor(sampling, [-1])
    before = [batch.blocks[0].num_edges() for batch in pipe]
    after = 0
    for batch in pipe.exclude_seed_edges(include_reverse_edges=True):
        count = int(batch.labels.sum())
        assert batch.seeds.shape == (3 * count, 2) and batch.indexes.tolist() == [
            *range(count), *(i for i in range(count) for _ in range(2))
        ]  # fmt: skip
        layer = batch.sampled_subgraphs[0]
        assert torch.equal(layer.original_column_node_ids[batch.compacted_seeds], batch.seeds)
        assert torch.equal(batch.seeds[count:, 0], batch.seeds[:count, 0].repeat_interleave(2))
        # 94 of the 200 nodes are expected among 128 random targets; only 64 edges have targets.
        assert count < 64 or len(batch.seeds[count:, 1].unique()) > 70
        src, dst = batch.blocks[0].edges()
        rows, columns = batch.blocks[0].srcdata[core.NID], batch.blocks[0].dstdata[core.NID]
        there = set(zip(rows[src].tolist(), columns[dst].tolist(), strict=True))
        seeds = {tuple(pair) for pair in batch.seeds.tolist()}
        assert not there & (seeds | {(v, u) for u, v in seeds})
        after += batch.blocks[0].num_edges()
    assert 0 < after < sum(before)


def test_edges_of_types(typed: core.Graph) -> None:
    edges = torch.stack(typed.edges(etype="likes"), 1)
    sampling = gb.from_dglgraph(typed)
    items = gb.HeteroItemSet({LIKES: gb.ItemSet(edges, names="seeds")})
    pipe = seeds_of(items, 50).sample_uniform_negative(sampling, 1)
    pipe = pipe.sample_neighbor(sampling, [4, 4])
    back = {LIKES: "item:liked-by:user"}
    pipe = pipe.exclude_seed_edges(include_reverse_edges=True, reverse_etypes_mapping=back)
    for batch in gb.DataLoader(pipe.copy_to("cpu")):
        pairs, places = batch.seeds[LIKES], batch.compacted_seeds[LIKES]
        nodes = batch.sampled_subgraphs[-1].original_column_node_ids
        for column, ntype in enumerate(("user", "item")):
            assert torch.equal(nodes[ntype][places[:, column]], pairs[:, column])
            assert torch.equal(batch.node_ids()[ntype], batch.input_nodes[ntype])
        assert batch.labels[LIKES].sum() == len(pairs) / 2
        block = batch.blocks[-1]
        src, dst = block.edges(etype="liked-by")
        ids = block.srcnodes["item"].data[core.NID][src], block.dstnodes["user"].data[core.NID][dst]
        assert not set(zip(*map(torch.Tensor.tolist, ids), strict=True)) & {
            (v, u) for u, v in pairs.tolist()
        }


def test_nodes_are_numbered_in_the_order_of_appearance() -> None:
    csc = gb.CSCFormatBase(torch.tensor([0, 2, 3]), torch.tensor([7, 4, 9]))
    nodes, compacted = gb.unique_and_compact_csc_formats(csc, torch.tensor([4, 2]))
    assert nodes.tolist() == [4, 2, 7, 9] and compacted.indices.tolist() == [2, 0, 3]
    nodes, own = gb.compact_csc_format(csc, torch.tensor([4, 2]))
    assert nodes.tolist() == [4, 2, 7, 4, 9] and own.indices.tolist() == [2, 3, 4]


# ------------------------------------------------------------------------------------ features
@pytest.mark.parametrize("where", ["memory", "disk", "cached", "cached on disk", "tiny cache"])
def test_features(where: str, graph: core.Graph, tmp_path: Path) -> None:
    rows = graph.ndata["feat"]
    np.save(tmp_path / "feat.npy", rows.numpy())
    feature: Any = gb.TorchBasedFeature(rows.clone())
    if "disk" in where:
        feature = gb.DiskBasedFeature(str(tmp_path / "feat.npy"))
    if "cache" in where:
        feature = gb.cpu_cached_feature(feature, 40 if "tiny" in where else 100 * rows[0].nbytes)
    store = gb.BasicFeatureStore({("node", None, "feat"): feature})
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    pipe = seeds_of(gb.ItemSet(200, "seeds"), shuffle=True).sample_neighbor(sampling, [2])
    for batch in pipe.fetch_feature(store, node_feature_keys=["feat"]):
        assert torch.equal(batch.node_features["feat"], rows[batch.input_nodes])
    assert torch.equal(store.read("node", None, "feat"), rows)
    assert feature.size() == (2,) and feature.count() == 200
    if where == "cached":
        assert 0 < feature.miss_rate < 1 and feature.cache_size_in_bytes == 100 * rows[0].nbytes
        feature.update(torch.zeros(1, 2), torch.tensor([3]))
        assert feature.read(torch.tensor([3])).tolist() == [[0.0, 0.0]]


def test_features_of_edges_and_types(typed: core.Graph) -> None:
    sampling = gb.from_dglgraph(typed, include_original_edge_id=True)
    features = {
        ("node", "user", "age"): torch.arange(50.0)[:, None],
        ("edge", LIKES, "stars"): torch.arange(400.0)[:, None],
    }
    store = gb.BasicFeatureStore({k: gb.TorchBasedFeature(x) for k, x in features.items()})
    items = gb.HeteroItemSet({"item": gb.ItemSet(30, names="seeds")})
    pipe = seeds_of(items).sample_neighbor(sampling, [3, 3])
    for batch in pipe.fetch_feature(store, {"user": ["age"]}, {LIKES: ["stars"]}):
        assert (
            batch.node_features["user", "age"][:, 0].tolist() == batch.input_nodes["user"].tolist()
        )
        for layer, found in enumerate(batch.edge_features):
            ids = batch.edge_ids(layer)[LIKES]
            assert found[LIKES, "stars"][:, 0].tolist() == ids.tolist()
            block = batch.blocks[layer]
            src = block.srcnodes["user"].data[core.NID][block.edges(etype="likes")[0]]
            assert torch.equal(src, typed.edges(etype="likes")[0][ids])


# ---------------------------------------------------------------------------------- data sets
@pytest.mark.parametrize("types", [False, True])
def test_a_folder(types: bool, typed: core.Graph, tmp_path: Path) -> None:
    g = typed if types else core.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    edges, attributes = [], []
    for u, r, v in g.canonical_etypes:
        pairs = torch.stack(g.edges(etype=(u, r, v)))
        np.save(tmp_path / f"{r}-source.npy", pairs[0].numpy())
        path = f"{r}.csv" if r != "likes" else f"{r}.npy"
        if path.endswith("csv"):
            np.savetxt(tmp_path / path, pairs.T.numpy(), "%d", delimiter=",")
        else:
            np.save(tmp_path / path, pairs.numpy())
        known = {"type": f"{u}:{r}:{v}"} if types else {}
        edges.append(known | {"format": "numpy" if path.endswith("npy") else "csv", "path": path})
        source = {"domain": "edge", "name": "source", "format": "numpy", "path": f"{r}-source.npy"}
        attributes.append(known | source)
    nodes = [{"type": n, "num": g.num_nodes(n)} if types else {"num": 4} for n in g.ntypes]
    kind = {"type": "item"} if types else {}
    count = g.num_nodes("item") if types else 4
    np.save(tmp_path / "feat.npy", np.arange(count * 2.0).reshape(count, 2))
    np.save(tmp_path / "train.npy", np.arange(3))
    torch.save(torch.tensor([1, 0, 1]), tmp_path / "labels.pt")
    columns = [
        {"name": "seeds", "format": "numpy", "path": "train.npy"},
        {"name": "labels", "format": "torch", "path": "labels.pt"},
    ]
    feature = {"domain": "node", "name": "feat", "format": "numpy", "path": "feat.npy"} | kind
    task = {"name": "classify", "num_classes": 2, "train_set": [kind | {"data": columns}]}
    told = {
        "dataset_name": "mine",
        "graph": {"nodes": nodes, "edges": edges, "feature_data": attributes},
        "feature_data": [feature | {"in_memory": False}],
        "tasks": [task],
    }
    (tmp_path / "metadata.yaml").write_text(yaml.safe_dump(told))
    dataset = gb.OnDiskDataset(str(tmp_path)).load()
    assert dataset.dataset_name == "mine" and len(dataset.all_nodes_set) == g.num_nodes()
    assert dataset.graph.total_num_edges == g.num_edges()
    for etype in (read := dataset.graph.graph()).canonical_etypes:
        assert torch.equal(read.edges[etype].data["source"], read.edges(etype=etype)[0])
    (only,) = dataset.tasks
    assert only.metadata == {"name": "classify", "num_classes": 2} and only.test_set is None
    (batch,) = seeds_of(only.train_set).sample_neighbor(dataset.graph, [-1])
    seeds, labels = (x["item"] if types else x for x in (batch.seeds, batch.labels))
    assert seeds.tolist() == [0, 1, 2] and labels.tolist() == [1, 0, 1]
    assert dataset.feature.read("node", kind.get("type"), "feat", seeds).shape == (3, 2)
    layer = batch.blocks[0]
    ntype = "item" if types else None
    assert layer.num_edges() == int(g.in_degrees(seeds, etype="likes" if types else None).sum())
    assert layer.num_dst_nodes(ntype) == 3
    with pytest.raises(GNNLabError):
        gb.OnDiskDataset(str(tmp_path)).load(tasks="another")
    made = yaml.safe_load(Path(gb.preprocess_ondisk_dataset(str(tmp_path))).read_text())
    kept = tmp_path / made["graph_topology"]["path"]
    assert "graph" not in made and made["tasks"] == told["tasks"] and kept.exists()
    edges_file, content = tmp_path / edges[0]["path"], (tmp_path / edges[0]["path"]).read_bytes()
    again = gb.OnDiskDataset(str(tmp_path)).load().graph
    assert all(
        str(getattr(again, name)) == str(getattr(dataset.graph, name))
        for name in ("csc_indptr", "indices", "type_per_edge", "node_type_to_id", "edge_attributes")
    )
    edges_file.write_bytes(content[: content.rstrip().rfind(b"\n") + 1])  # an edge fewer
    with pytest.raises(GNNLabError, match="-source"):
        gb.OnDiskDataset(str(tmp_path)).load()
    attributes[0]["domain"] = "edges"
    (tmp_path / "metadata.yaml").write_text(yaml.safe_dump(told))
    with pytest.raises(GNNLabError, match="edges"):
        gb.OnDiskDataset(str(tmp_path)).load()
    del told["graph"]["feature_data"]
    (tmp_path / "metadata.yaml").write_text(yaml.safe_dump(told | {"datasetname": "mine"}))
    with pytest.warns(UserWarning, match="datasetname"):
        dataset = gb.OnDiskDataset(str(tmp_path)).load()
    assert dataset.graph.total_num_edges == g.num_edges() - 1
    kept.write_bytes(b"what DGL has written")
    assert gb.OnDiskDataset(str(tmp_path)).load().graph.total_num_edges == g.num_edges() - 1
    (tmp_path / "metadata.yaml").write_text("graph_topology: {}")
    with pytest.raises(GNNLabError):
        gb.OnDiskDataset(str(tmp_path))


def test_a_data_set_of_the_older_interface() -> None:
    legacy = core.data.load("digits")
    dataset = gb.LegacyDataset(legacy)
    train = dataset.tasks[0].train_set
    assert torch.equal(train[:][0], legacy.train_idx)
    assert torch.equal(train[:][1], legacy[0].ndata["label"][legacy.train_idx])
    assert dataset.feature.read("node", None, "feat").shape == legacy[0].ndata["feat"].shape
    assert dataset.tasks[0].metadata["num_classes"] == 10
    assert gb.BuiltinDataset("digits").load().graph.total_num_edges == legacy[0].num_edges()


# --------------------------------------------------------------------------- classes of users
def test_stages_of_a_user(graph: core.Graph) -> None:
    """A sampler of one's own, a function as a stage, and a generator of pairs."""
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)

    class Hubs(gb.SubgraphSampler):
        def sample_subgraphs(self, seeds, seeds_timestamp, seeds_pre_time_window=None):  # type: ignore[no-untyped-def]
            layer = sampling.in_subgraph(seeds)
            nodes, csc = gb.unique_and_compact_csc_formats(layer.sampled_csc, seeds)
            return nodes, [gb.SampledSubgraphImpl(csc, seeds, nodes, layer.original_edge_ids)]

    class Next(gb.NegativeSampler):
        def _sample_with_etype(self, node_pairs, etype=None):  # type: ignore[no-untyped-def]
            return node_pairs + torch.tensor([0, 1])

    pipe = Next(seeds_of(gb.ItemSet(torch.tensor([[0, 1], [2, 3]]), "seeds")), 1)
    pipe = Hubs(pipe).transform(lambda batch: batch)
    (batch,) = pipe
    assert batch.seeds.tolist() == [[0, 1], [2, 3], [0, 2], [2, 4]]
    assert batch.labels.tolist() == [1, 1, 0, 0]
    nodes = torch.tensor([0, 1, 2, 3, 4])
    assert batch.blocks[0].num_edges() == int(graph.in_degrees(nodes).sum())


# ----------------------------------------------------------------- as DGL 2.1 behaves, compared
SHOWN = """\
MiniBatch(seeds=tensor([1, 0]),
          sampled_subgraphs=[SampledSubgraphImpl(sampled_csc=CSCFormatBase(indptr=tensor([0, 2, 2]),
                                                                         indices=tensor([1, 2]),
                                                           ),
                                               original_row_node_ids=tensor([1, 0, 2]),
                                               original_edge_ids=tensor([0, 1]),
                                               original_column_node_ids=tensor([1, 0]),
                            )],
          node_features=None,
          labels=None,
          input_nodes=tensor([1, 0, 2]),
          indexes=None,
          edge_features=None,
          compacted_seeds=None,
          blocks=[Block(num_src_nodes=3, num_dst_nodes=2, num_edges=2)],
       )"""
GRAPH = """\
FusedCSCSamplingGraph(csc_indptr=tensor([0, 0, 2, 2]),
                      indices=tensor([0, 2]),
                      total_num_nodes=3, num_edges=2,
                      node_attributes={},
                      edge_attributes={'w': tensor([5, 7])},)"""


def test_how_objects_are_shown() -> None:
    g = core.graph(([0, 2], [1, 1]))
    g.edata["w"] = torch.tensor([5, 7])
    sampling = gb.from_dglgraph(g, is_homogeneous=True)
    items = gb.ItemSet(torch.tensor([1, 0]), names="seeds")
    (batch,) = seeds_of(items).sample_neighbor(sampling, [-1])
    assert repr(batch) == SHOWN and repr(sampling) == GRAPH
    assert repr(items) == "ItemSet(\n    items=(tensor([1, 0]),),\n    names=('seeds',),\n)"
    feature = gb.TorchBasedFeature(torch.arange(4).view(2, 2), {"a": 1})
    lines = ["feature=tensor([[0, 1],\n" + " " * 20 + "[2, 3]]),", "metadata={'a': 1},"]
    assert repr(feature) == "TorchBasedFeature(\n    " + "\n    ".join(lines) + "\n)"


def test_a_layer_that_changes_makes_its_block_anew(graph: core.Graph) -> None:
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    (batch,) = seeds_of(gb.ItemSet(torch.tensor([3]), "seeds")).sample_neighbor(sampling, [-1])
    assert batch.to("cpu") is batch
    layer = batch.sampled_subgraphs[0]
    before, kept = batch.blocks[0].num_edges(), layer.sampled_csc.indices[:1]
    assert layer.sampled_csc.indices.dtype == sampling.indices.dtype
    layer.sampled_csc = gb.CSCFormatBase(torch.tensor([0, 1]), kept)
    layer.original_edge_ids = layer.original_edge_ids[:1]
    assert before > 1 and batch.blocks[0].num_edges() == 1
    assert torch.equal(batch.blocks[0].srcdata[core.NID], layer.original_row_node_ids)


def test_kinds_of_errors(graph: core.Graph) -> None:
    """They are also what DGL raises: from its checks, from its C++ code, or from Python."""
    pipe = seeds_of(gb.ItemSet(torch.tensor([[0, 1]]), "seeds"))
    sampling = gb.from_dglgraph(graph, is_homogeneous=True)
    with pytest.raises(AssertionError):
        gb.ItemSet(5, names=("a", "b"))
    with pytest.raises(TypeError):
        gb.ItemSet(iter([1]))
    with pytest.raises(RuntimeError):
        gb.fused_csc_sampling_graph(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([0, 1]))
    with pytest.raises(AssertionError):
        list(pipe.transform(lambda batch: 3))
    with pytest.raises(AssertionError):
        sampling.sample_neighbors(torch.tensor([1, 1]), torch.tensor([2]))
    (batch,) = pipe.sample_uniform_negative(sampling, 1)
    assert batch.labels.tolist() == [True, False] and batch.labels.dtype == torch.bool


@pytest.mark.parametrize(
    "wrong",
    [
        lambda graph: gb.ItemSampler([1, 2], batch_size=1),
        lambda graph: gb.ItemSampler(gb.ItemSet(3), batch_size=0),
        lambda graph: gb.DistributedItemSampler(gb.ItemSet(3), batch_size=1),
        lambda graph: graph.sample_neighbors(torch.tensor([0]), torch.tensor([1, 2])),
        lambda graph: graph.sample_neighbors(torch.tensor([0]), "x"),
        lambda graph: graph.edge_attribute("no"),
        lambda graph: gb.fused_csc_sampling_graph(torch.tensor([0, 2]), torch.tensor([0])),
        lambda graph: gb.CSCFormatBase(torch.tensor([0, 2]), torch.tensor([0])),
        lambda graph: gb.TorchBasedFeature(torch.arange(3)),
        lambda graph: gb.BasicFeatureStore({}).read("node", None, "feat"),
        lambda graph: gb.BuiltinDataset("nothing"),
        lambda graph: gb.OnDiskDataset("nowhere"),
        lambda graph: gb.etype_str_to_tuple("a:b"),
    ],
)
def test_errors(wrong: Any, graph: core.Graph) -> None:
    with pytest.raises(GNNLabError):
        wrong(gb.from_dglgraph(graph, is_homogeneous=True))
