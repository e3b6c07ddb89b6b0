"""Sample mini-batches of a graph as blocks, with torch alone.

Origin:  gnnlab/helpers/block_sampler.py
Version: gnnlab 0.1.0
License: Apache-2.0
Needs:   Python 3.11 or newer, torch 2.8 or newer

A layer of a graph neural network computes new features of *destination* nodes from the features of
their in-neighbors, the *source* nodes. For a mini-batch of seed nodes, only a few edges are needed:
those that enter the seeds for the last layer, those that enter the nodes found so far for the layer
before it, and so on. Each step is a `Block`. `NeighborSampler` takes a fixed number of in-edges per
node; to choose edges in another way, derive from `BlockSampler` and write one method.

A layer is three lines of torch, and a model is a ModuleList of them:

>>> import torch
>>> class MeanLayer(torch.nn.Linear):  # GraphSAGE with the mean of the neighbors
...     def forward(self, block, h):
...         neighbors = block.adjacency(mean=True) @ h                      # (num_dst, D)
...         own = h[: block.num_dst_nodes()]                                # (num_dst, D)
...         return super().forward(torch.cat([own, neighbors], dim=1))      # (num_dst, D_out)
>>> g = Graph(torch.tensor([1, 2, 3, 4, 5]), torch.tensor([0, 0, 0, 1, 2]), num_nodes=6)
>>> feat, layers = torch.eye(6), torch.nn.ModuleList([MeanLayer(2 * 6, 8), MeanLayer(2 * 8, 2)])
>>> input_nodes, output_nodes, blocks = NeighborSampler([-1, 2]).sample(g, torch.tensor([0]))
>>> h = feat[input_nodes]
>>> for layer, block in zip(layers, blocks):
...     h = layer(block, h)
>>> h.shape
torch.Size([1, 2])

With PyG (not GCNConv): ``conv((h, h[: block.num_dst_nodes()]), torch.stack(block.edges()))``.

With a ``key``, `NeighborSampler`'s edges of a node depend on key, layer and node alone, so threads,
processes and devices get the same. Without one, they depend on `seed` (not on torch's seed) and the
calls since, in this process: a forked worker repeats them each epoch. Your own: see `next_key`.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014: ``mix``.
Bentley and Floyd, "Programming Pearls: A Sample of Brilliance", CACM 1987: k of d positions.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

__all__ = ["EID", "NID", "Adjacency", "Block", "BlockSampler", "Graph", "NeighborSampler", "fold"]
__all__ += ["in_subgraph", "next_key", "sample_neighbors", "seed", "stream", "to_block"]

NID = EID = "_ID"  # keys of srcdata and dstdata, and of edata: IDs in the whole graph


class _OnDevice:
    def to(self, device: Any) -> Any:
        """Return a copy on another device, with its features."""
        moved = copy.copy(self)
        vars(moved).update(_moved(vars(self), device))
        return moved


class Graph(_OnDevice):
    """A directed graph whose edge k goes from ``src[k]`` to ``dst[k]``.

    ``ndata`` and ``edata`` are dictionaries of features, first dimension N and E.

    Parameters
    ----------
    src, dst : torch.Tensor
        Shape (E,), integers; int64 is not copied. ValueError if an ID is outside 0 … N − 1.
    num_nodes : int, optional
        N; by default the largest ID plus one.

    Examples
    --------
    From tensors, from PyG's ``edge_index``, from a graph of DGL or gnnlab, from CSC arrays:

    >>> g = Graph(torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2]))
    >>> edge_index = torch.tensor([[0, 0, 1], [1, 2, 2]])
    >>> g = Graph(*edge_index, num_nodes=3)
    >>> # g = Graph(*dgl_graph.edges(), num_nodes=dgl_graph.num_nodes())
    >>> g = Graph.from_csc(torch.tensor([0, 0, 1, 3]), torch.tensor([0, 0, 1]))
    >>> g
    Graph(num_nodes=3, num_edges=3)
    """

    def __init__(self, src: Any, dst: Any, num_nodes: int | None = None) -> None:
        src, dst = read_ids(src, "src", num_nodes), read_ids(dst, "dst", num_nodes)
        if len(src) != len(dst):
            raise ValueError(f"src and dst must be equally long; found {len(src)} and {len(dst)}")
        if num_nodes is None:
            num_nodes = 1 + max((int(ids.max()) for ids in (src, dst) if len(ids)), default=-1)
        self._num_nodes = num_nodes
        self._coo: tuple[torch.Tensor, torch.Tensor] | None = (src, dst)
        self._csc: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None = None
        self.ndata: dict[str, torch.Tensor] = {}
        self.edata: dict[str, torch.Tensor] = {}

    @classmethod
    def from_csc(cls, indptr: Any, indices: Any) -> Graph:
        """Make a graph from its in-edges: edges ``indptr[v]:indptr[v + 1]`` enter node v.

        ``indptr`` has shape (N + 1,), ``indices`` (E,): the source of each edge, by edge ID.
        """
        indptr = read_ids(indptr, "indptr")
        g = cls([], [], max(len(indptr) - 1, 0))
        indices = read_ids(indices, "indices", g._num_nodes)
        ends = indptr[[0, -1]].tolist() if len(indptr) else []
        if ends != [0, len(indices)] or bool((indptr.diff() < 0).any()):
            raise ValueError(f"indptr must rise from 0 to {len(indices)}, the number of edges")
        g._coo, g._csc = None, (indptr, indices, None)
        return g

    def num_nodes(self) -> int:
        """Return N."""
        return self._num_nodes

    def num_edges(self) -> int:
        """Return E."""
        return len(self._coo[0] if self._coo else self.csc()[1])

    def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sources and destinations in the order of edge IDs, two tensors of shape (E,)."""
        if self._coo is None:
            indptr, src, _ = self.csc()
            self._coo = src, torch.repeat_interleave(indptr.diff())  # v once per in-edge
        return self._coo

    def csc(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return ``(indptr, indices, eids)``, by destination; eids None: indices[k] is edge k."""
        if self._csc is None:
            src, dst = self.edges()
            eids = torch.argsort(dst, stable=True)  # keeps the order of IDs within a node
            last = torch.bincount(dst, minlength=self._num_nodes).cumsum(0)
            self._csc = torch.nn.functional.pad(last, (1, 0)), src[eids], eids
        return self._csc

    def pick(
        self, nodes: torch.Tensor, fanout: int, key: int, replace: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Choose in-edges: how many each node has, (S,), and the sources and IDs of all, (K,)."""
        indptr, indices, eids = self.csc()
        slots, count = sample_slots(indptr, nodes, fanout, key, replace)
        return count, indices[slots], slots if eids is None else eids[slots]

    @property
    def device(self) -> torch.device:
        """Where the graph is."""
        return self.csc()[0].device

    def __repr__(self) -> str:
        return f"Graph(num_nodes={self.num_nodes()}, num_edges={self.num_edges()})"


class Block(_OnDevice):
    """One layer of a mini-batch: edges from source nodes to destination nodes.

    Both sides are numbered from 0, and the destinations are the first of the sources, so that
    ``h[: block.num_dst_nodes()]`` are the destinations' own features. In the dictionaries of
    features ``srcdata``, ``dstdata`` and ``edata``, ``srcdata[NID]``, ``dstdata[NID]`` and
    ``edata[EID]`` hold IDs in the whole graph, int64.
    """

    def __init__(self, src: Any, dst: Any, src_ids: Any, num_dst: int) -> None:
        self._src, self._dst, self._num_dst = src, dst, num_dst
        self.srcdata: dict[str, torch.Tensor] = {NID: src_ids}
        self.dstdata: dict[str, torch.Tensor] = {NID: src_ids[:num_dst]}
        self.edata: dict[str, torch.Tensor] = {}

    def num_src_nodes(self) -> int:
        """Return the number of sources."""
        return len(self.srcdata[NID])

    def num_dst_nodes(self) -> int:
        """Return the number of destinations."""
        return self._num_dst

    def num_edges(self) -> int:
        """Return the number of edges."""
        return len(self._src)

    def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ends of each edge as positions in ``srcdata`` and ``dstdata``, shape (E,)."""
        return self._src, self._dst

    def adjacency(self, mean: bool = False) -> Adjacency:
        """Return the matrix A for which ``A @ h`` sums (or averages) the messages ``h[src]``."""
        return Adjacency(self, mean)

    def __repr__(self) -> str:
        sizes = f"num_src_nodes={self.num_src_nodes()}, num_dst_nodes={self.num_dst_nodes()}"
        return f"Block({sizes}, num_edges={self.num_edges()})"


class Adjacency:
    """The matrix of a block, shape (num_dst, num_src), to be multiplied by rows of its sources.

    ``A @ h`` has the dtype of ``h``; gradients flow to ``h``. A sparse matrix of torch would sort
    its entries in each product on a GPU, forward and backward, for which the CPU waits.
    """

    def __init__(self, block: Block, mean: bool) -> None:
        self._block, self._mean = block, mean

    def __matmul__(self, h: torch.Tensor) -> torch.Tensor:
        """Sum (or average) rows: shape (num_src, …) → (num_dst, …), zeros without in-edges."""
        src, dst = self._block.edges()
        total = h.new_zeros(self._block.num_dst_nodes(), *h.shape[1:])
        total = total.index_add(0, dst, h.index_select(0, src))
        if not self._mean:
            return total
        degree = dst.new_zeros(len(total)).index_add(0, dst, torch.ones_like(dst))
        return total / degree.clamp(min=1).reshape(-1, *[1] * (h.dim() - 1))


def to_block(frontier: Any, dst_nodes: torch.Tensor) -> Block:
    """Number the nodes of a frontier from 0: destinations first, then sources as they appear.

    A frontier is what was sampled for a layer: edges in the IDs of the whole graph. The call
    allocates an array of one entry per node of the whole graph, to map old IDs to new ones.

    Parameters
    ----------
    frontier : Graph
        Or another object with ``num_nodes()``, ``edges()`` and ``edata``. Of that, the block gets
        ``edata[EID]`` alone; read other features by it: ``g.edata[name][block.edata[EID]]``.
    dst_nodes : torch.Tensor
        Shape (D,), int64. ValueError if a node appears twice, or an edge ends at none of them.

    Examples
    --------
    >>> block = to_block(Graph(torch.tensor([1, 2, 7]), torch.tensor([2, 3, 3])), [3, 2])
    >>> block.srcdata[NID], block.edges()
    (tensor([3, 2, 1, 7]), (tensor([2, 1, 3]), tensor([1, 0, 0])))
    """
    src, dst = frontier.edges()
    dst_nodes = read_ids(dst_nodes, "dst_nodes", frontier.num_nodes(), True).to(src.device)
    # The local ID of each node, and a larger number for the nodes that have none yet.
    local = torch.full((frontier.num_nodes(),), torch.iinfo(torch.int64).max, device=src.device)
    local[dst_nodes] = torch.arange(len(dst_nodes), device=src.device)
    local_dst = local[dst]
    outside = local_dst >= len(dst_nodes)
    if bool(outside.any()):
        raise ValueError(
            f"an edge of the frontier ends at node {int(dst[outside][0])}, which is not among the "
            "nodes that the layer computes; return in-edges of seed_nodes only"
        )
    # A source gets the position of its first edge; destinations keep their smaller numbers.
    position = len(dst_nodes) + torch.arange(len(src), device=src.device)
    local.scatter_reduce_(0, src, position, "amin")
    new = src[local[src] == position]
    local[new] = len(dst_nodes) + torch.arange(len(new), device=src.device)
    block = Block(local[src], local_dst, torch.cat([dst_nodes, new]), len(dst_nodes))
    if EID in frontier.edata:
        block.edata[EID] = frontier.edata[EID]
    return block


_MASK, _GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15
_local = threading.local()
_base, _calls = 0, itertools.count(1)


def seed(value: int) -> None:
    """Set the seed (0 at first; torch.manual_seed has no effect), and count calls from 1 again."""
    global _base, _calls
    _base, _calls = int(value) & _MASK, itertools.count(1)


@contextmanager
def stream(key: int) -> Iterator[None]:
    """Seed all sampling inside the block, in this thread, with a 64-bit key."""
    before = getattr(_local, "stream", None)
    _local.stream = key, itertools.count(1)
    try:
        yield
    finally:
        _local.stream = before


def next_key() -> int:
    """Return the key of the next sampling call: the n-th call in a stream gets the same key always.

    For torch: ``torch.Generator().manual_seed(next_key())``; then the order of seeds matters too.
    """
    key, numbers = getattr(_local, "stream", None) or (_base, _calls)
    return fold(key, next(numbers))


def fold(*parts: int) -> int:
    """Hash integers into one 64-bit integer; their order matters."""
    z = 0
    for part in parts:
        z = (z + int(part) + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
    return z


def shift(z: torch.Tensor, bits: int) -> torch.Tensor:
    """Shift int64 right as if it were unsigned."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def signed(z: int) -> int:
    """Return the int64 with the lowest 64 bits of an integer."""
    return (z + (1 << 63)) % (1 << 64) - (1 << 63)


def mix(z: torch.Tensor) -> torch.Tensor:
    """Scramble int64 of any shape: the finalizer of splitmix64, which :func:`fold` uses."""
    z = (z ^ shift(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shift(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shift(z, 31)


def _draw(streams: torch.Tensor, number: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    """Return the ``number``-th random integer of each stream, in ``range(bound)``; bound < 2^32."""
    return shift(shift(mix(streams + (number + 1) * signed(_GOLDEN)), 32) * bound, 32)


def sample_slots(
    indptr: torch.Tensor,
    seeds: torch.Tensor,
    fanout: int,
    key: int,
    replace: bool = False,
    global_ids: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose in-edges of each seed, with tensor operations on all picks of all seeds at once.

    ``indptr`` has shape (N + 1,), ``seeds`` (S,); ``fanout`` −1 takes all. ``key`` and a seed's ID
    determine its random numbers; if ``indptr`` is that of a part, pass the IDs in the whole graph
    as ``global_ids``, (S,). Returns the chosen positions ("slots") in the CSC array ``indices``,
    seed by seed, shape (K,), and the number of slots of each seed, shape (S,), both int64.
    """
    first = indptr[seeds]
    degree = indptr[seeds + 1] - first
    streams = mix(signed(key) + (seeds if global_ids is None else global_ids))
    count = degree if fanout < 0 else degree.clamp(max=fanout)
    if replace and fanout >= 0:
        count = torch.where(degree > 0, fanout, 0)
    # For `any()`, the CPU waits for a GPU; that pays only if a table of picks (S, fanout) is large.
    elif 0 < fanout <= 32 or (fanout > 0 and bool((degree > fanout).any())):
        picks = _distinct_picks(degree.unsqueeze(1), fanout, streams.unsqueeze(1))
        place = torch.arange(fanout, device=seeds.device)
        return (first.unsqueeze(1) + picks)[place < count.unsqueeze(1)], count
    row = torch.repeat_interleave(torch.arange(len(seeds), device=seeds.device), count)
    place = torch.arange(len(row), device=seeds.device) - (torch.cumsum(count, 0) - count)[row]
    if replace and fanout >= 0:
        place = _draw(streams[row], place, degree[row])
    return first[row] + place, count


def _distinct_picks(degree: torch.Tensor, k: int, streams: torch.Tensor) -> torch.Tensor:
    """Pick k of d positions by Floyd's method, for degrees (S, 1); all in order if d ≤ k: (S, k).

    Pick j draws one of the first d − k + j + 1 positions; if that position is already chosen, pick
    j gets the last of them instead. Position d − k + i is already chosen if an earlier pick drew it
    too, or if pick i got it after all. So ``chain[j]`` is j if pick j keeps its draw, k if an
    earlier pick drew the same, otherwise the pick i on which it depends; doubling follows it.
    """
    j, spare = torch.arange(k, device=degree.device), (degree - k).clamp(min=0)
    last = spare + j
    pick = _draw(streams, j, last + 1)
    chain = torch.where(pick < spare, j, pick - spare)  # the pick that may have got this position
    chain = torch.nn.functional.pad(chain, (0, 1), value=k)
    drawn, order = pick.sort(stable=True, dim=1)
    again, same = order[:, 1:], drawn[:, 1:] == drawn[:, :-1]
    chain = chain.scatter(1, again, torch.where(same, k, chain.gather(1, again)))
    for _ in range((k - 1).bit_length()):
        chain = chain.gather(1, chain)
    return torch.where((chain[:, :k] == k) | (degree <= k), last, pick)


def sample_neighbors(g: Graph, nodes: Any, fanout: int, replace: bool = False) -> Graph:
    """Sample ``fanout`` in-edges of each node (−1: all) as a graph with the node IDs of ``g``.

    ``nodes`` has shape (S,), int64. A node with fewer gets all it has; with ``replace``, exactly
    ``fanout`` if any. ``edata[EID]`` of the result holds the IDs that the edges have in ``g``.
    """
    return _in_edges(g, nodes, fanout, fold(next_key(), 0), replace)


def in_subgraph(g: Graph, nodes: Any) -> Graph:
    """Return all in-edges of some nodes as a graph on all nodes, as :func:`sample_neighbors`."""
    return _in_edges(g, nodes, -1, 0)


def _in_edges(g: Graph, nodes: Any, fanout: int, key: int, replace: bool = False) -> Graph:
    _check_fanouts([fanout])
    if not hasattr(g, "pick"):  # a graph of DGL or gnnlab
        there = "Graph(*g.edges(), num_nodes=g.num_nodes())"
        raise ValueError(f"g is {type(g).__name__}; expected a Graph of this file: {there}")
    nodes = read_ids(nodes, "nodes", g.num_nodes()).to(g.device)
    count, src, eids = g.pick(nodes, fanout, key, replace)
    frontier = Graph([], [], g.num_nodes())
    frontier._coo = src, torch.repeat_interleave(nodes, count)
    frontier.edata[EID] = eids
    return frontier


class BlockSampler:
    """Base class of samplers: define one of two methods, and call its ``__init__`` in yours.

    * ``sample_frontier(layer_id, g, seed_nodes)`` returns the edges along which the seeds get
      messages in a layer: ``Graph(src, dst, g.num_nodes())``, whose ``edata[EID]``, IDs of the
      edges in ``g``, is all that blocks get of ``edata``. It is called for the last layer first.
    * ``sample_blocks(g, seed_nodes)`` returns what :meth:`sample` does, first layer first.

    Examples
    --------
    >>> class FullNeighborSampler(BlockSampler):
    ...     def sample_frontier(self, layer_id, g, seed_nodes):
    ...         return in_subgraph(g, seed_nodes)
    >>> g = Graph(torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]))
    >>> FullNeighborSampler(2).sample(g, [0])[2]
    [Block(num_src_nodes=3, num_dst_nodes=2, num_edges=2), \
Block(num_src_nodes=2, num_dst_nodes=1, num_edges=1)]
    """

    def __init__(self, num_layers: int) -> None:
        self.num_layers = num_layers

    def sample_frontier(self, layer_id: int, g: Graph, seed_nodes: torch.Tensor) -> Graph:
        """Return the edges of one layer, 0 to num_layers − 1."""
        raise NotImplementedError(f"{type(self).__name__} needs sample_frontier or sample_blocks")

    def sample_blocks(self, g: Graph, seed_nodes: torch.Tensor) -> tuple[Any, Any, list[Block]]:
        """Make the blocks of a batch, the last layer first."""
        seeds, blocks = seed_nodes, list[Block]()
        for layer_id in reversed(range(self.num_layers)):
            block = to_block(self.sample_frontier(layer_id, g, seeds), seeds)
            blocks.insert(0, block)
            seeds = block.srcdata[NID]  # the previous layer computes all that this one reads
        return seeds, seed_nodes, blocks

    def sample(
        self, g: Graph, seed_nodes: Any, key: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, list[Block]]:
        """Make a mini-batch.

        ``seed_nodes`` has shape (S,), distinct; ``key`` seeds the draws of the batch, for instance
        ``fold(fold(0, epoch), batch)``. Returned are the nodes whose features the model reads,
        the seeds, and the blocks, first layer first.
        """
        if not callable(getattr(g, "num_nodes", None)):
            raise ValueError(f"expected a Graph of this file, then seeds; found {type(g).__name__}")
        seeds = read_ids(seed_nodes, "seed_nodes", g.num_nodes(), True).to(g.device)
        with nullcontext() if key is None else stream(key):
            return self.sample_blocks(g, seeds)


class NeighborSampler(BlockSampler):
    """Sample a fixed number of in-edges per node and layer.

    Parameters
    ----------
    fanouts : sequence of int
        One per layer, first layer first: 0 or more, or −1 for all in-edges; else ValueError.
    replace : bool
        Draw with replacement.
    """

    def __init__(self, fanouts: Sequence[int], replace: bool = False) -> None:
        self.fanouts, self.replace = _check_fanouts(fanouts), replace
        super().__init__(len(self.fanouts))

    def sample_frontier(self, layer_id: int, g: Graph, seed_nodes: torch.Tensor) -> Graph:
        """Return ``fanouts[layer_id]`` in-edges of each seed."""
        return sample_neighbors(g, seed_nodes, self.fanouts[layer_id], self.replace)


def _check_fanouts(fanouts: Any) -> list[int]:
    given = list(fanouts) if isinstance(fanouts, list | tuple) else []
    if not given or not all(type(fanout) is int and fanout >= -1 for fanout in given):
        raise ValueError(f"fanouts: a list, an int from -1 (all) per layer; found {fanouts!r}")
    return given


def read_ids(
    values: Any, name: str, num_nodes: int | None = None, distinct: bool = False
) -> torch.Tensor:
    """Return IDs as int64 of shape (K,); raise ValueError if they are not valid IDs."""
    try:
        ids = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as why:
        raise ValueError(f"{name} must be integers of shape (K,); found {values!r:.80}") from why
    if ids.dtype is torch.bool:
        raise ValueError(f"{name} is a mask; pass IDs: mask.nonzero().flatten()")
    if ids.dim() != 1 or (ids.is_floating_point() and len(ids)):
        shape = tuple(ids.shape)
        raise ValueError(f"{name} must be integers of shape (K,); found {ids.dtype}, shape {shape}")
    if len(ids := ids.long()):
        low, high = torch.stack(ids.aminmax()).tolist()
        if low < 0 or (num_nodes is not None and high >= num_nodes):
            there = "IDs start at 0" if num_nodes is None else f"allowed: 0 to {num_nodes - 1}"
            raise ValueError(f"{name} holds IDs from {low} to {high}; {there}")
    if distinct and len(torch.unique(ids)) < len(ids):
        raise ValueError(f"an ID appears twice in {name}; pass torch.unique({name})")
    return ids


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, dict):
        return {name: _moved(part, device) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_moved(part, device) for part in value)
    return value.to(device) if isinstance(value, torch.Tensor) else value
