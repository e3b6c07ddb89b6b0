"""``CSVDataset``: graphs from CSV files and a ``meta.yaml`` that describes them (guide, 4.6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from gnnlab.compat.data.csv_graphs import DefaultDataParser as DefaultDataParser
from gnnlab.compat.data.csv_graphs import Parser, read_csv_graphs, read_meta
from gnnlab.compat.data.dgl_dataset import DGLDataset
from gnnlab.compat.dglfile import load_graphs
from gnnlab.graph.graph import Graph
from gnnlab.graph.io import save_graphs


class CSVDataset(DGLDataset):
    """Graphs from CSV files: ``data_path`` has ``meta.yaml`` and the files that it names.

    ``force_reload`` reads them even if there is a cache; a cache that is older than one of the
    files is not used, but a change of a parser is not noticed. A parser takes a frame and returns
    name → array for the columns that are no IDs; parsers of nodes and edges may be given by type.
    By default it is :class:`DefaultDataParser`. ``transform`` takes a graph and returns another, at
    every access. ``graphs`` are in the order of their IDs; ``data`` has values per graph. A missing
    or wrong file raises InvalidInput with file, line and column.
    """

    def __init__(
        self,
        data_path: str | os.PathLike[str],
        force_reload: bool = False,
        verbose: bool = True,
        ndata_parser: Parser | Mapping[str, Parser] | None = None,
        edata_parser: Parser | Mapping[tuple[str, str, str], Parser] | None = None,
        gdata_parser: Parser | None = None,
        transform: Callable[[Graph], Graph] | None = None,
    ) -> None:
        self.graphs: list[Graph] = []
        self.data: dict[str, torch.Tensor] = {}
        self._folder = Path(data_path).expanduser()
        self._meta = read_meta(self._folder)
        self._parsers = {"node": ndata_parser, "edge": edata_parser, "graph": gdata_parser}
        super().__init__(
            self._meta["dataset_name"],
            raw_dir=str(self._folder),
            force_reload=force_reload,
            verbose=verbose,
            transform=transform,
        )

    def process(self) -> None:
        """Read the files and build the graphs."""
        self.graphs, self.data = read_csv_graphs(self._folder, self._meta, self._parsers)

    def _cache(self) -> Path:
        return Path(self.save_path, f"{self.name}.bin")

    def has_cache(self) -> bool:
        """Return whether there is a cache that is newer than all files."""
        groups = (self._meta["node_data"], self._meta["edge_data"], [self._meta["graph_data"]])
        names = ["meta.yaml", *(meta["file_name"] for group in groups for meta in group if meta)]
        files = [self._folder / name for name in names]
        cache = self._cache()
        return cache.exists() and all(
            file.exists() and file.stat().st_mtime_ns <= cache.stat().st_mtime_ns for file in files
        )

    def save(self) -> None:
        """Write all graphs to ``data_path/NAME/NAME.bin``."""
        self._cache().parent.mkdir(parents=True, exist_ok=True)
        save_graphs(self._cache(), self.graphs, self.data)

    def load(self) -> None:
        """Read what :meth:`save` wrote."""
        self.graphs, self.data = load_graphs(self._cache())

    def __getitem__(self, i: int) -> Any:
        """Return a graph; with ``graph_data``, also a dict of the values of this graph."""
        g = self.graphs[i] if self._transform is None else self._transform(self.graphs[i])
        return (g, {name: values[i] for name, values in self.data.items()}) if self.data else g

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.graphs)
