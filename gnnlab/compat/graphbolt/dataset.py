"""Data sets: a graph, features and tasks, of a folder with ``metadata.yaml`` or of DGL's classes.

The folder's ``metadata.yaml`` describes its files::

    dataset_name: mine
    graph:
      nodes: [{num: 1000}]                     # or {type: user, num: 1000} for each type
      edges: [{format: csv, path: edges.csv}]  # or with type: "user:likes:item"
    feature_data:
      - {domain: node, name: feat, format: numpy, in_memory: true, path: feat.npy}
    tasks:
      - name: node_classification
        num_classes: 10
        train_set:
          - data: [{name: seeds, format: numpy, path: train.npy}, {name: labels, ...}]

References
----------
DGL user guide (2.x), chapter 6, "Composing OnDiskDataset from raw data".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gnnlab.compat.graphbolt.features import (
    BasicFeatureStore,
    FeatureStore,
    TorchBasedFeature,
    TorchBasedFeatureStore,
)
from gnnlab.compat.graphbolt.graph import FusedCSCSamplingGraph, from_dglgraph
from gnnlab.compat.graphbolt.itemset import HeteroItemSet, ItemSet
from gnnlab.compat.graphbolt.minibatch import etype_str_to_tuple
from gnnlab.errors import InvalidInput, NotFound, reading
from gnnlab.graph.construct import heterograph

__all__ = ["BuiltinDataset", "Dataset", "LegacyDataset", "OnDiskDataset", "Task"]

_SETS = ("train_set", "validation_set", "test_set")


class Task:
    """A task of a data set: item sets for training, validation and test.

    Attributes
    ----------
    metadata : dict
        For example ``name`` and ``num_classes``.
    train_set, validation_set, test_set : ItemSet, HeteroItemSet or None
    """

    def __init__(
        self, metadata: Mapping[str, Any], train_set: Any, validation_set: Any, test_set: Any
    ) -> None:
        self.metadata = dict(metadata)
        self.train_set, self.validation_set, self.test_set = train_set, validation_set, test_set

    def __repr__(self) -> str:
        names = ("metadata", *_SETS)
        return f"Task({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


class Dataset:
    """A graph, its features and tasks.

    Attributes
    ----------
    graph : FusedCSCSamplingGraph
    feature : FeatureStore
    tasks : list of Task
    dataset_name : str
    all_nodes_set : ItemSet or HeteroItemSet
        All nodes, for inference.
    """

    graph: FusedCSCSamplingGraph
    feature: FeatureStore
    tasks: list[Task]
    dataset_name: str

    @property
    def all_nodes_set(self) -> Any:
        """All nodes, with the name "seeds"."""
        counts = self.graph.num_nodes
        if isinstance(counts, int):
            return ItemSet(counts, names="seeds")
        return HeteroItemSet({n: ItemSet(count, names="seeds") for n, count in counts.items()})


class OnDiskDataset(Dataset):
    """The data set of a folder with ``metadata.yaml``; see :mod:`gnnlab.compat.graphbolt.dataset`.

    Parameters
    ----------
    path : str
    include_original_edge_id : bool
        Keep edge IDs, in the order of the files, as an edge attribute; edge features need it.
    force_preprocess, auto_cast_to_optimal_dtype
        Accepted for DGL's signature: files are read as they are, nothing is written.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb
    >>> dataset = gb.OnDiskDataset("folder").load()  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str,
        include_original_edge_id: bool = False,
        force_preprocess: bool | None = None,
        auto_cast_to_optimal_dtype: bool = True,
    ) -> None:
        import yaml

        self._folder = Path(path)
        file = self._folder / "metadata.yaml"
        with reading(file, InvalidInput):
            text = file.read_text("utf8")
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidInput(f"{file} is not YAML: {error}") from error
        if not isinstance(data, dict) or not isinstance(data.get("graph"), dict):
            more = ""
            if isinstance(data, dict) and "graph_topology" in data:
                more = "; it is what DGL has made of another one: give the folder above"
            raise InvalidInput(f"{file} has no entry `graph` with `nodes` and `edges`{more}")
        self.yaml_data = data
        self._edge_ids = include_original_edge_id

    def load(self, tasks: str | Sequence[str] | None = None) -> OnDiskDataset:
        """Read the graph, the features and the tasks, or only those named; return the data set."""
        self.dataset_name = self.yaml_data.get("dataset_name") or self._folder.name
        described = self.yaml_data["graph"]
        self.graph = self._read_graph(described)
        parts = self.yaml_data.get("feature_data"), described.get("feature_data")
        features = [each for part in parts for each in part or ()]
        self.feature = TorchBasedFeatureStore([self._described(each) for each in features])
        wanted = [tasks] if isinstance(tasks, str) else tasks
        found = self.yaml_data.get("tasks") or []
        self.tasks = [
            self._read_task(each) for each in found if wanted is None or each.get("name") in wanted
        ]
        missing = set(wanted or ()) - {task.metadata.get("name") for task in self.tasks}
        if missing:
            names = [each.get("name") for each in found]
            raise NotFound(f"there is no task {sorted(missing)}; there are {names}")
        return self

    def _described(self, entry: Mapping[str, Any]) -> SimpleNamespace:
        usual = {"type": None, "in_memory": True, "format": "numpy"}
        own = {**usual, **entry}
        missing = {"domain", "name", "path"} - own.keys()
        if missing:
            names = ", ".join(sorted(missing))
            raise InvalidInput(f"feature_data needs {names}; found {dict(entry)}")
        extra = {k: v for k, v in own.items() if k not in (*usual, "domain", "name", "path")}
        own["path"] = str(self._folder / own["path"])
        return SimpleNamespace(**own, extra_fields=extra)

    def _read_graph(self, described: Mapping[str, Any]) -> FusedCSCSamplingGraph:
        nodes, edges = described.get("nodes") or [], described.get("edges") or []
        is_typed = any(each.get("type") for each in (*nodes, *edges))
        sizes = {each.get("type") or "_N": int(each["num"]) for each in nodes}
        relations = {}
        for each in edges:
            name = each.get("type") or "_N:_E:_N"
            pairs = _array(self._folder / each["path"], each.get("format", "csv"))
            if pairs.ndim != 2 or 2 not in pairs.shape:
                raise InvalidInput(f"{each['path']} has shape {pairs.shape}, not (2, E) or (E, 2)")
            src, dst = pairs.T if pairs.shape[0] != 2 else pairs
            relations[etype_str_to_tuple(name)] = tuple(
                torch.from_numpy(np.ascontiguousarray(x)).long() for x in (src, dst)
            )
        graph = heterograph(relations, sizes)
        return from_dglgraph(graph, not is_typed, include_original_edge_id=self._edge_ids)

    def _read_task(self, described: Mapping[str, Any]) -> Task:
        metadata = {k: v for k, v in described.items() if k not in _SETS}
        return Task(metadata, *(self._read_set(described.get(name)) for name in _SETS))

    def _read_set(self, described: Any) -> Any:
        if not described:
            return None
        found = {}
        for each in described:
            columns = [
                torch.from_numpy(_array(self._folder / d["path"], d.get("format", "numpy")))
                for d in each["data"]
            ]
            names = tuple(d.get("name") for d in each["data"])
            found[each.get("type")] = ItemSet(tuple(columns), names=names)
        return found[None] if list(found) == [None] else HeteroItemSet(found)


def _array(path: Path, kind: str) -> np.ndarray:
    with reading(path, InvalidInput):
        if kind == "numpy":
            return np.load(path)
        if kind == "torch":
            return torch.load(path, weights_only=True).numpy()
        if kind == "csv":
            import pandas as pd

            return pd.read_csv(path, header=None).to_numpy()
    raise InvalidInput(f"{path.name} has the format {kind!r}; known are csv, numpy and torch")


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
            {("node", None, name): _as_feature(rows) for name, rows in data.items()}
        )
        self.graph = from_dglgraph(g, is_homogeneous=True)


def _as_feature(rows: torch.Tensor) -> TorchBasedFeature:
    return TorchBasedFeature(rows if rows.dim() > 1 else rows[:, None])


class BuiltinDataset(LegacyDataset):
    """A well-known data set by name, downloaded from where its authors keep it.

    Parameters
    ----------
    name : str
        One of those that ``dgl.data`` can load, as "cora", "ogbn-arxiv" or "ogbn-products".
    root : str, optional
        Folder for the download; by default that of ``gnnlab.data.data_home()``.
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
