"""``gnnlab.nn`` under the name that much DGL code imports: ``gnnlab.nn.pytorch``."""

from gnnlab.nn import *  # noqa: F403
from gnnlab.nn import __all__ as __all__
from gnnlab.nn.pytorch import conv as conv
