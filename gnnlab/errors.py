"""The errors that gnnlab raises.

Each message says what was found, what was expected and what to do next. Every class is also the
Python built-in that fits, so ``except ValueError`` and ``except gnnlab.DGLError`` both work. What
is wrong, ``error.code`` says to programs.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NoReturn, TypeVar, cast

__all__ = [
    "DGLError",
    "GNNLabError",
    "InvalidInput",
    "NoAttribute",
    "NotFound",
    "OutOfRange",
    "PartitionError",
    "cannot_read",
    "check_file",
    "check_graph",
    "file_error",
    "list_of_graphs",
    "no_graph",
    "no_such_file",
    "reading",
    "takes_graph",
    "whole_number",
    "writing",
]

_T = TypeVar("_T")


class GNNLabError(Exception):
    """Root of all errors that gnnlab raises on purpose.

    Attributes
    ----------
    code : str
        Name of the mistake, for programs to compare: it stays when the message is reworded. By
        default the name of the class, such as ``"invalid_input"``. Processes pass it on.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> try:
    ...     dgl.graph(([0, 1], [1]))
    ... except dgl.DGLError as error:
    ...     print(type(error).__name__, error.code)
    InvalidInput edge_ends_differ
    """

    code = "error"

    def __init__(self, *args: object, code: str = "") -> None:
        super().__init__(*args)
        if code:
            self.code = code

    def __init_subclass__(cls) -> None:
        cls.code = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class InvalidInput(GNNLabError, ValueError):
    """An argument has the wrong value, shape, type or device."""


class NotFound(GNNLabError, KeyError):
    """A name (feature, node type, edge type, aggregator) does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NoAttribute(GNNLabError, AttributeError):
    """An object lacks an attribute that a similar object, such as a tensor, has."""


class OutOfRange(GNNLabError, IndexError):
    """A node ID or an edge ID lies outside the graph."""


class PartitionError(GNNLabError, ValueError):
    """The files of a partitioned graph are missing, damaged, foreign or cannot be written."""


def no_such_file(path: str | os.PathLike[str]) -> str:
    """Return the message for a path that does not exist, with a similar name that does."""
    hint = _meant(path)
    return f"no such file or folder: {os.fspath(path)}" + (f" ({hint})" if hint else "")


def cannot_read(path: str | os.PathLike[str], error: OSError) -> str:
    """Return the message for a file that cannot be read, with a similar name that exists."""
    hint = _meant(path) if isinstance(error, FileNotFoundError) else ""
    reason = error.strerror or error
    return f"{os.fspath(path)} cannot be read ({reason}{'; ' if hint else ''}{hint})"


def file_error(
    error: OSError,
    path: str | os.PathLike[str],
    message: str = "",
    kind: type[GNNLabError] = GNNLabError,
    code: str = "cannot_read",
) -> Any:
    """Return an error of gnnlab that is also of the class of ``error``, with its errno.

    Its ``filename`` is the path, its message by default that of :func:`cannot_read`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> try:
    ...     dgl.load_graphs("/nowhere/graphs.bin")
    ... except FileNotFoundError as error:
    ...     print(isinstance(error, dgl.DGLError), error.errno, error.filename)
    True 2 /nowhere/graphs.bin
    """
    both: Any = _both(cast(Any, kind), cast(Any, type(error)))
    made = both(error.errno, message or cannot_read(path, error), str(path))
    made.code = code
    return made


def check_file(
    path: str | os.PathLike[str],
    advice: str = "check the folder, or get the data set again",
    kind: type[GNNLabError] = InvalidInput,
) -> None:
    """Raise an error that is also the OSError that fits, if that is no file that can be reached."""
    number, what = errno.EISDIR, "not a file"  # a folder; or a pipe, which a reader would wait for
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            return
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None) or errno.ENOENT
        what = "no such file" if number == errno.ENOENT else os.strerror(number)
    message = f"{os.fspath(path)}: {what}; {advice}"
    raise file_error(OSError(number, what), path, message, kind, "no_file")


@contextmanager
def reading(path: str | os.PathLike[str], kind: type[GNNLabError] = GNNLabError) -> Iterator[None]:
    """Raise an OSError of the block as :func:`file_error` for a file that is read.

    Text in another encoding than UTF-8 is an error of the same kind, by default InvalidInput.
    """
    try:
        yield
    except GNNLabError:
        raise
    except UnicodeDecodeError as error:
        kind = InvalidInput if kind is GNNLabError else kind
        message = f"{os.fspath(path)} is not text in UTF-8 ({error})"
        raise kind(message, code="not_utf8") from error
    except OSError as error:
        raise file_error(error, path, kind=kind) from error


@contextmanager
def writing(
    path: str | os.PathLike[str],
    kind: type[GNNLabError] = GNNLabError,
    remedy: str = "choose another place",
) -> Iterator[None]:
    """Raise an OSError of the block as :func:`file_error`; what is at ``path`` has not changed."""
    try:
        yield
    except GNNLabError:
        raise
    except OSError as error:
        message = (
            f"{os.fspath(path)} cannot be written ({error.strerror or error}). What was there "
            f"before has not changed; free some space, or {remedy}"
        )
        raise file_error(error, path, message, kind, "cannot_write") from error


@functools.cache
def _both(kind: type[GNNLabError], builtin: type[OSError]) -> Any:
    name = builtin.__name__ if kind is GNNLabError else kind.__name__
    return type(name, (_OfFile, builtin, kind), {"__module__": kind.__module__})


class _OfFile(GNNLabError):
    """What errors of files share: they print their message alone, and can be pickled."""

    def __str__(self) -> str:
        return str(self.args[1])

    def __reduce__(self) -> Any:
        _, builtin, kind = type(self).__bases__
        error: Any = self
        return file_error, (builtin(error.errno, ""), error.filename, str(self), kind, self.code)


def whole_number(value: Any, name: str, least: int = 0) -> int:
    """Return an argument that must be a whole number, or raise InvalidInput."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        message = f"{name} must be a whole number, at least {least}; found {value!r}"
        raise InvalidInput(message, code="not_whole_number")
    return int(value)


# ------------------------------------------------------------------------------- no graph
_GRAPHS = {"Graph", "GraphCore", "GraphSchema", "GraphT"}  # annotations of parameters
_CONVERTERS = {
    "networkx": "dgl.from_networkx(graph) converts it",
    "scipy": "dgl.from_scipy(matrix) converts it",
    "torch_geometric": "gnnlab.pyg.from_pyg(data) converts it",
}


def check_graph(found: object, what: str) -> None:
    """Raise InvalidInput if a function or class, named ``what``, was given no graph."""
    if not hasattr(type(found), "canonical_etypes"):
        no_graph(found, what)


def list_of_graphs(given: Iterable[_T], what: str) -> list[_T]:
    """Return the graphs of a list; raise InvalidInput if it, or an item, is something else."""
    graphs = list(given) if isinstance(given, Iterable) else [given]
    for g in graphs:
        check_graph(g, f"{what}, in its list of graphs,")
    return graphs


def no_graph(found: object, what: str) -> NoReturn:
    """Raise InvalidInput for an argument that should be a graph, with the way to get one."""
    name = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
    how = "dgl.graph((src, dst)) makes one. Is the order of the arguments right?"
    if isinstance(found, list | tuple) and found and hasattr(type(found[0]), "canonical_etypes"):
        name, how = f"a {name} of {len(found)} graphs", "take one, graphs[0], or dgl.batch(graphs)"
    elif name == "DistGraph":
        how = "its edges are on many machines; take a block of a mini-batch, or g.local_partition"
    how = _CONVERTERS.get(type(found).__module__.partition(".")[0], how)
    raise InvalidInput(f"{what} needs a graph; found {name}: {how}", code="no_graph")


def takes_graph(function: _T, module: str | None = None) -> _T:
    """Return the function with a check of the graph that it takes first; others unchanged.

    That is, if its first parameter, after ``self``, is annotated as a graph. Packages apply this to
    the functions that they offer; pickle finds the result in ``module``.
    """
    if not isinstance(function, FunctionType):
        return function
    return cast(_T, _checked(function, module or function.__module__))


@functools.cache
def _checked(function: FunctionType, module: str) -> FunctionType:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    place = int(names[:1] == ("self",))
    if function.__annotations__.get("".join(names[place : place + 1])) not in _GRAPHS:
        return function
    name, what = names[place], function.__qualname__.removesuffix(".__call__")

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place:
            check_graph(args[place], what)
        elif name in kwargs:
            check_graph(kwargs[name], what)
        return function(*args, **kwargs)

    checked.__module__ = module
    return cast(FunctionType, checked)


def _meant(path: str | os.PathLike[str]) -> str:
    """Suggest a similar name for the first component of a path that does not exist."""
    import difflib

    missing = os.path.abspath(path)
    while not os.path.isdir(folder := os.path.dirname(missing)):
        missing = folder
    try:
        names = difflib.get_close_matches(os.path.basename(missing), os.listdir(folder), 1)
    except OSError:  # no permission to list the folder
        names = []
    return f"did you mean {os.path.join(folder, names[0])}?" if names else ""


DGLError = GNNLabError
