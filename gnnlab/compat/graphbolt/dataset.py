"""Data sets: a graph, features and tasks, of a folder with ``metadata.yaml`` or of DGL's classes.

The folder's ``metadata.yaml`` describes its files::

    graph:
      nodes: [{num: 1000}]                     # or {type: user, num: 1000} for each type
      edges: [{format: csv, path: edges.csv}]  # or with type: "user:likes:item"
      feature_data:                            # attributes, such as weights for `prob_name`
        - {domain: edge, name: weight, format: numpy, path: weight.npy}
    feature_data:
      - {domain: node, name: feat, format: numpy, in_memory: true, path: feat.npy}
    tasks:
      - name: node_classification
        train_set:
          - data: [{name: seeds, format: numpy, path: train.npy}, {name: labels, ...}]

See DGL's user guide (2.x), chapter 6, "Composing OnDiskDataset from raw data".
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.compat.graphbolt.features import (
    BasicFeatureStore,
    FeatureStore,
    TorchBasedFeature,
    TorchBasedFeatureStore,
    read_array,
    wide,
)
from gnnlab.compat.graphbolt.graph import (
    ARRAYS,
    ORIGINAL_EDGE_ID,
    FusedCSCSamplingGraph,
    from_dglgraph,
)
from gnnlab.compat.graphbolt.itemset import HeteroItemSet, ItemSet
from gnnlab.compat.graphbolt.minibatch import etype_str_to_tuple
from gnnlab.errors import InvalidInput, NotFound, reading, writing
from gnnlab.graph.construct import heterograph
from gnnlab.system.staging import replacing

GRAPH, DESCRIBED = "preprocessed/fused_csc_sampling_graph.pt", "preprocessed/metadata.yaml"
_SETS = ("train_set", "validation_set", "test_set")
_ENTRIES = {"dataset_name", "graph", "feature_data", "tasks", "include_original_edge_id"}


@dataclass
class Task:
    """A task of a data set: metadata, and item sets for training, validation and test."""

    metadata: Mapping[str, Any]
    train_set: Any
    validation_set: Any
    test_set: Any


class Dataset:
    """A graph, its features and tasks."""

    graph: FusedCSCSamplingGraph | None
    feature: FeatureStore
    tasks: list[Task]
    dataset_name: str

    @property
    def all_nodes_set(self) -> Any:
        """All nodes, with the name "seeds", for inference."""
        if self.graph is None:
            return None
        counts = self.graph.num_nodes
        if isinstance(counts, int):
            return ItemSet(counts, names="seeds")
        return HeteroItemSet({n: ItemSet(count, names="seeds") for n, count in counts.items()})


@dataclass
class OnDiskFeatureData:
    """A feature as ``metadata.yaml`` describes it."""

    domain: str
    name: str
    path: str
    type: str | None = None
    format: str = "numpy"
    in_memory: bool = True
    extra_fields: dict[str, Any] = field(default_factory=dict)


class OnDiskDataset(Dataset):
    """The data set of a folder with ``metadata.yaml``; see :mod:`gnnlab.compat.graphbolt.dataset`.

    ``include_original_edge_id`` keeps edge IDs, in the order of the files, as an edge attribute;
    edge features need it. Files are read as they are, but for a graph that
    :func:`preprocess_ondisk_dataset` has written. Other options have no effect.
    """

    def __init__(self, path: str, include_original_edge_id: bool = False, **options: Any) -> None:
        import yaml

        self._folder = Path(path)
        file, inner = (self._folder / each for each in ("metadata.yaml", DESCRIBED))
        file = inner if inner.exists() and not file.exists() else file
        with reading(file, InvalidInput):
            text = file.read_text("utf8")
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidInput(f"{file} is not YAML: {error}") from error
        if not isinstance(data, dict) or "graph_topology" in data:
            what = "what DGL has made of another one: give that" if data else "no data set"
            raise InvalidInput(f"{file} describes {what}; an entry `graph` has `nodes` and `edges`")
        if unknown := data.keys() - _ENTRIES:
            known = ", ".join(sorted(_ENTRIES))
            warnings.warn(f"{file}: {sorted(unknown)} is ignored; known are {known}", stacklevel=2)
        self.yaml_data = data
        self._edge_ids = include_original_edge_id

    def load(self, tasks: str | Sequence[str] | None = None) -> OnDiskDataset:
        """Read the graph, the features and the tasks, or only those named; return the data set."""
        self.dataset_name = self.yaml_data.get("dataset_name") or self._folder.name
        described = self.yaml_data.get("graph")
        self.graph = self._read_graph(described) if described else None
        features = self.yaml_data.get("feature_data") or ()
        self.feature = TorchBasedFeatureStore([self._described(each) for each in features])
        wanted = [tasks] if isinstance(tasks, str) else tasks
        found = self.yaml_data.get("tasks") or []
        names = [each.get("name") for each in found]
        if missing := set(wanted or ()) - set(names):
            raise NotFound(f"there is no task {sorted(missing)}; there are {names}")
        self.tasks = []
        for each in found if wanted is None else (x for x in found if x.get("name") in wanted):
            metadata = {key: value for key, value in each.items() if key not in _SETS}
            self.tasks.append(Task(metadata, *(self._read_set(each.get(name)) for name in _SETS)))
        return self

    def _described(self, entry: Mapping[str, Any]) -> OnDiskFeatureData:
        missing = {"domain", "name", "path"} - entry.keys()
        if missing:
            raise InvalidInput(f"feature_data needs {sorted(missing)}; found {dict(entry)}")
        if entry["domain"] not in ("node", "edge"):
            raise InvalidInput(f"the domain of a feature is node or edge; found {dict(entry)}")
        known = OnDiskFeatureData.__dataclass_fields__
        own = {name: value for name, value in entry.items() if name in known}
        extra = {name: value for name, value in entry.items() if name not in known}
        path = str(self._folder / entry["path"])
        return OnDiskFeatureData(**{**own, "path": path, "extra_fields": extra})

    def _read_graph(self, described: Mapping[str, Any]) -> FusedCSCSamplingGraph:
        nodes, edges = described.get("nodes") or [], described.get("edges") or []
        attributes = [self._described(each) for each in described.get("feature_data") or ()]
        stored = self._folder / GRAPH
        if stored.exists():
            with suppress(pickle.UnpicklingError, RuntimeError):  # one that DGL has written
                kept = torch.load(stored, weights_only=True)
                if kept.pop("made of", None) == self._origin(described):
                    return FusedCSCSamplingGraph(**kept)
        is_typed = any(each.get("type") for each in (*nodes, *edges))
        sizes = {each.get("type") or "_N": int(each["num"]) for each in nodes}
        relations = {}
        for each in edges:
            name = each.get("type") or "_N:_E:_N"
            pairs = read_array(self._folder / each["path"], each.get("format", "csv"))
            if pairs.ndim != 2 or 2 not in pairs.shape:
                raise InvalidInput(f"{each['path']} has shape {pairs.shape}, not (2, E) or (E, 2)")
            is_by_edge = pairs.shape[0] != 2 or each.get("format", "csv") == "csv"
            src, dst = pairs.T if is_by_edge else pairs
            relations[etype_str_to_tuple(name)] = tuple(
                torch.from_numpy(np.ascontiguousarray(x)).long() for x in (src, dst)
            )
        graph = heterograph(relations, sizes)
        made = from_dglgraph(graph, not is_typed, include_original_edge_id=True)
        for key in dict.fromkeys((each.domain, each.name) for each in attributes):
            own = {each.type: each for each in attributes if (each.domain, each.name) == key}
            _add_attribute(made, *key, own)
        if not self._edge_ids:
            del made.edge_attributes[ORIGINAL_EDGE_ID]  # type: ignore[index, union-attr]
        return made

    def _origin(self, described: Mapping[str, Any]) -> list[Any]:
        """Return what changes when the graph's files do."""
        parts = described.get("edges") or [], described.get("feature_data") or []
        files = "metadata.yaml", *(each["path"] for part in parts for each in part)
        found = [(self._folder / file).stat() for file in files if (self._folder / file).exists()]
        return [self._edge_ids, *((each.st_size, each.st_mtime_ns) for each in found)]

    def _preprocess(self) -> str:
        described = self.yaml_data.get("graph")
        if not described:
            raise InvalidInput(f"metadata.yaml of {self._folder} has no entry `graph`")
        import yaml

        graph = self._read_graph(described)
        kept = {name: getattr(graph, name) for name in ARRAYS}
        kept["made of"] = self._origin(described)
        told = {name: value for name, value in self.yaml_data.items() if name != "graph"}
        told["include_original_edge_id"] = self._edge_ids
        told["graph_topology"] = {"type": type(graph).__name__, "path": GRAPH}
        path = self._folder / DESCRIBED
        with writing(path, InvalidInput):
            path.parent.mkdir(exist_ok=True)
            with replacing(self._folder / GRAPH) as file:
                torch.save(kept, file)
            path.write_text(yaml.safe_dump(told))
        return str(path)

    def _read_set(self, described: Any) -> Any:
        found = {}
        for each in described or ():
            columns = tuple(
                torch.from_numpy(read_array(self._folder / d["path"], d.get("format", "numpy")))
                for d in each["data"]
            )
            names = tuple(d.get("name") for d in each["data"])
            found[each.get("type")] = ItemSet(columns, None if None in names else names)
        if None in found:
            return found[None]
        return HeteroItemSet(found) if found else None


def _add_attribute(
    graph: FusedCSCSamplingGraph,
    domain: str,
    name: str,
    described: Mapping[str | None, OnDiskFeatureData],
) -> None:
    """Give a graph an attribute, whose rows stand in files, one of each type."""
    found: Any = graph.num_nodes if domain == "node" else graph.num_edges
    sizes = found if isinstance(found, dict) else {None: found}
    if sizes.keys() != described.keys():
        raise InvalidInput(
            f"the graph's feature_data has {domain} {name!r} for the types {list(described)}; an "
            f"attribute has rows for {list(sizes)}"
        )
    parts = []
    for kind, size in sizes.items():  # in the order of the types' numbers
        each = described[kind]
        parts.append(torch.from_numpy(read_array(each.path, each.format)))
        if len(parts[-1]) != size:
            raise InvalidInput(f"{each.path} has {len(parts[-1])} rows, not {size}")
    rows = torch.cat(parts)
    if domain == "node":
        graph.add_node_attribute(name, rows)
        return
    ids = graph.edge_attribute(ORIGINAL_EDGE_ID).long()
    if graph.type_per_edge is not None:
        starts = np.cumsum([0, *sizes.values()])
        ids = ids + torch.from_numpy(starts)[graph.type_per_edge.long()]
    graph.add_edge_attribute(name, rows[ids])


def preprocess_ondisk_dataset(
    dataset_dir: str, include_original_edge_id: bool = False, **options: Any
) -> str:
    """Keep the graph of a folder as :class:`OnDiskDataset` reads it fastest.

    It is in ``preprocessed/``, and used until ``metadata.yaml`` or a file of edges changes; other
    files stay where they are. Returns the path of a description with ``graph_topology``.
    """
    return OnDiskDataset(dataset_dir, include_original_edge_id)._preprocess()


class LegacyDataset(Dataset):
    """A data set of DGL's older interface for node classification, such as ``CoraGraphDataset``."""

    def __init__(self, legacy: Any) -> None:
        g = legacy[0]
        if len(legacy) != 1 or not g.is_homogeneous:
            raise InvalidInput("LegacyDataset takes a data set of one graph without types")
        data = dict(g.ndata)
        sets = []
        for name in ("train", "val", "test"):
            chosen = getattr(legacy, f"{name}_idx", None)
            if chosen is None:
                if f"{name}_mask" not in data:
                    raise InvalidInput(f"the data set has neither {name}_idx nor {name}_mask")
                chosen = data[f"{name}_mask"].nonzero().flatten()
            sets.append(ItemSet((chosen, data["label"][chosen]), names=("seeds", "labels")))
        classes = getattr(legacy, "num_classes", None)
        metadata = {"name": "node_classification", "num_classes": classes}
        self.tasks = [Task(metadata, *sets)]
        self.dataset_name = getattr(legacy, "name", type(legacy).__name__)
        self.feature = BasicFeatureStore(
            {("node", None, name): TorchBasedFeature(wide(x)) for name, x in data.items()}
        )
        self.graph = from_dglgraph(g, is_homogeneous=True)


class BuiltinDataset(LegacyDataset):
    """A data set by name, as "cora" or "ogbn-arxiv", downloaded from where its authors keep it.

    It is kept in the folder ``root``, by default that of ``gnnlab.data.data_home()``.
    """

    def __init__(self, name: str, root: str | None = None) -> None:
        from gnnlab.data import DATASETS, load

        if name not in DATASETS:
            raise NotFound(
                f"there is no data set {name!r} here; there are {', '.join(sorted(DATASETS))}. For "
                "others, unpack DGL's archive and open it by OnDiskDataset"
            )
        super().__init__(load(name, folder=None if root is None else Path(root) / name))

    def load(self, tasks: Any = None) -> BuiltinDataset:
        """Return the data set, which is loaded already."""
        return self
