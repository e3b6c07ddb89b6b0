"""The package that ``import dgl`` finds first where this folder is on PYTHONPATH: gnnlab.

``gnnlab as-dgl`` puts it there, so that all processes that a program starts find it as well.
"""

import importlib.util
import sys

if importlib.util.find_spec("gnnlab") is None:
    raise ModuleNotFoundError(
        f"`import dgl` is to give gnnlab, which {sys.executable} does not find; install it there: "
        f"{sys.executable} -m pip install gnnlab",
        name="gnnlab",
    )
del sys.modules[__name__]  # the next line gives the name to gnnlab.compat
import gnnlab.compat.as_dgl  # noqa: E402, F401
