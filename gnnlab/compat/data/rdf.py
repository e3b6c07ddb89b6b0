"""Knowledge bases with typed nodes: AIFB, MUTAG, BGS and AM, from N-Triples, without rdflib.

The archives are those of the R-GCN paper: ``NAME_stripped.nt.gz``, from which the relations that
give the labels away were taken, and tables of training and test nodes. DGL's class reads another
export of the same bases with rdflib, so counts of nodes and edges differ from DGL's; labels, split,
the category to predict and the form of the item are the same. Node types are read from URIs by a
pattern; others are ``_Other``, literals ``_Literal``, nodes without a URI ``_Blank``.

References: Schlichtkrull et al., "Modeling Relational Data with Graph Convolutional Networks", ESWC
2018. Ristoski et al., "A Collection of Benchmark Datasets …", ISWC 2016 (the splits).
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import torch

from gnnlab.compat.data.published import Published, variant
from gnnlab.compat.data.triples import graph_of_triples
from gnnlab.compat.dglfile import load_graphs
from gnnlab.errors import InvalidInput
from gnnlab.graph.io import save_graphs


class RDFGraphDataset(Published):
    """A graph with typed nodes and edges, some nodes of one type with a class.

    ``nodes[predict_category].data`` has ``label`` (also called ``labels``; −1 for nodes without a
    class), ``train_mask`` and ``test_mask``. An edge type is the last part of the relation's URI;
    with ``insert_reverse`` there is ``rev-`` of each. The graph is cached below ``save_path``.
    """

    files = ("dataset/{folder}.tgz",)
    options: ClassVar = {"print_every": 10000, "insert_reverse": True}
    predict_category: str
    pattern: str  # the node type is its first group
    columns: tuple[str, str]  # of the tables: URI and class
    label_relations: tuple[str, ...]  # they give labels away: left out

    def _cache(self) -> Path:
        return Path(
            self.save_path, f"graph_{'with' if self.option['insert_reverse'] else 'no'}_rev"
        )

    def has_cache(self) -> bool:
        """Return whether the graph was saved."""
        return self._cache().exists()

    def save(self) -> None:
        """Write the graph, so that the next time takes a second and not minutes."""
        save_graphs(self._cache(), self.graphs)

    def load(self) -> None:
        """Read what :meth:`save` wrote."""
        self.graphs = load_graphs(self._cache())[0]
        self._describe()

    def process(self) -> None:
        """Read all triples, divide the nodes into types, and read labels and split."""
        files = sorted(
            p for p in Path(self.raw_path).rglob("*") if re.search(r"\.nt(\.gz)?$", p.name)
        )
        if not files:
            raise InvalidInput(f"{self.raw_path}: no file *.nt or *.nt.gz (N-Triples)")
        g, ids = graph_of_triples(
            *(files, self._type, self.label_relations, self.option["insert_reverse"], self.verbose)
        )
        if self.predict_category not in g.ntypes:
            raise InvalidInput(f"{files[0]}: no node of type {self.predict_category}; {g.ntypes}")
        self._label(g.nodes[self.predict_category].data, ids, g)
        self.graphs = [g]
        self._describe()

    def _type(self, text: str) -> str:
        if text[:1] == '"':
            return "_Literal"
        found = re.match(self.pattern, text)
        return found[1] if found else "_Blank" if text.startswith("_:") else "_Other"

    def _label(self, data: Any, known: dict[str, int], g: Any) -> None:
        count = g.num_nodes(self.predict_category)
        label = torch.full((count,), -1)
        classes: dict[str, int] = defaultdict(lambda: len(classes))
        for part, name in (("train", "trainingSet.tsv"), ("test", "testSet.tsv")):
            frame = self.table(name, header=0, dtype=str)
            if not set(self.columns) <= set(frame):
                raise InvalidInput(f"{self.path(name)}: lacks the columns {self.columns}")
            there = frame[self.columns[0]].isin(list(known))
            if not there.all():
                warnings.warn(
                    f"{name}: {int((~there).sum())} nodes are not in the graph", stacklevel=2
                )
            found = frame[there]
            ids = torch.tensor([known[uri] for uri in found[self.columns[0]]])
            label[ids] = torch.tensor([classes[text] for text in found[self.columns[1]]])
            mask = torch.zeros(count, dtype=torch.bool)
            mask[ids] = True
            data[f"{part}_mask"] = mask
        data["label"] = data["labels"] = label

    def _describe(self) -> None:
        data = self.graphs[0].nodes[self.predict_category].data
        self.label = data["label"]
        self.num_classes = int(self.label.max()) + 1
        self.train_idx, self.test_idx = (
            data[name].nonzero().flatten() for name in ("train_mask", "test_mask")
        )


# Name → category, pattern, columns, label_relations.
_BASES: dict[str, tuple[Any, ...]] = {
    "AIFB": (
        "Personen",
        r"http://www\.aifb\.uni-karlsruhe\.de/([^/]+)/",
        ("person", "label_affiliation"),
        tuple(f"http://swrc.ontoware.org/ontology#{name}" for name in ("affiliation", "employs")),
    ),
    "MUTAG": (
        "d",
        r"http://dl-learner\.org/carcinogenesis#(d|bond)\d",
        ("bond", "label_mutagenic"),
        ("http://dl-learner.org/carcinogenesis#isMutagenic",),
    ),
    "BGS": (
        "Lexicon/NamedRockUnit",
        r"http://data\.bgs\.ac\.uk/id/(.+)/[^/]*$",
        ("rock", "label_lithogenesis"),
        ("http://data.bgs.ac.uk/ref/Lexicon/hasLithogenesis",),
    ),
    "AM": (
        "proxy",
        r"http://purl\.org/collections/nl/am/(\w+)-",
        ("proxy", "label_cateogory"),  # spelled so in the file
        tuple(f"http://purl.org/collections/nl/am/{n}" for n in ("objectCategory", "material")),
    ),
}
_members = ("predict_category", "pattern", "columns", "label_relations")
for _name, _base in _BASES.items():
    _values = dict(zip(_members, _base, strict=True))
    variant(f"{_name}Dataset", RDFGraphDataset, title=_name.lower(), **_values)
