"""Graphs of PyG become graphs of gnnlab and return unchanged; importing gnnlab needs no PyG."""

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
import torch
from torch_geometric.data import Data, HeteroData

import gnnlab as dgl
from gnnlab import pyg
from gnnlab.errors import InvalidInput
from tests.helpers import run_script
from tests.pyg.graphs import CITES, OWNS, WRITES, plain, typed


def test_a_data_becomes_a_graph_and_returns() -> None:
    data = plain()
    data.num_classes, data.title = 2, "sixty nodes"  # what has no rows is left out
    data.edge_label_index = data.edge_index.flip(0)  # shape (2, E)
    g = pyg.from_pyg(data)
    assert g.is_homogeneous and g.num_nodes() == 60
    assert torch.equal(torch.stack(g.edges()), data.edge_index)
    assert set(g.ndata) == {"x", "y", "mask"} and set(g.edata) == {"edge_attr", "weight"}
    assert g.ndata["x"].data_ptr() == data.x.data_ptr()  # shared, not copied
    back = pyg.to_pyg(g)
    assert set(back.keys()) == {*plain().keys(), "num_nodes"} and back.num_nodes == 60
    for name in set(back.keys()) - {"num_nodes"}:
        assert torch.equal(back[name], data[name])
    assert back.x.data_ptr() == data.x.data_ptr()


def test_types_keep_their_names() -> None:
    data = typed()
    data["venue"].num_nodes = 5
    g = pyg.from_pyg(data)
    assert g.num_nodes("venue") == 5 and set(g.canonical_etypes) == {CITES, WRITES, OWNS}
    assert torch.equal(torch.stack(g.edges(etype=WRITES)), data[WRITES].edge_index)
    assert g.edges[WRITES].data["edge_attr"] is data[WRITES].edge_attr
    back = pyg.to_pyg(g)
    assert set(back.node_types) == set(data.node_types) and back["venue"].num_nodes == 5
    assert set(back.edge_types) == set(data.edge_types)
    assert torch.equal(back["author"].x, data["author"].x)
    assert torch.equal(back[CITES].edge_index, data[CITES].edge_index)
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
