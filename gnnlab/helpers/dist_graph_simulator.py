"""Simulate a graph cut into parts for K machines in one process; count what crosses the network.

Origin:  gnnlab/helpers/dist_graph_simulator.py
Version: gnnlab 0.1.0
License: Apache-2.0
Needs:   Python 3.11 or newer, torch 2.8 or newer

A graph too large for one machine is cut into K parts. Each machine owns some nodes, with their
in-edges and their features, and runs a trainer. A trainer samples blocks as usual; for nodes that
another machine owns it asks that machine. Here all machines live in one process: `Machine` answers
for its own rows alone, `DistGraph` is what one trainer sees, and between them every request is
counted: rows exactly, bytes without the headers of messages. Time is predicted from these counts,
latency and bandwidth.

Needs block_sampler.py, the file beside this one. A trainer's step, twice on each of two machines:

>>> import torch
>>> torch.manual_seed(0)  # doctest: +ELLIPSIS
<torch...>
>>> g = Graph(torch.randint(40, (400,)), torch.randint(40, (400,)), 40)
>>> g.ndata["feat"] = torch.randn(40, 16)
>>> cluster = DistGraphSimulator(g, owner=torch.arange(40) % 2, bandwidth=1e9, latency=1e-4)
>>> sampler, train_idx = NeighborSampler([5, 5]), torch.arange(20)  # IDs in g
>>> shares = cluster.node_split(cluster.new_ids[train_idx])
>>> for step in range(2):
...     for dist_graph, share in zip(cluster.graphs, shares):
...         seeds = share[5 * step : 5 * step + 5]
...         input_nodes, _, blocks = sampler.sample(dist_graph, seeds, key=fold(0, step))
...         h = dist_graph.ndata["feat"][input_nodes]                      # (num_src, 16)
...     seconds = cluster.end_step(compute=0.01)
>>> cluster.traffic.rows["features"]  # rows that machine i (row) asked machine j (column) for
tensor([[38, 40],
        [34, 40]])
>>> cluster.traffic.bytes().tolist()  # bytes that machine i received from machine j
[[0, 3824], [3356, 0]]

Nodes and edges of the blocks are those that the whole graph gives, whatever the cut: the draws of a
node depend on its ID before the cut. The cluster renumbers nodes: `DistGraph` and `node_split` take
new IDs, ``cluster.new_ids[ids]``, and cannot tell old ones from them. A tensor that is not in
``ndata`` is in the old order: ``labels[cluster.old_ids[output_nodes]]``. Everything is on the CPU.
Do not prefetch batches: their requests would be counted in the wrong step. A share is that of one
trainer: ``DDPLoader(dist_graph, share, sampler, 32, rank=0, world_size=1, prefetch=0)``.

References
----------
Zheng et al., "DistDGL: Distributed Graph Neural Network Training for Billion-Scale Graphs", IA3
2020. Lin et al., "PaGraph", SoCC 2020: a cache by degree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

if __package__:
    from .block_sampler import Graph, NeighborSampler, fold, read_ids, sample_slots
else:  # copied: the file lies beside this one
    try:
        from block_sampler import Graph, NeighborSampler, fold, read_ids, sample_slots  # type: ignore
    except ModuleNotFoundError as error:
        error.msg += "; put block_sampler.py beside this file, as gnnlab export does"
        raise

__all__ = ["DistGraph", "DistGraphSimulator", "Graph", "Machine", "NeighborSampler", "Traffic"]
__all__ += ["fold"]

KINDS = ("structure", "features")


# ------------------------------------------------------------------------------ one machine -
class Machine:
    """The part of one machine: a range of nodes from ``first``, their in-edges, their features.

    Nodes are renumbered, so that a part owns one range of IDs: sorted by (part, old ID).
    ``indptr``, (n + 1,), starts at 0; ``indices`` holds new IDs of sources in the whole graph;
    ``old_ids`` has shape (n,); in-edge k has the new ID ``first_edge + k``.
    """

    def __init__(
        self,
        first: int,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        old_ids: torch.Tensor,
        ndata: dict[str, torch.Tensor],
        first_edge: int,
    ) -> None:
        self.first, self.first_edge = first, first_edge
        self.indptr, self.indices, self.old_ids, self.ndata = indptr, indices, old_ids, ndata

    def sample(
        self, nodes: torch.Tensor, fanout: int, key: int, replace: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Choose in-edges of own nodes: how many each has, their sources and their IDs."""
        rows = nodes - self.first
        slots, count = sample_slots(self.indptr, rows, fanout, key, replace, self.old_ids[rows])
        return count, self.indices[slots], slots + self.first_edge

    def pull(self, name: str, nodes: torch.Tensor) -> torch.Tensor:
        """Return rows of a feature, shape (len(nodes), …)."""
        return self.ndata[name][nodes - self.first]


# ------------------------------------------------------------------------------- what is counted
@dataclass
class Traffic:
    """Requests between K machines, counted by requesting machine (row), owner (column) and kind.

    Kinds are "structure", the in-edges of nodes, and "features". The diagonal holds what a machine
    gets from itself, its cache included: that costs no network.

    Attributes
    ----------
    requests, rows : dict of str to torch.Tensor
        Kind → shape (K, K), int64: how many requests, for how many nodes.
    bytes_out, bytes_in : dict of str to torch.Tensor
        Kind → shape (K, K), int64: bytes of the requests and of the replies, as gnnlab's servers
        send them. An ID has 8 bytes; in requests for in-edges and their replies it has 4 if the
        graph has fewer than 2^31 nodes and edges. Message headers, some 150 bytes a request, are
        not counted.
    """

    num_machines: int
    requests: dict[str, torch.Tensor] = field(init=False)
    rows: dict[str, torch.Tensor] = field(init=False)
    bytes_out: dict[str, torch.Tensor] = field(init=False)
    bytes_in: dict[str, torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing."""
        for name in ("requests", "rows", "bytes_out", "bytes_in"):
            shape = (self.num_machines, self.num_machines)
            setattr(self, name, {kind: torch.zeros(shape, dtype=torch.int64) for kind in KINDS})

    def count(self, kind: str, source: int, target: int, rows: int, sent: int, got: int) -> None:
        """Count a request for ``rows`` nodes of ``sent`` bytes, whose answer has ``got`` bytes."""
        for counts, number in (
            (self.requests, 1),
            (self.rows, rows),
            (self.bytes_out, sent),
            (self.bytes_in, got),
        ):
            counts[kind][source, target] += number

    def bytes(self, kind: str | None = None) -> torch.Tensor:
        """Return what crossed the network, shape (K, K): what machine i received from machine j."""
        if kind not in (None, *KINDS):
            raise ValueError(f"there is no kind {kind!r}, only {', '.join(KINDS)}")
        kinds = KINDS if kind is None else (kind,)
        total = sum(self.bytes_in[each] + self.bytes_out[each].T for each in kinds)
        return torch.as_tensor(total).clone().fill_diagonal_(0)

    def remote_share(self, kind: str = "features") -> float:
        """Return the share of the requested rows that crossed the network; 0 without requests."""
        rows = self.rows[kind]
        return float((rows.sum() - rows.diagonal().sum()) / rows.sum().clamp(min=1))


# ------------------------------------------------------------------------- what one trainer sees
class DistGraph(Graph):
    """The whole graph as the trainer of one machine sees it; make it by `DistGraphSimulator`.

    Samplers take it like a graph. ``ndata[name][ids]`` reads rows wherever they are.
    """

    def __init__(self, cluster: DistGraphSimulator, rank: int) -> None:
        super().__init__([], [], cluster.num_nodes)
        self._cluster, self._rank = cluster, rank
        self.ndata: Any = {name: DistTensor(self, name) for name in cluster.machines[rank].ndata}

    def rank(self) -> int:
        """Return the number of this trainer, which is that of its machine."""
        return self._rank

    def num_edges(self) -> int:
        """Return the number of edges of all parts."""
        return int(self._cluster.edge_borders[-1])

    def __repr__(self) -> str:
        return f"DistGraph(rank={self._rank}, num_nodes={self._num_nodes})"

    @property
    def device(self) -> torch.device:
        """Main memory."""
        return torch.device("cpu")

    def csc(self) -> Any:
        """Raise ValueError, because no machine has all edges."""
        raise ValueError("the edges lie on several machines; sample them, or use the whole graph")

    edges = csc

    def pick(
        self, nodes: torch.Tensor, fanout: int, key: int, replace: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ask the owner of each node for in-edges; put the answers in the order of the nodes."""
        id_bytes = 4 if max(self.num_nodes(), self.num_edges()) < 1 << 31 else 8
        count = torch.zeros(len(nodes), dtype=torch.int64)
        answers = []
        for machine, place in self.by_owner(nodes):
            answer = self._cluster.machines[machine].sample(nodes[place], fanout, key, replace)
            count[place] = answer[0]
            answers.append((place, answer))
            got = 8 * (len(place) + 1) + 2 * id_bytes * len(answer[1])  # offsets; sources, edges
            self.count("structure", machine, len(place), id_bytes * len(place), got)
        self._cluster.rounds[self._rank] += bool((self._owners(nodes) != self._rank).any())
        src, eids = torch.empty(2, int(count.sum()), dtype=torch.int64)
        first = torch.cumsum(count, 0) - count
        for place, (counts, sources, edges) in answers:
            shift = first[place] - (torch.cumsum(counts, 0) - counts)
            target = shift.repeat_interleave(counts) + torch.arange(len(sources))
            src[target], eids[target] = sources, edges
        return count, src, eids

    def _owners(self, nodes: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(self._cluster.borders, nodes, right=True) - 1

    def by_owner(self, nodes: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield each machine that owns some of the nodes, with their positions."""
        owners = self._owners(nodes)
        for machine in owners.unique().tolist():
            yield machine, (owners == machine).nonzero().flatten()

    def count(self, kind: str, machine: int, rows: int, sent: int, got: int) -> None:
        """Count a request of this trainer; see :meth:`Traffic.count`."""
        self._cluster.traffic.count(kind, self._rank, machine, rows, sent, got)


class Cache:
    """A trainer's cache of other machines' rows: the nodes of ``wanted`` that it has read.

    ``wanted`` and ``held`` are bool, shape (N,), by new ID; ``held[v]``: row v is in the cache. For
    another policy derive a class with its own :meth:`keep`, which gets all nodes that were read,
    own ones too, and itself limits the size; set ``graph.ndata[name].cache`` after each ``reset``.
    """

    def __init__(self, wanted: torch.Tensor) -> None:
        self.wanted, self.held = wanted, torch.zeros_like(wanted)

    def keep(self, nodes: torch.Tensor) -> None:
        """Choose what to keep of the rows that were just read."""
        self.held[nodes] = self.wanted[nodes]


class DistTensor:
    """A feature whose rows lie on several machines: ``tensor[ids]`` reads some, shape (K, …)."""

    def __init__(self, g: DistGraph, name: str) -> None:
        self._g, self._name = g, name
        self._machines = g._cluster.machines
        self.cache = Cache(g._cluster.most_wanted(g.rank()))
        own = self._machines[g.rank()].ndata[name]
        self.shape, self.dtype = (g.num_nodes(), *own.shape[1:]), own.dtype

    def __getitem__(self, nodes: Any) -> torch.Tensor:
        if isinstance(nodes, slice):
            nodes = range(*nodes.indices(len(self)))
        nodes = read_ids(nodes, f"the index of {self._name!r}", len(self))
        out = torch.empty((len(nodes), *self.shape[1:]), dtype=self.dtype)
        row_bytes, rank = math.prod(self.shape[1:]) * self.dtype.itemsize, self._g.rank()
        hit, is_remote = self.cache.held[nodes], False
        for machine, place in self._g.by_owner(nodes):
            out[place] = self._machines[machine].pull(self._name, nodes[place])
            hits = int(hit[place].sum())
            rows = len(place) - hits
            for target, number in ((machine, rows), (rank, hits)):
                if number:
                    self._g.count("features", target, number, 8 * number, row_bytes * number)
            is_remote |= machine != rank and rows > 0
        self._g._cluster.rounds[rank] += is_remote
        self.cache.keep(nodes)
        return out

    def __len__(self) -> int:
        return self._g.num_nodes()


# -------------------------------------------------------------------------------- the cluster
class DistGraphSimulator:
    """K machines, each with one part of a graph.

    Parameters
    ----------
    g : Graph
        The whole graph; its ``ndata`` of this moment is cut too, its ``edata`` is not.
    owner : torch.Tensor
        Shape (N,), integers from 0 to K − 1: the machine of each node, from METIS (the package
        pymetis) for instance; K is the largest plus one.
    bandwidth : float
        Bits per second of each machine's link, in each direction.
    latency : float
        Seconds that a message takes from one machine to another, in addition to its transfer.
    cache_rows : int
        Size of each trainer's cache, per feature, in rows. It keeps rows of other machines once
        they are read, of the nodes with the most edges into its own part.

    Attributes
    ----------
    graphs : list of DistGraph
        One per machine.
    machines : list of Machine
    traffic : Traffic
    new_ids, old_ids : torch.Tensor
        Shape (N,): the new ID of each old one, and the other way round. All IDs that `DistGraph`
        takes and gives are new.
    old_edge_ids : torch.Tensor
        Shape (E,): ``old_edge_ids[e]`` is the ID in ``g`` of the edge with the new ID e.
    seconds : float
        Time of all steps so far.

    Raises
    ------
    ValueError
        ``owner`` or a feature does not fit the graph, or a number is out of range.
    """

    def __init__(
        self,
        g: Graph,
        owner: torch.Tensor,
        *,
        bandwidth: float = 1e9,
        latency: float = 1e-4,
        cache_rows: int = 0,
    ) -> None:
        if getattr(owner, "dtype", None) is torch.bool:  # two parts
            owner = owner.long()
        owner = read_ids(owner, "owner")
        if not callable(getattr(g, "num_nodes", None)):
            raise ValueError(f"the simulator takes a graph, then owner; found {type(g).__name__}")
        if not all(hasattr(each, "__float__") for each in (bandwidth, latency, cache_rows)):
            raise ValueError(
                "bandwidth, latency and cache_rows are numbers; found "
                f"{bandwidth!r}, {latency!r} and {cache_rows!r}"
            )
        if len(owner) != g.num_nodes() or not len(owner):
            raise ValueError(f"owner has one entry per node, {g.num_nodes()}; found {len(owner)}")
        for name, values in g.ndata.items():
            if len(values) != len(owner):
                raise ValueError(f"{name} has {len(values)} rows; the graph has {len(owner)} nodes")
        if not (bandwidth > 0 and latency >= 0 and cache_rows >= 0):
            raise ValueError(
                "bandwidth must be above 0, latency and cache_rows at least 0; found "
                f"{bandwidth}, {latency} and {cache_rows}"
            )
        self.bandwidth, self.latency = bandwidth, latency
        self.cache_rows = int(min(cache_rows, len(owner)))
        self.num_nodes, self.num_machines = len(owner), int(owner.max()) + 1
        self.old_ids = torch.argsort(owner, stable=True)
        self.new_ids = torch.argsort(self.old_ids)
        self.borders = _offsets(torch.bincount(owner, minlength=self.num_machines))
        self._cut(g)
        self.reset()

    def _cut(self, g: Graph) -> None:
        """Give each machine its nodes with their in-edges, in the order of the old edge IDs."""
        indptr, indices, eids = g.csc()
        degree = indptr.diff()[self.old_ids]
        offsets = _offsets(degree)
        start = torch.repeat_interleave(indptr[self.old_ids] - offsets[:-1], degree)
        slots = start + torch.arange(len(indices))
        sources = self.new_ids[indices[slots]]
        self.old_edge_ids = slots if eids is None else eids[slots]
        self.edge_borders = offsets[self.borders]
        self.machines = []
        for low, high in zip(self.borders[:-1].tolist(), self.borders[1:].tolist(), strict=True):
            old = self.old_ids[low:high]
            first, last = int(offsets[low]), int(offsets[high])
            features = {name: values[old] for name, values in g.ndata.items()}
            within = offsets[low : high + 1] - first
            self.machines.append(Machine(low, within, sources[first:last], old, features, first))

    def reset(self) -> None:
        """Set traffic and time to zero; replace ``graphs``: new ones have empty caches."""
        self.traffic, self.seconds = Traffic(self.num_machines), 0.0
        self.rounds = [0] * self.num_machines
        self._sent_before = torch.zeros(self.num_machines, self.num_machines, dtype=torch.int64)
        self.graphs = [DistGraph(self, rank) for rank in range(self.num_machines)]

    def most_wanted(self, rank: int) -> torch.Tensor:
        """Mark the nodes whose rows a trainer may cache, shape (N,), bool."""
        wanted = torch.bincount(self.machines[rank].indices, minlength=self.num_nodes)
        wanted[self.borders[rank] : self.borders[rank + 1]] = 0
        best = torch.argsort(wanted, descending=True, stable=True)[: self.cache_rows]
        kept = torch.zeros(self.num_nodes, dtype=torch.bool)
        kept[best] = wanted[best] > 0
        return kept

    # ----------------------------------------------------------------- sharing the work
    def node_split(self, nodes: Any) -> list[torch.Tensor]:
        """Divide nodes among the trainers: equal shares, from their own part where they can.

        Parameters
        ----------
        nodes : torch.Tensor
            New IDs, or a mask over them, shape (N,): ``mask[cluster.old_ids]`` of an old one.

        Returns
        -------
        list of torch.Tensor
            One per trainer, all of one size, int64: own nodes, then others, both sorted, so shuffle
            them. If the number of nodes is not a multiple of K, the last shares also get one node
            of another share.

        Examples
        --------
        >>> g = Graph([0] * 10, range(10))
        >>> cluster = DistGraphSimulator(g, owner=[0] * 6 + [1] * 4)
        >>> [share.tolist() for share in cluster.node_split([0, 1, 2, 3, 4, 6, 7])]
        [[0, 1, 2, 3], [6, 7, 4, 0]]
        """
        return self._split(nodes, self.borders)

    def edge_split(self, edges: Any) -> list[torch.Tensor]:
        """Divide edges, new IDs (those of old ones are ``torch.argsort(old_edge_ids)[old]``) or a
        mask over them; an edge belongs to the owner of its destination.
        """
        return self._split(edges, self.edge_borders)

    def _split(self, given: Any, borders: torch.Tensor) -> list[torch.Tensor]:
        given = torch.as_tensor(given)
        if given.dtype is torch.bool:
            if given.shape != (int(borders[-1]),):
                raise ValueError(f"mask: {int(borders[-1])} entries; found {tuple(given.shape)}")
            given = given.nonzero().flatten()
        ids = read_ids(given, "IDs", int(borders[-1]), distinct=True).sort().values
        home = torch.searchsorted(borders, ids, right=True) - 1
        each, longer = divmod(len(ids), self.num_machines)
        sizes = [each + (rank < longer) for rank in range(self.num_machines)]
        shares = [ids[home == rank][:size] for rank, size in enumerate(sizes)]
        rest = ids[~torch.isin(ids, torch.cat(shares))]
        for rank, size in enumerate(sizes):
            more, rest = rest.tensor_split([size - len(shares[rank])])
            shares[rank] = torch.cat([shares[rank], more])
        for rank in range(longer, self.num_machines if longer else 0):
            shares[rank] = torch.cat([shares[rank], shares[rank - longer][:1]])
        return shares

    # ------------------------------------------------------------------------------ time
    def end_step(
        self, compute: float = 0.0, gradient_bytes: int = 0, overlap: bool = False
    ) -> float:
        """End a step of all trainers; return its predicted duration in seconds.

        A trainer waits two latencies for each round of requests, and for its link to carry all
        that it received or sent (links carry both directions at once). The step ends with the
        slowest trainer, and with the all-reduce of the gradients in a ring.

        Parameters
        ----------
        compute : float
            Seconds of sampling and training on one machine; measure them.
        gradient_bytes : int
            Size of the model's parameters.
        overlap : bool
            Whether the next mini-batch is fetched while the model computes.

        Returns
        -------
        float
        """
        if not (compute >= 0 and gradient_bytes >= 0):
            raise ValueError(f"expected nonnegative numbers; found {compute} and {gradient_bytes}")
        total = self.traffic.bytes()
        moved = total - self._sent_before
        self._sent_before = total
        link = torch.maximum(moved.sum(0), moved.sum(1)).double() * 8 / self.bandwidth
        waiting = link + 2 * self.latency * torch.tensor(self.rounds)
        slowest = float(waiting.max())
        others = self.num_machines - 1
        ring = (
            2 * others * (gradient_bytes * 8 / self.num_machines / self.bandwidth + self.latency)
            if gradient_bytes
            else 0.0
        )
        seconds = (max(compute, slowest) if overlap else compute + slowest) + ring
        self.rounds = [0] * self.num_machines
        self.seconds += seconds
        return seconds

    def __repr__(self) -> str:
        mb = {kind: self.traffic.bytes(kind).sum().item() / 1e6 for kind in KINDS}
        parts = ", ".join(f"{kind} {size:.1f} MB" for kind, size in mb.items())
        return f"DistGraphSimulator({self.num_machines} machines, {parts}, {self.seconds:.3f} s)"


def _offsets(counts: torch.Tensor) -> torch.Tensor:
    """Where each run begins and the last ends: shape (len(counts) + 1,)."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))
