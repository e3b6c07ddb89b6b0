"""``gnnlab assignment``: runs assignment.py, which stands beside the lessons."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from gnnlab.errors import NotFound
from gnnlab.system.command import command
from gnnlab.tools.lessons import lessons_folder


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    try:
        program = runpy.run_path(str(lessons_folder() / "assignment.py"))
    except ModuleNotFoundError as error:
        raise NotFound(f"{error.name} is missing: pip install nbgrader, or otter-grader") from None
    return int(program["main"](list(sys.argv[1:] if argv is None else argv)))


if __name__ == "__main__":
    sys.exit(main())
