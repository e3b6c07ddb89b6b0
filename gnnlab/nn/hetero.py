"""Layers on typed graphs: one module per relation, aggregated by destination node type.

A node type may be the destination of several relations ("plays", "sells" → game). Each relation's
module runs on the edges of that relation; results for the same node type are aggregated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.names import describe
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


EdgeType = str | tuple[str, str, str]
TypedRows = Mapping[str, Tensor]


def _aggregate(outputs: list[Tensor], ntype: str, how: str) -> Tensor:
    if how == "stack":
        return torch.stack(outputs, dim=1)
    binary = {"max": torch.maximum, "min": torch.minimum}.get(how, torch.add)
    out: Tensor = functools.reduce(binary, outputs)
    return out / len(outputs) if how == "mean" else out


AGGREGATES: dict[str, Callable[[list[Tensor], str], Tensor]] = {
    how: functools.partial(_aggregate, how=how) for how in ("sum", "max", "min", "mean", "stack")
}


class HeteroGraphConv(nn.Module):
    """Run one module per relation and aggregate their results by destination node type.

    Parameters
    ----------
    mods : dict of str or (str, str, str) to Module
        The module of each relation, by its short or its canonical name. A module is called as
        ``module(relation_graph, (src_rows, dst_rows), …)``. For modules that
        have it, ``set_allow_zero_in_degree(True)`` is called: in typed graphs, nodes without
        in-edges of some type are common.
    aggregate : {"sum", "max", "min", "mean", "stack"} or callable, default "sum"
        How the results for one node type are combined. ``"stack"`` gives shape (N, relations, …),
        with relations in the order of ``g.canonical_etypes``. A callable gets the
        list of tensors and the node type.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import GraphConv, HeteroGraphConv
    >>> graph = dgl.heterograph({
    ...     ("user", "plays", "game"): ([0, 1], [0, 0]),
    ...     ("shop", "sells", "game"): ([0], [1]),
    ... })
    >>> layer = HeteroGraphConv({"plays": GraphConv(5, 3), "sells": GraphConv(4, 3)})
    >>> rows = {"user": torch.ones(2, 5), "shop": torch.ones(1, 4), "game": torch.ones(2, 6)}
    >>> {ntype: tuple(out.shape) for ntype, out in layer(graph, rows).items()}
    {'game': (2, 3)}

    References
    ----------
    DGL User Guide, 6.2: Training GNN for node classification with neighborhood sampling.
    """

    def __init__(
        self,
        mods: Mapping[EdgeType, nn.Module],
        aggregate: str | Callable[[list[Tensor], str], Any] = "sum",
    ) -> None:
        super().__init__()
        if not isinstance(mods, Mapping):
            raise InvalidInput(
                "HeteroGraphConv takes a dict of layers by edge type, {'plays': layer}; found "
                f"{type(mods).__name__}"
            )
        if isinstance(aggregate, str):
            check_choice(aggregate, AGGREGATES, "aggregate", NotFound)
            self.agg_fn: Callable[[list[Tensor], str], Any] = AGGREGATES[aggregate]
        else:
            self.agg_fn = aggregate
        self.relations = [*mods, *(etype[1] for etype in mods if isinstance(etype, tuple))]
        self.mods = nn.ModuleDict({str(etype): module for etype, module in mods.items()})
        for module in self.mods.values():
            allow = getattr(module, "set_allow_zero_in_degree", None)
            if callable(allow):
                allow(True)

    def forward(
        self,
        g: Graph,
        inputs: TypedRows | tuple[TypedRows, TypedRows],
        mod_args: Mapping[EdgeType, Sequence[Any]] | None = None,
        mod_kwargs: Mapping[EdgeType, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Compute the rows of each destination node type.

        Parameters
        ----------
        g : Graph
            A typed graph or block.
        inputs : dict of str to Tensor, or a pair of them (source rows, destination rows)
            Rows by node type. On a block, the destinations are the first rows of each tensor.
            A relation whose source type is absent is skipped, and, on a block or with a pair, one
            whose destination type is absent.
        mod_args, mod_kwargs : dict of relation to tuple or dict, optional
            Further positional and keyword arguments of each relation's module. Relations that the
            graph lacks, such as those that a mini-batch does not reach, have no effect.

        Returns
        -------
        dict of str to Tensor
            Rows by destination node type; types without a result are absent.
        """
        sides = inputs if isinstance(inputs, tuple) else (inputs,)
        if not all(isinstance(rows, Mapping) for rows in sides):
            raise InvalidInput(
                "HeteroGraphConv takes the rows of each node type, {'user': x}, or a pair of such "
                f"dicts; found {type(inputs).__name__}"
            )
        if isinstance(inputs, tuple):
            if len(inputs) != 2:
                raise InvalidInput(
                    "inputs is a dict of rows by node type, or a pair (source rows, destination "
                    f"rows) of dicts; found a tuple of {len(inputs)}"
                )
            src_rows, dst_rows = inputs
        else:
            src_rows = dst_rows = inputs
            if g.is_block:
                dst_rows = {
                    ntype: rows[: g.num_dst_nodes(ntype)]
                    for ntype, rows in inputs.items()
                    if ntype in g.dsttypes
                }
        self._check_known(mod_args, "mod_args", g)
        self._check_known(mod_kwargs, "mod_kwargs", g)
        results: dict[str, list[Tensor]] = {ntype: [] for ntype in g.dsttypes}
        for etype in g.canonical_etypes:
            src_type, _, dst_type = etype
            if src_type not in src_rows:
                continue
            if dst_type not in dst_rows:
                if g.is_block or isinstance(inputs, tuple):
                    continue
                raise NotFound(
                    f"relation {etype} needs rows of its destination type {dst_type!r}, but the "
                    f"inputs have {sorted(dst_rows)}: add them, or pass a pair (src, dst) of dicts"
                )
            args = _of_relation(mod_args, etype) or ()
            kwargs = _of_relation(mod_kwargs, etype) or {}
            pair = (src_rows[src_type], dst_rows[dst_type])
            results[dst_type].append(self._module(etype)(g[etype], pair, *args, **kwargs))
        return {ntype: self.agg_fn(rows, ntype) for ntype, rows in results.items() if rows}

    def _check_known(self, values: Mapping[EdgeType, Any] | None, name: str, g: Graph) -> None:
        """Raise NotFound if there are arguments for a relation of neither layer nor graph."""
        known = dict.fromkeys((*self.relations, *g.canonical_etypes, *g.etypes) if values else ())
        for etype in values or ():
            if etype not in known and not (isinstance(etype, tuple) and etype[1] in self.mods):
                raise NotFound(
                    f"{name} has arguments for {etype!r}; the relations of the layer and the "
                    f"graph are {describe(known)}"
                )

    def _module(self, etype: tuple[str, str, str]) -> nn.Module:
        for name in (str(etype), etype[1]):
            if name in self.mods:
                return self.mods[name]
        raise NotFound(
            f"no module for relation {etype}, only for {list(self.mods)}: add one, or leave the "
            "relation out of the graph"
        )


def _of_relation(values: Mapping[EdgeType, Any] | None, etype: tuple[str, str, str]) -> Any:
    """Look a relation up by its canonical or its short name; None when absent."""
    if values is None:
        return None
    return values.get(etype, values.get(etype[1]))
