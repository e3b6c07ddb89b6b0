"""Saving and loading graphs.

A file holds arrays (:mod:`gnnlab.graph.arrayfile`), no executable code, and a JSON text that says
what the arrays mean. :func:`load_graphs` checks all of it, so a damaged file cannot do harm.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gnnlab.errors import (
    GNNLabError,
    InvalidInput,
    OutOfRange,
    file_error,
    list_of_graphs,
    reading,
    writing,
)
from gnnlab.graph.arrayfile import open_arrays, write_arrays
from gnnlab.graph.core import refuse_block
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import is_scalar, read_ids
from gnnlab.graph.relation import Relation, check_integers, checked_adjacency

_FORMAT = "gnnlab.graphs/1"
_DTYPES = {"int64": torch.int64, "int32": torch.int32}
_OTHER_FORMATS = {
    bytes.fromhex("3fa1b446f04f2edd"): "is a file of DGL; gnnlab.compat.load_graphs reads it",
    b"PK\x03\x04": "is a zip archive, as torch.save and numpy.savez write; open it with "
    "torch.load(…, weights_only=True) or numpy.load",
    b"\x80": "is a pickle; open it with pickle.load, but only if you trust where it comes from",
}


def save_graphs(
    filename: str | os.PathLike[str],
    g_list: Graph | Sequence[Graph],
    labels: Mapping[str, Any] | None = None,
    formats: str | Sequence[str] | None = None,
) -> None:
    """Write graphs to one file, with their features, atomically.

    Parameters
    ----------
    filename : path
        Replaced atomically if it exists. A missing folder is created.
    g_list : Graph or list of Graph
    labels : dict of str to tensor, optional
        Further tensors, such as a label per graph.
    formats : str or list of str, optional
        Sparse formats to store, of "coo", "csr", "csc"; by default those that exist.

    Raises
    ------
    InvalidInput
        The path is a folder, or a feature has a dtype that the format lacks.
    OSError
        The file cannot be written; also a GNNLabError.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> file = tempfile.mkdtemp() + "/two.graphs"
    >>> two = [dgl.graph(([0], [1])), dgl.rand_graph(5, 8)]
    >>> dgl.save_graphs(file, two, {"y": torch.tensor([0, 1])})
    >>> graphs, labels = dgl.load_graphs(file)
    >>> graphs[1].num_edges(), labels["y"]
    (8, tensor([0, 1]))
    """
    graphs = [g_list] if isinstance(g_list, Graph) else list_of_graphs(g_list, "save_graphs")
    arrays = _Arrays()
    content = {
        "graphs": [_describe(g, i, arrays, formats) for i, g in enumerate(graphs)],
        "labels": {
            name: arrays.add(as_tensor(value), f"label {name}")
            for name, value in (labels or {}).items()
        },
    }
    metadata = {"format": _FORMAT, "content": json.dumps(content)}
    path = Path(filename)
    if os.path.isdir(path):
        message = f"{path} is a folder; give the name of a file in it"
        raise file_error(OSError(errno.EISDIR, ""), path, message, InvalidInput, "is_folder")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, arrays.found, metadata)


def load_graphs(
    filename: str | os.PathLike[str], idx_list: int | Iterable[int] | None = None
) -> tuple[list[Graph], dict[str, torch.Tensor]]:
    """Read a file that :func:`save_graphs` wrote; ``gnnlab.compat.load_graphs`` reads DGL's too.

    Parameters
    ----------
    idx_list : int or list of int, optional
        Positions of the graphs to read, or the position of one; all by default.

    Returns
    -------
    list of Graph
        In main memory.
    dict of str to torch.Tensor
        The labels.

    Raises
    ------
    OSError
        The file cannot be read, for instance a FileNotFoundError; also a GNNLabError.
    InvalidInput
        The file is not a file of graphs, or it is damaged: a checksum covers each of its bytes.
    OutOfRange
        ``idx_list`` has a position that the file does not have.
    """
    path = Path(filename)
    with reading(path), open(path, "rb") as opened:
        head = opened.read(9)
    _refuse_other_formats(path, head)
    with open_arrays(path, "save_graphs") as file:
        content = _content(file.metadata, path)
        wanted = read_wanted(idx_list, len(content["graphs"]), path)
        try:
            graphs = [_rebuild(content["graphs"][i], file.__getitem__) for i in wanted]
        except GNNLabError as error:  # about arrays, without the name of the file
            raise ValueError(str(error)) from error
        return graphs, {name: file[key] for name, key in content["labels"].items()}


def read_wanted(idx_list: int | Iterable[int] | None, count: int, path: Path) -> list[int]:
    """Return positions in a list of graphs, all by default; raise OutOfRange if it lacks one."""
    if idx_list is None:
        return list(range(count))
    if isinstance(idx_list, Iterable) and not is_scalar(idx_list):
        idx_list = list(idx_list)
    wanted: list[int] = read_ids(idx_list, count, "idx_list: graph", check=False).tolist()
    for i in wanted:
        if not 0 <= i < count:
            raise OutOfRange(f"{path} holds graphs 0 to {count - 1}; found {i} in idx_list")
    return wanted


class _Arrays:
    """The arrays of a file by name; one that is used twice is stored once."""

    def __init__(self) -> None:
        self.found: dict[str, torch.Tensor] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._storages: set[int] = set()

    def add(self, value: torch.Tensor, label: str) -> str:
        value = value.detach().cpu().contiguous()
        storage = value.untyped_storage().data_ptr()
        view = (storage, value.storage_offset(), value.dtype, value.shape)
        if value.numel() and view in self._names:
            return self._names[view]
        if storage in self._storages:
            value = value.clone()  # a different view of memory stored already
        else:
            self._storages.add(storage)
        name = self._names[view] = f"{len(self.found):06d} {label}"
        self.found[name] = value
        return name


def _describe(
    g: Graph, i: int, arrays: _Arrays, formats: str | Sequence[str] | None
) -> dict[str, Any]:
    refuse_block(g, "save_graphs")
    if formats is not None:
        g = g.formats(formats if isinstance(formats, str) else list(formats))

    def features(frame: Frame, where: str) -> dict[str, str]:
        return {name: arrays.add(x, f"{where} {name}") for name, x in frame.items()}

    nodes = [
        {"type": t, "count": f.num_rows, "features": features(f, f"graph {i} node {t}")}
        for t, f in g.node_frames().items()
    ]
    edges = [
        {
            "type": t,
            "structure": _describe_relation(r, arrays, f"graph {i} edge {' '.join(t)}"),
            "features": features(g.edge_frames[t], f"graph {i} edge {' '.join(t)}"),
        }
        for t, r in g.relations.items()
    ]
    idtype = str(g.idtype).removeprefix("torch.")
    return {"idtype": idtype, "formats": g._formats, "nodes": nodes, "edges": edges}


def _describe_relation(relation: Relation, arrays: _Arrays, where: str) -> dict[str, list[str]]:
    structure = {}
    for kind in relation.created():
        if kind == "coo":
            parts = dict(zip(("src", "dst"), relation.coo(), strict=True))
        else:
            adjacency = relation.csc() if kind == "csc" else relation.csr()
            parts = {"indptr": adjacency.indptr, "indices": adjacency.indices}
            if not adjacency.ordered:
                parts["eids"] = adjacency.eids
        structure[kind] = [arrays.add(x, f"{where} {kind} {name}") for name, x in parts.items()]
    return structure


# ---------------------------------------------------------------------------------- reading
def _refuse_other_formats(path: Path, head: bytes) -> None:
    if head[8:] == b"{":  # the header of a safetensors file
        return
    for magic, reason in _OTHER_FORMATS.items():
        if head.startswith(magic):
            raise InvalidInput(f"{path} {reason}")


def _content(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    if metadata.get("format") != _FORMAT:
        raise InvalidInput(
            f"{path} is a safetensors file, but not of graphs in the form {_FORMAT!r}; "
            "safetensors.torch.load_file opens it"
        )
    try:
        content = json.loads(metadata["content"])
        return {"graphs": list(content["graphs"]), "labels": dict(content["labels"])}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is damaged: its header does not describe graphs") from error


def _rebuild(described: Mapping[str, Any], tensor: Any) -> Graph:
    sizes = {str(each["type"]): int(each["count"]) for each in described["nodes"]}
    if min(sizes.values(), default=0) < 0:
        raise InvalidInput(f"expected numbers of nodes, 0 or more; found {sizes}")
    relations = {}
    for each in described["edges"]:
        src_type, name, dst_type = (str(part) for part in each["type"])
        ends = sizes[src_type], sizes[dst_type]
        relations[src_type, name, dst_type] = _rebuild_relation(each["structure"], *ends, tensor)
    g = Graph(sizes, relations, idtype=_DTYPES[described["idtype"]])
    for each in described["nodes"]:
        for name, key in each["features"].items():
            g.node_frames()[each["type"]][name] = tensor(key)
    for each in described["edges"]:
        for name, key in each["features"].items():
            g.edge_frames[tuple(each["type"])][name] = tensor(key)
    formats = described["formats"]
    return g if formats is None else g.formats([str(name) for name in formats])


def _rebuild_relation(
    structure: Mapping[str, Sequence[str]], num_src: int, num_dst: int, tensor: Any
) -> Relation:
    parts: dict[str, Any] = {}
    lengths = set()
    for kind, keys in structure.items():
        arrays = [tensor(key) for key in keys]
        if kind == "coo":
            src, dst = arrays
            check_integers(src)
            check_integers(dst)
            parts["coo"] = Relation.from_edges(src, dst, num_src, num_dst).coo()
            lengths.add(len(src))
        elif kind in ("csc", "csr"):
            groups, others = (num_dst, num_src) if kind == "csc" else (num_src, num_dst)
            parts[kind] = checked_adjacency(groups, others, *arrays)
            if not parts[kind].ascends():
                raise InvalidInput("edges of a node are not in the order of their IDs")
            lengths.add(len(parts[kind].indices))
        else:
            raise InvalidInput(f"unknown sparse format {kind!r}")
    if len(lengths) != 1:
        raise InvalidInput(f"sparse formats of one edge type have {sorted(lengths)} edges")
    return Relation(num_src, num_dst, **parts)
