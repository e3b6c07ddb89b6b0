"""``dgl.distributed.id_map``: homogeneous IDs to types and type-wise IDs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor


class IdMap:
    """Maps homogeneous IDs to type IDs and type-wise IDs.

    ``id_ranges`` has for each type an array (parts, 2): its first homogeneous ID in each part, and
    the one after its last. The ranges of all types together begin at 0 and leave no gap.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.distributed.id_map import IdMap
    >>> ids = IdMap({"user": [[0, 2], [3, 4]], "game": [[2, 3], [4, 6]]})
    >>> ids(torch.tensor([0, 2, 3, 5]))
    (tensor([0, 1, 0, 1]), tensor([0, 0, 2, 2]))
    """

    def __init__(self, id_ranges: Mapping[Any, Any]) -> None:
        tables = [np.asarray(ranges, np.int64).reshape(-1, 2) for ranges in id_ranges.values()]
        starts, ends = np.concatenate(tables).T
        types = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        sizes = [table[:, 1] - table[:, 0] for table in tables]
        before = [np.cumsum(each) - each for each in sizes]
        order = np.lexsort((ends, starts))
        self._starts, self._end = starts[order], int(ends.max(initial=0))
        self._types, self._first = types[order], np.concatenate(before)[order]
        expected = np.concatenate([[0], ends[order][:-1]])
        if (self._starts != expected).any():
            raise InvalidInput("the ranges of an IdMap must begin at 0 and leave no gap")

    @property
    def torch_dtype(self) -> torch.dtype:
        """dtype of the results."""
        return torch.int64

    def __call__(self, ids: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return type IDs and type-wise IDs, both of the shape of ``ids``, int64."""
        given = as_tensor(ids).cpu().numpy()
        if given.size and not 0 <= given.min() <= given.max() < self._end:
            raise InvalidInput(
                f"IDs are from 0 to {self._end - 1}; found {given.min()} to {given.max()}"
            )
        cell = np.searchsorted(self._starts, given, side="right") - 1
        within = given - self._starts[cell] + self._first[cell]
        return torch.from_numpy(self._types[cell]), torch.from_numpy(within)
