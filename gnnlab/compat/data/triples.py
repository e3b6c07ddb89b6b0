"""N-Triples, the plainest text form of RDF: a line is ``subject relation object .``

References
----------
W3C, "RDF 1.1 N-Triples: A line-based syntax for an RDF graph", 2014.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph
from gnnlab.system.bars import progress_bar

_NODE = r"<([^>]*)>|(_:\S+)"
_TRIPLE = re.compile(
    rf'\s*(?:{_NODE})\s*<([^>]*)>\s*(?:{_NODE}|"((?:[^"\\]|\\.)*)"\S*)\s*\.\s*(?:#.*)?'
)


def read_triples(path: Path, progress: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield subject, relation and object of an N-Triples file, which may be compressed (.gz).

    URIs are without brackets, nodes without a URI begin with ``_:``, literals with ``"``.
    """
    size, number = path.stat().st_size, 0
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf8") as lines:
            bar = progress_bar(lines, progress, desc=path.name, unit=" triples")
            for number, line in enumerate(bar, 1):
                found = _TRIPLE.fullmatch(line.rstrip("\n"))
                if found:
                    uri, blank, relation, other, other_blank, literal = found.groups()
                    end = other or other_blank or f'"{literal}'
                    yield uri or blank, relation, end
                elif line.strip() and not line.lstrip().startswith("#"):
                    raise InvalidInput(
                        f"{path}, line {number}: not a triple: {line.strip()[:80]!r}"
                    )
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}, after line {number}: damaged ({error}); {size} bytes; get the file again"
        ) from error


def graph_of_triples(
    files: Iterable[Path],
    node_type: Callable[[str], str],
    left_out: Collection[str] = (),
    insert_reverse: bool = False,
    progress: bool = False,
) -> tuple[Graph, dict[str, int]]:
    """Make a typed graph of the distinct triples in some files, less the relations ``left_out``.

    ``node_type`` gives the type of a node by its URI, ``_:`` name, or literal that begins with
    ``"``. An edge type is the last part of the relation's URI; ``insert_reverse`` adds ``rev-`` of
    each. Also return text of a node → its ID in its type, in the order of the files.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "people.nt")
    >>> lines = "<a/1> <b/knows> <a/2> .", '<a/1> <b/name> "Ann" .'
    >>> _ = file.write_text(chr(10).join(lines))
    >>> g, ids = graph_of_triples([file], lambda text: "name" if text[0] == '"' else "person")
    >>> g.canonical_etypes, ids
    ([('person', 'knows', 'person'), ('person', 'name', 'name')], {'a/1': 0, 'a/2': 1, '"Ann': 0})
    """
    number: dict[str, int] = {}
    relations: dict[str, int] = {}
    ends = array("q")
    for file in files:
        for subject, link, other in read_triples(file, progress):
            if link not in left_out:
                ends.append(number.setdefault(subject, len(number)))
                ends.append(relations.setdefault(link.rsplit("/", 1)[-1], len(relations)))
                ends.append(number.setdefault(other, len(number)))
    src, relation, dst = np.frombuffer(ends, np.int64).reshape(-1, 3).T
    many, few = len(number), len(relations)
    key = np.unique((src * few + relation) * many + dst)  # a triple that is there twice is one
    src, relation, dst = key // many // few, key // many % few, key % many
    types: dict[str, int] = {}
    kind = np.array([types.setdefault(node_type(text), len(types)) for text in number])
    order = np.argsort(kind, kind="stable")
    sizes = np.bincount(kind)
    place = np.empty(many, np.int64)  # position among the nodes of its type
    place[order] = np.arange(many) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    names, labels = list(types), list(relations)
    group = (kind[src] * few + relation) * len(types) + kind[dst]
    edges: dict[tuple[str, str, str], tuple[torch.Tensor, torch.Tensor]] = {}
    for value in np.unique(group):
        chosen = group == value
        u, v = (torch.from_numpy(place[side[chosen]]) for side in (src, dst))
        first, last = names[value // len(types) // few], names[value % len(types)]
        name = labels[value // len(types) % few]
        edges[first, name, last] = (u, v)
        if insert_reverse:
            edges[last, f"rev-{name}", first] = (v, u)
    made = heterograph(edges, dict(zip(names, sizes.tolist(), strict=True)))
    return made, dict(zip(number, place.tolist(), strict=True))
