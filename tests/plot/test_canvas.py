"""Colors that everybody can tell apart, numbers that people read, clear refusals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas
from tests.plot.samples import toy

# Machado et al., severity 1.0: linear RGB as people with these deficiencies see it.
SIGHT = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                   [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip


def lab(color: str, sight: str) -> np.ndarray:
    """CIE L*a*b* of a color as it is seen."""
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    xyz = TO_XYZ @ seen / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colors", [canvas.PALETTE, (*canvas.KIND_COLORS.values(), "#ffffff")])
def test_colors_are_told_apart(colors: tuple[str, ...], sight: str) -> None:
    """A difference of 10 is seen at a glance; 2.3 is just noticed."""
    for one, other in combinations(colors, 2):
        distance = np.linalg.norm(lab(one, sight) - lab(other, sight))
        assert distance > 10, (one, other, distance)


def test_layout_is_the_same_each_time_and_keeps_parts_together() -> None:
    """Two pairs without edges: partners lie nearer to each other than to the other pair."""
    g = dgl.graph(([], []), num_nodes=4)
    positions = np.array(canvas.node_positions(g, None, [0, 0, 1, 1]))
    assert np.array_equal(positions, canvas.node_positions(g, None, [0, 0, 1, 1]))
    apart = np.linalg.norm(positions[:, None] - positions, axis=2)
    assert max(apart[0, 1], apart[2, 3]) < apart[:2, 2:].min()


@pytest.mark.parametrize(
    "pos",
    [
        *({0: (0, 0)}, [(0, 0)] * 4, torch.zeros(5, 3), [(0, 0, 0)] * 5),
        *({i: (i,) for i in range(5)}, np.zeros(5), ["ab"] * 5),
    ],
)
def test_places_of_all_nodes_are_needed(pos: object) -> None:
    with pytest.raises(InvalidInput, match="5 nodes"):
        canvas.node_positions(toy(), pos)
