"""Items of a task: seeds, and what is known of each, such as a label.

References
----------
DGL user guide (2.x), chapter 6, "Stochastic Training on Large Graphs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gnnlab.errors import InvalidInput, OutOfRange

__all__ = ["HeteroItemSet", "ItemSet"]


class ItemSet:
    """Items with one value for each name.

    Parameters
    ----------
    items : int, tensor, sequence, or tuple of them
        N items: the numbers below N, or N values; a tuple has N values for each name.
    names : str or tuple of str, optional
        Attributes of a mini-batch that the values become, such as ``("seeds", "labels")``.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb, torch
    >>> items = gb.ItemSet((torch.arange(3), torch.tensor([5, 6, 7])), names=("seeds", "labels"))
    >>> len(items), items[1], items[[0, 2]]
    (3, (tensor(1), tensor(6)), (tensor([0, 2]), tensor([5, 7])))
    """

    def __init__(self, items: Any, names: str | Sequence[str] | None = None) -> None:
        if isinstance(items, torch.Tensor) and items.dim() == 0:
            items = int(items)
        columns = items if isinstance(items, tuple) else (items,)
        self._is_tuple = isinstance(items, tuple)
        self._columns = [range(c) if isinstance(c, int) else c for c in columns]
        for column in self._columns:
            if not hasattr(column, "__len__") or not hasattr(column, "__getitem__"):
                raise TypeError(
                    f"items are a number, a tensor, or a sequence; found {type(column).__name__}"
                )
        sizes = {len(column) for column in self._columns}
        if len(sizes) > 1:
            raise InvalidInput(f"each name has one value per item; found {sorted(sizes)} values")
        self.names = (names,) if isinstance(names, str) else None if names is None else tuple(names)
        if self.names is not None and len(self.names) != len(self._columns):
            raise InvalidInput(f"found {len(self._columns)} values per item, names {self.names}")

    @property
    def num_items(self) -> int:
        """Values per item."""
        return len(self._columns)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: Any) -> Any:
        found = [_take(column, index) for column in self._columns]
        return tuple(found) if self._is_tuple else found[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        items = tuple(self._columns) if self._is_tuple else self._columns[0]
        return f"ItemSet(\n    items={items},\n    names={self.names},\n)"


class HeteroItemSet:
    """Items of several types, numbered one type after the other; ``ItemSetDict`` is an older name.

    Parameters
    ----------
    itemsets : dict of str to ItemSet
        By node type, or by edge type as in ``"user:likes:item"``; all with the same names.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb
    >>> items = gb.HeteroItemSet({"user": gb.ItemSet(2, "seeds"), "item": gb.ItemSet(3, "seeds")})
    >>> len(items), items[[0, 2, 4]]
    (5, {'user': tensor([0]), 'item': tensor([0, 2])})
    """

    def __init__(self, itemsets: Mapping[str, ItemSet]) -> None:
        self._itemsets = dict(itemsets)
        names = {itemset.names for itemset in self._itemsets.values()}
        if len(names) != 1:
            raise InvalidInput(f"all types have items of the same names; found {names or 'none'}")
        self.names = names.pop()
        self._starts = [0]
        for itemset in self._itemsets.values():
            self._starts.append(self._starts[-1] + len(itemset))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: Any) -> dict[str, Any]:
        if isinstance(index, int):
            index = _position(index, len(self))
            for (name, itemset), start in zip(self._itemsets.items(), self._starts, strict=False):
                if index < start + len(itemset):
                    return {name: itemset[index - start]}
        if isinstance(index, slice):
            index = torch.arange(*index.indices(len(self)))
        index = torch.as_tensor(index)
        found = {}
        for (name, itemset), start in zip(self._itemsets.items(), self._starts, strict=False):
            here = index[(index >= start) & (index < start + len(itemset))]
            if len(here):
                found[name] = itemset[here - start]
        return found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"HeteroItemSet(\n    itemsets={self._itemsets},\n    names={self.names},\n)"


def _take(column: Any, index: Any) -> Any:
    """Return one value, or those at a slice or at a sequence of positions."""
    if isinstance(index, int):
        value = column[_position(index, len(column))]
        return torch.tensor(value) if isinstance(column, range) else value
    if isinstance(column, range):
        if isinstance(index, slice):
            return torch.arange(*index.indices(len(column)))
        return torch.as_tensor(index)
    if isinstance(index, slice) or isinstance(column, torch.Tensor):
        return column[index]
    return [column[int(i)] for i in index]


def _position(index: int, size: int) -> int:
    if not -size <= index < size:
        raise OutOfRange(f"item {index} does not exist: there are {size}")
    return index % size
