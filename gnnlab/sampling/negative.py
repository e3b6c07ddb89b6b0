"""Negative sampling: pairs of nodes without an edge.

Link prediction learns from pairs that are joined and from pairs that are not. There are far too
many of the second kind to use them all, so some are drawn.
"""

from __future__ import annotations

from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.queries import has_edges
from gnnlab.graph.relation import Relation
from gnnlab.random import next_key

__all__ = ["global_uniform_negative_sampling", "non_edges"]

_ATTEMPTS = 64


def global_uniform_negative_sampling(
    g: Graph,
    num_samples: int,
    exclude_self_loops: bool = True,
    replace: bool = False,
    etype: Any = None,
    redundancy: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw pairs of nodes without an edge, each such pair equally likely.

    Parameters
    ----------
    g : Graph
    num_samples : int
    exclude_self_loops : bool
        Never pair a node with itself.
    replace : bool
        Whether a pair may come more than once.
    etype : str or tuple, optional
        Needed where there are several edge types.
    redundancy : float, optional
        Accepted; a pair that is an edge is drawn again, so no spare ones are needed.

    Returns
    -------
    src, dst : torch.Tensor
        Shape (K,), the graph's ID dtype. K is ``num_samples``, or less where the graph is so dense
        or so small that not as many pairs were found.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> src, dst = dgl.sampling.global_uniform_negative_sampling(g, 3)
    >>> sorted(zip(src.tolist(), dst.tolist()))  # there are no others
    [(0, 2), (1, 0), (2, 1)]
    """
    if num_samples < 0:
        raise InvalidInput(f"num_samples must not be negative; found {num_samples}")
    source, _, destination = name = g.to_canonical_etype(etype)
    src, dst = non_edges(
        g.relation(name),
        torch.arange(num_samples, device=g.device),
        1,
        next_key(),
        exclude_self_loops and source == destination,
        replace,
    )
    return g._ids(src), g._ids(dst)


def non_edges(
    relation: Relation,
    names: torch.Tensor,
    per_name: int,
    key: int,
    exclude_self_loops: bool,
    replace: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw pairs that are no edge: draw all, and those that are unfit again, up to 64 times.

    Parameters
    ----------
    relation : Relation
    names : torch.Tensor
        Shape (S,), int64: what the random streams are named by.
    per_name : int
        Pairs for each name.
    key : int
        64-bit name of the call.
    exclude_self_loops, replace : bool
        See :func:`global_uniform_negative_sampling`.

    Returns
    -------
    src, dst : torch.Tensor
        Shape (at most S · per_name,), int64, name by name.
    """
    rng = kernels.rng_torch
    streams = rng.streams(key, names).repeat_interleave(per_name)
    counter = torch.arange(per_name, device=names.device).repeat(len(names)) * (2 * _ATTEMPTS)
    src, dst = torch.empty_like(streams), torch.empty_like(streams)
    waiting = torch.arange(len(streams), device=names.device)
    taken = streams[:0]
    for _ in range(_ATTEMPTS if relation.num_src * relation.num_dst else 0):
        u = rng.below(rng.draw(streams, counter), relation.num_src)
        v = rng.below(rng.draw(streams, counter + 1), relation.num_dst)
        fit = ~has_edges(relation, u, v)
        if exclude_self_loops:
            fit &= u != v
        if not replace:
            pairs = u * relation.num_dst + v
            fit &= _is_first(pairs) & ~torch.isin(pairs, taken)
            taken = torch.cat([taken, pairs[fit]])
        src[waiting[fit]], dst[waiting[fit]] = u[fit], v[fit]
        waiting, streams, counter = waiting[~fit], streams[~fit], counter[~fit] + 2
        if not len(waiting):
            break
    found = torch.ones(len(src), dtype=torch.bool, device=src.device)
    found[waiting] = False
    return src[found], dst[found]


def _is_first(values: torch.Tensor) -> torch.Tensor:
    """Whether no equal value stands before this one."""
    order = torch.argsort(values, stable=True)
    ascending = values[order]
    first = torch.ones(len(values), dtype=torch.bool, device=values.device)
    first[order[1:]] = ascending[1:] != ascending[:-1]
    return first
