"""Read N-Triples, the plainest text form of RDF: a line is ``subject relation object .``

References
----------
W3C, "RDF 1.1 N-Triples: A line-based syntax for an RDF graph", 2014.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from gnnlab.bars import progress_bar
from gnnlab.errors import InvalidInput

__all__ = ["read_triples"]

_NODE = r"<([^>]*)>|(_:\S+)"
_TRIPLE = re.compile(
    rf'\s*(?:{_NODE})\s*<([^>]*)>\s*(?:{_NODE}|"((?:[^"\\]|\\.)*)"\S*)\s*\.\s*(?:#.*)?'
)


def read_triples(path: Path, progress: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield subject, relation and object of an N-Triples file, which may be compressed (.gz).

    URIs are without brackets, nodes without a URI begin with ``_:``, literals with ``"``.

    Raises
    ------
    InvalidInput
        The file is damaged or has another syntax; the message names the line.
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
