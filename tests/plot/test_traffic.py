"""The byte matrix: row i, column j is what machine i got from machine j."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib import pyplot

from gnnlab import plot
from gnnlab.errors import InvalidInput
from tests.plot.samples import texts


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
def test_numbers_stand_in_their_fields(kind) -> None:
    ax = plot.byte_matrix(kind([[0, 2500, 7], [1_000_000, 0, 0], [3, 4_200_000_000, 0]]))
    found = {text.get_position(): text.get_text() for text in ax.texts}
    assert found[1, 0] == "2.5 kB"  # column 1, row 0: to machine 0 from machine 1
    assert found[0, 1] == "1 MB" and found[1, 2] == "4.2 GB" and len(found) == 9
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("from machine", "to machine")


def test_own_units_and_axes() -> None:
    _, ax = pyplot.subplots()
    assert plot.byte_matrix([[2.26, 0.4]] * 2, show="{:.1f} rows".format, ax=ax) is ax
    assert texts(ax) == ["2.3 rows", "0.4 rows"] * 2
    assert texts(plot.byte_matrix([[0, 0], [0, 0]])) == ["0"] * 4


def test_darkest_is_most_and_all_numbers_are_read_in_black() -> None:
    ax = plot.byte_matrix([[0, 8], [2, 0]])
    (image,) = ax.images
    shades = image.cmap(image.norm(np.array([0, 2, 8])))[:, :3] @ [0.299, 0.587, 0.114]
    assert shades[0] > shades[1] > shades[2] > 0.4


def test_many_machines_get_a_scale_of_colors() -> None:
    ax = plot.byte_matrix(torch.arange(81.0).view(9, 9) * 1e6)
    assert texts(ax) == []
    _, bar = ax.figure.axes
    assert bar.yaxis.get_major_formatter()(20e6, 0) == "20 MB"
    assert np.array_equal(ax.images[0].get_array(), np.arange(81).reshape(9, 9) * 1e6)


@pytest.mark.parametrize(
    ("matrix", "named"),
    [
        ([[1, 2]], r"\(K, K\).*\(1, 2\)"),
        ([1, 2], r"\(2,\)"),
        (torch.zeros(0, 0), r"\(0, 0\)"),
        ([[0, -1], [0, 0]], "at least 0"),
        ([[0, float("nan")], [0, 0]], "finite"),
    ],
)
def test_what_is_no_matrix_of_amounts(matrix: object, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        plot.byte_matrix(matrix)
