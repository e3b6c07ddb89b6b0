"""From tables to a typed graph, and from predictions back to a table.

A table of nodes has one row per node and a key; a table of edges has the keys of both ends. Keys
are text or integers, and stay with the graph: as a feature, ``"key"``, which every copy, file and
part of the graph carries. So a prediction leaves by the key with which its row came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from gnnlab.data.columns import Columns, check_columns, read_chunks
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
        Of pandas, polars, pyarrow or any library whose columns numpy can read; a ``.csv``,
        ``.csv.gz`` or ``.parquet`` file, the last with pyarrow.
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
        node, with empty cells; row by row, the source first.
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
    report = TableReport(empty=empty)
    rows, ends = TableReader(report, duplicates, unknown).read(nodes, edges)
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
    rows, ends = TableReader(report, duplicates, unknown, known).read(tables, others)
    return {ntype: data for ntype, (count, data) in rows.items() if count}, ends, report


class Pieces(list[np.ndarray]):
    """An array in memory, in pieces."""

    def take(self, function: Callable[[np.ndarray], np.ndarray] | None = None) -> Any:
        """Return all rows, after a function of them."""
        rows = self[0] if len(self) == 1 else np.concatenate(self)
        return torch.from_numpy(rows if function is None else function(rows))


class TableReader:
    """Reads tables as rows. What the report lacks is added to it.

    ``known`` are the indexes of the keys that exist. Files of edges are read ``rows`` at a time,
    where given; ``make`` returns what collects the pieces of an array.
    """

    def __init__(
        self,
        report: TableReport,
        duplicates: str,
        unknown: str,
        known: Mapping[str, Any] | None = None,
        rows: int | None = None,
        make: Callable[[], Any] = Pieces,
    ) -> None:
        allowed = {"duplicates": ("drop",), "unknown": ("drop", "add"), "empty": ("fill",)}
        given = {"duplicates": duplicates, "unknown": unknown, "empty": report.empty}
        for name, value in given.items():
            if value not in ("error", *allowed[name]):
                raise InvalidInput(
                    f"{name} is one of {describe(('error', *allowed[name]))}; found {value!r}"
                )
        self._report, self._duplicates, self._unknown = report, duplicates, unknown
        self._known, self._rows, self._make = known or {}, rows, make
        self._index = dict(self._known)

    def read(
        self, nodes: Mapping[str, NodeTable], edges: Mapping[EdgeType, EdgeTable]
    ) -> tuple[dict[str, tuple[int, dict[str, Any]]], dict[EdgeType, Any]]:
        """Return number and features of new nodes; sources, destinations and features of edges."""
        for kind, table in [*nodes.items(), *edges.items()]:
            expected = EdgeTable if isinstance(kind, tuple) else NodeTable
            if not isinstance(table, expected):
                raise InvalidInput(
                    f"{kind!r}: expected {expected.__name__}(table, …), which says what columns "
                    f"hold; found {type(table).__name__}"
                )
        columns, kept = {}, {}
        for ntype, spec in nodes.items():
            columns[ntype] = next(read_chunks(spec.table, ntype))
            check_columns(columns[ntype], [spec.key], ntype)
            kept[ntype] = self._index_nodes(ntype, columns[ntype][spec.key])
        ends = {etype: self._read_edges(etype, spec) for etype, spec in edges.items()}
        found = {}
        for ntype, index in self._index.items():
            new, data = index[len(self._known.get(ntype, ())) :], {}
            if ntype in nodes:
                features = _Features(nodes[ntype], ntype, self._report, self._make)
                features.add(columns.pop(ntype), kept[ntype], more=len(new) - len(kept[ntype]))
                data = features.finish()
            (keys := self._make()).append(_encode(new.to_numpy()))
            found[ntype] = len(new), data | {KEY: keys.take()}
        return found, ends

    def _index_nodes(self, ntype: str, keys: np.ndarray) -> np.ndarray:
        """Add the keys of a table to the index; return the rows that become nodes."""
        import pandas as pd

        if (missing := pd.isna(keys)).any():
            row = int(missing.argmax())
            raise InvalidInput(f"{ntype!r}, row {row}: the key is empty; each node needs one")
        if keys.dtype.kind == "f":
            if (keys != np.floor(keys)).any():
                raise InvalidInput(f"{ntype!r}: keys are text or integers; found {keys.dtype}")
            keys = keys.astype(np.int64)
        new = pd.Index(keys)
        again = new.duplicated()
        if (known := self._known.get(ntype)) is not None:
            _check_kind(known, keys, f"{ntype!r}")
            again |= new.isin(known)
        if again.any() and self._duplicates == "error":
            row = int(again.argmax())
            raise InvalidInput(
                f"{ntype!r}, row {row}: an earlier row, or a node of the graph, has the key "
                f"{keys[row]!r}, as in {again.sum():,} rows; duplicates='drop' keeps the first of "
                "each"
            )
        _count(self._report, f"{ntype}: rows dropped, whose key an earlier row has", again)
        self._index[ntype] = new[~again] if known is None else known.append(new[~again])
        return np.flatnonzero(~again)

    def _read_edges(self, etype: EdgeType, spec: EdgeTable) -> tuple[Any, Any, dict[str, Any]]:
        """Return ends and features of edges; nodes that only they name go to the index."""
        index, ntypes, names = self._index, etype[::2], (spec.src, spec.dst)
        for ntype in ntypes:
            if ntype not in index:
                raise NotFound(f"no table has nodes of type {ntype!r}; there are {describe(index)}")
        alike = [name for n, name in zip(ntypes, names, strict=True) if index[n].dtype.kind == "O"]
        alike, src, dst = [*alike, *_columns(spec)], self._make(), self._make()
        needed = {*names, *spec.feat, *alike}
        features, start = _Features(spec, etype, self._report, self._make), 0
        for columns in read_chunks(spec.table, etype, self._rows, needed, alike):
            check_columns(columns, names, etype)
            pair = [columns[name] for name in names]
            for ntype, name, keys in zip(ntypes, names, pair, strict=True):
                _check_kind(index[ntype], keys, f"{etype}, column {name!r}")
            if self._unknown == "add":
                self._add_nodes(ntypes, pair)
            ids = [index[n].get_indexer(keys) for n, keys in zip(ntypes, pair, strict=True)]
            absent = np.minimum(*ids) < 0
            if absent.any() and self._unknown == "error":
                row = int(absent.argmax())
                end = pair[0][row] if ids[0][row] < 0 else pair[1][row]
                raise InvalidInput(
                    f"{etype}, row {start + row}: {end!r} is in no table of nodes; unknown='drop' "
                    "leaves such edges out, 'add' adds nodes"
                )
            what = f"{etype[1]}: edges dropped, whose ends are in no table"
            _count(self._report, what, absent)
            src.append(ids[0][~absent])
            dst.append(ids[1][~absent])
            features.add(columns, np.flatnonzero(~absent), start)
            start += len(absent)
        return src.take(), dst.take(), features.finish()

    def _add_nodes(self, ntypes: Sequence[str], pair: Sequence[np.ndarray]) -> None:
        """Append the keys that an index lacks, row by row, of a row the source first."""
        import pandas as pd

        for ntype in dict.fromkeys(ntypes):
            index = self._index[ntype]
            ends = [keys for n, keys in zip(ntypes, pair, strict=True) if n == ntype]
            rows = np.any([index.get_indexer(keys) < 0 for keys in ends], 0)
            found = np.stack([keys[rows].astype(object) for keys in ends], 1).ravel()
            new = pd.unique(found[(index.get_indexer(found) < 0) & ~pd.isna(found)])
            if len(new):
                what = f"{ntype}: nodes added, which only edges name"
                _count(self._report, what, np.ones(len(new)))
                self._index[ntype] = index.append(pd.Index(new, dtype=index.dtype))


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


def _columns(spec: NodeTable | EdgeTable) -> dict[str, str]:
    """Return the columns that are features of their own, with the names of these."""
    return ({spec.label: "label"} if spec.label else {}) | {name: name for name in spec.keep}


def _count(report: TableReport, what: str, where: np.ndarray) -> None:
    if count := int(where.sum()):
        report.counts[what] = report.counts.get(what, 0) + count


def _check_kind(index: Any, keys: np.ndarray, what: str) -> None:
    """Raise InvalidInput unless keys are text where those of the nodes are, else integers."""
    import pandas as pd

    given = keys[~pd.isna(keys)]
    if index.dtype.kind in "iu":
        is_whole = given.dtype.kind == "f" and (given % 1 == 0) & (abs(given) <= 2**53)
        fits = given.dtype.kind in "iu" or bool(np.all(is_whole))
        kind = "integers"
    else:
        fits, kind = all(isinstance(key, str) for key in given), "text"
    if len(index) and len(given) and not fits:
        raise InvalidInput(
            f"{what}: the keys of the nodes are {kind}; found {given[0]!r}, {given.dtype}. Convert "
            "one of the two columns with astype"
        )


class _Features:
    """Makes the features of one type from the columns of its table, chunk by chunk.

    For a type that the report knows, features none of whose columns are there are left out.
    """

    def __init__(
        self, spec: NodeTable | EdgeTable, what: Any, report: TableReport, make: Callable[[], Any]
    ) -> None:
        if taken := {KEY, "feat", "label"} & set(spec.keep):
            raise InvalidInput(
                f"{what}: a column to keep cannot be called {describe(taken)}; rename it"
            )
        self._spec, self._what, self._report = spec, what, report
        self._is_new, self._fill = what not in report.specs, report.empty == "fill"
        report.specs[what] = replace(spec, table=None)
        self._found: dict[str, Any] = defaultdict(make)
        self._classes: dict[str, np.ndarray] = {}  # by column, in the order of first appearance
        self._sums, self._counts = np.zeros((2, len(spec.feat)))

    def add(self, columns: Columns, rows: np.ndarray, start: int = 0, more: int = 0) -> None:
        """Read ``rows`` of a chunk that begins at row ``start``, and ``more`` of empty cells."""
        spec, what, report, places = self._spec, self._what, self._report, rows + start
        if spec.feat and (self._is_new or set(spec.feat) & set(columns)):
            check_columns(columns, spec.feat, what)
            numbers = [_numbers(columns[name][rows], name, what) for name in spec.feat]
            values = _extend(np.stack(numbers, 1), more, np.nan)
            missing = np.isnan(values)
            self._refuse_empty(missing.any(1), places, spec.feat)
            if self._fill:
                for i, column in enumerate(values.T):  # summed in the same order in any chunks
                    full = column[~np.isnan(column)]
                    self._sums[i] = np.append(self._sums[i], full).cumsum()[-1]
                    self._counts[i] += len(full)
                values = np.hstack([values, missing])
            self._found["feat"].append(values.astype(np.float32))
        for name, feature in _columns(spec).items():
            if not self._is_new and name not in columns:
                continue
            check_columns(columns, [name], what)
            given = columns[name][rows]
            if self._is_new and given.dtype.kind == "M":
                report.dates.add((what, name))
            if (given.dtype.kind == "M") != ((what, name) in report.dates):
                raise InvalidInput(
                    f"{what}, column {name!r}: dates and other values mixed; found {given.dtype}"
                )
            is_class = feature == "label" or given.dtype.kind == "O"
            if (what, name) in report.classes or (self._is_new and is_class):
                values = _extend(self._codes(given, name, places), more, -1)
            elif given.dtype.kind == "M":
                times = _extend(given.astype("datetime64[s]"), more, np.datetime64("NaT"))
                self._refuse_empty(missing := np.isnat(times), places, [name])
                values = np.where(missing, -1, times.astype(np.int64))
            else:
                values = _extend(given, more, np.nan)
                if values.dtype.kind == "f":
                    self._refuse_empty(np.isnan(values), places, [name])
                values = as_tensor(values, name).numpy()
            self._found[feature].append(values)

    def finish(self) -> dict[str, Any]:
        """Return the features: cells are filled, and classes sorted, once all rows are known."""
        import pandas as pd

        functions: dict[str, Any] = {}
        if self._fill and self._spec.feat:
            means = (self._sums / np.maximum(self._counts, 1)).tolist()
            means = np.tile(self._report.means.setdefault(self._what, means), 2).astype(np.float32)
            functions["feat"] = lambda values: np.where(np.isnan(values), means, values)
        for name, classes in self._classes.items():
            ranks, ordered = pd.factorize(classes, sort=True)
            self._report.classes[self._what, name] = list(ordered)
            functions[_columns(self._spec)[name]] = np.append(ranks, -1).take
        return {name: pieces.take(functions.get(name)) for name, pieces in self._found.items()}

    def _refuse_empty(self, missing: np.ndarray, places: np.ndarray, names: Sequence[str]) -> None:
        if missing.any() and not self._fill:
            first = int(missing.argmax())
            row = f"in row {places[first]}" if first < len(places) else "in nodes of edges alone"
            raise InvalidInput(
                f"{self._what}: {describe(names)} is empty {row}; empty='fill' fills such cells "
                "and marks them"
            )
        what = f"{self._what}: rows filled, with an empty cell in {describe(names)}"
        _count(self._report, what, missing)

    def _codes(self, values: np.ndarray, name: str, places: np.ndarray) -> np.ndarray:
        """Number classes as the report does; new ones by their first appearance."""
        import pandas as pd

        if (known := self._report.classes.get((self._what, name))) is not None:
            codes = pd.Index(known).get_indexer(values)
            new = (codes < 0) & ~pd.isna(values)
            if new.any() and not self._fill:
                row = int(new.argmax())
                raise InvalidInput(
                    f"{self._what}, column {name!r}, row {places[row]}: the graph has no class "
                    f"{values[row]!r}; it has {describe(known)}. Empty such cells, or make the "
                    "graph anew"
                )
            _count(self._report, f"{self._what}: new classes read as empty, in {name!r}", new)
            return codes.astype(np.int64)
        codes, classes = pd.factorize(values)
        before = self._classes.get(name, classes[:0])
        numbers = pd.Index(before).get_indexer(classes)
        new = numbers < 0
        numbers[new] = len(before) + np.arange(new.sum())
        self._classes[name] = np.concatenate([before, classes[new]])
        return np.append(numbers, -1)[codes].astype(np.int64)


def _extend(values: np.ndarray, more: int, empty: Any) -> np.ndarray:
    """Append ``more`` rows of an empty cell, for which integers become float64."""
    if not more:
        return values
    return np.concatenate([values, np.full((more, *values.shape[1:]), empty)])


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


def pad_keys(keys: torch.Tensor, width: Sequence[int]) -> torch.Tensor:
    """Return rows of text of at least this width; integers as they are."""
    return torch.nn.functional.pad(keys, (0, max(width[0] - keys.shape[1], 0))) if width else keys


def _encode(keys: np.ndarray) -> np.ndarray:
    """Write keys as int64, or text as rows of bytes in UTF-8, filled with zeros."""
    if keys.dtype.kind in "iu":
        return keys.astype(np.int64)
    texts = np.char.encode(keys.astype(str), "utf8")
    width = max(texts.dtype.itemsize, 1)
    return texts.view(np.uint8).reshape(len(texts), width)


def decode_keys(keys: torch.Tensor) -> np.ndarray:
    """Return the keys of a feature, text or int64."""
    if keys.ndim == 1:
        return keys.cpu().numpy()
    rows = np.ascontiguousarray(keys.cpu().numpy())
    return np.char.decode(rows.view(f"S{rows.shape[1]}")[:, 0], "utf8")
