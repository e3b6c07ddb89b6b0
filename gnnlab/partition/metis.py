"""METIS, through the package pymetis.

METIS shrinks the graph by merging neighbors, cuts the small graph, and undoes the merging step by
step, moving nodes over the border wherever that saves edges.

References
----------
Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
SIAM Journal on Scientific Computing 20, 1998.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.random import next_key

__all__ = ["metis"]


def metis(
    neighbors: Callable[[Any], tuple[np.ndarray, np.ndarray]],
    weights: np.ndarray,
    num_parts: int,
    objtype: str,
) -> np.ndarray:
    """Partition with METIS, k-way.

    Parameters
    ----------
    neighbors : callable
        Takes the integer type that METIS was built for and returns the result of
        :func:`gnnlab.kernels.ldg.undirected`. METIS takes undirected graphs without repeated edges
        or self-loops.
    weights : ndarray
        Shape (N, C): what a node adds to each of C loads; all loads are balanced.
    num_parts : int
        K.
    objtype : {"cut", "vol"}

    Returns
    -------
    ndarray
        Shape (N,), int64: the part of each node.
    """
    try:
        import pymetis
    except ImportError as missing:
        raise InvalidInput(
            'the method "metis" needs the package pymetis, which cannot be imported here '
            f"({missing}). Install it (pip install pymetis; not on Windows), or pass "
            'method="ldg", which needs no other package'
        ) from missing
    if num_parts == 1 or num_parts >= len(weights):
        # Spread over all parts: consecutive parts share a machine.
        return np.arange(len(weights), dtype=np.int64) * num_parts // max(len(weights), 1)
    width = pymetis.zero_copy_dtype().type
    indptr, indices = neighbors(width)
    indptr = indptr.astype(width, copy=False)
    options = pymetis.Options(objtype=int(objtype == "vol"), seed=next_key() & 0x7FFFFFFF)
    try:
        if weights.shape[1] == 1:
            adjacency = pymetis.CSRAdjacency(indptr, indices)
            vweights = None if weights.max() == weights.min() else weights[:, 0].copy()
            found = pymetis.part_graph(
                num_parts, adjacency, vweights=vweights, recursive=False, options=options
            )
            return np.asarray(found.vertex_part, np.int64)
        return _several_loads(num_parts, indptr, indices, weights, options)
    except (MemoryError, RuntimeError, SystemError) as error:
        raise GNNLabError(
            f"METIS failed on {len(weights)} nodes and {len(indices)} neighbors ({error}); it "
            'may be short of memory: method="ldg" needs less'
        ) from error


def _several_loads(
    num_parts: int, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, options: Any
) -> np.ndarray:
    """Balance several loads at once, which METIS supports and pymetis does not.

    So the C function is called in the library that pymetis bundles.
    """
    from pymetis import _internal

    width = ctypes.c_int64 if indices.dtype == np.int64 else ctypes.c_int32
    try:
        kway = ctypes.CDLL(_internal.__file__).METIS_PartGraphKway
    except (AttributeError, OSError) as error:
        raise GNNLabError(
            f"this build of pymetis hides METIS' own function ({error}), without which only one "
            "load can be balanced: leave out balance_ntypes and balance_edges (and node types), "
            'or use method="ldg"'
        ) from error
    part = np.empty(len(weights), indices.dtype)
    weights = weights.astype(indices.dtype)

    def number(value: int) -> Any:
        return ctypes.byref(width(value))

    def array(values: np.ndarray) -> Any:
        return values.ctypes.data_as(ctypes.c_void_p)

    status = kway(
        number(len(weights)),
        number(weights.shape[1]),
        array(indptr),
        array(indices),
        array(weights),
        None,  # size of a node's copy: 1
        None,  # weight of an edge: 1
        number(num_parts),
        None,  # share of each part: equal
        None,  # tolerance of each load: the default
        (width * 40)(*(options._get(i) for i in range(40))),
        number(0),  # receives the cut
        array(part),
    )
    if status != 1:
        raise RuntimeError(f"status {status}")
    return part.astype(np.int64)
