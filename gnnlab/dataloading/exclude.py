"""Exclude the edges to be predicted from the sampled blocks.

A model that computes node representations from the edge that it has to predict learns to recognize
this edge. The same holds for its reverse edge, if the graph has both. So the blocks leave them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers, edge_dict
from gnnlab.graph.names import EdgeType, describe

_MODES = ("self", "reverse_id", "reverse_types")


class Exclusion:
    """Find the edges that the blocks of a mini-batch of edges leave out.

    The arguments are those of :func:`gnnlab.dataloading.as_edge_prediction_sampler`.
    """

    def __init__(self, mode: Any, reverse_eids: Any = None, reverse_etypes: Any = None) -> None:
        if not (mode is None or callable(mode) or mode in _MODES):
            raise InvalidInput(
                f"exclude must be None, {describe(_MODES)} or a callable; found {mode!r}"
            )
        if mode == "reverse_id" and reverse_eids is None:
            raise InvalidInput(
                "exclude='reverse_id' needs reverse_eids: the ID of each edge's reverse edge"
            )
        if mode == "reverse_types" and not isinstance(reverse_etypes, Mapping):
            raise InvalidInput(
                "exclude='reverse_types' needs reverse_etypes: a dict edge type → reverse edge type"
            )
        if isinstance(reverse_eids, Mapping):
            reverse_eids = {etype: _as_rows(ids) for etype, ids in reverse_eids.items()}
        elif reverse_eids is not None:
            reverse_eids = _as_rows(reverse_eids)
        self.mode, self.reverse_eids, self.reverse_etypes = mode, reverse_eids, reverse_etypes
        self._checked: set[EdgeType] = set()

    def __call__(self, g: Graph, edges: Any) -> Any:
        """Return the distinct edges to leave out of a mini-batch's blocks, in its form, or None."""
        if self.mode is None:
            return None
        if self.mode == "self" or callable(self.mode):
            return edges if self.mode == "self" else self.mode(edges)
        found = {etype: [ids] for etype, ids in edge_dict(g, edges).items()}
        for etype, (ids, *_) in list(found.items()):
            if self.mode == "reverse_id":
                mapping = self._reverse_eids(g, etype)
                reverse = mapping[ids.to(getattr(mapping, "device", ids.device))].to(ids)
                if not isinstance(g, Graph):
                    self._check_once(g, etype, ids, reverse)
                found[etype].append(reverse)
            else:
                partner = self._reverse_type(g, etype)
                if not isinstance(g, Graph) and partner != etype:
                    # partitioning renumbers each type, so equal IDs no longer pair up
                    ids = g.reverse_edges(ids, etype, partner)
                found.setdefault(partner, []).append(ids)
        joined = {etype: torch.unique(torch.cat(ids)) for etype, ids in found.items()}
        return joined if isinstance(edges, dict) else next(iter(joined.values()))

    def _reverse_eids(self, g: Graph, etype: EdgeType) -> torch.Tensor:
        given = edge_dict(g, self.reverse_eids)
        if etype not in given:
            raise NotFound(
                f"reverse_eids has no entry for edge type {etype}; it has {describe(given)}"
            )
        mapping: torch.Tensor = given[etype]
        enough = mapping.ndim == 1 and len(mapping) >= g.num_edges(etype)
        if not enough or mapping.dtype.is_floating_point:
            raise InvalidInput(
                f"reverse_eids of edge type {etype} needs one edge ID per edge, shape "
                f"({g.num_edges(etype)},); found {mapping.dtype} of shape {tuple(mapping.shape)}"
            )
        return mapping

    def _check_once(
        self, g: Any, etype: EdgeType, ids: torch.Tensor, reverse: torch.Tensor
    ) -> None:
        """Check one mini-batch: IDs from before partitioning would exclude wrong edges."""
        if etype in self._checked:
            return
        (src, dst), (back_src, back_dst) = g.find_edges(ids, etype), g.find_edges(reverse, etype)
        # An edge that is its own reverse stands for none, and excludes nothing else.
        wrong = ((ids != reverse) & ((src != back_dst) | (dst != back_src))).nonzero().flatten()
        if len(wrong):
            raise InvalidInput(
                f"reverse_eids has edge {int(reverse[wrong[0]])} for edge {int(ids[wrong[0]])} of "
                f"type {etype}, but it is not its reverse. Edges of a partitioned graph have new "
                "IDs: partition_graph(…, return_mapping=True) returns them"
            )
        self._checked.add(etype)

    def _reverse_type(self, g: Graph, etype: EdgeType) -> EdgeType:
        pairs = {g.to_canonical_etype(a): b for a, b in self.reverse_etypes.items()}
        if etype not in pairs:
            return etype
        partner = g.to_canonical_etype(pairs[etype])
        if g.num_edges(partner) != g.num_edges(etype):
            raise InvalidInput(
                "with 'reverse_types' a reverse edge has the same ID, but there are "
                f"{g.num_edges(etype)} edges of type {etype} and {g.num_edges(partner)} of type "
                f"{partner}; exclude by 'reverse_id' or by a callable"
            )
        return partner


def _as_rows(ids: Any) -> Any:
    """Return a tensor; a distributed tensor is not fetched."""
    return ids if hasattr(ids, "part_policy") else as_integers(ids, "reverse_eids")
