"""The methods that compat adds are there in the tests of this folder, and in no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gnnlab.compat import methods

collect_ignore = ["programs"]  # they import dgl: a test runs them as a user would


@pytest.fixture(autouse=True, scope="module")
def ring() -> Iterator[None]:
    methods.bind()
    yield
    methods.unbind()
