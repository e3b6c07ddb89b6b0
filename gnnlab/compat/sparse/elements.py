"""The elements of a sparse matrix: where they are, what their values are, and parts of them.

Element k stands in row ``row[k]`` and column ``col[k]`` and has the value ``val[k]``, a number or a
vector. So a matrix is a relation (:mod:`gnnlab.graph.relation`) from its columns to its rows with a
weight for each edge, and its operators are those of :mod:`gnnlab.ops`. The structure never changes.
Gradients flow through values.
"""

from __future__ import annotations

import builtins
from functools import partialmethod
from typing import Any, Self, TypeVar

import torch

from gnnlab.compat.base import BadArgument
from gnnlab.graph.construct import heterograph
from gnnlab.graph.names import EID
from gnnlab.graph.neighbor import sample_neighbors
from gnnlab.graph.relation import Adjacency, Relation, check_ids
from gnnlab.ops.spmm import spmm as reduce_edges

M = TypeVar("M", bound="Elements")


class Elements:
    """The elements; :class:`~gnnlab.compat.sparse.matrix.SparseMatrix` adds operators."""

    #: Values of shape (nnz,), or (nnz, D) where each element is a vector.
    val: torch.Tensor

    def __init__(self, relation: Relation, val: torch.Tensor, is_diag: bool = False) -> None:
        self._relation, self.val, self._is_diag = relation, val, is_diag

    def relation(self) -> Relation:
        """Return the elements as edges from columns to rows, for the operators of gnnlab."""
        return self._relation

    def with_val(self, val: Any) -> Self:
        """Return a matrix with the same structure and other values, ones for None."""
        return type(self)(self.relation(), checked_values(val, self.relation()), self._is_diag)

    def with_elements(
        self, row: torch.Tensor, col: torch.Tensor, val: torch.Tensor, shape: tuple[int, int]
    ) -> Self:
        """Return a matrix of other elements."""
        relation = Relation.from_edges(col, row, shape[1], shape[0])
        return type(self)(relation, checked_values(val, relation))

    def with_diag(self, val: torch.Tensor, shape: tuple[int, int]) -> Self:
        """Return the diagonal matrix of some values."""
        place = torch.arange(len(val), device=val.device)
        relation = Relation.from_edges(place, place, shape[1], shape[0])
        return type(self)(relation, val, True)

    # ------------------------------------------------------------------ questions
    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.relation().num_dst, self.relation().num_src

    @property
    def nnz(self) -> int:
        """Number of elements."""
        return self.relation().num_edges

    @property
    def dtype(self) -> torch.dtype:
        """dtype of the values."""
        return self.val.dtype

    @property
    def device(self) -> torch.device:
        """Device of structure and values."""
        return self.val.device

    @property
    def row(self) -> torch.Tensor:
        """Row of each element, shape (nnz,), int64."""
        return self.relation().coo()[1].long()

    @property
    def col(self) -> torch.Tensor:
        """Column of each element, shape (nnz,), int64."""
        return self.relation().coo()[0].long()

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return row and column of each element."""
        return self.row, self.col

    def indices(self) -> torch.Tensor:
        """Return row and column of each element, shape (2, nnz)."""
        return torch.stack(self.coo())

    def csr(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return ``indptr`` (L + 1,), the columns row by row, and which values these have."""
        return _arrays(self.relation().csc())

    def csc(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return ``indptr`` (N + 1,), the rows column by column, and which values these have."""
        return _arrays(self.relation().csr())

    def keys(self) -> torch.Tensor:
        """Number of each element if all rows stood one after the other, shape (nnz,), int64."""
        return self.row * self.shape[1] + self.col

    def is_diag(self) -> bool:
        """Whether :func:`diag` or :func:`identity` made it, or an operator that keeps diagonals."""
        return self._is_diag

    def has_duplicate(self) -> bool:
        """Whether two elements have the same row and column."""
        return len(torch.unique(self.keys())) < self.nnz

    def to_dense(self) -> torch.Tensor:
        """Return the matrix with its zeros, shape (L, N) or (L, N, D); duplicates are added."""
        size = self.shape[0] * self.shape[1]
        total = Relation.from_edges(
            torch.arange(self.nnz, device=self.device), self.keys(), self.nnz, size
        )
        return reduce_edges(total, "copy_rhs", "sum", None, self.val).view(
            *self.shape, *self.val.shape[1:]
        )

    def __repr__(self) -> str:
        lines = {"indices": self.indices(), "values": self.val}
        parts = [_aligned(f"{name}=", value) for name, value in lines.items()]
        size = "" if self.val.dim() == 1 else f", val_size={tuple(self.val.shape[1:])}"
        parts.append(f"shape={self.shape}, nnz={self.nnz}{size}")
        return f"SparseMatrix({(',' + chr(10) + ' ' * 13).join(parts)})"

    # ---------------------------------------------------------- other forms of the matrix
    def to(self, device: Any = None, dtype: torch.dtype | None = None) -> Self:
        """Return the matrix on a device, with values of a dtype; itself if it is so already."""
        device = self.device if device is None else torch.device(device)
        val = self.val.to(device=device, dtype=dtype)
        if val is self.val:
            return self
        moved = self.relation()
        if device != self.device:
            moved = moved.map(lambda x: x.to(device))
        return type(self)(moved, val, self._is_diag)

    cuda, cpu = partialmethod(to, "cuda"), partialmethod(to, "cpu")
    float = partialmethod(to, dtype=torch.float32)
    double = partialmethod(to, dtype=torch.float64)
    int = partialmethod(to, dtype=torch.int32)
    long = partialmethod(to, dtype=torch.int64)

    def transpose(self) -> Self:
        """Return the transposed matrix, with the elements in the same order."""
        return type(self)(self.relation().reverse(), self.val, self._is_diag)

    t = transpose
    T = property(transpose)

    def coalesce(self) -> Self:
        """Return the matrix with elements in the order of rows and columns, duplicates added."""
        return collected(self, self.keys(), self.val)

    # --------------------------------------------------------------- parts of the matrix
    def index_select(self, dim: builtins.int, index: torch.Tensor) -> Self:
        """Return the given rows (``dim`` 0) or columns (1), in this order; one may be repeated."""
        if check_dim(dim) == 1:
            return self.transpose().index_select(0, index).transpose()
        index = torch.as_tensor(index, device=self.device)
        if index.ndim != 1 or index.is_floating_point():
            raise BadArgument(
                f"index is a vector of integers; found shape {tuple(index.shape)}, {index.dtype}"
            )
        check_ids(index, self.shape[0], "row")
        indptr, col, values = self.csr()
        index = index.long()
        counts = torch.diff(indptr)[index]
        rows = torch.repeat_interleave(torch.arange(len(index), device=self.device), counts)
        first = torch.cumsum(counts, 0) - counts
        at = torch.arange(len(rows), device=self.device) - first[rows] + indptr[index][rows]
        return self.with_elements(rows, col[at], self.val[values[at]], (len(index), self.shape[1]))

    def range_select(self, dim: builtins.int, index: slice) -> Self:
        """Return a range of the rows (``dim`` 0) or columns (1), such as ``slice(0, 10)``."""
        if not isinstance(index, slice):
            raise BadArgument(f"index is a slice, such as slice(0, 10); found {index!r}")
        bounds = index.indices(self.shape[check_dim(dim)])
        return self.index_select(dim, torch.arange(*bounds, device=self.device))

    def sample(
        self,
        dim: builtins.int,
        fanout: builtins.int,
        ids: torch.Tensor | None = None,
        replace: bool = False,
        bias: bool = False,
    ) -> Self:
        """Draw ``fanout`` elements of each row (``dim`` 0) or column (1), or all if it has fewer.

        With ``ids``, only of these rows, which are those of the result. With ``bias``, in
        proportion to the values.
        """
        if check_dim(dim) == 1:
            return self.transpose().sample(0, fanout, ids, replace, bias).transpose()
        chosen = self if ids is None else self.index_select(0, ids)
        ends = {"col": chosen.shape[1], "row": chosen.shape[0]}
        graph = heterograph({("col", "to", "row"): (chosen.col, chosen.row)}, ends)
        if bias:
            graph.edata["w"] = chosen.val.detach()
        rows = torch.arange(chosen.shape[0], device=self.device)
        drawn = sample_neighbors(
            graph, {"row": rows}, fanout, prob="w" if bias else None, replace=replace
        )
        which = torch.sort(drawn.edata[EID].long()).values
        return self.with_elements(
            chosen.row[which], chosen.col[which], chosen.val[which], chosen.shape
        )

    def compact(
        self, dim: builtins.int, leading_indices: torch.Tensor | None = None
    ) -> tuple[Self, torch.Tensor]:
        """Leave out rows (``dim`` 0) or columns (1) without elements; return which ones are left.

        ``leading_indices`` are rows that stay in any case and come first, in this order.
        """
        if check_dim(dim) == 1:
            made, kept = self.transpose().compact(0, leading_indices)
            return made.transpose(), kept
        used = torch.zeros(self.shape[0], dtype=torch.bool, device=self.device)
        used[self.row] = True
        kept = used.nonzero().flatten()
        if leading_indices is not None:
            leading = torch.as_tensor(leading_indices, device=self.device).long()
            check_ids(leading, self.shape[0], "row")
            used[leading] = False
            kept = torch.cat([leading, used.nonzero().flatten()])
        new = torch.empty(self.shape[0], dtype=torch.int64, device=self.device)
        new[kept] = torch.arange(len(kept), device=self.device)
        return self.with_elements(
            new[self.row], self.col, self.val, (len(kept), self.shape[1])
        ), kept


def check_dim(dim: Any) -> int:
    """Return 0 or 1; raise InvalidInput for another dimension."""
    if dim not in (0, 1):
        raise BadArgument(f"dim is 0 (rows) or 1 (columns) of a matrix; found {dim!r}")
    return int(dim)


def added(at: torch.Tensor, size: int, val: torch.Tensor) -> torch.Tensor:
    """Return ``size`` rows, each the sum of the values at it, in the order of the values."""
    order = torch.arange(len(at), device=at.device)
    groups = Relation.from_edges(order, at, len(at), size)
    return reduce_edges(groups, "copy_rhs", "sum", None, val)


def collected(like: M, keys: torch.Tensor, val: torch.Tensor) -> M:
    """Make a matrix of the shape of ``like``, of elements at ``keys``, sorted by these.

    Elements at one place are added.
    """
    known, at = torch.unique(keys, return_inverse=True)
    total = added(at, len(known), val)
    row = torch.div(known, max(like.shape[1], 1), rounding_mode="floor")
    return like.with_elements(row, known - row * like.shape[1], total, like.shape)


def checked_values(val: Any, relation: Relation) -> torch.Tensor:
    """Return values that are one for each edge; ones for None."""
    if val is None:
        return torch.ones(relation.num_edges, device=relation.device)
    if not isinstance(val, torch.Tensor) or val.dim() not in (1, 2):
        what = tuple(val.shape) if isinstance(val, torch.Tensor) else type(val).__name__
        raise BadArgument(
            f"values are a tensor of shape ({relation.num_edges},) or ({relation.num_edges}, D); "
            f"found {what}"
        )
    if len(val) != relation.num_edges:
        raise BadArgument(f"found {len(val)} values for {relation.num_edges} elements")
    if val.device != relation.device:
        raise BadArgument(f"values are on {val.device}, indices on {relation.device}")
    return val


def _arrays(adjacency: Adjacency) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return adjacency.indptr, adjacency.indices.long(), adjacency.eids.long()


def _aligned(name: str, value: torch.Tensor) -> str:
    pad = "\n" + " " * (len("SparseMatrix(") + len(name))
    return name + repr(value).replace("\n", pad)
