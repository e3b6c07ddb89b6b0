"""Answers to the exercises of lesson 08, right and wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

import gnnlab as dgl


def crossing(g: Any, frontier: Any, away: bool = True) -> Any:
    owner = g.get_partition_book().nid2partid
    u, v = frontier.edges()
    cut = (owner(u) != owner(v)) == away
    found = frontier.edata[dgl.ETYPE][cut].bincount(minlength=len(g.etypes))
    return dict(zip(g.etypes, found.tolist(), strict=True))


def crossing_by_loop(g: Any, frontier: Any) -> Any:
    book, counts = g.get_partition_book(), dict.fromkeys(g.etypes, torch.tensor(0))
    for u, v, kind in zip(*frontier.edges(), frontier.edata[dgl.ETYPE], strict=True):
        if book.nid2partid(u[None]) != book.nid2partid(v[None]):
            counts[g.etypes[kind]] = counts[g.etypes[kind]] + 1
    return counts


def all_edges(g: Any, frontier: Any) -> Any:
    counts = frontier.edata[dgl.ETYPE].bincount(minlength=len(g.etypes))
    return dict(zip(g.etypes, counts.tolist(), strict=True))


def by_edge_owner(g: Any, frontier: Any) -> Any:
    book = g.get_partition_book()
    away = book.eid2partid(frontier.edata[dgl.EID]) != 0
    counts = Counter(g.etypes[kind] for kind in frontier.edata[dgl.ETYPE][away])
    return {name: counts[name] for name in g.etypes}


def of_the_lesson(g: Any, frontier: Any) -> Any:
    found = list(crossing(g, frontier).values())
    return dict(zip(["disliked_by", "liked_by", "dislikes"], found, strict=True))


FANOUT = {"likes": -1, "dislikes": 3, "liked_by": 2, "disliked_by": 2}
RIGHT: dict[int, list[Any]] = {
    1: [15],
    2: [["user", 24], ["user", 24.0], ("user", torch.tensor(24)), [1, 24]],
    3: [crossing, crossing_by_loop],
    4: [
        FANOUT,
        FANOUT | {"likes": 3000},
        {k: torch.tensor(n) for k, n in FANOUT.items()},
        {
            ("user", "likes", "film"): -1,
            ("user", "dislikes", "film"): 3,
            ("film", "liked_by", "user"): 2,
            ("film", "disliked_by", "user"): 2,
        },
    ],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (5, "1 typewise"),
        (11, "1 films"),
        (14, "1 second"),
        (19, "1 shift"),
        (35, "1 films first"),
        (16, ""),
    ],
    2: [
        (("film", 24), "2 type"),
        (("user", 14), "2 within"),
        (("user", 21), "2 films first"),
        (("user", 16), "2 part"),
        (("user", 26), "2 films"),
        (("user", 25), ""),
        (("user", 24, 1), "length"),
    ],
    3: [
        (lambda g, frontier: crossing(g, frontier, away=False), "3 own"),
        (all_edges, "3 all"),
        (lambda g, frontier: {k: n for k, n in crossing(g, frontier).items() if n}, "3 zero"),
        (by_edge_owner, ""),
        (of_the_lesson, ""),
        (lambda g, frontier: list(crossing(g, frontier).values()), "3 dictionary"),
        (lambda frontier: crossing(None, frontier), "TypeError"),
    ],
    4: [
        ({"likes": 2, "dislikes": 2, "liked_by": -1, "disliked_by": 3}, "4 direction"),
        (FANOUT | {"likes": 100}, "4 likes"),
        (FANOUT | {"likes": 0}, "4 likes"),
        ({"likes": -1, "dislikes": 3}, "4 relations"),
        ({"film": -1, "user": 2}, "4 edges"),
        (FANOUT | {"dislikes": 2}, ""),
        (FANOUT | {"likes": "all"}, "not a number"),
        ([-1, 3, 2, 2], "4 dictionary"),
    ],
}
