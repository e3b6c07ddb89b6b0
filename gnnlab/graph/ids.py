"""Parsing of node and edge IDs: numbers, lists, arrays, tensors, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.relation import check_ids

_DTYPES = (torch.int64, torch.int32)


def read_ids(
    value: Any,
    bound: int,
    what: str,
    device: torch.device | None = None,
    check: bool = True,
    distinct: bool = False,
) -> torch.Tensor:
    """Convert IDs of any accepted form to a tensor, shape (K,), int64 or int32.

    ``value`` are integer IDs, or a boolean mask with one entry per node or edge, of which there are
    ``bound``; ``what`` they are, "node" or "edge", is for messages. Unless ``check`` is False,
    OutOfRange is raised for IDs that do not exist. If IDs must be ``distinct``, duplicates are not
    searched for, but integers that must be a mask raise InvalidInput; those of another dtype than
    int64 and int32 also if IDs may repeat.
    """
    ids = as_integers(value, f"{what} IDs", masks=True)
    if device is not None and device.type == "cpu":
        ids = ids.cpu()  # checked below; each check of IDs on a GPU would wait for it
    if ids.dtype is torch.bool:
        if ids.shape != (bound,):
            raise InvalidInput(
                f"a mask needs one entry per {what}, {bound}; found shape {tuple(ids.shape)}"
            )
        ids = ids.nonzero().flatten()
        check = False
    if ids.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=device)
    other = ids.dtype not in _DTYPES and ids.ndim > 0  # a mask of C or numpy, but hardly IDs
    ids = ids if ids.dtype in _DTYPES else ids.long()
    ids = ids.reshape(-1) if ids.ndim == 0 else ids
    if ids.ndim != 1:
        raise InvalidInput(f"{what} IDs must be one-dimensional; found shape {tuple(ids.shape)}")
    if (distinct or other) and len(ids) == bound:
        refuse_mask(ids, what, least=1 if other else 3)
    if check:  # before a copy to a GPU, which would have to be read there
        check_ids(ids, bound, what)
    if device is not None and ids.device != device:
        ids = ids.to(device, non_blocking=device.type != "cpu")
    return ids.contiguous()


def as_integers(value: Any, what: str, masks: bool = False) -> torch.Tensor:
    """Return integers, an empty list or, with ``masks``, a boolean mask as a tensor."""
    found = as_tensor(value, what, integers=True)
    is_real = found.is_floating_point()
    if found.numel() == 0 and is_real:
        return found.long()  # an empty list has no dtype of its own
    convert = "" if isinstance(value, torch.Tensor) else "torch.as_tensor(ids)"
    how = f"Convert them with {convert}.long()"
    if is_real or found.is_complex():
        if not bool(found.isfinite().all()):
            how = "Some are NaN or infinite: leave those out, x[x.isfinite()], or replace them"
    elif found.dtype is not torch.bool or masks:
        return found
    raise InvalidInput(f"{what} must be integers; found {found.dtype}. {how}")


def refuse_mask(ids: torch.Tensor, what: str, least: int = 3) -> None:
    """Raise if at least so many integers look like a mask: all are 0 or 1."""
    if len(ids) >= least and bool(((ids == 0) | (ids == 1)).all()):
        raise InvalidInput(
            f"expected {what} IDs; found {len(ids)} integers, one for each {what}, that are all 0 "
            "or 1, which looks like a mask. The IDs of a mask are mask.nonzero().squeeze(1); masks "
            "of dtype bool are accepted, too: mask.bool()"
        )


def is_scalar(value: Any) -> bool:
    """Whether IDs were given as a single number."""
    return isinstance(value, int | np.integer) or (
        isinstance(value, torch.Tensor | np.ndarray) and value.ndim == 0
    )


def node_dict(graph: Any, nodes: Any) -> dict[str, Any]:
    """Return nodes as {type: IDs}; bare IDs belong to the graph's only type."""
    if isinstance(nodes, dict):
        return {graph.resolve_ntype(ntype): ids for ntype, ids in nodes.items()}
    return {graph.resolve_ntype(None): nodes}


def edge_dict(graph: Any, edges: Any) -> dict[Any, Any]:
    """Return edges as {canonical type: IDs}; bare IDs belong to the graph's only type."""
    if isinstance(edges, dict):
        return {graph.to_canonical_etype(etype): ids for etype, ids in edges.items()}
    return {graph.to_canonical_etype(None): edges}


def read_nodes(graph: Any, nodes: Any) -> dict[str, torch.Tensor]:
    """Return distinct nodes as {type: tensor of IDs}; see :func:`read_ids`."""
    return {
        ntype: read_ids(ids, graph.num_nodes(ntype), "node", graph.device, distinct=True)
        for ntype, ids in node_dict(graph, nodes).items()
    }


def read_edges(graph: Any, edges: Any, distinct: bool = False) -> dict[Any, torch.Tensor]:
    """Return edges as {canonical type: tensor of IDs}; see :func:`read_ids`."""
    return {
        etype: read_ids(ids, graph.num_edges(etype), "edge", graph.device, distinct=distinct)
        for etype, ids in edge_dict(graph, edges).items()
    }


def pair_up(src: torch.Tensor, dst: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Repeat one source for all destinations, or one destination for all sources."""
    if len(src) != len(dst) and 1 not in (len(src), len(dst)):
        raise InvalidInput(
            f"u and v must pair up; found {len(src)} sources and {len(dst)} destinations"
        )
    return torch.broadcast_tensors(src, dst)
