"""Lesson 08: heterogeneous graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.distributed import DistGraph, sample_neighbors
from gnnlab.exercises.judging import Wrong, expect, function, number, sequence
from gnnlab.exercises.parted import partitioned
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph


def exercise_1(answer: Any) -> None:
    known = {5: "1 typewise", 11: "1 films", 14: "1 second", 19: "1 shift", 35: "1 films first"}
    expect(answer, 15, known)


def exercise_2(answer: Any) -> None:
    kind, row = sequence(answer, 2)
    if (str.__str__(kind) if isinstance(kind, str) else number(kind)) not in ("user", 1):
        raise Wrong("2 type")
    known = {14: "2 within", 21: "2 films first", 16: "2 part", 26: "2 films", 30: "2 within"}
    expect(row, 24, known)


def exercise_3(answer: Any) -> None:
    count = function(answer)
    for seed in (0, 1):
        whole, owners = _papers(seed)
        with partitioned(whole, 3, owners) as g:
            frontier = sample_neighbors(g, torch.arange(0, g.num_nodes(), 2), 4)
            owner = g.get_partition_book().nid2partid
            u, v = frontier.edges()
            away, kind = owner(u) != owner(v), frontier.edata["_TYPE"]
            right = _by_relation(g, kind[away])
            found = count(g, frontier)
            if not isinstance(found, Mapping):
                raise Wrong("3 dictionary")
            found = {name: int(number(edges)) for name, edges in found.items()}
            if found == right:
                continue
            if found == {name: edges for name, edges in right.items() if edges}:
                raise Wrong("3 zero")
            known = {"3 own": _by_relation(g, kind[~away]), "3 all": _by_relation(g, kind)}
            raise Wrong(next((why for why, wrong in known.items() if wrong == found), ""))


def exercise_4(answer: Any) -> None:
    if not isinstance(answer, Mapping):
        raise Wrong("4 dictionary")
    found = {key[1] if isinstance(key, tuple) else key: number(answer[key]) for key in answer}
    if {"film", "user"} & set(found):
        raise Wrong("4 edges")
    if set(found) != {"likes", "dislikes", "liked_by", "disliked_by"}:
        raise Wrong("4 relations")
    if found["likes"] == 2 or found["liked_by"] in (-1, 3):
        raise Wrong("4 direction")
    if found["likes"] != -1 and found["likes"] < 3000:
        raise Wrong("4 likes")
    if [found["dislikes"], found["liked_by"], found["disliked_by"]] != [3, 2, 2]:
        raise Wrong()


def _papers(seed: int) -> tuple[Graph, dict[str, torch.Tensor]]:
    """A small graph and its owners, with other types than the lesson's; one has no edge cut."""
    random = torch.Generator().manual_seed(seed)
    owner = {"paper": torch.arange(20) % 3, "author": torch.arange(12) // 4}
    edges = {
        ("paper", "cites", "paper"): torch.randint(20, (2, 60), generator=random),
        ("author", "writes", "paper"): torch.randint(12, (2, 40), generator=random),
        ("author", "knows", "author"): torch.tensor([[0, 1, 5], [1, 2, 6]]),
    }
    g = heterograph(
        {etype: tuple(ends) for etype, ends in edges.items()}, {"paper": 20, "author": 12}
    )
    return g, owner


def _by_relation(g: DistGraph, kinds: torch.Tensor) -> dict[str, int]:
    counts = kinds.bincount(minlength=len(g.etypes)).tolist()
    return dict(zip(g.etypes, counts, strict=True))
