"""Negative sampling: pairs of nodes without an edge.

Link prediction learns from pairs with an edge and from pairs without one. There are far too many of
the second kind to use them all, so some are sampled.
"""

from __future__ import annotations

from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.queries import has_edges
from gnnlab.graph.relation import Relation
from gnnlab.random import next_key

_ATTEMPTS = 64


def global_uniform_negative_sampling(
    g: Graph,
    num_samples: int,
    exclude_self_loops: bool = True,
    replace: bool = False,
    etype: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample pairs of nodes without an edge, uniformly.

    Parameters
    ----------
    exclude_self_loops : bool
        Never pair a node with itself.
    replace : bool
        Whether a pair may be sampled more than once.
    etype : str or tuple, optional
        Needed where there are several edge types.

    Returns
    -------
    src, dst : torch.Tensor
        Shape (K,), the graph's ID dtype. K is ``num_samples``, or less in a small or dense graph.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> src, dst = dgl.sampling.global_uniform_negative_sampling(g, 3)
    >>> sorted(zip(src.tolist(), dst.tolist()))  # there are no others
    [(0, 2), (1, 0), (2, 1)]
    """
    num_samples = whole_number(num_samples, "num_samples")
    source, _, destination = name = g.to_canonical_etype(etype)
    names = torch.arange(num_samples, device=g.device)
    no_loops = exclude_self_loops and source == destination
    src, dst = non_edges(g.relation(name), names, 1, next_key(), no_loops, replace)
    return g.as_ids(src), g.as_ids(dst)


def non_edges(
    relation: Relation,
    names: torch.Tensor,
    per_name: int,
    key: int,
    exclude_self_loops: bool,
    replace: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample pairs without an edge by rejection: rejected pairs are drawn again, up to 64 times.

    ``names``, shape (S,), int64, has an ID for each random stream, and ``key`` is the 64-bit key of
    the call. ``src`` and ``dst``, at most S · ``per_name`` each, int64, are grouped by stream.
    """
    rng = kernels.rng_torch
    streams = rng.streams(key, names).repeat_interleave(per_name)
    counter = torch.arange(per_name, device=names.device).repeat(len(names)) * (2 * _ATTEMPTS)
    src, dst = torch.empty_like(streams), torch.empty_like(streams)
    pending = torch.arange(len(streams), device=names.device)
    taken = streams[:0]
    for _ in range(_ATTEMPTS if relation.num_src * relation.num_dst else 0):
        u = rng.below(rng.draw(streams, counter), relation.num_src)
        v = rng.below(rng.draw(streams, counter + 1), relation.num_dst)
        accepted = ~has_edges(relation, u, v)
        if exclude_self_loops:
            accepted &= u != v
        if not replace:
            pairs = u * relation.num_dst + v
            accepted &= _is_first(pairs) & ~torch.isin(pairs, taken)
            taken = torch.cat([taken, pairs[accepted]])
        src[pending[accepted]], dst[pending[accepted]] = u[accepted], v[accepted]
        pending, streams, counter = pending[~accepted], streams[~accepted], counter[~accepted] + 2
        if not len(pending):
            break
    found = torch.ones(len(src), dtype=torch.bool, device=src.device)
    found[pending] = False
    return src[found], dst[found]


def _is_first(values: torch.Tensor) -> torch.Tensor:
    """Return whether each value is the first of its kind."""
    order = torch.argsort(values, stable=True)
    ascending = values[order]
    first = torch.ones(len(values), dtype=torch.bool, device=values.device)
    first[order[1:]] = ascending[1:] != ascending[:-1]
    return first
