"""AIFB, MUTAG, BGS and AM on toys of the same layout, with every form of N-Triples."""

import gzip

import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.compat.data.triples import read_triples
from gnnlab.errors import InvalidInput
from tests.compat.test_data_sets import SILENT, mirror, pairs
from tests.data.samples import tarred
from tests.data.test_download import server

__all__ = ["mirror", "server"]
pytestmark = pytest.mark.timeout(60)

P = "http://www.aifb.uni-karlsruhe.de/Personen/viewPersonOWL/id{}instance"
WORD = "http://swrc.ontoware.org/ontology#"
TOPIC = "http://www.aifb.uni-karlsruhe.de/Forschungsgebiete/viewTopic/id9"
TRIPLES = f"""# people
<{P.format(1)}> <{WORD}knows> <{P.format(2)}> .
<{P.format(2)}> <{WORD}knows> <{P.format(3)}> .
<{P.format(1)}> <{WORD}knows> <{P.format(2)}> .
<{P.format(3)}> <{WORD}worksOn> <{TOPIC}> .
<{P.format(1)}> <{WORD}name> "Ann \\"A\\" <x> ." .
<{P.format(2)}> <{WORD}name> "Bob"@en .
_:b1 <{WORD}knows> <{P.format(3)}> .
<{P.format(2)}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{WORD}Person> .

<{P.format(1)}> <{WORD}affiliation> <http://a> .
"""
TRAIN = f"id\tperson\tlabel_affiliation\n1\t{P.format(3)}\thttp://x\n2\t{P.format(1)}\thttp://y\n"
TEST = f"id\tperson\tlabel_affiliation\n3\t{P.format(2)}\thttp://x\n"


def archive(triples=TRIPLES, train=TRAIN, test=TEST):
    return tarred(
        {
            "aifb_stripped.nt.gz": gzip.compress(triples.encode()),
            "trainingSet.tsv": train,
            "testSet.tsv": test,
        }
    )


def test_aifb(mirror):
    mirror.files["aifb.tgz"] = archive()
    dataset = dgl.data.AIFBDataset(**SILENT)
    g = dataset[0]
    assert dataset.predict_category == "Personen" and dataset.num_classes == 2
    sizes = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    assert sizes == {"Forschungsgebiete": 1, "Personen": 3, "_Blank": 1, "_Literal": 2, "_Other": 1}
    assert g.canonical_etypes == sorted(
        edge
        for u, name, v in [
            ("Personen", "ontology#knows", "Personen"),
            ("Personen", "ontology#worksOn", "Forschungsgebiete"),
            ("Personen", "ontology#name", "_Literal"),
            ("_Blank", "ontology#knows", "Personen"),
            ("Personen", "22-rdf-syntax-ns#type", "_Other"),
        ]
        for edge in [(u, name, v), (v, f"rev-{name}", u)]
    )
    knows = ("Personen", "ontology#knows", "Personen")
    assert pairs(g, knows) == [(0, 1), (1, 2)]
    assert pairs(g, ("Personen", "rev-ontology#knows", "Personen")) == [(1, 0), (2, 1)]
    data = g.nodes["Personen"].data
    assert data["labels"].tolist() == data["label"].tolist() == [1, 0, 0]
    assert data["train_mask"].tolist() == [True, False, True]
    assert dataset.train_idx.tolist() == [0, 2] and dataset.test_idx.tolist() == [1]


def test_second_time_from_the_cache(mirror, monkeypatch):
    mirror.files["aifb.tgz"] = archive()
    first = dgl.data.AIFBDataset(**SILENT)
    plain = dgl.data.AIFBDataset(insert_reverse=False, **SILENT)
    assert len(plain[0].canonical_etypes) == 5
    monkeypatch.setattr("gnnlab.compat.data.triples.read_triples", None)
    again = dgl.data.AIFBDataset(**SILENT)
    assert again[0].canonical_etypes == first[0].canonical_etypes
    assert again.num_classes == 2 and torch.equal(again.train_idx, first.train_idx)
    assert len(mirror.ranges) == 1


def test_nodes_that_are_missing(mirror):
    more = TEST + "4\thttp://nobody\thttp://x\n"
    mirror.files["aifb.tgz"] = archive(test=more)
    with pytest.warns(UserWarning, match=r"testSet.tsv: 1 "):
        assert dgl.data.AIFBDataset(**SILENT).test_idx.tolist() == [1]
    mirror.files["mutag.tgz"] = archive()
    with pytest.raises(InvalidInput, match="type d;"):
        dgl.data.MUTAGDataset(**SILENT)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"triples": TRIPLES + "<a> <b> .\n"}, "nt.gz, line 12.*'<a> <b>"),
        ({"triples": TRIPLES + '<a> <b> "c .\n'}, "line 12"),
        ({"train": TRAIN.replace("person", "who")}, r"trainingSet.tsv.*'person'"),
    ],
)
def test_damaged(mirror, change, says):
    mirror.files["aifb.tgz"] = archive(**change)
    with pytest.raises(InvalidInput, match=says):
        dgl.data.AIFBDataset(**SILENT)


def test_cut_off(tmp_path):
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(TRIPLES.encode())[:-12])
    with pytest.raises(InvalidInput, match=r"a.nt.gz, after line \d+"):
        list(read_triples(tmp_path / "a.nt.gz"))
    (tmp_path / "b.nt").write_text('<a> <b> "c\\"d"^^<http://int> . # end\n_:x <b> _:y .\n')
    assert list(read_triples(tmp_path / "b.nt")) == [("a", "b", '"c\\"d'), ("_:x", "b", "_:y")]
