"""Named tensors in one file of the safetensors format, which holds no executable code.

Files that DGL's ``save_tensors`` wrote can be read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.dglfile import TENSORS_MAGIC, read_tensors

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(filename: str | Path, tensor_dict: Mapping[str, torch.Tensor]) -> None:
    """Write tensors to a file.

    Parameters
    ----------
    filename : str or Path
    tensor_dict : dict
        Name → tensor of any shape and dtype.

    Examples
    --------
    >>> import tempfile
    >>> import gnnlab as dgl
    >>> import torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dgl.data.save_tensors(f"{folder}/node_feat.safetensors", {"feat": torch.arange(3)})
    ...     dgl.data.load_tensors(f"{folder}/node_feat.safetensors")
    {'feat': tensor([0, 1, 2])}

    References
    ----------
    DGL user guide, chapter 7.1, "Preprocessing for Distributed Training".
    """
    from safetensors.torch import save_file

    wrong = [name for name, tensor in tensor_dict.items() if not isinstance(tensor, torch.Tensor)]
    if wrong:
        raise InvalidInput(f"save_tensors takes tensors; {', '.join(map(repr, wrong))} are none")
    # safetensors refuses tensors that share memory.
    copies = {name: tensor.detach().clone().contiguous() for name, tensor in tensor_dict.items()}
    save_file(copies, filename)


def load_tensors(filename: str | Path) -> dict[str, torch.Tensor]:
    """Read tensors that :func:`save_tensors` of gnnlab or DGL wrote.

    Parameters
    ----------
    filename : str or Path

    Returns
    -------
    dict
        Name → tensor on the CPU.

    Raises
    ------
    InvalidInput
        The file is missing, damaged or of another format.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with open(filename, "rb") as file:
            is_of_dgl = file.read(8) == TENSORS_MAGIC
        return read_tensors(Path(filename)) if is_of_dgl else load_file(filename)
    except (SafetensorError, OSError) as error:
        raise InvalidInput(f"{filename}: not a file of save_tensors ({error})") from error
