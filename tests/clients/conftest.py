"""Programs of others, which take minutes: `make test-clients` runs them, `make test` does not."""

import os

_NEEDS = {"test_graphstorm.py": "GRAPHSTORM_VENV", "test_libraries.py": "LIBRARIES_VENV"}
collect_ignore = ["programs", *(file for file, name in _NEEDS.items() if not os.environ.get(name))]
