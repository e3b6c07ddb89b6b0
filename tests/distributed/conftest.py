"""Two graphs in parts, with which most tests of this folder work."""

from __future__ import annotations

import pytest

from tests.distributed import cut as cuts
from tests.distributed.cut import PARTS, Cut


@pytest.fixture(scope="module", params=PARTS)
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cuts.cut(cuts.plain(), request.param, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module", params=PARTS)
def typed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cut:
    return cuts.cut(cuts.typed(), request.param, tmp_path_factory.mktemp("typed"))
