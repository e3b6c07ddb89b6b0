"""Parameters that DGL has and gnnlab has no use for: calls may give them, and they are dropped.

Only ``output_device`` has an effect: it moves the graph that is returned. Functions and classes
with such parameters are offered by compat's packages as adapters, which :func:`adapted` makes. A
class is adapted by a :class:`StandIn`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from abc import ABCMeta
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gnnlab.errors import takes_graph

_OF_LOADERS = "use_prefetch_thread use_alternate_streams pin_prefetcher pin_memory"

DROPPED = {
    "gnnlab.dataloading.edges": {"EdgeDataLoader": _OF_LOADERS},
    "gnnlab.dataloading.loader": {
        "DataLoader": "use_prefetch_thread@9 use_alternate_streams@10 pin_prefetcher@11 pin_memory "
        "block_sampler>graph_sampler",
        "NodeDataLoader": _OF_LOADERS,
    },
    "gnnlab.dataloading.sampler": {
        "MultiLayerFullNeighborSampler": "return_eids@1 fused",
        "NeighborSampler": "fused@9 return_eids@10",
    },
    "gnnlab.distributed.graph": {"DistGraph": "gpb@1 use_graphbolt@3"},
    "gnnlab.distributed.sampling": {
        "sample_etype_neighbors": "etype_sorted@6 use_graphbolt@7",
        "sample_neighbors": "use_graphbolt@7",
    },
    "gnnlab.distributed.startup": {
        "DistGraphServer": "num_clients@3 disable_shared_mem@5 graph_format@6 use_graphbolt@7",
        "initialize": "max_queue_size@3 net_type@4 num_worker_threads@5 use_graphbolt@6",
    },
    "gnnlab.distributed.tensor": {"DistTensor": "attach@7"},
    "gnnlab.graph.compact": {"khop_in_subgraph khop_out_subgraph": "output_device"},
    "gnnlab.graph.construct": {"graph": "row_sorted col_sorted"},
    "gnnlab.graph.subgraph": {
        "edge_subgraph edge_type_subgraph in_subgraph node_subgraph node_type_subgraph "
        "out_subgraph": "output_device"
    },
    "gnnlab.partition.load": {"load_partition": "use_graphbolt@3"},
    "gnnlab.partition.partition": {
        "partition_graph": "graph_formats@12 use_graphbolt@13 store_eids@14 store_inner_node@15 "
        "store_inner_edge@16"
    },
    "gnnlab.sampling.negative": {"global_uniform_negative_sampling": "redundancy@5"},
}
"""Module -> functions and classes -> parameters, with ``@`` and their place in DGL's order if calls
may give them by place. ``old>new`` is a parameter under another name."""


def adapted(value: Any) -> Any:
    """Return the adapter of a function or class that has parameters in :data:`DROPPED`.

    Others are returned as they are.
    """
    if not isinstance(value, FunctionType | type):
        return value
    original = inspect.unwrap(value)
    for names, table in DROPPED.get(original.__module__, {}).items():
        if original.__qualname__ in names.split():
            return _adapter(original, table)
    return value


@functools.cache
def _adapter(original: Any, table: str) -> Any:
    dropped = dict(entry.partition("@")[::2] for entry in table.split() if ">" not in entry)
    renamed = dict(entry.split(">") for entry in table.split() if ">" in entry)
    places = {int(place) for place in dropped.values() if place}

    def calls(function: Callable[..., Any], first: int) -> Callable[..., Any]:
        """Return a function that calls another without these parameters."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("use_graphbolt") or _at(args, dropped.get("use_graphbolt"), first):
                warn_of_graphbolt()
            args = tuple(each for i, each in enumerate(args) if i - first not in places)
            kept = {renamed.get(n, n): each for n, each in kwargs.items() if n not in dropped}
            made, device = function(*args, **kept), kwargs.get("output_device")
            if "output_device" not in dropped or device is None:
                return made
            return (made[0].to(device), *made[1:]) if isinstance(made, tuple) else made.to(device)

        return call

    package = original.__module__.split(".")[1]
    home = "gnnlab.compat" if package == "graph" else f"gnnlab.compat.{package}"
    if not isinstance(original, type):
        call = calls(takes_graph(original, home), 0)
        call.__module__ = home
        return call
    own = {
        "__init__": calls(original.__init__, 1),  # type: ignore[misc]
        "__doc__": original.__doc__,
        "__module__": home,
        "__qualname__": original.__qualname__,
        "_stands_for": original,
    }
    return StandIn(original.__name__, (original,), own)


def _at(args: tuple[Any, ...], place: str | None, first: int) -> Any:
    return bool(place) and dict(enumerate(args)).get(int(str(place)) + first)


@functools.cache
def warn_of_graphbolt() -> None:
    """Warn, once in a process, what ``use_graphbolt=True`` means."""
    warnings.warn(
        "use_graphbolt has no effect: partitions have one format, compressed columns that are "
        "sampled in place, whose batches are the same with dgl.dataloading and dgl.graphbolt",
        stacklevel=3,
    )


class StandIn(ABCMeta):
    """A class that stands for the one that it derives from, ``_stands_for``.

    Its call makes an object of that class by the ``__init__`` of the stand-in; instances and
    subclasses of that class are its own. Classes derived from a stand-in are ordinary ones.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an object."""
        kind = vars(cls).get("_stands_for")
        if kind is None:
            return super().__call__(*args, **kwargs)
        made = kind.__new__(kind)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, kind: type) -> bool:
        original = vars(cls).get("_stands_for")
        if original is None:
            return super().__subclasscheck__(kind)
        # An abstract class would ask all its subclasses, of which the stand-in is one.
        return type.__subclasscheck__(original, kind)
