"""relu followed by dropout, as most networks use it between layers."""

from __future__ import annotations

import torch
from torch.autograd import Function
from torch.nn import functional

from gnnlab import kernels
from gnnlab.errors import InvalidInput


def relu_dropout(x: torch.Tensor, p: float = 0.5, training: bool = True) -> torch.Tensor:
    """Return ``dropout(relu(x), p)`` in one pass over memory.

    Parameters
    ----------
    x : torch.Tensor
        Any shape, floating point.
    p : float
        Probability of dropping an element, 0 ≤ p ≤ 1; the kernel rounds it to a multiple of 2⁻¹⁶.
    training : bool
        False only applies relu.

    Returns
    -------
    torch.Tensor
        Shape and dtype of x. Which elements are dropped depends on torch's default
        generator (``torch.manual_seed``), and not on the number of threads.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> dgl.ops.relu_dropout(torch.tensor([-1.0, 2.0]), training=False)
    tensor([0., 2.])
    """
    if not 0 <= p <= 1:
        raise InvalidInput(f"the dropout probability must be 0 <= p <= 1; found {p}")
    if not training or p == 0:
        return functional.relu(x)
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return functional.dropout(functional.relu(x), p)
    levels = kernels.activation.LEVELS
    threshold = round(p * levels)
    if threshold == levels:
        return functional.dropout(functional.relu(x), 1.0)
    return _ReluDropout.apply(x, threshold)  # type: ignore[no-any-return]


class _ReluDropout(Function):
    @staticmethod
    def forward(ctx, x, threshold):  # type: ignore[no-untyped-def]
        key = int(torch.empty((), dtype=torch.int64).random_())
        flat = x.detach().contiguous().view(-1).numpy()
        out = torch.from_numpy(kernels.activation.relu_dropout(flat, threshold, key))
        out = out.view(x.shape)
        ctx.threshold = threshold
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (out,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # this gradient is differentiated, too
            return grad * (out > 0) / (1 - ctx.threshold / kernels.activation.LEVELS), None
        flat = (t.contiguous().view(-1).numpy() for t in (out, grad))
        result = kernels.activation.relu_dropout_grad(*flat, ctx.threshold)
        return torch.from_numpy(result).view(grad.shape), None
