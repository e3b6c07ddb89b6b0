"""``part0/node_feat.dgl`` and ``edge_feat.dgl``: the features of a part, read and written as DGL's.

DGL stores the features of a part in two files of tensors; programs that prepare data load such a
file, change it and save it again. gnnlab has one ``.npy`` file for each feature, which its JSON
file lists with a checksum. So ``load_tensors("graph/part0/node_feat.dgl")`` here returns the
features of the part beside ``graph/NAME.json``, mapped from their files, and ``save_tensors``
replaces them there. Each feature stays in one place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.partition.files import FORMAT, edge_folder, file_name, node_folder, read_config
from gnnlab.partition.load import load_partition_feats
from gnnlab.partition.writer import rewrite_features

_FILES = {"node_feat.dgl": True, "edge_feat.dgl": False}
_NOTE = "gnnlab stores these tensors in .npy files, which the JSON file one folder up lists.\n"


def part_of(filename: str | os.PathLike[str]) -> tuple[Path, int, bool] | None:
    """Return which features a file stands for: the JSON file, the part, whether of nodes.

    None for all other files, also of a partition that DGL wrote.
    """
    path = Path(filename)
    number = re.fullmatch(r"part([0-9]+)", path.parent.name)
    if path.name not in _FILES or number is None:
        return None
    part = int(number[1])
    found = []
    for config in path.parent.parent.glob("*.json"):
        try:
            content = json.loads(config.read_text("utf-8-sig"))
            listed = content.get("format") == FORMAT and content.get(f"part-{part}")
            if listed:
                is_here = Path(listed["node_feats"]).parts[0] == path.parent.name
                found.append((is_here, config.stat().st_mtime_ns, config))
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            continue
    return (max(found)[2], part, _FILES[path.name]) if found else None


def load_part_file(config: Path, part: int, of_nodes: bool) -> dict[str, torch.Tensor]:
    """Return "type/name" → features of the nodes, or edges, that a part owns."""
    both = load_partition_feats(config, part)
    return dict(both[0 if of_nodes else 1] or {})


def save_part_file(
    filename: str | os.PathLike[str],
    tensors: Mapping[str, torch.Tensor],
    config: Path,
    part: int,
    of_nodes: bool,
) -> None:
    """Replace the features of the nodes, or edges, that a part owns; ``tensors`` are all."""
    book = read_config(config).book(part)
    ranges: Mapping[Any, Any] = book.node_ranges if of_nodes else book.edge_ranges
    types = {kind if of_nodes else ":".join(kind): kind for kind in ranges}
    arrays = {}
    for name, tensor in tensors.items():
        of = max((each for each in types if name.startswith(f"{each}/")), key=len, default=None)
        if of is None:
            raise InvalidInput(
                f"{filename}: found the name {name!r}; expected TYPE/NAME, where TYPE is one of "
                + ", ".join(types)
            )
        kind, feature = types[of], name[len(of) + 1 :]
        rows = int(ranges[kind][part + 1] - ranges[kind][part])
        if tensor.ndim == 0 or len(tensor) != rows:
            raise InvalidInput(
                f"{filename}: {name!r} has shape {tuple(tensor.shape)}; part {part} owns {rows} of "
                f"these {'nodes' if of_nodes else 'edges'}"
            )
        name_of, what = (node_folder, "node_data") if of_nodes else (edge_folder, "edge_data")
        folder = name_of(part, what, kind)
        arrays[f"{folder}/{file_name(feature)}.npy"] = tensor
    rewrite_features(config, f"part{part}/{'node' if of_nodes else 'edge'}_data/", arrays)
    path = Path(filename)
    path.parent.mkdir(exist_ok=True)
    path.write_text(_NOTE)
