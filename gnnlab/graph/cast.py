"""The precision of features: half the bits take half the memory and half the bandwidth."""

from __future__ import annotations

import torch

from gnnlab.graph.core import GraphT


def to_bfloat16(g: GraphT) -> GraphT:
    """Return the graph with all floating-point features as bfloat16; other features stay.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0], [1]))
    >>> g.ndata["h"] = torch.ones(2)
    >>> dgl.to_bfloat16(g).ndata["h"]
    tensor([1., 1.], dtype=torch.bfloat16)
    """
    return _cast(g, torch.bfloat16)


def to_half(g: GraphT) -> GraphT:
    """Return the graph with all floating-point features as float16; other features stay."""
    return _cast(g, torch.float16)


def to_float(g: GraphT) -> GraphT:
    """Return the graph with all floating-point features as float32; other features stay."""
    return _cast(g, torch.float32)


def to_double(g: GraphT) -> GraphT:
    """Return the graph with all floating-point features as float64; other features stay."""
    return _cast(g, torch.float64)


def _cast(g: GraphT, dtype: torch.dtype) -> GraphT:
    twin = g.local_var()
    for frames in (twin.src_frames, twin.dst_frames, twin.edge_frames):
        for frame in frames.values():
            for name, value in list(frame.items()):
                if value.is_floating_point():
                    frame[name] = value.to(dtype)
    return twin
