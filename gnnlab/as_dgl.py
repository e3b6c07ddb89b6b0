"""``python -m gnnlab.as_dgl script.py …``: Python, in which ``import dgl`` gives gnnlab.

Everything after ``gnnlab.as_dgl`` is as after ``python``: a script, ``-m MODULE`` or ``-c CODE``,
and its arguments.
"""

import sys

from gnnlab.tools.as_dgl import run


def _main() -> int:
    argv = sys.orig_argv[1:]  # options of the interpreter, -m, gnnlab.as_dgl, …
    options = argv[: len(argv) - len(sys.argv) - 1]
    return run([sys.executable, *options, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(_main())
