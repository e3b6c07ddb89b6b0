"""Items of a task: seeds, and what is known of each, such as a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gnnlab.compat.base import BadArgument, BadType
from gnnlab.errors import OutOfRange


class ItemSet:
    """Items with one value for each name, which is an attribute of a mini-batch.

    ``items`` are a number N, for those below it, N values, or a tuple of values for each name.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb, torch
    >>> items = gb.ItemSet((torch.arange(3), torch.tensor([5, 6, 7])), names=("seeds", "labels"))
    >>> len(items), items[1], items[[0, 2]]
    (3, (tensor(1), tensor(6)), (tensor([0, 2]), tensor([5, 7])))
    """

    def __init__(self, items: Any, names: str | Sequence[str] | None = None) -> None:
        is_tensor = isinstance(items, torch.Tensor)
        if isinstance(items, int) or (is_tensor and not items.dim()):
            dtype = items.dtype if is_tensor else None
            self._shown, self._columns = items, [torch.arange(int(items), dtype=dtype)]
        else:
            self._shown = items if isinstance(items, tuple) else (items,)
            self._columns = list(self._shown)
        for column in self._columns:
            if not hasattr(column, "__len__") or not hasattr(column, "__getitem__"):
                raise BadType(f"items are a number or a sequence; found {type(column).__name__}")
        sizes = {len(column) for column in self._columns}
        if len(sizes) > 1:
            raise BadArgument(f"each name has one value per item; found {sorted(sizes)} values")
        self.names = (names,) if isinstance(names, str) else None if names is None else tuple(names)
        if self.names is not None and len(self.names) != len(self._columns):
            raise BadArgument(f"found {len(self._columns)} values per item, names {self.names}")

    @property
    def num_items(self) -> int:
        """Values per item."""
        return len(self._columns)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: Any) -> Any:
        found = [_take(column, index) for column in self._columns]
        return tuple(found) if len(found) > 1 else found[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"ItemSet(\n    items={self._shown},\n    names={self.names},\n)"


class HeteroItemSet:
    """Item sets of the same names by node or edge type, numbered one after the other."""

    def __init__(self, itemsets: Mapping[str, ItemSet]) -> None:
        self._itemsets = dict(itemsets)
        names = {itemset.names for itemset in self._itemsets.values()}
        if len(names) != 1:
            raise BadArgument(f"all types have items of the same names; found {names or 'none'}")
        self.names = names.pop()
        self._starts = [0]
        for itemset in self._itemsets.values():
            self._starts.append(self._starts[-1] + len(itemset))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: Any) -> dict[str, Any]:
        at = _take(torch.arange(len(self)), index)
        is_one = isinstance(index, int)
        found = {}
        for (name, itemset), start in zip(self._itemsets.items(), self._starts, strict=False):
            here = at[(at >= start) & (at < start + len(itemset))] - start
            if here.numel():
                found[name] = itemset[int(here)] if is_one else itemset[here]
        return found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        items = repr(self._itemsets).replace("\n", "\n" + " " * 13)
        return f"{type(self).__name__}(\n    itemsets={items},\n    names={self.names},\n)"


class ItemSetDict(HeteroItemSet):
    """An older name of :class:`HeteroItemSet`."""


def _take(column: Any, index: Any) -> Any:
    """Return one value, or those at a slice or at a sequence of positions."""
    if isinstance(index, int):
        if not -len(column) <= index < len(column):
            raise OutOfRange(f"item {index} does not exist: there are {len(column)}")
        return column[index]
    if isinstance(index, slice):
        return column[index]
    if not isinstance(index, Sequence | torch.Tensor) or isinstance(index, str):
        raise BadType(f"items are found by a number, a slice or several numbers; found {index!r}")
    if isinstance(column, torch.Tensor):
        return column[torch.as_tensor(index, dtype=torch.int64)]
    return [column[int(i)] for i in index]
