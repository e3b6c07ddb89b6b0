"""What DGL keeps in ``dgl.utils``: small helpers that layers of programs use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from gnnlab.errors import DGLError
from gnnlab.graph.graph import Graph

__all__ = ["check_eq_shape", "expand_as_pair", "recursive_apply"]


def expand_as_pair(input_: Any, g: Graph | None = None) -> tuple[Any, Any]:
    """Return the features of source and destination nodes for an argument that may be either.

    A pair is returned as it is. On a block, destination nodes are the first of the source nodes.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.utils import expand_as_pair
    >>> source, destination = expand_as_pair(torch.ones(3, 2))
    >>> source is destination
    True
    """
    if isinstance(input_, tuple):
        return input_
    if g is not None and g.is_block:
        if isinstance(input_, Mapping):
            first = {k: v[: g.num_dst_nodes(k)] for k, v in input_.items() if k in g.dsttypes}
            return input_, first
        return input_, input_[: g.num_dst_nodes()]
    return input_, input_


def check_eq_shape(input_: Any) -> None:
    """Raise DGLError if the features of source and destination nodes differ in their row shape."""
    source, destination = expand_as_pair(input_)
    if source.shape[1:] != destination.shape[1:]:
        raise DGLError(
            f"the features of source nodes have rows of shape {tuple(source.shape[1:])}, those of "
            f"destination nodes {tuple(destination.shape[1:])}: this layer needs equal ones"
        )


def recursive_apply(data: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function to each tensor, or other leaf, of nested dicts, lists and tuples."""
    if isinstance(data, Mapping):
        return {key: recursive_apply(value, fn, *args, **kwargs) for key, value in data.items()}
    if isinstance(data, list | tuple) and not isinstance(data, Tensor):
        values = [recursive_apply(value, fn, *args, **kwargs) for value in data]
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*values)
        return type(data)(values)
    return fn(data, *args, **kwargs)
