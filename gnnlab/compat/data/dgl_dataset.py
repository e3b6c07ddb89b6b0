"""``DGLDataset``, the base class of data sets, and its life cycle (DGL's guide, chapter 4).

Making an object runs ``has_cache``, then either ``load``, or ``download``, ``process`` and
``save``. A subclass defines ``process``, ``__getitem__`` and ``__len__``.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from gnnlab.compat.data.utils import download, extract_archive, get_download_dir, makedirs


class DGLDataset:
    """Base class of data sets.

    ``raw_dir`` is the folder of downloads, by default ``get_download_dir()``; nothing is downloaded
    if ``raw_path``, the folder ``raw_dir/name``, exists. ``save_dir``, by default ``raw_dir``, has
    the processed files. ``hash`` is computed from ``hash_key``, values on which they depend.
    ``force_reload`` processes the raw files even if there is a cache. ``transform`` takes a graph
    and returns another: ``self._transform``, for ``__getitem__`` of the subclass.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> class Rings(dgl.data.DGLDataset):
    ...     def __init__(self):
    ...         super().__init__(name="rings")
    ...     def process(self):
    ...         self.graphs = [dgl.graph(([0, 1, 2], [1, 2, 0])) for _ in range(5)]
    ...     def __getitem__(self, i):
    ...         return self.graphs[i]
    ...     def __len__(self):
    ...         return len(self.graphs)
    >>> len(Rings())
    5
    """

    def __init__(
        self,
        name: str,
        url: str | None = None,
        raw_dir: str | os.PathLike[str] | None = None,
        save_dir: str | os.PathLike[str] | None = None,
        hash_key: tuple[Any, ...] = (),
        force_reload: bool = False,
        verbose: bool = False,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self._name, self._url, self._transform = name, url, transform
        self._force_reload, self._verbose, self._hash_key = force_reload, verbose, hash_key
        self._hash = hashlib.sha1(str(hash_key).encode()).hexdigest()[:8]
        self._raw_dir = get_download_dir() if raw_dir is None else os.path.expanduser(raw_dir)
        self._save_dir = self._raw_dir if save_dir is None else os.path.expanduser(save_dir)
        self._load()

    def download(self) -> None:
        """Get the raw files into ``raw_dir``. By default there are none."""

    def save(self) -> None:
        """Write the processed data below ``save_path``. By default nothing is written."""

    def load(self) -> None:
        """Read what :meth:`save` wrote."""

    def process(self) -> None:
        """Make graphs of the raw files: to be defined by each subclass."""
        raise NotImplementedError(f"{type(self).__name__} must define process()")

    def has_cache(self) -> bool:
        """Return whether :meth:`load` can be used. By default there is no cache."""
        return False

    def _load(self) -> None:
        if not self._force_reload and self.has_cache():
            try:
                self.load()
                self._print("Done loading data from cached files.")
                return
            except Exception as error:  # a cache is made again, whatever is wrong with it
                warnings.warn(
                    f"{self.name}: the cache in {self.save_path} cannot be read "
                    f"({type(error).__name__}: {error}); processing the raw files again",
                    stacklevel=3,
                )
        self._download()
        self.process()
        self.save()
        self._print("Done saving data into cached files.")

    def _download(self) -> None:
        """Call :meth:`download` unless the raw files are there."""
        if not os.path.exists(self.raw_path):
            makedirs(self.raw_dir)
            self.download()

    def _print(self, text: str) -> None:
        if self.verbose:
            print(text)

    name = property(attrgetter("_name"), doc="Name of the data set.")
    url = property(attrgetter("_url"), doc="Address of the raw files.")
    raw_dir = property(attrgetter("_raw_dir"), doc="Folder of downloads.")
    save_dir = property(attrgetter("_save_dir"), doc="Folder of processed files.")
    verbose = property(attrgetter("_verbose"), doc="Whether to print progress.")
    hash = property(attrgetter("_hash"), doc="Eight digits, computed from hash_key.")
    raw_path = property(lambda self: os.path.join(self.raw_dir, self.name), doc="Raw files.")
    save_path = property(lambda self: os.path.join(self.save_dir, self.name), doc="Its cache.")

    def __getitem__(self, idx: Any) -> Any:
        """Return one item: to be defined by each subclass."""
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__()")

    def __len__(self) -> int:
        """Return the number of items: to be defined by each subclass."""
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")

    def __repr__(self) -> str:
        """Name, number of graphs and paths."""
        return f'Dataset("{self.name}", num_graphs={len(self)}, save_path={self.save_path})'


class DGLBuiltinDataset(DGLDataset):
    """Base class of data sets whose raw files are one zip file, unpacked into ``raw_dir/NAME``."""

    def __init__(
        self,
        name: str,
        url: str | None,
        raw_dir: str | os.PathLike[str] | None = None,
        hash_key: tuple[Any, ...] = (),
        force_reload: bool = False,
        verbose: bool = False,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(name, url, raw_dir, None, hash_key, force_reload, verbose, transform)

    def download(self) -> None:
        """Get and unpack the archive, if there is an address."""
        if self.url is None:
            return
        archive = Path(self.raw_dir, f"{self.name}.zip")
        download(self.url, archive, overwrite=False, log=self.verbose)
        extract_archive(archive, self.raw_path, overwrite=False)
