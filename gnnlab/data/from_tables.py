"""From tables to a typed graph, and from predictions back to a table.

A table of nodes has one row per node and a key; a table of edges has the keys of both ends. Keys
are text or integers, and stay with the graph: as a feature, ``"key"``, which every copy, file and
part of the graph carries. So a prediction leaves by the key with which its row came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, NotFound, check_graph
from gnnlab.graph.construct import heterograph
from gnnlab.graph.edit import append
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType, describe

KEY = "key"


@dataclass
class NodeTable:
    """Nodes of one type.

    Parameters
    ----------
    table : data frame, dict of arrays, or path
        Of pandas, polars, pyarrow or any library whose columns numpy can read; a ``.csv`` or
        ``.parquet`` file, the second with pyarrow.
    key : str
        The column that names each node: text or integers.
    feat : list of str
        Columns of numbers; together the feature ``"feat"``, float32, shape (N, D).
    label : str, optional
        Column of classes; the feature ``"label"``, int64 in the sorted order of the classes, −1 for
        an empty cell.
    keep : list of str
        Columns that become features of their own: numbers as they are, dates as seconds since 1970
        (int64), text as categories (int64, −1 for an empty cell).
    """

    table: Any
    key: str
    feat: Sequence[str] = ()
    label: str | None = None
    keep: Sequence[str] = ()


@dataclass
class EdgeTable:
    """Edges of one type; ``src`` and ``dst`` are the columns with the keys of both ends.

    The other parameters are those of :class:`NodeTable`.
    """

    table: Any
    src: str
    dst: str
    feat: Sequence[str] = ()
    label: str | None = None
    keep: Sequence[str] = ()


@dataclass
class TableReport:
    """How :func:`graph_from_tables` read cells, and what it did with those a graph cannot hold.

    Pickle it beside the graph: :func:`append_tables` reads new tables in the same way.

    Attributes
    ----------
    counts : dict
        What was dropped, added or filled, and how often.
    classes : dict
        (type, column) → the texts that numbers of a label or category stand for.
    specs : dict
        Type → :class:`NodeTable` or :class:`EdgeTable`, without the table.
    means : dict
        Type → what fills the columns of ``feat``, if ``empty="fill"``.
    dates : set
        (type, column) of dates.
    """

    counts: dict[str, int] = field(default_factory=dict)
    classes: dict[tuple[Any, str], list[Any]] = field(default_factory=dict)
    specs: dict[Any, Any] = field(default_factory=dict)
    means: dict[Any, list[float]] = field(default_factory=dict)
    dates: set[tuple[Any, str]] = field(default_factory=set)
    empty: str = "error"

    def __str__(self) -> str:
        lines = [f"{what}: {count:,}" for what, count in self.counts.items()]
        return "\n".join(lines) or "nothing was dropped, added or filled"


def graph_from_tables(
    nodes: Mapping[str, NodeTable],
    edges: Mapping[EdgeType, EdgeTable],
    *,
    duplicates: str = "error",
    unknown: str = "error",
    empty: str = "error",
) -> tuple[Graph, TableReport]:
    """Make a typed graph of tables.

    Parameters
    ----------
    nodes : dict of NodeTable
        By node type. Node i is row i of the table.
    edges : dict of EdgeTable
        By (source type, relation, destination type). Edge i is row i.
    duplicates : {"error", "drop"}
        What to do with a node whose key an earlier row has.
    unknown : {"error", "drop", "add"}
        What to do with an edge one of whose ends is in no table of nodes: leave it out, or add the
        node, whose cells are then empty.
    empty : {"error", "fill"}
        What to do with empty cells of numbers and dates: fill numbers of ``feat`` with the mean of
        their column, and add to ``"feat"`` one column for each that is 1 where the cell was empty;
        fill numbers of ``keep`` with NaN, dates with −1.

    Returns
    -------
    g : Graph
        With ``ndata["key"]`` for :func:`keys_of`, ``"feat"``, ``"label"`` and the columns to keep.
    report : TableReport

    Examples
    --------
    >>> from gnnlab.data import EdgeTable, NodeTable, graph_from_tables, keys_of
    >>> people = {"name": ["Ana", "Bo", "Chi"], "age": [31, 7, 52], "town": ["Rom", None, "Oslo"]}
    >>> calls = {"from": ["Chi", "Ana"], "to": ["Bo", "Dan"]}
    >>> g, report = graph_from_tables(
    ...     {"person": NodeTable(people, "name", feat=["age"], label="town")},
    ...     {("person", "calls", "person"): EdgeTable(calls, "from", "to")},
    ...     unknown="drop",
    ... )
    >>> g.num_nodes(), g.edges(), g.ndata["label"]
    (3, (tensor([2]), tensor([1])), tensor([ 1, -1,  0]))
    >>> print(report)
    calls: edges dropped, whose ends are in no table: 1
    >>> keys_of(g, [1, 0])
    array(['Bo', 'Ana'], dtype='<U3')
    """
    _check_policies(duplicates=duplicates, unknown=unknown, empty=empty)
    report = TableReport(empty=empty)
    rows, ends = _read_tables({}, nodes, edges, duplicates, unknown, report)
    counts = {ntype: count for ntype, (count, _) in rows.items()}
    g = heterograph({etype: (src, dst) for etype, (src, dst, _) in ends.items()}, counts)
    for ntype, (_, data) in rows.items():
        g.nodes[ntype].data.update(data)
    for etype, (_, _, data) in ends.items():
        g.edges[etype].data.update(data)
    return g, report


def append_tables(
    g: Graph,
    report: TableReport,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[EdgeType, Any] | None = None,
    *,
    duplicates: str = "error",
    unknown: str = "error",
    fill: Mapping[Any, Any] | None = None,
) -> tuple[Graph, TableReport]:
    """Append new tables to a graph of tables; those that exist keep ID, key and features.

    Parameters
    ----------
    g : Graph
        From :func:`graph_from_tables`.
    report : TableReport
        Of that call, or of the last :func:`append_tables`: columns, numbers of the classes and
        means are those of the graph. A class that it lacks is an error, or −1 as an empty cell
        where the graph was made with ``empty="fill"``.
    nodes, edges : dict, optional
        Type → new table, with the columns of the first one. A column without which training went
        on, such as the label, may lack if ``fill`` says what new rows hold.
    duplicates, unknown : str
        As for :func:`graph_from_tables`; a duplicate is also a key that the graph has.
    fill : dict, optional
        As for :func:`gnnlab.append`. Features of the graph that no column gives need it.

    Returns
    -------
    g : Graph
        A new graph; new nodes and edges have the highest IDs.
    report : TableReport
        With the counts of these tables.

    Examples
    --------
    >>> from gnnlab.data import EdgeTable, NodeTable, append_tables, graph_from_tables, keys_of
    >>> people = {"name": ["Ana", "Bo"], "vip": ["no", "yes"]}
    >>> g, report = graph_from_tables(
    ...     {"person": NodeTable(people, "name", label="vip")},
    ...     {("person", "calls", "person"): EdgeTable({"who": ["Bo"], "to": ["Ana"]}, "who", "to")},
    ... )
    >>> calls = {"who": ["Chi", "Chi"], "to": ["Ana", "Bo"]}
    >>> g, _ = append_tables(
    ...     g, report, {"person": {"name": ["Chi"]}}, {"calls": calls}, fill={"label": -1}
    ... )
    >>> g.edges(), g.ndata["label"], keys_of(g, [2])
    ((tensor([1, 2, 2]), tensor([0, 0, 1])), tensor([ 0,  1, -1]), array(['Chi'], dtype='<U3'))
    """
    known = {ntype: keys_of(g, ntype=ntype) for ntype in g.ntypes}
    rows, ends, report = read_new_tables(known, report, nodes, edges, duplicates, unknown)
    wider = g.local_var()
    for ntype in rows:
        new, old = rows[ntype], g.nodes[ntype].data[KEY]
        wider.nodes[ntype].data[KEY] = pad_keys(old, new[KEY].shape[1:])
        new[KEY] = pad_keys(new[KEY], old.shape[1:])
    return append(wider, rows, ends, fill=fill), report


def read_new_tables(
    keys: Mapping[str, np.ndarray],
    report: TableReport,
    nodes: Mapping[str, Any] | None,
    edges: Mapping[Any, Any] | None,
    duplicates: str,
    unknown: str,
) -> tuple[dict[str, Any], dict[EdgeType, Any], TableReport]:
    """Read new tables as rows for :func:`gnnlab.append`; ``keys`` are those that exist, by ID."""
    import pandas as pd

    _check_policies(duplicates=duplicates, unknown=unknown)
    given_tables = [{} if each is None else each for each in (nodes, edges)]
    if not isinstance(report, TableReport) or not all(
        isinstance(each, Mapping) for each in given_tables
    ):
        raise InvalidInput("expected a TableReport, and tables in dictionaries by type")
    specs: dict[Any, Any] = {}
    for given, table in [pair for each in given_tables for pair in each.items()]:
        kinds: list[Any] = [k for k in report.specs if isinstance(k, tuple) and k[1] == given]
        kinds = [given] if given in report.specs else kinds
        if len(kinds) != 1:
            raise NotFound(f"no table was of type {given!r}; there are {describe(report.specs)}")
        specs[kinds[0]] = replace(report.specs[kinds[0]], table=table)
    tables = {kind: spec for kind, spec in specs.items() if isinstance(spec, NodeTable)}
    others = {kind: spec for kind, spec in specs.items() if isinstance(spec, EdgeTable)}
    report = replace(report, counts={})  # the rest is read only
    known = {ntype: pd.Index(each) for ntype, each in keys.items()}
    rows, ends = _read_tables(known, tables, others, duplicates, unknown, report)
    return {ntype: data for ntype, (count, data) in rows.items() if count}, ends, report


def _check_policies(**policies: str) -> None:
    allowed = {"duplicates": ("drop",), "unknown": ("drop", "add"), "empty": ("fill",)}
    for name, value in policies.items():
        if value not in ("error", *allowed[name]):
            raise InvalidInput(
                f"{name} is one of {describe(('error', *allowed[name]))}; found {value!r}"
            )


def _read_tables(
    known: Mapping[str, Any],
    nodes: Mapping[str, NodeTable],
    edges: Mapping[EdgeType, EdgeTable],
    duplicates: str,
    unknown: str,
    report: TableReport,
) -> tuple[dict[str, tuple[int, dict[str, Any]]], dict[EdgeType, tuple[Any, Any, dict[str, Any]]]]:
    """Return number and features of new nodes, and ends and features of new edges, by type.

    ``known`` are the indexes of the keys that exist. What the report lacks is added to it.
    """
    columns = {ntype: _columns(spec.table, ntype) for ntype, spec in nodes.items()}
    rows, index, start = {}, dict(known), {ntype: len(known.get(ntype, ())) for ntype in nodes}
    for ntype, spec in nodes.items():
        rows[ntype], new = _index(
            _column(columns[ntype], spec.key, ntype), ntype, duplicates, report, known.get(ntype)
        )
        index[ntype] = known[ntype].append(new) if ntype in known else new
    ends, kept = {}, {}
    for etype, table in edges.items():
        found = _columns(table.table, etype)
        pair = [_column(found, name, etype) for name in (table.src, table.dst)]
        for ntype, column in zip(etype[::2], (table.src, table.dst), strict=True):
            if ntype not in index:
                raise NotFound(f"no table has nodes of type {ntype!r}; there are {describe(index)}")
            _check_kind(index[ntype], found[column], f"{etype}, column {column!r}")
        if unknown == "add":
            for ntype, values in zip(etype[::2], pair, strict=True):
                index[ntype] = _add(index[ntype], values, ntype, report)
        ids = [index[n].get_indexer(v) for n, v in zip(etype[::2], pair, strict=True)]
        present = (ids[0] >= 0) & (ids[1] >= 0)
        if not present.all():
            if unknown == "error":
                row = int(np.flatnonzero(~present)[0])
                end = pair[0][row] if ids[0][row] < 0 else pair[1][row]
                raise InvalidInput(
                    f"{etype}, row {row}: {end!r} is in no table of nodes, like an end of "
                    f"{(~present).sum():,} edges; unknown='drop' leaves them out, 'add' adds nodes"
                )
            _count(report, f"{etype[1]}: edges dropped, whose ends are in no table", ~present)
        ends[etype] = ids[0][present], ids[1][present]
        kept[etype] = {name: values[present] for name, values in found.items()}
    new_nodes = {}
    for ntype, keys in index.items():
        new = keys[start.get(ntype, len(known.get(ntype, ()))) :]
        data = {}
        if ntype in nodes:
            found = {name: values[rows[ntype]] for name, values in columns[ntype].items()}
            data = _features(nodes[ntype], found, len(new) - len(rows[ntype]), ntype, report)
        new_nodes[ntype] = len(new), data | {KEY: _encode(new.to_numpy())}
    new_edges = {
        etype: (*ends[etype], _features(table, kept[etype], 0, etype, report))
        for etype, table in edges.items()
    }
    return new_nodes, new_edges


def keys_of(g: Any, ids: Any = None, ntype: str | None = None) -> np.ndarray:
    """Return the keys of nodes, with which their rows came.

    Parameters
    ----------
    g : Graph or DistGraph
        From :func:`graph_from_tables`, or a copy, a block's graph or a partition of it.
    ids : IDs, optional
        Nodes; by default all.
    ntype : str, optional
        Needed where there are several node types.

    Returns
    -------
    ndarray
        Shape (K,): text or int64.
    """
    check_graph(g, "keys_of")
    data = (g.ndata if ntype is None else g.nodes[ntype].data)[KEY]
    found = data[:] if ids is None else data[as_tensor(ids, "ids").long()]
    return decode_keys(found)


def to_table(g: Any, columns: Mapping[str, Any], ids: Any = None, ntype: str | None = None) -> Any:
    """Return values of nodes as a data frame of pandas, by key.

    Parameters
    ----------
    g, ids, ntype
        As for :func:`keys_of`.
    columns : dict
        Name → one value for each node, a tensor or an array.

    Examples
    --------
    >>> import torch
    >>> from gnnlab.data import NodeTable, graph_from_tables, to_table
    >>> g, _ = graph_from_tables({"town": NodeTable({"name": ["Rom", "Oslo"]}, "name")}, {})
    >>> print(to_table(g, {"score": torch.tensor([0.5, 0.25])}))
        key  score
    0   Rom   0.50
    1  Oslo   0.25
    """
    import pandas as pd

    keys = keys_of(g, ids, ntype)
    values = {
        name: as_tensor(value, name).detach().cpu().numpy() for name, value in columns.items()
    }
    for name, each in values.items():
        if len(each) != len(keys):
            raise InvalidInput(f"{name!r} has {len(each)} rows for {len(keys)} nodes")
    return pd.DataFrame({KEY: keys, **values})


def _columns(table: Any, what: Any) -> dict[str, np.ndarray]:
    """Return the columns of a table as arrays."""
    import pandas as pd

    if isinstance(table, str | Path):
        path = Path(table)
        read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}.get(path.suffix)
        if read is None or not path.is_file():
            raise InvalidInput(f"{what}: no .csv or .parquet file at {path}")
        table = read(path)
    names = getattr(table, "column_names", None)  # of pyarrow
    names = getattr(table, "columns", None) if names is None else names
    if isinstance(table, Mapping):
        names = list(table)
    if names is None:
        raise InvalidInput(
            f"{what}: expected a data frame, a dict of arrays or a path; found "
            f"{type(table).__name__}"
        )
    found = {str(name): _array(table[name]) for name in names}
    if len({len(values) for values in found.values()}) > 1:
        sizes = {name: len(values) for name, values in found.items()}
        raise InvalidInput(f"{what}: columns need the same number of rows; found {sizes}")
    return found


def _array(values: Any) -> np.ndarray:
    found = np.asarray(values)
    return found.astype(object) if found.dtype.kind in "UST" else found


def _column(columns: Mapping[str, np.ndarray], name: str, what: Any) -> np.ndarray:
    if name not in columns:
        raise NotFound(f"{what} has no column {name!r}; there are {describe(columns)}")
    return columns[name]


def _count(report: TableReport, what: str, where: np.ndarray) -> None:
    if count := int(where.sum()):
        report.counts[what] = report.counts.get(what, 0) + count


def _index(
    keys: np.ndarray, ntype: str, duplicates: str, report: TableReport, known: Any
) -> tuple[np.ndarray, Any]:
    """Return the rows that become nodes, and the index that finds a new node by its key."""
    import pandas as pd

    if (missing := pd.isna(keys)).any():
        row = int(np.flatnonzero(missing)[0])
        raise InvalidInput(f"{ntype!r}, row {row}: the key is empty; each node needs one")
    if keys.dtype.kind == "f":
        if (keys != np.floor(keys)).any():
            raise InvalidInput(f"{ntype!r}: keys are text or integers; found {keys.dtype}")
        keys = keys.astype(np.int64)
    index = pd.Index(keys)
    again = index.duplicated()
    if known is not None:
        _check_kind(known, keys, f"{ntype!r}")
        again |= index.isin(known)
    if again.any() and duplicates == "error":
        row = int(np.flatnonzero(again)[0])
        raise InvalidInput(
            f"{ntype!r}, row {row}: an earlier row, or a node of the graph, has the key "
            f"{keys[row]!r}, as in {again.sum():,} rows; duplicates='drop' keeps the first of each"
        )
    _count(report, f"{ntype}: rows dropped, whose key an earlier row has", again)
    return np.flatnonzero(~again), index[~again]


def _check_kind(index: Any, keys: np.ndarray, what: str) -> None:
    """Raise InvalidInput unless keys are text where those of the nodes are, else integers."""
    import pandas as pd

    given = keys[~pd.isna(keys)]
    if index.dtype.kind in "iu":
        fits = given.dtype.kind in "iu" or (given.dtype.kind == "f" and (given % 1 == 0).all())
        kind = "integers"
    else:
        fits, kind = all(isinstance(key, str) for key in given), "text"
    if len(index) and len(given) and not fits:
        raise InvalidInput(
            f"{what}: the keys of the nodes are {kind}; found {given[0]!r}, {given.dtype}. Convert "
            "one of the two columns with astype"
        )


def _add(index: Any, keys: np.ndarray, ntype: str, report: TableReport) -> Any:
    """Append the keys that the index lacks, in the order of their first appearance."""
    import pandas as pd

    new = pd.unique(keys[(index.get_indexer(keys) < 0) & ~pd.isna(keys)])
    _count(report, f"{ntype}: nodes added, which only edges name", np.ones(len(new), bool))
    return index.append(pd.Index(new, dtype=index.dtype)) if len(new) else index


def _features(
    spec: NodeTable | EdgeTable,
    columns: Mapping[str, np.ndarray],
    more: int,
    what: Any,
    report: TableReport,
) -> dict[str, torch.Tensor]:
    """Return the features of one type, with ``more`` rows of empty cells at the end.

    For a type that the report knows, features none of whose columns are there are left out.
    """
    found, fill = {}, report.empty == "fill"
    if taken := {KEY, "feat", "label"} & set(spec.keep):
        raise InvalidInput(
            f"{what}: a column to keep cannot be called {describe(taken)}; rename it"
        )
    is_new = what not in report.specs
    report.specs[what] = replace(spec, table=None)
    if spec.feat and (is_new or set(spec.feat) & set(columns)):
        numbers = [_numbers(_column(columns, name, what), name, what) for name in spec.feat]
        values = np.stack([np.append(each, np.full(more, np.nan)) for each in numbers], 1)
        missing = np.isnan(values)
        _refuse_empty(missing.any(1), what, spec.feat, fill, report)
        if fill:
            if is_new:
                means = np.where(missing, 0, values).sum(0) / np.maximum((~missing).sum(0), 1)
                report.means[what] = means.tolist()
            values = np.hstack([np.where(missing, report.means[what], values), missing])
        found["feat"] = torch.from_numpy(values.astype(np.float32))
    for name in [*([spec.label] if spec.label else []), *spec.keep]:
        if not is_new and name not in columns:
            continue
        given = _column(columns, name, what)
        if is_new and given.dtype.kind == "M":
            report.dates.add((what, name))
        if (given.dtype.kind == "M") != ((what, name) in report.dates):
            raise InvalidInput(
                f"{what}, column {name!r}: dates and other values mixed; found {given.dtype}"
            )
        is_label = name == spec.label and name not in spec.keep
        feature = "label" if is_label else name
        if (what, name) in report.classes or (is_new and (is_label or given.dtype.kind == "O")):
            found[feature] = _codes(given, more, (what, name), report)
        elif given.dtype.kind == "M":
            times = given.astype("datetime64[s]").astype(np.int64)
            missing = np.append(np.isnat(given), np.ones(more, bool))
            _refuse_empty(missing, what, [name], fill, report)
            times = np.append(times, np.zeros(more, np.int64))
            found[feature] = torch.from_numpy(np.where(missing, -1, times))
        else:
            values = given if not more else np.append(given.astype(float), np.full(more, np.nan))
            if values.dtype.kind == "f":
                _refuse_empty(np.isnan(values), what, [name], fill, report)
            found[feature] = as_tensor(values, name)
    return found


def _numbers(values: np.ndarray, name: str, what: Any) -> np.ndarray:
    try:
        if values.dtype.kind in "mM":  # which numpy would count, and an empty date, too
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{what}, column {name!r}: expected numbers; found {values.dtype}. Text and dates go "
            "to keep="
        ) from None


def _refuse_empty(
    missing: np.ndarray, what: Any, names: Sequence[str], fill: bool, report: TableReport
) -> None:
    if missing.any() and not fill:
        raise InvalidInput(
            f"{what}: {describe(names)} is empty in {missing.sum():,} rows, first in row "
            f"{int(np.flatnonzero(missing)[0])}; empty='fill' fills the cells and marks them"
        )
    _count(report, f"{what}: rows filled, with an empty cell in {describe(names)}", missing)


def _codes(
    values: np.ndarray, more: int, place: tuple[Any, str], report: TableReport
) -> torch.Tensor:
    import pandas as pd

    if place in report.classes:
        codes = pd.Index(report.classes[place]).get_indexer(values)
        new = (codes < 0) & ~pd.isna(values)
        if new.any() and report.empty == "error":
            row = int(np.flatnonzero(new)[0])
            raise InvalidInput(
                f"{place[0]}, column {place[1]!r}, row {row}: the graph has no class "
                f"{values[row]!r}, as in {new.sum():,} rows; it has "
                f"{describe(report.classes[place])}. Empty such cells, or make the graph anew"
            )
        _count(report, f"{place[0]}: new classes read as empty, in {place[1]!r}", new)
    else:
        codes, classes = pd.factorize(values, sort=True)
        report.classes[place] = list(classes)
    return torch.from_numpy(np.append(codes, np.full(more, -1)).astype(np.int64))


def pad_keys(keys: torch.Tensor, width: Sequence[int]) -> torch.Tensor:
    """Return rows of text of at least this width; integers as they are."""
    return torch.nn.functional.pad(keys, (0, max(width[0] - keys.shape[1], 0))) if width else keys


def _encode(keys: np.ndarray) -> torch.Tensor:
    """Write keys as int64, or text as rows of bytes in UTF-8, filled with zeros."""
    if keys.dtype.kind in "iu":
        return torch.from_numpy(keys.astype(np.int64))
    texts = np.char.encode(keys.astype(str), "utf8")
    width = max(texts.dtype.itemsize, 1)
    return torch.from_numpy(texts.view(np.uint8).reshape(len(texts), width).copy())


def decode_keys(keys: torch.Tensor) -> np.ndarray:
    """Return the keys of a feature, text or int64."""
    if keys.ndim == 1:
        return keys.cpu().numpy()
    rows = np.ascontiguousarray(keys.cpu().numpy())
    return np.char.decode(rows.view(f"S{rows.shape[1]}")[:, 0], "utf8")
