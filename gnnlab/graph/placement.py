"""How a graph is stored: devices, ID dtypes, sparse formats, shared memory.

Functions of a graph; :class:`Graph` has each as a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.core import GraphCore, GraphT, check_counts
from gnnlab.graph.frame import copier
from gnnlab.graph.names import describe
from gnnlab.system import accelerators


def as_int64(graph: GraphT) -> GraphT:
    """Return the same graph with int64 IDs."""
    return _with_idtype(graph, torch.int64)


def as_int32(graph: GraphT) -> GraphT:
    """Return the same graph with int32 IDs."""
    return _with_idtype(graph, torch.int32)


def astype(graph: GraphT, idtype: torch.dtype) -> GraphT:
    """Return the same graph with IDs of another dtype, ``torch.int32`` or ``torch.int64``.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> dgl.graph([(0, 1)]).astype(torch.int32).idtype
    torch.int32
    """
    if idtype not in (torch.int32, torch.int64):
        raise InvalidInput(
            f"astype sets the dtype of IDs, torch.int32 or torch.int64; found {idtype!r}. "
            "For features use to_half(g), to_float(g) or to_double(g)"
        )
    return _with_idtype(graph, idtype)


def _with_idtype(graph: GraphT, idtype: torch.dtype) -> GraphT:
    for frames in (graph.src_frames, graph.dst_frames, graph.edge_frames):
        check_counts([frame.num_rows for frame in frames.values()], idtype, "nodes or edges")
    twin = graph.local_var()
    twin._idtype = idtype
    return twin


def to(graph: GraphT, device: Any, **kwargs: Any) -> GraphT:
    """Return the graph with structure and features on a device; an int is a GPU."""
    device = accelerators.read_device(device)
    return copied(graph, device, copier(device))


def copied(graph: GraphT, device: torch.device, copy: Callable[..., torch.Tensor]) -> GraphT:
    """Return the graph on a device; ``copy`` moves each tensor there."""
    if device == graph._device:
        return graph
    twin = graph._shallow()
    twin._device = device
    # The layer that takes a block needs the in-degrees: a copy costs less than three operators.
    with_sizes = graph.is_block and device.type != "cpu"
    twin.relations = {n: r.to(copy, with_sizes) for n, r in graph.relations.items()}
    twin._change_frames(lambda frame: frame.to(device, copy))
    return twin


def cpu(graph: GraphT) -> GraphT:
    """Return the graph in main memory."""
    return to(graph, "cpu")


def formats(graph: GraphCore, formats: str | list[str] | None = None) -> Any:
    """Return which sparse formats exist, or a graph restricted to some of "coo", "csr", "csc".

    Without argument, a dict ``{"created": […], "not created": […]}``.
    """
    if formats is None:
        allowed = graph._formats or ["coo", "csr", "csc"]
        made = [r.created() for r in graph.relations.values()]
        created = [name for name in allowed if all(name in names for names in made)]
        return {"created": created, "not created": [f for f in allowed if f not in created]}
    wanted = list(formats) if isinstance(formats, list | tuple | set) else [formats]
    unknown = [name for name in wanted if name not in ("coo", "csr", "csc")]
    if unknown or not wanted:
        raise InvalidInput(f"unknown sparse format {describe(unknown)}; choose from coo, csr, csc")
    twin = graph.local_var()
    twin._formats = wanted
    twin.relations = {name: r.only(wanted) for name, r in graph.relations.items()}
    return twin


def create_formats_(graph: GraphCore) -> None:
    """Make all allowed sparse formats now, for instance before a fork: children share them."""
    for relation in graph.relations.values():
        relation.create_formats(graph._formats or ("coo", "csc", "csr"))


def share_memory(graph: GraphT) -> GraphT:
    """Move structure and features into shared memory, and return the graph.

    Processes that receive the graph afterwards, forked or fresh, map the same memory. Tensors and
    arrays that you took from the graph before keep the old memory.
    """
    return change_tensors(graph, _shared)


def _shared(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in shared memory; ``share_memory_()`` would invalidate numpy views of it."""
    if tensor.is_shared() or not tensor.numel():
        return tensor
    from gnnlab.multiprocessing import explained  # which few graphs need

    with explained(size := tensor.numel() * tensor.itemsize):
        storage = torch.UntypedStorage._new_shared(size)
    copy = torch.empty(0, dtype=tensor.dtype).set_(storage)
    return copy.view(tensor.shape).copy_(tensor)


def pin_memory_(graph: GraphT) -> GraphT:
    """Pin structure and features for fast copies to a GPU, and return the graph."""
    if accelerators.kind() is None:
        raise InvalidInput("pin_memory_() needs a GPU to copy to; none is available here")
    return change_tensors(graph, _pinned)


def _pinned(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_pinned() or not tensor.numel():
        return tensor
    copy = accelerators.pinned(tensor.numel() * tensor.itemsize)
    return copy.view(tensor.dtype).view(tensor.shape).copy_(tensor)


def pin_features(graph: GraphCore) -> None:
    """Pin the features of a graph in main memory, unless they are."""
    for frames in (graph.node_frames(), graph.edge_frames):
        for frame in frames.values():
            for name, column in frame.items():
                frame[name] = _pinned(column)


def change_tensors(graph: GraphT, change: Callable[[torch.Tensor], torch.Tensor]) -> GraphT:
    """Replace each tensor of the structure and of the features, and return the graph."""
    graph.relations = {name: r.map(change) for name, r in graph.relations.items()}
    for frames in (graph.src_frames, graph.dst_frames, graph.edge_frames):
        for frame in frames.values():
            for name in frame:
                frame[name] = change(frame[name])
    return graph
