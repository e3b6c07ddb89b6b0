"""Read trees in brackets, ``(label (label word) (label word))``, as treebanks have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from gnnlab.errors import InvalidInput, reading


def read_trees(path: Path, vocab: Mapping[str, int], unknown: int = -1) -> Iterator[torch.Tensor]:
    """Yield the nodes of each tree of a file, which has a tree on a line: (nodes, 4), int64.

    Columns, from the root on: number of the word in lower case, by ``vocab``, or ``unknown`` (−1
    for a phrase), label, 1 for a word and 0 for a phrase, row of the parent (−1 for the root).

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "trees.txt")
    >>> _ = file.write_text("(3 (2 good) (1 film))")
    >>> next(read_trees(file, {"good": 7}))
    tensor([[-1,  3,  0, -1],
            [ 7,  2,  1,  0],
            [-1,  1,  1,  0]])
    """
    with reading(path, InvalidInput):
        text = path.read_text("utf-8-sig")
    for number, line in enumerate(text.splitlines(), 1):
        rows: list[list[int]] = []
        above: list[int] = []
        tokens = line.replace("(", " ( ").replace(")", " ) ").split()
        try:
            for i, token in enumerate(tokens):
                if token == "(":
                    rows.append([-1, int(tokens[i + 1]), 0, above[-1] if above else -1])
                    above.append(len(rows) - 1)
                elif token == ")":
                    above.pop()
                elif tokens[i - 1] != "(":
                    rows[above[-1]][0] = vocab.get(token.lower(), unknown)
                    rows[above[-1]][2] = 1
            if tokens and (above or sum(row[3] < 0 for row in rows) != 1):
                raise ValueError("brackets do not match")
        except (ValueError, IndexError) as error:
            raise InvalidInput(
                f"{path}, line {number}: not one tree in brackets ({error})"
            ) from error
        if rows:
            yield torch.tensor(rows)
