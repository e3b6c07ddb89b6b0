"""DGL's data sets, on small archives of the same layout from a server here."""

import argparse
import gzip
import io
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from networkx.readwrite import json_graph

import gnnlab.compat as dgl
from gnnlab.errors import InvalidInput, NotFound
from tests.data.samples import tarred, zipped
from tests.data.test_download import server  # noqa: F401
from tests.data.test_npz import toy as citations
from tests.helpers import save_as_windows

pytestmark = pytest.mark.timeout(60)
SILENT = {"verbose": False}


def binary(write, *args):
    held = io.BytesIO()
    write(held, *args)
    return held.getvalue()


@pytest.fixture
def mirror(server, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("GNNLAB_DATA_URL", server.url)
    monkeypatch.setenv("DGL_DOWNLOAD_DIR", str(tmp_path / "home"))
    return server


def pairs(g, etype=None):
    return list(zip(*(ends.tolist() for ends in g.edges(etype=etype)), strict=True))


# ------------------------------------------------------------------- PPI


def tissues():
    """Two graphs of 3 and 4 nodes in one file, as networkx writes it."""
    g = nx.Graph([(0, 1), (1, 2), (2, 2), (3, 4), (4, 5), (5, 6)])
    return {
        "ppi/valid_graph.json": json.dumps(json_graph.node_link_data(g, edges="links")),
        "ppi/valid_feats.npy": binary(np.save, np.arange(14.0).reshape(7, 2)),
        "ppi/valid_labels.npy": binary(np.save, np.arange(21).reshape(7, 3) % 2),
        "ppi/valid_graph_id.npy": binary(np.save, np.array([21, 21, 21, 22, 22, 22, 22])),
    }


def test_ppi(mirror, tmp_path):
    mirror.files["ppi.zip"] = zipped(tissues())
    dataset = dgl.data.PPIDataset("valid", transform=dgl.AddSelfLoop(), **SILENT)
    assert (len(dataset), dataset.num_classes, dataset.num_labels) == (2, 121, 121)
    first, second = dataset.graphs
    assert pairs(first) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]
    assert sorted(pairs(second)) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert second.ndata["feat"].tolist() == [[6, 7], [8, 9], [10, 11], [12, 13]]
    assert second.ndata["label"].dtype == torch.float32
    assert dataset[1].num_edges() == 10
    assert len(mirror.ranges) == 1
    with pytest.raises(InvalidInput, match=r"train_feats.npy"):
        dgl.data.PPIDataset()
    with pytest.raises(NotFound, match="train, valid, test; found 'val'"):
        dgl.data.PPIDataset("val")
    with pytest.raises(TypeError, match="'mod'"):
        dgl.data.PPIDataset(mod="valid")


# ------------------------------------------------------------------- knowledge graphs

FACTS = {
    "entities.dict": "0\tAnn\n1\tBob\n2\tCy\n",
    "relations.dict": "0\tknows\n1\tlikes\n",
    "train.txt": "Ann\tknows\tBob\nBob\tlikes\tCy\n",
    "valid.txt": "Cy\tlikes\tAnn\n",
    "test.txt": "Ann\tlikes\tCy\n",
}


@pytest.mark.parametrize(
    ("cls", "name"), [("FB15k237", "FB15k-237"), ("FB15k", "FB15k"), ("WN18", "wn18")]
)
def test_knowledge_graphs(mirror, cls, name):
    top = "" if cls == "FB15k" else f"{name}/"
    mirror.files[f"{name}.tgz"] = tarred({top + file: text for file, text in FACTS.items()})
    make = getattr(dgl.data, f"{cls}Dataset")
    plain = make(reverse=False, **SILENT)
    g = plain[0]
    assert (plain.num_nodes, plain.num_rels, plain.name) == (3, 2, name)
    assert pairs(g) == [(0, 1), (1, 2), (2, 0), (0, 2)]
    assert g.edata["etype"].tolist() == [0, 1, 1, 1]
    assert g.edata["train_mask"].tolist() == [True, True, False, False]
    assert plain.train.tolist() == [[0, 0, 1], [1, 1, 2]]
    g = make(**SILENT)[0]
    assert pairs(g)[4:] == [(v, u) for u, v in pairs(g)[:4]]
    assert g.edata["etype"].tolist() == [0, 1, 1, 1, 2, 3, 3, 3]
    assert g.edata["val_mask"].nonzero().flatten().tolist() == [2]
    assert g.edata["valid_edge_mask"].nonzero().flatten().tolist() == [2, 6]
    assert g.edata["test_mask"].sum() == 1 and g.edata["train_edge_mask"].sum() == 4
    assert len(mirror.ranges) == 1


# ------------------------------------------------------------------- one labeled graph


BOUGHT = ("AmazonCoBuyComputer", "AmazonCoBuyPhoto")


def test_benchmarks(mirror):
    toy = citations()
    names = ("cora_full", "ms_academic_cs", "ms_academic_phy")
    names += ("amazon_electronics_computers", "amazon_electronics_photo")
    for name in names:
        mirror.files[f"{name}.npz"] = binary(lambda file: np.savez(file, **toy))
    adjacency = scipy.sparse.csr_matrix(
        (toy["adj_data"], toy["adj_indices"], toy["adj_indptr"]), toy["adj_shape"]
    ).toarray()
    both = sorted(zip(*(adjacency + adjacency.T).nonzero(), strict=True))
    for name in ("CoraFull", "CoauthorCS", "CoauthorPhysics", *BOUGHT):
        dataset = getattr(dgl.data, f"{name}Dataset")(**SILENT)
        g = dataset[0]
        assert sorted(pairs(g)) == both and len(dataset) == 1
        assert g.ndata["label"].tolist() == toy["labels"].tolist()
        assert dataset.num_classes == max(toy["labels"]) + 1
        assert set(g.ndata) == {"feat", "label"}


@pytest.mark.parametrize(("name", "first"), [("yelp", 0), ("amazon", 3305)])
def test_fraud(mirror, name, first):
    n = first + 20
    kinds = ("rsr", "rtr", "rur") if name == "yelp" else ("upu", "usu", "uvu")
    random = np.random.RandomState(0)
    content = {
        f"net_{kind}": scipy.sparse.coo_matrix(
            (np.ones(20), random.randint(n, size=(2, 20))), (n, n)
        )
        for kind in kinds
    }
    content["features"] = scipy.sparse.random(n, 3, 0.5, random_state=random)
    content["label"] = (np.arange(n) % 2)[None].astype(float)
    mat = binary(scipy.io.savemat, content)
    mirror.files[f"Fraud{name.capitalize()}.zip"] = zipped({"Some.mat": mat})
    dataset = getattr(dgl.data, f"Fraud{name.capitalize()}Dataset")(train_size=0.5, val_size=0.2)
    g = dataset[0]
    node = "review" if name == "yelp" else "user"
    assert [etype[1] for etype in g.canonical_etypes] == [f"net_{kind}" for kind in kinds]
    for kind in kinds:
        expected = set(zip(*content[f"net_{kind}"].nonzero(), strict=True))
        assert set(pairs(g, f"net_{kind}")) == expected
    assert g.ndata["label"].tolist() == content["label"][0].tolist() and g.ntypes == [node]
    np.testing.assert_allclose(g.ndata["feature"], content["features"].toarray(), rtol=1e-6)
    order = np.random.RandomState(717).permutation(np.arange(first, n))
    for mask, ids in {"train": order[:10], "val": order[16:], "test": order[10:16]}.items():
        assert g.ndata[f"{mask}_mask"].nonzero().flatten().tolist() == sorted(ids)
    again = dgl.data.FraudDataset(name, None, 717, 0.5, 0.2)[0]
    assert torch.equal(again.ndata["train_mask"], g.ndata["train_mask"])
    assert len(mirror.ranges) == 1


def test_wiki_cs(mirror):
    masks = {f"{name}_masks": [[1, 0, 0], [0, 1, 0]] for name in ("train", "val", "stopping")}
    content = {"features": [[0.5, 1], [2, 3], [4, 5]], "labels": [0, 9, 3], "test_mask": [0, 0, 1]}
    content |= {"links": [[1, 2], [0], []], **masks}
    mirror.files["wiki_cs.zip"] = zipped({"wiki_cs/data.json": json.dumps(content)})
    dataset = dgl.data.WikiCSDataset(**SILENT)
    g = dataset[0]
    assert (len(dataset), dataset.num_classes) == (1, 10)
    assert sorted(pairs(g)) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert g.ndata["val_mask"].tolist() == [[True, False], [False, True], [False, False]]
    assert g.ndata["test_mask"].tolist() == [False, False, True]
    assert g.ndata["feat"].dtype == torch.float32 and g.ndata["label"].tolist() == [0, 9, 3]
    for damaged in (b"{", json.dumps(content | {"labels": [0, 1]}), json.dumps({"labels": [0]})):
        text = damaged if isinstance(damaged, bytes) else damaged.encode()
        dataset_file = Path(dataset.raw_path).rglob("data.json")
        next(iter(dataset_file)).write_bytes(text)
        with pytest.raises(InvalidInput, match=r"data.json"):
            dgl.data.WikiCSDataset(**SILENT)


# ------------------------------------------------------------------- several graphs


def test_qm7b(mirror):
    charges = np.array([[[2, 1, 0], [1, 3, 0], [0, 0, 0]], [[1, 2, 3], [2, 1, 0], [3, 0, 5.0]]])
    content = {"X": charges, "T": np.arange(28.0).reshape(2, 14)}
    mirror.files["qm7b.mat"] = binary(scipy.io.savemat, content)
    dataset = dgl.data.QM7bDataset(**SILENT)
    g, label = dataset[0]
    assert (len(dataset), dataset.num_tasks, dataset.num_labels) == (2, 14, 14)
    assert (g.num_nodes(), pairs(g)) == (2, [(0, 0), (0, 1), (1, 0), (1, 1)])
    assert g.edata["h"].tolist() == [[2], [1], [1], [3]] and label.tolist() == list(range(14))
    Path(dataset.raw_path, "qm7b.mat").write_bytes(binary(scipy.io.savemat, {"X": charges}))
    with pytest.raises(InvalidInput, match=r"qm7b.mat: lacks 'T'; expected X, T"):
        dgl.data.QM7bDataset(**SILENT)
    Path(dataset.raw_path, "qm7b.mat").write_bytes(b"MATLAB 5.0" * 20)
    with pytest.raises(InvalidInput, match=r"qm7b.mat"):
        dgl.data.QM7bDataset(**SILENT)


def test_bitcoin(mirror):
    day = 86400
    rows = [(6, 2, 4, 0), (2, 6, -1, 13.5 * day), (6, 9, 8, 14 * day), (9, 2, 1, 30 * day)]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    mirror.files["soc-sign-bitcoinotc.csv.gz"] = gzip.compress(text.encode())
    dataset = dgl.data.BitcoinOTCDataset(**SILENT)
    assert len(dataset) == 2 and dataset.is_temporal
    assert pairs(dataset[0]) == [(1, 0), (0, 1)]
    assert pairs(dataset[1]) == [(1, 0), (0, 1), (1, 2)]
    assert dataset[1].edata["h"].tolist() == [[4], [-1], [8]]
    assert [g.num_nodes() for g in dataset] == [3, 3]


def test_gdelt(mirror):
    mirror.files["valid.txt"] = b"0\t3\t7\t30\t0\n7\t1\t2\t30\t0\n5\t0\t1\t60\t0\n"
    dataset = dgl.data.GDELTDataset("valid", **SILENT)
    assert (len(dataset), dataset.start_time, dataset.end_time) == (3, 2, 4)
    assert [pairs(g) for g in dataset] == [[(0, 7), (7, 2)]] * 2 + [[(0, 7), (7, 2), (5, 1)]]
    assert dataset[2].edata["rel_type"].tolist() == [[3], [1], [0]]
    assert dataset[0].num_nodes() == 23033


def test_trees(mirror, tmp_path):
    trees = "(3 (2 (2 The) (2 film)) (4 (3 is) (4 Good)))\n\n(0 (1 bad))\n"
    mirror.files["sst.zip"] = zipped({"sst/dev.txt": trees, "sst/vocab.txt": "the\nfilm\ngood\n"})
    vectors = tmp_path / "glove.txt"
    vectors.write_text("the 1 2\nfilm 3 4\nother 5 6\n")
    save_as_windows(vectors)
    dataset = dgl.data.SSTDataset("dev", str(vectors), **SILENT)
    assert (len(dataset), dataset.vocab_size, dataset.num_classes) == (2, 3, 5)
    g = dataset[0]
    assert pairs(g) == [(1, 0), (2, 1), (3, 1), (4, 0), (5, 4), (6, 4)]
    assert g.ndata["x"].tolist() == [-1, -1, 0, 1, -1, -1, 2]
    assert g.ndata["y"].tolist() == [3, 2, 2, 2, 4, 3, 4]
    assert g.ndata["mask"].tolist() == [0, 0, 1, 1, 0, 1, 1]
    assert pairs(dataset[1]) == [(1, 0)]
    assert dataset.pretrained_emb[:2].tolist() == [[1, 2], [3, 4]]
    assert dataset.pretrained_emb.shape == (3, 2)
    for wrong in ("(3 (2 a)", "(3 (x a))", "(1 a) (2 b)", "a"):
        Path(dataset.raw_path, "sst", "dev.txt").write_text(f"(1 a)\n{wrong}\n")
        with pytest.raises(InvalidInput, match=r"dev.txt, line 2"):
            dgl.data.SSTDataset("dev", **SILENT)


# ------------------------------------------------------------------- TU

TOY = {
    "A": "1, 2\n4, 3\n2, 1\n3, 4\n4, 5\n",
    "graph_indicator": "1\n1\n2\n2\n2\n3\n",
    "graph_labels": "-1\n1\n1\n",
    "node_labels": "3\n5\n3\n4\n4\n3\n",
    "edge_labels": "1\n2\n1\n2\n1\n",
    "edge_attributes": "0.1\n0.2\n0.3\n0.4\n0.5\n",
}


def collection(mirror, name="TOY", **changes):
    files = {k: v for k, v in (TOY | changes).items() if v is not None}
    content = {f"{name}/{name}_{what}.txt": text for what, text in files.items()}
    mirror.files[f"{name}.zip"] = zipped(content)


def test_tu(mirror):
    collection(mirror)
    dataset = dgl.data.TUDataset("TOY", **SILENT)
    assert len(dataset) == dataset.num_classes == 3
    assert dataset.graph_labels.tolist() == [[0], [2], [2]]
    (g0, label), (g1, _), (g2, _) = dataset
    assert (label.tolist(), g0.num_nodes(), g2.num_nodes(), g2.num_edges()) == ([0], 2, 1, 0)
    assert pairs(g0) == [(0, 1), (1, 0)] and pairs(g1) == [(1, 0), (0, 1), (1, 2)]
    assert g1.ndata["node_labels"].tolist() == [[0], [1], [1]]
    assert g1.edata["edge_labels"].tolist() == [[1], [1], [0]]
    assert g1.edata["edge_attr"][:, 0].tolist() == pytest.approx([0.2, 0.4, 0.5])


def test_legacy_tu(mirror):
    collection(mirror)
    dataset = dgl.data.LegacyTUDataset("TOY", max_allow_node=2, **SILENT)
    assert len(dataset) == 2 and dataset.statistics() == (3, 3, 2)
    assert dataset[0][0].ndata["feat"].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert [int(label) for _, label in dataset] == [0, 2] and dataset[0][1].shape == ()
    collection(mirror, "ATTR", node_attributes="0.5, 1\n2, 3\n4, 5\n6, 7\n8, 9\n10, 11\n")
    assert dgl.data.LegacyTUDataset("ATTR")[1][0].ndata["feat"].tolist() == [[4, 5], [6, 7], [8, 9]]
    collection(mirror, "NONE", node_labels=None)
    plain = dgl.data.LegacyTUDataset("NONE", hidden_size=4)
    assert plain[0][0].ndata["feat"].tolist() == [[1] * 4] * 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"A": "1, 2\n2, 3\n"}, "TOY_A.txt, line 2"),
        ({"A": "1, 7\n"}, "1 … 6; found 7"),
        ({"A": "1, x\n"}, "TOY_A.txt, line 1: column 2 is ' x'"),
        ({"graph_indicator": "1\n2\n1\n2\n2\n3\n"}, "TOY_graph_indicator.txt"),
        ({"node_labels": "1\n2\n"}, "TOY_node_labels.txt: found 2 .*6"),
        ({"graph_indicator": None}, "TOY_graph_indicator.txt"),
        ({"graph_labels": None}, "TOY_graph_labels.txt.*TOY_graph_att"),
    ],
)
def test_damaged_tu(mirror, changes, says):
    collection(mirror, **changes)
    with pytest.raises(InvalidInput, match=says):
        dgl.data.TUDataset("TOY", **SILENT)


def test_citation_graphs_and_old_attributes(mirror):
    arrays = citations()
    many = {name: arrays[name] for name in arrays if not name.startswith("adj")}
    many |= {"attr_shape": np.array([1600, 3]), "labels": np.arange(1600) % 3}
    many |= {"attr_indptr": np.repeat(arrays["attr_indptr"], [1, 1, 1, 1, 1597])}
    many |= {"adj_data": np.ones(2), "adj_indices": np.array([1, 2]), "adj_shape": [1600, 1600]}
    many |= {"adj_indptr": np.array([0, 2] + [2] * 1599)}
    mirror.files["citeseer.npz"] = binary(lambda file: np.savez(file, **many))
    mirror.files["pubmed.npz"] = mirror.files["citeseer.npz"]
    assert dgl.data.load_data(argparse.Namespace(dataset="pubmed")).name == "pubmed"
    dataset = dgl.data.CitationGraphDataset("citeseer", reverse_edge=False, verbose=False)
    g = dataset[0]
    assert (dataset.name, g.num_edges(), dataset.num_labels) == ("citeseer", 2, 3)
    assert torch.equal(dataset.features, g.ndata["feat"])
    assert torch.equal(dataset.labels, g.ndata["label"])
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(dataset, mask), g.ndata[mask])
    assert dgl.data.citation_graph.load_cora is dgl.data.CoraGraphDataset
    with pytest.raises(NotFound, match="cora, citeseer, pubmed; found 'x'"):
        dgl.data.CitationGraphDataset("x")
    adapted = dgl.data.AsNodePredDataset(dataset, raw_dir="x", verbose=False)
    assert len(adapted.train_idx) == 60
