"""Named tensors in one file (:mod:`gnnlab.graph.arrayfile`), which holds no executable code.

Files that DGL's ``save_tensors`` wrote can be read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from gnnlab.compat.dglfile import TENSORS_MAGIC, read_tensors
from gnnlab.errors import InvalidInput, reading
from gnnlab.graph.arrayfile import open_arrays, write_arrays


def save_tensors(filename: str | Path, tensor_dict: Mapping[str, torch.Tensor]) -> None:
    """Write name → tensor of any shape and dtype to a file, atomically.

    Examples
    --------
    >>> import tempfile, torch, gnnlab.compat as dgl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dgl.data.save_tensors(f"{folder}/node_feat.safetensors", {"feat": torch.arange(3)})
    ...     dgl.data.load_tensors(f"{folder}/node_feat.safetensors")
    {'feat': tensor([0, 1, 2])}
    """
    wrong = [name for name, tensor in tensor_dict.items() if not isinstance(tensor, torch.Tensor)]
    if wrong:
        raise InvalidInput(f"save_tensors takes tensors; {', '.join(map(repr, wrong))} are none")
    write_arrays(Path(filename), tensor_dict)


def load_tensors(filename: str | Path) -> dict[str, torch.Tensor]:
    """Read tensors that :func:`save_tensors` of gnnlab or DGL wrote."""
    path = Path(filename)
    with reading(path, InvalidInput), open(path, "rb") as file:
        is_of_dgl = file.read(8) == TENSORS_MAGIC
    if is_of_dgl:
        return read_tensors(path)
    with open_arrays(path, "save_tensors") as arrays:
        return {name: arrays[name] for name in arrays.names}
