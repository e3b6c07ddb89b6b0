"""Store: whatever comes in is checked before anything changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed.part_store import Store
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from gnnlab.partition import EdgePart, GraphPartitionBook, NodePart, Part

HALF = torch.tensor([0.5]).double()
X, Y, W = "node~_N~x", "node~_N~y", "edge~_N:_E:_N~w"


@pytest.fixture
def store() -> Store:
    """Part 1 of 2 owns nodes 2, 3, 4 and edges 1, 2, 3, and sees node 0 (its local node 3).

    Its edges: 0 → 2 (edge 1), 3 → 2 (edge 2), 2 → 4 (edge 3); and edge 0 leaves it: 4 → 0.
    """
    book = GraphPartitionBook(1, {"_N": [0, 2, 5]}, {("_N", "_E", "_N"): [0, 1, 4]})
    nodes = NodePart(
        3, torch.tensor([1, 3, 4, 0]), torch.tensor([0]), {"x": torch.arange(6.0).reshape(3, 2)}
    )
    edges = EdgePart(
        3,
        torch.tensor([0, 2, 2, 3, 4]),
        torch.tensor([3, 1, 0, 2], dtype=torch.int32),
        torch.tensor([1, 3, 0, 2]),
        torch.tensor([0]),
        {"w": torch.tensor([1.0, 0.0, 2.0])},
    )
    return Store(Part(1, book, "g", {"_N": nodes}, {("_N", "_E", "_N"): edges}))


def ids(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def test_structure(store):
    sources, destinations = store.answer(m.FindEdges(0, ids(0, 1, 2)))
    assert (sources.tolist(), destinations.tolist()) == ([0, 3, 2], [2, 2, 4])
    assert store.answer(m.Degrees(0, ids(0, 1, 2))).tolist() == [2, 0, 1]
    # Local node 0 (ID 2) samples one of IDs 0 and 3; local node 2 (ID 4) samples ID 2 for certain.
    nodes, logs = store.answer(m.Inclusion(0, ids(0, 2), torch.cat([HALF, 2 * HALF]), 1))
    expected = {0: 0.75, 3: 0.75, 2: 0.0}
    assert dict(zip(nodes.tolist(), logs.exp().tolist(), strict=True)) == pytest.approx(expected)
    assert store.answer(m.Degrees(0, ids(0, 1, 2), inward=False)).tolist() == [1, 1, 1]


def test_samples_are_in_the_ids_of_the_whole_graph(store):
    ((ptr, edges, sources),) = store.answer(m.Sample({"_N": ids(2, 0)}, (-1,), 5))
    assert (ptr.tolist(), edges.tolist(), sources.tolist()) == ([0, 1, 3], [3, 1, 2], [2, 0, 3])
    question = m.Sample({"_N": ids(0)}, (-1,), 5, False, (W,), {0: ids(2, 2)})
    ((ptr, edges, _),) = store.answer(question)
    assert (ptr.tolist(), edges.tolist()) == ([0, 1], [1])
    ((ptr, edges, sources),) = store.answer(m.Sample({}, (2,), 5))
    assert (ptr.tolist(), len(edges), len(sources)) == ([0], 0, 0)


def test_gradients_wait_for_all_ranks(store):
    """Rows 0 and 2 of ``x`` are 0 1 and 4 5; Adagrad's first step is lr, whatever the gradient."""
    store.answer(m.Create("node~_N~sum", (2,), "float32"))
    options, states = {"lr": 0.5, "eps": 0.0}, ("node~_N~sum",)

    def give(rank: int, rows: torch.Tensor, *grads: float) -> None:
        values = torch.tensor(grads).reshape(-1, 1).expand(-1, 2)
        store.answer(m.Update(X, rows, values, "adagrad", options, states, rank, 2, 1))

    give(1, ids(2, 2), 1.0, 3.0)
    assert store.answer(m.Pull(X, ids(2))).tolist() == [[4.0, 5.0]]
    give(0, ids(0), -2.0)
    assert store.answer(m.Pull(X, ids(0, 1, 2))).tolist() == [[0.5, 1.5], [2, 3], [3.5, 4.5]]
    assert store.answer(m.Pull(states[0], ids(0, 2)))[:, 0].tolist() == [1.0, 4.0]


ONE = torch.ones(1, 2)
ADAGRAD: dict[str, Any] = {"rule": "adagrad", "options": {"lr": 0.1, "eps": 0.0}, "states": (X,)}
FAULTS = {
    "no tensor": (m.Pull("node~_N~y", ids(0)), NotFound, "no distributed tensor 'node~_N~y'"),
    "row too large": (m.Pull(X, ids(3)), OutOfRange, "node~_N~x: row 3 does not exist: IDs .* 2"),
    "negative row": (m.Pull(X, ids(-1)), OutOfRange, "row -1 does not exist"),
    "rows of floats": (m.Pull(X, torch.ones(1)), InvalidInput, "rows are int64 or int32"),
    "rows in a table": (m.Pull(X, ids(0)[None]), InvalidInput, "of one dimension; found"),
    "row to write": (m.Push(X, ids(0, 3), torch.ones(2, 2)), OutOfRange, "row 3 does not exist"),
    "wrong dtype": (m.Push(X, ids(0), ONE.double()), InvalidInput, "torch.float64"),
    "wrong shape": (m.Push(X, ids(0), torch.ones(1, 3)), InvalidInput, r"shape \(1, 2\); found"),
    "too few values": (m.Push(X, ids(0, 1), ONE), InvalidInput, r"shape \(2, 2\); found"),
    "another tensor of the name": (m.Create(X, (3,), "float32"), InvalidInput, "exists with"),
    "another dtype": (m.Create(X, (2,), "int64"), InvalidInput, "asked for int64 rows"),
    "no such rows": (m.Create("node~a~x", (), "int64"), InvalidInput, "begins with one of 'node~"),
    "no such dtype": (m.Create("node~_N~y", (), "object"), InvalidInput, "cannot hold object"),
    "first values": (m.Create(Y, (), "int64", True, ids(1, 2)), InvalidInput, r"found \(2,\)"),
    "no such rule": (m.Update(X, ids(0), ONE, "magic"), InvalidInput, "'magic'"),
    "NaN gradient": (m.Update(X, ids(0), ONE / 0, **ADAGRAD), InvalidInput, "holds NaN or infin"),
    "gradient's shape": (m.Update(X, ids(0, 1), ONE, **ADAGRAD), InvalidInput, "expected values"),
    "no such rank": (m.Update(X, ids(0), ONE, **ADAGRAD, rank=2), InvalidInput, "rank < num_ranks"),
    "no such step": (m.Update(X, ids(0), ONE, **ADAGRAD, step=0), InvalidInput, "a step from 1"),
    "state": (m.Update(X, ids(0), ONE, **ADAGRAD | {"states": (W,)}), InvalidInput, f"{W}.*{X}"),
    "row to update": (m.Update(X, ids(9), ONE, **ADAGRAD), OutOfRange, "row 9 does not exist"),
    "seeds": (m.Sample({"_N": ids(3)}, (2,), 1), OutOfRange, "node type '_N': row 3 does not"),
    "seeds of no type": (m.Sample({"a": ids(0)}, (2,), 1), NotFound, "no node type 'a'"),
    "fanouts": (m.Sample({}, (2, 2), 1), InvalidInput, "expected 1 fanouts"),
    "fanout": (m.Sample({}, (-2,), 1), InvalidInput, "of at least −1"),
    "too many weights": (m.Sample({}, (2,), 1, False, (W, W)), InvalidInput, "for 1 edge types"),
    "excluded type": (m.Sample({}, (2,), 1, excluded={1: ids(0)}), InvalidInput, r"of types \[1\]"),
    "shape of a row": (m.Create(Y, (-1,), "int64"), InvalidInput, r"\(-1,\)"),
    "excluded": (m.Sample({}, (2,), 1, excluded={0: ids(3)}), OutOfRange, "row 3 does not exist"),
    "weights on nodes": (m.Sample({}, (2,), 1, False, (X,)), InvalidInput, "one number per edge"),
    "edge type": (m.FindEdges(1, ids(0)), InvalidInput, "edge type 1 of 1 does not exist"),
    "edge": (m.FindEdges(0, ids(3)), OutOfRange, "row 3 does not exist"),
    "degree": (m.Degrees(0, ids(3)), OutOfRange, "row 3 does not exist"),
    "sampled node": (m.Inclusion(0, ids(3), HALF, 1), OutOfRange, "row 3 does not exist"),
    "probability": (m.Inclusion(0, ids(0), 3 * HALF, 1), InvalidInput, "from 0 to 1"),
    "probabilities": (m.Inclusion(0, ids(0, 1), HALF, 1), InvalidInput, "expected values of"),
    "fanout of a node": (m.Inclusion(0, ids(0), HALF, -2), InvalidInput, "a fanout is −1 to"),
    "no message": ("hello", InvalidInput, "a store cannot answer str"),
}


@pytest.mark.parametrize(("message", "error", "text"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_change_nothing(store, message, error, text):
    before = {name: tensor.clone() for name, tensor in store.tensors.items()}
    with pytest.raises(error, match=text):
        store.answer(message)
    assert store.tensors.keys() == before.keys()
    assert all(torch.equal(store.tensors[name], value) for name, value in before.items())
