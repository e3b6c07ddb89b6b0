"""ReLU and dropout in one pass over memory, as a module."""

from __future__ import annotations

from torch import Tensor, nn

from gnnlab import ops
from gnnlab.errors import InvalidInput


class ReLUDropout(nn.Module):
    """``dropout(relu(x))`` in one pass, as most GNNs use it between layers.

    The mask is ``output > 0``, so nothing but the output is kept for the backward pass.

    Parameters
    ----------
    p : float, default 0.5
        Probability of dropping an element, 0 ≤ p < 1.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.nn import ReLUDropout
    >>> layer = ReLUDropout(0.5).eval()
    >>> layer
    ReLUDropout(p=0.5)
    >>> layer(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise InvalidInput(f"the dropout probability must be 0 <= p < 1; found {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return ``dropout(relu(x))``, of the shape and dtype of ``x``."""
        return ops.relu_dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"
