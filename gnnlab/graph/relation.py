"""The structure of one edge type, in several sparse formats.

The same edges can be stored as a list (COO), grouped by destination (CSC: the in-edges of v) or
grouped by source (CSR: the out-edges of u). A relation starts with one of them, makes the others on
first use and keeps them. It is immutable: adding an edge makes a new relation.

Internally, IDs are int32 if they fit: half the memory and half the bandwidth of int64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.kernels.dtypes import torch_ids_dtype


class Adjacency:
    """Edges grouped by one end: group v is ``indices[indptr[v]:indptr[v + 1]]``.

    ``indptr`` is int64, ``indices``, the other end of each edge, int32 or int64. It is ``ordered``
    when slot k holds edge k. ``workspaces`` are kept from call to call, but not copied.
    """

    __slots__ = ("_eids", "_keys", "_sizes", "_slots", "indices", "indptr", "ordered", "workspaces")

    def __init__(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        eids: torch.Tensor | None = None,
        keys: torch.Tensor | None = None,
        sizes: torch.Tensor | None = None,
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self._eids = eids
        self._sizes = sizes
        self._slots: torch.Tensor | None = None
        self._keys = keys  # the group of each edge, to compute the edge IDs later
        self.ordered = eids is None and keys is None
        self.workspaces: dict[Any, list[Any]] = {}

    @property
    def eids(self) -> torch.Tensor:
        """Edge ID of each slot, shape (E,), int32 or int64; made when it is first read."""
        if self._eids is None:
            if self._keys is None:
                dtype = torch_ids_dtype(len(self.indices))
                self._eids = torch.arange(
                    len(self.indices), dtype=dtype, device=self.indices.device
                )
            else:
                # Group the edge IDs by the same keys: each is then in the slot of its edge.
                grouped = kernels.csc.group_by(self._keys.numpy(), None, len(self.indptr) - 1)[1]
                self._eids = torch.from_numpy(grouped)
        return self._eids

    @property
    def sizes(self) -> torch.Tensor:
        """Number of edges of each group, int64; on a GPU kept, to launch fewer operators."""
        if self._sizes is not None:
            return self._sizes
        sizes = torch.diff(self.indptr)
        if sizes.device.type != "cpu":
            self._sizes = sizes
        return sizes

    def eids_at(self, slots: torch.Tensor) -> torch.Tensor:
        """Return the edge IDs of some slots."""
        return slots if self.ordered else self.eids[slots]

    def slots_of(self, edges: torch.Tensor) -> torch.Tensor:
        """Return the slots of some edges, int64; those of all edges are kept."""
        if self.ordered:
            return edges.long()
        if self._slots is None:
            dtype = torch_ids_dtype(len(self.indices))
            slots = torch.arange(len(self.indices), dtype=dtype, device=self.indices.device)
            self._slots = torch.empty_like(slots).scatter_(0, self.eids.long(), slots)
        return self._slots[edges.long()].long()

    def ascends(self) -> bool:
        """Whether the edges of each group are sorted by ID, as sampling requires."""
        if self.ordered:
            return True
        first = self.indptr[(self.indptr > 0) & (self.indptr < len(self.indices))]
        rises = self.eids[1:] > self.eids[:-1]
        rises[first - 1] = True  # from one group to the next
        return bool(rises.all())

    def append(self, groups: int, keys: torch.Tensor, values: torch.Tensor) -> Adjacency:
        """Return these edges and more in ``groups`` groups, without sorting them all.

        ``keys`` and ``values`` are group and other end of all edges, by ID; the new ones are last.
        """
        start = len(self.indices)
        sizes = torch.bincount(keys[start:], minlength=groups)
        order = torch.argsort(keys[start:], stable=True)
        indptr = torch.cat([self.indptr, self.indptr[-1:].expand(groups + 1 - len(self.indptr))])
        at = indptr[keys[start:][order].long() + 1].numpy()

        def merge(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
            out = torch.empty(len(keys), dtype=new.dtype)
            kernels.csc.insert(old.to(new.dtype).numpy(), at, new.numpy(), out.numpy())
            return out

        indices = merge(self.indices, values[start:][order])
        eids = None
        if self._eids is not None:
            eids = merge(self._eids, (order + start).to(torch_ids_dtype(len(keys))))
        indptr[1:] += sizes.cumsum(0)
        return Adjacency(indptr, indices, eids, keys if eids is None else None)

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Adjacency:
        """Return a copy with ``change`` applied to each tensor, edge IDs included."""
        eids = None if self.ordered else change(self.eids)
        return Adjacency(change(self.indptr), change(self.indices), eids)

    def __reduce__(self) -> tuple[Any, ...]:
        return Adjacency, (self.indptr, self.indices, None if self.ordered else self.eids)


class Relation:
    """Directed edges from ``num_src`` nodes to ``num_dst`` nodes.

    Give source and destination of each edge, shapes (E,), or the edges grouped by destination or by
    source; all index tensors on one device.
    """

    __slots__ = ("_coo", "_csc", "_csr", "num_dst", "num_edges", "num_src", "scales")

    def __init__(
        self,
        num_src: int,
        num_dst: int,
        coo: tuple[torch.Tensor, torch.Tensor] | None = None,
        csc: Adjacency | None = None,
        csr: Adjacency | None = None,
    ) -> None:
        self.num_src = num_src
        self.num_dst = num_dst
        self._coo, self._csc, self._csr = coo, csc, csr
        self.scales: dict[Any, torch.Tensor] = {}  # 1 / degree; of ops.groups
        self.num_edges = self._any().shape[0]

    @classmethod
    def from_edges(
        cls, src: torch.Tensor, dst: torch.Tensor, num_src: int, num_dst: int
    ) -> Relation:
        """Check IDs against the number of nodes, and narrow them to int32 where they fit."""
        if src.shape != dst.shape or src.ndim != 1:
            raise InvalidInput(
                "an edge needs one source and one destination: two one-dimensional arrays of the "
                f"same length; found shapes {tuple(src.shape)} and {tuple(dst.shape)}",
                code="edge_ends_differ",
            )
        for ids, bound, end in ((src, num_src, "source"), (dst, num_dst, "destination")):
            check_ids(ids, bound, f"{end} node")
        return cls(num_src, num_dst, (narrow(src, num_src), narrow(dst, num_dst)))

    # ---------------------------------------------------------------- formats
    @property
    def device(self) -> torch.device:
        """Device of the index tensors."""
        return self._any().device

    def _any(self) -> torch.Tensor:
        if self._coo is not None:
            return self._coo[0]
        return (self._csc or self._csr).indices  # type: ignore[union-attr]

    def created(self) -> list[str]:
        """Names of the formats that exist now."""
        formats = {"coo": self._coo, "csr": self._csr, "csc": self._csc}
        return [name for name, value in formats.items() if value is not None]

    def only(self, formats: list[str]) -> Relation:
        """Return a relation that holds just these formats (made where they are missing)."""
        return Relation(
            self.num_src,
            self.num_dst,
            self.coo() if "coo" in formats else None,
            self.csc() if "csc" in formats else None,
            self.csr() if "csr" in formats else None,
        )

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Source and destination of each edge, in edge-ID order; shapes (E,), int32 or int64."""
        if self._coo is None:
            if self._csc is not None:
                dst, src = _to_coo(self._csc, self.num_dst)
            else:
                src, dst = _to_coo(self._csr, self.num_src)  # type: ignore[arg-type]
            self._coo = src, dst
        return self._coo

    def csc(self) -> Adjacency:
        """Edges grouped by destination."""
        if self._csc is None:
            self._csc = self._group(by_source=False)
        return self._csc

    def csr(self) -> Adjacency:
        """Edges grouped by source."""
        if self._csr is None:
            self._csr = self._group(by_source=True)
        return self._csr

    def _group(self, by_source: bool) -> Adjacency:
        src, dst = self.coo()
        keys, values = (src, dst) if by_source else (dst, src)
        groups = self.num_src if by_source else self.num_dst
        if keys.device.type != "cpu":
            indptr, order = group_on_device(keys, groups)
            return Adjacency(indptr, values.index_select(0, order), order)
        if _is_sorted(keys):
            indptr = torch.searchsorted(keys, torch.arange(groups + 1, dtype=keys.dtype))
            return Adjacency(indptr, values)
        sorted_ = kernels.csc.group_by(keys.numpy(), values.numpy(), groups)
        indptr, indices = map(torch.from_numpy, sorted_)
        return Adjacency(indptr, indices, keys=keys)

    def append(self, num_src: int, num_dst: int, src: torch.Tensor, dst: torch.Tensor) -> Relation:
        """Return the relation with more nodes and, after those that exist, more edges.

        On a CPU, the new edges are merged into the formats that exist.
        """
        old_src, old_dst = self.coo()
        src = torch.cat([narrow(old_src, num_src), narrow(src, num_src)])
        dst = torch.cat([narrow(old_dst, num_dst), narrow(dst, num_dst)])
        grown = Relation(num_src, num_dst, (src, dst))
        if src.device.type == "cpu":
            if self._csc is not None:
                grown._csc = self._csc.append(num_dst, dst, src)
            if self._csr is not None:
                grown._csr = self._csr.append(num_src, src, dst)
        return grown

    def create_formats(self, formats: Iterable[str] = ("coo", "csc", "csr")) -> None:
        """Make formats and their edge IDs now, so that forked children share them."""
        for name in formats:
            made = getattr(self, name)()
            if name != "coo":
                _ = made.eids

    # ---------------------------------------------------------------- queries
    def in_degrees(self) -> torch.Tensor:
        """In-degree of every destination, shape (num_dst,), int64."""
        if self._csc is not None:
            return self._csc.sizes
        ends = self._coo[1] if self._coo is not None else self._csr.indices  # type: ignore[union-attr]
        return torch.bincount(ends, minlength=self.num_dst)

    def out_degrees(self) -> torch.Tensor:
        """Out-degree of every source, shape (num_src,), int64."""
        if self._csr is not None:
            return self._csr.sizes
        ends = self._coo[0] if self._coo is not None else self._csc.indices  # type: ignore[union-attr]
        return torch.bincount(ends, minlength=self.num_src)

    def reverse(self) -> Relation:
        """Return the relation with each edge turned around; arrays are shared, not copied."""
        coo = None if self._coo is None else (self._coo[1], self._coo[0])
        return Relation(self.num_dst, self.num_src, coo, self._csr, self._csc)

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Relation:
        """Return a copy with ``change`` applied to each tensor: on another device, or pinned."""
        coo = None if self._coo is None else (change(self._coo[0]), change(self._coo[1]))
        csc = None if self._csc is None else self._csc.map(change)
        csr = None if self._csr is None else self._csr.map(change)
        return Relation(self.num_src, self.num_dst, coo, csc, csr)

    def to(self, copy: Callable[[torch.Tensor], torch.Tensor], with_sizes: bool) -> Relation:
        """Return a copy on another device; ``with_sizes`` copies the in-degrees, too."""
        moved = self.map(copy)
        if with_sizes and self._csc is not None:
            moved._csc._sizes = copy(self._csc.sizes)  # type: ignore[union-attr]
        return moved

    def __reduce__(self) -> tuple[Any, ...]:
        return Relation, (self.num_src, self.num_dst, self._coo, self._csc, self._csr)


class HasRelation(Protocol):
    """What operators need of a graph: the structure of its only edge type."""

    def relation(self) -> Relation:
        """Return the structure of the only edge type."""


def group_on_device(keys: torch.Tensor, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``indptr`` and the order of keys of ``range(groups)``, without a wait for a GPU."""
    keys, order = torch.sort(keys, stable=True)
    firsts = torch.arange(groups + 1, dtype=keys.dtype, device=keys.device)
    return torch.searchsorted(keys, firsts), order


def _is_sorted(keys: torch.Tensor) -> bool:
    head = keys[:1024]  # settles it at once for most edge lists
    return all(bool((part[1:] >= part[:-1]).all()) for part in (head, keys))


def _to_coo(adjacency: Adjacency, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Write grouped edges as (group of each edge, other end of each edge), in edge-ID order."""
    sizes, count = adjacency.sizes, len(adjacency.indices)
    if sizes.device.type == "cpu":
        row_ids = torch.arange(groups, dtype=torch_ids_dtype(groups))
        rows = torch.repeat_interleave(row_ids, sizes, output_size=count)
    else:  # int64, for which torch needs two operators less
        rows = torch.repeat_interleave(sizes, output_size=count)
    if adjacency.ordered:
        return rows, adjacency.indices
    keys, values = torch.empty_like(rows), torch.empty_like(adjacency.indices)
    eids = adjacency.eids.long()
    keys[eids], values[eids] = rows, adjacency.indices
    return keys, values


def check_ids(ids: torch.Tensor, bound: int, what: str) -> None:
    """Raise OutOfRange unless all IDs lie in ``range(bound)``."""
    if len(ids) == 0:
        return
    low, high = torch.stack(ids.aminmax()).tolist()
    if low < 0 or high >= bound:
        wrong = low if low < 0 else high
        raise OutOfRange(
            f"{what} {wrong} does not exist: IDs must be from 0 to {bound - 1}"
            if bound
            else f"{what} {wrong} does not exist: there are none of this type"
        )


def narrow(ids: torch.Tensor, bound: int) -> torch.Tensor:
    """Return IDs of ``range(bound)`` as int32 where they fit, contiguous."""
    return ids.to(torch_ids_dtype(bound)).contiguous()


def check_integers(ids: torch.Tensor) -> None:
    """Raise InvalidInput unless IDs have the dtype of IDs."""
    if ids.dtype not in (torch.int32, torch.int64):
        raise InvalidInput(f"IDs must be int32 or int64; found {ids.dtype}")


def checked_adjacency(
    groups: int,
    others: int,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    eids: torch.Tensor | None = None,
) -> Adjacency:
    """Return the adjacency of arrays from a file; raise InvalidInput unless they are valid."""
    if indptr.shape != (groups + 1,) or indptr.dtype != torch.int64 or indices.ndim != 1:
        raise InvalidInput(
            f"expected indptr of shape ({groups + 1},), int64, and indices of one dimension; found "
            f"{tuple(indptr.shape)}, {indptr.dtype}, and {indices.ndim} dimensions"
        )
    steps = torch.diff(indptr)
    if int(indptr[0]) != 0 or int(indptr[-1]) != len(indices) or bool((steps < 0).any()):
        raise InvalidInput(
            f"indptr must start at 0, never fall and end at the number of indices, {len(indices)}"
        )
    check_integers(indices)
    check_ids(indices, others, "node")
    if eids is not None:
        check_integers(eids)
        seen = torch.zeros(len(indices), dtype=torch.bool)
        if eids.shape == indices.shape:
            check_ids(eids, len(indices), "edge")
            seen[eids.long()] = True
        if eids.shape != indices.shape or not bool(seen.all()):
            raise InvalidInput("edge IDs do not occur once each")
    return Adjacency(indptr, indices, eids)
