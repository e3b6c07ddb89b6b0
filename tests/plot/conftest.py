"""Pictures are drawn without a screen, and no figure stays open."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pytest
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def figures() -> Iterator[None]:
    matplotlib.use("Agg")
    pyplot.close("all")  # those of doctests and other folders, which ran in this process before
    matplotlib.rcdefaults()  # their style, too
    yield
    pyplot.close("all")
