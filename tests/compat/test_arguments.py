"""Wrong arguments of compat's functions; tests/test_arguments.py says how they are tested."""

from typing import Any

import pytest

from tests.test_arguments import check, folder, one_name_each

__all__ = ["folder"]  # a fixture


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [p for p in one_name_each() if p.startswith("compat.")])
def test_wrong_arguments(path: str, folder: Any) -> None:
    check(path, folder)
