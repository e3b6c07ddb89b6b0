"""Graphs from CSV files and a ``meta.yaml`` that describes them.

The layout of DGL's guide, chapter 4.6. A parser turns the columns of a file that are no IDs into
features; nodes are sorted by graph and ID and get the positions 0, 1, 2 … in their graph. Empty
cells and IDs without a node are errors, which name file and line.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, check_file, reading
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

Parser = Callable[[Any], Mapping[str, Any]]

_FIELDS: dict[str, dict[str, Any]] = {
    "node_data": {
        "file_name": None,
        "ntype": "_V",
        "graph_id_field": "graph_id",
        "node_id_field": "node_id",
    },
    "edge_data": {
        "file_name": None,
        "etype": ["_V", "_E", "_V"],
        "graph_id_field": "graph_id",
        "src_id_field": "src_id",
        "dst_id_field": "dst_id",
    },
    "graph_data": {"file_name": None, "graph_id_field": "graph_id"},
}
_TOP = {"version": "1.0.0", "dataset_name": None, "separator": ","}


class DefaultDataParser:
    """Turns each column of a table into an array: numbers, booleans or lists of numbers in quotes.

    Columns without a name are left out, with a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> from gnnlab.compat.data.csv_graphs import DefaultDataParser
    >>> DefaultDataParser()(pd.DataFrame({"feat": ["1, 2", "3, 4"]}))["feat"].tolist()
    [[1, 2], [3, 4]]
    """

    def __call__(self, df: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return name → array of shape (rows,) or (rows, length)."""
        found = {}
        for name in df:
            if str(name).startswith("Unnamed"):
                warnings.warn("a column without a name is left out", stacklevel=2)
                continue
            column = df[name]
            missing = column.isna()
            if missing.any():
                raise InvalidInput(
                    f"line {column.index[missing][0] + 2}, column {name!r} is empty; expected a "
                    "number, or numbers in quotes. Provide your own parser if this is intended"
                )
            found[str(name)] = (
                column.to_numpy() if column.dtype.kind in "biuf" else self._lists(str(name), column)
            )
        return found

    @staticmethod
    def _lists(name: str, column: pd.Series) -> np.ndarray:
        rows: list[Any] = []
        for row, cell in column.items():
            try:
                value = np.asarray(ast.literal_eval(str(cell)))
                if value.dtype.kind not in "biuf" or (rows and value.shape != rows[0].shape):
                    raise ValueError
            except (ValueError, SyntaxError) as error:
                like = f"{rows[0].size} numbers in quotes" if rows else "numbers"
                raise InvalidInput(
                    f"line {row + 2}, column {name!r} is {str(cell)[:60]!r}; expected {like}. Give "
                    "a parser of your own for other contents"
                ) from error
            rows.append(value)
        return np.stack(rows)


def read_csv_graphs(
    folder: Path, meta: Mapping[str, Any], parsers: Mapping[str, Any]
) -> tuple[list[Graph], dict[str, torch.Tensor]]:
    """Read the files that ``meta.yaml`` names; return graphs, by ID, and values per graph.

    ``meta`` is what :func:`read_meta` returned; ``parsers`` has a parser, a dict of type → parser,
    or None, for "node", "edge" and "graph".
    """
    import pandas as pd

    nodes, edges, data = {}, {}, {}
    for entry in meta["node_data"]:
        table = _Table(folder, meta, parsers, "node", entry, entry["ntype"], ("node_id_field",))
        nodes[entry["ntype"]] = table.sorted_nodes()
    for entry in meta["edge_data"]:
        etype, fields = tuple(entry["etype"]), ("src_id_field", "dst_id_field")
        edges[etype] = _Table(folder, meta, parsers, "edge", entry, etype, fields)
    if meta["graph_data"] is None:
        every = [pd.Series(table.graph_ids) for table in nodes.values()]
        graph_ids = pd.Index(pd.concat(every).unique()).sort_values()
    else:
        table = _Table(folder, meta, parsers, "graph", meta["graph_data"], None, ()).sorted_nodes()
        graph_ids = pd.Index(table.graph_ids)
        data = {name: torch.as_tensor(values) for name, values in table.data.items()}
    parts = [table.split(graph_ids) for table in nodes.values()]
    counts = [dict(zip(nodes, row, strict=True)) for row in zip(*parts, strict=True)]
    ends: list[dict[Any, Any]] = [{} for _ in graph_ids]
    rows = {}
    for etype, table in edges.items():
        rows[etype] = table.split(graph_ids)
        missing = {etype[0], etype[2]} - set(nodes)
        if missing:
            raise InvalidInput(
                f"{folder / 'meta.yaml'}: edges {etype} need nodes of type "
                f"{', '.join(sorted(missing))}; node_data has {', '.join(nodes)}"
            )
        local = [table.locate(n, nodes[etype[2 * n]]) for n in (0, 1)]
        for number, chosen in enumerate(rows[etype]):
            ends[number][etype] = tuple(torch.from_numpy(side[chosen]) for side in local)
    graphs = []
    for number in range(len(graph_ids)):
        sizes = {ntype: len(chosen) for ntype, chosen in counts[number].items()}
        g = heterograph(ends[number], sizes)
        for ntype, table in nodes.items():
            _assign(g.nodes[ntype].data, table, counts[number][ntype])
        for etype, table in edges.items():
            _assign(g.edges[etype].data, table, rows[etype][number])
        graphs.append(g)
    return graphs, data


class _Table:
    """One CSV file: graph and other IDs of each row, and the arrays that the parser made."""

    def __init__(
        self,
        folder: Path,
        meta: Mapping[str, Any],
        parsers: Mapping[str, Any],
        kind: str,
        entry: Mapping[str, Any],
        key: Any,
        ids: tuple[str, ...],
    ) -> None:
        import pandas as pd

        self.path, self.columns = folder / entry["file_name"], [entry[name] for name in ids]
        check_file(self.path, f"{folder}/meta.yaml names it")
        try:
            with reading(self.path, InvalidInput):
                df = pd.read_csv(self.path, sep=meta["separator"], low_memory=False)
        except (ValueError, pd.errors.ParserError) as error:
            raise InvalidInput(f"{self.path}: not a CSV file with a header: {error}") from error
        graph = entry["graph_id_field"]
        needed = [*self.columns, *([graph] if kind == "graph" else [])]
        for name in needed:
            if name not in df:
                raise InvalidInput(
                    f"{self.path}, line 1: no column {name!r}; found {', '.join(map(str, df))}"
                )
        for name in [*self.columns, *([graph] if graph in df else [])]:
            if df[name].isna().any():
                line = int(df[name].isna().argmax()) + 2
                raise InvalidInput(f"{self.path}, line {line}: column {name!r} is empty")
        self.ids = [df.pop(name).to_numpy() for name in self.columns]
        self.graph_ids = df.pop(graph).to_numpy() if graph in df else np.zeros(len(df), np.int64)
        parser = parsers[kind]
        parser = parser.get(key) if isinstance(parser, Mapping) else parser
        try:
            parsed = (parser or DefaultDataParser())(df)
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}, {error}") from error
        self.data = {name: np.asarray(values) for name, values in parsed.items()}
        for name, values in self.data.items():
            if values.shape[:1] != (len(df),) or values.dtype.kind not in "biuf":
                raise InvalidInput(
                    f"{self.path}: the parser must return numbers for {len(df)} rows; found "
                    f"{name!r} of shape {values.shape} and dtype {values.dtype}"
                )

    def sorted_nodes(self) -> _Table:
        """Sort rows by graph and ID. Of rows with one ID the first is kept, with a warning."""
        import pandas as pd

        frame = pd.DataFrame(dict(enumerate([self.graph_ids, *self.ids])))
        again = frame.duplicated()
        if again.any():
            warnings.warn(
                f"{self.path}, line {int(again.argmax()) + 2}: this ID is there already; only the "
                f"first row of each ID is kept ({int(again.sum())} dropped)",
                stacklevel=2,
            )
        order = frame[~again].sort_values(list(frame)).index.to_numpy()
        self.graph_ids, self.ids = self.graph_ids[order], [ids[order] for ids in self.ids]
        self.data = {name: values[order] for name, values in self.data.items()}
        self.lines = order + 2
        return self

    def split(self, graph_ids: pd.Index) -> list[np.ndarray]:
        """Return the rows of each graph, in order."""
        graph = graph_ids.get_indexer(self.graph_ids)
        if (graph < 0).any():
            row = int((graph < 0).argmax())
            line = self.lines[row] if hasattr(self, "lines") else row + 2
            raise InvalidInput(
                f"{self.path}, line {line}: graph {self.graph_ids[row]} is not among the "
                f"{len(graph_ids)} known graphs"
            )
        bounds = np.cumsum(np.bincount(graph, minlength=len(graph_ids)))[:-1]
        return np.split(np.argsort(graph, kind="stable"), bounds)

    def locate(self, column: int, nodes: _Table) -> np.ndarray:
        """Return the position of the node at one end of each edge, in its graph, int64."""
        import pandas as pd

        wanted, known = self.ids[column], nodes.ids[0]
        if wanted.dtype.kind != known.dtype.kind:  # "1" in a column with letters is 1 elsewhere
            wanted, known = wanted.astype(str), known.astype(str)
        index = pd.MultiIndex.from_arrays([nodes.graph_ids, known])
        found = index.get_indexer(pd.MultiIndex.from_arrays([self.graph_ids, wanted]))
        if (found < 0).any():
            row = int((found < 0).argmax())
            raise InvalidInput(
                f"{self.path}, line {row + 2}, column {self.columns[column]!r}: graph "
                f"{self.graph_ids[row]} has no node {wanted[row]} in {nodes.path.name}"
            )
        start = pd.Series(np.arange(len(nodes.graph_ids))).groupby(nodes.graph_ids).min()
        return found - start.reindex(self.graph_ids).to_numpy()


def _assign(data: Any, table: _Table, rows: np.ndarray) -> None:
    for name, values in table.data.items():
        data[name] = torch.from_numpy(np.ascontiguousarray(values[rows]))


def read_meta(folder: Path) -> dict[str, Any]:
    """Read and check ``meta.yaml``; fill in what it leaves out."""
    try:
        import yaml
    except ImportError as error:
        raise InvalidInput("reading meta.yaml needs PyYAML: pip install pyyaml") from error
    path = folder / "meta.yaml"
    check_file(path, "graphs in CSV files need one")
    try:
        with reading(path, InvalidInput):
            meta = yaml.safe_load(path.read_text("utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not valid YAML: {error}") from error
    meta = _filled(path, meta, "meta.yaml", _TOP | dict.fromkeys(_FIELDS))
    if str(meta["version"]) != "1.0.0":
        raise InvalidInput(f"{path}: version is {meta['version']}; 1.0.0 is known")
    for group in ("node_data", "edge_data"):
        found = meta[group]
        if not isinstance(found, list) or (group == "node_data" and not found):
            raise InvalidInput(f"{path}: {group} must be a list of files; found {found!r}")
        meta[group] = [_filled(path, entry, group, _FIELDS[group]) for entry in found]
        types = [str(entry.get("ntype", entry.get("etype"))) for entry in meta[group]]
        again = {name for name in types if types.count(name) > 1}
        if again:
            raise InvalidInput(f"{path}: {group} has {', '.join(again)} twice; a type has one file")
    for entry in meta["edge_data"]:
        if not isinstance(entry["etype"], list) or len(entry["etype"]) != 3:
            raise InvalidInput(
                f"{path}: etype must be [source type, edge type, destination type]; found "
                f"{entry['etype']!r}"
            )
    if meta["graph_data"] is not None:
        meta["graph_data"] = _filled(path, meta["graph_data"], "graph_data", _FIELDS["graph_data"])
    return meta


def _filled(path: Path, found: Any, what: str, defaults: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}: {what} must have keys {', '.join(defaults)}; found {found!r}")
    unknown = [str(key) for key in found if key not in defaults]
    if unknown:
        warnings.warn(f"{path}: {what} has unknown keys {', '.join(unknown)}", stacklevel=2)
    meta = defaults | found
    name = "dataset_name" if "dataset_name" in defaults else "file_name"
    if not isinstance(meta[name], str):
        raise InvalidInput(f"{path}: {what} lacks {name}")
    return meta
