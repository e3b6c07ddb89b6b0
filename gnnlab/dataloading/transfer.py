"""The way of a mini-batch to a GPU.

A *stream* is a queue of a GPU's work; work in two streams may run at the same time. The thread that
makes batches has a stream of its own, so sampling and copies run beside the training step. Three
things keep this safe:

* The stream first waits for what the training thread had queued when it asked for the batch, such
  as writes to features.
* The training thread's stream waits for the *event* that ends the work on a batch.
* ``record_stream`` tells torch that the training thread's stream uses the memory of the batch too:
  once freed, it is not reused before that stream has come as far.

A GPU copies main memory at full speed, and while the processor does other work, only if it is
*pinned*: the operating system must not move it. Structure and rows of features go through a few
pinned buffers. Rows of a feature that is pinned itself are read by a kernel of the GPU
(:mod:`gnnlab.kernels.gather_triton`). Frequently needed rows may stay on the GPU.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from gnnlab import accelerators, kernels
from gnnlab.dataloading.sampler import to_device
from gnnlab.graph.frame import Frame, is_unchanged, versions
from gnnlab.graph.graph import Graph
from gnnlab.graph.placement import features, tensors
from gnnlab.graph.relation import check_ids

__all__ = ["CacheInfo", "Transfer"]

_ALIGNED = 16  # bytes; tensors of any dtype may begin there


@dataclass(frozen=True)
class CacheInfo:
    """Statistics of a cache since its creation; it holds rows of other machines, or of main memory.

    Attributes
    ----------
    hits, misses : int
        Requested rows that were in the cache, and that had to be fetched.
    rows : int
        Rows in the cache.
    bytes : int
        Memory allocated for rows and for finding them.
    features : dict
        Full name of a feature → its CacheInfo.
    """

    hits: int = 0
    misses: int = 0
    rows: int = 0
    bytes: int = 0
    features: dict[str, CacheInfo] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """Share of the requested rows that were in the cache; 0 before any request."""
        return self.hits / max(1, self.hits + self.misses)


class Transfer:
    """Moves the batches of one loader to a device.

    Parameters
    ----------
    device : torch.device
        A device with streams.
    graphs : sequence of Graph
        Those whose features the batches have; for the choice of cached rows.
    cached : mapping
        "node" and "edge" → feature name → most rows of each type to keep on the device.
    """

    def __init__(
        self, device: torch.device, graphs: Sequence[Graph], cached: Mapping[str, Any]
    ) -> None:
        self.device, self._graphs, self._cached = device, graphs, cached
        self._stream: Any = None
        self._buffers = _Buffers(device)
        self._tables: dict[tuple[int, str], _Table] = {}
        self._lock, self._local = threading.RLock(), threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return Transfer, (self.device, self._graphs, self._cached)  # streams stay in their process

    # ---------------------------------------------------------------- streams
    def begin(self) -> None:
        """Begin an iteration: later work in the own stream follows the present thread's work."""
        with self._lock:
            self._tables = {key: t for key, t in self._tables.items() if not t.outdated}
        if self._stream is None:  # and kept: the first allocations of a stream stop the whole GPU
            self._stream = accelerators.new_stream(self.device)
        self._stream.wait_event(self.now())

    def enter(self) -> None:
        """Have the present thread work in the own stream from now on."""
        accelerators.set_stream(self._stream)

    def now(self) -> Any:
        """Return an event at the end of the present thread's work."""
        return accelerators.current_stream(self.device).record_event()

    def wait(self, event: Any) -> None:
        """Have the present thread's stream wait for an event; the thread itself goes on."""
        accelerators.current_stream(self.device).wait_event(event)

    def order(self) -> tuple[Any, ...]:
        """Return what :meth:`follow` takes, in the thread that orders a batch from another one."""
        if all(graph.device.type == "cpu" for graph in self._graphs):
            return ()  # nothing there is written by the device
        graphs = [graph for graph in self._graphs if isinstance(graph, Graph)]
        written = versions(x for graph in graphs for x in features(graph))
        return self.now(), accelerators.current_stream(self.device), written

    def follow(self, order: tuple[Any, ...]) -> None:
        """Have the present thread's stream wait for the work that was queued before an order."""
        self._local.order = order
        if order:
            self.wait(order[0])

    def _follow_writes(self, feature: torch.Tensor) -> None:
        """Wait for writes to a feature that were queued after the order."""
        if order := getattr(self._local, "order", ()):
            _, stream, written = order
            if not any(is_unchanged([each], [feature]) for each in written):
                self.wait(stream.record_event())

    def receive(self, batch: Any) -> None:
        """Tell torch that the present thread's stream uses the memory of a batch."""
        stream = accelerators.current_stream(self.device)
        if stream == self._stream:
            return
        used = [t for t in _tensors_of(batch) if t.device == self.device]
        whole = {id(t if t._base is None else t._base): t for t in used}  # views share memory
        for tensor in whole.values():
            tensor.record_stream(stream)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Work in the own stream, so that nothing waits for a training step to be done."""
        stream = accelerators.current_stream(self.device)
        if stream == self._stream:
            yield
            return
        with accelerators.on_stream(self._stream):
            yield
            done = self.now()
        stream.wait_event(done)

    # ----------------------------------------------------------------- copies
    def move(self, batch: Any) -> Any:
        """Return a batch on the device; its structure is copied at once."""
        with self._aside(), _Copies(self, self._buffers) as copy:
            moved = to_device(batch, self.device, copy)
        self.receive(moved)
        return moved

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device; the host does not wait for its copy."""
        if not _is_plain(tensor):
            return tensor.to(self.device, non_blocking=True)
        with self._aside(), self._buffers.borrow(tensor.shape, tensor.dtype) as buffer:
            moved = buffer.copy_(tensor).to(self.device, non_blocking=True)
        self.receive(moved)
        return moved

    def _gather(self, matrix: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        if not len(ids):
            return matrix.new_empty((0, matrix.shape[1]), device=self.device)
        with self._aside(), self._buffers.borrow((len(ids), *matrix.shape[1:]), matrix.dtype) as b:
            moved = kernels.gather.copy_rows(matrix, ids, b).to(self.device, non_blocking=True)
        self.receive(moved)
        return moved

    # --------------------------------------------------------------- features
    def rows(self, source: Any, name: str, ids: torch.Tensor) -> torch.Tensor:
        """Return rows of a feature on the device.

        Parameters
        ----------
        source : Frame or DistFrame
        name : str
        ids : torch.Tensor
            Shape (K,), int32 or int64.
        """
        whole = source[name] if isinstance(source, Frame) else None
        if whole is not None and whole.device.type != "cpu":
            self._follow_writes(whole)
            return source.gather(name, ids)
        if whole is None or not _is_plain(whole):
            return self.copy(source.gather(name, ids))
        ids = ids.cpu()
        check_ids(ids, len(whole), source.what)
        with self._aside():
            words = self._words(source, name, whole, ids)
            rows = words.view(whole.dtype).view(len(ids), *whole.shape[1:])
        self.receive(rows)
        return rows

    def _words(
        self, source: Frame, name: str, whole: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        matrix = kernels.gather.words(whole)
        table = self._table(source, name, whole, matrix)
        if whole.is_pinned() and accelerators.runs_triton(self.device):
            cached = () if table is None else table.asked_by_device(len(ids))
            rows: torch.Tensor = kernels.gather_triton.rows(matrix, self.copy(ids), *cached)
            self.now().synchronize()  # the program may write to the feature, or free it
            return rows
        if table is None:
            return self._gather(matrix, ids)
        slots = table.slots.index_select(0, ids)
        missing = (slots < 0).nonzero().flatten()
        table.count(len(ids), len(missing))
        rows = table.values.index_select(0, self.copy(slots.clamp_(min=0)))
        fetched = self._gather(matrix, ids.index_select(0, missing))
        return rows.index_copy_(0, self.copy(missing), fetched)

    # ------------------------------------------------------------------ cache
    def _table(
        self, source: Frame, name: str, whole: torch.Tensor, matrix: torch.Tensor
    ) -> _Table | None:
        """Return the cached rows of a feature, if they are to be cached and still as they were."""
        most = self._cached.get(source.what, {}).get(name)
        if not most:
            return None
        with self._lock:
            key = id(source), name
            if key not in self._tables:
                kind, scores = _scores(self._graphs, source)
                chosen = torch.topk(scores, min(most, len(scores))).indices
                slots = torch.full((len(scores),), -1, dtype=torch.int32)
                slots[chosen] = torch.arange(len(chosen), dtype=torch.int32)
                read, values = versions([whole]), self._gather(matrix, chosen)
                there = self.copy(slots), values, torch.zeros(1, device=self.device).long()
                self._tables[key] = _Table(f"{kind}/{name}", read, slots, values, there)
            table = self._tables[key]
        table.outdated |= not is_unchanged(table.read, [whole])
        return None if table.outdated else table

    def info(self) -> CacheInfo:
        """Return the statistics of the cached rows."""
        with self._lock, self._aside():
            found = {table.name: table.info() for table in self._tables.values()}
        names = "hits", "misses", "rows", "bytes"
        return CacheInfo(*(sum(getattr(x, n) for x in found.values()) for n in names), found)


class _Buffers:
    """Pinned buffers, used in turn: one is filled while the device still copies the other."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._size = device, 1 << 16
        self._free: deque[tuple[torch.Tensor | None, Any]] = deque([(None, None)] * 2)

    def take(self, num_bytes: int = 0) -> torch.Tensor:
        """Return a buffer that no copy reads any more, with at least so many bytes."""
        try:
            buffer, copied = self._free.popleft()
        except IndexError:  # all are being filled, by other threads
            buffer, copied = None, None
        if copied is not None:
            copied.synchronize()
        self._size = max(self._size, 1 << (num_bytes - 1).bit_length())  # torch pins powers of two
        if buffer is None or len(buffer) < num_bytes:
            buffer = accelerators.pinned(self._size)
        return buffer

    def give_back(self, buffer: torch.Tensor) -> None:
        """Let a buffer be reused as soon as the present thread's copies are done."""
        copied = accelerators.current_stream(self._device).record_event()
        self._free.append((buffer, copied))

    @contextmanager
    def borrow(self, shape: Sequence[int], dtype: torch.dtype) -> Iterator[torch.Tensor]:
        """Have a tensor in a buffer, inside ``with``."""
        size = torch.Size(shape).numel() * dtype.itemsize
        buffer = self.take(size)
        yield buffer[:size].view(dtype).view(shape)
        self.give_back(buffer)


class _Copies:
    """Copies the tensors of a batch together; after ``with``, those of lazy columns one by one."""

    def __init__(self, transfer: Transfer, buffers: _Buffers) -> None:
        self._transfer, self._buffers = transfer, buffers

    def __enter__(self) -> _Copies:
        self._known: dict[Any, Any] | None = {}
        self._here: torch.Tensor | None = None
        self._used = 0
        return self

    def _open(self, num_bytes: int) -> None:
        self._here = self._buffers.take(num_bytes)
        self._there = torch.empty_like(self._here, device=self._transfer.device)
        self._used, self._views = 0, {}

    def _flush(self) -> None:
        if self._here is not None:
            self._there[: self._used].copy_(self._here[: self._used], non_blocking=True)
            self._buffers.give_back(self._here)
            self._here = None

    def __exit__(self, *error: object) -> None:
        self._flush()
        self._there = self._views = self._known = None

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._known is None or not _is_plain(tensor) or tensor.dim() != 1:
            return self._transfer.copy(tensor)
        # Lists of nodes begin alike: those of a layer are the first ones of the layer before.
        key = tensor.data_ptr(), tensor.dtype
        _, whole, start, length = self._known.get(key, (None, None, 0, -1))
        if length < len(tensor):
            whole, start = self._add(tensor)
            self._known[key] = tensor, whole, start, len(tensor)  # nor is its address used again
        copy: torch.Tensor = whole[start : start + len(tensor)]
        return copy

    def _add(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Put a tensor into the buffer; return that of the device in its dtype, and where it is."""
        room = 0 if self._here is None else len(self._here)
        if self._used + tensor.nbytes > room:
            self._flush()
            self._open(max(2 * room, tensor.nbytes))
        if tensor.dtype not in self._views:
            both = self._here, self._there
            self._views[tensor.dtype] = tuple(x.view(tensor.dtype) for x in both)
        here, there = self._views[tensor.dtype]
        start = self._used // tensor.itemsize
        here[start : start + len(tensor)].copy_(tensor)
        self._used += -(-tensor.nbytes // _ALIGNED) * _ALIGNED
        return there, start


@dataclass
class _Table:
    """Rows of a feature that are on the device; only the own stream uses them."""

    name: str
    read: list[tuple[torch.Tensor, int | None]]  # the feature, as it was
    slots: torch.Tensor  # (N,) int32: where each row is in ``values``, or −1; in main memory
    values: torch.Tensor  # (K, W), words
    there: tuple[torch.Tensor, ...]  # what the kernel takes, which counts the hits
    outdated: bool = False
    asked: int = 0
    hits: int = 0

    def count(self, asked: int, missing: int) -> None:
        self.asked += asked
        self.hits += asked - missing

    def asked_by_device(self, asked: int) -> tuple[torch.Tensor, ...]:
        self.asked += asked
        return self.there

    def info(self) -> CacheInfo:
        hits = self.hits + int(self.there[2])
        size = sum(x.nbytes for x in self.there)
        return CacheInfo(hits, self.asked - hits, len(self.values), size)


def _scores(graphs: Sequence[Graph], source: Frame) -> tuple[str, torch.Tensor]:
    """Return the type of a frame, and how often each row will be needed, relatively.

    A node is sampled as often as it has out-edges; an edge, as often as the node that it leads to,
    in turn with the other edges into it.
    """
    for graph in graphs:
        degrees = {t: torch.zeros(frame.num_rows) for t, frame in graph._node_frames().items()}
        for etype, relation in graph._relations.items():
            degrees[etype[0]] += relation.out_degrees()
        for ntype, frame in graph._node_frames().items():
            if frame is source:
                return ntype, degrees[ntype]
        for etype, frame in graph._edge_frames.items():
            if frame is source:
                relation = graph._relations[etype]
                share = degrees[etype[2]] / relation.in_degrees().clamp(min=1)
                return etype[1], share[relation.coo()[1].long()]
    raise AssertionError("a frame of another graph")


def _tensors_of(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Graph):
        yield from tensors(value)
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors_of(part)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the bytes of a tensor in main memory are its values, in order."""
    is_here = tensor.device.type == "cpu" and not tensor.requires_grad
    return is_here and tensor.is_contiguous() and tensor.numel() > 0
