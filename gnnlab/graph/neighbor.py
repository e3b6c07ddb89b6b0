"""Neighbor sampling: choose a few in-edges of each seed node, by :mod:`gnnlab.kernels.sample`.

The IDs of the chosen edges are computed when they are first read.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
DGL user guide, chapter 6.4, "Implementing Custom Graph Samplers".
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.core import GraphCore, GraphT
from gnnlab.graph.frame import Frame, LazyTensor, as_tensor
from gnnlab.graph.ids import read_edges, read_nodes
from gnnlab.graph.names import EID, EdgeType, describe
from gnnlab.graph.placement import to
from gnnlab.graph.relation import Adjacency, Relation
from gnnlab.graph.temporal import ByTime, Until, by_time, keep_last, spans, stream_names
from gnnlab.helpers.block_sampler import signed
from gnnlab.random import fold, next_key


def sample_neighbors(
    g: GraphT,
    nodes: Any,
    fanout: Any,
    edge_dir: str = "in",
    prob: Any = None,
    replace: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = True,
    exclude_edges: Any = None,
    output_device: Any = None,
) -> GraphT:
    """Sample ``fanout`` in-edges of each node and return them as a graph on all nodes.

    Parameters
    ----------
    nodes : IDs, or dict of IDs by node type
        The seeds. A seed without in-edges gets none; one that is given twice gets its edges twice.
    fanout : int or dict
        Edges per seed and edge type, or a dict by edge type; −1 or None takes all, 0 none.
    edge_dir : {"in", "out"}
    prob : str or tensor or dict, optional
        Weights of the edges, unnormalized: the name of an edge feature, or values of shape (E,),
        float or bool. An edge of weight 0 is never sampled.
    replace : bool
        Draw with replacement.
    copy_ndata, copy_edata : bool
        Whether the result has the features of ``g``. They are gathered on first use.
    exclude_edges : IDs or dict of IDs by edge type, optional
        Edges that must not be sampled.

    Returns
    -------
    Graph
        All nodes of ``g`` and the sampled edges, seed by seed; ``edata[EID]`` holds their original
        IDs. The result depends on the seed of :func:`gnnlab.seed`, the number of sampling calls
        since, and each node's ID; not on threads or the order of the seeds.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 3, 0], [4, 4, 4, 4, 1]))
    >>> frontier = dgl.sampling.sample_neighbors(g, [4, 1], 2)
    >>> frontier.in_degrees([4, 1, 0])
    tensor([2, 1, 0])
    """
    if edge_dir not in ("in", "out"):
        raise InvalidInput(f"edge_dir must be 'in' or 'out'; found {edge_dir!r}")
    inward = edge_dir == "in"
    seeds = read_nodes(g, nodes)
    fanouts, excluded = read_fanouts(g, fanout), read_excluded(g, exclude_edges, inward)
    picked = sample_layer(g, seeds, fanouts, prob, replace, excluded, inward)
    frontier = frontier_of(g, seeds, picked, inward, copy_ndata, copy_edata)
    return frontier if output_device is None else to(frontier, output_device)


def frontier_of(
    g: GraphT,
    seeds: Mapping[str, torch.Tensor],
    picked: Mapping[EdgeType, Picked],
    inward: bool,
    copy_ndata: bool,
    copy_edata: bool,
) -> GraphT:
    """Return the edges that :func:`sample_layer` picked as a graph on all nodes of ``g``."""
    empty = torch.empty(0, dtype=torch.int64, device=g.device)
    relations, edge_frames = {}, {}
    for etype, (ptr, edges, sources, _) in picked.items():
        ids = seeds.get(etype[2] if inward else etype[0], empty)
        centers = repeat(ids.to(sources.dtype), ptr, len(sources))
        coo = (sources, centers) if inward else (centers, sources)
        relations[etype] = Relation(g.num_nodes(etype[0]), g.num_nodes(etype[2]), coo)
        columns = g.edge_frames[etype].rows(edges) if copy_edata else {}
        edge_frames[etype] = Frame(len(sources), {**columns, EID: edges}, g.device, "edge")
    # Features of other machines are not copied; loaders fetch their rows by ID.
    node_frames = {
        name: frame.copy()
        for name, frame in (g.node_frames() if copy_ndata else {}).items()
        if isinstance(frame, Frame)
    }
    return g.derive(relations, node_frames=node_frames, edge_frames=edge_frames)


def repeat(ids: torch.Tensor, ptr: torch.Tensor, total: int) -> torch.Tensor:
    """Repeat each ID as often as the difference of its two offsets says."""
    if ids.device.type == "cpu":  # numpy needs half of torch's time
        return torch.from_numpy(np.repeat(ids.numpy(), np.diff(ptr.numpy())))
    return torch.repeat_interleave(ids, torch.diff(ptr), output_size=total)


class Picked(NamedTuple):
    """The edges of one type that were sampled for a layer."""

    ptr: torch.Tensor  # (S + 1,), int64; the edges of seed i are ``ptr[i]:ptr[i + 1]``
    edges: LazyTensor  # their IDs, (K,); computed on first use
    sources: torch.Tensor  # (K,), int32 or int64: the nodes at the other end
    sizes: torch.Tensor | None = None  # differences of ``ptr``, where they were computed anyway


def sample_layer(
    g: Any,
    seeds: Mapping[str, torch.Tensor],
    fanouts: Mapping[EdgeType, int],
    prob: Any = None,
    replace: bool = False,
    excluded: Any = None,
    inward: bool = True,
    until: Until | None = None,
) -> dict[EdgeType, Picked]:
    """Sample edges of every type for one layer, by type; all samplers call this function.

    ``g`` is a graph, or anything that has a method ``pick_layer`` with the other arguments, as one
    whose parts are on other machines. ``seeds`` are IDs in range by node type (not checked); types
    may be left out. ``fanouts`` and ``excluded`` are as :func:`read_fanouts` and
    :func:`read_excluded` return them, ``prob`` and ``replace`` as for :func:`sample_neighbors`.
    Out-edges are sampled unless ``inward``, and with ``until`` only in-edges that are not later.

    The randomness is that of the next key of :mod:`gnnlab.random` and the edge type's position.
    """
    if not isinstance(g, GraphCore):
        extra = () if until is None else (until,)
        return g.pick_layer(seeds, fanouts, prob, replace, excluded, inward, *extra)  # type: ignore[no-any-return]
    key, weights = next_key(), read_weights(g, prob)
    empty = torch.empty(0, dtype=torch.int64, device=g.device)
    picked = {}
    for type_id, (etype, relation) in enumerate(g.relations.items()):
        adjacency = relation.csc() if inward else relation.csr()
        ids = seeds.get(etype[2] if inward else etype[0], empty)
        left_out = (excluded or {}).get(etype)
        how = fanouts[etype], fold(key, type_id), replace
        weight = weights.get(etype) if fanouts[etype] else None
        rows = None if until is None else by_time(g, etype, until.column)
        if until is None or rows is None:
            ptr, slots, sources, *sizes = pick(adjacency, ids, *how, weight, left_out)
        else:
            if left_out is not None and rows.edges is not adjacency:
                left_out = torch.sort(rows.edges.slots_of(adjacency.eids_at(left_out))).values
            adjacency, times = rows.edges, until.times.get(etype[2], empty)
            ptr, slots, sources, *sizes = pick_until(
                *(rows, ids, times, until.last, *how, weight, left_out)
            )
        picked[etype] = Picked(ptr, LazyTensor(_edge_ids(g, adjacency, slots)), sources, *sizes)
    return picked


def _edge_ids(g: GraphCore, adjacency: Adjacency, slots: torch.Tensor) -> Any:
    def make() -> torch.Tensor:
        if adjacency.ordered:
            return g.as_ids(slots)
        at = slots.to(adjacency.indices.device)
        if at.device.type != "cpu":
            return g.as_ids(adjacency.eids[at])
        ids = kernels.gather.empty(at.shape, g.idtype)
        kernels.gather_numba.take(adjacency.eids.numpy(), at.numpy(), ids.numpy())
        return ids

    return make


def sample_layers(
    g: Any, seeds: torch.Tensor, fanouts: Sequence[int], replace: bool, device: torch.device
) -> tuple[torch.Tensor, list[tuple[int, int, Picked]]] | None:
    """Sample in-edges for all layers of a mini-batch in one go, with kernels in Triton.

    The graph is homogeneous. Seeds, shape (S,), may be on the host; fanouts are in the order of
    sampling; Triton runs on the device, see :func:`gnnlab.system.accelerators.runs_triton`.

    Returns the IDs of all nodes, in the order of their first appearance, and for each layer the
    numbers of nodes before and after it, and the edges with local IDs as sources. They are the same
    as by :func:`sample_layer` with as many keys of :mod:`gnnlab.random`, whose next keys are used.
    Returns None, and uses no key, if the kernels do not cover the case or cannot read the graph.
    """
    adjacency, triton = g.relation().csc(), kernels.sample_triton
    there = adjacency.indices.device == device or adjacency.indices.is_pinned()
    case = fanouts, len(seeds), replace
    if not (there and triton.covers(g.num_nodes(), g.num_edges(), *case) and _compiles(device)):
        return None
    keys = torch.tensor([signed(fold(next_key(), 0)) for _ in fanouts])
    idle = adjacency.workspaces.setdefault(device, [])
    try:  # a list, not a lock: one for each thread that samples at the moment
        workspace = idle.pop()
    except IndexError:
        workspace = triton.Workspace(g.num_nodes(), device)
    batch = triton.Batch(workspace, adjacency.indptr, adjacency.indices, *case, g.idtype)
    batch.launch(*(x.contiguous().to(device, non_blocking=True) for x in (seeds, keys)))
    ids, layers = batch.result()
    idle.append(workspace)
    picked = []
    for num_dst, num_src, ptr, sizes, slots, local in layers:
        edges = LazyTensor(_edge_ids(g, adjacency, slots), device)
        picked.append((num_dst, num_src, Picked(ptr, edges, local, sizes)))
    return ids, picked


@cache
def _compiles(device: torch.device) -> bool:
    triton, zeros = kernels.sample_triton, torch.zeros(2, dtype=torch.int64, device=device)
    try:
        triton.Batch(triton.Workspace(1, device), zeros, zeros[:0], [1], 1).launch(zeros, zeros)
    except Exception as error:
        warnings.warn(
            f"Triton cannot compile kernels for {device}, so that sampling takes several times as "
            f"long. It needs a C compiler, such as gcc, and Python's header files. {error}",
            stacklevel=2,
        )
        return False
    return True


def pick(
    adjacency: Adjacency,
    seeds: torch.Tensor,
    fanout: int,
    key: int,
    replace: bool = False,
    weights: torch.Tensor | None = None,
    excluded: torch.Tensor | None = None,
    names: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """Sample slots of the seeds' rows, on the CPU or a GPU; ``names`` is ignored on a GPU.

    Returns ``ptr``, ``slots`` and ``sources`` as :func:`gnnlab.kernels.sample.sample_neighbors`
    does, and on a GPU the number of slots of each seed, shape (S,).
    """
    eids = None if weights is None or adjacency.ordered else adjacency.eids
    arrays = (adjacency.indptr, adjacency.indices, seeds)
    optional = {"weights": weights, "eids": eids, "excluded": excluded}
    if adjacency.indices.device.type != "cpu":
        return kernels.sample_torch.sample_neighbors(
            *arrays, fanout, key, replace=replace, **optional
        )
    optional["names"] = names
    given = {name: value.numpy() for name, value in optional.items() if value is not None}
    ptr, slots, sources = kernels.sample.sample_neighbors(
        *(array.numpy() for array in arrays), fanout, key, replace=replace, **given
    )
    return torch.from_numpy(ptr), torch.from_numpy(slots), torch.from_numpy(sources)


def pick_until(
    rows: ByTime,
    seeds: torch.Tensor,
    until: torch.Tensor,
    last: bool,
    fanout: int,
    key: int,
    replace: bool = False,
    weights: torch.Tensor | None = None,
    excluded: torch.Tensor | None = None,
    names: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """Sample slots of the seeds' rows that are not later than ``until``; see :func:`pick`.

    Slots, those in ``excluded`` too, are those of ``rows``.
    """
    indptr, number = spans(rows, seeds, until, fanout, last, excluded)
    eids = None if rows.edges.ordered else rows.edges.eids
    found = pick(
        Adjacency(indptr, rows.edges.indices, eids),
        torch.arange(0, 2 * len(seeds), 2, device=seeds.device),
        *(number, key, replace, weights, excluded),
        stream_names(seeds if names is None else names, until),
    )
    is_longer = last and excluded is not None and fanout >= 0
    return keep_last(found[0], found[1], found[2], fanout) if is_longer else found


def read_fanouts(g: GraphCore, fanout: Any) -> dict[EdgeType, int]:
    """Read a fanout as one number per edge type; −1 stands for all, 0 for none."""
    if isinstance(fanout, Mapping):
        given = {g.to_canonical_etype(etype): value for etype, value in fanout.items()}
        missing = [etype for etype in g.canonical_etypes if etype not in given]
        if missing:
            raise InvalidInput(
                f"the fanouts by edge type lack {describe(missing)}; a fanout of 0 leaves a type "
                "out"
            )
        return {etype: check_fanout(given[etype]) for etype in g.canonical_etypes}
    return dict.fromkeys(g.canonical_etypes, check_fanout(fanout))


def check_fanout(value: Any) -> int:
    """Read one fanout; −1 stands for all."""
    if value is None:
        return -1
    if type(value) is int and value >= -1:
        return value
    try:
        number = None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != value or number < -1:
        raise InvalidInput(
            f"a fanout is a number of neighbors, 0 or more, or −1 (None) for all; found {value!r}"
        )
    return number


def read_weights(g: GraphCore, prob: Any) -> dict[EdgeType, torch.Tensor]:
    """Read edge weights: the name of a feature, a tensor, or a dict of either by edge type."""
    if prob is None:
        return {}
    if isinstance(prob, Mapping):
        given = {g.to_canonical_etype(etype): value for etype, value in prob.items()}
    else:
        given = dict.fromkeys(g.relations, prob)
    weights = {}
    for etype, value in given.items():
        frame = g.edge_frames[etype]
        if isinstance(value, str) and value not in frame and len(g.relations) > 1:
            continue  # only some edge types have weights
        weight = frame[value] if isinstance(value, str) else as_tensor(value, "edge weights")
        weight = weight.detach().to(g.device)
        weights[etype] = check_weights(weight, frame.num_rows, f"those of {etype}")
    if isinstance(prob, str) and not weights:
        raise NotFound(f"no edge type has a feature {prob!r} that could be a weight")
    return weights


def check_weights(weight: torch.Tensor, num_edges: int, what: str) -> torch.Tensor:
    """Return weights of edges as shape (E,), bool, float32 or float64."""
    weight = weight.squeeze(-1) if weight.ndim == 2 else weight
    if weight.shape != (num_edges,):
        raise InvalidInput(
            f"weights are one number per edge; {what} need shape ({num_edges},); found "
            f"{tuple(weight.shape)}"
        )
    if weight.dtype is torch.uint8:
        weight = weight.bool()
    if weight.dtype is torch.bool:
        return weight.contiguous()
    if weight.dtype not in (torch.float32, torch.float64):
        weight = weight.float()
    return weight.contiguous()


def read_excluded(g: Any, edges: Any, inward: bool = True) -> dict[EdgeType, torch.Tensor]:
    """Read edges that must not be sampled: sorted slots by edge type, for :func:`sample_layer`.

    For a graph whose parts are on other machines, return edge IDs: only owners know the slots.
    """
    given = {} if edges is None else read_edges(g, edges, distinct=True)
    ids = {etype: value for etype, value in given.items() if len(value)}
    if not isinstance(g, GraphCore):
        return ids
    return {etype: _slots(g.relations[etype], value, inward) for etype, value in ids.items()}


def _slots(relation: Relation, ids: torch.Tensor, inward: bool) -> torch.Tensor:
    adjacency = relation.csc() if inward else relation.csr()
    if ids.device.type != "cpu":
        return torch.sort(adjacency.slots_of(ids)).values
    if adjacency.ordered:
        return torch.unique(ids.long())
    ends = relation.coo()[1 if inward else 0][ids.long()]
    arrays = (adjacency.indptr, adjacency.eids, ends, ids)
    return torch.from_numpy(kernels.sample.edge_slots(*(array.numpy() for array in arrays)))
