"""What DGL keeps in ``dgl.utils``: small helpers that layers of programs use."""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnlab.compat import lazy
from gnnlab.errors import DGLError, InvalidInput, NotFound
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers, is_scalar
from gnnlab.graph.names import EID, NID
from gnnlab.multiprocessing import explained


def expand_as_pair(input_: Any, g: Graph | None = None) -> tuple[Any, Any]:
    """Return the features of source and destination nodes for an argument that may be either.

    A pair is returned as it is. On a block, destination nodes are the first of the source nodes.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.utils import expand_as_pair
    >>> source, destination = expand_as_pair(torch.ones(3, 2))
    >>> source is destination
    True
    """
    if isinstance(input_, tuple):
        return input_
    if g is not None and g.is_block:
        if isinstance(input_, Mapping):
            first = {k: v[: g.num_dst_nodes(k)] for k, v in input_.items() if k in g.dsttypes}
            return input_, first
        return input_, input_[: g.num_dst_nodes()]
    return input_, input_


def check_eq_shape(input_: Any) -> None:
    """Raise DGLError if the features of source and destination nodes differ in their row shape."""
    source, destination = expand_as_pair(input_)
    if source.shape[1:] != destination.shape[1:]:
        raise DGLError(
            f"the features of source nodes have rows of shape {tuple(source.shape[1:])}, those of "
            f"destination nodes {tuple(destination.shape[1:])}: this layer needs equal ones"
        )


def recursive_apply(data: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function to each tensor, or other leaf, of nested dicts, lists and tuples."""
    if isinstance(data, Mapping):
        return {key: recursive_apply(value, fn, *args, **kwargs) for key, value in data.items()}
    if isinstance(data, list | tuple) and not isinstance(data, Tensor):
        values = [recursive_apply(value, fn, *args, **kwargs) for value in data]
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*values)
        return type(data)(values)
    return fn(data, *args, **kwargs)


def prepare_tensor(g: Graph, data: Any, name: str) -> Tensor:
    """Return IDs, one or many, as a tensor (K,) of the graph's dtype on its device.

    A tensor must have these already. ``name`` is the subject of errors.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.utils.prepare_tensor(dgl.graph(([0], [1])).int(), [0, 1], "nodes")
    tensor([0, 1], dtype=torch.int32)
    """
    ids = as_integers(data, name)
    if not isinstance(data, Tensor):
        ids = ids.to(g.device, g.idtype).reshape(1 if is_scalar(data) else ids.shape)
    if (ids.dtype, ids.device, ids.dim()) != (g.idtype, g.device, 1):
        raise InvalidInput(
            f"{name} must be of shape (K,), {g.idtype}, on {g.device}, as the graph's IDs; found "
            f"shape {tuple(ids.shape)}, {ids.dtype}, on {ids.device}"
        )
    return ids


def prepare_tensor_dict(g: Graph, data: Mapping[Any, Any], name: str) -> dict[Any, Tensor]:
    """Apply :func:`prepare_tensor` to each value of a dict."""
    return {key: prepare_tensor(g, ids, f"{name}[{key!r}]") for key, ids in data.items()}


def extract_node_subframes(
    graph: Graph, nodes_or_device: Any = None, store_ids: bool = True
) -> list[Frame]:
    """Return frames with the features of some nodes of each type, which are gathered when read.

    ``nodes_or_device`` has IDs for each of ``graph.ntypes`` (of a block: source types, then
    destination types); ``store_ids`` adds them as ``dgl.NID``. A device, or None, takes all nodes,
    moved there or shared.
    """
    return _subframes(_node_places(graph), nodes_or_device, NID if store_ids else None)


def extract_edge_subframes(
    graph: Graph, edges_or_device: Any = None, store_ids: bool = True
) -> list[Frame]:
    """As :func:`extract_node_subframes`, for IDs for each of ``graph.canonical_etypes``."""
    return _subframes(_edge_places(graph), edges_or_device, EID if store_ids else None)


def set_new_frames(
    graph: Graph,
    *,
    node_frames: Sequence[Frame] | None = None,
    edge_frames: Sequence[Frame] | None = None,
) -> None:
    """Replace the features of all nodes, or edges, by frames in the order of the types.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.ndata["h"] = torch.tensor([5, 6, 7])
    >>> part = g.edge_subgraph([1], relabel_nodes=False)
    >>> part.ndata.clear()
    >>> frames = dgl.utils.extract_node_subframes(g, [torch.tensor([2, 1, 0])], store_ids=False)
    >>> dgl.utils.set_new_frames(part, node_frames=frames)
    >>> part.ndata["h"]
    tensor([7, 6, 5])
    """
    given = (("node_frames", node_frames, _node_places), ("edge_frames", edge_frames, _edge_places))
    for name, frames, places in given:
        if frames is None:
            continue
        now = places(graph)
        sizes = [frame.num_rows for _, _, frame in now]
        if (found := [frame.num_rows for frame in frames]) != sizes:
            raise InvalidInput(f"{name} needs frames of {sizes} rows, one a type; found {found}")
        for (side, key, old), new in zip(now, frames, strict=True):
            columns = {column: new.column(column) for column in new}
            side[key] = Frame(old.num_rows, columns, old.device, old.what, old.initializers)


_Place = tuple[dict[Any, Frame], Any, Frame]  # the dict that holds a frame, its key, the frame


def _node_places(graph: Graph) -> list[_Place]:
    sides = [graph.src_frames]
    if graph.dst_frames is not graph.src_frames:
        sides.append(graph.dst_frames)
    return [(side, key, frame) for side in sides for key, frame in side.items()]


def _edge_places(graph: Graph) -> list[_Place]:
    return [(graph.edge_frames, key, frame) for key, frame in graph.edge_frames.items()]


def _subframes(places: list[_Place], which: Any, id_name: str | None) -> list[Frame]:
    frames = [frame for _, _, frame in places]
    if which is None:
        return [frame.copy() for frame in frames]
    if isinstance(which, torch.device | str):
        return [frame.to(torch.device(which)) for frame in frames]
    if len(which) != len(frames):
        raise InvalidInput(f"give IDs for each of {len(frames)} types; found {len(which)}")
    made = []
    for frame, ids in zip(frames, which, strict=True):
        columns = frame.rows(ids.long()) | ({id_name: ids} if id_name else {})
        made.append(Frame(len(ids), columns, frame.device, frame.what))
    return made


# ------------------------------------------------------------------------ shared memory by name
def create_shared_mem_array(name: str, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return zeros in memory that other processes of this machine open by ``name``.

    The name is free again when the tensor, or this process, ends; an older one is replaced. Tensors
    that were opened stay valid.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.compat.utils import create_shared_mem_array, get_shared_mem_array
    >>> counts = create_shared_mem_array("counts", (2,), torch.int64)
    >>> get_shared_mem_array("counts", (2,), torch.int64).add_(1)
    tensor([1, 1])
    >>> counts
    tensor([1, 1])
    """
    path, size = _shared_path(name), math.prod(shape) * dtype.itemsize
    with explained(size):
        descriptor, new = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            os.ftruncate(descriptor, size)
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise
        finally:
            os.close(descriptor)
    tensor = get_shared_mem_array(name, shape, dtype)
    weakref.finalize(tensor, _forget, path, path.stat().st_ino, os.getpid())
    return tensor


def get_shared_mem_array(name: str, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return the tensor that some process made with :func:`create_shared_mem_array`."""
    path, size = _shared_path(name), math.prod(shape) * dtype.itemsize
    if not path.exists():
        raise NotFound(f"no shared tensor {name!r}: its process has ended, or has not made it yet")
    if path.stat().st_size != size:
        raise InvalidInput(
            f"the shared tensor {name!r} has {path.stat().st_size} bytes; {tuple(shape)} of "
            f"{dtype} has {size}"
        )
    found = torch.from_file(str(path), True, math.prod(shape), dtype=dtype) if size else None
    return torch.zeros(tuple(shape), dtype=dtype) if found is None else found.view(tuple(shape))


def _shared_path(name: str) -> Path:
    if not name or os.sep in name.strip(os.sep):
        raise InvalidInput(f"a name of shared memory is one without slashes; found {name!r}")
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    return Path(folder, f"gnnlab-{os.getuid() if hasattr(os, 'getuid') else ''}-{name.strip('/')}")


def _forget(path: Path, number: int, process: int) -> None:
    if os.getpid() == process and path.exists() and path.stat().st_ino == number:
        path.unlink()


_MODULES = {"torch": "get_num_threads set_num_threads", __name__: "apply_each=recursive_apply"}
__getattr__, __dir__ = lazy.attributes(__name__, "", _MODULES)
