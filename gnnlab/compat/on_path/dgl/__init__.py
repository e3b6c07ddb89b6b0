"""The package that ``import dgl`` finds first where this folder is on PYTHONPATH: gnnlab.

``gnnlab as-dgl`` puts it there, so that all processes that a program starts find it as well.
"""

import sys

del sys.modules[__name__]  # the next line gives the name to gnnlab.compat
import gnnlab.compat.as_dgl  # noqa: E402, F401
