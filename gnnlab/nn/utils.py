"""Shared by the layers: source and destination rows, aggregation over in-edges, checks.

A layer computes one new row per *destination* node from the rows of its *source* nodes. On a
whole graph both are all nodes. On a block the destinations are the first of the sources, so one
tensor serves for both. If the two sides have different types, features are a pair of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gnnlab import ops
from gnnlab.errors import InvalidInput
from gnnlab.ops.checks import several_types, warn_unless_finite

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph
    from gnnlab.graph.relation import Relation


Features = Tensor | tuple[Tensor, Tensor]
Activation = Callable[[Tensor], Tensor]
_AUTOCAST = (torch.float32, torch.float16, torch.bfloat16)


def expand_as_pair(
    feat: Features,
    graph: Graph,
    sizes: tuple[int, int] | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """Split features into those of the source nodes and those of the destination nodes.

    Parameters
    ----------
    feat : Tensor of shape (num_src, …), or a pair of shapes (num_src, …) and (num_dst, …)
        On a block, one tensor serves for both: its first ``num_dst`` rows are the destinations.
    sizes : (int, int), optional
        Sizes that the source and destination rows must have.
    dtype : torch.dtype, optional
        dtype that the rows must have, except under autocast: that of the layer's weights.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn.utils import expand_as_pair
    >>> block = dgl.to_block(dgl.graph(([1, 2], [0, 0])), [0])
    >>> src, dst = expand_as_pair(torch.tensor([[10.0], [11.0], [12.0]]), block)
    >>> dst
    tensor([[10.]])
    """
    relation = check_arguments(graph, feat)
    if isinstance(feat, tuple):
        src, dst = feat
        check_rows(src, graph, "source")
        check_rows(dst, graph, "destination")
    else:
        src = feat
        check_rows(src, graph, "source")
        if graph.is_block:
            dst = feat[: relation.num_dst]
        else:
            dst = feat
            if relation.num_src != relation.num_dst:
                check_rows(dst, graph, "destination")
    if sizes is not None:
        check_size(src, sizes[0], "source")
        check_size(dst, sizes[1], "destination")
    if dtype is not None:
        check_dtype(src, dtype, "source")
        check_dtype(dst, dtype, "destination")
    return src, dst


def check_arguments(graph: Graph, feat: Features) -> Relation:
    """Return the relation of a layer's graph; raise InvalidInput unless given graph and tensors."""
    try:
        relation: Relation = graph.relation()
    except (AttributeError, TypeError):
        raise InvalidInput(_no_graph(graph, feat)) from None
    except InvalidInput:
        text = several_types(graph, "a layer")
        raise InvalidInput(f"{text}. HeteroGraphConv runs a layer for each") from None
    if not isinstance(feat, tuple):
        _check_tensor(feat)
        check_values(feat, graph, "features")
        return relation
    if len(feat) != 2:
        raise InvalidInput(
            "features are a tensor, or a pair (source rows, destination rows); found a tuple "
            f"of {len(feat)}"
        )
    ((src_type, _, dst_type),) = graph.canonical_etypes
    for rows, ntype in zip(feat, (src_type, dst_type), strict=True):
        _check_tensor(rows)
        check_values(rows, graph, "features" if ntype == "_N" else f"features of {ntype!r} nodes")
    return relation


def check_values(rows: Tensor, graph: Graph, what: str) -> None:
    """Warn of NaN or infinity in rows that no layer has computed."""
    if rows.requires_grad or not torch.is_grad_enabled():
        return
    if not graph.is_block:
        warn_unless_finite(rows, f"the {what}")
    elif rows.device.type == "cpu":  # a GPU would wait for a look at each mini-batch
        warn_unless_finite(rows, f"the {what} of a mini-batch", range(rows.shape[0]))


def _check_tensor(rows: object) -> None:
    if isinstance(rows, Tensor):
        if not rows.dim():
            raise InvalidInput(
                f"features are a tensor with a row per node; found a single number, {rows.item()}"
            )
        return
    found = type(rows).__name__
    how = "convert an array by torch.as_tensor(x, dtype=torch.float32)"
    if isinstance(rows, dict):
        how = "of a dict, take the rows of the type, feat[ntype]; HeteroGraphConv takes a dict"
    elif found == "DistTensor":
        how = "read the rows of the mini-batch, x[input_nodes]"
    raise InvalidInput(f"features are a tensor with a row per node; found {found}: {how}")


def _no_graph(graph: object, feat: object) -> str:
    found = type(graph).__name__
    if found == "DistGraph":
        return (
            "a layer computes on a graph or a block; the edges of a DistGraph are on many "
            "machines. Give the layer the blocks of a mini-batch from DistNodeDataLoader"
        )
    if isinstance(graph, type):
        return f"the first argument of a layer is a graph; found the class {graph.__name__}"
    if isinstance(graph, list | tuple):
        return (
            f"found a {found} of {len(graph)} graphs or blocks; each layer takes one block: "
            "h = layer(block, h) for layer, block in zip(layers, blocks)"
        )
    text = f"the first argument of a layer is the graph, the second the features; found {found}"
    return f"{text} and {type(feat).__name__}"


def check_rows(rows: Tensor, graph: Graph, side: str) -> None:
    """Raise InvalidInput unless there is one row for each node of a side."""
    relation = graph.relation()
    expected = relation.num_src if side == "source" else relation.num_dst
    if len(rows) != expected:
        raise InvalidInput(_wrong_rows(rows, graph, expected, side))


def _wrong_rows(rows: Tensor, graph: Graph, expected: int, side: str) -> str:
    kind = "block" if graph.is_block else "graph"
    text = f"the features have {len(rows)} rows, but the {kind} has {expected} {side} nodes: "
    if not graph.is_block:
        relation = graph.relation()
        pair = ", or a pair (src_feat, dst_feat)" if relation.num_src != relation.num_dst else ""
        return f"{text}give one row per node{pair}"
    if len(rows) == graph.relation().num_dst:
        return text + (
            "this is the number of its destination nodes, so they may be the output of a layer on "
            "this block, which is the input for the next block: a model of L layers needs L "
            "blocks, one fanout each. The first layer takes the rows of blocks[0].srcdata"
        )
    return text + (
        "give one row per node of its srcdata, block.srcdata[name], or those of a matrix for all "
        "nodes of the graph, x[input_nodes]; or a pair (src_feat, dst_feat)"
    )


def check_dtype(rows: Tensor, expected: torch.dtype, side: str) -> None:
    """Raise InvalidInput unless rows have the dtype of the layer's weights.

    Under autocast, torch converts all floating-point dtypes but float64.
    """
    found = rows.dtype
    if found == expected:
        return
    if torch.is_autocast_enabled(rows.device.type) and found in _AUTOCAST:
        return
    name = {torch.float32: ".float()", torch.float64: ".double()"}.get(expected, f".to({expected})")
    raise InvalidInput(
        f"the {side} rows are {found}, but the layer's weights are {expected}: convert the "
        f"features once, before training, with feat{name}"
        + (" (numpy's arrays are float64 by default)" if found == torch.float64 else "")
    )


def check_size(rows: Tensor, expected: int, side: str) -> None:
    """Raise InvalidInput unless each row has the size that the layer was built for."""
    if rows.dim() < 2:
        raise InvalidInput(
            f"the {side} rows have no size: the features have shape {tuple(rows.shape)}, expected "
            f"(number of rows, {expected}). For one number per node write feat.unsqueeze(1)"
        )
    if rows.shape[-1] != expected:
        raise InvalidInput(
            f"the {side} rows have size {rows.shape[-1]}, but the layer was built for size "
            f"{expected}: give it rows of that size, or build it with another input size"
        )


def map_features(function: Callable[[Tensor], Tensor], feat: Features) -> Features:
    """Apply a function, such as dropout, to a feature tensor or to both tensors of a pair."""
    if isinstance(feat, tuple):
        return function(feat[0]), function(feat[1])
    return function(feat)


def keeps(graph: Graph) -> bool:
    """Whether :func:`from_sources` computes once for several blocks."""
    return getattr(graph, "kept_results", None) is not None and not torch.is_grad_enabled()


def from_sources(
    graph: Graph, rows: Tensor, weight: Tensor, compute: Callable[[], Tensor]
) -> Tensor:
    """Compute something from all source rows; once for all blocks of a pass over all nodes.

    The blocks of :func:`gnnlab.dataloading.full_neighbor_blocks` have the same sources. Without
    gradients, a result is kept until it is asked for with other rows or another weight.
    """
    if not keeps(graph):
        return compute()
    # A tensor that was made in inference mode counts no changes.
    state = [0 if each.is_inference() else each._version for each in (rows, weight)]
    kept = graph.kept_results.get(id(weight))  # type: ignore[attr-defined]
    if kept is None or kept[0] is not rows or kept[1] is not weight or kept[2] != state:
        kept = graph.kept_results[id(weight)] = rows, weight, state, compute()  # type: ignore[attr-defined]
    return kept[3]


def pair_of_sizes(size: int | tuple[int, int]) -> tuple[int, int]:
    """Return ``size`` as (source size, destination size)."""
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def check_activation(activation: Activation | None) -> Activation | None:
    """Return the activation of a layer; raise InvalidInput if it cannot be called with rows."""
    if activation is not None and (isinstance(activation, type) or not callable(activation)):
        raise InvalidInput(
            "activation is a function of rows or a module, such as torch.relu or torch.nn.ReLU(); "
            f"found {activation!r}"
        )
    return activation


def per_row(values: Tensor, rows: Tensor) -> Tensor:
    """Append dimensions of size 1 to ``values``, (N, …), until they broadcast over ``rows``."""
    return values.reshape(values.shape + (1,) * (rows.dim() - values.dim()))


def aggregate(graph: Graph, reduce: str, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    """Reduce the rows of each node's in-neighbors, multiplied by edge weights if given.

    ``reduce`` is "sum", "mean" (divided by the number of in-edges, not by the sum of the weights),
    "max" or "min". ``feat`` has shape (num_src, …) and ``edge_weight`` (E,) or (E, …), in edge-ID
    order; the result has shape (num_dst, …), 0 for nodes without in-edges.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn.utils import aggregate
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> aggregate(graph, "mean", torch.tensor([[1.0], [3.0], [5.0]]))
    tensor([[0.], [0.], [2.]])
    """
    relation = graph.relation()
    if edge_weight is None:
        return ops.spmm(relation, "copy_lhs", reduce, feat, None)
    check_edge_weight(graph, feat, edge_weight)
    return ops.spmm(relation, "mul", reduce, feat, per_row(edge_weight, feat))


def check_edge_weight(graph: Graph, feat: Tensor, edge_weight: Tensor) -> None:
    """Raise InvalidInput unless there is a weight for each edge, of a dtype for these rows."""
    num_edges = graph.relation().num_edges
    if not isinstance(edge_weight, Tensor):
        raise InvalidInput(
            f"edge_weight is a tensor with a number per edge; found {type(edge_weight).__name__}"
        )
    if edge_weight.shape[:1] != (num_edges,):
        raise InvalidInput(
            f"edge_weight has shape {tuple(edge_weight.shape)}, but the graph has {num_edges} "
            "edges: give one weight per edge, in edge-ID order"
        )
    found = edge_weight.dtype
    if found.is_complex or (found is torch.float64 and feat.dtype is not found):
        raise InvalidInput(
            f"edge_weight is {found}, but the features are {feat.dtype}: convert it once, before "
            f"training, with edge_weight.to({feat.dtype})"
        )
    if edge_weight.device.type == "cpu":
        check_values(edge_weight, graph, "edge weights")


def check_in_edges(graph: Graph, layer: torch.nn.Module) -> None:
    """Raise InvalidInput when some destination node has no in-edge, and so gets no message."""
    degrees = graph.relation().in_degrees()
    if not degrees.all():
        isolated = (degrees == 0).nonzero()
        ((src_type, _, dst_type),) = graph.canonical_etypes
        loops = "add self-loops with g = dgl.add_self_loop(g), or "
        if graph.is_block or src_type != dst_type:
            loops = ""
        raise InvalidInput(
            f"{type(layer).__name__}: {len(isolated)} of {len(degrees)} nodes "
            f"{'has' if len(isolated) == 1 else 'have'} no in-edge, the first is node "
            f"{int(isolated[0])}, so the output there would be meaningless: {loops}"
            "pass allow_zero_in_degree=True to accept zeros there"
        )


def run_lstm(lstm: torch.nn.LSTM, *inputs: Any) -> Any:
    """Call an LSTM such that it has gradients in eval mode, too.

    A GPU of NVIDIA computes them in training mode only, which is the same without dropout.
    """
    was_training = lstm.training
    lstm.train(was_training or (torch.is_grad_enabled() and not lstm.dropout))
    try:
        return lstm(*inputs)
    finally:
        lstm.train(was_training)
