"""Graphs of the tests of mini-batches of edges."""

from __future__ import annotations

import pytest

import gnnlab as dgl
from tests.dataloading.samples import friends, players


@pytest.fixture
def graph() -> dgl.Graph:
    return friends()


@pytest.fixture
def typed() -> dgl.Graph:
    return players()
