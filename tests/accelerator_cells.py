"""Recurrent cells of the pretend device: operators of torch that the CPU has not got.

On a GPU, ``torch.nn.LSTM`` and ``torch.nn.GRU`` compute all gates of a step in one operator, and
its gradient in another. Here both are written with tensors of the CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _add(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def lstm(inputs: Tensor, hidden: Tensor, cx: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    """Return hidden state, cell state and the gates i, f, g, o for the gradient."""
    total = inputs + hidden
    for bias in biases:
        total = _add(total, bias)
    i, f, g, o = total.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def lstm_grad(
    hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, gates: Tensor, bias: bool
) -> tuple[Tensor | None, ...]:
    """From the gradients hy and grad_cy, return those of gates, of the cell before, of a bias."""
    i, f, g, o = gates.chunk(4, 1)
    out = torch.zeros_like(cx) if hy is None else hy
    cell = _add(out * o * (1 - cy.tanh() ** 2), grad_cy)
    of_o = out * cy.tanh() * o * (1 - o)
    of_others = cell * g * i * (1 - i), cell * cx * f * (1 - f), cell * i * (1 - g**2)
    grad = torch.cat([*of_others, of_o], 1)
    return grad, cell * f, grad.sum(0) if bias else None


def gru(inputs: Tensor, hidden: Tensor, hx: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    """Return the hidden state, and for the gradient r, z, n, the state before and its part of n."""
    for_input, for_hidden = biases or (None, None)
    (ir, iz, new), (hr, hz, old) = (
        _add(gates, bias).chunk(3, 1) for gates, bias in ((inputs, for_input), (hidden, for_hidden))
    )
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * old).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, old], 1)


def gru_grad(grad: Tensor, saved: Tensor, bias: bool) -> tuple[Tensor | None, ...]:
    """Return the gradients of both kinds of gates, of the state before, and of two biases."""
    r, z, n, hx, old = saved.chunk(5, 1)
    of_n = grad * (1 - z) * (1 - n**2)
    of_r, of_z = of_n * old * r * (1 - r), grad * (hx - n) * z * (1 - z)
    inputs, hidden = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
    biases = (inputs.sum(0), hidden.sum(0)) if bias else (None, None)
    return inputs, hidden, grad * z, *biases


FUSED = {
    "_thnn_fused_lstm_cell": lstm,
    "_thnn_fused_lstm_cell_backward_impl": lstm_grad,
    "_thnn_fused_gru_cell": gru,
    "_thnn_fused_gru_cell_backward": gru_grad,
}
