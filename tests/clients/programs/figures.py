"""What the three programs share: weights that depend on no random numbers, and figures as JSON."""

import json
import sys

import torch


def same_weights(model):
    """Set weights and biases to numbers that are the same with any version of torch."""
    with torch.no_grad():
        for number, (name, weight) in enumerate(sorted(model.named_parameters())):
            kind = name.rpartition(".")[2]
            is_matrix = weight.dim() > 1 and "radial_pooling" not in name  # filters stay
            if weight.requires_grad and (is_matrix or "bias" in kind):
                places = torch.arange(weight.numel(), dtype=torch.float64) + 0.1 * number
                noise = 2 * (torch.sin(places * 12.9898) * 43758.5453).frac()
                weight.copy_((noise / max(weight.shape[-1], 4) ** 0.5).view(weight.shape))


def gradients(model):
    """The size of the gradient of each parameter."""
    return {
        name: weight.grad.norm().item()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }


def numbers(tensor):
    """A tensor as nested lists."""
    return tensor.detach().tolist()


def write(figures):
    """Print the figures, or write them to the file that the command line names."""
    figures = json.loads(
        json.dumps(figures), parse_float=lambda digits: float(f"{float(digits):.8g}")
    )
    text = json.dumps(figures, sort_keys=True)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    else:
        print(text)
