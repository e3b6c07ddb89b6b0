"""The small library: helpers of one file each that need torch alone, to be read and to be copied.

They are the reference of the fast library, which gives the same blocks and the same shares. A file
is imported when one of its names is first used. `source` shows their code in a notebook.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnlab.helpers.block_sampler import BlockSampler
    from gnnlab.helpers.ddp_loader import DDPLoader
    from gnnlab.helpers.dist_graph_simulator import DistGraphSimulator
    from gnnlab.helpers.fork import fix_openmp, prepare_mp

__all__ = ["BlockSampler", "DDPLoader", "DistGraphSimulator", "Source", "fix_openmp", "prepare_mp"]
__all__ += ["source"]

_FILES = {
    "BlockSampler": "block_sampler",
    "DDPLoader": "ddp_loader",
    "DistGraphSimulator": "dist_graph_simulator",
    "fix_openmp": "fork",
    "prepare_mp": "fork",
}


class Source(str):
    """Python code that a notebook shows with syntax colors, and `repr` as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"


def source(*parts: Any) -> Source:
    """Return the code of functions, methods or classes, without their docstrings.

    Parameters
    ----------
    *parts
        Written in Python files; each is headed by its file and name.

    Returns
    -------
    Source

    Raises
    ------
    TypeError, OSError
        A part has no Python code, or its file cannot be read.

    Examples
    --------
    >>> from gnnlab.helpers import block_sampler, source
    >>> source(block_sampler.NeighborSampler.sample_frontier)
    # block_sampler.py: NeighborSampler.sample_frontier
    def sample_frontier(self, layer_id: int, g: Graph, seed_nodes: torch.Tensor) -> Graph:
        return sample_neighbors(g, seed_nodes, self.fanouts[layer_id], self.replace)
    """
    return Source("\n\n".join(map(_code, parts)))


def _code(part: Any) -> str:
    import ast
    import inspect
    import os
    import textwrap

    code = textwrap.dedent(inspect.getsource(part))
    lines, dropped = code.splitlines(), set[int]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            doc = node.body[0]
            if len(node.body) > 1:
                dropped |= set(range(doc.lineno - 1, doc.end_lineno or doc.lineno))
    dropped |= {number + 1 for number in dropped if not lines[number + 1].strip()}
    head = f"# {os.path.basename(inspect.getfile(part))}: {part.__qualname__}"
    return "\n".join([head, *(line for n, line in enumerate(lines) if n not in dropped)])


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    if name in _FILES.values():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"gnnlab.helpers has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, *_FILES.values()})
