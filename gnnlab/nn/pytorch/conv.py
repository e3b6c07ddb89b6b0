"""``gnnlab.nn`` under another name that DGL code imports: ``gnnlab.nn.pytorch.conv``."""

from gnnlab.nn import *  # noqa: F403
from gnnlab.nn import __all__ as __all__
