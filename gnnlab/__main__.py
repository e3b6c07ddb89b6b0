"""``python -m gnnlab`` is the command ``gnnlab``."""

import sys

from gnnlab.tools.cli import main

sys.exit(main())
