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

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(filename: str | Path, tensor_dict: Mapping[str, torch.Tensor]) -> None:
    """Write tensors to a file, atomically.

    Parameters
    ----------
    filename : str or Path
    tensor_dict : dict
        Name → tensor of any shape and dtype.

    Raises
    ------
    OSError
        The file cannot be written; also a GNNLabError.

    Examples
    --------
    >>> import tempfile
    >>> import gnnlab.compat as dgl
    >>> import torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dgl.data.save_tensors(f"{folder}/node_feat.safetensors", {"feat": torch.arange(3)})
    ...     dgl.data.load_tensors(f"{folder}/node_feat.safetensors")
    {'feat': tensor([0, 1, 2])}

    References
    ----------
    DGL user guide, chapter 7.1, "Preprocessing for Distributed Training".
    """
    wrong = [name for name, tensor in tensor_dict.items() if not isinstance(tensor, torch.Tensor)]
    if wrong:
        raise InvalidInput(f"save_tensors takes tensors; {', '.join(map(repr, wrong))} are none")
    write_arrays(Path(filename), tensor_dict)


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
        The file is missing, damaged or of another format. A checksum covers each byte of a file
        of gnnlab. If the file cannot be read, the error is an OSError too.
    """
    path = Path(filename)
    with reading(path, InvalidInput), open(path, "rb") as file:
        is_of_dgl = file.read(8) == TENSORS_MAGIC
    if is_of_dgl:
        return read_tensors(path)
    with open_arrays(path, "save_tensors") as arrays:
        return {name: arrays[name] for name in arrays.names}
