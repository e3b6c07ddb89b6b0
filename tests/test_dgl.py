"""The few tests of tests/compat that `make test` runs: DGL's names, and two of the programs.

`make test-dgl` runs all of them.
"""

from __future__ import annotations

from pathlib import Path

from tests.compat.test_layout_names import (
    test_names_are_there_or_missing_as_listed,
    test_the_page_shows_the_list,
)
from tests.compat.test_layout_programs import run_programs

__all__ = ["test_names_are_there_or_missing_as_listed", "test_the_page_shows_the_list"]


def test_programs_run_unchanged(tmp_path: Path) -> None:
    results = run_programs(tmp_path, ["gcn", "trees"])
    assert [state for state, _ in results.values()] == ["learned", "learned"], results
