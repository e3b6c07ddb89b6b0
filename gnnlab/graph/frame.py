"""Features of the nodes or the edges of one type.

A frame is a dictionary of tensors with the same number of rows. A column may be *lazy*: it then
holds a function ("rows 3, 1, 8 of that matrix") and is computed when it is first read, so a
mini-batch only costs the features that the model reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, NoAttribute, NotFound
from gnnlab.graph.names import NID, listing


def as_tensor(value: Any, what: str = "", *, integers: bool = False) -> torch.Tensor:
    """Turn numpy arrays, ranges, lists, numbers, columns of pandas and DistTensors into tensors.

    Tensors stay as they are. The error begins with ``what`` and may ask for ``integers``.
    """
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return value
    if isinstance(value, range):
        return value.start + value.step * torch.arange(len(value))
    try:
        if isinstance(value, torch.Tensor):
            raise InvalidInput(f"expected a dense tensor; found {value.layout}: x.to_dense()")
        if hasattr(value, "__array__") and not isinstance(value, np.ndarray):  # pandas, DistTensor
            value = _array(value)
        if isinstance(value, np.ndarray):
            # pandas returns read-only views, for which torch would warn.
            return torch.from_numpy(np.require(value, requirements=["C", "W"]))
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        is_ours = isinstance(error, InvalidInput)
        text = str(error) if is_ours else _not_numbers(value, error, integers)
        raise InvalidInput(f"{what}: {text}" if what else text) from None


def _array(value: Any) -> np.ndarray:
    """Turn columns of pandas into an array; in its own dtypes, such as Int64, no value may lack."""
    is_frame = hasattr(value, "columns") and hasattr(value, "items")
    columns = list(value.items()) if is_frame else [(getattr(value, "name", None), value)]
    for name, column in columns:
        if hasattr(getattr(column, "dtype", None), "numpy_dtype") and column.isna().any():
            raise InvalidInput(
                f"column {name!r} lacks a value in row {int(np.argmax(column.isna()))}; drop such "
                "rows, frame.dropna(), or fill them, frame.fillna(0)"
            )
    array = np.asarray(value)
    if is_frame and array.dtype.kind == "O":
        array = np.stack([np.asarray(column) for _, column in columns], axis=1)
    return array


def _not_numbers(value: Any, error: Exception, integers: bool) -> str:
    kind = type(value).__name__
    numbers, dtype, sized = ("numbers", "float", "float32")
    if integers:
        numbers, dtype, sized = ("integers", "int", "int64")
    try:
        array = np.asarray(value)
    except ValueError:
        return f"expected numbers in rows of one length; found a {kind} of rows that differ"
    if array.dtype.kind in "USO" and any(isinstance(x, str | bytes) for x in array.flat):
        return (
            f"expected {numbers}; found text ({kind}). Use pandas.factorize(values)[0] for names, "
            f"or numpy.asarray(values, {dtype}) for {numbers} written as text"
        )
    if array.dtype.kind == "O" and array.ndim:
        return (
            f"expected {numbers}; found a {kind} of Python objects. Convert it to one dtype first: "
            f'array.astype("{sized}"), or frame[columns].astype("{sized}") for columns of pandas; '
            "for names, use pandas.factorize(values)[0]"
        )
    return f"expected a tensor, an array or a list of numbers; found {kind} ({error})"


def wrong_rows(frame: Any, name: str, value: torch.Tensor) -> str:
    """Return the message for a feature that does not have one row per node or edge."""
    what = frame.what
    text = (
        f"{what} feature {name!r} has shape {tuple(value.shape)}; expected {frame.num_rows} rows, "
        f"one for each {what}"
    )
    if what == "node" and value.ndim and len(value) > frame.num_rows:
        text += ". Without num_nodes= a graph ends at the last node that has an edge"
    return text


def no_feature_attribute(features: Any, name: str) -> AttributeError:
    """Return the error for ``g.ndata.feat``."""
    kind = type(features).__name__
    if name.startswith("_"):
        return AttributeError(f"{kind!r} object has no attribute {name!r}")
    return NoAttribute(
        f"features are items, not attributes: write [{name!r}] instead of .{name}. The features "
        f"here are: {', '.join(map(repr, features)) or 'none'}"
    )


class LazyTensor:
    """A column that is computed when it is first read, by ``make``, a function without arguments.

    ``source`` returns the tensor that ``make`` reads, as it is now; see :meth:`renew`. ``copy``
    moves the result to the device; by default :func:`copier` of the device does.
    """

    __slots__ = ("_read", "_value", "copy", "device", "make", "source")

    def __init__(
        self,
        make: Callable[[], torch.Tensor],
        device: torch.device | None = None,
        source: Callable[[], torch.Tensor] | None = None,
        copy: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self.make = make
        self.device = device
        self.source = source
        self.copy = copy
        self._value: torch.Tensor | None = None  # several frames may share this column
        self._read: list[Any] = []  # the source, as it was when the value was computed

    @property
    def is_pending(self) -> bool:
        """Whether the tensor has not been computed yet."""
        return self._value is None

    def __call__(self) -> torch.Tensor:
        """Compute the tensor on the first call, and return it."""
        if self._value is None:
            if self.source is not None:
                self._read = versions([self.source()])  # before: a write meanwhile counts
            value = self.make()
            if isinstance(self.make, LazyTensor):
                self._read = self.make._read
            if self.device is not None:
                value = (self.copy or copier(self.device))(value)
            self._value = value
        return self._value

    def to(
        self, device: torch.device, copy: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> LazyTensor:
        """Return the column on another device; a value that is computed is copied now."""
        twin = LazyTensor(self, device, self.source, copy)
        if self._value is not None:
            twin()
        return twin

    def renew(self) -> torch.Tensor | None:
        """Return the value, if it was computed; compute it again if the source has changed."""
        if isinstance(self.make, LazyTensor):
            self.make.renew()
        if self._read and not is_unchanged(self._read, [self.source()]):  # type: ignore[misc]
            self._value = None
            self()
        self._read = []  # frees a column that has been replaced
        return self._value


def copier(device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that moves a tensor to a device.

    A copy to a GPU is ordered by its stream; a copy to the CPU must block.
    """
    return lambda tensor: tensor.to(device, non_blocking=device.type != "cpu")


def versions(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, int | None]]:
    """Return tensors with the number of writes to each, for :func:`is_unchanged`.

    torch counts no writes to tensors made in inference mode; their number is None.
    """
    return [(x, None if x.is_inference() else x._version) for x in tensors]


def is_unchanged(before: list[tuple[torch.Tensor, int | None]], now: list[torch.Tensor]) -> bool:
    """Whether these are the tensors that :func:`versions` took, and surely not written to since."""
    return len(before) == len(now) and all(
        old is new and count is not None and count == new._version
        for (old, count), new in zip(before, now, strict=True)
    )


class Frame(MutableMapping[str, torch.Tensor]):
    """A dictionary of columns, each with ``num_rows`` rows.

    Columns must be on the device, if there is one. ``what`` a row stands for, "node" or "edge", is
    for error messages. ``initializers`` make rows which nobody wrote, see :meth:`initial`.
    """

    __slots__ = ("_columns", "_ids_of", "device", "initializers", "num_rows", "what")

    def __init__(
        self,
        num_rows: int,
        columns: Mapping[str, torch.Tensor | LazyTensor] | None = None,
        device: torch.device | None = None,
        what: str = "node",
        initializers: Mapping[str | None, Callable[..., torch.Tensor]] | None = None,
    ) -> None:
        self.num_rows = num_rows
        self.device = device
        self.what = what
        self._columns: dict[str, torch.Tensor | LazyTensor] = dict(columns) if columns else {}
        self._ids_of: tuple[Any, Any] | None = None
        self.initializers = dict(initializers or {})

    def __getitem__(self, name: str) -> torch.Tensor:
        value = self.column(name)
        if isinstance(value, LazyTensor):
            value = self._columns[name] = value()
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise InvalidInput(f"the name of a feature is a text; found {name!r:.80}")
        value = as_tensor(value, f"{self.what} feature {name!r}")
        if value.ndim == 0 or value.shape[0] != self.num_rows:
            raise InvalidInput(wrong_rows(self, name, value))
        if self.device is not None and value.device != self.device:
            raise InvalidInput(
                f"{self.what} feature {name!r} is on {value.device} but the graph is on "
                f"{self.device}; move one of them with .to()"
            )
        self._columns[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise NotFound(f"no {self.what} feature {name!r} to delete")
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._columns

    def __repr__(self) -> str:
        return repr(dict(self))

    def __getattr__(self, name: str) -> Any:
        raise no_feature_attribute(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Frame, (self.num_rows, dict(self), self.device, self.what)

    def defer(
        self,
        name: str,
        make: Callable[[], torch.Tensor],
        source: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        """Set a column that is computed when it is first read; see :class:`LazyTensor`."""
        self._columns[name] = LazyTensor(make, self.device, source)

    def renew(self) -> None:
        """Compute lazy columns again whose source has changed since they were computed."""
        for name, column in self._columns.items():
            if isinstance(column, LazyTensor) and (value := column.renew()) is not None:
                self._columns[name] = value

    def initial(self, name: str, like: torch.Tensor, rows: slice | None = None) -> torch.Tensor:
        """Return rows, by default all, of a column that nobody wrote and that is ``like`` another.

        They are made by ``initializers[name]``, else by ``initializers[None]``, which take shape,
        dtype, device and the slice of rows; else they are zeros.
        """
        rows = rows or slice(0, self.num_rows)
        shape = (rows.stop - rows.start, *like.shape[1:])
        make = self.initializers.get(name, self.initializers.get(None))
        if make is None:
            return like.new_zeros(shape)
        value = as_tensor(make(shape, like.dtype, like.device, rows))
        if value.shape != shape:
            raise InvalidInput(
                f"the initializer of {self.what} feature {name!r} must return a tensor of the "
                f"shape that it is given, {shape}; found {tuple(value.shape)}"
            )
        return value.to(like)

    def column(self, name: str) -> torch.Tensor | LazyTensor:
        """Return a column as it is stored, lazy or computed."""
        try:
            return self._columns[name]
        except (KeyError, TypeError):  # or a list of names
            known = ", ".join(map(repr, self._columns)) or "none"
            raise NotFound(
                f"no {self.what} feature {name!r}; the features here are: {known}"
            ) from None

    def copy(self) -> Frame:
        """Return a frame with the same columns (the tensors themselves are shared)."""
        twin = Frame(self.num_rows, self._columns, self.device, self.what, self.initializers)
        twin._ids_of = self._ids_of
        return twin

    def replace_ids(self, graph: Any) -> None:
        """Note that the column of IDs has those in ``graph``, and replaced older ones."""
        self._ids_of = self._columns[NID], graph

    def ids_replaced_in(self) -> Any:
        """Return the graph that :meth:`replace_ids` named, unless the IDs were set again."""
        if self._ids_of is None or self._columns.get(NID) is not self._ids_of[0]:
            return None
        return self._ids_of[1]

    def scheme(self, indent: int = 0) -> str:
        """Describe shape (of one row) and dtype of each column, as DGL's ``repr`` does."""
        columns = (
            f"{name!r}: Scheme(shape={tuple(column.shape[1:])}, dtype={column.dtype})"
            for name, column in self.items()
        )
        return listing(columns, indent)

    def gather(self, name: str, index: torch.Tensor) -> torch.Tensor:
        """Return some rows of a column."""
        return _gather(self[name], index)

    def rows(
        self,
        index: torch.Tensor | LazyTensor,
        gather: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ) -> dict[str, torch.Tensor | LazyTensor]:
        """Return lazy columns with the rows ``index`` of each column as it is now.

        They are made by ``gather(column, index)``, by default :func:`gnnlab.kernels.gather.rows`.
        """
        return {
            name: LazyTensor(
                partial(_gather, column, index, gather), source=partial(_computed, column)
            )
            for name, column in self._columns.items()
        }

    def to(
        self, device: torch.device, copy: Callable[[torch.Tensor], torch.Tensor] | None = None
    ) -> Frame:
        """Return a frame on another device; lazy columns stay lazy."""
        copy = copy or copier(device)
        columns: dict[str, torch.Tensor | LazyTensor] = {
            name: value.to(device, copy) if isinstance(value, LazyTensor) else copy(value)
            for name, value in self._columns.items()
        }
        return Frame(self.num_rows, columns, device, self.what, self.initializers)


def _gather(
    column: torch.Tensor | LazyTensor,
    index: torch.Tensor | LazyTensor,
    gather: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    from gnnlab.kernels.gather import rows

    return (gather or rows)(_computed(column), _computed(index))


def _computed(column: torch.Tensor | LazyTensor) -> torch.Tensor:
    return column() if isinstance(column, LazyTensor) else column
