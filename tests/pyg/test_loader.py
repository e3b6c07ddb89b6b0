"""The loaders take PyG's arguments and make the same batches wherever these are made."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import ImbalancedSampler
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput, SamplerOutput
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from gnnlab import Graph
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from gnnlab.pyg import (
    FeatureStore,
    GraphStore,
    LinkNeighborLoader,
    NeighborLoader,
    NeighborSampler,
    from_pyg,
)
from tests.pyg import graphs
from tests.pyg.graphs import CITES, WRITES


def same(one: Any, other: Any) -> bool:
    """Whether two batches, or parts of them, hold the same."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if hasattr(one, "to_dict"):
        one, other = one.to_dict(), other.to_dict()
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def epochs(loader: Any, count: int = 2) -> list[Any]:
    return [batch for _ in range(count) for batch in loader]


def nodes(data: Any, **options: Any) -> NeighborLoader:
    if isinstance(data, Graph):
        seeds = (
            data.ndata["mask"]
            if data.is_homogeneous
            else ("paper", data.nodes["paper"].data["mask"])
        )
    else:
        seeds = data.mask if isinstance(data, Data) else ("paper", data["paper"].mask)
    options = {"batch_size": 7, "shuffle": True, "seed": 3, **options}
    return NeighborLoader(data, [3, 2], seeds, **options)


def links(data: Any, **options: Any) -> LinkNeighborLoader:
    edges = data.edge_index if isinstance(data, Data) else (WRITES, data[WRITES].edge_index)
    options = {"batch_size": 31, "shuffle": True, "seed": 3, "neg_sampling": "binary", **options}
    return LinkNeighborLoader(data, [3, 2], edges, **options)


@pytest.mark.parametrize("make", [nodes, links])
@pytest.mark.parametrize("graph", [graphs.plain, graphs.typed])
def test_threads_and_workers_make_the_same_batches(
    make: Callable[..., Any], graph: Callable[[], Any], torch_threads: Callable[[int], None]
) -> None:
    data = graph()
    expected = epochs(make(data, prefetch=0))
    assert not same(expected[0], expected[len(expected) // 2])  # epochs differ
    for options in (
        {"prefetch": 3},
        {"num_workers": 2},
        {"num_workers": 1, "persistent_workers": True, "prefetch_factor": 4},
    ):
        found = epochs(make(data, **options))
        assert len(found) == len(expected)
        assert all(map(same, found, expected)), options
    torch_threads(3)
    assert all(map(same, epochs(make(data)), expected))


def test_torch_seeds_decide_without_a_seed() -> None:
    data = graphs.plain()

    def by_generator(seed: int) -> list[Any]:
        torch.manual_seed(9)  # the generator decides, not this
        return epochs(nodes(data, seed=None, generator=torch.Generator().manual_seed(seed)))

    def by_everything(seed: int) -> list[Any]:
        torch_geometric.seed_everything(seed)
        return epochs(nodes(data, seed=None, prefetch=2))

    for made in by_generator, by_everything:
        one, again, other = (made(seed) for seed in (1, 1, 2))
        assert all(map(same, one, again)) and not same(one[0], other[0])


def test_every_seed_once_an_epoch() -> None:
    data = graphs.plain()
    loader = nodes(data)
    seeds = torch.cat([batch.n_id[: batch.batch_size] for batch in loader])
    assert torch.equal(seeds.sort().values, data.mask.nonzero().flatten())
    assert len(loader) == -(-len(seeds) // 7)
    found = torch.cat([batch.input_id for batch in nodes(data)])
    assert torch.equal(found, seeds)  # PyG: of a mask, the nodes
    assert len(nodes(data, drop_last=True)) == len(seeds) // 7


def test_samplers_of_torch_and_pyg_choose_the_seeds() -> None:
    data = graphs.plain()
    data.y = torch.arange(60) % 2
    sampler = ImbalancedSampler(data.y, num_samples=40)
    batches = list(NeighborLoader(data, [2], None, sampler=sampler, batch_size=20))
    assert [batch.batch_size for batch in batches] == [20, 20]
    for batch in batches:
        row, col = batch.edge_index
        ends = torch.stack([batch.n_id[row], batch.n_id[col]])
        assert torch.equal(data.edge_index[:, batch.e_id], ends)
    loader = NeighborLoader(data, [2], None, batch_sampler=[[5, 1], [7]])
    assert [batch.n_id[: batch.batch_size].tolist() for batch in loader] == [[5, 1], [7]]


def test_a_graph_gives_the_batches_of_its_data() -> None:
    data, typed = graphs.plain(), graphs.typed()
    data.num_nodes = 60  # as the Data of a graph has
    for batch, other in zip(nodes(from_pyg(data)), nodes(data), strict=True):
        assert same(batch, other)
    for batch, other in zip(nodes(from_pyg(typed)), nodes(typed), strict=True):
        for each in ("paper", "author", *typed.edge_types):
            for name, value in other[each].items():
                assert same(batch[each][name], value), (each, name)


def test_edges_of_a_graph_without_ends() -> None:
    g, ids = from_pyg(graphs.plain()), torch.tensor([5, 2, 9])
    assert len(LinkNeighborLoader(g, [2], batch_size=100)) == 4
    typed = from_pyg(graphs.typed())
    for every in (WRITES, (WRITES, None), list(WRITES)):
        assert len(LinkNeighborLoader(typed, [2], every, batch_size=45)) == 2
    assert len(LinkNeighborLoader(typed, [2], (CITES, ids), batch_size=2)) == 2


def test_transforms() -> None:
    def double(batch: Data) -> Data:
        batch.x = batch.x * 2
        return batch

    def mark(out: SamplerOutput) -> SamplerOutput:
        out = copy.copy(out)
        out.metadata = (out.metadata[0] + 1000, *out.metadata[1:])
        return out

    data = graphs.plain()
    options = {"batch_size": 4, "transform": double, "transform_sampler_output": mark}
    for graph in (data, from_pyg(data)):
        batch = next(iter(NeighborLoader(graph, [2], **options)))
        assert torch.equal(batch.x, data.x[batch.n_id] * 2)
        assert batch.input_id.tolist() == [1000, 1001, 1002, 1003]


def test_seeds_in_all_forms() -> None:
    """A mask decides input_id. Wrong seeds are those of tests/test_arguments.py."""
    data = graphs.plain()
    mask, of_edges = torch.arange(data.num_nodes) % 5 == 2, torch.arange(data.num_edges) % 50 == 3
    ids, eids = mask.nonzero().flatten(), of_edges.nonzero().flatten()
    ends = data.edge_index[:, eids]
    for graph in (data, from_pyg(data)):
        for form in (mask, mask.numpy(), mask.tolist(), ids.numpy(), ids.int(), ids.tolist()):
            batches = list(NeighborLoader(graph, [2], form, batch_size=4))
            assert torch.equal(torch.cat([b.n_id[: b.batch_size] for b in batches]), ids)
            assert form is not mask or torch.equal(batches[0].input_id, ids[:4])
        for form in (of_edges, of_edges.numpy(), eids, ends, ends.int(), tuple(ends)):
            loader = LinkNeighborLoader(graph, [2], edge_label_index=form, batch_size=4)
            found = torch.cat([b.n_id[b.edge_label_index] for b in loader], dim=1)
            assert torch.equal(found, ends)
        for wrong in (eids.double(), ends.float(), ends.T, ends.bool(), ends - data.num_nodes):
            with pytest.raises((InvalidInput, OutOfRange)):
                LinkNeighborLoader(graph, [2], edge_label_index=wrong)
    sampler = NeighborSampler(data, [2])
    for wrong in (torch.tensor([0.5]), mask.byte(), torch.tensor([[0]]), torch.tensor([-1])):
        with pytest.raises((InvalidInput, OutOfRange)):
            sampler.sample_from_nodes(NodeSamplerInput(None, wrong))
    with pytest.raises(OutOfRange):
        sampler.sample_from_edges(EdgeSamplerInput(None, torch.tensor([60]), torch.tensor([0])))


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}])
def test_no_seeds_are_no_batches(options: dict[str, Any]) -> None:
    data = graphs.plain()
    none = torch.zeros(data.num_nodes, dtype=torch.bool)
    for kind, seeds in (NeighborLoader, none), (LinkNeighborLoader, torch.empty(2, 0).long()):
        for graph in (data, from_pyg(data)):
            with pytest.warns(UserWarning, match="no seeds") as warned:
                assert list(kind(graph, [2], seeds, shuffle=True, **options)) == []
            assert len(warned) == 1


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}])
def test_batches_have_the_features_of_their_time(options: dict[str, Any]) -> None:
    data = graphs.plain()
    g = from_pyg(data)
    for graph, features in (data, data), (g, g.ndata):
        for batch in NeighborLoader(graph, [2], range(12), batch_size=3, **options):
            assert torch.equal(batch.x, features["x"][batch.n_id])
            features["x"] = features["x"] + 1
            features["x"][:] *= 2


def test_only_code_of_libraries_runs_in_a_thread() -> None:
    data = graphs.plain()
    threads = set()

    class Sampler(NeighborSampler):
        def sample_from_nodes(self, inputs: Any) -> Any:
            threads.add(threading.current_thread())
            return super().sample_from_nodes(inputs)

    class Loader(NeighborLoader):
        def filter_fn(self, out: Any) -> Any:
            threads.add(threading.current_thread())
            return super().filter_fn(out)

    list(NeighborLoader(data, [2], range(4), neighbor_sampler=Sampler(data, [2])))
    list(Loader(data, [2], range(4)))
    assert threads == {threading.main_thread()}


def test_stores_of_others_and_data_without_edges() -> None:
    features, edges = MyFeatureStore(), MyGraphStore()
    x, w = torch.arange(4.0), torch.tensor([1.0, 0, 1])
    features.put_tensor(x, group_name="paper", attr_name="x", index=None)
    features.put_tensor(w, group_name=CITES, attr_name="w", index=None)
    edges.put_edge_index(
        (torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])), CITES, "coo", size=(4, 4)
    )
    (batch,) = NeighborLoader(
        (features, edges), [2], ("paper", [2, 3]), batch_size=2, weight_attr="w"
    )
    assert batch["paper"].n_id.tolist() == [2, 3] and batch["paper"].x.tolist() == [2.0, 3.0]
    assert batch[CITES].edge_index.tolist() == [[0], [0]]
    (batch,) = NeighborLoader(Data(x=x), [2], batch_size=4)
    assert batch.n_id.tolist() == [0, 1, 2, 3]


def test_features_are_read_by_name_and_rows() -> None:
    data = graphs.typed()
    store = FeatureStore(from_pyg(data))
    rows = torch.tensor([4, 0, 4])
    assert torch.equal(store["paper", "x", rows], data["paper"].x[rows])
    assert torch.equal(store["paper", "x", None], data["paper"].x)
    assert torch.equal(store["paper", "x", slice(2, 9, 3)], data["paper"].x[2:9:3])
    assert torch.equal(store["paper", "x", 3], data["paper"].x[3])
    assert torch.equal(store["paper"].x[data["paper"].mask], data["paper"].x[data["paper"].mask])
    assert torch.equal(store[CITES, "edge_attr", rows], data[CITES].edge_attr[rows])
    assert store.get_tensor_size("author", "x") == (20, 3)
    found = {(attr.group_name, attr.attr_name) for attr in store.get_all_tensor_attrs()}
    assert found == {("paper", "x"), ("paper", "mask"), ("author", "x")}
    with pytest.raises(NotFound, match="'venue'"):
        store.get_tensor("venue", "x", None)
    with pytest.raises(NotFound, match="'z'"):
        store.get_tensor("paper", "z", None)


def test_features_can_be_written() -> None:
    g = from_pyg(graphs.plain())
    store = FeatureStore(g, ["x"])
    store[None, "h", None] = torch.zeros(60)
    store[None, "h", torch.tensor([1, 5])] = torch.ones(2)
    assert g.ndata["h"].sum() == 2 and g.ndata["h"][5] == 1
    assert [attr.attr_name for attr in store.get_all_tensor_attrs()] == ["x"]
    del store[None, "h"]
    assert "h" not in g.ndata
    (batch,) = NeighborLoader((store, GraphStore(g)), [2], [3, 4], batch_size=2)
    assert "x" in batch and "y" not in batch


def test_edges_are_read_in_each_layout_and_cannot_be_written() -> None:
    data = graphs.typed()
    store = GraphStore(from_pyg(data))
    row, col, _ = store.coo()
    assert torch.equal(torch.stack([row[CITES], col[CITES]]), data[CITES].edge_index)
    row, colptr, perm = store.csc([WRITES])
    assert torch.equal(row[WRITES], data[WRITES].edge_index[0, perm[WRITES]])
    assert colptr[WRITES].tolist()[-1] == 90 and len(colptr[WRITES]) == 31
    assert {attr.size for attr in store.get_all_edge_attrs()} == {(30, 30), (20, 30), (30, 20)}
    with pytest.raises(InvalidInput, match="cannot be changed"):
        store.put_edge_index((row[WRITES], row[WRITES]), WRITES, "coo")
    with pytest.raises(InvalidInput, match="cannot be changed"):
        del store[WRITES, "coo"]
