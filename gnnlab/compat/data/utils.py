"""``dgl.data.utils``: downloads, archives, saved information and splits, under DGL's names.

Differences from DGL: a broken download is resumed and stored only when it is complete; an archive
that would write outside of its folder is refused; ``load_info`` reads data and runs no code.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import shutil
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Subset as Subset

from gnnlab.compat.data import tensors
from gnnlab.compat.dglfile import load_graphs as load_graphs
from gnnlab.compat.distributed import part_files
from gnnlab.data.download import DownloadFailed, extract, locked, transfer, unpack
from gnnlab.data.split import check_fractions, random_split, split_points
from gnnlab.errors import InvalidInput, check_file, reading, writing
from gnnlab.graph.io import save_graphs as save_graphs
from gnnlab.system.staging import check_replaceable, replacing


def load_tensors(filename: str | Path, return_dgl_ndarray: bool = False) -> dict[str, torch.Tensor]:
    """Read tensors that :func:`save_tensors` wrote; see :mod:`gnnlab.compat.data.tensors`.

    ``part0/node_feat.dgl`` and ``part0/edge_feat.dgl`` beside the JSON file of a partition give
    the features of that part.
    """
    if return_dgl_ndarray:
        raise InvalidInput("there are no arrays but tensors: leave return_dgl_ndarray out")
    part = part_files.part_of(filename)
    return part_files.load_part_file(*part) if part else tensors.load_tensors(filename)


def save_tensors(filename: str | Path, tensor_dict: Mapping[str, torch.Tensor]) -> None:
    """Write tensors to a file; see :mod:`gnnlab.compat.data.tensors`.

    ``part0/node_feat.dgl`` and ``part0/edge_feat.dgl`` beside the JSON file of a partition replace
    the features of that part.
    """
    if part := part_files.part_of(filename):
        part_files.save_part_file(filename, tensor_dict, *part)
    else:
        tensors.save_tensors(filename, tensor_dict)


def _get_dgl_url(file_url: str) -> str:
    """Return the address of a file on DGL's server, or on the mirror ``$DGL_REPO``."""
    return os.environ.get("DGL_REPO", "https://data.dgl.ai/").rstrip("/") + "/" + file_url


def get_download_dir() -> str:
    """Return the folder of downloads, and make it: ``$DGL_DOWNLOAD_DIR``, otherwise
    ``$GNNLAB_DATA_DIR``, otherwise ``~/.dgl``.
    """
    named = os.environ.get("DGL_DOWNLOAD_DIR") or os.environ.get("GNNLAB_DATA_DIR")
    folder = Path(named or "~/.dgl").expanduser()
    makedirs(folder)
    return str(folder)


def makedirs(path: str | os.PathLike[str]) -> None:
    """Make a folder and its parents; nothing happens if it exists."""
    with writing(path):
        os.makedirs(os.path.expanduser(path), exist_ok=True)


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Return whether a file has a SHA-1, given as hexadecimal digits."""
    with reading(filename), open(filename, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest() == sha1_hash.lower()


def download(
    url: str,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = True,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
    log: bool = True,
) -> str:
    """Download a file and return its path, which holds the old file until the new is complete.

    ``path`` is the file to write, or an existing folder; by default the current one. What exists is
    kept if not ``overwrite`` and if ``sha1_hash``, in hexadecimal, fits or is None. Each of the
    ``retries`` goes on where the last one stopped. ``log`` shows a bar after a second.
    """
    name = url.rsplit("/", 1)[-1]
    target = Path(name if path is None else path).expanduser()
    if target.is_dir() or str(path or "").endswith("/"):
        target = target / name
    with writing(target):
        check_replaceable(target)
    with locked(target.parent):
        keep = target.exists() and not overwrite
        if keep and (sha1_hash is None or check_sha1(target, sha1_hash)):
            return str(target)
        part = target.with_name(f"{target.name}.part")
        for left in reversed(range(max(retries, 0) + 1)):
            try:
                transfer(url, part, 1.0, log, verify_ssl)
                break
            except DownloadFailed:
                if not left:
                    raise
        if sha1_hash is not None and not check_sha1(part, sha1_hash):
            part.unlink()
            raise DownloadFailed(
                f"{url} does not have the expected SHA-1 {sha1_hash}; nothing was kept. Try again; "
                "if the file was replaced on purpose, correct sha1_hash"
            )
        os.replace(part, target)
        part.with_name(f"{part.name}.version").unlink(missing_ok=True)
    return str(target)


def extract_archive(
    file: str | os.PathLike[str], target_dir: str | os.PathLike[str], overwrite: bool = True
) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz``, ``.tgz`` or ``.gz`` file into a folder.

    A new folder appears when all is unpacked. If not ``overwrite`` and it exists, nothing is done.
    """
    archive, folder = Path(file), Path(target_dir)
    if folder.exists() and not overwrite:
        return
    kinds = (".zip", ".tar", ".tar.gz", ".tgz", ".gz")
    if not archive.name.endswith(kinds):
        raise InvalidInput(f"{archive}: unknown kind of archive; expected {', '.join(kinds)}")
    check_file(archive, "give the path of an archive")
    if not archive.name.endswith(".gz") or archive.name.endswith(".tar.gz"):
        with locked(folder.parent):  # a new folder appears when it is complete
            if folder.exists():
                extract(archive, folder)
            else:
                unpack(archive, folder, one_folder=False)
        return
    makedirs(folder)
    target = folder / archive.stem
    with writing(target):
        try:
            with replacing(target) as out, gzip.open(archive) as source:
                shutil.copyfileobj(source, out)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInput(f"{archive}: damaged ({error}); delete it and try again") from error


def save_info(path: str | os.PathLike[str], info: Any) -> None:
    """Write a dict of numbers, texts, lists, dicts, numpy arrays and tensors to a file.

    Examples
    --------
    >>> import tempfile
    >>> import gnnlab.compat as dgl
    >>> file = tempfile.mkdtemp() + "/info.pkl"
    >>> dgl.data.utils.save_info(file, {"num_classes": 3})
    >>> dgl.data.utils.load_info(file)
    {'num_classes': 3}
    """
    content = pickle.dumps(info)
    _Plain(io.BytesIO(content), str(path)).load()  # what could not be read is not written
    with writing(path), replacing(Path(path)) as file:
        file.write(content + _sum(content))


def _sum(content: bytes) -> bytes:
    """Return the checksum that follows a pickle, where other readers do not look."""
    return b"gnnlab.crc32" + zlib.crc32(content).to_bytes(4, "little")


def load_info(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save_info` of gnnlab or DGL wrote.

    A file that is damaged, or holds other objects than data, raises InvalidInput: loading those can
    run any code.
    """
    with reading(path):
        content = Path(path).read_bytes()
    stream, size = io.BytesIO(content), len(_sum(b""))
    has_sum = content[-size:-4] == _sum(b"")[:-4]  # files of DGL end with the pickle
    try:
        if has_sum and content[-size:] != _sum(content[:-size]):
            raise ValueError("its checksum differs")
        info = _Plain(stream, str(path)).load()
        if stream.read() and not has_sum:
            raise ValueError("its checksum is missing")
        return info
    except InvalidInput:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise InvalidInput(f"{path}: not a file of save_info ({error})") from error


_DATA = {
    "builtins": {"bytearray", "complex", "frozenset", "set", "slice"},
    "collections": {"OrderedDict", "defaultdict"},
    "_codecs": {"encode"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "torch._utils": {"_rebuild_tensor_v2"},
    "torch": {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)},
}


class _Plain(pickle.Unpickler):
    """Unpickles data; any other class or function is refused."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file)
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return lambda content: torch.load(io.BytesIO(content), weights_only=True)
        module = module.replace("__builtin__", "builtins").replace("numpy.core", "numpy._core")
        if name in _DATA.get(module, ()):
            return super().find_class(module, name)
        raise InvalidInput(
            f"{self.path}: holds {module}.{name}; expected numbers, texts, lists, dicts, arrays "
            "and tensors. If you trust its origin, open it with pickle.load"
        )


def load_labels(filename: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Return the labels in a file of :func:`save_graphs`, without the graphs."""
    return load_graphs(filename, [])[1]


def loadtxt(path: str | os.PathLike[str], delimiter: str, dtype: Any = None) -> np.ndarray:
    """Read a text file of numbers into an array of shape (lines, columns), float64 by default."""
    import pandas as pd

    try:
        with reading(path):
            table = pd.read_csv(path, delimiter=delimiter, header=None)
        return table.to_numpy(dtype or np.float64)
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: not a table of numbers ({error})") from error


def idx2mask(idx: Any, len: int) -> np.ndarray:
    """Return an array of shape (len,), int64: 1 at the given positions, 0 elsewhere."""
    mask = np.zeros(len, np.int64)
    mask[np.asarray(idx)] = 1
    return mask


def generate_mask_tensor(mask: Any) -> torch.Tensor:
    """Return an array of 0 and 1 as a tensor, bool."""
    return torch.as_tensor(np.asarray(mask)).bool()


def add_nodepred_split(dataset: Any, ratio: Sequence[float], ntype: str | None = None) -> None:
    """Draw a split of the nodes and store it as masks in every graph of a data set.

    ``ratio`` has the fractions of training, validation and test nodes; ``dataset[i]`` must return
    the same graph at each access.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dataset = dgl.data.load("digits")
    >>> dgl.data.add_nodepred_split(dataset, [0.8, 0.1, 0.1])
    >>> dataset[0].ndata["train_mask"].sum()
    tensor(1438)
    """
    if len(ratio) != 3:
        raise InvalidInput(f"a split needs 3 fractions; found {ratio}")
    for number in range(len(dataset)):
        g = dataset[number]
        g = g[0] if isinstance(g, tuple) else g
        data = g.ndata if ntype is None else g.nodes[ntype].data
        count = g.num_nodes(ntype) if ntype is not None else g.num_nodes()
        for part, ids in zip(("train", "val", "test"), random_split(count, ratio), strict=True):
            data[f"{part}_mask"] = generate_mask_tensor(idx2mask(ids, count))


def deprecate_property(old: str, new: str) -> None:
    """Warn that a property, function or class has a new name."""
    warnings.warn(f"{old} will be deprecated, please use {new} instead.", stacklevel=3)


deprecate_function = deprecate_class = deprecate_property


def split_dataset(
    dataset: Any,
    frac_list: Sequence[float] | None = None,
    shuffle: bool = False,
    random_state: int | None = None,
) -> list[Subset]:
    """Split a dataset of many items (usually graphs) into three subsets.

    ``frac_list`` are fractions, by default 0.8, 0.1, 0.1; ``shuffle`` draws the items, with the
    seed ``random_state``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> train, val, test = dgl.data.split_dataset(range(10))
    >>> list(train), list(test)
    ([0, 1, 2, 3, 4, 5, 6, 7], [9])
    """
    fractions = (0.8, 0.1, 0.1) if frac_list is None else frac_list
    check_fractions(fractions, 3)
    count = len(dataset)
    order = np.random.RandomState(random_state).permutation(count) if shuffle else np.arange(count)
    return [
        Subset(dataset, part.tolist()) for part in np.split(order, split_points(count, fractions))
    ]
