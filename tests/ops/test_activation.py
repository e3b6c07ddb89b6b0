from __future__ import annotations

import pytest
import torch

from gnnlab.ops import relu_dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (5, 13), (2, 3, 4), ()])
def test_without_training_it_is_relu(shape: tuple, dtype: torch.dtype) -> None:
    x = torch.randn(shape).to(dtype)
    assert torch.equal(relu_dropout(x, 0.9, training=False), x.relu())
    assert torch.equal(relu_dropout(x, 0.0), x.relu())
    assert torch.equal(relu_dropout(x, 1.0), torch.zeros_like(x))
    assert relu_dropout(x, 0.5).shape == x.shape


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_drops_at_the_asked_rate_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(3)
    x = torch.ones(400, 501)
    out = relu_dropout(x, p)
    assert abs(out.eq(0).double().mean().item() - p) < 0.005
    kept = out[out > 0].unique()
    assert len(kept) == 1 and abs(kept.item() * (1 - p) - 1) < 1e-4
    # No column or row is special: each position of a hash decides on its own.
    assert out.eq(0).double().mean(0).sub(p).abs().max() < 0.12
    assert out.eq(0).double().mean(1).sub(p).abs().max() < 0.12
    quads = out.flatten()[: 400 * 501 // 4 * 4].view(-1, 4).eq(0).double()
    assert torch.corrcoef(quads.t()).fill_diagonal_(0).abs().max() < 0.02


def test_gradient_follows_the_mask() -> None:
    x = torch.randn(37, 11, requires_grad=True)
    out = relu_dropout(x, 0.25)
    weight = torch.ones_like(out).t().contiguous().t().requires_grad_()
    for more in False, True:  # with more, this gradient can be differentiated
        (grad,) = torch.autograd.grad(out, x, weight, retain_graph=True, create_graph=more)
        assert torch.equal(grad, out.gt(0) * torch.tensor(4 / 3))
    assert torch.equal(torch.autograd.grad(grad.sum(), weight)[0], out.gt(0) * torch.tensor(4 / 3))
    negative = relu_dropout(-x.detach().abs(), 0.25)
    assert negative.eq(0).all()


def test_views_and_nan() -> None:
    x = torch.randn(6, 4).t()
    torch.manual_seed(0)
    out = relu_dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(relu_dropout(x.contiguous(), 0.5), out)
    assert relu_dropout(torch.full((64,), float("nan")), 0.5).isnan().any()
