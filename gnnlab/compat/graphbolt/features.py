"""Features by (domain, type, name), in memory, on a disk, and in caches; and the stage that reads.

The domain is "node" or "edge"; the type is None where the graph has no types.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import functional_datapipe

from gnnlab.compat.base import BadArgument
from gnnlab.compat.graphbolt.minibatch import MiniBatch
from gnnlab.compat.graphbolt.pipes import Stage
from gnnlab.errors import InvalidInput, NotFound, reading
from gnnlab.graph.relation import check_ids
from gnnlab.system import accelerators


class FeatureKey(NamedTuple):
    """What a feature is found by."""

    domain: str
    type: str | None
    name: str


class Feature:
    """A row for each node or edge; base class."""

    def read(self, *args: Any, **kwargs: Any) -> Any:
        """Return some rows, or all; the others are shape of a row, number of rows, new rows."""
        raise NotImplementedError

    size = count = update = read

    def metadata(self) -> dict[str, Any]:
        """What is known of the feature."""
        return {}


class TorchBasedFeature(Feature):
    """Rows of a tensor."""

    def __init__(self, torch_feature: torch.Tensor, metadata: Any = None) -> None:
        if not isinstance(torch_feature, torch.Tensor) or torch_feature.dim() < 2:
            what = getattr(torch_feature, "shape", type(torch_feature).__name__)
            raise BadArgument(f"a feature is a tensor of two dimensions or more; found {what}")
        self._tensor, self._metadata = torch_feature, dict(metadata or {})

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Return some rows, on the device of ``ids``, or all."""
        if ids is None:
            return self._tensor
        return self._tensor[ids.to(self._tensor.device)].to(ids.device)

    def size(self) -> torch.Size:
        """Shape of a row."""
        return self._tensor.shape[1:]

    def count(self) -> int:
        """Number of rows."""
        return len(self._tensor)

    def update(self, value: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Replace some rows, or all."""
        rows = len(value) if ids is None else len(ids)
        if value.shape != (shape := (rows, *self.size())):
            raise BadArgument(f"expected rows of shape {shape}; found {tuple(value.shape)}")
        if ids is None:
            self._tensor = value
        else:
            self._tensor[ids] = value.to(self._tensor.dtype)

    def metadata(self) -> dict[str, Any]:
        """What was given with the rows."""
        return self._metadata

    def pin_memory_(self) -> Any:
        """Move the rows to pinned memory."""
        self._tensor = self._tensor.pin_memory()
        return self

    def is_pinned(self) -> bool:
        """Whether the rows are in pinned memory."""
        return self._tensor.is_pinned()

    def to(self, device: Any) -> TorchBasedFeature:
        """Return the feature on a device; "pinned" is pinned memory."""
        moved = self._tensor.pin_memory() if device == "pinned" else self._tensor.to(device)
        return TorchBasedFeature(moved, self._metadata)

    def __repr__(self) -> str:
        rows = str(self._tensor).replace("\n", "\n" + " " * 12)
        kind = type(self).__name__
        return f"{kind}(\n    feature={rows},\n    metadata={self._metadata},\n)"


class DiskBasedFeature(TorchBasedFeature):
    """Rows of a ``.npy`` file, of which only those that are asked for are read."""

    def __init__(self, path: str, metadata: Any = None, num_threads: int | None = None) -> None:
        with reading(path, InvalidInput):
            rows = torch.from_numpy(np.load(path, mmap_mode="c"))
        super().__init__(wide(rows), metadata)

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Return some rows, or all."""
        if ids is None:
            return self._tensor.clone()
        check_ids(ids, self.count(), "row")
        return super().read(ids)

    def update(self, value: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Raise: the file is not written."""
        raise NotImplementedError("a DiskBasedFeature is not written: read_into_memory() first")

    def read_into_memory(self) -> TorchBasedFeature:
        """Return the feature in memory."""
        return TorchBasedFeature(self.read(), self._metadata)

    def to(self, device: Any = None) -> DiskBasedFeature:  # type: ignore[override]
        """Return the feature itself, whose rows are on the disk."""
        return self

    pin_memory_ = to


class CachedFeature(Feature):
    """Keeps rows of another feature that were read, in memory or on a GPU.

    Row i has the place i modulo the number of places: it stays until another needs that.
    """

    def __init__(self, fallback_feature: Feature, num_rows: int, device: Any = "cpu") -> None:
        other = self._fallback = fallback_feature
        self.size, self.count, self.metadata = other.size, other.count, other.metadata  # type: ignore[method-assign]
        self._ids = torch.full((max(1, min(num_rows, other.count())),), -1, device=device)
        self._rows: torch.Tensor | None = None
        self._asked = self._missed = 0

    def read(self, ids: torch.Tensor | None = None) -> torch.Tensor:
        """Return some rows, or all."""
        if ids is None:
            return self._fallback.read()  # type: ignore[no-any-return]
        own = ids.to(self._ids.device)
        places = own % len(self._ids)
        is_known = self._ids[places] == own
        new, at = own[~is_known], places[~is_known]
        fresh = self._fallback.read(new)
        if self._rows is None:
            self._rows = fresh.new_empty(len(self._ids), *fresh.shape[1:])
        found = fresh.new_empty(len(own), *fresh.shape[1:])
        found[~is_known], found[is_known] = fresh, self._rows[places[is_known]]
        self._ids[at] = new
        is_kept = self._ids[at] == new  # of several for one place, one
        self._rows[at[is_kept]] = fresh[is_kept]
        self._asked += len(own)
        self._missed += len(new)
        return found.to(ids.device)

    def update(self, value: torch.Tensor, ids: torch.Tensor | None = None) -> None:
        """Replace some rows, or all."""
        self._fallback.update(value, ids)
        self._ids.fill_(-1)

    @property
    def cache_size_in_bytes(self) -> int:
        """Bytes of the rows that are kept."""
        return 0 if self._rows is None else self._rows.nbytes

    @property
    def miss_rate(self) -> float:
        """Share of the rows that were not kept, of all that were read."""
        return self._missed / self._asked if self._asked else 1.0


def cpu_cached_feature(
    fallback_features: Any, max_cache_size_in_bytes: int, *_: Any, **options: Any
) -> Any:
    """Keep rows of a feature that are read in memory; other options have no effect.

    Features in a dict share the bytes in proportion to their own.
    """
    return wrap_with_cached_feature(CachedFeature, fallback_features, max_cache_size_in_bytes)


def gpu_cached_feature(fallback_features: Any, max_cache_size_in_bytes: int) -> Any:
    """As :func:`cpu_cached_feature`, with rows kept on the GPU."""
    device = accelerators.kind() or "cpu"
    return wrap_with_cached_feature(
        CachedFeature, fallback_features, max_cache_size_in_bytes, device
    )


def wrap_with_cached_feature(
    cached_feature_type: Any, fallback_features: Any, max_cache_size_in_bytes: int, *args: Any
) -> Any:
    """Make ``cached_feature_type(feature, rows, *args)`` of a feature or each of a dict."""
    most, features = max_cache_size_in_bytes, fallback_features
    if not isinstance(features, Mapping):
        row = features.read(torch.tensor([0])) if features.count() else torch.empty(0)
        return cached_feature_type(features, bytes_to_number_of_items(most, row), *args)
    sizes = {
        key: each.read(torch.tensor([0])).nbytes * each.count() if each.count() else 0
        for key, each in features.items()
    }
    total = max(sum(sizes.values()), 1)
    return {
        key: wrap_with_cached_feature(cached_feature_type, each, most * sizes[key] // total, *args)
        for key, each in features.items()
    }


def bytes_to_number_of_items(cache_capacity_in_bytes: int, single_item: torch.Tensor) -> int:
    """Return how many items of the size of one, but at least one, there is room for."""
    return max(1, cache_capacity_in_bytes // max(single_item.nbytes, 1))


def _of_feature(name: str) -> Any:
    def call(
        self: Any, domain: str, type_name: str | None, feature_name: str, *args: Any, **kwargs: Any
    ) -> Any:
        return getattr(self[domain, type_name, feature_name], name)(*args, **kwargs)

    call.__doc__ = f"Call ``{name}`` of a feature."
    return call


class FeatureStore:
    """Features by (domain, type, name); base class."""

    def __getitem__(self, feature_key: Any) -> Feature:
        raise NotImplementedError

    read, size, count = _of_feature("read"), _of_feature("size"), _of_feature("count")
    metadata, update = _of_feature("metadata"), _of_feature("update")


class BasicFeatureStore(FeatureStore, dict[FeatureKey, Feature]):  # type: ignore[misc]
    """Features in a dict by (domain, type, name)."""

    __getitem__ = dict.__getitem__  # type: ignore[assignment]

    def __init__(self, features: Mapping[Any, Feature]) -> None:
        dict.update(self, {FeatureKey(*key): feature for key, feature in features.items()})

    def __missing__(self, key: Any) -> Feature:
        known = ", ".join(str(tuple(each)) for each in self) or "none"
        raise NotFound(f"there is no feature {tuple(key)}; there are {known}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    {super().__repr__()}\n)"


class TorchBasedFeatureStore(BasicFeatureStore):
    """Features that are files, each described by an ``OnDiskFeatureData``."""

    def __init__(self, feat_data: Any) -> None:
        super().__init__({(d.domain, d.type, d.name): _feature_of(d) for d in feat_data})

    def to(self, device: Any) -> TorchBasedFeatureStore:
        """Move all features to a device, or to "pinned" memory."""
        dict.update(self, {key: feature.to(device) for key, feature in self.items()})  # type: ignore[attr-defined]
        return self

    pin_memory_ = partialmethod(to, "pinned")


def _feature_of(data: Any) -> Feature:
    extra = getattr(data, "extra_fields", None)
    if data.format == "numpy" and not data.in_memory:
        return DiskBasedFeature(data.path, extra)
    return TorchBasedFeature(wide(torch.from_numpy(read_array(data.path, data.format))), extra)


def read_array(path: Any, kind: str) -> np.ndarray:
    """Read a file of the format "numpy", "torch" or "csv"."""
    with reading(path, InvalidInput):
        if kind == "numpy":
            return np.load(path)  # type: ignore[no-any-return]
        if kind == "torch":
            return torch.load(path, weights_only=True).numpy()  # type: ignore[no-any-return]
        if kind == "csv":
            import pandas as pd

            return pd.read_csv(path, header=None).to_numpy()  # type: ignore[no-any-return]
    raise InvalidInput(f"{path} has the format {kind!r}; known are csv, numpy and torch")


def wide(rows: torch.Tensor) -> torch.Tensor:
    """Return rows of two dimensions or more."""
    return rows[:, None] if rows.dim() == 1 else rows


@functional_datapipe("fetch_feature")
class FeatureFetcher(Stage):
    """Read features of the input nodes and of the sampled edges, by names, or by type and names.

    ``overlap_fetch`` and ``cooperative`` have no effect.
    """

    def __init__(
        self,
        datapipe: Any,
        feature_store: FeatureStore,
        node_feature_keys: Any = None,
        edge_feature_keys: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(datapipe)
        self.feature_store = feature_store
        self.node_feature_keys, self.edge_feature_keys = node_feature_keys, edge_feature_keys

    def _change(self, minibatch: MiniBatch) -> MiniBatch:
        nodes = minibatch.node_ids()
        if nodes is None:  # nothing was sampled: the seeds are the nodes
            nodes = minibatch.seeds
        layers = [minibatch.edge_ids(i) for i in range(minibatch.num_layers())]
        minibatch.node_features = self._read("node", self.node_feature_keys, nodes)
        keys = self.edge_feature_keys
        minibatch.edge_features = [self._read("edge", keys, ids) for ids in layers]
        return minibatch

    def _read(self, domain: str, keys: Any, ids: Any) -> dict[Any, torch.Tensor]:
        read = self.feature_store.read
        if not keys or ids is None:
            return {}
        if isinstance(keys, Mapping):
            return {
                (kind, name): read(domain, kind, name, ids[kind])
                for kind, names in keys.items()
                for name in names
                if ids.get(kind) is not None and len(ids[kind])
            }
        return {name: read(domain, None, name, ids) for name in keys}
