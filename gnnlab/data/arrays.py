"""A data set as ``.npy`` files: opens in a second where reading CSV took minutes.

``about.json`` lists the arrays with shapes and dtypes; other arrays in the folder are an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gnnlab.data.raw import RawDataset
from gnnlab.drafts import temporary_folder
from gnnlab.errors import InvalidInput

__all__ = ["load_arrays", "save_arrays"]

_ABOUT = "about.json"
_ARRAYS = ("src", "dst", "feat", "label", "train_idx", "val_idx", "test_idx")


def save_arrays(raw: RawDataset, folder: str | Path) -> None:
    """Write a data set; the folder is created only when all files are written.

    Parameters
    ----------
    raw : RawDataset
    folder : str or Path
        Must not exist yet.

    Examples
    --------
    >>> import tempfile
    >>> from gnnlab.data.arrays import load_arrays, save_arrays
    >>> from gnnlab.data.digits import read_digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_arrays(read_digits(), f"{folder}/digits")
    ...     load_arrays(f"{folder}/digits").num_edges
    9929
    """
    folder = Path(folder)
    if folder.exists():
        raise InvalidInput(f"{folder} exists already; delete it, or choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.parent, ".saving-", "") as staging:
        content = staging / "content"
        content.mkdir()
        arrays = {name: getattr(raw, name) for name in _ARRAYS}
        for name, array in arrays.items():
            np.save(content / f"{name}.npy", array)
        about = {
            "name": raw.name,
            "num_classes": raw.num_classes,
            "arrays": _describe(arrays),
        }
        (content / _ABOUT).write_text(json.dumps(about, indent=1), "utf8")
        os.replace(content, folder)


def load_arrays(folder: str | Path) -> RawDataset:
    """Read what :func:`save_arrays` wrote.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    RawDataset

    Raises
    ------
    InvalidInput
        A file is missing or damaged, or disagrees with ``about.json``.
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / _ABOUT).read_text("utf8"))
        arrays = {name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in _ARRAYS}
        found = _describe(arrays)
        if found != about["arrays"]:
            raise ValueError(f"found {found}; {_ABOUT} says {about['arrays']}")
        return RawDataset(name=about["name"], num_classes=about["num_classes"], **arrays)
    except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
        raise InvalidInput(
            f"{folder} is damaged ({error}); delete it, and it is made again"
        ) from error


def _describe(arrays: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: [list(array.shape), str(array.dtype)] for name, array in arrays.items()}
