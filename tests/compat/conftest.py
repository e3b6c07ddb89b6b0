"""The methods of the ring are there in the tests of this folder, and in no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gnnlab.compat import methods


def pytest_collection_finish() -> None:
    methods.unbind()  # importing the tests has imported the ring


@pytest.fixture(autouse=True, scope="module")
def ring() -> Iterator[None]:
    methods.bind()
    yield
    methods.unbind()
