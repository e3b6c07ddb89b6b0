"""The byte matrix: row i, column j is what machine i got from machine j."""

import numpy as np
import pytest
import torch

from gnnlab import plot
from gnnlab.errors import InvalidInput


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
def test_numbers_stand_in_their_fields(kind) -> None:
    ax = plot.byte_matrix(kind([[0, 2500, 7], [1_000_000, 0, 0], [3, 4_200_000_000, 0]]))
    found = {text.get_position(): text.get_text() for text in ax.texts}
    assert found[1, 0] == "2.5 kB"  # column 1, row 0: to machine 0 from machine 1
    assert found[0, 1] == "1 MB" and found[1, 2] == "4.2 GB" and len(found) == 9
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("from machine", "to machine")


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
