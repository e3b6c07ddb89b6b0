"""Draw the traffic between machines as a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.plot import canvas
from gnnlab.plot.words import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NUMBERS = 8  # most machines whose numbers fit into the fields, and most ticks


def byte_matrix(
    matrix: Any, show: Callable[[float], str] = canvas.human_bytes, ax: Axes | None = None
) -> Axes:
    """Draw how many bytes each machine received from each other one.

    Parameters
    ----------
    matrix : tensor, array or nested list
        Shape (K, K), not negative: row i, column j holds what machine i received from machine j.
    show : callable
        Formats a number; by default as bytes, in units of 1000. Fields show their numbers for up to
        8 machines; for more there is a color scale.

    Examples
    --------
    >>> from gnnlab import plot
    >>> ax = plot.byte_matrix([[0, 3_000_000], [12_500, 0]])
    >>> [text.get_text() for text in ax.texts]
    ['0', '3 MB', '12.5 kB', '0']
    """
    values = as_tensor(matrix).detach().cpu().double()
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not len(values):
        raise InvalidInput(
            f"the matrix must have shape (K, K), a row and a column for each machine; found shape "
            f"{tuple(values.shape)}"
        )
    if not bool(values.isfinite().all()) or float(values.min()) < 0:
        raise InvalidInput("the matrix must hold finite amounts of at least 0")
    count = len(values)
    side = 1.1 + (0.62 * count if count <= _MOST_NUMBERS else 3.6)
    ax = canvas.axes(ax, max(side, 2.6) + 0.5, max(side, 2.6))
    # Only the lighter part of the color scale is used, so that black text is readable.
    most = float(values.max()) or 1.0
    numbers = count <= _MOST_NUMBERS
    image = ax.imshow(values.numpy(), "Blues", vmin=0, vmax=most * (1.6 if numbers else 1.0))
    if numbers:
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                ax.text(j, i, show(value), ha="center", va="center", fontsize=8)
    else:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
        bar.ax.yaxis.set_major_formatter(lambda value, _: show(value))
    step = -(-count // _MOST_NUMBERS)
    ax.set(xlabel=say("from machine"), ylabel=say("to machine"))
    ax.set(xticks=range(0, count, step), yticks=range(0, count, step))
    return ax
