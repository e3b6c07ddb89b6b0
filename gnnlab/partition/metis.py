"""METIS, through the package pymetis.

METIS shrinks the graph by merging neighbors, cuts the small graph, and undoes the merging step by
step, moving nodes over the border wherever that saves edges.

It draws from ``rand()`` of C. All threads of a process share its state, so a number drawn by
another thread, such as ZeroMQ's, would change the parts. METIS therefore runs in a forked child,
which has one thread; without fork (Windows), in this process.

References
----------
Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
SIAM Journal on Scientific Computing 20, 1998.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NoReturn

import numpy as np

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.random import next_key

SLACK = 1.03  # maximum load of a part over its share; METIS' own default for k-way
_TEXT = 500  # bytes for the message of a child that failed
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h
_PATIENCE = 2  # seconds for one number of rand()


@cache
def default_method() -> str:
    """Return "metis", or "ldg" with a warning, once, where pymetis cannot be imported."""
    try:
        import pymetis  # noqa: F401
    except ImportError as missing:
        warnings.warn(
            f"pymetis cannot be imported here ({missing}): without part_method, graphs are "
            'partitioned by "ldg", which usually cuts more edges than METIS',
            stacklevel=3,
        )
        return "ldg"
    return "metis"


def metis(
    neighbors: Callable[[Any], tuple[np.ndarray, np.ndarray]],
    weights: np.ndarray,
    num_parts: int,
    objtype: str,
) -> np.ndarray:
    """Return the part of each node, (N,), int64, by METIS, k-way.

    ``neighbors`` takes the integer type that METIS was built for and returns the result of
    :func:`gnnlab.kernels.ldg.undirected`: METIS takes undirected graphs without repeated edges or
    self-loops. ``weights``, (N, C), is what a node adds to each of C loads.
    """
    try:
        import pymetis
    except ImportError as missing:
        raise InvalidInput(
            'the method "metis" needs the package pymetis, which cannot be imported here '
            f"({missing}). Install it (pip install pymetis; macOS, and Linux on x86-64), or pass "
            'part_method="ldg", which needs no other package'
        ) from missing
    if num_parts == 1 or num_parts >= len(weights):
        # Spread over all parts: consecutive parts share a machine.
        return np.arange(len(weights), dtype=np.int64) * num_parts // max(len(weights), 1)
    width = pymetis.zero_copy_dtype().type
    indptr, indices = neighbors(width)
    num_nodes, more = len(weights), _fillers(weights, num_parts)
    weights = np.concatenate([weights, more])
    indptr = np.append(indptr, [indptr[-1]] * len(more)).astype(width, copy=False)
    options = pymetis.Options(objtype=int(objtype == "vol"), seed=next_key() & 0x7FFFFFFF)
    given = num_parts, indptr, indices, weights, options
    one = weights.shape[1] == 1
    work = partial(_one_load, *given) if one else partial(_several_loads, _kway(), *given)
    try:
        if hasattr(os, "fork"):
            return _in_child(work, len(weights))[:num_nodes]
        return np.asarray(work(), np.int64)[:num_nodes]
    except (MemoryError, OSError, RuntimeError, SystemError) as error:
        raise GNNLabError(
            f"METIS failed on {num_nodes} nodes and {len(indices)} neighbors ({error}); it "
            'may be short of memory: part_method="ldg" needs less'
        ) from error


def _fillers(weights: np.ndarray, num_parts: int) -> np.ndarray:
    """Return the weights of nodes without edges that make small classes divisible; (F, C).

    METIS allows a part 3 % more than its share. Where this is less than a node, as with 5 nodes in
    4 parts, it cannot satisfy this load and spoils the others.
    """
    total = weights.sum(0)
    tight = np.floor(SLACK * total / num_parts) * num_parts < total
    tight &= (weights.max(0) <= 1) & (len(total) > 1)
    lacking = np.where(tight, -total % num_parts, 0)
    return np.repeat(np.eye(len(total), dtype=weights.dtype), lacking, axis=0)


def _in_child(work: Callable[[], Any], num_nodes: int) -> np.ndarray:
    """Call a function in a forked child; return the integer of each node that it finds, int64.

    A lock that another thread holds during the fork stays locked in the child. ``work`` meets one
    such lock only, that of ``rand()``, so the child tries it first.
    """
    rand, shared = ctypes.CDLL(None).rand, mmap.mmap(-1, 8 * num_nodes + _TEXT)
    while True:
        child = -1
        try:
            with warnings.catch_warnings():  # Python warns of those locks
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                _answer(rand, work, shared, num_nodes)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except BaseException:  # such as Ctrl-C
            if child > 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            raise
        if code == 0:
            return np.frombuffer(shared, np.int64, num_nodes).copy()
        if code != -signal.SIGALRM:
            text = shared[8 * num_nodes :].rstrip(b"\0").decode(errors="replace")
            raise RuntimeError(text or f"its process ended with {code}")


def _answer(rand: Any, work: Callable[[], Any], shared: mmap.mmap, num_nodes: int) -> NoReturn:
    """In the child: write what ``work`` finds, or the error, and end."""
    try:
        if sys.platform == "linux":  # a parent that is killed leaves no METIS behind
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_PATIENCE)
        rand()
        signal.alarm(0)
        # METIS prints that a graph is small, and still answers; the caller checks the answer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        np.frombuffer(shared, np.int64, num_nodes)[:] = work()
        os._exit(0)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".encode()[:_TEXT]
        shared[8 * num_nodes : 8 * num_nodes + len(text)] = text
    finally:
        os._exit(1)


def _one_load(
    num_parts: int, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, options: Any
) -> Any:
    import pymetis

    adjacency = pymetis.CSRAdjacency(indptr, indices)
    vweights = None if weights.max() == weights.min() else weights[:, 0].copy()
    return pymetis.part_graph(
        num_parts, adjacency, vweights=vweights, recursive=False, options=options
    ).vertex_part


def _kway() -> Any:
    """Find the C function of METIS in the library that pymetis bundles.

    It balances several loads at once, which pymetis does not.
    """
    from pymetis import _internal

    try:
        return ctypes.CDLL(_internal.__file__).METIS_PartGraphKway
    except (AttributeError, OSError) as error:
        raise GNNLabError(
            f"this build of pymetis hides METIS' own function ({error}), without which only one "
            "load can be balanced: leave out balance_ntypes and balance_edges (and node types), "
            'or use part_method="ldg"'
        ) from error


def _several_loads(
    kway: Any,
    num_parts: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    options: Any,
) -> np.ndarray:
    """Balance several loads at once."""
    width = ctypes.c_int64 if indices.dtype == np.int64 else ctypes.c_int32
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
    return part
