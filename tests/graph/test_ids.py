from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl

NAN = float("nan")


# Functions of IDs in a graph of three nodes and edges; tests/test_arguments.py has masks, dtypes.
CALLS: dict[str, Callable[[dgl.Graph, Any], Any]] = {
    "subgraph": lambda g, ids: g.subgraph(ids).ndata[dgl.NID],
    "edge_subgraph": lambda g, ids: g.edge_subgraph(ids).edata[dgl.EID],
    "sample": lambda g, ids: g.sample_neighbors(ids, -1).edges()[1],
    "walk": lambda g, ids: dgl.sampling.random_walk(g, ids, length=0)[0].flatten(),
    "find_edges": lambda g, ids: g.find_edges(ids)[0],
    "edge_ids": lambda g, ids: g.edge_ids(*g.find_edges(ids)),
    "graph": lambda g, ids: dgl.graph((ids, ids)).edges()[0],
    "add_edges": lambda g, ids: dgl.add_edges(g, ids, 0).edges()[0][3:],
}


def ring() -> dgl.Graph:
    return dgl.graph(([0, 1, 2], [1, 2, 0]))


@pytest.mark.parametrize("name", CALLS)
def test_ids_of_every_dtype(name: str) -> None:
    """Integers of any width are IDs; other numbers are refused with a way out."""
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        assert CALLS[name](ring(), np.array([2, 0], dtype)).tolist() == [2, 0]
    for wrong in ([0.5], torch.tensor([1.0]), np.array([1j]), ["1"], [None], [[0, 1]]):
        with pytest.raises(dgl.InvalidInput):
            CALLS[name](ring(), wrong)
    for value in (NAN, float("inf"), complex(NAN, 0)):
        with pytest.raises(dgl.InvalidInput, match="NaN"):
            CALLS[name](ring(), torch.tensor([0, value]))
    with pytest.raises(dgl.OutOfRange):
        CALLS[name](ring(), np.array([2**63 + 1], np.uint64))


def test_a_mask_of_integers_is_not_taken_for_what_is_removed() -> None:
    for remove in (dgl.remove_nodes, dgl.remove_edges):
        with pytest.raises(dgl.InvalidInput, match="mask"):
            remove(ring(), [1, 0, 1])
        left = remove(ring(), torch.tensor([True, False, True]))
        assert remove(ring(), [2, 0, 2]).num_edges() == left.num_edges()


def test_masks_and_ids_by_type() -> None:
    """One mask for each type, and IDs beside masks."""
    g = dgl.heterograph(
        {("a", "r", "b"): ([0, 1, 2], [0, 1, 0]), ("b", "s", "a"): ([0, 1], [2, 2])}
    )
    few, most = torch.tensor([True, False]), torch.tensor([True, False, True])
    part = g.subgraph({"a": most, "b": few})
    assert part.nodes["a"].data[dgl.NID].tolist() == [0, 2]
    assert part.edges["r"].data[dgl.EID].tolist() == [0, 2]
    assert g.subgraph({"a": [2, 1], "b": few}).num_edges("r") == 1
    part = g.edge_subgraph({"r": most, ("b", "s", "a"): few.numpy()})
    assert [part.num_edges(etype) for etype in ("r", "s")] == [2, 1]
    assert g.in_subgraph({"b": few}).num_edges("r") == 2
    for wrong in ({"a": few}, {"a": most.byte()}, {"b": few.byte()}):
        with pytest.raises(dgl.InvalidInput, match="mask"):
            g.subgraph(wrong)


def test_type_ids_and_counts_are_integers() -> None:
    g = ring()
    g.edata[dgl.ETYPE] = torch.zeros(3, dtype=torch.int16)
    for wrong in (torch.tensor([0.0, 0.7, 1.0]), torch.tensor([0, NAN, 1])):
        g.ndata[dgl.NTYPE] = wrong
        with pytest.raises(dgl.InvalidInput, match=dgl.NTYPE):
            dgl.to_heterogeneous(g, ["a", "b"], ["r"])
    with pytest.raises(dgl.InvalidInput, match="nodes"):
        g.set_batch_num_nodes(torch.tensor([1.5, 1.5]))
