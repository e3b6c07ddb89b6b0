"""Makes ``import dgl`` give gnnlab: ``import gnnlab.compat.as_dgl`` before it.

``dgl.a.b`` is the module ``gnnlab.compat.a.b`` if there is one, otherwise ``gnnlab.a.b``: the same
module object under two names. To run a program as it is: ``python -m gnnlab.as_dgl script.py``.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import gnnlab.compat
from gnnlab.compat.lazy import target
from gnnlab.launch import environment
from gnnlab.tools.as_dgl import note_on_other_dgl


class Finder(MetaPathFinder, Loader):
    """Finds ``dgl`` and the modules below it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, module: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module of ``dgl``; None for all others."""
        if name.partition(".")[0] != "dgl" or target(name) is None:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None: Python makes an empty module, which exec_module replaces."""
        return None

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterator[Distribution]:
        """Return what ``importlib.metadata.version("dgl")`` asks: the release of DGL's names."""
        if context is None or context.name in (None, "dgl"):
            yield _Metadata()

    def exec_module(self, module: ModuleType) -> None:
        """Give the name to the module of gnnlab, whose own name and spec stay as they are."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(str(target(name)))


class _Metadata(Distribution):
    """Metadata of an installed package: only name and version."""

    def read_text(self, filename: str) -> str | None:
        text = f"Metadata-Version: 2.1\nName: dgl\nVersion: {gnnlab.compat.__version__}\n"
        return text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


def _install() -> None:
    loaded = sys.modules.get("dgl")
    if loaded is not None and loaded is not gnnlab.compat:
        raise ImportError(
            f"dgl is already imported, from {loaded.__file__}: "
            "import gnnlab.compat.as_dgl before the first `import dgl`"
        )
    is_told = environment.AS_DGL in os.environ or multiprocessing.parent_process()
    if not is_told and (note := note_on_other_dgl()):
        print(note, file=sys.stderr)
    sys.meta_path.insert(0, Finder())
    sys.modules["dgl"] = gnnlab.compat


_install()
