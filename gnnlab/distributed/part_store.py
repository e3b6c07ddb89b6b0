"""Store: the data of one part, and the handlers of messages.

A store owns the rows of one part: the nodes and edges of the part, with their features, and the
rows of tensors that were created later. Each row has exactly one owner, so writes cannot race and
an optimizer step is applied once. A message is validated before anything is changed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.distributed import messages as m
from gnnlab.distributed import sparse_rules
from gnnlab.errors import InvalidInput, NotFound, PartitionError
from gnnlab.graph.names import EdgeType, describe
from gnnlab.graph.neighbor import check_weights, pick, pick_until
from gnnlab.graph.relation import Adjacency, check_ids
from gnnlab.graph.temporal import ByTime, read_times, sort_rows
from gnnlab.helpers.fork import Lock
from gnnlab.kernels import gather
from gnnlab.kernels.dtypes import dtype_name, read_dtype, torch_ids_dtype
from gnnlab.kernels.sample_weighted import BadWeight
from gnnlab.partition.part import EdgePart, NodePart, Part
from gnnlab.random import fold

_EDGE = 2 * torch.int64.itemsize  # bytes of an edge in a reply
_MESSAGE = 1 << 10  # approximate bytes of a message beside its tensors
_MAX_ROW = 1 << 32  # elements of one row
_MAX_DIMENSIONS = 15  # of one row
_MAX_FANOUT = (1 << 63) - 1
_MAX_WAITING = 1 << 30  # bytes of gradients that wait for those of other ranks


@dataclass
class _Step:
    """The gradients of a step that have arrived so far, by rank, and their bytes."""

    num_ranks: int
    since: float
    came: dict[int, m.Update] = field(default_factory=dict)
    size: int = 0


class Store:
    """The rows that one part owns: ``tensors`` has those of each by full name.

    ``is_gdata`` says by full name whether a tensor is graph data; features of the partition are.
    Servers set ``is_limited``: replies then have at most
    :data:`gnnlab.distributed.messages.MAX_REPLY` bytes, or all edges of the part where those are
    more. ``copy_rows`` copies rows of a tensor; those of files are read in another way.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.etypes: list[EdgeType] = list(part.edges)
        self.tensors: dict[str, torch.Tensor] = {}
        self.is_gdata: dict[str, bool] = {}
        self._sizes: dict[str, int] = {}  # rows of this part, by policy
        self._originals: dict[str, torch.Tensor] = {}  # IDs before the graph was partitioned
        self._new_ids: dict[str, torch.Tensor] = {}
        self._out_degrees: dict[EdgeType, torch.Tensor] = {}
        self._by_source: dict[EdgeType, tuple[torch.Tensor, torch.Tensor]] = {}
        self._waiting: dict[tuple[str, int], _Step] = {}
        self._widest: dict[EdgeType, int] = {}  # largest in-degree
        self._by_time: dict[str, ByTime] = {}
        self.is_limited = False
        self.copy_rows: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = gather.rows
        self._lock = Lock()
        for ntype, nodes in part.nodes.items():
            self._adopt(f"node~{ntype}", nodes)
        for etype, edges in part.edges.items():
            self._adopt(f"edge~{':'.join(etype)}", edges)

    def _adopt(self, policy: str, owned: NodePart | EdgePart) -> None:
        self._sizes[policy] = owned.num_inner
        self._originals[policy + m.ORIGINAL_IDS] = owned.orig_ids[: owned.num_inner]
        for name, values in owned.data.items():
            self.tensors[f"{policy}~{name}"] = values
            self.is_gdata[f"{policy}~{name}"] = True

    def answer(self, message: m.Message) -> Any:
        """Execute a message of :mod:`gnnlab.distributed.messages`, and return the reply."""
        try:
            act = _ACTS[type(message)]
        except KeyError:
            raise InvalidInput(f"a store cannot answer {type(message).__name__}") from None
        return act(self, message)

    # ---------------------------------------------------------------- tensors
    def _describe(self, _: m.Describe) -> dict[str, m.Description]:
        return {name: self._description(name, rows) for name, rows in list(self.tensors.items())}

    def _description(self, name: str, rows: torch.Tensor) -> m.Description:
        return m.Description(
            tuple(rows.shape[1:]), dtype_name(rows.dtype), self.is_gdata.get(name, True)
        )

    def _create(self, message: m.Create) -> bool:
        policy = message.name.rpartition("~")[0]
        if policy not in self._sizes:
            raise InvalidInput(
                f"the name of a tensor begins with one of {describe(self._sizes)}; found "
                f"{message.name!r}"
            )
        dtype = read_dtype(message.dtype)
        row = message.row_shape
        if len(row) > _MAX_DIMENSIONS or min(row, default=0) < 0 or math.prod(row) > _MAX_ROW:
            raise InvalidInput(
                f"expected the shape of a row, at most {_MAX_DIMENSIONS} sizes and {_MAX_ROW:,} "
                f"elements; found {str(row)[:80]}"
            )
        shape = (self._sizes[policy], *message.row_shape)
        values = message.values
        if values is not None and (values.shape != shape or values.dtype != dtype):
            raise InvalidInput(
                f"{message.name}: the first values of part {self.part.part_id} need shape {shape} "
                f"and {dtype}; found {tuple(values.shape)} and {values.dtype}"
            )
        with self._lock:
            there = self.tensors.get(message.name)
            if there is not None:
                kept = self._description(message.name, there)
                if (message.row_shape, message.dtype) != kept[:2]:
                    raise InvalidInput(
                        f"a tensor {message.name!r} exists with {kept.dtype} rows of shape "
                        f"{kept.row_shape}; asked for {message.dtype} rows of shape "
                        f"{message.row_shape}. Choose another name, or delete the other tensor "
                        "first"
                    )
                return False
            self._put(message, shape, dtype)
            return True

    def _put(self, message: m.Create, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Create the tensor of a validated message."""
        values = torch.zeros(shape, dtype=dtype) if message.values is None else message.values
        self.tensors[message.name] = values.detach().contiguous()
        self.is_gdata[message.name] = message.is_gdata

    def _delete(self, message: m.Delete) -> bool:
        with self._lock:
            self.is_gdata.pop(message.name, None)
            return self.tensors.pop(message.name, None) is not None

    def _table(self, name: str) -> torch.Tensor:
        """Return a tensor; raises NotFound if it does not exist."""
        tensor = self.tensors.get(name)  # in one step: another thread may delete it
        if tensor is None:
            raise NotFound(
                f"there is no distributed tensor {name!r}; there are {describe(self.tensors)}"
            )
        return tensor

    def is_feature(self, name: str) -> bool:
        """Whether a tensor is a feature as the files of the partition have it."""
        policy, _, feature = name.rpartition("~")
        kind, _, type_name = policy.partition("~")
        parts: Any = self.part.nodes if kind == "node" else self.part.edges
        key = type_name if kind == "node" else tuple(type_name.split(":"))
        owner = parts.get(key)
        return owner is not None and owner.data.get(feature) is self.tensors.get(name, owner)

    def _rows(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Return a tensor after checking that it exists and has the rows."""
        tensor = self._table(name)
        _check_rows(rows, len(tensor), name)
        return tensor

    def _pull(self, message: m.Pull) -> torch.Tensor:
        count, original = len(message.rows), self._originals.get(message.name)
        if original is not None:
            _check_rows(message.rows, len(original), message.name)
        tensor = self._rows(message.name, message.rows) if original is None else original
        if len(tensor) and tensor.stride(0) == 0:  # one row stands for all: copy nothing
            return tensor[:1].expand(count, *tensor.shape[1:])
        width = math.prod(tensor.shape[1:]) * tensor.element_size()
        if self.is_limited and count > 1 and count * width > m.MAX_REPLY:
            raise InvalidInput(
                f"{count:,} rows of {message.name} have {count * width:,} bytes; at most "
                f"{m.MAX_REPLY:,} are sent at once. Read fewer rows at once"
            )
        rows = self.copy_rows(tensor, message.rows)
        return rows if original is None else rows.long()

    def _push(self, message: m.Push) -> None:
        tensor = self._rows(message.name, message.rows)
        _check_values(message.name, message.values, tensor, len(message.rows))
        with self._lock:
            kernels.owners.copy_rows(message.values.contiguous(), None, tensor, message.rows)

    def _count_nonzero(self, message: m.CountNonzero) -> int:
        return int((self._table(message.name) != 0).sum())

    def _update(self, message: m.Update) -> None:
        name = message.name
        sparse_rules.check(message.rule, message.options, len(message.states))
        tensor = self._rows(name, message.rows)
        _check_values(name, message.grads, tensor, len(message.rows))
        if not bool(torch.isfinite(message.grads).all()):
            raise InvalidInput(
                f"the gradient of {name} holds NaN or infinite values: the loss diverged; lower "
                "the learning rate, or look at the inputs"
            )
        if not 0 <= message.rank < message.num_ranks or message.step < 1:
            raise InvalidInput(
                f"expected 0 <= rank < num_ranks and a step from 1; found {message.rank}, "
                f"{message.num_ranks} and step {message.step}"
            )
        states = [self._rows(state, message.rows) for state in message.states]
        if any((s.shape, s.dtype) != (tensor.shape, tensor.dtype) for s in states):
            raise InvalidInput(f"{message.states} need the shape and dtype of {name}")
        if tensor.dtype not in sparse_rules.DTYPES:
            raise InvalidInput(
                f"{name} holds {tensor.dtype}; gradients are for float32 and float64"
            )
        with self._lock:
            step = self._add(message)
            if len(step.came) < step.num_ranks:
                return
            del self._waiting[name, message.step]
            given = [(x.rows.long(), x.grads) for _, x in sorted(step.came.items())]
            rows, grads = sparse_rules.merge(given)
            sparse_rules.apply(
                *(message.rule, tensor, rows, grads, states, message.options), step=message.step
            )

    def _add(self, message: m.Update) -> _Step:
        """Add the gradients of a rank to those collected for the step."""
        name, number = message.name, message.step
        step = self._waiting.get((name, number))
        if step is None:
            step = _Step(message.num_ranks, time.monotonic())
            # Ranks are at most one step apart: older steps will never be complete.
            for old in [key for key in self._waiting if key[0] == name][:-1]:
                del self._waiting[old]
        if message.num_ranks != step.num_ranks:
            raise InvalidInput(
                f"step {number} of {name} has {step.num_ranks} ranks; rank {message.rank} sent "
                f"{message.num_ranks}"
            )
        size = message.rows.nbytes + message.grads.nbytes + _MESSAGE
        if (before := step.came.pop(message.rank, None)) is not None:  # of a retried step
            step.size -= before.rows.nbytes + before.grads.nbytes + _MESSAGE
        total = size + sum(each.size for each in self._waiting.values())
        if len(step.came) + 1 < step.num_ranks and total > _MAX_WAITING:
            raise InvalidInput(
                f"gradients of {name} for step {number} wait for those of other ranks: with them "
                f"{total:,} bytes would wait, and at most {_MAX_WAITING:,} may. Use smaller "
                "batches or more servers"
            )
        step.came[message.rank] = message
        step.size += size
        self._waiting[name, number] = step
        return step

    def drop_waiting(self, seconds: float) -> None:
        """Discard gradients that have waited this long for those of other ranks."""
        if not self._waiting:
            return
        with self._lock:
            limit = time.monotonic() - seconds
            self._waiting = {n: step for n, step in self._waiting.items() if step.since > limit}

    # -------------------------------------------------------------- structure
    def _etype(self, position: int) -> EdgeType:
        if not 0 <= position < len(self.etypes):
            raise InvalidInput(f"edge type {position} of {len(self.etypes)} does not exist")
        return self.etypes[position]

    def _to_new(self, ntype: str, local: torch.Tensor) -> torch.Tensor:
        """Map local node IDs (inner nodes, then halo nodes) to type-wise IDs of the whole graph."""
        table = self._new_ids.get(ntype)
        if table is None:
            nodes, offsets = self.part.nodes[ntype], self.part.book.node_ranges[ntype]
            lo = int(offsets[self.part.part_id])
            dtype = torch_ids_dtype(int(offsets[-1]))
            inner = torch.arange(lo, lo + nodes.num_inner, dtype=dtype)
            table = torch.cat([inner, nodes.halo.to(dtype)])
            if nodes.num_inner == int(offsets[-1]):
                table = table[:0]  # this part has all nodes: local IDs are type-wise IDs
            self._new_ids[ntype] = table
        return gather.rows(table, local) if len(table) else local

    def _first_edge(self, etype: EdgeType) -> int:
        return int(self.part.book.edge_ranges[etype][self.part.part_id])

    def _sample(self, message: m.Sample) -> tuple[tuple[torch.Tensor, ...], ...]:
        count = len(self.etypes)
        if len(message.fanouts) != count or min(message.fanouts, default=0) < -1:
            raise InvalidInput(
                f"expected {count} fanouts of at least −1, one per edge type; found "
                f"{message.fanouts}"
            )
        if max(message.fanouts, default=0) > _MAX_FANOUT or not 0 <= message.key < 1 << 64:
            raise InvalidInput(
                f"fanouts are at most {_MAX_FANOUT} and a key has 64 bits; found {message.fanouts} "
                f"and {message.key}"
            )
        if len(message.weights) not in (0, count) or not set(message.excluded) <= set(range(count)):
            raise InvalidInput(
                f"weights and excluded edges are for {count} edge types; found {message.weights} "
                f"and edges of types {list(message.excluded)}"
            )
        names = {}
        for ntype, seeds in message.seeds.items():
            if ntype not in self.part.nodes:
                raise NotFound(f"no node type {ntype!r}; there are {describe(self.part.nodes)}")
            _check_rows(seeds, self.part.nodes[ntype].num_inner, f"node type {ntype!r}")
            names[ntype] = gather.rows(self.part.nodes[ntype].orig_ids, seeds)
        if isinstance(message, m.SampleUntil):
            self._check_until(message)
        if self.is_limited:
            self._check_size(message)
        return tuple(self._sample_type(message, number, names) for number in range(count))

    def _check_until(self, message: m.SampleUntil) -> None:
        seeds = {ntype: len(ids) for ntype, ids in message.seeds.items()}
        until = {ntype: len(times) for ntype, times in message.until.items()}
        kinds = {times.dtype for times in message.until.values()}
        if until != seeds or not kinds <= {torch.int64, torch.float64}:
            raise InvalidInput(f"seeds {seeds} need as many times, int64 or float64; found {until}")
        if len(message.times) != len(self.etypes) or (message.last and any(message.weights)):
            raise InvalidInput(
                f"times are for {len(self.etypes)} edge types, and the last edges have no weights; "
                f"found {message.times} and {message.weights}"
            )

    def _edges_by_time(self, etype: EdgeType, name: str) -> ByTime:
        """Return the edges of a type sorted by a feature of the partition; sorted once."""
        edges, values = self.part.edges[etype], self._table(name)
        if not self.is_feature(name):
            raise InvalidInput(
                f"{name} was created or written by this job; times of edges are a feature of the "
                "partition. Set it before partition_graph"
            )
        with self._lock:
            if name not in self._by_time:
                times = read_times(values, edges.num_inner, name)
                indptr = edges.indptr[: self.part.nodes[etype[2]].num_inner + 1]
                rows = Adjacency(indptr, edges.indices[: edges.num_inner])
                self._by_time[name] = sort_rows(rows, times)
            return self._by_time[name]

    def _check_size(self, message: m.Sample) -> None:
        """Refuse a sample that is larger than all edges of the part and than MAX_REPLY."""
        total = 0
        for number, (etype, fanout) in enumerate(zip(self.etypes, message.fanouts, strict=True)):
            seeds = message.seeds.get(etype[2])
            if seeds is None or not len(seeds):
                continue
            widest, repeats = self._largest_degree(etype), message.replace and fanout >= 0
            # The weights of all in-edges are gathered, however few are sampled.
            needs_all = fanout < 0 or bool(message.weights and message.weights[number])
            most = max(fanout if repeats else min(fanout, widest), widest if needs_all else 0)
            if len(seeds) * most <= m.MAX_REPLY // _EDGE // len(self.etypes):
                continue  # the usual case: the seeds' degrees are not needed
            indptr = self.part.edges[etype].indptr
            degrees = gather.rows(indptr[1:], seeds) - gather.rows(indptr, seeds)
            if needs_all and not repeats:
                total += int(degrees.sum())
            elif repeats:
                drawn = int((degrees > 0).sum()) * fanout
                total += max(drawn, int(degrees.sum()) if needs_all else 0)
            else:
                total += int(degrees.clamp(max=fanout).sum())
        limit = max(m.MAX_REPLY // _EDGE, sum(e.num_inner for e in self.part.edges.values()))
        if total > limit:
            raise InvalidInput(
                f"this sample needs {total:,} edges, and at most {limit:,} are sent at once. "
                "Ask for fewer seeds at once, or for a smaller fanout"
            )

    def _largest_degree(self, etype: EdgeType) -> int:
        if etype not in self._widest:
            edges, num_inner = self.part.edges[etype], self.part.nodes[etype[2]].num_inner
            degrees = edges.indptr[: num_inner + 1].diff()
            self._widest[etype] = int(degrees.max()) if len(degrees) else 0
        return self._widest[etype]

    def _sample_type(
        self, message: m.Sample, number: int, names: dict[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        etype = self.etypes[number]
        edges = self.part.edges[etype]
        seeds = message.seeds.get(etype[2])
        if seeds is None:
            seeds = names[etype[2]] = torch.empty(0, dtype=torch.int64)
        excluded = message.excluded.get(number)
        if excluded is not None:
            _check_rows(excluded, edges.num_inner, f"edge type {etype}")
            excluded = torch.unique(excluded.long()) if len(excluded) else None
        name, weights = message.weights[number] if message.weights else None, None
        if name is not None:
            weights = check_weights(self._table(name), edges.num_inner, f"those of {name}")
        first = self._first_edge(etype)
        how = message.fanouts[number], fold(message.key, number), message.replace, weights
        try:
            times = message.times[number] if isinstance(message, m.SampleUntil) else None
            if isinstance(message, m.SampleUntil) and times is not None:
                rows = self._edges_by_time(etype, times)
                if excluded is not None:
                    excluded = torch.sort(rows.edges.slots_of(excluded)).values
                until = message.until.get(etype[2], names[etype[2]])
                ptr, slots, sources, *_ = pick_until(
                    *(rows, seeds, until, message.last, *how, excluded, names[etype[2]])
                )
                slots = rows.edges.eids_at(slots)
            else:
                adjacency = Adjacency(edges.indptr, edges.indices)
                ptr, slots, sources = pick(adjacency, seeds, *how, excluded, names[etype[2]])
        except BadWeight as error:
            raise BadWeight(error.edge + first, error.weight) from None
        if first:
            slots = slots.to(torch_ids_dtype(int(self.part.book.edge_ranges[etype][-1])))
            slots += first
        return ptr, slots, self._to_new(etype[0], sources)

    def _find_edges(self, message: m.FindEdges) -> tuple[torch.Tensor, torch.Tensor]:
        etype = self._etype(message.etype)
        edges = self.part.edges[etype]
        _check_rows(message.rows, edges.num_inner, f"edge type {etype}")
        rows = message.rows.long()
        dst = torch.searchsorted(edges.indptr, rows, right=True) - 1
        ends = (etype[0], gather.rows(edges.indices, rows)), (etype[2], dst)
        src, dst = (self._to_new(ntype, local).long() for ntype, local in ends)
        return src, dst

    def _reverse(self, message: m.Reverse) -> torch.Tensor:
        etype, back = self._etype(message.etype), self._etype(message.reverse_etype)
        edges, reverse = self.part.edges[etype], self.part.edges[back]
        _check_rows(message.rows, edges.num_inner, f"edge type {etype}")
        rows = message.rows.long()
        wanted = edges.orig_ids[rows].to(reverse.orig_ids.dtype)
        arrays = reverse.indptr, reverse.orig_ids, edges.indices[rows], wanted
        if etype[::-2] != back[::2]:
            found = torch.empty(0, dtype=torch.int64)
        else:
            found = torch.from_numpy(kernels.sample.edge_slots(*(a.numpy() for a in arrays)))
            found = found[found < len(reverse.orig_ids)]
        missing = wanted[~torch.isin(wanted, reverse.orig_ids[found])]
        if len(missing):
            raise InvalidInput(
                f"edge {int(missing[0])} of type {etype} (its ID before partitioning) has no "
                f"reverse edge of the same ID and type {back}; exclude by 'reverse_id' or by a "
                "callable"
            )
        inner = found < reverse.num_inner
        halo = reverse.halo[found[~inner] - reverse.num_inner]
        return torch.cat([found[inner] + self._first_edge(back), halo])

    def _out_edges(self, message: m.OutEdges) -> tuple[torch.Tensor, torch.Tensor]:
        etype = self._etype(message.etype)
        edges = self.part.edges[etype]
        _check_rows(message.rows, self.part.nodes[etype[0]].num_inner, f"edge type {etype}")
        starts, slots = self._grouped_by_source(etype)
        rows = message.rows.long()
        count = starts[rows + 1] - starts[rows]
        ptr = torch.nn.functional.pad(count.cumsum(0), (1, 0))
        total, limit = int(ptr[-1]), max(m.MAX_REPLY // _EDGE, len(edges.indices))
        if self.is_limited and total > limit:
            raise InvalidInput(
                f"these nodes have {total:,} out-edges, and at most {limit:,} are sent at once. "
                "Ask for fewer nodes at once"
            )
        found = slots[torch.arange(total) + (starts[rows] - ptr[:-1]).repeat_interleave(count)]
        inner = found < edges.num_inner
        eids = found + self._first_edge(etype)
        eids[~inner] = edges.halo[found[~inner] - edges.num_inner].long()
        return ptr, eids

    def _grouped_by_source(self, etype: EdgeType) -> tuple[torch.Tensor, torch.Tensor]:
        """Group the part's edges by source: (starts of inner nodes' groups, slots); kept."""
        if etype not in self._by_source:
            edges = self.part.edges[etype]
            order = np.lexsort((edges.orig_ids.numpy(), edges.indices.numpy()))
            slots = torch.from_numpy(order)
            nodes = torch.arange(self.part.nodes[etype[0]].num_inner + 1)
            starts = torch.searchsorted(edges.indices.long()[slots], nodes)
            self._by_source[etype] = starts, slots
        return self._by_source[etype]

    def _degrees(self, message: m.Degrees) -> torch.Tensor:
        etype = self._etype(message.etype)
        edges = self.part.edges[etype]
        nodes = self.part.nodes[etype[2 if message.inward else 0]]
        _check_rows(message.rows, nodes.num_inner, f"edge type {etype}")
        rows = message.rows.long()
        if message.inward:
            return edges.indptr[rows + 1] - edges.indptr[rows]
        if etype not in self._out_degrees:
            # The part stores all out-edges of its nodes, also those into other parts.
            counts = torch.bincount(edges.indices, minlength=nodes.num_inner)
            self._out_degrees[etype] = counts[: nodes.num_inner]
        return self._out_degrees[etype][rows]

    def _inclusion(self, message: m.Inclusion) -> tuple[torch.Tensor, torch.Tensor]:
        etype, count = self._etype(message.etype), len(message.rows)
        edges, nodes = self.part.edges[etype], self.part.nodes[etype[0]]
        _check_rows(message.rows, self.part.nodes[etype[2]].num_inner, f"edge type {etype}")
        _check_values("probabilities", message.probs, torch.empty(0, dtype=torch.float64), count)
        if not bool(((message.probs >= 0) & (message.probs <= 1)).all()):
            raise InvalidInput("probabilities are from 0 to 1")
        if not -1 <= message.fanout <= _MAX_FANOUT:
            raise InvalidInput(f"a fanout is −1 to {_MAX_FANOUT}; found {message.fanout}")
        num_local = nodes.num_inner + len(nodes.halo)
        if self.is_limited and num_local * _EDGE > m.MAX_REPLY:
            raise InvalidInput(
                f"the probabilities of {num_local:,} nodes are too large for a reply; use another "
                "cache_policy"
            )
        logs = np.zeros(num_local)
        arrays = (edges.indptr, edges.indices, message.rows, message.probs)
        given = *(array.numpy() for array in arrays), message.fanout, message.replace, logs
        if not kernels.cache.add_misses(*given):
            raise PartitionError(f"edges {etype} are damaged: a source does not exist")
        found = torch.from_numpy(np.flatnonzero(logs))
        return self._to_new(etype[0], found), torch.from_numpy(logs)[found]


_ACTS: dict[type, Callable[[Store, Any], Any]] = {
    m.Describe: Store._describe,
    m.Create: Store._create,
    m.Delete: Store._delete,
    m.Pull: Store._pull,
    m.Push: Store._push,
    m.Update: Store._update,
    m.CountNonzero: Store._count_nonzero,
    m.Sample: Store._sample,
    m.SampleUntil: Store._sample,
    m.FindEdges: Store._find_edges,
    m.OutEdges: Store._out_edges,
    m.Degrees: Store._degrees,
    m.Inclusion: Store._inclusion,
    m.Reverse: Store._reverse,
}


def _check_rows(rows: torch.Tensor, bound: int, what: str) -> None:
    if rows.dtype not in (torch.int64, torch.int32) or rows.ndim != 1:
        raise InvalidInput(
            f"{what}: rows are int64 or int32 of one dimension; found {rows.dtype} of shape "
            f"{tuple(rows.shape)}"
        )
    check_ids(rows, bound, f"{what}: row")


def _check_values(name: str, values: torch.Tensor, tensor: torch.Tensor, count: int) -> None:
    shape = (count, *tensor.shape[1:])
    if values.dtype != tensor.dtype or values.shape != shape:
        raise InvalidInput(
            f"{name}: expected values of {tensor.dtype} and shape {tuple(shape)}; found "
            f"{values.dtype} and {tuple(values.shape)}"
        )
