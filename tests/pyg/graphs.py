"""Small random graphs, and what holds for every mini-batch that PyG's loaders make."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
OWNS = ("paper", "of", "author")


def plain(seed: int = 0, num_nodes: int = 60, num_edges: int = 400) -> Data:
    """Edges may be doubled or loops; the last node has no in-edge."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_nodes, (num_edges,), generator=generator)
    dst = torch.randint(num_nodes - 1, (num_edges,), generator=generator)
    return Data(
        x=torch.rand(num_nodes, 4, generator=generator),
        y=torch.arange(num_nodes),
        edge_index=torch.stack([src, dst]),
        edge_attr=torch.arange(num_edges) * 1.5,
        weight=torch.rand(num_edges, generator=generator) * (torch.arange(num_edges) % 3 > 0),
        mask=torch.rand(num_nodes, generator=generator) < 0.5,
    )


def typed(seed: int = 0) -> HeteroData:
    """30 papers, 20 authors; relations inside a type and both ways between two."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["paper"].x = torch.rand(30, 4, generator=generator)
    data["author"].x = torch.rand(20, 3, generator=generator)
    data["paper"].mask = torch.rand(30, generator=generator) < 0.5
    sizes = {"paper": 30, "author": 20}
    for etype, count in ((CITES, 150), (WRITES, 90), (OWNS, 80)):
        ends = [torch.randint(sizes[n], (count,), generator=generator) for n in etype[::2]]
        data[etype].edge_index = torch.stack(ends)
        data[etype].edge_attr = torch.rand(count, 2, generator=generator)
    return data


def check_hops(data: Any, batch: Any, fanouts: Any, replace: bool = False) -> None:
    """Seeds first, then hop by hop; edges are those of the graph, as many as the fanouts say.

    ``fanouts``: a list, or lists by edge type. Every in-edge counts once, unless ``replace``.
    """
    is_typed = isinstance(data, HeteroData)
    ntypes = data.node_types if is_typed else [None]
    etypes = data.edge_types if is_typed else [(None, None, None)]
    nodes = {t: batch[t] if is_typed else batch for t in ntypes}
    hops = len(fanouts if isinstance(fanouts, list) else next(iter(fanouts.values())))
    bounds = {t: _bounds(nodes[t].num_sampled_nodes) for t in ntypes}
    seen: dict[Any, set[int]] = {t: set(range(bounds[t][1])) for t in ntypes}
    for t in ntypes:
        assert len(nodes[t].num_sampled_nodes) == hops + 1
        assert bounds[t][-1] == len(nodes[t].n_id)
    for etype in etypes:
        whole, part = (data[etype], batch[etype]) if is_typed else (data, batch)
        source, target = etype[0], etype[2]
        row, col = part.edge_index
        ends = torch.stack([nodes[source].n_id[row], nodes[target].n_id[col]])
        assert torch.equal(whole.edge_index[:, part.e_id], ends)
        cuts = _bounds(part.num_sampled_edges)
        assert len(cuts) == hops + 1 and cuts[-1] == len(row)
        wanted = fanouts if isinstance(fanouts, list) else fanouts[etype]
        for hop in range(hops):
            here = slice(cuts[hop], cuts[hop + 1])
            first, last = bounds[target][hop : hop + 2]  # the nodes that were new in the hop before
            assert bool(((col[here] >= first) & (col[here] < last)).all())
            assert bool((row[here] < bounds[source][hop + 2]).all())
            for place in range(first, last):
                mine = part.e_id[here][col[here] == place]
                degree = int((whole.edge_index[1] == nodes[target].n_id[place]).sum())
                count = degree if wanted[hop] < 0 else min(degree, wanted[hop])
                if replace and wanted[hop] >= 0:
                    count = wanted[hop] if degree else 0
                else:
                    assert len(mine.unique()) == len(mine)
                assert len(mine) == count
            seen[source] |= set(row[here].tolist())
    for t in ntypes:  # nothing that no edge leads to
        assert seen[t] == set(range(len(nodes[t].n_id)))


def _bounds(counts: list[int]) -> list[int]:
    bounds = [0]
    for count in counts:
        bounds.append(bounds[-1] + count)
    return bounds
