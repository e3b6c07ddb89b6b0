"""LDG by hand on a path, and neighbors in both directions against sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.kernels import csc, ldg

# 0 — 1 — 2 — 3, neighbors in both directions.
PATH = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])


def place(order, part, weights=None, room=3.0):
    part = np.array(part, np.int32)
    weights = np.ones((4, 1), np.int64) if weights is None else np.array(weights)
    load = np.zeros((2, weights.shape[1]), np.int64)
    np.add.at(load, part[part >= 0], weights[part >= 0])
    full = np.full(weights.shape[1], room)
    moved = ldg.place(np.array(order), 0, (PATH,), weights, full, part, load)
    return part.tolist(), load.tolist(), moved


def test_friends_attract_and_crowds_repel():
    """0 opens part 0; 1 follows it (1 · ⅓ over 0 · ⅔); 2 finds no room left at 1's side."""
    assert place([0, 1], [-1] * 4) == ([0, 0, -1, -1], [[2], [0]], 2)
    assert place([0, 1, 2, 3], [-1] * 4, room=2.5) == ([0, 0, 1, 1], [[2], [2]], 4)


def test_a_second_pass_corrects():
    assert place([3], [0, 0, 1, 0]) == ([0, 0, 1, 1], [[2], [2]], 1)
    assert place([0, 1, 2, 3], [0, 0, 1, 1]) == ([0, 0, 1, 1], [[2], [2]], 0)


def test_a_node_that_fits_nowhere_goes_where_most_room_is():
    """Node 1 weighs 5 of a second load, more than any part should hold; node 3 fills part 1."""
    weights = [[1, 0], [1, 5], [1, 0], [1, 1]]
    assert place([1], [0, -1, -1, 1], weights)[0] == [0, 0, -1, 1]


def test_rows_may_start_later():
    """Only nodes 2 and 3 are in memory; node 2 has the neighbors 1 and 3."""
    rows = np.array([0, 2, 3]), np.array([1, 3, 2])
    part, load = np.array([0, 0, -1, -1], np.int32), np.array([[2], [0]])
    ldg.place(np.array([2, 3]), 2, (rows,), np.ones((4, 1), np.int64), np.array([8.0]), part, load)
    assert part.tolist() == [0, 0, 0, 0]


@given(st.integers(1, 9), st.data())
def test_undirected_lists_each_neighbor_once(num_nodes, data):
    node = st.integers(0, num_nodes - 1)
    edges = np.array(data.draw(st.lists(st.tuples(node, node))), np.int32).reshape(-1, 2)
    src, dst = np.ascontiguousarray(edges.T)
    into, out = csc.group_by(dst, src, num_nodes), csc.group_by(src, dst, num_nodes)
    indptr, indices = ldg.undirected(into, out)
    for v in range(num_nodes):
        found = indices[indptr[v] : indptr[v + 1]].tolist()
        either = {*src[dst == v].tolist(), *dst[src == v].tolist()} - {v}
        assert len(found) == len(either) and set(found) == either


def test_thinning_is_decided_alike_at_both_ends_and_spares_nodes_of_few_edges():
    """A wheel of 300 spokes on a complete graph of 40: rim nodes keep all, the core is thinned."""
    core = [(u, v) for u in range(40) for v in range(40) if u != v]
    spokes = [(0, v) for v in range(40, 340)] + [(v, 0) for v in range(40, 340)]
    src, dst = np.ascontiguousarray(np.array(core + spokes, np.int32).T)
    into, out = csc.group_by(dst, src, 340), csc.group_by(src, dst, 340)
    indptr, indices = ldg.undirected(into, out, most=10)
    kept = {(u, v) for v in range(340) for u in indices[indptr[v] : indptr[v + 1]].tolist()}
    assert len(kept) == len(indices) and kept < {*core, *spokes}
    assert kept == {(v, u) for u, v in kept}
    assert kept >= set(spokes)
    expected = 40 * 39 * 10 / 39  # each pair of the core stays with chance 10 / 39
    assert abs(len(kept) - len(spokes) - expected) < 6 * (2 * expected) ** 0.5
