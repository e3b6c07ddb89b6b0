"""Row rules against torch's own optimizers.

``torch.optim.Adagrad`` and ``torch.optim.SparseAdam`` get the gradient of an ``nn.Embedding``, the
rules get the same rows and gradients one by one.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.distributed import sparse_rules
from gnnlab.errors import InvalidInput

ADAGRAD = {"lr": 0.3, "eps": 1e-10}
ADAM = {"lr": 0.3, "beta1": 0.8, "beta2": 0.97, "eps": 1e-8}


def options_of(rule: str) -> dict[str, float]:
    return ADAGRAD if rule == "adagrad" else ADAM


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=30))
def test_coalesce_adds_up_equal_rows(pairs: list[tuple[int, int]]) -> None:
    rows = torch.tensor([row for row, _ in pairs], dtype=torch.int64)
    grads = torch.tensor([[float(value), 1.0] for _, value in pairs]).reshape(-1, 2)
    expected: dict[int, list[float]] = {}
    for row, value in pairs:
        total = expected.setdefault(row, [0.0, 0.0])
        total[0] += value
        total[1] += 1
    found, sums = sparse_rules.coalesce(rows, grads)
    assert found.tolist() == sorted(expected)
    assert sums.tolist() == [expected[row] for row in sorted(expected)]


def test_equal_rows_are_added_in_a_fixed_order() -> None:
    """In float32, 1 + (1e8 − 1e8) is 1, but 1e8 + (1 − 1e8) is 0: the order shows."""
    rows = torch.arange(50).repeat(3)
    grads = torch.tensor([1.0, 1e8, -1e8]).repeat_interleave(50).unsqueeze(1)
    assert (sparse_rules.coalesce(rows, grads)[1] == 1).all()


@pytest.mark.parametrize("rule", ["adagrad", "adam"])
def test_a_step_does_not_depend_on_threads(torch_threads: Any, rule: str) -> None:
    generator = torch.Generator().manual_seed(0)
    grads = torch.randn(20_000, 16, generator=generator)
    rows = torch.randperm(30_000, generator=generator)[:20_000]
    found = []
    for threads in (1, 4):
        torch_threads(threads)
        tables = [torch.ones(30_000, 16) for _ in range(1 + len(sparse_rules.RULES[rule][0]))]
        sparse_rules.apply(rule, tables[0], rows, grads, tables[1:], options_of(rule), step=3)
        found.append(torch.cat(tables))
    assert torch.equal(*found)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (5,), (5, 2, 3)])
@pytest.mark.parametrize("rule", sparse_rules.RULES)
def test_a_step_without_gradients_changes_nothing(rule: str, shape: tuple[int, ...]) -> None:
    """Owners hear of each step, also those that own no row of a rare type."""
    tables = [torch.ones(shape) for _ in range(1 + len(sparse_rules.RULES[rule][0]))]
    rows, grads = torch.empty(0, dtype=torch.int64), torch.empty(0, *shape[1:])
    sparse_rules.apply(rule, tables[0], rows, grads, tables[1:], options_of(rule), step=1)
    assert all(torch.equal(table, torch.ones(shape)) for table in tables)


@pytest.mark.parametrize(
    ("rule", "options", "states", "message"),
    [
        ("sgd", ADAGRAD, 1, "no sparse update rule 'sgd'; there are 'adagrad', 'adam'"),
        ("adagrad", {"lr": 0.1}, 1, "takes 'lr', 'eps'; found 'lr'"),
        ("adagrad", {**ADAGRAD, "momentum": 0.9}, 1, "found 'lr', 'eps', 'momentum'"),
        ("adam", ADAM, 1, "keeps 'mean', 'square'; found 1 tensors"),
        ("adagrad", {"lr": float("nan"), "eps": 0.0}, 1, "lr must be a number"),
        ("adagrad", {"lr": -1.0, "eps": 0.0}, 1, "at least 0 and finite; found -1.0"),
        ("adagrad", {"lr": "0.1", "eps": 0.0}, 1, "found '0.1'"),
        ("adam", {**ADAM, "beta2": 1.0}, 2, "beta2 must be a number, at least 0 and below 1"),
    ],
)
def test_bad_rules_are_refused(
    rule: str, options: dict[str, Any], states: int, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        sparse_rules.check(rule, options, states)
