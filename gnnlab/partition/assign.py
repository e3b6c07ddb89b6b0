"""Assignment of nodes to parts.

A good assignment cuts few edges, because a cut edge causes traffic in every epoch, and balances the
work of the parts. ``metis`` is best at both. ``ldg`` needs no other package and much less memory;
it comes close on graphs with communities. ``random``, the baseline, cuts all but 1/K of the edges.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, NotFound, whole_number
from gnnlab.graph.graph import Graph
from gnnlab.graph.homogeneous import to_homogeneous
from gnnlab.graph.names import describe
from gnnlab.graph.relation import Relation
from gnnlab.partition.metis import SLACK, default_method, metis
from gnnlab.random import generator

METHODS = ("metis", "ldg", "random")
_TOLERATED = 1.1  # load over share that METIS is allowed
_PASSES = 10
_MAX_CLASSES = 64
# Graphs with more edges than this are thinned for METIS: on 64 million edges it takes 3 GB
# less and cuts no more (docs/performance.md).
THIN_FROM, THINNED_TO = 2**25, 12


def assign(
    g: Graph,
    num_parts: int,
    part_method: str | Callable[[Graph, int], Any] | None = None,
    *,
    balance_ntypes: Any = None,
    balance_edges: bool = False,
    objtype: str = "cut",
    num_trainers_per_machine: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose a part for every node, and a trainer within its part: shapes (N,), int32.

    Trainers p · T to p · T + T − 1 share part p, for T per machine; both arrays are the same where
    T is 1. Other arguments are as for :func:`gnnlab.partition.partition_graph`.
    """
    counts = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    whole_number(num_parts, "num_parts", 1)
    whole_number(num_trainers_per_machine, "num_trainers_per_machine", 1)
    if objtype not in ("cut", "vol"):
        raise InvalidInput(f'objtype must be "cut" or "vol"; found {objtype!r}')
    method = default_method() if part_method is None else part_method
    if callable(method):
        part = check_assignment(method(g, num_parts), counts, num_parts)
    elif method not in METHODS:
        raise InvalidInput(
            f"unknown partitioning method {method!r}; there are {describe(METHODS)}, or pass a "
            "function that takes (g, num_parts) and returns the part of each node"
        )
    elif method == "random":
        part = assign_randomly(classes_of(counts, balance_ntypes), num_parts)
    else:
        classes = classes_of(counts, balance_ntypes)
        degrees = _one_relation(g).in_degrees().numpy() if balance_edges else None
        weights = weights_of(classes, num_parts, degrees)
        if method == "metis":
            shares = num_parts * num_trainers_per_machine
            if (np.count_nonzero(weights, axis=0) < 2 * shares).any():
                shares = num_parts
            part = metis(partial(_neighbors, g), weights, shares, objtype).astype(np.int32)
            _relieve(part, partial(_by_destination_and_source, g), weights, shares)
            fill_empty(part, shares)
            if shares > num_parts:
                # METIS numbers adjacent parts consecutively, so they share a machine.
                return part // np.int32(num_trainers_per_machine), part
        else:
            order = torch.randperm(len(weights), generator=generator()).numpy()
            both = _by_destination_and_source(g)
            part = assign_ldg(lambda: [(order, 0, both)], weights, num_parts)
            fill_empty(part, num_parts)
    return part, _assign_trainers(part, num_parts, num_trainers_per_machine)


def warn_of_empty(part: np.ndarray, num_parts: int) -> None:
    """Warn the caller's caller of parts without nodes, and say why."""
    empty = np.flatnonzero(np.bincount(part, minlength=num_parts) == 0)
    if len(empty):
        why = f"there are only {len(part)} nodes"
        if len(part) >= num_parts:
            why = f"the assignment gives them none of the {len(part)} nodes"
        warnings.warn(
            f"no nodes are in {len(empty)} of {num_parts} parts, first in part {empty[0]}: {why}. "
            "The machines of these parts own nothing; fewer parts need fewer machines",
            stacklevel=3,
        )


def check_assignment(found: Any, counts: Mapping[str, int], num_parts: int) -> np.ndarray:
    """Validate a user's assignment; return it as shape (N,), int32."""
    if isinstance(found, Mapping):
        _check_types(found, counts, "the assignment")
        missing = [ntype for ntype, count in counts.items() if count and ntype not in found]
        if missing:
            raise InvalidInput(f"the assignment lacks the node types {describe(missing)}")
        each = [_one_per_node(found.get(t, ()), n, f"parts of {t!r}") for t, n in counts.items()]
        found = np.concatenate(each)
    part = _one_per_node(found, sum(counts.values()), "parts")
    wrong = np.flatnonzero((part < 0) | (part >= num_parts))
    if len(wrong):
        raise InvalidInput(
            f"node {wrong[0]} is assigned to part {part[wrong[0]]}; with num_parts={num_parts} "
            f"parts are 0 to {num_parts - 1}"
        )
    return part.astype(np.int32)


def classes_of(counts: Mapping[str, int], balance_ntypes: Any = None) -> np.ndarray:
    """Return the class of each node, for balancing: shape (N,), int64, from 0."""
    if balance_ntypes is None or isinstance(balance_ntypes, Mapping):
        given = balance_ntypes or {}
        _check_types(given, counts, "balance_ntypes")
        kinds, first = [np.zeros(0, np.int64)], 0
        for ntype, count in counts.items():
            values = given.get(ntype, np.zeros(count, np.int64))
            values = _one_per_node(values, count, f"values of balance_ntypes[{ntype!r}]")
            code = np.unique(values, return_inverse=True)[1] + first
            kinds, first = [*kinds, code], int(code.max(initial=first - 1)) + 1
        balance_ntypes = np.concatenate(kinds)
    values = _one_per_node(balance_ntypes, sum(counts.values()), "values of balance_ntypes")
    known, classes = np.unique(values, return_inverse=True)
    if len(known) > _MAX_CLASSES:
        raise InvalidInput(
            f"balance_ntypes has {len(known)} distinct values; at most {_MAX_CLASSES} can be "
            "balanced. It takes a class for each node, such as the train mask; by default the node "
            "types. With 0 for each node, only the number of nodes is balanced"
        )
    return classes.astype(np.int64)


def _check_types(given: Mapping[str, Any], counts: Mapping[str, int], what: str) -> None:
    unknown = [name for name in given if name not in counts]
    if unknown:
        raise NotFound(
            f"{what} names node types {describe(unknown)}; the graph has {describe(counts)}"
        )


def _one_per_node(values: Any, count: int, what: str) -> np.ndarray:
    """Check that there is one integer a node; return them as int64."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.shape == (0,) and count == 0:
        return np.zeros(0, np.int64)
    if array.shape != (count,) or array.dtype.kind not in "biu":
        raise InvalidInput(
            f"found {what} of shape {tuple(array.shape)} and dtype {array.dtype}; expected one "
            f"integer a node: shape ({count},)"
        )
    return array.astype(np.int64)


def weights_of(
    classes: np.ndarray, num_parts: int, in_degrees: np.ndarray | None = None
) -> np.ndarray:
    """Return what each node adds to each load: 1 to its class, its in-edges; (N, C), int64.

    A class of fewer nodes than parts cannot be balanced: its nodes count to the largest class. The
    same holds for in-edges if fewer nodes have any; these are left out.
    """
    sizes = np.bincount(classes, minlength=1)
    kept = sizes >= num_parts
    kept[sizes.argmax()] = True
    column = np.where(kept, np.cumsum(kept) - 1, np.sum(kept[: sizes.argmax()]))
    balance_edges = in_degrees is not None and np.count_nonzero(in_degrees) >= num_parts
    weights = np.zeros((len(classes), kept.sum() + balance_edges), np.int64)
    weights[np.arange(len(classes)), column[classes]] = 1
    if balance_edges:
        weights[:, -1] = in_degrees
    return weights


def assign_randomly(classes: np.ndarray, num_parts: int) -> np.ndarray:
    """Assign nodes at random; each part gets its share of each class, give or take one."""
    shuffled = torch.randperm(len(classes), generator=generator()).numpy()
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    part = np.empty(len(classes), np.int32)
    part[order] = np.arange(len(classes)) % num_parts
    return part


def assign_ldg(
    blocks: Callable[[], Iterable[tuple[Any, ...]]], weights: np.ndarray, num_parts: int
) -> np.ndarray:
    """Run LDG over a stream of nodes until hardly any of them changes its part.

    ``blocks`` starts the stream, of ``nodes, first, neighbors`` as ``kernels.ldg.place`` takes
    them; ``weights``, (N, C), are those of :func:`weights_of`. The parts have shape (N,), int32.
    """
    capacity = _capacity(weights, num_parts)
    part = np.full(len(weights), -1, np.int32)
    load = np.zeros((num_parts, weights.shape[1]), np.int64)
    for _ in range(_PASSES):
        moved = sum(kernels.ldg.place(*block, weights, capacity, part, load) for block in blocks())
        if moved <= len(part) // 1000:
            break
    return part


def _capacity(weights: np.ndarray, num_parts: int) -> np.ndarray:
    total = weights.sum(0)
    return np.maximum(SLACK * total / num_parts, np.ceil(total / num_parts))


def _relieve(
    part: np.ndarray, neighbors: Callable[[], Any], weights: np.ndarray, num_parts: int
) -> None:
    """Move nodes out of parts with far more than their share, in place.

    METIS makes such parts where parts have a few nodes each.
    """
    share = weights.sum(0) / num_parts
    load = np.stack([np.bincount(part, each, num_parts) for each in weights.T], 1).astype(np.int64)
    least = share + weights.max(0, initial=0) * (1 - 1 / num_parts)  # greedy assignment keeps it
    most = np.maximum(_TOLERATED * share, least)
    if (crowded := (load > most).any(1)).any():
        nodes, capacity = np.flatnonzero(crowded[part]), _capacity(weights, num_parts)
        kernels.ldg.place(nodes, 0, neighbors(), weights, capacity, part, load)


def fill_empty(part: np.ndarray, num_parts: int) -> None:
    """Give each part without nodes one from the largest part at that time, in place."""
    empty = np.flatnonzero(np.bincount(part, minlength=num_parts) == 0)
    if not len(empty):
        return
    place = _place_in_part(part, num_parts)
    last = np.argsort(-place, kind="stable")[: len(empty)]
    last = last[place[last] > 0]
    part[last] = empty[: len(last)]


def _one_relation(g: Graph) -> Relation:
    """All edges, under homogeneous IDs, on the CPU."""
    if len(g.ntypes) > 1 or len(g.canonical_etypes) != 1:
        g = to_homogeneous(g, store_type=False)
    return g.relation().map(torch.Tensor.cpu)  # a copy: formats made here are freed with it


def _by_destination_and_source(g: Graph) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    relation = _one_relation(g)
    return tuple(
        (side.indptr.numpy(), side.indices.numpy()) for side in (relation.csc(), relation.csr())
    )


def _neighbors(g: Graph, dtype: type[np.signedinteger]) -> tuple[np.ndarray, np.ndarray]:
    """List the neighbors for METIS, which takes over 100 bytes for each; thin large graphs."""
    into, out = _by_destination_and_source(g)
    most = THINNED_TO if len(into[1]) > THIN_FROM else np.inf
    return kernels.ldg.undirected(into, out, dtype, most)


def _assign_trainers(part: np.ndarray, num_parts: int, trainers: int) -> np.ndarray:
    """Assign the nodes of each part to its trainers round-robin."""
    if trainers == 1:
        return part
    place = _place_in_part(part, num_parts)
    return (part.astype(np.int64) * trainers + place % trainers).astype(np.int32)


def _place_in_part(part: np.ndarray, num_parts: int) -> np.ndarray:
    """Count the nodes of its part before each node; (N,), int64."""
    indptr, order = kernels.csc.group_by(part, None, num_parts)
    place = np.empty(len(part), np.int64)
    place[order] = np.arange(len(part)) - np.repeat(indptr[:-1], np.diff(indptr))
    return place
