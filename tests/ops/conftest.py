from __future__ import annotations

import pytest

from gnnlab.ops import autograd, torch_ops


@pytest.fixture(params=["kernels", "torch operators"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of computing; the second is the one that a GPU takes."""
    if request.param == "torch operators":
        monkeypatch.setattr(autograd, "implementation", lambda x: torch_ops)
    return request.param
