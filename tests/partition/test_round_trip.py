"""Graphs cut into parts and put together again, against a reference that works edge by edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.partition import load_partition, partition_graph
from tests.graph.samples import graphs, typed_graphs
from tests.helpers import examples, scratch
from tests.partition.reference import check_parts

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int64]
cases = st.one_of(graphs(), typed_graphs())


@st.composite
def assignments(draw: st.DrawFn, g: dgl.Graph, num_parts: int) -> list[int]:
    """A part for each node; some parts are often empty."""
    used = draw(st.lists(st.integers(0, num_parts - 1), min_size=1, unique=True))
    count = g.num_nodes()
    return draw(st.lists(st.sampled_from(used), min_size=count, max_size=count))


def add_features(g: dgl.Graph, dtype: torch.dtype, width: tuple[int, ...]) -> None:
    for frame in [*g.node_frames().values(), *g.edge_frames.values()]:
        numbers = torch.arange(frame.num_rows * int(np.prod(width)))
        frame["a feature"] = (numbers % 7).to(dtype).reshape(frame.num_rows, *width)


def round_trip(g: dgl.Graph, num_parts: int, hops: int, **options: Any) -> None:
    with scratch() as folder:
        mapping = partition_graph(
            g, "case", num_parts, folder, num_hops=hops, return_mapping=True, **options
        )
        check_parts(g, f"{folder}/case.json", mapping, num_parts, hops)


@examples(600)
@given(st.data())
def test_any_assignment(data: st.DataObject) -> None:
    g = data.draw(cases)
    num_parts, hops = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    part_of = data.draw(assignments(g, num_parts))
    width = data.draw(st.sampled_from([(), (0,), (2,), (2, 3)]))
    add_features(g, data.draw(st.sampled_from(DTYPES)), width)
    round_trip(g, num_parts, hops, part_method=lambda g, k: part_of)


@pytest.mark.parametrize("method", ["random", "ldg", "metis"])
@examples(120)
@given(cases, st.integers(1, 8), st.integers(1, 2))
def test_each_method(method: str, g: dgl.Graph, num_parts: int, hops: int) -> None:
    round_trip(g, num_parts, hops, part_method=method)


@examples(40)
@given(cases, st.integers(1, 4), st.integers(2, 3), st.sampled_from(["random", "metis"]))
def test_trainers_share_a_part(g: dgl.Graph, num_parts: int, trainers: int, method: str) -> None:
    """trainer p · T + i works for part p; an edge goes to the trainer of its destination."""
    with scratch() as folder:
        options = {"part_method": method, "num_trainers_per_machine": trainers}
        partition_graph(g, "case", num_parts, folder, **options)
        for part_id in range(num_parts):
            flat, nodes, edges, book, *_ = load_partition(f"{folder}/case.json", part_id)
            trainer = {}
            inner = flat.ndata["inner_node"].bool()
            for ntype in g.ntypes:
                found = nodes[f"{ntype}/trainer_id"]
                assert found.dtype is torch.int64
                assert ((found >= part_id * trainers) & (found < (part_id + 1) * trainers)).all()
                ids = book.map_to_homo_nid(book.partid2nids(part_id, ntype), ntype)
                trainer.update(zip(ids.tolist(), found.tolist(), strict=True))
            assert set(trainer) == set(flat.ndata[dgl.NID][inner].tolist())
            expected = [
                trainer[v] for v in flat.ndata[dgl.NID][flat.edges()[1]].tolist() if v in trainer
            ]
            given_ = [edges[f"{':'.join(etype)}/trainer_id"] for etype in book.canonical_etypes]
            assert torch.cat(given_).tolist() == expected
