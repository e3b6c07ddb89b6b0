"""Graphs of PyG become graphs of gnnlab and return unchanged; importing gnnlab needs no PyG."""

from __future__ import annotations

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch
from torch_geometric.data import Data, HeteroData

import gnnlab as dgl
from gnnlab import pyg
from gnnlab.errors import InvalidInput
from tests.helpers import run_script

RATES, LIKES = ("user", "rates", "item"), ("user", "likes", "user")
EDGES = torch.tensor([[0, 2, 2, 1], [1, 1, 0, 3]])


def plain() -> Data:
    return Data(
        x=torch.arange(8.0).reshape(4, 2),
        y=torch.tensor([0, 1, 1, 0]),
        edge_index=EDGES,
        edge_weight=torch.tensor([0.1, 0.2, 0.3, 0.4]),
        train_mask=torch.tensor([True, False, True, False]),
        num_nodes=4,
    )


def typed() -> HeteroData:
    data = HeteroData()
    data["user"].x = torch.eye(3)
    data["item"].num_nodes = 5
    data[RATES].edge_index = torch.tensor([[0, 1, 2, 2], [4, 0, 0, 3]])
    data[RATES].edge_attr = torch.arange(4.0)
    data[LIKES].edge_index = torch.tensor([[0, 1], [1, 2]])
    return data


def test_a_data_becomes_a_graph_and_returns() -> None:
    data = plain()
    data.num_classes, data.title = 2, "four nodes"  # what has no rows is left out
    data.edge_label_index = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])  # shape (2, E)
    g = pyg.from_pyg(data)
    assert g.is_homogeneous and g.num_nodes() == 4
    assert torch.equal(torch.stack(g.edges()), EDGES)
    assert set(g.ndata) == {"x", "y", "train_mask"} and set(g.edata) == {"edge_weight"}
    assert g.ndata["x"].data_ptr() == data.x.data_ptr()  # shared, not copied
    back = pyg.to_pyg(g)
    assert set(back.keys()) == set(plain().keys()) and back.num_nodes == 4
    for name in set(back.keys()) - {"num_nodes"}:
        assert torch.equal(back[name], data[name])
    assert back.x.data_ptr() == data.x.data_ptr()


def test_types_keep_their_names() -> None:
    data = typed()
    g = pyg.from_pyg(data)
    assert g.num_nodes("item") == 5 and set(g.canonical_etypes) == {RATES, LIKES}
    assert torch.equal(torch.stack(g.edges(etype=RATES)), data[RATES].edge_index)
    assert g.edges[RATES].data["edge_attr"] is data[RATES].edge_attr
    back = pyg.to_pyg(g)
    assert set(back.node_types) == {"user", "item"} and set(back.edge_types) == {RATES, LIKES}
    assert back["item"].num_nodes == 5 and torch.equal(back["user"].x, data["user"].x)
    assert torch.equal(back[LIKES].edge_index, data[LIKES].edge_index)
    named = HeteroData()
    named["page"].x = torch.eye(2)
    named["page", "links", "page"].edge_index = torch.tensor([[0], [1]])
    back = pyg.to_pyg(pyg.from_pyg(named))
    assert isinstance(back, HeteroData) and back.node_types == ["page"]


def test_features_may_be_renamed() -> None:
    g = pyg.from_pyg(plain(), {"x": "feat", "y": "label"})
    assert {"feat", "label"} < set(g.ndata)
    assert torch.equal(pyg.to_pyg(g, {"feat": "x", "label": "y"}).x, plain().x)
    with pytest.raises(InvalidInput, match="two attributes"):
        pyg.from_pyg(plain(), {"x": "y"})


def test_what_cannot_be_converted_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="edge_index"):
        pyg.from_pyg(Data(x=torch.eye(2), adj_t=torch.eye(2).to_sparse()))
    assert pyg.from_pyg(Data(x=torch.eye(2))).num_edges() == 0
    with pytest.raises(InvalidInput, match="Tensor"):
        pyg.from_pyg(torch.eye(2))
    g = dgl.graph(([0], [1]))
    with pytest.raises(InvalidInput, match="block"):
        pyg.to_pyg(dgl.to_block(g))
    g.ndata["w"], g.edata["w"] = torch.ones(2), torch.ones(1)
    with pytest.raises(InvalidInput, match="'w'"):
        pyg.to_pyg(g)


def test_without_pyg_all_can_be_imported_and_an_error_says_what_to_install() -> None:
    source = """
        import sys
        sys.modules["torch_geometric"] = None
        import gnnlab, gnnlab.compat, gnnlab.dataloading, gnnlab.distributed, gnnlab.partition
        from gnnlab.pyg import from_pyg
        try:
            gnnlab.pyg.NeighborLoader
        except ImportError as error:
            print(error)
    """
    assert 'pip install "gnnlab[pyg]"' in run_script(source, fresh=True)
