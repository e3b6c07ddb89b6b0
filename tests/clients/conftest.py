"""Programs of others, which take minutes: `make test-clients` runs them, `make test` does not."""

import os

collect_ignore = [] if os.environ.get("GRAPHSTORM_VENV") else ["test_graphstorm.py"]
