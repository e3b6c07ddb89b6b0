"""Published data sets under DGL's names, with DGL's items: a class names its files and reads them.

No checksum of these files has been published: the SHA-256 of the first download is noted beside the
file and compared from then on, and readers check what they read. Files that are in ``raw_dir/NAME``
already, from DGL too, are not downloaded. ``$GNNLAB_DATA_URL`` names a mirror.
"""

from __future__ import annotations

import inspect
import json
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from gnnlab.compat.data.dgl_dataset import DGLDataset
from gnnlab.compat.data.trees import read_trees
from gnnlab.compat.data.utils import _get_dgl_url
from gnnlab.data.dataset import set_masks
from gnnlab.data.download import fetch, local_archive
from gnnlab.data.npz import read_matrices
from gnnlab.errors import InvalidInput, NotFound, OutOfRange, reading
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.graph import Graph
from gnnlab.graph.simple import to_bidirected
from gnnlab.graph.subgraph import node_subgraph

REQUIRED = inspect.Parameter.empty
_COMMON = {"raw_dir": None, "force_reload": False, "verbose": True, "transform": None}


class Published(DGLDataset):
    """Base of the data sets here.

    The parameters of a data set are those in its ``options``, then ``raw_dir``, ``force_reload``
    (not needed: the files are read every time), ``verbose`` and ``transform``, which takes a graph
    and returns another at every access.
    """

    title: str  # folder of the files below raw_dir
    files: tuple[str, ...] = ()  # addresses; on DGL's server if they do not start with http
    options: ClassVar[dict[str, Any]] = {}  # parameter → default, or all values, the default first
    common: ClassVar[tuple[str, ...]] = tuple(_COMMON)
    num_classes: Any
    labels: Any = None  # one for each graph: then items are pairs

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defaults = cls.options | {name: _COMMON[name] for name in cls.common}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(name, kind, default=value[0] if isinstance(value, tuple) else value)
            for name, value in defaults.items()
        ]
        cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = inspect.signature(type(self)).bind(*args, **kwargs)
        given.apply_defaults()
        values = given.arguments
        common = {name: values.pop(name, default) for name, default in _COMMON.items()}
        if not self.files:
            common["raw_dir"] = "."  # nothing is read or written
        for name, value in values.items():
            allowed = self.options[name]
            if isinstance(allowed, tuple) and value not in allowed:
                raise NotFound(f"{name} must be one of {', '.join(allowed)}; found {value!r}")
        self.option, self.graphs = dict(values), list[Graph]()
        super().__init__(self.title.format(**values), **common)

    num_labels = property(attrgetter("num_classes"), doc="Old name of num_classes.")

    def _download(self) -> None:
        folder, verbose = Path(self.raw_path), self.verbose
        for file in self.files:
            address = file.format(folder=self.name, title=self.name.capitalize(), **self.option)
            url = address if address.startswith("http") else _get_dgl_url(address)
            if url.endswith((".zip", ".tgz")):
                local_archive(url, folder, verbose, one_folder=False)
            elif not (folder / url.rsplit("/", 1)[1]).is_file():
                fetch(url, folder, progress=verbose)

    def _print(self, text: str) -> None:
        """Nothing is cached, so there is nothing to say."""

    def path(self, name: str) -> Path:
        """Return the path of a file, in the folder or below it."""
        found = sorted(Path(self.raw_path).rglob(name))
        if not found:
            raise InvalidInput(f"{self.raw_path}: no file {name}; delete the folder and try again")
        return found[0]

    def table(self, name: str, **options: Any) -> Any:
        """Read a text file into a pandas frame; columns are separated by tabs."""
        import pandas as pd

        path = self.path(name)
        try:
            return pd.read_csv(path, **({"sep": "\t", "header": None} | options))
        except (ValueError, OSError, EOFError) as error:
            raise InvalidInput(f"{path}: damaged or of another layout ({error})") from error

    def matlab(self, name: str, *needed: str) -> dict[str, Any]:
        """Read the matrices of a MATLAB file."""
        from scipy.io import loadmat

        path = self.path(name)
        try:
            content = loadmat(path, variable_names=needed)
            return {key: content[key] for key in needed}
        except KeyError as error:
            raise InvalidInput(f"{path}: lacks {error}; expected {', '.join(needed)}") from error
        except Exception as error:  # a damaged file raises nearly anything
            raise InvalidInput(f"{path}: not an intact MATLAB file ({error})") from error

    def __getitem__(self, idx: Any) -> Any:
        """Return a graph; a pair of graph and label if graphs have labels."""
        g = self.graphs[idx] if self._transform is None else self._transform(self.graphs[idx])
        return g if self.labels is None else (g, self.labels[idx])

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.graphs)


def _array(path: Path) -> np.ndarray:
    """Read one array; pickled objects are an error."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"{path}: not an intact .npy file of numbers ({error})") from error


def _checked(path: Path, ids: np.ndarray, below: int) -> torch.Tensor:
    """Return node IDs as int64 after a check of their range."""
    if ids.size and not (ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < below):
        raise InvalidInput(f"{path}: node IDs must be integers 0 … {below - 1}")
    return torch.from_numpy(ids.astype(np.int64))


class GNNBenchmarkDataset(Published):
    """Co-purchase, co-author and citation graphs of Shchur et al., without a split.

    ``ndata["feat"]``, ``ndata["label"]``; edges in both directions. References: Shchur et al.,
    "Pitfalls of Graph Neural Network Evaluation", 2018.
    """

    def process(self) -> None:
        """Read the file of two sparse matrices."""
        src, dst, feat, label = read_matrices(self.path("*.npz"))
        g = to_bidirected(graph((src, dst), num_nodes=len(label)))
        g.ndata["feat"], g.ndata["label"] = torch.from_numpy(feat), torch.from_numpy(label)
        self.graphs, self.num_classes = [g], int(label.max()) + 1


def variant(name: str, base: type, **members: Any) -> None:
    """Define a data set in the module of ``base``: another entry of the same kind."""
    module = sys.modules[base.__module__]
    members |= {"__module__": base.__module__, "__doc__": base.__doc__}
    setattr(module, name, type(name, (base,), members))


for _name, _title, _file in (
    ("CoraFullDataset", "cora_full", "cora_full"),
    ("CoauthorCSDataset", "coauthor_cs", "ms_academic_cs"),
    ("CoauthorPhysicsDataset", "coauthor_physics", "ms_academic_phy"),
    ("AmazonCoBuyComputerDataset", "amazon_co_buy_computer", "amazon_electronics_computers"),
    ("AmazonCoBuyPhotoDataset", "amazon_co_buy_photo", "amazon_electronics_photo"),
):
    _url = f"https://github.com/shchur/gnn-benchmark/raw/master/data/npz/{_file}.npz"
    variant(_name, GNNBenchmarkDataset, title=_title, files=(_url,))


class FraudDataset(Published):
    """Reviews (yelp) or users (amazon), normal or fraudulent, joined by three kinds of edges.

    ``ndata["feature"]``, ``ndata["label"]`` and masks of a random split; amazon's first 3,305 nodes
    have no label and are in no mask. References: Dou et al., CIKM 2020.
    """

    title = "{name}"
    files = ("dataset/Fraud{title}.zip",)
    options: ClassVar = {
        "name": ("yelp", "amazon"),
        "raw_dir": None,
        "random_seed": 717,
        "train_size": 0.7,
        "val_size": 0.1,
    }
    num_classes = 2

    def process(self) -> None:
        """Read the MATLAB file and draw the split."""
        node, kinds, first = {
            "yelp": ("review", ("rsr", "rtr", "rur"), 0),
            "amazon": ("user", ("upu", "usu", "uvu"), 3305),
        }[self.name]
        names = [f"net_{kind}" for kind in kinds]
        content, option = self.matlab("*.mat", *names, "features", "label"), self.option
        label = torch.from_numpy(np.asarray(content["label"]).reshape(-1).astype(np.int64))
        edges = {(node, name, node): content[name].nonzero() for name in names}
        g = heterograph(edges, {node: len(label)})
        features = content["features"].astype(np.float32).toarray()
        g.ndata["feature"], g.ndata["label"] = torch.from_numpy(features), label
        order = np.random.RandomState(option["random_seed"]).permutation(len(label) - first)
        ids = torch.from_numpy(order + first)
        train = int(option["train_size"] * len(ids))
        val = len(ids) - int(option["val_size"] * len(ids))
        set_masks(g.ndata, (ids[:train], ids[val:], ids[train:val]))
        self.graphs = [g]


_options = {name: value for name, value in FraudDataset.options.items() if name != "name"}
for _title in ("yelp", "amazon"):
    variant(f"Fraud{_title.capitalize()}Dataset", FraudDataset, title=_title, options=_options)


class PPIDataset(Published):
    """Proteins and their interactions in 24 tissues, a graph each: 20 to train, 2 and 2 others.

    ``ndata["feat"]`` and ``ndata["label"]``, float32: 121 labels of 0 or 1 a node. References:
    Zitnik and Leskovec, "Predicting multicellular function", Bioinformatics 2017.
    """

    title, num_classes = "ppi", 121
    files = ("dataset/ppi.zip",)
    options: ClassVar = {"mode": ("train", "valid", "test")}

    def process(self) -> None:
        """Read the graph of one mode and divide it into tissues."""
        mode = self.option["mode"]
        names = [f"{mode}_{part}.npy" for part in ("feats", "labels", "graph_id")]
        feat, label, tissue = (_array(self.path(name)) for name in names)
        if not len(feat) == len(label) == len(tissue):
            raise InvalidInput(f"{self.path(names[0])}: {names} must have one row for each node")
        path = self.path(f"{mode}_graph.json")
        try:
            content = json.loads(path.read_text("utf-8-sig"))
            pairs = np.array([(link["source"], link["target"]) for link in content["links"]])
            both_ways = not content.get("directed", False)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path}: not a graph in networkx's JSON ({error})") from error
        pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]) if both_ways else pairs, axis=0)
        src, dst = (_checked(path, ends, len(feat)) for ends in pairs.T)
        whole = graph((src, dst), num_nodes=len(feat))
        whole.ndata["feat"], whole.ndata["label"] = (
            torch.from_numpy(values.astype(np.float32)) for values in (feat, label)
        )
        masks = (torch.from_numpy(tissue == number) for number in np.unique(tissue))
        self.graphs = [node_subgraph(whole, mask) for mask in masks]


class QM7bDataset(Published):
    """7,211 molecules, 14 properties of each; an edge is an entry of the Coulomb matrix.

    ``edata["h"]``, shape (E, 1), float32; labels have shape (14,). References: Montavon et al.,
    New Journal of Physics 15, 2013.
    """

    title, num_classes, num_tasks = "qm7b", 14, 14
    files = ("dataset/qm7b.mat",)

    def process(self) -> None:
        """Read the MATLAB file."""
        content = self.matlab("qm7b.mat", "X", "T")
        self.labels = self.label = torch.from_numpy(content["T"].astype(np.float32))
        for matrix in content["X"]:
            src, dst = matrix.nonzero()
            g = graph((src, dst), num_nodes=max(src.max(), dst.max()) + 1)
            g.edata["h"] = torch.from_numpy(matrix[src, dst].reshape(-1, 1).astype(np.float32))
            self.graphs.append(g)


class WikiCSDataset(Published):
    """11,701 articles on computer science, joined by links in both directions; 10 classes.

    ``ndata["feat"]`` (N, 300), ``ndata["label"]``; ``ndata["train_mask"]``, ``"val_mask"`` and
    ``"stopping_mask"`` (N, 20), one column per split; ``ndata["test_mask"]`` (N,). References:
    Mernyei and Cangea, "Wiki-CS: A Wikipedia-Based Benchmark for Graph Neural Networks", 2020.
    """

    title, num_classes = "wiki_cs", 10
    files = ("dataset/wiki_cs.zip",)

    def process(self) -> None:
        """Read the JSON file."""
        path = self.path("data.json")
        try:
            content = json.loads(path.read_text("utf-8"))
            label = torch.tensor(content["labels"])
            links = [(i, j) for i, ends in enumerate(content["links"]) for j in ends]
            g = to_bidirected(graph(links, num_nodes=len(label)))
            g.ndata["feat"] = torch.tensor(content["features"], dtype=torch.float32)
            g.ndata["label"] = label
            for name in ("train", "val", "stopping"):
                columns = torch.tensor(content[f"{name}_masks"], dtype=torch.bool)
                g.ndata[f"{name}_mask"] = columns.T.contiguous()
            g.ndata["test_mask"] = torch.tensor(content["test_mask"], dtype=torch.bool)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise InvalidInput(f"{path}: damaged or of another layout ({error})") from error
        self.graphs = [g]


class BitcoinOTCDataset(Published):
    """Who trusts whom on Bitcoin OTC: graph i has the ratings of the first i + 1 fortnights.

    ``edata["h"]``, shape (E, 1), −10 … 10. References: Kumar et al., ICDM 2016.
    """

    title, is_temporal = "bitcoinotc", True
    files = ("https://snap.stanford.edu/data/soc-sign-bitcoinotc.csv.gz",)

    def process(self) -> None:
        """Read the table of ratings."""
        data = self.table("soc-sign-bitcoinotc.csv.gz", sep=",").to_numpy()
        nodes, ends = np.unique(data[:, :2], return_inverse=True)
        ends = ends.reshape(-1, 2)
        fortnight = ((data[:, 3] - data[:, 3].min()) // (14 * 86400)).astype(np.int64)
        for last in range(fortnight.max()):
            rows = fortnight <= last
            g = graph(tuple(torch.from_numpy(ends[rows]).T), num_nodes=len(nodes))
            g.edata["h"] = torch.from_numpy(data[rows, 2:3].astype(np.int64))
            self.graphs.append(g)


class GDELTDataset(Published):
    """Events between actors: graph t has those of the first t + 1 quarters of an hour.

    ``edata["rel_type"]``, shape (E, 1), int64. References: Leetaru and Schrodt, 2013; the files
    are those of Jin et al., "Recurrent Event Network", EMNLP 2020.
    """

    title, is_temporal, num_nodes = "GDELT", True, 23033
    files = ("https://github.com/INK-USC/RE-Net/raw/master/data/GDELT/{mode}.txt",)
    options: ClassVar = {"mode": ("train", "valid", "test")}

    def process(self) -> None:
        """Read the table of events: actor, relation, actor, minute."""
        name = f"{self.option['mode']}.txt"
        self.data = self.table(name).to_numpy()[:, :4].astype(np.int64)
        _checked(self.path(name), self.data[:, [0, 2]], self.num_nodes)
        self.time = self.data[:, 3] // 15
        self.start_time, self.end_time = int(self.time.min()), int(self.time.max())

    def __len__(self) -> int:
        """Return the number of quarters of an hour."""
        return self.end_time - self.start_time + 1

    def __getitem__(self, t: int) -> Graph:
        """Return the graph of all events until time t, counted from the first."""
        if not 0 <= t < len(self):
            raise OutOfRange(f"{self.name} has the times 0 … {len(self) - 1}; found {t}")
        rows = self.data[self.time <= t + self.start_time]
        ends = (torch.from_numpy(rows[:, 0]), torch.from_numpy(rows[:, 2]))
        g = graph(ends, num_nodes=self.num_nodes)
        g.edata["rel_type"] = torch.from_numpy(rows[:, 1:2])
        return g if self._transform is None else self._transform(g)


class KnowledgeGraphDataset(Published):
    """Facts (head, relation, tail) in one graph; ``reverse`` adds each in the other direction.

    ``edata["etype"]``: relation, plus ``num_rels`` for an added edge; ``train_mask``, ``val_mask``
    and ``test_mask``: the facts of each file; ``train_edge_mask``, ``valid_edge_mask`` and
    ``test_edge_mask``: with the added edges. ``train``, ``valid``, ``test``: shape (facts, 3).
    References: Toutanova and Chen, 2015 (FB15k-237); Bordes et al., NIPS 2013 (FB15k, WN18).
    """

    title = "{name}"
    options: ClassVar = {"name": ("FB15k-237", "FB15k", "wn18"), "reverse": True}
    files = ("dataset/{folder}.tgz",)

    def process(self) -> None:
        """Read the dictionaries and the three files of facts."""
        import pandas as pd

        text = {"dtype": str, "quoting": 3, "na_filter": False}
        known = {}
        for what in ("entities", "relations"):
            frame = self.table(f"{what}.dict", **text)
            if list(frame[0]) != [str(i) for i in range(len(frame))] or frame[1].duplicated().any():
                raise InvalidInput(f"{self.path(f'{what}.dict')}: expected 0, 1, 2 … and new names")
            known[what] = pd.Index(frame[1])
        facts = []
        for part in ("train", "valid", "test"):
            frame = self.table(f"{part}.txt", **text)
            columns = ("entities", "relations", "entities")
            ids = [known[what].get_indexer(frame[i]) for i, what in enumerate(columns)]
            found = np.stack(ids, axis=1)
            if (found < 0).any():
                row, column = (int(place[0]) for place in (found < 0).nonzero())
                raise InvalidInput(
                    f"{self.path(f'{part}.txt')}, line {row + 1}: {frame.iloc[row, column]!r} is "
                    f"not in {columns[column]}.dict"
                )
            facts.append(found)
        self.train, self.valid, self.test = facts
        self.num_nodes, self.num_rels = len(known["entities"]), len(known["relations"])
        self.num_classes = None
        of = np.repeat([0, 1, 2], [len(each) for each in facts])
        (head, relation, tail), added = np.concatenate(facts).T, np.zeros(len(of), bool)
        if self.option["reverse"]:
            head, tail = np.concatenate([head, tail]), np.concatenate([tail, head])
            relation = np.concatenate([relation, relation + self.num_rels])
            of, added = np.tile(of, 2), np.repeat([False, True], len(of))
        g = graph((torch.from_numpy(head), torch.from_numpy(tail)), num_nodes=self.num_nodes)
        g.edata["etype"] = torch.from_numpy(relation)
        for number, name in enumerate(("train", "valid", "test")):
            g.edata[f"{name}_edge_mask"] = torch.from_numpy(of == number)
            short = name.replace("valid", "val")
            g.edata[f"{short}_mask"] = torch.from_numpy((of == number) & ~added)
        g.ndata["ntype"] = torch.zeros(self.num_nodes, dtype=torch.int64)
        self.graphs = [g]


for _name, _title in (("FB15k237", "FB15k-237"), ("FB15k", "FB15k"), ("WN18", "wn18")):
    variant(f"{_name}Dataset", KnowledgeGraphDataset, title=_title, options={"reverse": True})


class SSTDataset(Published):
    """Sentences of film reviews as trees; edges go from a phrase to the one that it is part of.

    ``ndata["x"]``: number of the word, −1 for phrases and unknown words; ``ndata["y"]``: 0 (very
    negative) … 4; ``ndata["mask"]``: 1 for words. Node 0 is the sentence. ``vocab`` has the words,
    ``pretrained_emb`` vectors of ``glove_embed_file``. References: Socher et al., EMNLP 2013.
    """

    title, num_classes = "sst", 5
    files = ("dataset/sst.zip",)
    PAD_WORD = UNK_WORD = -1
    options: ClassVar = {
        "mode": ("train", "dev", "test", "tiny"),
        "glove_embed_file": None,
        "vocab_file": None,
    }

    def process(self) -> None:
        """Read the words and the trees of one mode."""
        vocab = Path(self.option["vocab_file"] or self.path("vocab.txt"))
        with reading(vocab, InvalidInput):
            words = vocab.read_text("utf-8-sig")
        self.vocab = {word.strip(): i for i, word in enumerate(words.splitlines())}
        self.vocab_size = len(self.vocab)
        trees = self.path(f"{self.option['mode']}.txt")
        for rows in read_trees(trees, self.vocab, self.UNK_WORD):
            g = graph((torch.arange(1, len(rows)), rows[1:, 3]), num_nodes=len(rows))
            g.ndata["x"], g.ndata["y"], g.ndata["mask"] = rows[:, :3].T.clone()
            self.graphs.append(g)
        self.pretrained_emb = self._vectors(self.option["glove_embed_file"])

    def _vectors(self, file: str | None) -> torch.Tensor | None:
        """Return a vector of each word; small random numbers for words that the file lacks."""
        if file is None:
            return None
        rows = {}
        with reading(file, InvalidInput), open(file, encoding="utf-8-sig") as lines:
            for line in lines:
                word, *numbers = line.rstrip().split(" ")
                if word.lower() in self.vocab:
                    rows[self.vocab[word.lower()]] = [float(number) for number in numbers]
        found = np.random.RandomState(0).uniform(-0.05, 0.05, (self.vocab_size, len(numbers)))
        found[list(rows)] = list(rows.values())
        return torch.from_numpy(found.astype(np.float32))
