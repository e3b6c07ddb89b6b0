"""Neighbor sampling of all layers of a mini-batch in a few launches, for GPUs that have Triton.

A launch costs the host about as much as a GPU needs for all edges of a layer, and a wait for a size
costs more. Here a layer takes four launches and no wait: kernels read the number of nodes and edges
so far from the device, arrays are as long as the largest possible result, and programs past the end
do nothing. After one launch for the seeds, the kernels of a layer are

``_pick``       choose edges of each node by Floyd's method; announce each edge at its source
``_count_new``  count the sources that are new, per program
``_number``     give new sources the next local IDs, in the order of their first edges
``_finish``     write the local ID of each edge's source; count the edges of the next layer

Local IDs come from a table with one entry per node of the graph, as in ``relabel``. For a new
source, all its edges try to write their number there, and the smallest stays (an atomic minimum);
so the first edge finds its own number and counts for the node. The table is never cleared. The
upper half of each entry is the *tag* of the batch that wrote it, which falls from batch to batch:
to the minimum, an older entry is a larger number, as if it were empty.

Where a program writes depends on how much earlier programs write. One kernel stores the sum of each
program, and each program of the next kernel adds up those before it.

Random numbers are those of ``rng``, so the samples equal the CPU's. The graph may be pinned memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from gnnlab.errors import InvalidInput
from gnnlab.kernels.dtypes import torch_ids_dtype

MOST_FANOUT = 32  # the picks of a node are compared with each other, in registers
MOST_LAYERS = 16

# What is in ``counters``: NODES + 2 l before layer l, EDGES + 2 l of it.
TAG, WRONG_SEED, NODES, EDGES = map(tl.constexpr, range(4))
UNNUMBERED = tl.constexpr(1 << 31)  # in an entry of the table: the rest is the number of an edge
LOW = tl.constexpr((1 << 31) - 1)
NODE_BLOCK, EDGE_BLOCK = 64, 1024  # nodes and edges of a program


@triton.jit
def _mix(z):  # type: ignore[no-untyped-def]
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def _draw_below(stream, number, bound):  # type: ignore[no-untyped-def]
    bits = _mix(stream + tl.full((1,), number + 1, tl.uint64) * 0x9E3779B97F4A7C15)
    return (((bits >> 32) * bound.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit
def _edges_of(indptr, node, live, fanout, REPLACE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return first slot, degree, and number of edges to sample of each node."""
    first = tl.load(indptr + node, mask=live, other=0)
    degree = tl.load(indptr + node + 1, mask=live, other=0) - first
    if REPLACE:
        return first, degree, tl.where(degree > 0, fanout, 0).to(tl.int64)
    return first, degree, tl.minimum(degree, fanout).to(tl.int64)


@triton.jit
def _sum_before(sums, program, written):  # type: ignore[no-untyped-def]
    """Sum what the programs before this one have stored; the first ``written`` have."""
    last = tl.minimum(program, written)
    total = tl.zeros((512,), tl.int64)
    begin = last * 0
    while begin < last:
        at = begin + tl.arange(0, 512)
        total += tl.load(sums + at, mask=at < last, other=0)
        begin += 512
    return tl.sum(total, 0)


@triton.jit
def _is_first(edge, live, sources, table, counters):  # type: ignore[no-untyped-def]
    """Return the source of each edge, and whether the edge is the first of a new source."""
    source = tl.load(sources + edge, mask=live, other=0).to(tl.int64)
    own = (tl.load(counters + TAG) << 32) + UNNUMBERED + edge
    return source, live & (tl.load(table + source, mask=live, other=0) == own)


@triton.jit(
    do_not_specialize=["num_seeds", "num_nodes", "fanout"], do_not_specialize_on_alignment=["seeds"]
)
def _enter(  # type: ignore[no-untyped-def]
    seeds, num_seeds, num_nodes, indptr, ids, table, counters, sums, fanout,
    REPLACE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Begin the list of nodes with the seeds, and count their edges; report a wrong seed."""
    program = tl.program_id(0)
    i = (program * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    live = i < num_seeds
    node = tl.load(seeds + i, mask=live, other=0).to(tl.int64)
    exists = (node >= 0) & (node < num_nodes)
    node = tl.where(exists, node, 0)
    tag = tl.load(counters + TAG)
    before = tl.atomic_min(table + node, (tag << 32) + i, mask=live & exists, sem="relaxed")
    wrong = live & (~exists | (before >> 32 == tag))  # unknown, or twice among the seeds
    tl.store(counters + WRONG_SEED + 0 * i, 1, mask=wrong)
    tl.store(ids + i, node.to(ids.dtype.element_ty), mask=live)
    count = _edges_of(indptr, node, live, fanout, REPLACE)[2]
    tl.store(sums + program, tl.sum(count, 0))
    if program == 0:
        tl.store(counters + NODES, tl.cast(num_seeds, tl.int64))


@triton.jit(do_not_specialize=["layer", "rows"])
def _pick(  # type: ignore[no-untyped-def]
    indptr, indices, keys, layer, ids, table, counters, sums,
    ptr, sizes, slots, sources, rows,
    FANOUT: tl.constexpr, WIDTH: tl.constexpr, REPLACE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sample edges of each node; ``rows`` is the most nodes that there may be."""
    program, count_at = tl.program_id(0), counters + 2 * layer
    num_nodes = tl.load(count_at + NODES)
    i = (program * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    live = i < num_nodes
    node = tl.load(ids + i, mask=live, other=0).to(tl.int64)
    first, degree, count = _edges_of(indptr, node, live, FANOUT, REPLACE)
    end = _sum_before(sums, program, tl.cdiv(num_nodes, BLOCK)) + tl.cumsum(count, 0)
    begin = end - count
    # Rows after the last node are empty, so all begin at the number of edges.
    tl.store(ptr + i, begin, mask=i <= rows)
    tl.store(sizes + i, count, mask=i < rows)
    tl.store(count_at + EDGES + 0 * i, begin, mask=i == rows)

    stream = _mix((tl.load(keys + layer) + node).to(tl.uint64))
    column = tl.arange(0, WIDTH)[None, :]
    picks = tl.full((BLOCK, WIDTH), -1, tl.int64)
    spare = tl.maximum(degree - FANOUT, 0)
    for j in range(FANOUT):
        if REPLACE:
            pick = _draw_below(stream, j, degree)
        else:
            pick = _draw_below(stream, j, spare + (j + 1))
            taken = tl.max((picks == pick[:, None]).to(tl.int32), 1) > 0
            pick = tl.where(taken | (degree <= FANOUT), spare + j, pick)
        picks = tl.where(column == j, pick[:, None], picks)
    slot, edge = first[:, None] + picks, begin[:, None] + column
    live_edge = column < count[:, None]
    source = tl.load(indices + slot, mask=live_edge, other=0).to(tl.int64)
    tl.store(slots + edge, slot.to(slots.dtype.element_ty), mask=live_edge)
    tl.store(sources + edge, source.to(sources.dtype.element_ty), mask=live_edge)
    entry = (tl.load(counters + TAG) << 32) + UNNUMBERED + edge
    tl.atomic_min(table + source, entry, mask=live_edge, sem="relaxed")


@triton.jit(do_not_specialize=["layer"])
def _count_new(sources, layer, table, counters, sums, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store how many edges of this program are the first of a new source."""
    program, count_at = tl.program_id(0), counters + 2 * layer
    edge = (program * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    live = edge < tl.load(count_at + EDGES)
    is_first = _is_first(edge, live, sources, table, counters)[1]
    tl.store(sums + program, tl.sum(is_first.to(tl.int64), 0))


@triton.jit(do_not_specialize=["layer"])
def _number(sources, layer, table, counters, sums, ids, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Append new sources to the list of nodes."""
    program, count_at = tl.program_id(0), counters + 2 * layer
    num_edges, known = tl.load(count_at + EDGES), tl.load(count_at + NODES)
    edge = (program * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    source, is_first = _is_first(edge, edge < num_edges, sources, table, counters)
    end = known + _sum_before(sums, program, tl.cdiv(num_edges, BLOCK))
    end += tl.cumsum(is_first.to(tl.int64), 0)
    tl.store(ids + end - 1, source.to(ids.dtype.element_ty), mask=is_first)
    tl.store(table + source, (tl.load(counters + TAG) << 32) + end - 1, mask=is_first)
    if program == tl.num_programs(0) - 1:
        tl.store(count_at + NODES + 2, tl.max(end, 0))


@triton.jit(do_not_specialize=["layer", "fanout"])
def _finish(  # type: ignore[no-untyped-def]
    sources, local, layer, table, counters, sums, ids, indptr, fanout,
    REPLACE: tl.constexpr, BLOCK: tl.constexpr, EDGE_BLOCK: tl.constexpr,
):  # fmt: skip
    """Write local IDs of the sources; ``fanout`` is that of the next layer, 0 after the last."""
    program, count_at = tl.program_id(0), counters + 2 * layer
    edge = (program * EDGE_BLOCK + tl.arange(0, EDGE_BLOCK)).to(tl.int64)
    live = edge < tl.load(count_at + EDGES)
    source = tl.load(sources + edge, mask=live, other=0).to(tl.int64)
    entry = tl.load(table + source, mask=live, other=0)
    tl.store(local + edge, (entry & LOW).to(tl.int32), mask=live)
    if fanout > 0:
        i = (program * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
        is_node = i < tl.load(count_at + NODES + 2)
        node = tl.load(ids + i, mask=is_node, other=0).to(tl.int64)
        count = _edges_of(indptr, node, is_node, fanout, REPLACE)[2]
        tl.store(sums + program, tl.sum(count, 0))
    elif program == 0:
        tl.store(counters + TAG, tl.load(counters + TAG) - 1)


class Layer(NamedTuple):
    """Sampled edges of a layer.

    ``num_dst`` and ``num_src`` are the numbers of nodes before and after it. Edges of row i are
    ``ptr[i]:ptr[i + 1]``, and ``sizes[i]`` is their number, both int64. Of each edge, ``slots`` has
    the position in ``indices``, and ``local`` the local ID of the source, int32.
    """

    num_dst: int
    num_src: int
    ptr: torch.Tensor
    sizes: torch.Tensor
    slots: torch.Tensor
    local: torch.Tensor


class Workspace:
    """The table and the counters, kept from batch to batch; one batch at a time may use them."""

    def __init__(self, num_nodes: int, device: torch.device | str) -> None:
        self.table = torch.empty(num_nodes, dtype=torch.int64, device=device)
        self.counters = torch.empty(3 + 2 * MOST_LAYERS, dtype=torch.int64, device=device)
        self.reset()

    def reset(self) -> None:
        """Empty the table, clear errors, and begin with the largest tag."""
        self.table.fill_(torch.iinfo(torch.int64).max)
        self.counters.zero_()
        self.counters[:1].fill_((1 << 31) - 2)


def _longest(
    num_nodes: int, num_edges: int, fanouts: Sequence[int], num_seeds: int, replace: bool = False
) -> list[tuple[int, int]]:
    """Return, by layer in the order of sampling, the most nodes after it and its most edges."""
    bounds, nodes = [], num_seeds
    for fanout in fanouts:
        edges = nodes * fanout if replace else min(nodes * fanout, num_edges)
        nodes = max(min(nodes + edges, num_nodes), nodes)
        bounds.append((nodes, edges))
    return bounds


def covers(num_nodes: int, num_edges: int, fanouts: Sequence[int], *options: Any) -> bool:
    """Whether the kernels can sample this; arguments as for :class:`Batch`."""
    if len(fanouts) > MOST_LAYERS or not all(0 < fanout <= MOST_FANOUT for fanout in fanouts):
        return False
    bounds = _longest(num_nodes, num_edges, fanouts, *options)
    return num_nodes > 0 and all(max(bound) < 1 << 31 for bound in bounds)


class Batch:
    """The arrays of a mini-batch, and the launches that fill them.

    ``indptr`` and ``indices`` are the graph grouped by destination, shapes (N + 1,) int64 and (E,),
    on the device of the workspace or in pinned memory of the host. ``fanouts`` begin with that
    of the last layer; see :func:`covers`. ``idtype`` is that of ``ids``, the IDs of all nodes.
    """

    def __init__(
        self,
        workspace: Workspace,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        fanouts: Sequence[int],
        num_seeds: int,
        replace: bool = False,
        idtype: torch.dtype = torch.int64,
    ) -> None:
        self.workspace, self.indptr, self.indices = workspace, indptr, indices
        self.fanouts, self.num_seeds, self.replace = [*fanouts, 0], num_seeds, replace

        def new(length: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(max(length, 1), dtype=dtype, device=workspace.table.device)

        self.layers: list[Layer] = []
        slot_type = torch_ids_dtype(len(indices))
        bounds = _longest(len(indptr) - 1, len(indices), fanouts, num_seeds, replace)
        for (before, _), (nodes, edges) in pairwise([(num_seeds, 0), *bounds]):
            rows = new(before + 1, torch.int64), new(before, torch.int64)
            chosen = new(edges, slot_type), new(edges, torch.int32)
            self.layers.append(Layer(before, nodes, *rows, *chosen))
        edges = max(len(layer.local) for layer in self.layers)
        self.ids, self._sources = new(nodes, idtype), new(edges, indices.dtype)
        self._sums = new(nodes // NODE_BLOCK + edges // EDGE_BLOCK + 2, torch.int64)

    def launch(self, seeds: torch.Tensor, keys: torch.Tensor) -> None:
        """Sample on the current stream, without a wait.

        Both tensors are on the device. ``seeds`` has shape (num_seeds,) and is checked there;
        ``keys`` has a key of random numbers for each layer in the order of sampling, int64.
        """
        ids, sources, indptr, table = self.ids, self._sources, self.indptr, self.workspace.table
        state = table, self.workspace.counters, self._sums
        options = {"REPLACE": self.replace, "BLOCK": NODE_BLOCK}
        counts = self.num_seeds, len(table)
        device = table.device  # Triton launches on the current one
        is_cpu = device.type == "cpu"  # in Triton's interpreter
        with nullcontext() if is_cpu else torch.get_device_module(device).device(device):
            _enter[_grid(self.num_seeds)](
                seeds, *counts, indptr, ids, *state, self.fanouts[0], **options
            )
            for number, layer in enumerate(self.layers):
                fanout, following = self.fanouts[number : number + 2]
                grid = _grid(len(layer.local), EDGE_BLOCK)
                _pick[_grid(layer.num_dst + 1)](
                    *(indptr, self.indices, keys, number, ids, *state),
                    *(layer.ptr, layer.sizes, layer.slots, sources, layer.num_dst, fanout),
                    WIDTH=triton.next_power_of_2(fanout),
                    **options,
                )
                _count_new[grid](sources, number, *state, BLOCK=EDGE_BLOCK)
                _number[grid](sources, number, *state, ids, BLOCK=EDGE_BLOCK)
                _finish[max(grid, _grid(layer.num_src if following else 1))](
                    *(sources, layer.local, number, *state, ids, indptr, following),
                    EDGE_BLOCK=EDGE_BLOCK,
                    **options,
                )

    def result(self) -> tuple[torch.Tensor, list[Layer]]:
        """Wait for the sizes; return IDs and layers, cut.

        Raises InvalidInput if a seed does not exist or occurs twice.
        """
        tag, wrong_seed, *counts = self.workspace.counters.tolist()
        if wrong_seed or tag < 2 - (1 << 31):
            self.workspace.reset()
        if wrong_seed:
            raise InvalidInput("a seed does not exist, or stands twice among the seeds")
        layers = []
        for layer in self.layers:
            num_dst, edges, num_src, *_ = counts
            del counts[:2]
            rows = _first(layer.ptr, num_dst + 1), _first(layer.sizes, num_dst)
            chosen = _first(layer.slots, edges), _first(layer.local, edges)
            layers.append(Layer(num_dst, num_src, *rows, *chosen))
        return _first(self.ids, num_src), layers


def _first(array: torch.Tensor, length: int) -> torch.Tensor:
    """Return the first part; a copy if a view would keep more than twice its memory."""
    part = array[:length]
    return part if 2 * length >= len(array) else part.clone()


def _grid(length: int, block: int = NODE_BLOCK) -> tuple[int]:
    return (max(-(-length // block), 1),)
