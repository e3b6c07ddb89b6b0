"""The few tests of tests/compat that `make test` runs: DGL's names, and two of the programs.

`make test-dgl` runs all of them; where `make test` does, too, these are not run again.
"""

from pathlib import Path

from tests.compat import test_layout_names
from tests.compat.test_layout_programs import run_programs
from tests.helpers import THOROUGH

if not THOROUGH:
    test_names_are_there_or_missing = test_layout_names.test_names_are_there_or_missing_as_listed
    test_the_page_shows_the_list = test_layout_names.test_the_page_shows_the_list

    def test_programs_run_unchanged(tmp_path: Path) -> None:
        results = run_programs(tmp_path, ["gcn", "trees"])
        assert [state for state, _ in results.values()] == ["learned", "learned"], results
