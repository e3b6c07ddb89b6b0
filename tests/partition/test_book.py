"""The partition book against the slow way: lists of who owns what."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from gnnlab.partition import GraphPartitionBook, PartitionPolicy

PLAYS, MADE = ("user", "plays", "game"), ("game", "made by", "user")


def shop(part_id: int = 0) -> GraphPartitionBook:
    """Three parts; the second owns no games.

    part         0           1        2
    game         0 1         –        2
    user         0           1 2      3
    homogeneous  0 1 | 2     3 4      5 | 6
    """
    return GraphPartitionBook(
        part_id,
        {"game": [0, 2, 2, 3], "user": [0, 1, 3, 4]},
        {PLAYS: [0, 2, 2, 5], MADE: [0, 1, 4, 4]},
    )


def one_type(part_id: int = 0) -> GraphPartitionBook:
    return GraphPartitionBook(part_id, {"_N": [0, 2, 6]}, {("_N", "_E", "_N"): [0, 5, 9]})


def test_homogeneous_names_and_counts() -> None:
    book = shop()
    assert book.num_partitions() == 3
    assert book.nid2partid(range(7), "_N").tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert book.eid2partid(range(9), "_E").tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert book.map_to_homo_eid(np.array([4, 0], np.uint8), "plays").tolist() == [8, 0]
    numbers = zip(range(3), (3, 2, 2), (3, 3, 3), strict=True)
    names = ("machine_id", "num_nodes", "num_edges")
    assert book.metadata() == [dict(zip(names, row, strict=True)) for row in numbers]


def test_types() -> None:
    book = shop(2)
    assert (book.partid, book.ntypes, book.etypes) == (2, ["game", "user"], ["plays", "made by"])
    assert book.canonical_etypes == [PLAYS, MADE]
    assert book.to_canonical_etype("made by") == MADE
    assert (book.is_homogeneous, one_type().is_homogeneous) == (False, True)
    assert book.global_nid_dtype is book.global_eid_dtype is torch.int64
    again = pickle.loads(pickle.dumps(book))
    assert again.metadata() == book.metadata()


@pytest.mark.parametrize(
    ("ask", "error", "named"),
    [
        (lambda b: b.map_to_per_ntype([7]), OutOfRange, "node 7"),
        (lambda b: b.nid2partid([[1]]), InvalidInput, "dimension"),
        (lambda b: b.partid2nids(3), OutOfRange, "part 3"),
        (lambda b: b.partid2eids(-1), OutOfRange, "part -1"),
        (lambda b: b.nid2localnid([0, 1], 1, "user"), OutOfRange, "node 0.* 1 to 2"),
        (lambda b: b.nid2localnid([0], 1, "game"), OutOfRange, "part 1.* none"),
        (lambda b: b.eid2localeid([4], 1, "plays"), OutOfRange, "edge 4"),
        (lambda b: shop(3), OutOfRange, "part 3"),
        (lambda b: PartitionPolicy("user", b), InvalidInput, "node~TYPE"),
        (lambda b: PartitionPolicy("node~", b), InvalidInput, "node~TYPE"),
        (lambda b: PartitionPolicy("node~film", b), NotFound, "'film'"),
        (lambda b: PartitionPolicy("node~_N", b), NotFound, "'_N'"),
        (lambda b: PartitionPolicy("edge~a:b", b), NotFound, "'a:b'"),
        (lambda b: twice().eid2partid([0], "r"), InvalidInput, "'r' is ambiguous"),
    ],
)
def test_wrong_questions(ask: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        ask(shop())


def twice() -> GraphPartitionBook:
    edges = {("a", "r", "a"): [0, 1], ("b", "r", "a"): [0, 1]}
    return GraphPartitionBook(0, {"a": [0, 1]}, edges)


def test_policies() -> None:
    users = PartitionPolicy("node~user", shop(1))
    assert (users.policy_str, users.type_name, users.is_node) == ("node~user", "user", True)
    assert (users.get_size(), users.get_part_size(), users.part_id) == (4, 2, 1)
    assert users.to_local([2]).tolist() == [1]
    assert users.to_partid([0, 3]).tolist() == [0, 2]
    assert users.get_data_name("feat") == "node~user~feat"
    assert users.ranges.tolist() == [0, 1, 3, 4]
    plays = PartitionPolicy("edge~user:plays:game", shop(1))
    assert (plays.type_name, plays.is_node, plays.get_part_size()) == (PLAYS, False, 0)
    assert PartitionPolicy("edge~plays", shop(1)) == plays
    assert hash(PartitionPolicy("edge~plays", shop())) == hash(plays)
    assert plays != users and plays != "edge~user:plays:game"
    assert repr(plays) == "PartitionPolicy('edge~user:plays:game', rows=5, part=1)"
    assert PartitionPolicy("edge~_E", one_type()).policy_str == "edge~_N:_E:_N"


@given(st.data())
def test_against_lists(data: st.DataObject) -> None:
    """Of types of nodes, and of as many types of edges."""
    num_parts, num_types = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    owned = [[data.draw(st.integers(0, 3)) for _ in range(num_types)] for _ in range(num_parts)]
    borders = {f"t{t}": np.cumsum([0, *(row[t] for row in owned)]) for t in range(num_types)}
    etypes = {name: ("t0", name, "t0") for name in borders}
    book = GraphPartitionBook(0, borders, {etypes[name]: each for name, each in borders.items()})
    rows = []  # part, type, ID within the type; homogeneous ID = position
    free = [0] * num_types
    for part in range(num_parts):
        for t in range(num_types):
            for _ in range(owned[part][t]):
                rows.append((part, t, free[t]))
                free[t] += 1
    everything = range(len(rows))
    nodes = book.nid2partid, book.map_to_per_ntype, book.map_to_homo_nid, book.partid2nids
    edges = book.eid2partid, book.map_to_per_etype, book.map_to_homo_eid, book.partid2eids
    for (owner, split, join, of_part), local in (
        (nodes, book.nid2localnid),
        (edges, book.eid2localeid),
    ):
        assert owner(everything).tolist() == [part for part, _, _ in rows]
        kinds, ids = split(everything)
        assert kinds.dtype is ids.dtype is torch.int64
        assert list(zip(kinds.tolist(), ids.tolist(), strict=True)) == [(t, i) for _, t, i in rows]
        for part in range(num_parts):
            mine = [at for at, (other, _, _) in enumerate(rows) if other == part]
            assert of_part(part).tolist() == mine
            assert local(mine, part).tolist() == [*range(len(mine))]
        for t, name in enumerate(borders):
            mine = [(part, at, i) for at, (part, kind, i) in enumerate(rows) if kind == t]
            ids = range(free[t])
            assert join(ids, name).tolist() == [at for _, at, _ in mine]
            assert owner(ids, name).tolist() == [part for part, _, _ in mine]
            for part in range(num_parts):
                inside = [i for other, _, i in mine if other == part]
                assert of_part(part, name).tolist() == inside
                assert local(inside, part, name).tolist() == [*range(len(inside))]
