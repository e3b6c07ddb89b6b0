"""The way of a mini-batch to a GPU.

A *stream* is a queue of a GPU's work; work in two streams may run at the same time. The thread that
makes batches has its own stream, so sampling and copies run beside training. What keeps this safe:

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.dataloading.sampler import to_device
from gnnlab.graph.frame import Frame, LazyTensor, is_unchanged, versions
from gnnlab.graph.graph import Graph
from gnnlab.graph.relation import Adjacency, Relation, check_ids
from gnnlab.system import accelerators

_ALIGNED = 16  # bytes; tensors of any dtype may begin there
_HOLDERS = {kind: kind.__slots__ for kind in (Frame, LazyTensor, Relation, Adjacency)}


@dataclass(frozen=True)
class CacheInfo:
    """Statistics of a cache since its creation; it holds rows of other machines, or of main memory.

    ``features`` are those of each feature, by its full name.
    """

    hits: int = 0  #: requested rows that were in the cache
    misses: int = 0  #: requested rows that had to be fetched
    rows: int = 0  #: rows in the cache
    bytes: int = 0  #: memory allocated for rows and for finding them
    features: dict[str, CacheInfo] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """Share of the requested rows that were in the cache; 0 before any request."""
        return self.hits / max(1, self.hits + self.misses)

    @classmethod
    def of(cls, features: dict[str, CacheInfo]) -> CacheInfo:
        """Return the sums over features."""
        names = "hits", "misses", "rows", "bytes"
        sums = {name: sum(getattr(each, name) for each in features.values()) for name in names}
        return cls(**sums, features=features)


class Transfer:
    """Moves the batches of one loader to a device with streams.

    The batches have the features of ``graphs``; ``cached`` has the most rows of each type to keep
    on the device, by "node" or "edge" and name of the feature.
    """

    def __init__(
        self, device: torch.device, graphs: Sequence[Any], cached: Mapping[str, Any]
    ) -> None:
        self.device, self._graphs, self._cached = device, graphs, cached
        self._backend = torch.get_device_module(device)
        self._stream: Any = None
        self._buffers: deque[tuple[torch.Tensor | None, Any]] = deque([(None, None)] * 2)
        self._room = 1 << 16  # bytes for the structure of a batch
        self._tables: dict[tuple[int, str], _CachedRows] = {}
        self._lock, self._local = threading.RLock(), threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return Transfer, (self.device, self._graphs, self._cached)  # streams stay in their process

    # ---------------------------------------------------------------- streams
    def begin(self) -> None:
        """Begin an iteration: later work in the own stream follows the present thread's work."""
        with self._lock:
            self._tables = {key: t for key, t in self._tables.items() if not t.outdated}
        if self._stream is None:  # and kept: the first allocations of a stream stop the whole GPU
            self._stream = self._backend.Stream(self.device)
        self._stream.wait_event(self.now())

    def enter(self) -> None:
        """Have the present thread, and its current device, work in the own stream from now on."""
        self._backend.set_stream(self._stream)

    def _present(self) -> Any:
        return self._backend.current_stream(self.device)

    def now(self) -> Any:
        """Return an event at the end of the present thread's work."""
        return self._present().record_event()

    def order(self) -> tuple[Any, ...]:
        """Return what :meth:`follow` takes, in the thread that orders a batch from another one."""
        if all(graph.device.type == "cpu" for graph in self._graphs):
            return ()  # the device writes nothing that is read there
        features = [(graph.node_frames(), graph.edge_frames) for graph in self._graphs]
        return self.now(), self._present(), versions(tensors_in(features))

    def follow(self, order: tuple[Any, ...]) -> None:
        """Have the present thread's stream wait for the work that was queued before an order."""
        self._local.order = order
        if order:
            self._present().wait_event(order[0])

    def _follow_writes(self, feature: torch.Tensor) -> None:
        """Wait for writes to a feature that were queued after the order."""
        if order := getattr(self._local, "order", ()):
            _, stream, written = order
            if not any(is_unchanged([each], [feature]) for each in written):
                self._present().wait_event(stream.record_event())

    def made(self, batch: Any) -> tuple[Any, list[torch.Tensor]]:
        """Return what :meth:`receive` takes, in the thread that has made a batch."""
        found = [x for x in tensors_in([batch], self._graphs) if x.device == self.device]
        whole = {id(x if x._base is None else x._base): x for x in found}  # views share memory
        return self.now(), list(whole.values())

    def receive(self, made: Any, tensors: list[torch.Tensor]) -> None:
        """Have the present stream wait for a batch, and tell torch that it uses the memory."""
        stream = self._present()
        if stream != self._stream:
            stream.wait_event(made)
            for tensor in tensors:
                tensor.record_stream(stream)

    def end(self) -> None:
        """Have the present stream wait for all that was done, such as formats of the graph."""
        self._present().wait_event(self._stream.record_event())

    def _aside(self, work: Callable[[], Any]) -> Any:
        """Work in the own stream, so that nothing waits for a training step to be done."""
        if self._present() == self._stream:
            return work()
        with self._backend.stream(self._stream):
            result = work()
            made = self.made(result)
        self.receive(*made)
        return result

    # ----------------------------------------------------------------- copies
    @contextmanager
    def buffer(self, num_bytes: int) -> Iterator[torch.Tensor]:
        """Have a pinned buffer inside ``with``: one is filled while the device copies another."""
        try:
            buffer, copied = self._buffers.popleft()
        except IndexError:  # all are being filled, by other threads
            buffer, copied = None, None
        if copied is not None:
            copied.synchronize()
        if buffer is None or len(buffer) < num_bytes:
            buffer = accelerators.pinned(1 << (num_bytes - 1).bit_length())  # as torch allocates
        yield buffer
        self._buffers.append((buffer, self.now()))

    def move(self, batch: Any) -> Any:
        """Return a batch on the device; its structure is copied at once."""
        return self._aside(lambda: self._move(batch))

    def _move(self, batch: Any) -> Any:
        with self.buffer(self._room) as buffer:
            structure = _Structure(self, buffer[: self._room])
            moved = to_device(batch, self.device, structure)
            structure.copy()
        if structure.wanted > self._room:
            self._room = structure.wanted * 9 // 8 // _ALIGNED * _ALIGNED
        return moved

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device; the host does not wait for its copy."""
        if not _is_plain(tensor):
            return tensor.to(self.device, non_blocking=True)
        return self._filled(tensor.shape, tensor.dtype, lambda buffer: buffer.copy_(tensor))

    def _gather(self, matrix: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        shape = torch.Size((len(ids), *matrix.shape[1:]))
        if not len(ids):
            return torch.empty(shape, dtype=matrix.dtype, device=self.device)
        return self._filled(
            shape, matrix.dtype, lambda buffer: kernels.gather.copy_rows(matrix, ids, buffer)
        )

    def _filled(self, shape: torch.Size, dtype: torch.dtype, fill: Any) -> torch.Tensor:
        """Return a tensor of the device; ``fill`` writes it to main memory."""
        size = shape.numel() * dtype.itemsize

        def work() -> torch.Tensor:
            with self.buffer(size) as buffer:
                here: torch.Tensor = fill(buffer[:size].view(dtype).view(shape))
                return here.to(self.device, non_blocking=True)

        return self._aside(work)  # type: ignore[no-any-return]

    # --------------------------------------------------------------- features
    def rows(self, source: Any, name: str, ids: torch.Tensor) -> torch.Tensor:
        """Return rows of a feature, on the device unless its graph is on another one."""
        whole = source[name] if isinstance(source, Frame) else None
        if whole is not None and whole.device.type != "cpu":
            self._follow_writes(whole)
            return source.gather(name, ids)
        if whole is None or not _is_plain(whole):
            return self.copy(source.gather(name, ids))
        here = ids.cpu()
        check_ids(here, len(whole), source.what)
        words = self._aside(lambda: self._words(source, name, whole, here, ids))
        return words.view(whole.dtype).view(len(ids), *whole.shape[1:])  # type: ignore[no-any-return]

    def _words(
        self, source: Frame, name: str, whole: torch.Tensor, ids: torch.Tensor, there: torch.Tensor
    ) -> torch.Tensor:
        matrix = kernels.gather.words(whole)
        table = self._table(source, name, whole, matrix)
        if table is not None:
            table.asked += len(ids)
        if whole.is_pinned() and accelerators.runs_triton(self.device):
            cached = () if table is None else (table.there, table.values, table.hits)
            there = there if there.device == self.device else self.copy(ids)
            rows: torch.Tensor = kernels.gather_triton.rows(matrix, there, *cached)
            self.now().synchronize()  # the program may write to the feature, or free it
            return rows
        if table is None:
            return self._gather(matrix, ids)
        slots = table.slots.index_select(0, ids)
        missing = (slots < 0).nonzero().flatten()
        table.hits += len(ids) - len(missing)
        rows = table.values.index_select(0, self.copy(slots.clamp_(min=0)))
        fetched = self._gather(matrix, ids.index_select(0, missing))
        return rows.index_copy_(0, self.copy(missing), fetched)

    # ------------------------------------------------------------------ cache
    def _table(
        self, source: Frame, name: str, whole: torch.Tensor, matrix: torch.Tensor
    ) -> _CachedRows | None:
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
                hits = torch.zeros(1, dtype=torch.int64, device=self.device)
                self._tables[key] = _CachedRows(
                    f"{kind}/{name}", read, slots, self.copy(slots), values, hits
                )
            table = self._tables[key]
        table.outdated |= not is_unchanged(table.read, [whole])
        return None if table.outdated else table

    def info(self) -> CacheInfo:
        """Return the statistics of the cached rows."""
        with self._lock:
            tables = list(self._tables.values())
        return CacheInfo.of(self._aside(lambda: {table.name: table.info() for table in tables}))


class _Structure:
    """Copies the tensors of a batch to a device together; later ones, of lazy columns, one by one.

    A layer's list of nodes is a prefix of that of the layer before: an address is copied once.
    """

    def __init__(self, transfer: Transfer, here: torch.Tensor) -> None:
        self._transfer, self._is_open, self.wanted = transfer, True, 0
        self._both: Any = here, torch.empty_like(here, device=transfer.device)
        self._views: dict[torch.dtype, Any] = {}
        self._known: dict[Any, tuple[torch.Tensor | None, int, int]] = {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self._is_open or not _is_plain(tensor) or tensor.dim() != 1:
            return self._transfer.copy(tensor)
        dtype, count = tensor.dtype, len(tensor)
        if dtype not in self._views:
            self._views[dtype] = [part.view(dtype) for part in self._both]
        here, there = self._views[dtype]
        key = tensor.data_ptr(), dtype
        _, start, length = self._known.get(key, (None, 0, 0))
        if length < count:
            start = self.wanted // dtype.itemsize
            self.wanted += -(-tensor.nbytes // _ALIGNED) * _ALIGNED
            if self.wanted > len(self._both[0]):  # larger than any batch before
                return self._transfer.copy(tensor)
            here[start : start + count].copy_(tensor)
            self._known[key] = tensor, start, count  # kept, so that its address stays its own
        part: torch.Tensor = there[start : start + count]
        return part

    def copy(self) -> None:
        """Copy what was collected."""
        here, there = (part[: self.wanted] for part in self._both)
        there.copy_(here, non_blocking=True)
        self._is_open, self._both, self._views, self._known = False, None, {}, {}


@dataclass
class _CachedRows:
    """Rows of a feature that are on the device; only the own stream uses them."""

    name: str
    read: list[tuple[torch.Tensor, int | None]]  # the feature, as it was
    slots: torch.Tensor  # (N,) int32: where each row is in ``values``, or −1; in main memory
    there: torch.Tensor  # the same on the device
    values: torch.Tensor  # (K, W), words
    hits: torch.Tensor  # (1,) int64, on the device: a kernel counts them
    asked: int = 0
    outdated: bool = False

    def info(self) -> CacheInfo:
        hits, size = int(self.hits), self.values.nbytes + self.there.nbytes
        return CacheInfo(hits, self.asked - hits, len(self.values), size)


def _scores(graphs: Sequence[Graph], source: Frame) -> tuple[str, torch.Tensor]:
    """Return the type of a frame, and how often each row will be needed, relatively.

    A node is sampled as often as it has out-edges; an edge, as often as the node that it leads to,
    in turn with the other edges into it.
    """
    for graph in graphs:
        degrees = {t: torch.zeros(frame.num_rows) for t, frame in graph.node_frames().items()}
        for etype, relation in graph.relations.items():
            degrees[etype[0]] += relation.out_degrees()
        for ntype, frame in graph.node_frames().items():
            if frame is source:
                return ntype, degrees[ntype]
        for etype, frame in graph.edge_frames.items():
            if frame is source:
                relation = graph.relations[etype]
                share = degrees[etype[2]] / relation.in_degrees().clamp(min=1)
                return etype[1], share[relation.coo()[1].long()]
    raise AssertionError("a frame of another graph")


def tensors_in(values: Sequence[Any], apart_from: Sequence[Any] = ()) -> Iterator[torch.Tensor]:
    """Yield the tensors that values keep alive, those that lazy columns need included."""
    behind, seen = list(values), set(map(id, apart_from))
    while behind:
        part = behind.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, torch.Tensor):
            yield part
        elif isinstance(part, dict):
            behind += part.values()
        elif isinstance(part, list | tuple):
            behind += part
        elif isinstance(part, Graph):
            behind += part.relations, part.src_frames, part.dst_frames, part.edge_frames
        elif isinstance(part, partial):
            behind += part.args
        elif isinstance(part, FunctionType):
            behind += [cell.cell_contents for cell in part.__closure__ or ()]
            behind += part.__defaults__ or ()
        elif names := _HOLDERS.get(type(part)):
            behind += [getattr(part, name) for name in names]


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the bytes of a tensor in main memory are its values, in order."""
    is_here = tensor.device.type == "cpu" and not tensor.requires_grad
    return is_here and tensor.is_contiguous() and tensor.numel() > 0
