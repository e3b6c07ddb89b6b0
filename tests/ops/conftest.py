from __future__ import annotations

import pytest

from gnnlab.ops import primitive, torch_path


@pytest.fixture(params=["kernels", "torch operators"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of computing; the second is the one that a GPU takes."""
    if request.param == "torch operators":
        monkeypatch.setattr(primitive, "implementation", lambda x: torch_path)
    return request.param
