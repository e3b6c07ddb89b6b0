"""Show how the processes of a job spent their time.

    gnnlab launch --trace events … "python3 train_dist.py"
    gnnlab trace events -o trace.json

The table gives seconds by role and kind of work. The file is for https://ui.perfetto.dev.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from gnnlab.system.command import command, command_parser
from gnnlab.trace import Event, read, seconds, write_chrome


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = command_parser("trace", __doc__, 2, allow_abbrev=False)
    parser.add_argument("folder", help="that of gnnlab launch --trace, or of trace.start")
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write for Perfetto")
    arguments = parser.parse_args(argv)
    events = read(arguments.folder)
    print(table(events))
    if arguments.output:
        write_chrome(events, arguments.output)
        print(f"{arguments.output}: {len(events)} events; open it in https://ui.perfetto.dev")
    return 0


def table(events: Iterable[Event]) -> str:
    """Return seconds by role and kind, one line each, as text."""
    events = list(events)
    lines = ["role      kind         number   seconds  per rank"]
    for role in dict.fromkeys(event.role for event in events):
        own = [event for event in events if event.role == role]
        ranks = len({event.rank for event in own})
        for kind, spent in sorted(seconds(own).items(), key=lambda item: -item[1]):
            number = sum(event.kind == kind for event in own)
            lines.append(f"{role:10}{kind:10}{number:9}{spent:10.3f}{spent / ranks:10.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
