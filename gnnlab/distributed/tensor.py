"""Tensors whose rows are distributed over machines.

The first dimension of a distributed tensor indexes the nodes, or the edges, of one type, and the
machine that owns a node stores its row. Rows are read and written by indexing, like those of any
tensor; reads return an ordinary tensor on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import partial
from typing import Any

import numpy as np
import torch

from gnnlab.distributed import context
from gnnlab.distributed import messages as m
from gnnlab.distributed.client import Client, Initializer
from gnnlab.errors import InvalidInput, NoAttribute, NotFound, OutOfRange
from gnnlab.graph.frame import Frame, LazyTensor, as_tensor, no_feature_attribute, wrong_rows
from gnnlab.graph.ids import is_scalar, read_ids
from gnnlab.kernels.dtypes import DTYPES
from gnnlab.partition.book import PartitionPolicy


class DistTensor:
    """A tensor with a row for each node, or edge, of one type, stored by its owner.

    It belongs to the graph of ``part_policy``, else to the graph that was opened last. An existing
    tensor of that name is reused if shape and dtype agree; otherwise InvalidInput is raised. Reads
    concurrent with another trainer's write may return partly old, partly new rows: call
    ``g.barrier()`` between writes and other trainers' reads.

    Parameters
    ----------
    shape : tuple of int
        The first number is the number of nodes or edges of a type.
    name : str, optional
        Under which other processes find the tensor.
    init_func : callable, optional
        ``init_func(shape, dtype)`` returns a part's initial rows, a new tensor; zeros by default.
    part_policy : PartitionPolicy, optional
        Policy of the rows' type. Required if several types have as many nodes or edges.
    persistent : bool
        Keep the rows when the last DistTensor of the name is deleted. Requires a name.
    is_gdata : bool
        Whether the tensor counts among the features of the graph: ``g.ndata[name]``.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> g = dgl.graph(([0, 1, 2, 3, 0], [1, 2, 3, 0, 2]))
    >>> dgl.distributed.partition_graph(g, "ring", 2, folder, part_method="random")
    ring: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("ring", part_config=f"{folder}/ring.json")
    >>> h = dgl.distributed.DistTensor((g.num_nodes(), 2), torch.float32, name="h")
    >>> h[[3, 0]] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> h[0], h[2:4]
    (tensor([[3., 4.]]), tensor([[0., 0.],
            [1., 2.]]))
    >>> h
    DistTensor(name='node~_N~h', shape=(4, 2), dtype=torch.float32, parts=2)
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        name: str | None = None,
        init_func: Initializer | None = None,
        part_policy: PartitionPolicy | None = None,
        persistent: bool = False,
        is_gdata: bool = True,
    ) -> None:
        shape = _read_shape(shape)
        if not isinstance(dtype, torch.dtype):
            raise InvalidInput(f"dtype must be a torch.dtype; found {dtype!r}")
        if persistent and name is None:
            raise InvalidInput("a persistent tensor needs a name, by which it is found again")
        if name is not None and (not isinstance(name, str) or not name or "~" in name):
            raise InvalidInput(f"the name of a tensor is text without '~'; found {name!r}")
        client = context.client_of(part_policy.partition_book if part_policy else None)
        policy = part_policy or client.policy_for(shape[0])
        if policy.get_size() != shape[0]:
            raise InvalidInput(
                f"{policy.policy_str} has {policy.get_size()} rows; the shape {shape} begins with "
                f"{shape[0]}"
            )
        is_gdata = is_gdata and name is not None
        full = client.create(policy, name, shape[1:], dtype, init_func, is_gdata)
        self._bind(client, policy, full)
        self._reference = client.refer(full, persistent)

    @classmethod
    def existing(cls, client: Client, policy: PartitionPolicy, name: str) -> DistTensor:
        """Return the tensor of a full name."""
        self = object.__new__(cls)
        self._bind(client, policy, name)
        return self

    def _bind(self, client: Client, policy: PartitionPolicy, name: str) -> None:
        there = client.description(name)
        self.client, self._policy, self._name = client, policy, name
        self._shape = (policy.get_size(), *there.row_shape)
        self._dtype = DTYPES[there.dtype]
        self._reference = client.refer(name)

    # ------------------------------------------------------------- properties
    @property
    def name(self) -> str:
        """The full name: policy and name; for example "node~_N~feat"."""
        return self._name

    @property
    def shape(self) -> torch.Size:
        """Rows of all parts together, and the shape of a row."""
        return torch.Size(self._shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> torch.dtype:
        """dtype of the elements."""
        return self._dtype

    @property
    def part_policy(self) -> PartitionPolicy:
        """Which part owns which rows."""
        return self._policy

    def __len__(self) -> int:
        return self._shape[0]

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        values = {"name": self._name, "shape": self._shape, "dtype": self._dtype}
        sizes = {str(part): float(n) for part, n in enumerate(np.diff(self._policy.ranges))}
        return cells.page(type(self).__name__, values, cells.bars({self._policy.policy_str: sizes}))

    def __repr__(self) -> str:
        return (
            f"DistTensor(name={self._name!r}, shape={self._shape}, dtype={self._dtype}, "
            f"parts={self.client.transport.num_parts})"
        )

    # ------------------------------------------------------------------- rows
    def __getitem__(self, index: Any) -> torch.Tensor:
        """Read rows.

        Parameters
        ----------
        index : int, slice, list, numpy.ndarray or torch.Tensor
            IDs, or a mask over all rows.

        Returns
        -------
        torch.Tensor
            Shape (number of IDs, …), also for a single ID.
        """
        return self.client.pull(self._policy, self._name, self._read_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write rows: a value for each ID, or one for all. Of repeated IDs, the last value wins.

        Tensors and arrays must have the dtype of this tensor; numbers and lists are converted.
        """
        ids = self._read_index(index)
        shape = (len(ids), *self._shape[1:])
        if isinstance(value, DistTensor):
            value = value[:]
        has_dtype, value = isinstance(value, torch.Tensor | np.ndarray), as_tensor(value)
        is_whole = not (value.is_floating_point() or value.is_complex())
        if not has_dtype and (is_whole or torch.can_cast(value.dtype, self._dtype)):
            value = value.to(self._dtype)
        if value.dtype != self._dtype:
            raise InvalidInput(
                f"{self._name} holds {self._dtype}; found values of {value.dtype}. Convert them "
                f"with .to({self._dtype})"
            )
        try:
            value = value.detach().cpu().expand(shape)
        except RuntimeError:
            raise InvalidInput(
                f"{len(ids)} rows of {self._name} need values of shape {shape}; found "
                f"{tuple(value.shape)}"
            ) from None
        self.client.push(self._policy, self._name, ids, value)

    def _read_index(self, index: Any) -> torch.Tensor:
        size = self._shape[0]
        if isinstance(index, torch.Tensor) and index.ndim == 1 and index.dtype is torch.int64:
            return index.cpu()  # the usual case; the client checks the range
        if isinstance(index, DistTensor):
            index = index[:]
        if index is Ellipsis:
            index = slice(None)
        if isinstance(index, slice):
            rows = range(*index.indices(size))
            return torch.arange(*(rows.start, rows.stop, rows.step) if rows else (0,))
        if isinstance(index, tuple) or index is None:
            raise InvalidInput(
                f"a DistTensor is indexed by rows alone; found {index!r}. Read rows first, then "
                "index them: tensor[ids][:, 0]"
            )
        if is_scalar(index) and not isinstance(index, bool) and not 0 <= int(index) < size:
            raise OutOfRange(f"row {int(index)} of {self._name} does not exist: 0 to {size - 1} do")
        return read_ids(index, size, "row", torch.device("cpu"), check=False)

    def count_nonzero(self) -> int:
        """Count the elements that are not zero."""
        return self.client.count_nonzero(self._name)

    def __or__(self, other: DistTensor) -> DistTensor:
        """Return the union of two masks as a new tensor."""
        if not isinstance(other, DistTensor):
            return NotImplemented
        if (other.shape, other.part_policy) != (self.shape, self.part_policy):
            raise InvalidInput(f"cannot join {self!r} and {other!r}: they differ in rows")
        found = DistTensor(self._shape, self._dtype, part_policy=self._policy)
        for lo, hi in zip(self._policy.ranges, self._policy.ranges[1:], strict=False):
            rows = slice(int(lo), int(hi))
            found[rows] = self[rows] | other[rows]
        return found

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        """Refuse torch functions such as ``torch.relu(tensor)``: raises InvalidInput."""
        raise InvalidInput(_rows_first(getattr(func, "__name__", "this function")))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return all rows as an array."""
        return np.asarray(self[:].numpy(), dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'DistTensor' object has no attribute {name!r}")
        raise NoAttribute(_rows_first(f".{name}"))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | torch.Tensor | np.ndarray):
            raise InvalidInput(_rows_first("comparison"))
        return self is other

    __hash__ = object.__hash__

    def _no_arithmetic(self, *args: Any) -> Any:
        raise InvalidInput(_rows_first("arithmetic"))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __rpow__ = _no_arithmetic
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __invert__ = __and__ = _no_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (*self.client.source, self._policy.policy_str, self._name)


def original_ids(tensor: DistTensor) -> DistTensor:
    """Return the IDs of the rows before the graph was partitioned: (N,), int64, read-only."""
    policy = tensor.part_policy
    return DistTensor.existing(tensor.client, policy, policy.policy_str + m.ORIGINAL_IDS)


def _rows_first(what: str) -> str:
    return (
        f"{what} needs an ordinary tensor, and a DistTensor's rows are on many machines: read the "
        "rows that you need first, tensor[ids], or all of them if they fit into memory, tensor[:]"
    )


def _reopen(graph_name: str, part_config: str, policy_str: str, name: str) -> DistTensor:
    client = context.reopen_client(graph_name, part_config)
    return DistTensor.existing(client, PartitionPolicy(policy_str, client.book), name)


def _reopen_frame(
    graph_name: str, part_config: str, policy_str: str, given: dict[str, DistTensor]
) -> DistFrame:
    client = context.reopen_client(graph_name, part_config)
    frame = DistFrame(client, PartitionPolicy(policy_str, client.book))
    frame._given.update(given)
    return frame


def _read_shape(shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in shape)
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 0:
        raise InvalidInput(
            f"shape is a tuple of sizes, the first of them a number of nodes or edges; found "
            f"{shape!r}"
        )
    return sizes


class DistFrame(MutableMapping[str, DistTensor]):
    """The features of the nodes, or edges, of one type: name → DistTensor.

    It replaces the :class:`~gnnlab.graph.frame.Frame` of an ordinary graph, so that a loader can
    attach features to a mini-batch.
    """

    device = torch.device("cpu")

    def __init__(self, client: Client, policy: PartitionPolicy) -> None:
        self.client, self.policy = client, policy
        self.num_rows = policy.get_size()
        self.what = "node" if policy.is_node else "edge"
        self._given: dict[str, DistTensor] = {}

    def __getitem__(self, name: str) -> DistTensor:
        if name in self._given:
            return self._given[name]
        if name not in self.client.names(self.policy.policy_str):
            raise NotFound(
                f"no {self.what} feature {name!r} of {self.policy.policy_str}; the features are: "
                + (", ".join(map(repr, self)) or "none")
            )
        return DistTensor.existing(self.client, self.policy, self.policy.get_data_name(name))

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(value, DistTensor):
            value = self._spread(name, as_tensor(value))
        if value.part_policy != self.policy:
            raise InvalidInput(
                f"{name!r} needs the rows of {self.policy.policy_str}; found {value!r}"
            )
        self._given[name] = value

    def _spread(self, name: str, values: torch.Tensor) -> DistTensor:
        """Create a DistTensor from a tensor of all rows, replacing one of that name."""
        if values.ndim == 0 or len(values) != self.num_rows:
            raise InvalidInput(wrong_rows(self, name, values))
        self.client.delete(self.policy.get_data_name(name))
        return DistTensor(values.shape, values.dtype, name, values, self.policy, persistent=True)

    def __delitem__(self, name: str) -> None:
        tensor = self[name]
        self._given.pop(name, None)
        if tensor.name == self.policy.get_data_name(name):
            self.client.delete(tensor.name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.client.names(self.policy.policy_str), *self._given)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._given or name in self.client.names(self.policy.policy_str)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        source, given = self.client.source, dict(self._given)
        return _reopen_frame, (*source, self.policy.policy_str, given)

    def __getattr__(self, name: str) -> Any:
        raise no_feature_attribute(self, name)

    def gather(self, name: str, index: torch.Tensor) -> torch.Tensor:
        """Return some rows of a feature."""
        return self.client.pull(self.policy, self[name].name, index)

    def rows(self, index: torch.Tensor | LazyTensor) -> dict[str, LazyTensor]:
        """Return columns that read the rows ``index`` on first access."""
        return {name: LazyTensor(partial(_read, tensor, index)) for name, tensor in self.items()}

    scheme = Frame.scheme


def _read(tensor: DistTensor, index: torch.Tensor | LazyTensor) -> torch.Tensor:
    return tensor[index() if isinstance(index, LazyTensor) else index]
