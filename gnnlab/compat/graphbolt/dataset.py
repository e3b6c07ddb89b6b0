"""Data sets: a graph, features and tasks, of a folder with ``metadata.yaml`` or of DGL's classes.

The folder's ``metadata.yaml`` describes its files::

    graph:
      nodes: [{num: 1000}]                     # or {type: user, num: 1000} for each type
      edges: [{format: csv, path: edges.csv}]  # or with type: "user:likes:item"
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
from gnnlab.compat.graphbolt.graph import ARRAYS, FusedCSCSamplingGraph, from_dglgraph
from gnnlab.compat.graphbolt.itemset import HeteroItemSet, ItemSet
from gnnlab.compat.graphbolt.minibatch import etype_str_to_tuple
from gnnlab.errors import InvalidInput, NotFound, reading, writing
from gnnlab.graph.construct import heterograph
from gnnlab.system.staging import replacing

GRAPH, DESCRIBED = "preprocessed/fused_csc_sampling_graph.pt", "preprocessed/metadata.yaml"
_SETS = ("train_set", "validation_set", "test_set")


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
        self.yaml_data = data
        self._edge_ids = include_original_edge_id

    def load(self, tasks: str | Sequence[str] | None = None) -> OnDiskDataset:
        """Read the graph, the features and the tasks, or only those named; return the data set."""
        self.dataset_name = self.yaml_data.get("dataset_name") or self._folder.name
        described = self.yaml_data.get("graph")
        self.graph = self._read_graph(described) if described else None
        parts = self.yaml_data.get("feature_data"), (described or {}).get("feature_data")
        features = [each for part in parts for each in part or ()]
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
        known = OnDiskFeatureData.__dataclass_fields__
        own = {name: value for name, value in entry.items() if name in known}
        extra = {name: value for name, value in entry.items() if name not in known}
        path = str(self._folder / entry["path"])
        return OnDiskFeatureData(**{**own, "path": path, "extra_fields": extra})

    def _read_graph(self, described: Mapping[str, Any]) -> FusedCSCSamplingGraph:
        nodes, edges = described.get("nodes") or [], described.get("edges") or []
        made = self._folder / GRAPH
        if made.exists():
            with suppress(pickle.UnpicklingError, RuntimeError):  # one that DGL has written
                kept = torch.load(made, weights_only=True)
                if kept.pop("made of", None) == self._origin(edges):
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
        return from_dglgraph(graph, not is_typed, include_original_edge_id=self._edge_ids)

    def _origin(self, edges: Any) -> list[Any]:
        """Return what changes when the graph's files do."""
        files = "metadata.yaml", *(each["path"] for each in edges)
        found = [(self._folder / file).stat() for file in files if (self._folder / file).exists()]
        return [self._edge_ids, *((each.st_size, each.st_mtime_ns) for each in found)]

    def _preprocess(self) -> str:
        described = self.yaml_data.get("graph")
        if not described:
            raise InvalidInput(f"metadata.yaml of {self._folder} has no entry `graph`")
        import yaml

        graph = self._read_graph(described)
        kept = {name: getattr(graph, name) for name in ARRAYS}
        kept["made of"] = self._origin(described.get("edges") or ())
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
