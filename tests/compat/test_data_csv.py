"""``CSVDataset`` on the guide's layouts (chapter 4.6), against graphs written out by hand."""

import os
import time

import numpy as np
import pandas as pd
import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.compat.data import CSVDataset
from gnnlab.errors import InvalidInput
from tests.helpers import save_as_windows

pytestmark = pytest.mark.timeout(60)

ONE = {
    "meta.yaml": """
dataset_name: mini
edge_data:
- file_name: edges_0.csv
node_data:
- file_name: nodes_0.csv
""",
    "nodes_0.csv": """node_id,label,train_mask,feat
30,1,True,"0.5, 1"
10,0,False,"2, 3.5"
20,2,True,"-1, 0"
""",
    "edges_0.csv": """src_id,dst_id,weight
10,20,0.5
30,10,1.5
10,20,2.5
""",
}

MANY = {
    "meta.yaml": """
version: 1.0.0
dataset_name: many
separator: ';'
node_data:
- file_name: users.csv
  ntype: user
  node_id_field: who
- file_name: items.csv
  ntype: item
edge_data:
- file_name: likes.csv
  etype: [user, likes, item]
  src_id_field: from
- file_name: knows.csv
  etype: [user, knows, user]
graph_data:
  file_name: graphs.csv
""",
    "users.csv": "graph_id;who;age\n7;b;1\n7;a;2\n5;a;3\n",
    "items.csv": "graph_id;node_id;price\n5;1;10\n7;10;11\n7;9;12\n",
    "likes.csv": "graph_id;from;dst_id;stars\n7;a;10;5\n5;a;1;4\n7;b;9;3\n",
    "knows.csv": "graph_id;src_id;dst_id\n7;a;b\n",
    "graphs.csv": 'graph_id;feat;label\n7;"0.1, 0.2";1\n5;"0.3, 0.4";0\n',
}


def write(folder, files, **changes):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(changes.get(name.partition(".")[0], text))
    return str(folder)


def test_one_graph(tmp_path):
    dataset = CSVDataset(write(tmp_path, ONE), verbose=False)
    g = dataset[0]
    assert (len(dataset), dataset.data, dataset.name) == (1, {}, "mini")
    assert g.canonical_etypes == [("_V", "_E", "_V")]
    assert torch.equal(torch.stack(g.edges()), torch.tensor([[0, 2, 0], [1, 0, 1]]))
    assert g.ndata["label"].tolist() == [0, 2, 1]
    assert g.ndata["train_mask"].tolist() == [False, True, True]
    assert g.ndata["feat"].tolist() == [[2, 3.5], [-1, 0], [0.5, 1]]
    assert (g.ndata["feat"].dtype, g.ndata["label"].dtype) == (torch.float64, torch.int64)
    assert g.ndata["train_mask"].dtype == torch.bool
    assert g.edata["weight"].tolist() == [0.5, 1.5, 2.5]
    assert set(g.ndata) == {"label", "train_mask", "feat"}


def test_files_saved_by_editors_of_windows(tmp_path):
    write(tmp_path, ONE)
    save_as_windows(*tmp_path.iterdir())
    g = CSVDataset(str(tmp_path), verbose=False)[0]
    assert g.ndata["feat"].tolist() == [[2, 3.5], [-1, 0], [0.5, 1]]
    assert torch.stack(g.edges()).tolist() == [[0, 2, 0], [1, 0, 1]]


def test_many_typed_graphs(tmp_path):
    dataset = CSVDataset(write(tmp_path, MANY), verbose=False)
    assert len(dataset) == 2
    (g5, data5), (g7, data7) = dataset[0], dataset[1]
    assert (data5["label"].item(), data7["feat"].tolist()) == (0, [0.1, 0.2])
    for g in (g5, g7):
        assert g.canonical_etypes == [("user", "knows", "user"), ("user", "likes", "item")]
    assert (g5.num_nodes("user"), g5.num_nodes("item"), g5.num_edges("knows")) == (1, 1, 0)
    assert g5.edges["likes"].data["stars"].tolist() == [4]
    assert g7.nodes["user"].data["age"].tolist() == [2, 1]  # a, b
    assert g7.nodes["item"].data["price"].tolist() == [12, 11]  # 9, 10: numbers, not texts
    assert torch.stack(g7.edges(etype="likes")).tolist() == [[0, 1], [1, 0]]
    assert torch.stack(g7.edges(etype="knows")).tolist() == [[0], [1]]


def test_against_a_slow_reader(tmp_path):
    """Forty random graphs: node and edge values are those that a loop over all rows finds."""
    random = np.random.RandomState(3)
    nodes = [(k, i, random.rand()) for k in range(40) for i in random.permutation(9)[: 1 + k % 8]]
    of = {k: [i for graph, i, _ in nodes if graph == k] for k in range(40)}
    edges = [
        (k, random.choice(of[k]), random.choice(of[k]), random.rand())
        for k in random.randint(0, 40, 300)
    ]
    random.shuffle(nodes)
    meta = ONE["meta.yaml"]
    (tmp_path / "meta.yaml").write_text(meta)
    frames = {"nodes_0": (nodes, ["graph_id", "node_id", "x"])}
    frames["edges_0"] = (edges, ["graph_id", "src_id", "dst_id", "w"])
    for name, (rows, columns) in frames.items():
        pd.DataFrame(rows, columns=columns).to_csv(tmp_path / f"{name}.csv", index=False)
    dataset = CSVDataset(tmp_path, verbose=False)
    assert len(dataset) == 40
    for k, g in enumerate(dataset):
        value = sorted((i, x) for graph, i, x in nodes if graph == k)
        assert g.ndata["x"].tolist() == [x for _, x in value]
        place = {i: n for n, (i, _) in enumerate(value)}
        mine = [(place[u], place[v], w) for graph, u, v, w in edges if graph == k]
        found = zip(*(ends.tolist() for ends in g.edges()), g.edata["w"].tolist(), strict=True)
        assert list(found) == mine


def test_parsers_of_ones_own(tmp_path):
    class Parser:
        def __call__(self, df):
            assert "node_id" not in df and "src_id" not in df
            return {"y": np.array([1 if age > 1 else 0 for age in df["age"]])}

    def stars(df):
        return {"stars": torch.tensor(df["stars"].to_numpy()).float() / 5}

    dataset = CSVDataset(
        write(tmp_path, MANY),
        verbose=False,
        ndata_parser={"user": Parser()},
        edata_parser={("user", "likes", "item"): stars},
        gdata_parser=lambda df: {"double": 2 * df["label"].to_numpy()},
        transform=dgl.AddReverse(),
    )
    g, data = dataset[1]
    assert data == {"double": torch.tensor(2)}
    assert g.nodes["user"].data["y"].tolist() == [1, 0]
    assert g.nodes["item"].data["price"].tolist() == [12, 11]  # the default parser
    assert g.edges["likes"].data["stars"].tolist() == pytest.approx([1, 0.6])
    assert g.num_edges("rev_likes") == 2


def test_cache_is_used_until_a_file_changes(tmp_path):
    folder = write(tmp_path, MANY)
    first = CSVDataset(folder, verbose=False)
    assert (tmp_path / "many" / "many.bin").exists()

    def never(df):
        raise AssertionError("read again")

    again = CSVDataset(folder, verbose=False, ndata_parser=never)
    for (g, data), (h, other) in zip(first, again, strict=True):
        assert g.canonical_etypes == h.canonical_etypes and set(data) == set(other)
        assert torch.equal(g.nodes["user"].data["age"], h.nodes["user"].data["age"])
    with pytest.raises(AssertionError, match="read again"):
        CSVDataset(folder, verbose=False, ndata_parser=never, force_reload=True)
    (tmp_path / "users.csv").write_text(MANY["users.csv"].replace("7;b;1", "7;b;9"))
    later = time.time() + 5
    os.utime(tmp_path / "users.csv", (later, later))
    g, _ = CSVDataset(folder, verbose=False)[1]
    assert g.nodes["user"].data["age"].tolist() == [2, 9]


def test_repeated_ids_and_unnamed_columns_warn(tmp_path):
    nodes = "node_id,x,\n1,5,0\n0,6,0\n1,7,0\n"
    folder = write(tmp_path, ONE, nodes_0=nodes, edges_0="src_id,dst_id\n0,1\n")
    with pytest.warns(UserWarning) as found:
        g = CSVDataset(folder, verbose=False)[0]
    said = " ".join(str(each.message) for each in found)
    assert "nodes_0.csv, line 4: this ID is there already" in said and "without a name" in said
    assert g.ndata["x"].tolist() == [6, 5] and set(g.ndata) == {"x"}


META = ONE["meta.yaml"]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"meta": "a: [1"}, "meta.yaml.*YAML"),
        ({"meta": "- 1"}, "version"),
        ({"meta": META + "version: 2"}, "2; 1.0.0"),
        ({"meta": "dataset_name: x\nedge_data: []"}, "node_data"),
        ({"meta": "node_data: []"}, "meta.yaml.*dataset_name"),
        ({"meta": META.replace("edges_0", "other")}, "other.csv"),
        ({"meta": META + "- file_name: a.csv"}, "node_data.*_V"),
        ({"meta": META.replace("edges_0.csv", "edges_0.csv\n  etype: x")}, "etype.*'x'"),
        ({"meta": META.replace("edges_0.csv", "edges_0.csv\n  etype: [a, b, _V]")}, "a; node_data"),
        ({"nodes_0": ""}, "nodes_0.csv"),
        ({"nodes_0": "id,x\n1,2\n"}, "nodes_0.csv, line 1.*'node_id'.*id, x"),
        ({"nodes_0": "node_id,x\n10,1\n,2\n"}, "nodes_0.csv, line 3.*'node_id'"),
        ({"nodes_0": "node_id,x\n10,1\n20,\n"}, "nodes_0.csv, line 3.*'x'"),
        ({"nodes_0": "node_id,x\n1,a\n"}, "nodes_0.csv, line 2.*'x' is 'a'"),
        ({"nodes_0": 'node_id,x\n1,"1,2"\n2,"3"\n'}, "nodes_0.csv, line 3.*'x' is '3'.* 2 "),
        ({"nodes_0": "node_id,x\n1,2\n1,2,3,4\n"}, "nodes_0.csv.*line 3"),
        ({"edges_0": "src_id,dst_id\n10,20\n10,99\n"}, "edges_0.csv, line 3.*'dst_id'.* 99 "),
        ({"edges_0": "graph_id,src_id,dst_id\n0,10,20\n4,10,20\n"}, "edges_0.csv, line 3.* 4 "),
    ],
)
def test_errors_name_file_and_line(tmp_path, changes, names):
    with pytest.raises(InvalidInput, match=names):
        CSVDataset(write(tmp_path, ONE, **changes), verbose=False)
